"""Cutting rules: what the ranks compute from their parts, brought together, is what one device computes."""

from math import prod

import numpy as np
import pytest

from dumpsim.core.cutting import Operator, Reduction, Scheme, StrategyError, layouts_of, layouts_over
from dumpsim.core.cuttingrules import RULES, default_strategy, scheme_of
from dumpsim.core.tensorlayout import WHOLE, TensorLayout

COMBINE = {
    "sum": np.add.reduce,
    "mean": lambda parts: np.add.reduce(parts) / len(parts),
    "max": np.maximum.reduce,
    "min": np.minimum.reduce,
    "prod": np.multiply.reduce,
}


def softmax(x, axes):
    e = np.exp(x - x.max(axes, keepdims=True))
    return e / e.sum(axes, keepdims=True)


def transposed(x, flag):
    return x.swapaxes(-1, -2) if flag else x


def conv(x, w):
    """A convolution with windows of the size of the image: a product of matrices."""
    return np.einsum("nihw,oihw->no", x, w)[..., None, None]


def layer_norm(x, gamma, beta, begin):
    axes = tuple(range(begin % x.ndim, x.ndim))
    mean, var = x.mean(axes, keepdims=True), x.var(axes, keepdims=True)
    return (x - mean) / np.sqrt(var + 1) * gamma + beta, mean, var


def rms_norm(x, gamma):
    scale = 1 / np.sqrt((x * x).mean(-1, keepdims=True))
    return x * scale * gamma, scale


def lookup(table, ids, first):
    """Rows of a part of the table that begins at row `first`; zeros where another part has the row."""
    at = ids - first
    inside = (at >= 0) & (at < len(table))
    return np.where(inside[..., None], table[np.clip(at, 0, len(table) - 1)], 0)


def strided(x, begin, end, steps):
    return x[tuple(slice(*one) for one in zip(begin, end, steps, strict=True))]


def one_hot(ids, depth, axis):
    return np.moveaxis(np.eye(depth)[ids], -1, axis)


def top(x):
    order = np.argsort(-x, axis=-1, kind="stable")[..., :2]
    return np.take_along_axis(x, order, -1), order


