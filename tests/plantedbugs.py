"""Mistakes in ports of nets from torch to MindSpore, each to be planted alone (`plantednets.Bug`)."""

import numpy as np
from plantednets import Bug

import dumpsim.frontends.mindspore as ms
from dumpsim.frontends.mindspore import nn, ops

__all__ = ["BUGS", "FURTHER"]


def put(**cells):
    """Replace cells, by name with ``__`` for a dot."""

    def plant(net):
        for name, make in cells.items():
            owner, last = _owner(net, name)
            setattr(owner, last, make())

    return plant


def method(**functions):
    """Replace methods of a cell, likewise."""

    def plant(net):
        for name, function in functions.items():
            owner, last = _owner(net, name)
            object.__setattr__(owner, last, function.__get__(owner))

    return plant


def _owner(net, name):
    *path, last = name.split("__")
    for part in path:
        net = getattr(net, part)
    return net, last


def only(wanted, change):
    """Change one weight."""
    return lambda name, value: change(value) if name == wanted else value


def conv(*args, **kwargs):
    kwargs = {"pad_mode": "pad", "has_bias": True} | kwargs
    return lambda: nn.Conv2d(*args, **kwargs)


def sgd(rate=0.05, momentum=0.9, **kwargs):
    return lambda found: nn.SGD(found, rate, momentum=momentum, **kwargs)


def halved(value):
    return value.astype(ms.float16).astype(ms.float32)


def triangle(n, fill):
    return ms.Tensor(fill(np.full((n, n), -1e4, np.float32)))


CNN = {
    "padding mode": (put(conv2=conv(8, 16, 3, stride=2, group=2, pad_mode="same")), "NN_Conv2d_1"),
    "batch norm with another epsilon": (put(bn=lambda: nn.BatchNorm2d(8, eps=1e-2)), "NN_BatchNorm2d_0"),
    "detached tensor": (
        method(flat=lambda self, x: ops.stop_gradient(x).reshape(x.shape[0], -1)),
        "NN_AvgPool2d_0",
        "Tensor_reshape_0",
    ),
    "loss summed": (
        put(loss=lambda: nn.CrossEntropyLoss(label_smoothing=0.1, reduction="sum")),
        "NN_CrossEntropyLoss_0",
    ),
    "label smoothing": (put(loss=nn.CrossEntropyLoss), "NN_CrossEntropyLoss_0"),
    "stride": (put(pool=lambda: nn.MaxPool2d(3, 2, pad_mode="same")), "NN_MaxPool2d_0"),
    "dilation": (put(conv3=conv(16, 16, 3, padding=1, dilation=1)), "NN_Conv2d_2"),
    "groups of channels": (put(gn=lambda: nn.GroupNorm(8, 16)), "NN_GroupNorm_0"),
    "slope of the leaky ReLU": (put(leaky=lambda: nn.LeakyReLU(0.2)), "NN_LeakyReLU_0"),
    "average pooling with padding": (put(avg=lambda: nn.AvgPool2d(3, 2, pad_mode="same")), "NN_AvgPool2d_0"),
    "activation forgotten": (put(silu=nn.Sigmoid), "NN_Sigmoid_0"),
}
TRANSFORMER = {
    "layer norm with another epsilon": (put(b0__ln2=lambda: nn.LayerNorm((16,), epsilon=1e-3)), "NN_LayerNorm_1"),
    "missing attention scale": (method(b1__scaled=lambda self, x: x), "mul"),
    "GELU by tanh": (put(b0__gelu=lambda: nn.GELU(approximate=True)), "NN_GELU_0"),
    "softmax over another axis": (method(b0__soft=lambda self, x: ops.softmax(x, -2)), "Functional_softmax_0"),
    "mask of the wrong triangle": (method(mask=lambda self, n: triangle(n, lambda a: np.tril(a, -1))), "__add___0"),
    "truncated to float16": (method(b1__residual=lambda self, x, y: x + halved(y)), "__add___4"),
    "embedding without its scale": (method(embedded=lambda self, x: self.emb(x)), "mul"),
    "heads merged in another order": (method(b0__merged=lambda self, x, shape: x.reshape(shape)), "reshape", "permute"),
}
RECURRENT = {
    "hidden state of ones": (
        method(initial=lambda self, x: ops.ones((1, x.shape[0], 16), ms.float32)),
        "NN_LSTM_0",
    ),
    "gate without sigmoid": (method(gated=lambda self, s: s * ops.tanh(self.gate(s))), "tanh", "sigmoid"),
    "carried state detached": (
        method(carried=lambda self, s: ops.stop_gradient(s)),
        "Functional_cat",
        "Tensor___mul__",
    ),
    "wrong weight of a part of the loss": (
        method(loss=lambda self, x, y, s: ops.mse_loss(x, y) + 0.1 * ops.l1_loss(s, ops.zeros_like(s))),
        "mul",
    ),
}
# those with which the rules were written
BUGS = {
    **{name: Bug("cnn", plant, tuple(named)) for name, (plant, *named) in CNN.items()},
    **{name: Bug("transformer", plant, tuple(named)) for name, (plant, *named) in TRANSFORMER.items()},
    **{name: Bug("recurrent", plant, tuple(named)) for name, (plant, *named) in RECURRENT.items()},
    "transposed weight": Bug("transformer", named=("NN_Dense_3",), weights=only("b0.o.weight", np.transpose)),
    "bias not loaded": Bug("transformer", named=("NN_Dense_10",), weights=only("b1.up.bias", np.zeros_like)),
    "weight decay": Bug("recurrent", named=("NN_LSTM_1 optimizer",), optimizer=sgd(weight_decay=0.1)),
    "learning rate": Bug("cnn", named=("NN_Conv2d_3 optimizer",), optimizer=sgd(rate=0.04)),
}

