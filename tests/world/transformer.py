"""A transformer whose operators carry strategies: `data` parts of the batch, `model` parts of heads and features.

The integer-valued variant leaves out what makes fractions: activations are 0 or 1, attention has no Softmax, and a
bias stands in place of LayerNorm. Every sum is then exact in float32 and its order does not matter.
"""

from dataclasses import dataclass

import numpy as np

import dumpsim.frontends.mindspore as ms
from dumpsim.frontends.mindspore import Parameter, Tensor, nn
from dumpsim.frontends.mindspore.ops import operations as primitives


@dataclass(frozen=True)
class Size:
    """Extents of a transformer; `batch` sentences of `length` words."""

    layers: int = 4
    batch: int = 8
    length: int = 8
    width: int = 16
    heads: int = 8
    inner: int = 32
    words: int = 32


@dataclass(frozen=True)
class Ways:
    """Into how many parts batch and model are cut; `rows`: whether the word table is cut by rows, not by columns."""

    data: int = 1
    model: int = 1
    rows: bool = False


class Weights:
    """Draws the first values of weights: integers of which most are zero, or small fractions."""

    def __init__(self, is_integer: bool) -> None:
        self._random, self._is_integer = np.random.default_rng(7), is_integer

    def __call__(self, name: str, *shape: int) -> Parameter:
        """A Parameter."""
        if self._is_integer:
            values = self._random.choice([-1, 0, 0, 0, 0, 0, 1, 1], shape)
        else:
            values = self._random.normal(0, 0.3, shape) + (name.endswith("gamma"))
        return Parameter(Tensor(values.astype(np.float32)), name=name)


class Activation(nn.Cell):
    """GeLU, or clipping to the range from 0 to 1."""

    def __init__(self, row: tuple[int, ...], is_integer: bool) -> None:
        super().__init__()
        self.is_integer = is_integer
        self.gelu = primitives.GeLU().shard((row,))
        self.low = primitives.Maximum().shard((row, ()))
        self.high = primitives.Minimum().shard((row, ()))
        self.zero, self.one = Tensor(0, ms.float32), Tensor(1, ms.float32)

    def construct(self, x):
        if self.is_integer:
            return self.high(self.low(x, self.zero), self.one)
        return self.gelu(x)


class Norm(nn.Cell):
    """LayerNorm, or a bias and the activation."""

    def __init__(self, name: str, size: Size, ways: Ways, weights: Weights, is_integer: bool) -> None:
        super().__init__()
        self.is_integer = is_integer
        self.norm = primitives.LayerNorm(-1, -1).shard(((ways.data, 1), (1,), (1,)))
        self.add = primitives.BiasAdd().shard(((ways.data, 1), (1,)))
        self.active = Activation((ways.data, 1), is_integer)
        self.beta = weights(f"{name}.beta", size.width)
        if not is_integer:
            self.gamma = weights(f"{name}.gamma", size.width)

    def construct(self, x):
        if self.is_integer:
            return self.active(self.add(x, self.beta))
        y, _, _ = self.norm(x, self.gamma, self.beta)
        return y