# name: operator, shapes, strategy, devices, kernel(operands, constants), constants, attributes
CASES = {
    "unary": ("ReLU", [(8, 6)], [(4, 2)], 8, lambda x, c: [np.maximum(x, 0)], {}, {}),
    "unary repeated": ("Exp", [(8, 6)], [(1, 2)], 8, lambda x, c: [np.exp(x)], {}, {}),
    "unary uncut": ("Neg", [(3, 5)], [(1, 1)], 4, lambda x, c: [-x], {}, {}),
    "scalar": ("Neg", [()], [()], 4, lambda x, c: [-x], {}, {}),
    "equal operands": ("Add", [(4, 8), (4, 8)], [(2, 4), (2, 4)], 8, lambda x, y, c: [x + y], {}, {}),
    "fewer axes": ("Sub", [(4, 8), (8,)], [(2, 4), (4,)], 8, lambda x, y, c: [x - y], {}, {}),
    "fewer axes, whole": ("Sub", [(4, 8), (8,)], [(1, 4), (4,)], 4, lambda x, y, c: [x - y], {}, {}),
    "fewer axes at first": ("Sub", [(8,), (4, 8)], [(4,), (2, 4)], 8, lambda x, y, c: [x - y], {}, {}),
    "an axis of 1": ("Mul", [(4, 1), (4, 8)], [(2, 1), (2, 4)], 8, lambda x, y, c: [x * y], {}, {}),
    "both have an axis of 1": ("Div", [(4, 1), (1, 8)], [(2, 1), (1, 4)], 8, lambda x, y, c: [x / y], {}, {}),
    "three operands": (
        "Select", [(4, 8)] * 3, [(2, 2)] * 3, 4, lambda q, x, y, c: [np.where(q > 0, x, y)], {}, {},
    ),
    "matrices": ("MatMul", [(4, 8), (8, 6)], [(2, 2), (2, 2)], 8, lambda x, y, c: [x @ y], {}, {}),
    "matrices repeated": ("MatMul", [(4, 8), (8, 6)], [(2, 2), (2, 1)], 8, lambda x, y, c: [x @ y], {}, {}),
    "matrices, k whole": ("MatMul", [(4, 8), (8, 6)], [(4, 1), (1, 2)], 8, lambda x, y, c: [x @ y], {}, {}),
    "matrices cut alike on more devices": (
        "MatMul", [(4, 4), (4, 4)], [(2, 2), (2, 2)], 8, lambda x, y, c: [x @ y], {}, {},
    ),
    "first transposed": (
        "MatMul", [(8, 4), (8, 6)], [(4, 2), (4, 1)], 8, lambda x, y, c: [x.T @ y], {2: True, 3: False}, {},
    ),
    "second transposed": (
        "MatMul", [(4, 8), (6, 8)], [(1, 4), (2, 4)], 8, lambda x, y, c: [x @ y.T], {2: False, 3: True}, {},
    ),
    "cut alike but transposed": (
        "MatMul", [(4, 4), (4, 4)], [(2, 2), (2, 2)], 8, lambda x, y, c: [x @ y.T], {2: False, 3: True}, {},
    ),
    "batches": ("BatchMatMul", [(2, 4, 8), (2, 8, 6)], [(2, 2, 2), (2, 2, 1)], 8, lambda x, y, c: [x @ y], {}, {}),
    "batches cut alike": (
        "BatchMatMul", [(2, 4, 4), (2, 4, 4)], [(2, 2, 2), (2, 2, 2)], 16, lambda x, y, c: [x @ y], {}, {},
    ),
    "batch of one": ("BatchMatMul", [(2, 4, 8), (1, 8, 6)], [(2, 1, 2), (1, 2, 2)], 8, lambda x, y, c: [x @ y], {}, {}),
    "batches, first transposed": (
        "BatchMatMul", [(2, 8, 4), (2, 8, 6)], [(2, 2, 2), (2, 2, 1)], 8,
        lambda x, y, c: [x.swapaxes(1, 2) @ y], {2: True, 3: False}, {},
    ),
    "batches, second transposed": (
        "BatchMatMul", [(2, 4, 8), (2, 6, 8)], [(2, 1, 2), (2, 2, 2)], 8,
        lambda x, y, c: [x @ y.swapaxes(1, 2)], {2: False, 3: True}, {},
    ),
    "batch of the second": (
        "BatchMatMul", [(4, 8), (3, 2, 8, 6)], [(2, 1), (3, 2, 1, 2)], 24, lambda x, y, c: [x @ y], {}, {},
    ),
    "uncut batch of the second": (
        "BatchMatMul", [(4, 8), (3, 2, 8, 6)], [(2, 1), (1, 2, 1, 2)], 8, lambda x, y, c: [x @ y], {}, {},
    ),
    "bias": (
        "BiasAdd", [(4, 6, 5), (6,)], [(2, 3, 1), (3,)], 6, lambda x, b, c: [x + b[:, None]], {}, {},
    ),
    "sum over a cut axis": ("ReduceSum", [(4, 8)], [(2, 2)], 8, lambda x, c: [x.sum(1)], {1: 1}, {}),
    "sum over a whole axis": ("ReduceSum", [(4, 8)], [(2, 1)], 4, lambda x, c: [x.sum(1)], {1: 1}, {}),
    "sum over the last axis": ("ReduceSum", [(4, 8, 6)], [(2, 1, 2)], 4, lambda x, c: [x.sum(-1)], {1: -1}, {}),
    "mean that keeps axes": (
        "ReduceMean", [(4, 8)], [(2, 2)], 4, lambda x, c: [x.mean(0, keepdims=True)], {1: (0,), 2: True}, {},
    ),
    "mean that keeps axes by its attribute": (
        "ReduceMean", [(4, 8)], [(2, 2)], 4, lambda x, c: [x.mean(0, keepdims=True)], {1: (0,)}, {"keep_dims": True},
    ),
    "largest of all": ("ReduceMax", [(4, 8)], [(2, 2)], 8, lambda x, c: [x.max()], {}, {}),
    "least of two axes": ("ReduceMin", [(4, 8, 6)], [(2, 2, 2)], 8, lambda x, c: [x.min((0, 2))], {1: (0, 2)}, {}),
    "product": ("ReduceProd", [(4, 8)], [(4, 2)], 8, lambda x, c: [x.prod(0)], {1: [0]}, {}),
    "softmax": ("Softmax", [(4, 8)], [(4, 1)], 4, lambda x, c: [softmax(x, -1)], {}, {}),
    "softmax of three axes": ("Softmax", [(4, 6, 8)], [(2, 3, 1)], 6, lambda x, c: [softmax(x, -1)], {}, {}),
    "softmax of the first axis": ("Softmax", [(4, 8)], [(1, 4)], 4, lambda x, c: [softmax(x, 0)], {1: 0}, {}),
    "softmax of two axes": ("LogSoftmax", [(4, 8, 2)], [(1, 4, 1)], 4, lambda x, c: [np.log(softmax(x, (0, 2)))],
                            {1: (0, 2)}, {}),
    "layer norm": (
        "LayerNorm", [(4, 8, 6), (8, 6), (8, 6)], [(4, 1, 1), (1, 1), (1, 1)], 8,
        lambda x, g, b, c: layer_norm(x, g, b, 1), {3: 1, 4: 1}, {},
    ),
    "layer norm of the last axis": (
        "LayerNorm", [(4, 8, 6), (6,), (6,)], [(2, 4, 1), (1,), (1,)], 8, lambda x, g, b, c: layer_norm(x, g, b, -1),
        {3: -1, 4: -1}, {},
    ),
    "rms norm": (
        "RmsNorm", [(4, 6), (6,)], [(4, 1), (1,)], 4,
        lambda x, g, c: rms_norm(x, g), {}, {},
    ),
    "rms norm of three axes": (
        "RmsNorm", [(4, 8, 6), (6,)], [(2, 4, 1), (1,)], 8,
        lambda x, g, c: rms_norm(x, g), {}, {},
    ),
    "cumulative sum": ("CumSum", [(4, 8)], [(1, 4)], 4, lambda x, c: [x.cumsum(0)], {1: 0}, {}),
    "largest along an axis": (
        "ArgMaxWithValue", [(4, 8)], [(1, 4)], 8, lambda x, c: [x.argmax(0), x.max(0)], {}, {"axis": 0},
    ),
    "largest along the last axis": (
        "ArgMaxWithValue", [(4, 8)], [(4, 1)], 8, lambda x, c: [x.argmax(-1), x.max(-1)], {}, {},
    ),
    "largest along the last of three axes": (
        "ArgMaxWithValue", [(4, 6, 8)], [(2, 3, 1)], 6, lambda x, c: [x.argmax(-1), x.max(-1)], {}, {},
    ),
    "largest along the axis before the last": (
        "ArgMaxWithValue", [(4, 6, 8)], [(2, 1, 4)], 8, lambda x, c: [x.argmax(-2), x.max(-2)], {}, {"axis": -2},
    ),
    "least along an axis that stays": (
        "ArgMinWithValue", [(4, 8)], [(4, 1)], 4,
        lambda x, c: [x.argmin(1)[:, None], x.min(1)[:, None]], {1: 1}, {},
    ),
    "top": ("TopK", [(4, 8)], [(4, 1)], 4, lambda x, c: [*top(x)], {1: 2}, {}),
    "loss": (
        "SoftmaxCrossEntropyWithLogits", [(4, 6), (4, 6)], [(4, 1), (4, 1)], 8,
        lambda x, y, c: [-(y * np.log(softmax(x, -1))).sum(-1), softmax(x, -1) - y], {}, {},
    ),
    "transpose": ("Transpose", [(4, 6, 8)], [(2, 3, 4)], 24, lambda x, c: [x.transpose(2, 0, 1)], {1: (2, 0, 1)}, {}),
    "new axis": ("ExpandDims", [(4, 8)], [(2, 4)], 8, lambda x, c: [x[:, None]], {1: 1}, {}),
    "new axis before the last": ("ExpandDims", [(2, 4)], [(2, 4)], 8, lambda x, c: [x[:, None]], {1: -2}, {}),
    "new last axis": ("ExpandDims", [(4, 8)], [(2, 4)], 8, lambda x, c: [x[..., None]], {1: -1}, {}),
    "squeeze all": ("Squeeze", [(1, 4, 1, 8)], [(1, 2, 1, 4)], 8, lambda x, c: [x.squeeze()], {}, {}),
    "squeeze one": ("Squeeze", [(1, 4, 1, 8)], [(1, 2, 1, 4)], 8, lambda x, c: [x[:, :, 0]], {1: -2}, {}),
    "squeeze one by its attribute": (
        "Squeeze", [(1, 4, 1, 8)], [(1, 2, 1, 4)], 8, lambda x, c: [x[0]], {}, {"axis": (0,)},
    ),
    "one hot": (
        "OneHot", [(4, 6), (), ()], [(2, 1, 1), (), ()], 6, lambda i, on, off, c: [one_hot(i, 5, -1)], {1: 5}, {},
    ),
    "one hot, whole classes": (
        "OneHot", [(4,), (), ()], [(4, 1), (), ()], 4, lambda i, on, off, c: [one_hot(i, 5, -1)], {1: 5}, {},
    ),
    "one hot along the first axis": (
        "OneHot", [(6,), (), ()], [(1, 3), (), ()], 6, lambda i, on, off, c: [one_hot(i, 5, 0)], {1: 5, 4: 0}, {},
    ),
    "concat": (
        "Concat", [(4, 6), (4, 2)], [(4, 1), (4, 1)], 4, lambda x, y, c: [np.concatenate((x, y), 1)], {1: 1}, {},
    ),
    "concat of rows": (
        "Concat", [(4, 6), (2, 6)], [(1, 3), (1, 3)], 3, lambda x, y, c: [np.concatenate((x, y))], {}, {},
    ),
    "split": ("Split", [(4, 6)], [(4, 1)], 4, lambda x, c: np.split(x, 2, 1), {1: 1, 2: 2}, {}),
    "split of rows": ("Split", [(4, 6)], [(1, 3)], 3, lambda x, c: np.split(x, 2), {}, {}),
    "slice": (
        "StridedSlice", [(4, 6)], [(4, 1)], 4, lambda x, c: [strided(x, c[1], c[2], c[3])],
        {1: (0, 1), 2: (4, 5), 3: (1, 2)}, {},
    ),
    "slice of fewer axes": (
        "StridedSlice", [(4, 6, 2)], [(1, 3, 2)], 6, lambda x, c: [strided(x, c[1], c[2], c[3])],
        {1: (1,), 2: (4,), 3: (2,)}, {},
    ),
    "rows": ("Gather", [(8, 6), (4,)], [(1, 2), (4,)], 8, lambda t, i, c: [lookup(t, i, c["first"])], {2: 0}, {}),
    "rows of a cut table": (
        "Gather", [(8, 6), (4, 2)], [(2, 1), (2, 1)], 8, lambda t, i, c: [lookup(t, i, c["first"])], {2: 0}, {},
    ),
    "rows of a cut table, repeated": (
        "Gather", [(8, 6), (4, 2)], [(2, 1), (2, 1)], 16, lambda t, i, c: [lookup(t, i, c["first"])], {2: 0}, {},
    ),
    "rows of a cut table, scattered": (
        "Gather", [(8, 6), (4, 2)], [(4, 1), (1, 1)], 4, lambda t, i, c: [lookup(t, i, c["first"])], {2: 0}, {},
    ),
    "too few rows to scatter": (
        "Gather", [(8, 6), (2, 2)], [(4, 1), (1, 1)], 4, lambda t, i, c: [lookup(t, i, c["first"])], {2: 0}, {},
    ),
    "one row of a cut table": (
        "Gather", [(8, 6), ()], [(4, 1), ()], 4, lambda t, i, c: [lookup(t, i, c["first"])], {2: 0}, {},
    ),
    "one row of a table in two": (
        "Gather", [(8, 6), ()], [(2, 1), ()], 2, lambda t, i, c: [lookup(t, i, c["first"])], {2: 0}, {},
    ),
    "cut columns of a cut table": (
        "Gather", [(8, 6), (4,)], [(2, 2), (1,)], 4, lambda t, i, c: [lookup(t, i, c["first"])], {}, {},
    ),
    "convolution": ("Conv2D", [(4, 6, 3, 3), (8, 6, 3, 3)], [(2, 3, 1, 1), (4, 3, 1, 1)], 24,
                    lambda x, w, c: [conv(x, w)], {}, {}),
    "convolution of whole channels": ("Conv2D", [(4, 6, 3, 3), (8, 6, 3, 3)], [(2, 1, 1, 1), (4, 1, 1, 1)], 8,
                                      lambda x, w, c: [conv(x, w)], {}, {}),
    "tile": ("Tile", [(4, 6)], [(4, 1)], 4, lambda x, c: [np.tile(x, c[1])], {1: (1, 3)}, {}),
    "repetitions": ("Tile", [(4, 6)], [(2, 3)], 6, lambda x, c: [np.tile(x, c[1])], {1: (4, 3)}, {}),
    "two repetitions": ("Tile", [(4, 6)], [(2, 1)], 2, lambda x, c: [np.tile(x, c[1])], {1: (2, 1)}, {}),
    "repetitions along a new axis": (
        "Tile", [(4, 6)], [(2, 4, 1)], 8, lambda x, c: [np.tile(x, c[1])], {1: (4, 1, 3)}, {},
    ),
    "broadcast": (
        "BroadcastTo", [(4, 1)], [(4, 1)], 4, lambda x, c: [np.broadcast_to(x, c[1])], {1: (3, 4, 5)}, {},
    ),
    "broadcast of a cut axis": (
        "BroadcastTo", [(4, 6)], [(2, 3)], 6, lambda x, c: [np.broadcast_to(x, c[1])], {1: (2, 4, 6)}, {},
    ),
    "no rule": ("Cholesky", [(4, 4)], [(1, 1)], 4, lambda x, c: [x @ x.T], {}, {}),
}  # fmt: skip


