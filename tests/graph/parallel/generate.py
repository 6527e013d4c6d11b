"""Random sharded nets as scripts: ``python tests/graph/parallel/generate.py FOLDER COUNT [SEED [more]]``.

A script names its settings and its net in a few lines; `record.py` compiles it with real MindSpore as one rank of a
pretended cluster, and the tests with dumpsim.
"""

import random
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import prod
from pathlib import Path

__all__ = ["MORE", "STEPS", "script_of"]

HEAD = '''"""{features}"""
import numpy as np
import mindspore as ms
from mindspore import nn, Tensor, context
from mindspore.ops import operations as P

SETTINGS = {settings}


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
{fields}

    def construct(self, {arguments}):
{lines}


def inputs():
    return {inputs}


def network():
{network}
'''


@dataclass
class Value:
    """A tensor of the net."""

    name: str
    shape: tuple[int, ...]


@dataclass
class Draft:
    """A net in the making."""

    chosen: random.Random
    devices: int
    parts: int = 1  # of the batch, of which a rank is fed one
    fields: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    arguments: list[Value] = field(default_factory=list)
    features: set[str] = field(default_factory=set)
    weights: int = 0

    def weight(self, shape: tuple[int, ...]) -> str:
        """A new Parameter, or an argument in its place."""
        self.weights += 1
        name = f"w{self.weights}"
        self.fields.append(f'self.{name} = ms.Parameter(Tensor(np.ones({shape}, np.float32)), name="{name}")')
        return f"self.{name}"

    def put(self, primitive: str, strategy: object, operands: str, shape: tuple[int, ...]) -> Value:
        """An operator of the net."""
        number = len(self.lines)
        self.features.add(primitive.split("(")[0].removeprefix("P."))
        shard = f".shard({strategy})" if strategy is not None else ""
        if strategy is None and not primitive.startswith("P.Reshape"):
            self.features.add("no strategy")
        self.fields.append(f"self.op{number} = {primitive}{shard}")
        name = f"v{number}"
        self.lines.append(f"{name} = self.op{number}({operands})")
        return Value(name, shape)

    def cuts(self, shape: tuple[int, ...], keep: tuple[int, ...] = (), limit: int = 0) -> tuple[int, ...]:
        """A random legal strategy of one tensor; the axes of `keep` stay whole."""
        left = limit or self.devices
        found = [1] * len(shape)
        axes = [a for a in range(len(shape)) if a not in keep and a - len(shape) not in keep]
        self.chosen.shuffle(axes)
        for axis in axes:
            legal = [n for n in (1, 2, 4, 8) if n <= left and shape[axis] % n == 0]
            found[axis] = self.chosen.choice(legal)
            left //= found[axis]
        return tuple(found)


Step = Callable[[Draft, Value], Value | None]


def _strategy(net: Draft, *rows: tuple[int, ...]) -> object:
    return None if net.chosen.random() < 0.06 else tuple(rows)


def _matmul(net: Draft, x: Value) -> Value | None:
    if len(x.shape) != 2:
        return None
    (m, k), n = x.shape, net.chosen.choice([16, 32, 64])
    a, b, c = net.cuts((m, k, n))
    if net.chosen.random() < 0.3:
        return net.put(
            "P.MatMul(transpose_b=True)", _strategy(net, (a, b), (c, b)), f"{x.name}, {net.weight((n, k))}", (m, n)
        )
    return net.put("P.MatMul()", _strategy(net, (a, b), (b, c)), f"{x.name}, {net.weight((k, n))}", (m, n))


def _unary(net: Draft, x: Value) -> Value:
    name = net.chosen.choice(["ReLU", "GeLU", "Sqrt", "Neg", "Tanh", "Sigmoid"])
    return net.put(f"P.{name}()", _strategy(net, net.cuts(x.shape)), x.name, x.shape)


def _binary(net: Draft, x: Value) -> Value:
    name = net.chosen.choice(["Add", "Sub", "Mul", "Maximum"])
    cut = net.cuts(x.shape)
    kind = net.chosen.random()
    if kind < 0.35 and len(x.shape) > 1:
        return net.put(f"P.{name}()", _strategy(net, cut, cut[-1:]), f"{x.name}, {net.weight(x.shape[-1:])}", x.shape)
    if kind < 0.6:
        at = net.chosen.randrange(len(x.shape))
        shape = tuple(1 if a == at else n for a, n in enumerate(x.shape))
        other = tuple(1 if a == at else n for a, n in enumerate(cut))
        return net.put(f"P.{name}()", _strategy(net, cut, other), f"{x.name}, {net.weight(shape)}", x.shape)
    return net.put(f"P.{name}()", _strategy(net, cut, cut), f"{x.name}, {net.weight(x.shape)}", x.shape)