MORE_CNN = {
    "batch norm in evaluation mode": (
        put(bn=lambda: nn.BatchNorm2d(8, use_batch_statistics=False)),
        "NN_BatchNorm2d_0",
    ),
    "ReLU for leaky ReLU": (put(leaky=nn.ReLU), "NN_ReLU_1"),
    "GELU for SiLU": (put(silu=nn.GELU), "NN_GELU_0"),
    "group norm with another epsilon": (put(gn=lambda: nn.GroupNorm(4, 16, eps=1e-3)), "NN_GroupNorm_0"),
    "average for maximum": (put(pool=lambda: nn.AvgPool2d(2, 2)), "NN_AvgPool2d_0"),
    "branch detached": (method(add=lambda self, x, y: x + ops.stop_gradient(y)), "SiLU_0", "__add___0"),
}
MORE_TRANSFORMER = {
    "norm left out": (put(b1__ln1=nn.Identity), "LayerNorm", "Identity"),
    "no causal mask": (method(mask=lambda self, n: triangle(n, np.zeros_like)), "__add___0"),
    "scale by the width": (method(b0__scaled=lambda self, x: x * 0.125), "__mul___1"),
    "heads of another size": (lambda net: setattr(net.b0, "count", 4), "reshape"),
    "residual left out": (method(b0__residual=lambda self, x, y: y), "__add___1"),
    "loss summed by a function": (
        method(loss=lambda self, x, y: ops.cross_entropy(x, y, reduction="sum")),
        "cross_entropy",
    ),
    "residual detached": (method(b1__residual=lambda self, x, y: x + ops.stop_gradient(y)), "NN_Dense_9", "__add___4"),
    "attention detached": (
        method(b0__soft=lambda self, x: ops.stop_gradient(ops.softmax(x, -1))),
        "softmax_0",
        "matmul_1",
    ),
    "heads merged in float16": (
        method(b0__merged=lambda self, x, shape: halved(x.permute(0, 2, 1, 3)).reshape(shape)),
        "reshape_3",
    ),
    "last norm with another epsilon": (put(ln=lambda: nn.LayerNorm((16,), epsilon=1e-4)), "NN_LayerNorm_4"),
}
MORE_RECURRENT = {
    "ReLU for tanh": (method(step=lambda self, x, s: ops.relu(self.cell(ops.cat([x, s], 1)))), "relu", "tanh_1"),
    "last state for the mean": (method(pooled=lambda self, x: ops.tanh(x[:, -1])), "mean_0", "tanh_0"),
    "operands of a join in another order": (
        method(step=lambda self, x, s: ops.tanh(self.cell(ops.cat([s, x], 1)))),
        "cat_0",
    ),
}
# drawn after the rules were written
FURTHER = {
    **{name: Bug("cnn", plant, tuple(named)) for name, (plant, *named) in MORE_CNN.items()},
    **{name: Bug("transformer", plant, tuple(named)) for name, (plant, *named) in MORE_TRANSFORMER.items()},
    **{name: Bug("recurrent", plant, tuple(named)) for name, (plant, *named) in MORE_RECURRENT.items()},
    "kernel flipped": Bug("cnn", named=("NN_Conv2d_0",), weights=only("conv1.weight", lambda v: v[..., ::-1].copy())),
    "bias doubled": Bug("cnn", named=("NN_Dense_1",), weights=only("fc2.bias", lambda v: 2 * v)),
    "gates in another order": Bug(
        "recurrent", named=("NN_LSTM_0",), weights=only("lstm.weight_ih_l0", lambda v: np.roll(v, 16, 0))
    ),
    "rows of the embedding zero": Bug(
        "transformer",
        named=("NN_Embedding_0",),
        weights=only("emb.weight", lambda v: np.where(np.arange(17)[:, None] < 9, 0, v).astype("f4")),
    ),
    "no momentum": Bug("recurrent", named=("NN_LSTM_2 optimizer",), optimizer=sgd(momentum=0.0)),
    "wrong scale of norms": Bug("transformer", named=("NN_LayerNorm_3",), weights=only("b1.ln2.weight", np.ones_like)),
}