def operands_of(op_type, shapes, seed=1):
    """Positive numbers, or row numbers where the operator wants those."""
    generator = np.random.default_rng(seed)
    made = [generator.uniform(0.5, 1.5, shape) for shape in shapes]
    if op_type == "OneHot":
        made[0] = generator.integers(0, 5, shapes[0])
    if op_type == "Gather":
        made[1] = generator.integers(0, shapes[0][0], shapes[1])
    return made


def described(op_type, shapes, strategy, devices, kernel, constants, attrs):
    """The operator, its operands and what one device computes."""
    operands = operands_of(op_type, shapes)
    whole = kernel(*operands, {"first": 0, **constants})
    op = Operator(
        op_type=op_type,
        shapes=tuple(shapes),
        outputs=tuple(np.shape(one) for one in whole),
        constants=constants,
        attrs=attrs,
        strategy=tuple(strategy),
        devices=devices,
    )
    return op, operands, whole


def operand_cuts(op):
    """How often the axes of operands are cut: the rows of the strategy, but for those that tell of the output."""
    rows = list(op.strategy)
    if op.op_type == "OneHot":
        at = op.constants.get(4, -1) % len(rows[0])
        rows[0] = (*rows[0][:at], *rows[0][at + 1 :])
    if op.op_type == "Tile":
        front = len(rows[0]) - len(op.shapes[0])
        rows[0] = tuple(n if times == 1 else 1 for n, times in zip(rows[0], op.constants[1], strict=True))[front:]
    return rows