def _residual(net: Draft, x: Value) -> Value:
    """Two users of one value."""
    first = net.put("P.ReLU()", _strategy(net, net.cuts(x.shape)), x.name, x.shape)
    cut = net.cuts(x.shape)
    return net.put("P.Add()", _strategy(net, cut, cut), f"{x.name}, {first.name}", x.shape)


def _bias(net: Draft, x: Value) -> Value | None:
    if len(x.shape) != 2:
        return None
    cut = net.cuts(x.shape)
    return net.put("P.BiasAdd()", _strategy(net, cut, cut[1:2]), f"{x.name}, {net.weight(x.shape[1:2])}", x.shape)


def _reduce(net: Draft, x: Value) -> Value | None:
    if len(x.shape) < 2:
        return None
    name = net.chosen.choice(["ReduceSum", "ReduceMean", "ReduceMax"])
    keep = net.chosen.random() < 0.3
    axis = net.chosen.randrange(len(x.shape))
    shape = tuple(1 if a == axis else n for a, n in enumerate(x.shape) if keep or a != axis)
    return net.put(f"P.{name}(keep_dims={keep})", _strategy(net, net.cuts(x.shape)), f"{x.name}, {axis}", shape)


def _softmax(net: Draft, x: Value) -> Value:
    return net.put("P.Softmax()", _strategy(net, net.cuts(x.shape, keep=(-1,))), x.name, x.shape)


def _transpose(net: Draft, x: Value) -> Value | None:
    if len(x.shape) < 2:
        return None
    order = list(range(len(x.shape)))
    net.chosen.shuffle(order)
    shape = tuple(x.shape[a] for a in order)
    return net.put("P.Transpose()", _strategy(net, net.cuts(x.shape)), f"{x.name}, {tuple(order)}", shape)