class Attention(nn.Cell):
    """Self-attention: columns of the first products are cut by heads, rows of the last one."""

    def __init__(self, name: str, size: Size, ways: Ways, weights: Weights, is_integer: bool) -> None:
        super().__init__()
        self.is_integer = is_integer
        d, m, w = ways.data, ways.model, size.width
        self.split = (size.batch, size.length, size.heads, w // size.heads)
        self.joined = (size.batch * size.length, w)
        self.query, self.key, self.value, self.out = (weights(f"{name}.{part}", w, w) for part in "qkvo")
        self.project = primitives.MatMul().shard(((d, 1), (1, m)))
        self.bias = weights(f"{name}.bias", w)
        self.add = primitives.BiasAdd().shard(((d, m), (m,)))
        self.reshape = primitives.Reshape()
        self.transpose = primitives.Transpose().shard(((d, 1, m, 1),))
        self.scores = primitives.BatchMatMul(transpose_b=True).shard(((d, m, 1, 1), (d, m, 1, 1)))
        self.scale = primitives.Mul().shard(((d, m, 1, 1), ()))
        self.softmax = primitives.Softmax().shard(((d, m, 1, 1),))
        self.active = Activation((d, m, 1, 1), is_integer)
        self.mix = primitives.BatchMatMul().shard(((d, m, 1, 1), (d, m, 1, 1)))
        self.back = primitives.Transpose().shard(((d, m, 1, 1),))
        self.last = primitives.MatMul().shard(((d, m), (m, 1)))
        self.factor = Tensor((w // size.heads) ** -0.5, ms.float32)

    def heads(self, x, weight):
        return self.transpose(self.reshape(self.project(x, weight), self.split), (0, 2, 1, 3))

    def construct(self, x):
        query, key = self.heads(x, self.query), self.heads(x, self.key)
        value = self.transpose(self.reshape(self.add(self.project(x, self.value), self.bias), self.split), (0, 2, 1, 3))
        scores = self.scores(query, key)
        if self.is_integer:
            shares = self.active(scores)
        else:
            shares = self.softmax(self.scale(scores, self.factor))
        mixed = self.back(self.mix(shares, value), (0, 2, 1, 3))
        return self.last(self.reshape(mixed, self.joined), self.out)


class Layer(nn.Cell):
    """Attention and two dense layers, each beside an identity."""

    def __init__(self, name: str, size: Size, ways: Ways, weights: Weights, is_integer: bool) -> None:
        super().__init__()
        d, m = ways.data, ways.model
        self.norm1 = Norm(f"{name}.norm1", size, ways, weights, is_integer)
        self.attention = Attention(f"{name}.attention", size, ways, weights, is_integer)
        self.norm2 = Norm(f"{name}.norm2", size, ways, weights, is_integer)
        self.up, self.bias = weights(f"{name}.up", size.width, size.inner), weights(f"{name}.bias", size.inner)
        self.down = weights(f"{name}.down", size.inner, size.width)
        self.first = primitives.MatMul().shard(((d, 1), (1, m)))
        self.add = primitives.BiasAdd().shard(((d, m), (m,)))
        self.active = Activation((d, m), is_integer)
        self.second = primitives.MatMul().shard(((d, m), (m, 1)))
        self.residual = primitives.Add().shard(((d, 1), (d, 1)))

    def construct(self, x):
        x = self.residual(x, self.attention(self.norm1(x)))
        inner = self.active(self.add(self.first(self.norm2(x), self.up), self.bias))
        return self.residual(x, self.second(inner, self.down))


class Transformer(nn.Cell):
    """From words to the mean loss of the words that are expected."""

    def __init__(self, size: Size, ways: Ways, *, is_integer: bool) -> None:
        super().__init__()
        self.is_integer, self.words = is_integer, size.words
        d, m = ways.data, ways.model
        weights = Weights(is_integer)
        self.table = weights("table", size.words, size.width)
        self.place = weights("place", size.length, size.width)
        if ways.rows:
            self.gather = primitives.Gather().shard(((m, 1), (d, 1)))
        else:
            self.gather = primitives.Gather().shard(((1, m), (d, 1)))
        self.add = primitives.Add().shard(((d, 1, 1), (1, 1)))
        self.reshape = primitives.Reshape()
        self.flat = (size.batch * size.length, size.width)
        self.layers = nn.CellList([Layer(f"layer{n}", size, ways, weights, is_integer) for n in range(size.layers)])
        self.norm = Norm("norm", size, ways, weights, is_integer)
        self.head = weights("head", size.words, size.width)
        self.logits = primitives.MatMul(transpose_b=True).shard(((d, 1), (m, 1)))
        self.one_hot = primitives.OneHot().shard(((d, 1, 1), (), ()))
        self.on, self.off = Tensor(1, ms.float32), Tensor(0, ms.float32)
        self.entropy = primitives.SoftmaxCrossEntropyWithLogits().shard(((d, 1), (d, 1)))
        self.hits = primitives.Mul().shard(((d, 1), (d, 1)))
        self.total = primitives.ReduceSum().shard(((d, 1),))
        self.mean = primitives.ReduceMean().shard(((d,),))

    def construct(self, ids, labels):
        x = self.reshape(self.add(self.gather(self.table, ids, 0), self.place), self.flat)
        for layer in self.layers:
            x = layer(x)
        logits = self.logits(self.norm(x), self.head)
        wanted = self.reshape(self.one_hot(labels, self.words, self.on, self.off), logits.shape)
        if self.is_integer:
            return self.total(self.hits(logits, wanted))
        loss, _ = self.entropy(logits, wanted)
        return self.mean(loss)


def sentences(size: Size, step: int) -> tuple[np.ndarray, np.ndarray]:
    """Words and the words that are expected, for one step."""
    found = np.random.default_rng(step).integers(0, size.words, (2, size.batch, size.length)).astype(np.int32)
    return found[0], found[1]