def bring_together(op, scheme, operands, whole, kernel, made):
    """Hold what each rank has after its communication against its part of the whole."""
    own = {}
    for rank in range(op.devices):
        parts = [one[layout.region(rank)] for one, layout in zip(operands, made[rank].inputs, strict=True)]
        first = made[rank].inputs[0].region(rank)[0].start if op.op_type == "Gather" else 0
        own[rank] = kernel(*parts, {"first": first, **op.constants, **scheme.local})
    for rank in range(op.devices):
        layouts, results = made[rank], own[rank]
        if scheme.reduction is not None:
            kind = scheme.reduction.kind
            assert rank in layouts.group
            (results,) = ([one[slot] for one in map(own.get, layouts.group)] for slot in range(len(whole)))
            if kind == "scatter":
                total = COMBINE["sum"](results)
                results = [np.split(total, len(layouts.group))[layouts.group.index(rank)]]
            else:
                results = [COMBINE[kind](results)]
        else:
            assert layouts.group == ()
        for result, expected, layout in zip(results, whole, layouts.outputs, strict=True):
            assert layout.devices in (op.devices, 1)  # 1: nothing is cut
            np.testing.assert_allclose(result, np.asarray(expected)[layout.region(rank)], rtol=1e-12)


@pytest.mark.parametrize("name", CASES)
def test_parts_give_the_whole(name):
    op, operands, whole = described(*CASES[name])
    scheme, kernel = scheme_of(op), CASES[name][4]
    made = {rank: layouts_of(op, scheme, rank) for rank in range(op.devices)}
    for layout, cuts in zip(made[0].inputs, operand_cuts(op), strict=True):
        assert layout.cuts == cuts, "each operand is cut as its strategy says"
    bring_together(op, scheme, operands, whole, kernel, made)


@pytest.mark.parametrize("name", CASES)
def test_outputs_are_cut_as_far_as_their_values_allow(name):
    """The parts of an output are as small as those that any rank computes: nothing is gathered unasked."""
    op, operands, _ = described(*CASES[name])
    scheme, kernel = scheme_of(op), CASES[name][4]
    layouts = layouts_of(op, scheme, 0)
    parts = [one[layout.region(0)] for one, layout in zip(operands, layouts.inputs, strict=True)]
    results = kernel(*parts, {"first": 0, **op.constants, **scheme.local})
    for result, layout in zip(results, layouts.outputs, strict=True):
        scattered = scheme.reduction is not None and scheme.reduction.kind == "scatter"
        assert prod(layout.slice_shape) * (len(layouts.group) if scattered else 1) == np.size(result)


@pytest.mark.parametrize("name", [name for name in CASES if CASES[name][0] != "Gather" and "repetitions" not in name])
def test_named_device_dimensions_give_the_same_parts(name):
    """A script that names the device dimensions of each operand instead."""
    op, operands, whole = described(*CASES[name])
    scheme, kernel = scheme_of(op), CASES[name][4]
    names = dict.fromkeys(name for name, _ in scheme.matrix)
    counts = dict(scheme.matrix)
    left = op.devices // prod(counts.values())
    matrix = (left, *(counts[name] for name in names))  # the repeated calculation is elsewhere than by strategy
    place = {name: len(names) - 1 - at for at, name in enumerate(names)}
    given = [
        TensorLayout(matrix, tuple(WHOLE if label is None else place[label] for label in labels), shape)
        for labels, shape in zip(scheme.inputs, op.shapes, strict=True)
    ]
    made = {rank: layouts_over(op, scheme, given, rank) for rank in range(op.devices)}
    for layout, cuts in zip(made[0].inputs, operand_cuts(op), strict=True):
        assert layout.cuts == cuts
    bring_together(op, scheme, operands, whole, kernel, made)


def test_products_of_operands_that_are_cut_alike_over_all_devices_are_gathered():
    x, y = operands_of("MatMul", [(4, 8), (8, 6)])
    op, _, _ = described("MatMul", [(4, 8), (8, 6)], [(2, 2), (2, 2)], 4, lambda x, y, c: [x @ y], {}, {})
    scheme = scheme_of(op)
    assert scheme.gathers
    assert scheme.reduction is None
    for rank in range(4):
        layouts = layouts_of(op, scheme, rank)
        (rows, _), (_, columns) = (layout.region(rank) for layout in layouts.inputs)
        (out,) = layouts.outputs
        np.testing.assert_allclose((x @ y)[out.region(rank)], x[rows] @ y[:, columns], rtol=1e-12)
    assert not scheme_of(described(*CASES["matrices cut alike on more devices"])[0]).gathers
    assert not scheme_of(described(*CASES["batches cut alike"])[0]).gathers


def test_products_with_a_transposed_operand_are_not_gathered():
    for flags in ({2: True}, {3: True}):
        op, _, _ = described(
            "MatMul", [(4, 4), (4, 4)], [(2, 2), (2, 2)], 4,
            lambda x, y, c: [transposed(x, c.get(2)) @ transposed(y, c.get(3))], flags, {},
        )  # fmt: skip
        with pytest.raises(StrategyError, match="requires 8 devices"):
            layouts_of(op, scheme_of(op), 0)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("rows of a cut table, scattered", "scatter"),
        ("rows of a cut table", "sum"),
        ("cut columns of a cut table", "sum"),
        ("too few rows to scatter", "sum"),
        ("one row of a table in two", "sum"),
        ("rows", None),
        ("sum over a cut axis", "sum"),
        ("mean that keeps axes", "mean"),
        ("sum over a whole axis", None),
        ("matrices, k whole", None),
        ("convolution of whole channels", None),
    ],
)
def test_results_come_together_where_an_axis_that_is_summed_is_cut(name, kind):
    """Ranks that gather whole rows from a table cut between them keep their part of the sum alone."""
    scheme = scheme_of(described(*CASES[name])[0])
    assert (scheme.reduction and scheme.reduction.kind) == kind


def test_repeated_calculation_lies_on_the_right():
    """[recorded: ReLU (2, 1) on 4 devices; MatMul (2, 2), (2, 1) on 8]"""
    op, _, _ = described("ReLU", [(4, 6)], [(2, 1)], 4, lambda x, c: [x], {}, {})
    (layout,) = layouts_of(op, scheme_of(op), 0).outputs
    assert (layout.device_matrix, layout.tensor_map) == ((2, 2), (1, -1))
    op, _, _ = described(*CASES["matrices repeated"])
    assert layouts_of(op, scheme_of(op), 1).group == (1, 3)


def test_repeated_calculation_of_a_cut_table_lies_on_the_left():
    op, _, _ = described(*CASES["rows of a cut table, repeated"])
    made = layouts_of(op, scheme_of(op), 9)
    assert made.inputs[0].device_matrix == (4, 2, 2)
    assert made.group == (9, 11)


