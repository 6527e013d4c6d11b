"""Nets in torch and in MindSpore with the same weights, and bugs to plant in one half: a porting mistake each.

`pair(root, bug)` dumps both halves and returns their directories; a bug is a net, a function that changes the half of
MindSpore, and the calls that a search may name for it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812

import dumpsim.frontends.mindspore as ms
from dumpsim.frontends.mindspore import nn, ops
from dumpsim.migrator import api_dump_init

STEPS = 3


class TorchCnn(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = torch.nn.Conv2d(4, 8, 3, padding=1)
        self.bn = torch.nn.BatchNorm2d(8)
        self.conv2 = torch.nn.Conv2d(8, 16, 3, stride=2, padding=1, groups=2)
        self.gn = torch.nn.GroupNorm(4, 16)
        self.conv3 = torch.nn.Conv2d(16, 16, 3, padding=2, dilation=2)
        self.pool = torch.nn.MaxPool2d(2, 2)
        self.avg = torch.nn.AvgPool2d(2, 2)
        self.act, self.leaky, self.silu = torch.nn.ReLU(), torch.nn.LeakyReLU(0.01), torch.nn.SiLU()
        self.fc1, self.fc2 = torch.nn.Linear(64, 32), torch.nn.Linear(32, 5)
        self.loss = torch.nn.CrossEntropyLoss(label_smoothing=0.1)

    def forward(self, x, y):
        x = self.pool(self.act(self.bn(self.conv1(x))))
        x = self.leaky(self.gn(self.conv2(x)))
        x = x + self.silu(self.conv3(x))
        x = self.avg(x).reshape(x.shape[0], -1)
        x = F.relu(self.fc1(x))
        return self.loss(self.fc2(x), y)


class Cnn(nn.Cell):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(4, 8, 3, pad_mode="pad", padding=1, has_bias=True)
        self.bn = nn.BatchNorm2d(8)
        self.conv2 = nn.Conv2d(8, 16, 3, stride=2, pad_mode="pad", padding=1, group=2, has_bias=True)
        self.gn = nn.GroupNorm(4, 16)
        self.conv3 = nn.Conv2d(16, 16, 3, pad_mode="pad", padding=2, dilation=2, has_bias=True)
        self.pool = nn.MaxPool2d(2, 2)
        self.avg = nn.AvgPool2d(2, 2)
        self.act, self.leaky, self.silu = nn.ReLU(), nn.LeakyReLU(0.01), nn.SiLU()
        self.fc1, self.fc2 = nn.Dense(64, 32), nn.Dense(32, 5)
        self.loss = nn.CrossEntropyLoss(label_smoothing=0.1)

    def add(self, x, y):
        return x + y

    def flat(self, x):
        return x.reshape(x.shape[0], -1)

    def construct(self, x, y):
        x = self.pool(self.act(self.bn(self.conv1(x))))
        x = self.leaky(self.gn(self.conv2(x)))
        x = self.add(x, self.silu(self.conv3(x)))
        x = self.flat(self.avg(x))
        x = ops.relu(self.fc1(x))
        return self.loss(self.fc2(x), y)


class TorchBlock(torch.nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.count = heads
        self.ln1, self.ln2 = torch.nn.LayerNorm(width), torch.nn.LayerNorm(width)
        self.q, self.k, self.v, self.o = (torch.nn.Linear(width, width) for _ in range(4))
        self.up, self.down = torch.nn.Linear(width, 2 * width), torch.nn.Linear(2 * width, width)
        self.gelu = torch.nn.GELU()

    def heads(self, x):
        b, t, d = x.shape
        return x.reshape(b, t, self.count, d // self.count).permute(0, 2, 1, 3)

    def forward(self, x, mask):
        h = self.ln1(x)
        q, k, v = self.heads(self.q(h)), self.heads(self.k(h)), self.heads(self.v(h))
        s = torch.matmul(q, k.transpose(2, 3)) * 0.3535533905932738
        a = F.softmax(s + mask, -1)
        x = x + self.o(torch.matmul(a, v).permute(0, 2, 1, 3).reshape(x.shape))
        return x + self.down(self.gelu(self.up(self.ln2(x))))


class TorchTransformer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = torch.nn.Embedding(17, 16)
        self.b0, self.b1 = TorchBlock(16, 2), TorchBlock(16, 2)
        self.ln = torch.nn.LayerNorm(16)
        self.head = torch.nn.Linear(16, 17)

    def forward(self, x, y):
        mask = torch.triu(torch.full((x.shape[1], x.shape[1]), -1e4), 1)
        x = self.emb(x) * 4.0
        x = self.b1(self.b0(x, mask), mask)
        return F.cross_entropy(self.head(self.ln(x)).reshape(-1, 17), y.reshape(-1))


class Block(nn.Cell):
    def __init__(self, width, heads):
        super().__init__()
        self.count = heads
        self.ln1, self.ln2 = nn.LayerNorm((width,), epsilon=1e-5), nn.LayerNorm((width,), epsilon=1e-5)
        self.q, self.k, self.v, self.o = (nn.Dense(width, width) for _ in range(4))
        self.up, self.down = nn.Dense(width, 2 * width), nn.Dense(2 * width, width)
        self.gelu = nn.GELU(approximate=False)

    def heads(self, x):
        b, t, d = x.shape
        return x.reshape(b, t, self.count, d // self.count).permute(0, 2, 1, 3)

    def merged(self, x, shape):
        return x.permute(0, 2, 1, 3).reshape(shape)

    def scaled(self, x):
        return x * 0.3535533905932738

    def masked(self, x, mask):
        return x + mask

    def soft(self, x):
        return ops.softmax(x, -1)

    def residual(self, x, y):
        return x + y

    def construct(self, x, mask):
        h = self.ln1(x)
        q, k, v = self.heads(self.q(h)), self.heads(self.k(h)), self.heads(self.v(h))
        s = self.scaled(ops.matmul(q, k.swapaxes(2, 3)))
        a = self.soft(self.masked(s, mask))
        x = self.residual(x, self.o(self.merged(ops.matmul(a, v), x.shape)))
        return x + self.down(self.gelu(self.up(self.ln2(x))))


class Transformer(nn.Cell):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(17, 16)
        self.b0, self.b1 = Block(16, 2), Block(16, 2)
        self.ln = nn.LayerNorm((16,), epsilon=1e-5)
        self.head = nn.Dense(16, 17)

    def mask(self, n):
        return ms.Tensor(np.triu(np.full((n, n), -1e4, np.float32), 1))

    def embedded(self, x):
        return self.emb(x) * 4.0

    def loss(self, x, y):
        return ops.cross_entropy(x, y)

    def construct(self, x, y):
        mask = self.mask(x.shape[1])
        x = self.b1(self.b0(self.embedded(x), mask), mask)
        return self.loss(self.head(self.ln(x)).reshape(-1, 17), y.reshape(-1))


class TorchRecurrent(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = torch.nn.LSTM(4, 16, batch_first=True)
        self.cell, self.gate = torch.nn.Linear(32, 16), torch.nn.Linear(16, 16)
        self.fc = torch.nn.Linear(16, 3)

    def forward(self, x, y):
        h = torch.zeros(1, x.shape[0], 16)
        x, _ = self.lstm(x, (h, h))
        s = torch.tanh(x.mean(1))
        for t in range(3):
            s = torch.tanh(self.cell(torch.cat([x[:, t], s], 1)))
            s = s * torch.sigmoid(self.gate(s))
        return F.mse_loss(self.fc(s), y) + 0.01 * F.l1_loss(s, torch.zeros_like(s))


class Recurrent(nn.Cell):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(4, 16, batch_first=True)
        self.cell, self.gate = nn.Dense(32, 16), nn.Dense(16, 16)
        self.fc = nn.Dense(16, 3)

    def initial(self, x):
        return ops.zeros((1, x.shape[0], 16), ms.float32)

    def carried(self, s):
        return s

    def step(self, x, s):
        return ops.tanh(self.cell(ops.cat([x, s], 1)))

    def gated(self, s):
        return s * ops.sigmoid(self.gate(s))

    def pooled(self, x):
        return ops.tanh(x.mean(1))

    def loss(self, x, y, s):
        return ops.mse_loss(x, y) + 0.01 * ops.l1_loss(s, ops.zeros_like(s))

    def construct(self, x, y):
        h = self.initial(x)
        x, _ = self.lstm(x, (h, h))
        s = self.pooled(x)
        for t in range(3):
            s = self.gated(self.step(x[:, t], self.carried(s)))
        return self.loss(self.fc(s), y, s)


NETS = {
    "cnn": (TorchCnn, Cnn),
    "transformer": (TorchTransformer, Transformer),
    "recurrent": (TorchRecurrent, Recurrent),
}
NORMS = ("bn", "gn", "ln", "ln1", "ln2")


@dataclass(frozen=True)
class Bug:
    """A mistake.

    Attributes
    ----------
    net : str
    plant : callable
        Changes the net of MindSpore before it gets its weights.
    named : tuple of str
        Parts of names of calls of MindSpore, of which one must be named.
    weights : callable
        Changes weights by name as they are loaded.
    optimizer : callable
        Makes another optimizer.
    """

    net: str
    plant: Callable[[Any], None] = lambda net: None
    named: tuple[str, ...] = ()
    weights: Callable[[str, np.ndarray], np.ndarray] = lambda name, value: value
    optimizer: Callable[[Any], Any] | None = None


def batch(name, seed):
    """x and y of a net."""
    random = np.random.default_rng(seed)
    if name == "cnn":
        return random.standard_normal((8, 4, 16, 16)).astype("f4"), random.integers(0, 5, 8)
    if name == "transformer":
        return random.integers(0, 17, (3, 7)), random.integers(0, 17, (3, 7))
    return random.standard_normal((4, 5, 4)).astype("f4"), random.standard_normal((4, 3)).astype("f4")


def ours(name):
    """MindSpore's name of a parameter that torch calls `name`."""
    *path, owner, kind = name.split(".")
    if owner in NORMS:
        kind = {"weight": "gamma", "bias": "beta"}[kind]
    elif owner == "emb":
        kind = "embedding_table"
    return ".".join([*path, owner, kind])