def _reshape(net: Draft, x: Value) -> Value | None:
    total = 1
    for n in x.shape:
        total *= n
    shapes = [(total // 16, 16), (16, total // 16), (total // 64, 8, 8), (8, total // 128, 16)]
    legal = [s for s in shapes if s != x.shape and all(n > 1 for n in s)]
    if not legal:
        return None
    shape = net.chosen.choice(legal)
    return net.put("P.Reshape()", None, f"{x.name}, {shape}", shape)


def _batch_matmul(net: Draft, x: Value) -> Value | None:
    if len(x.shape) != 3:
        return None
    (g, m, k), n = x.shape, net.chosen.choice([16, 32])
    z, a, b, c = net.cuts((g, m, k, n))
    return net.put(
        "P.BatchMatMul()", _strategy(net, (z, a, b), (z, b, c)), f"{x.name}, {net.weight((g, k, n))}", (g, m, n)
    )


def _expand(net: Draft, x: Value) -> Value | None:
    if len(x.shape) > 2:
        return None
    axis = net.chosen.randrange(len(x.shape) + 1)
    shape = (*x.shape[:axis], 1, *x.shape[axis:])
    return net.put("P.ExpandDims()", _strategy(net, net.cuts(x.shape)), f"{x.name}, {axis}", shape)


def _layer_norm(net: Draft, x: Value) -> Value:
    cut = net.cuts(x.shape, keep=(-1,))
    n = x.shape[-1:]
    out = net.put(
        "P.LayerNorm(-1, -1)", _strategy(net, cut, (1,), (1,)), f"{x.name}, {net.weight(n)}, {net.weight(n)}", x.shape
    )
    net.lines[-1] = net.lines[-1].replace(f"{out.name} =", f"{out.name}, _, _ =")
    return out


def _concat(net: Draft, x: Value) -> Value:
    axis = net.chosen.randrange(len(x.shape))
    cut = net.cuts(x.shape, keep=(axis,))
    shape = tuple(n * 2 if a == axis else n for a, n in enumerate(x.shape))
    return net.put(f"P.Concat({axis})", _strategy(net, cut, cut), f"({x.name}, {net.weight(x.shape)})", shape)


def _gather(net: Draft, x: Value) -> Value:
    """An embedding that starts anew."""
    rows, width, count = 64, net.chosen.choice([16, 32]), net.chosen.choice([16, 32])
    net.features.add("Gather")
    number = sum(v.name.startswith("ids") for v in net.arguments)
    ids = Value(f"ids{number}", (count,))
    net.arguments.append(ids)
    count *= net.parts
    kind = net.chosen.random()
    if kind < 0.4:
        cut = ((1, net.cuts((width,))[0]), (1,))
    elif kind < 0.7:
        cut = ((1, 1), net.cuts((count,)))
    else:
        cut = ((net.cuts((rows,))[0], 1), (1,))
    one = net.put("P.Gather()", _strategy(net, *cut), f"{net.weight((rows, width))}, {ids.name}, 0", (count, width))
    if x.shape == one.shape:
        both = net.cuts(x.shape)
        return net.put("P.Add()", _strategy(net, both, both), f"{x.name}, {one.name}", x.shape)
    return one


def _conv(net: Draft, x: Value) -> Value | None:
    total = prod(x.shape)
    if len(x.shape) != 4:
        shape = net.chosen.choice([(8, 4, 8, total // 256), (total // 128, 8, 4, 4), (16, total // 256, 4, 4)])
        if prod(shape) != total or 0 in shape:
            return None
        x = net.put("P.Reshape()", None, f"{x.name}, {shape}", shape)
    (n, ci, h, w), co = x.shape, net.chosen.choice([4, 8])
    a, b, c = net.cuts((n, ci, co))
    side = net.chosen.choice([1, 3])
    cut = _strategy(net, (a, b, 1, 1), (c, b, 1, 1))
    return net.put(
        f'P.Conv2D({co}, {side}, pad_mode="same")', cut, f"{x.name}, {net.weight((co, ci, side, side))}", (n, co, h, w)
    )


def _one_hot(net: Draft, x: Value) -> Value:
    """A start anew from indices, whose classes may be cut, too."""
    count, depth = net.chosen.choice([16, 32]), net.chosen.choice([16, 32])
    ids = Value(f"ids{sum(v.name.startswith('ids') for v in net.arguments)}", (count,))
    net.arguments.append(ids)
    count *= net.parts
    cut = net.cuts((count, depth), keep=() if net.chosen.random() < 0.4 else (1,))
    ends = "Tensor(1.0, ms.float32), Tensor(0.5, ms.float32)"
    made = net.put("P.OneHot()", _strategy(net, cut, (), ()), f"{ids.name}, {depth}, {ends}", (count, depth))
    cut = net.cuts(made.shape)
    return net.put("P.Mul()", _strategy(net, cut, cut), f"{made.name}, {net.weight(made.shape)}", made.shape)


def _split(net: Draft, x: Value) -> Value | None:
    axis = net.chosen.randrange(len(x.shape))
    if x.shape[axis] % 2 or x.shape[axis] < 8:
        return None
    shape = tuple(n // 2 if a == axis else n for a, n in enumerate(x.shape))
    out = net.put(f"P.Split({axis}, 2)", _strategy(net, net.cuts(x.shape, keep=(axis,))), x.name, shape)
    if net.chosen.random() < 0.4:
        return Value(f"{out.name}[{net.chosen.randrange(2)}]", shape)
    cut = net.cuts(shape)
    return net.put("P.Sub()", _strategy(net, cut, cut), f"{out.name}[0], {out.name}[1]", shape)


def _strided_slice(net: Draft, x: Value) -> Value | None:
    axis = net.chosen.randrange(len(x.shape))
    if x.shape[axis] < 16:
        return None
    first, step = net.chosen.choice([(0, 1), (x.shape[axis] // 2, 1), (0, 2)])
    last = x.shape[axis] if step == 2 else first + x.shape[axis] // 2
    begin, end, steps = (
        tuple(value if a == axis else plain for a, plain in enumerate(others))
        for value, others in ((first, [0] * len(x.shape)), (last, x.shape), (step, [1] * len(x.shape)))
    )
    shape = tuple(n // 2 if a == axis else n for a, n in enumerate(x.shape))
    cut = _strategy(net, net.cuts(x.shape, keep=(axis,)))
    return net.put("P.StridedSlice()", cut, f"{x.name}, {begin}, {end}, {steps}", shape)


def _tile(net: Draft, x: Value) -> Value:
    axis = net.chosen.randrange(len(x.shape))
    times = tuple(2 if a == axis else 1 for a in range(len(x.shape)))
    cut = net.cuts(tuple(2 if a == axis else n for a, n in enumerate(x.shape)))
    shape = tuple(n * m for n, m in zip(x.shape, times, strict=True))
    return net.put("P.Tile()", _strategy(net, cut), f"{x.name}, {times}", shape)


def _top_k(net: Draft, x: Value) -> Value | None:
    if x.shape[-1] < 16:
        return None
    shape = (*x.shape[:-1], 8)
    cut = _strategy(net, net.cuts(x.shape, keep=(-1,)))
    out = net.put("P.TopK(sorted=True)", cut, f"{x.name}, 8", shape)
    net.lines[-1] = net.lines[-1].replace(f"{out.name} =", f"{out.name}, _ =")
    return out


def _cum_sum(net: Draft, x: Value) -> Value:
    axis = net.chosen.randrange(len(x.shape))
    cut = _strategy(net, net.cuts(x.shape, keep=(axis,)))
    return net.put("P.CumSum()", cut, f"{x.name}, {axis}", x.shape)


def _squeeze(net: Draft, x: Value) -> Value | None:
    if 1 not in x.shape or len(x.shape) < 2:
        return None
    axis = x.shape.index(1)
    shape = (*x.shape[:axis], *x.shape[axis + 1 :])
    return net.put(f"P.Squeeze({axis})", _strategy(net, net.cuts(x.shape)), x.name, shape)


def _largest(net: Draft, x: Value) -> Value | None:
    if len(x.shape) < 2:
        return None
    axis, keep = net.chosen.randrange(len(x.shape)), net.chosen.random() < 0.3
    shape = tuple(1 if a == axis else n for a, n in enumerate(x.shape) if keep or a != axis)
    cut = _strategy(net, net.cuts(x.shape, keep=(axis,)))
    out = net.put(f"P.ArgMaxWithValue({axis}, {keep})", cut, x.name, shape)
    net.lines[-1] = net.lines[-1].replace(f"{out.name} =", f"_, {out.name} =")
    return out


STEPS = (
    *(_matmul,) * 6, *(_unary,) * 3, *(_binary,) * 3, *(_residual,) * 2, _bias, *(_reduce,) * 2, _softmax,
    *(_transpose,) * 2, *(_reshape,) * 2, *(_batch_matmul,) * 2, _expand, _layer_norm, _concat, _gather,
)  # fmt: skip
# operators that move, cut and repeat; the others among them
MORE = (
    *(_conv,) * 3, *(_one_hot,) * 2, *(_split,) * 3, *(_strided_slice,) * 3, *(_tile,) * 3, *(_top_k,) * 2,
    *(_cum_sum,) * 3, _squeeze, *(_largest,) * 2, *dict.fromkeys(STEPS),
)  # fmt: skip


def script_of(seed: int, steps: Sequence[Step] = STEPS) -> str:
    """The script of a random net of such steps."""
    chosen = random.Random(seed)
    devices = chosen.choice([2, 4, 4, 8, 8])
    net = Draft(chosen, devices)
    settings = {
        "device_num": devices,
        "global_rank": chosen.randrange(devices),
        "enable_alltoall": chosen.random() < 0.25,
        "dataset_strategy": chosen.choice(["full_batch", "full_batch", "full_batch", "data_parallel"]),
    }
    x = Value("x", chosen.choice([(16, 32), (32, 16), (64, 32), (8, 16, 32), (16, 8, 16)]))
    net.arguments.append(x)
    if settings["dataset_strategy"] == "data_parallel":
        net.parts = devices
        x = Value("x", (x.shape[0] * devices, *x.shape[1:]))
    for _ in range(chosen.randint(2, 7)):
        after = None
        while after is None:
            after = chosen.choice(steps)(net, x)
        x = after
    trains = chosen.random() < 0.4
    if trains:
        if not net.weights:
            cut = net.cuts(x.shape)
            x = net.put("P.Mul()", (cut, cut), f"{x.name}, {net.weight(x.shape)}", x.shape)
        x = net.put("P.ReduceMean()", _strategy(net, net.cuts(x.shape)), x.name, ())
        settings["gradients_mean"] = chosen.random() < 0.5
        net.features.add("training")
        body = [
            "net = Net()",
            "step = nn.TrainOneStepCell(net, nn.Momentum(net.trainable_params(), 0.5, 0.5))",
            "step.set_train()",
            "return step",
        ]
    else:
        body = ["return Net()"]
    inputs = ", ".join(
        f"Tensor(np.ones({v.shape}, np.{'int32' if v.name.startswith('ids') else 'float32'}))" for v in net.arguments
    )
    return HEAD.format(
        features=", ".join(sorted(net.features)),
        settings=settings,
        fields="\n".join(f"        {line}" for line in net.fields),
        arguments=", ".join(v.name for v in net.arguments),
        lines="\n".join(f"        {line}" for line in [*net.lines, f"return {x.name}"]),
        inputs=f"[{inputs}]",
        network="\n".join(f"    {line}" for line in body),
    )


if __name__ == "__main__":
    into, count = Path(sys.argv[1]), int(sys.argv[2])
    into.mkdir(parents=True, exist_ok=True)
    first = int(sys.argv[3]) if len(sys.argv) > 3 else 0
    chosen_steps = MORE if len(sys.argv) > 4 else STEPS
    for seed in range(first, first + count):
        (into / f"net_{seed:04}.py").write_text(script_of(seed, chosen_steps))