def operator(op_type, shapes, strategy, devices=8, constants=None, outputs=None):
    shapes = tuple(shapes)
    return Operator(
        op_type=op_type, shapes=shapes, outputs=shapes[:1] if outputs is None else outputs, constants=constants or {},
        attrs={}, strategy=tuple(strategy), devices=devices,
    )  # fmt: skip


REFUSED = {
    "one row too few": (operator("Add", [(4, 8), (4, 8)], [(2, 1)]), "strategy size: 1 is not equal to inputs size: 2"),
    "one count too few": (operator("ReLU", [(4, 8)], [(2,)]), "len: 1 is not equal to inputs len: 2, index: 0"),
    "one count too many": (operator("ReLU", [(4, 8)], [(2, 1, 1)]), "len: 3 is not equal to inputs len: 2, index: 0"),
    "two counts too many": (
        operator("OneHot", [(4,)], [(2, 1, 1)], outputs=((4, 5),)), "len: 3 is not equal to inputs len: 2",
    ),
    "zero": (operator("ReLU", [(4, 8)], [(2, 0)]), "must be larger than 0, but get 0"),
    "a truth": (operator("ReLU", [(4, 8)], [(True, 1)]), "must be larger than 0, but get True"),
    "a float": (operator("ReLU", [(4, 8)], [(2.0, 1)]), "must be larger than 0, but get 2.0"),
    "no power of two": (operator("ReLU", [(6, 8)], [(3, 1)]), "must be the power of 2, but get 3"),
    "a remainder": (
        operator("ReLU", [(4, 8)], [(1, 3)]), "shape value 8 at dim index 1 cannot be divisible by strategy value 3",
    ),
    "operands that differ": (operator("Add", [(4, 8), (4, 8)], [(2, 1), (2, 2)]), "must be equal"),
    "an uncut operand": (operator("Add", [(4, 8), (8,)], [(2, 2), (1,)]), "must be equal"),
    "softmax": (operator("Softmax", [(4, 8)], [(2, 2)]), r"axis dimension\(2\) is not 1"),
    "layer norm": (operator("LayerNorm", [(4, 8, 2)], [(2, 2, 1)], constants={3: 1}), "the begin_norm_axis is 1, but"),
    "k": (
        operator("MatMul", [(4, 8), (8, 6)], [(2, 4), (2, 1)]),
        "The transpose_a is: 0, and transpose_b is 0, the shard num of first input's column is 4, but the shard num "
        "of second input's row is 2",
    ),
    "k, transposed": (operator("MatMul", [(8, 4), (8, 6)], [(4, 2), (2, 1)], constants={2: True}), "_a is: 1"),
    "bias": (operator("BiasAdd", [(4, 8), (8,)], [(1, 2), (4,)]), "channel axis"),
    "classes": (
        operator("OneHot", [(4, 4)], [(2, 1, 2)], outputs=((4, 4, 6),)),
        "When input dimension is > 1, axis must be -1, and strategy must be data parallel",
    ),
    "concat": (operator("Concat", [(4, 8), (4, 8)], [(2, 1), (4, 1)], constants={1: 1}), "tensor must be equal"),
    "concat axis": (operator("Concat", [(4, 8), (4, 8)], [(2, 1), (2, 1)]), "axis can not be split"),
    "split axis": (operator("Split", [(4, 8)], [(2, 1)]), "axis can not be split"),
    "slice": (
        operator("StridedSlice", [(4, 8)], [(2, 1)], constants={1: (1, 0), 2: (4, 8), 3: (1, 1)}), "the index is 0",
    ),
    "slice that ends early": (
        operator("StridedSlice", [(4, 8)], [(1, 2)], constants={1: (0, 0), 2: (4, 7), 3: (1, 1)}), "not fully fetched",
    ),
    "slice with steps": (
        operator("StridedSlice", [(4, 8)], [(1, 2)], constants={1: (0, 0), 2: (4, 8), 3: (1, 2)}), "stride is not 1",
    ),
    "columns": (operator("Gather", [(4, 8), (2,)], [(1, 1), (1,)], constants={2: 1}), "only axis 0"),
    "window": (operator("Conv2D", [(2, 2, 4, 4), (2, 2, 2, 2)], [(1, 1, 1, 1), (1, 1, 1, 2)]), "height and width"),
    "height": (operator("Conv2D", [(2, 2, 4, 4), (2, 2, 2, 2)], [(1, 1, 2, 1), (1, 1, 1, 1)]), "height and width"),
    "channels": (operator("Conv2D", [(2, 2, 4, 4), (2, 2, 2, 2)], [(1, 2, 1, 1), (1, 1, 1, 1)]), "shard num of c-in"),
    "loss": (operator("SoftmaxCrossEntropyWithLogits", [(4, 8)] * 2, [(2, 2)] * 2), "is not 1, input: 2, label: 2"),
    "tile": (
        operator("Tile", [(4, 8)], [(1, 4)], constants={1: (1, 2)}, outputs=((4, 16),)),
        "shape value 2 at dim index 1 cannot be divisible by strategy value 4",
    ),
    "tile with a new axis": (
        operator("Tile", [(4, 8)], [(1, 1)], constants={1: (2, 1, 1)}, outputs=((2, 4, 8),)), "inputs len: 3",
    ),
    "tile of an axis of one": (
        operator("Tile", [(4, 8)], [(2, 1, 1)], constants={1: (1, 1, 3)}, outputs=((1, 4, 24),)),
        "shape value 1 at dim index 0 cannot be divisible by strategy value 2",
    ),
    "no power of two on one device": (
        operator("ReLU", [(6, 8)], [(3, 1)], devices=1), "must be the power of 2, but get 3",
    ),
    "no rule": (operator("Cholesky", [(4, 4)], [(1, 2)]), "no rule for cutting"),
    "too many devices": (operator("ReLU", [(16, 8)], [(16, 1)]), "requires 16 devices, but the device number .* is 8"),
    "devices left over": (
        operator("ReLU", [(6, 8)], [(3, 1)], devices=20), "it can not be divisible by 3",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refused_strategies(name):
    op, words = REFUSED[name]
    with pytest.raises(StrategyError, match=words) as caught:
        layouts_of(op, scheme_of(op), 0)
    assert str(caught.value).startswith(f"Failure:operator {op.op_type} init failed: ")
    assert isinstance(caught.value, ValueError)
    assert isinstance(caught.value, RuntimeError)


TEXTS = [  # of the vendor, to the letter [spec parallel 2.3]
    (
        operator("Add", [(4, 8), (4, 8)], [(2, 1)]),
        "The strategy is ((2, 1),), strategy size: 1 is not equal to inputs size: 2; strategy ((2, 1),), "
        "shapes ((4, 8), (4, 8))",
    ),
    (
        operator("ReLU", [(16, 8)], [(16, 1)]),
        "The strategy is ((16, 1),), it requires 16 devices, but the device number of this stage is 8, it can not be "
        "divisible by 16; strategy ((16, 1),), shapes ((16, 8),)",
    ),
    (
        operator("CumSum", [(4, 8)], [(2, 4)], constants={1: 1}),
        "For distributed operator CumSum, the input's dimension 'dim'/'axis' can not be split, the 'dim'/'axis' is 1 "
        "and the shard strategy is [const vector]{2, 4}.; strategy ((2, 4),), shapes ((4, 8),)",
    ),
    (
        operator("TopK", [(4, 8)], [(2, 4)]),
        "Now we can not support to split last dimension; strategy ((2, 4),), shapes ((4, 8),)",
    ),
    (
        operator("StridedSlice", [(4, 8)], [(1, 2)], constants={1: (0, 1), 2: (4, 8), 3: (1, 1)}),
        "When a dimension is not fully fetched, the dimension can not be split now, the begin is [const vector]{0, 1}, "
        "the end is [const vector]{4, 8}, the index is 1, the input shape in process is [const vector]{4, 8}, the "
        "strategy in process is [const vector]{1, 2}; strategy ((1, 2),), shapes ((4, 8),)",
    ),
    (
        operator("StridedSlice", [(4, 8)], [(1, 2)], constants={1: (0, 0), 2: (4, 8), 3: (1, 2)}),
        "When a certain dimension is split, now does not support that the stride is not 1, the strides is "
        "[const vector]{1, 2}, the strategy is [const vector]{1, 2}, the index is 1; strategy ((1, 2),), "
        "shapes ((4, 8),)",
    ),
    *(
        (
            operator("BatchMatMul", shapes, rows, devices=8),
            f"Strategies of batch dimensions are not equal, long strategy is [2, 2, 1, 1], short strategy is "
            f"[4, 1, 1]; strategy {tuple(rows)}, shapes {tuple(shapes)}",
        )
        for shapes, rows in (
            ([(2, 4, 4, 8), (4, 8, 6)], [(2, 2, 1, 1), (4, 1, 1)]),
            ([(4, 4, 8), (2, 4, 8, 6)], [(4, 1, 1), (2, 2, 1, 1)]),
        )
    ),
    (
        operator("LayerNorm", [(4, 8, 2), (8, 2), (8, 2)], [(2, 1, 1), (1, 1), (1, 2)], constants={3: -2}),
        "The strategies of input and beta must be right aligned, but the strategy of input is [2, 1, 1], the strategy "
        "of beta is [1, 2]; strategy ((2, 1, 1), (1, 1), (1, 2)), shapes ((4, 8, 2), (8, 2), (8, 2))",
    ),
    (
        operator("LayerNorm", [(4, 8, 2)], [(2, 1, 2)], constants={3: -2}),
        "The dimensions starting form begin_norm_axis cannot be split, the begin_norm_axis is 1, but the strategy of "
        "first input is [2, 1, 2]; strategy ((2, 1, 2),), shapes ((4, 8, 2),)",
    ),
    (
        operator("MatMul", [(8, 4), (6, 8)], [(4, 2), (1, 2)], constants={2: True, 3: True}),
        "Invalid strategy for mat_a [4, 2] and mat_b [1, 2]. The transpose_a is: 1, and transpose_b is 1, the shard "
        "num of first input's row is 4, but the shard num of second input's column is 2; strategy ((4, 2), (1, 2)), "
        "shapes ((8, 4), (6, 8))",
    ),
    (
        operator("Gather", [(4, 8), (2,)], [(1, 2), (2,)], constants={2: 1}),
        "param is split at dim (axis)1 ,index can't be split.; strategy ((1, 2), (2,)), shapes ((4, 8), (2,))",
    ),
]


@pytest.mark.parametrize(("op", "text"), TEXTS, ids=range(len(TEXTS)))
def test_the_whole_text_of_a_refusal(op, text):
    with pytest.raises(StrategyError) as caught:
        layouts_of(op, scheme_of(op), 0)
    assert str(caught.value) == f"Failure:operator {op.op_type} init failed: {text}"


@pytest.mark.parametrize("axis", range(3))
def test_batch_axes_of_equal_extent_must_be_cut_equally(axis):
    shapes, rows = [[2, 4, 8, 6, 6], [2, 4, 8, 6, 6]], [[1] * 5, [1] * 5]
    rows[0][axis] = 2
    with pytest.raises(StrategyError, match=r"long strategy is .*2.*, short strategy is \[1, 1, 1, 1, 1\]"):
        scheme_of(operator("BatchMatMul", map(tuple, shapes), map(tuple, rows)))
    shapes[1][axis] = 1  # one of them is repeated instead
    scheme = scheme_of(operator("BatchMatMul", map(tuple, shapes), map(tuple, rows), outputs=((2, 4, 8, 6, 6),)))
    assert scheme.matrix[axis] == (str(axis), 2)
    assert [labels[axis] for labels in scheme.inputs] == [str(axis), None]


def test_extremes_come_together_where_their_axis_is_cut():
    for constants, strategy, labels in (({1: 0}, (2, 1), ("0",)), ({1: -1}, (2, 2), ("1",)), ({}, (1, 2), ("1",))):
        for op_type, kind in (
            ("ArgMaxWithValue", "max"),
            ("Argmax", "max"),
            ("ArgMinWithValue", "min"),
            ("Argmin", "min"),
        ):
            op = operator(op_type, [(4, 8)], [strategy], constants=constants, outputs=((4,),))
            assert scheme_of(op).reduction == Reduction(kind, labels)


def test_largest_elements_are_searched_in_a_whole_last_axis():
    assert scheme_of(operator("TopK", [(4, 8, 6)], [(1, 2, 1)])).inputs == [[None, "1", None]]
    with pytest.raises(StrategyError, match="split last dimension"):
        scheme_of(operator("TopK", [(4, 8, 6)], [(1, 2, 2)]))


@pytest.mark.parametrize(
    ("rows", "name"), [([(1, 2), (1,)], "gamma"), ([(1,), (1, 2)], "beta"), ([(2,), (1,)], "gamma")]
)
def test_the_operand_that_is_not_cut_like_the_first_is_named(rows, name):
    op = operator("LayerNorm", [(4, 8), *((4, 8)[-len(row) :] for row in rows)], [(2, 1), *rows], constants={3: -1})
    with pytest.raises(StrategyError, match=f"of input and {name} must be right aligned"):
        scheme_of(op)


def test_classes_of_indices_with_several_axes_are_whole():
    assert scheme_of(operator("OneHot", [(4, 4), (), ()], [(2, 1, 1), (), ()], outputs=((4, 4, 5),))).inputs[0]
    for row in ((1, 2, 1), (1, 1, 5)):
        with pytest.raises(StrategyError, match="strategy must be data parallel"):
            scheme_of(operator("OneHot", [(4, 4), (), ()], [row, (), ()], devices=10, outputs=((4, 4, 5),)))
    with pytest.raises(StrategyError, match="axis must be -1"):
        scheme_of(operator("OneHot", [(4, 4), (), ()], [(1, 1, 1), (), ()], constants={4: 0}, outputs=((5, 4, 4),)))


def test_the_device_matrix_of_indices_begins_with_their_axis():
    """Also where the classes come first. [observed 2.10]"""
    for axis, row in ((-1, (4, 2)), (1, (4, 2)), (0, (2, 4))):
        shape = (8, 6) if axis else (6, 8)
        op = operator("OneHot", [(8,), (), ()], [row, (), ()], constants={4: axis}, outputs=(shape,))
        assert [count for _, count in scheme_of(op).matrix] == [4, 2]


def test_a_concatenation_of_one():
    assert scheme_of(operator("Concat", [(4, 8)], [(4, 1)], constants={1: 1})).outputs == [["0", "1"]]


def test_axes_that_a_slice_shrinks_are_not_in_its_output():
    for mask, labels in ((0, ["0", "1", "2"]), (1, ["1", "2"]), (2, ["0", "2"]), (4, ["0", "1"]), (5, ["1"])):
        constants = {1: (0, 0, 0), 2: (4, 8, 2), 3: (1, 1, 1), 8: mask}
        op = operator("StridedSlice", [(4, 8, 2)], [(1, 1, 1)], constants=constants)
        assert scheme_of(op).outputs == [labels]


def test_a_part_of_a_convolution_has_its_own_number_of_channels():
    shapes = [(4, 6, 3, 3), (8, 6, 3, 3)]
    scheme = scheme_of(operator("Conv2D", shapes, [(1, 2, 1, 1), (4, 2, 1, 1)]))
    assert scheme.attrs == {"out_channel": 2}
    assert scheme.reduction == Reduction("sum", ("i",))


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([(2, 2), (2, 1)], "axis dimension is not 1, input: 2, label: 1"),
        ([(2, 1), (2, 2)], "axis dimension is not 1, input: 1, label: 2"),
        ([(2, 1), (4, 1)], "Strategies of relevant dimensions are not equal."),
    ],
)
def test_losses_over_cut_classes_and_unequal_rows(rows, words):
    with pytest.raises(StrategyError, match=words):
        scheme_of(operator("SoftmaxCrossEntropyWithLogits", [(4, 8)] * 2, rows))


