"""Snippets that the real converter was asked to convert, by the names of their record (``refusals.json``)."""

import torch
from torch import nn
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel

torch.manual_seed(0)
X = torch.randn(2, 3)
X += 0.5 - X.mean()  # the branch of a snippet that looks at the sum
Q = torch.randn(1, 2, 4, 8)


def attention(q, **keywords):
    with sdpa_kernel(SDPBackend.MATH):
        return functional.scaled_dot_product_attention(q, q, q, **keywords)


def mask_set(x):
    y = x.clone()
    y[y > 0] = 0
    return y


def printing(x):
    y = x + 1
    print("y", y.shape)
    return y * 2


# name -> function; the input is X
FUNCTIONS = {
    "x.prod()": lambda x: x.prod(),
    "x.amax(1)": lambda x: x.amax(1),
    "x.var(1)": lambda x: x.var(1),
    "x.std()": lambda x: x.std(),
    "x.isnan()": lambda x: x.isnan(),
    "x.nan_to_num()": lambda x: x.nan_to_num(),
    "x.trunc()": lambda x: x.trunc(),
    "torch.fmod": lambda x: torch.fmod(x, 0.5),
    "torch.atan2": lambda x: torch.atan2(x, x),
    "x == x.half()": lambda x: x == x.half(),
    "x.all(1)": lambda x: (x > 0).all(1),
    "bitwise xor": lambda x: (x > 0) ^ (x > 1),
    "sort stable": lambda x: torch.sort(x, stable=True)[0],
    "index_put": lambda x: x.index_put((torch.tensor([0]),), torch.ones(3)),
    "index_copy": lambda x: x.index_copy(0, torch.tensor([0]), torch.ones(1, 3)),
    "logical_xor": lambda x: torch.logical_xor(x, x),
    "F.one_hot": lambda x: functional.one_hot(torch.tensor([0, 1]), 3),
    "F.dropout train": lambda x: functional.dropout(x, 0.5, True),
    "x.norm(2, 1)": lambda x: x.norm(2, 1),
    "F.instance_norm": lambda x: functional.instance_norm(x[None]),
    "torch.linalg.inv": lambda x: torch.linalg.inv(x[:, :2]),
    "x.median()": lambda x: x.median(),
    "torch.unique": lambda x: torch.unique(x),
    "x.nonzero()": lambda x: x.nonzero(),
    "torch.rand_like": lambda x: torch.rand_like(x),
    "torch.randn": lambda x: x + torch.randn(3),
    "backward of silu": lambda x: functional.silu(x).sum(),
    "backward of gelu": lambda x: functional.gelu(x).sum(),
    "backward of layer_norm": lambda x: functional.layer_norm(x, (3,)).pow(2).sum(),
    "backward of softmax": lambda x: x.softmax(1).pow(2).sum(),
    "backward of tanh": lambda x: x.tanh().sum(),
    "backward of sigmoid": lambda x: x.sigmoid().sum(),
    "backward of slice": lambda x: x[:, 1:].pow(2).sum(),
    "backward of select": lambda x: x[0].pow(2).sum(),
    "backward of index": lambda x: x[torch.tensor([0, 1])].pow(2).sum(),
    "backward of mse": lambda x: functional.mse_loss(x, x.detach() + 1),
    "backward of max_pool2d": lambda x: functional.max_pool2d(x[None, None].repeat(1, 1, 2, 2), 2).sum(),
    "backward of conv2d": lambda x: functional.conv2d(x[None, None], torch.ones(1, 1, 2, 2)).sum(),
    "float8 cast": lambda x: x.to(torch.float8_e4m3fn).float(),
    "complex": lambda x: torch.complex(x, x).abs(),
    "fft": lambda x: torch.fft.rfft(x).abs(),
    "cumsum": lambda x: x.cumsum(1),
    "upsample bicubic": lambda x: functional.interpolate(x[None, None], scale_factor=2, mode="bicubic"),
    "einsum": lambda x: torch.einsum("ij,kj->ik", x, x),
    "roll": lambda x: x.roll(1),
    "x.item() branch": lambda x: x + 1 if x.sum().item() > 0 else x - 1,
    "as_strided": lambda x: x.as_strided((2, 2), (1, 1)),
    "searchsorted": lambda x: torch.searchsorted(x.sort(1)[0], x),
    "kron": lambda x: torch.kron(x, x),
    "diagonal": lambda x: x.diagonal(),
    "x.T @ x": lambda x: x.T @ x,
    "triu": lambda x: x.triu(),
    "meshgrid": lambda x: torch.meshgrid(x[0], x[1])[0],
    "scatter_reduce": lambda x: x.scatter_reduce(1, torch.zeros(2, 3, dtype=torch.long), x, "amax"),
    "bitwise shift": lambda x: (x * 4).int() << 1,
    "float power": lambda x: x.float_power(2),
    "logsumexp": lambda x: x.logsumexp(1),
    "F.rms_norm": lambda x: functional.rms_norm(x, (3,)),
    "F.group_norm": lambda x: functional.group_norm(torch.cat([x, x[:, :1]], 1)[..., None], 2),
    "F.hardswish": lambda x: functional.hardswish(x),
    "F.softplus": lambda x: functional.softplus(x),
    "F.selu": lambda x: functional.selu(x),
    "F.celu": lambda x: functional.celu(x),
    "F.prelu": lambda x: functional.prelu(x, torch.ones(1)),
    "F.smooth_l1_loss": lambda x: functional.smooth_l1_loss(x, x + 1),
    "F.kl_div": lambda x: functional.kl_div(x, x),
    "F.binary_cross_entropy_with_logits": lambda x: functional.binary_cross_entropy_with_logits(x, x),
    "F.pad reflect": lambda x: functional.pad(x[None], (1, 1), mode="reflect"),
    "F.unfold": lambda x: functional.unfold(x[None, None], 2),
    "F.grid_sample": lambda x: functional.grid_sample(x[None, None], torch.zeros(1, 2, 2, 2)),
    "tensor.copy_ of other type": lambda x: x.clone().copy_(x.half()),
    "torch.where 1 argument": lambda x: torch.where(x > 0),
    "x[mask] = 0": mask_set,
    "custom Python print": printing,
    "BatchNorm train": nn.BatchNorm1d(3).train(),
    "LSTM": nn.LSTM(3, 4, batch_first=True),
    "F.embedding_bag": lambda x: functional.embedding_bag(torch.tensor([[0, 1]]), torch.ones(3, 2)),
}
# the input is Q
ATTENTION = {
    "F.scaled_dot_product_attention (CPU default back end)": lambda q: functional.scaled_dot_product_attention(q, q, q),
    "F.scaled_dot_product_attention under MATH": attention,
    "F.scaled_dot_product_attention is_causal under MATH": lambda q: attention(q, is_causal=True),
}


def case(name):
    """Function, input and whether its gradient is asked for."""
    if name in ATTENTION:
        return ATTENTION[name], Q, False
    grad = name.startswith("backward")
    function = FUNCTIONS[name]
    if grad:
        return lambda x: function(x.clone().requires_grad_(True)), X, True
    return function, X[None] if name == "LSTM" else X, False