def tensor(array):
    return ms.Tensor(array.astype(np.int32) if array.dtype == np.int64 else array)


def torch_half(name, root, seed, *, filtered=False):
    """Dump the half of torch; its weights before the first step."""
    torch.manual_seed(seed)
    net = NETS[name][0]()
    with torch.no_grad():
        for key, value in net.named_parameters():
            if key.split(".")[-2] in NORMS:
                value += 0.3 * torch.randn_like(value)
    weights = {key: value.detach().numpy().copy() for key, value in net.named_parameters()}
    x, y = map(torch.tensor, batch(name, seed))
    optimizer = torch.optim.SGD(net.parameters(), 0.05, momentum=0.9)
    with api_dump_init(net, root, retain_backward=True) as dump:
        dump.start(filter_data=filtered)
        for _ in range(STEPS):
            optimizer.zero_grad()
            net(x, y).backward()
            optimizer.step()
        dump.stop()
    return weights


def mindspore_half(bug, root, weights, seed, *, filtered=False):
    """Dump the half of MindSpore, with a bug."""
    ms.set_context(mode=ms.PYNATIVE_MODE)
    net = NETS[bug.net][1]()
    bug.plant(net)
    net.set_train()
    parameters = {parameter.name: parameter for parameter in net.get_parameters()}
    for key, value in weights.items():
        if ours(key) in parameters:
            parameters[ours(key)].set_data(tensor(bug.weights(key, value)))
    x, y = map(tensor, batch(bug.net, seed))
    make = bug.optimizer or (lambda found: nn.SGD(found, 0.05, momentum=0.9))
    optimizer = make(net.trainable_params())
    step = ms.value_and_grad(net, None, net.trainable_params())
    with api_dump_init(net, root, retain_backward=True) as dump:
        dump.start(filter_data=filtered)
        for _ in range(STEPS):
            _, gradients = step(x, y)
            optimizer(gradients)
        dump.stop()


def pair(root, bug, seed=0, *, filtered=False):
    """Dump both halves: the directory of MindSpore's, and of torch's; `filtered` without numbers, as by default."""
    weights = torch_half(bug.net, root / "pt", seed, filtered=filtered)
    mindspore_half(bug, root / "ms", weights, seed, filtered=filtered)
    return root / "ms", root / "pt"