def test_slices_whose_axes_are_not_aligned_are_whole():
    for masks in ({6: 1}, {7: 1}):  # an ellipsis, a new axis
        constants = {1: (0, 0), 2: (4, 8), 3: (1, 1)} | masks
        op = operator("StridedSlice", [(4, 8)], [(1, 1)], constants=constants, outputs=((1, 4, 8),))
        assert scheme_of(op).outputs == [[None, None, None]]


def test_an_output_of_lower_rank_is_cut_along_the_axes_that_it_has():
    """Statistics of a normalisation without the normalised axes, and a mask of one axis."""
    op = operator("LayerNorm", [(4, 8, 2), (2,)], [(2, 4, 1), (1,)], constants={3: -1}, outputs=((4, 8, 2), (4, 8)))
    scheme = scheme_of(op)
    assert [list(labels) for labels in scheme.outputs] == [["0", "1", "2"], ["0", "1"]]
    mask = operator("Dropout", [(4, 8)], [(2, 4)], outputs=((4, 8), (4,)))
    assert [list(labels) for labels in scheme_of(mask).outputs] == [["0", "1"], ["0"]]


def test_an_output_that_cannot_be_cut_as_its_operand():
    op = operator("ReLU", [(4, 8)], [(4, 1)], outputs=((6, 8),))
    with pytest.raises(StrategyError, match=r"the shape .6, 8. cannot be cut into .4, 1."):
        layouts_of(op, scheme_of(op), 0)


def test_layouts_by_name_that_do_not_fit():
    add = operator("Add", [(4, 8), (4, 8)], [(2, 2), (2, 2)], devices=4)
    scheme = scheme_of(add)
    left = TensorLayout((2, 2), (1, 0), (4, 8))
    assert layouts_over(add, scheme, [left, left], 0).outputs == (left,)
    assert layouts_over(add, scheme, [left, left], 0).group == ()
    with pytest.raises(StrategyError, match="same device dimensions"):
        layouts_over(add, scheme, [left, TensorLayout((2, 2), (0, 1), (4, 8))], 0)
    with pytest.raises(StrategyError, match="does not have 4 devices"):
        layouts_over(add, scheme, [TensorLayout((2, 4), (1, 0), (4, 8))] * 2, 0)
    with pytest.raises(StrategyError, match="does not have 4 devices"):
        layouts_over(add, scheme, [left, TensorLayout((4, 1), (1, 0), (4, 8))], 0)
    odd = operator("ReLU", [(4, 8)], [(2, 1)], devices=4, outputs=((3, 8),))
    with pytest.raises(StrategyError, match="cannot be cut into"):
        layouts_over(odd, scheme_of(odd), [left], 0)


@pytest.mark.parametrize(
    ("masks", "begin", "end", "whole"),
    [  # begin, end, ellipsis, new axis and shrink mask, as numpy's slices: axis 1 of 8 elements
        ((0, 0, 0, 0, 0), 0, 8, True),
        ((0, 0, 0, 0, 0), 3, 8, False),
        ((2, 0, 0, 0, 0), 3, 8, True),  # its begin does not count
        ((1, 0, 0, 0, 0), 3, 8, False),
        ((0, 0, 0, 0, 0), 0, 5, False),
        ((0, 2, 0, 0, 0), 0, 5, True),  # nor its end
        ((0, 1, 0, 0, 0), 0, 5, False),
        ((2, 2, 0, 0, 0), 3, 5, True),
        ((0, 0, 0, 0, 1), 0, 8, True),
        ((0, 0, 0, 0, 2), 0, 8, False),  # one element of it
        ((0, 0, 1, 0, 0), 0, 8, False),  # begin and end stand for other axes
        ((0, 0, 0, 1, 0), 0, 8, False),
    ],
)
def test_slices_cut_the_axes_that_they_take_whole(masks, begin, end, whole):
    constants = {1: (0, begin), 2: (4, end), 3: (1, 1)} | dict(enumerate(masks, 4))
    shape = (8,) if masks[4] & 1 else (4, 8)
    op = operator("StridedSlice", [(4, 8)], [(1, 2)], devices=2, constants=constants, outputs=(shape,))
    if whole:
        assert scheme_of(op).inputs[0][1] is not None
    else:
        with pytest.raises(StrategyError, match="the index is 1"):
            scheme_of(op)


def test_an_axis_that_two_device_dimensions_cut():
    scheme = Scheme(
        matrix=[("a", 2), ("b", 2)], inputs=[[("a", "b"), None]], outputs=[[("a", "b")]],
        reduction=Reduction("sum", ("b",)),
    )  # fmt: skip
    op = operator("ReduceSum", [(8, 4)], [(4, 1)], devices=4, outputs=((8,),))
    layouts = layouts_of(op, scheme, 2)
    assert layouts.inputs[0].tensor_map == ((1, 0), -1)
    assert layouts.inputs[0].region(2)[0] == slice(4, 6)
    assert layouts.outputs[0].cuts == (4,)
    assert layouts.group == (2, 3)
    given = TensorLayout((2, 2), (1, WHOLE), (8, 4))
    with pytest.raises(StrategyError, match="same device dimensions"):
        layouts_over(op, Scheme(matrix=[], inputs=[["a", "a"]], outputs=[["a"]]), [given], 0)


DEFAULTS = [  # operator, shapes, constants, devices, strategy
    ("ReLU", [(8, 6)], {}, 4, [(4, 1)]),
    ("ReLU", [(4, 6)], {}, 8, [(4, 1)]),  # rows for four, repeated twice
    ("ReLU", [(6, 6)], {}, 4, [(2, 1)]),
    ("ReLU", [(5, 6)], {}, 4, [(1, 1)]),
    ("ReLU", [()], {}, 4, [()]),
    ("Add", [(8, 6), (6,)], {}, 4, [(4, 1), (1,)]),
    ("Add", [(8, 6), (1, 6)], {}, 4, [(4, 1), (1, 1)]),
    ("Add", [(8, 6), (2, 6)], {}, 4, [(2, 1), (2, 1)]),
    ("MatMul", [(8, 6), (6, 8)], {}, 4, [(4, 1), (1, 1)]),
    ("Conv2D", [(8, 4, 5, 5), (8, 4, 3, 3)], {}, 4, [(4, 1, 1, 1), (1, 1, 1, 1)]),
    ("BiasAdd", [(8, 4), (4,)], {}, 4, [(4, 1), (1,)]),
    ("Gather", [(8, 6), (4,)], {2: 0}, 2, [(1, 1), (2,)]),
    ("Gather", [(8, 6), ()], {2: 0}, 2, [(1, 1), ()]),
    ("Concat", [(4, 6), (4, 6)], {1: 1}, 4, [(4, 1), (4, 1)]),
    ("Concat", [(4, 6), (4, 6)], {1: 0}, 4, [(1, 1), (1, 1)]),
    ("Concat", [(4, 6), (4, 6)], {1: -2}, 4, [(1, 1), (1, 1)]),
    ("Concat", [(4, 6), (4, 6)], {}, 4, [(1, 1), (1, 1)]),
    ("Split", [(4, 6)], {1: 0}, 4, [(1, 1)]),
    ("Split", [(4, 6)], {1: 1}, 4, [(4, 1)]),
    ("Softmax", [(4, 6)], {1: -1}, 4, [(4, 1)]),
    ("Softmax", [(4, 6)], {1: (0, 1)}, 4, [(1, 1)]),
    ("Softmax", [(4, 6)], {}, 4, [(4, 1)]),
    ("CumSum", [(4, 6)], {1: 0}, 4, [(1, 1)]),
    ("ReduceSum", [(4, 6)], {1: 0}, 4, [(4, 1)]),
    ("StridedSlice", [(4, 6)], {1: (0, 1), 2: (4, 3), 3: (1, 1)}, 4, [(4, 1)]),
    ("StridedSlice", [(4, 6)], {1: (0, 1), 2: (3, 3), 3: (1, 1)}, 4, [(1, 1)]),
    ("StridedSlice", [(4, 6)], {1: (1, 1), 2: (4, 3), 3: (1, 1)}, 4, [(1, 1)]),
    ("StridedSlice", [(4, 6)], {1: (0, 1), 2: (4, 3), 3: (2, 1)}, 4, [(1, 1)]),
    ("OneHot", [(8,), (), ()], {1: 5}, 4, [(4, 1), (), ()]),  # that of the output
    ("OneHot", [(6,), (), ()], {1: 5}, 4, [(1, 1), (), ()]),
    ("OneHot", [(8, 3), (), ()], {1: 5}, 4, [(4, 1, 1), (), ()]),
    ("OneHot", [(), (), ()], {1: 5}, 4, [(), (), ()]),
    ("Tile", [(8, 6)], {1: (1, 2)}, 4, [(4, 1)]),
    ("Tile", [(8, 6)], {1: (2, 1, 2)}, 4, [(4, 1, 1)]),
    ("Softmax", [(4, 6)], {1: 0}, 4, [(1, 1)]),
    ("Softmax", [(4, 6)], {1: -2}, 4, [(1, 1)]),
    ("Softmax", [(4, 6)], {1: (1,)}, 4, [(4, 1)]),
    ("Softmax", [()], {1: -1}, 4, [()]),
    ("Gather", [(8, 6), (6, 4)], {2: 0}, 4, [(1, 1), (2, 1)]),
    ("LayerNorm", [(8, 6), (6,), (6,)], {}, 4, [(4, 1), (1,), (1,)]),
    ("MatMul", [(1, 6), (6, 8)], {}, 4, [(1, 1), (1, 1)]),
    ("Add", [(1, 6), (1, 6)], {}, 4, [(1, 1), (1, 1)]),
    ("Add", [(8, 6), (12, 6)], {}, 8, [(4, 1), (4, 1)]),
    ("ReLU", [(12, 2)], {}, 12, [(12, 1)]),
    ("ReLU", [(9, 2)], {}, 12, [(3, 1)]),
    ("Cholesky", [(4, 4)], {}, 4, [(1, 1)]),
    ("AddN", [], {}, 4, []),
]


@pytest.mark.parametrize(("op_type", "shapes", "constants", "devices", "expected"), DEFAULTS)
def test_operators_without_a_strategy_are_cut_along_the_batch(op_type, shapes, constants, devices, expected):
    op = operator(op_type, shapes, (), devices=devices, constants=constants)
    assert default_strategy(op) == tuple(expected)


def test_every_rule_has_a_case():
    """Those of element-wise operators are the same function, which `ReLU`, `Add` and others stand for."""
    alone = set(RULES.values()) - {RULES[case[0]] for case in CASES.values() if case[0] in RULES}
    assert not alone
