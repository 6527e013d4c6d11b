"""Operators at every axis, from either end: values against numpy, and gradients of linear ones by their adjoint.

For a linear function, the products of ``dout`` with its result and of its gradient with ``x`` are equal.
"""

import numpy as np
import pytest
from ops.evaluator import Builder, Value

from dumpsim.core.abstract import TensorType
from dumpsim.core.dtype import dtype, from_numpy
from dumpsim.ops.table import find

X = np.random.RandomState(5).randn(2, 3, 4)
AXES = range(-3, 3)
ROWS = np.array([[1, 0, 1], [1, 1, 0]])


def value(array):
    array = np.asarray(array)
    return Value(TensorType(dtype=from_numpy(array.dtype), shape=array.shape), array)


def parts(sections, axis):
    """Pieces of X that end at these places."""
    return tuple(np.split(X, sections, axis))


def places(axis):
    """Indices of the shape of X but for `axis`, where there are three."""
    shape = [3 if at == axis % 3 else n for at, n in enumerate(X.shape)]
    return np.random.RandomState(7).randint(0, X.shape[axis], shape)


def rolled_out(axis):
    """X with an axis at the front."""
    return np.moveaxis(X, axis, 0)


def padded(axis, before, after):
    widths = [(before, after) if at == axis % 3 else (0, 0) for at in range(3)]
    return np.pad(X, widths)


def of_pads(axis, before, after):
    """The operand of such widths: pairs from the last axis on."""
    return (0, 0) * (2 - axis % 3) + (before, after)


def running(axis, exclusive, reverse):
    x = rolled_out(axis)[::-1] if reverse else rolled_out(axis)
    total = np.cumsum(x, 0) - (x if exclusive else 0)
    return np.moveaxis(total[::-1] if reverse else total, 0, axis)


def joined(first, last):
    shape = list(X.shape)
    shape[first % 3 : last % 3 + 1] = [int(np.prod(shape[first % 3 : last % 3 + 1]))]
    return X.reshape(shape)


BOTH = (False, True)
LINEAR = [
    *(("FlattenExt", (a, b), joined(a, b)) for a in AXES for b in AXES if a % 3 <= b % 3),
    *(("ConstantPadND", (of_pads(a, 1, 2), 0.0), padded(a, 1, 2)) for a in AXES),
    *(("PadV3", (of_pads(a, 2, 1), None), padded(a, 2, 1)) for a in AXES),
    *(("ExpandDims", (a,), np.expand_dims(X, a)) for a in range(-4, 4)),
    *(("ExpandDimsView", (a,), np.expand_dims(X, a)) for a in range(-4, 4)),
    *(("TransposeExtView", (a, b), X.swapaxes(a, b)) for a in AXES for b in AXES),
    *(("SelectExtView", (a, n), X.take(n, a)) for a in AXES for n in (0, -1)),
    *(("NarrowView", (a, 1, X.shape[a] - 1), X.take(range(1, X.shape[a]), a)) for a in AXES),
    *(("ChunkView", (2, a), parts([-(-X.shape[a] // 2)], a)) for a in AXES),
    *(("SplitTensorView", (2, a), parts(range(2, X.shape[a], 2), a)) for a in AXES),
    *(("UnstackExtView", (a,), tuple(rolled_out(a))) for a in AXES),
    *(("SplitWithSize", ((1, X.shape[a] - 1), a), parts([1], a)) for a in AXES),
    *(("Split", (a, X.shape[a]), parts(X.shape[a], a)) for a in AXES),
    *(("ReverseV2", ((a,),), np.flip(X, a)) for a in AXES),
    *(("Roll", (n, a), np.roll(X, n, a)) for a in AXES for n in (-1, 0, 1, 5)),
    *(("Gather", (value(ROWS), a, 0), X.take(ROWS, a)) for a in AXES),
    *(("IndexSelect", (a, value(ROWS[0])), X.take(ROWS[0], a)) for a in AXES),
    *(("GatherD", (a, value(places(a))), np.take_along_axis(X, places(a), a)) for a in AXES),
    *(("RepeatInterleaveInt", (3, a, None), np.repeat(X, 3, a)) for a in AXES),
    *(("SumExt", ((a,), keep, None), X.sum(a, keepdims=keep)) for a in AXES for keep in BOTH),
    *(("MeanExt", ((a,), keep, None), X.mean(a, keepdims=keep)) for a in AXES for keep in BOTH),
    *(("ReduceSum", ((a,), keep, False), X.sum(a, keepdims=keep)) for a in AXES for keep in BOTH),
    *(("ReduceMean", ((a,), keep), X.mean(a, keepdims=keep)) for a in AXES for keep in BOTH),
    *(("CumSum", (a, one, other), running(a, one, other)) for a in AXES for one in BOTH for other in BOTH),
    *(("Triu", (n,), np.triu(X, n)) for n in range(-4, 5)),
]


def named(rows):
    return [f"{at}-{row[0]}" for at, row in enumerate(rows)]


@pytest.mark.parametrize(("name", "more", "expected"), LINEAR, ids=named(LINEAR))
def test_linear_operators_at_every_axis(name, more, expected):
    builder, x = Builder(), value(X)
    out = builder.emit(name, x, *more)
    results, wanted = (one if isinstance(one, tuple) else (one,) for one in (out.content, expected))
    assert len(results) == len(wanted)
    for result, array in zip(results, wanted, strict=True):
        np.testing.assert_allclose(result, array, rtol=1e-13, atol=1e-15)
        assert (result.shape, result.dtype) == (array.shape, np.float64)
    slopes = tuple(np.cos(np.arange(1.0, one.size + 1)).reshape(one.shape) for one in wanted)
    dout = tuple(map(value, slopes)) if isinstance(expected, tuple) else value(slopes[0])
    gradient, *others = find(name).grad(builder, [x, *more], out, dout, dict(find(name).attrs))
    assert others == [None] * len(more)
    assert gradient.content.shape == X.shape
    along = sum(float((slope * one).sum()) for slope, one in zip(slopes, wanted, strict=True))
    assert float((gradient.content * X).sum()) == pytest.approx(along, rel=1e-12)
    for place in ((0, 0, 0), (1, 2, 3), (0, 2, 1)):  # and what each element adds
        moved = np.zeros_like(X)
        moved[place] = 1
        made = Builder().emit(name, value(moved), *more).content
        pieces = made if isinstance(made, tuple) else (made,)
        wanted_slope = sum(float((slope * one).sum()) for slope, one in zip(slopes, pieces, strict=True))
        assert float(gradient.content[place]) == pytest.approx(wanted_slope, rel=1e-12, abs=1e-15)


def extremes(function, axis, keep):
    place = np.expand_dims(function(X, axis), axis)
    best = np.take_along_axis(X, place, axis)
    return tuple(one if keep else one.squeeze(axis) for one in (best, place))


def hot(axis):
    whole = (np.arange(3) == ROWS[..., None]).astype(np.float64)
    return np.moveaxis(whole, -1, axis)


OTHERS = [
    *(("MaxDim", (X, a, keep), extremes(np.argmax, a, keep)) for a in AXES for keep in BOTH),
    *(("MinDim", (X, a, keep), extremes(np.argmin, a, keep)) for a in AXES for keep in BOTH),
    *(("ArgMaxExt", (X, a, keep), X.argmax(a, keepdims=keep)) for a in AXES for keep in BOTH),
    ("ArgMaxExt", (X, None, False), X.argmax()),
    *(("LogSoftmaxExt", (X, a, None), X - np.log(np.exp(X).sum(a, keepdims=True))) for a in AXES),
    *(("OneHotExt", (ROWS, 3, np.float64(1), np.float64(0), a), hot(a)) for a in range(-1, 3)),
    ("OneHotExt", (ROWS, 3, np.float64(1), np.float64(0)), hot(-1)),
    *(("Embedding", (index, X[0]), X[0][index]) for index in (np.array(2), ROWS[0], ROWS, ROWS[None])),
    *(("OnesLikeExt", (X, kind), np.ones(X.shape, kind and kind.name)) for kind in (None, dtype("int8"))),
]


@pytest.mark.parametrize(("name", "operands", "expected"), OTHERS, ids=named(OTHERS))
def test_other_operators_at_every_axis(name, operands, expected):
    """Shape and number type are those of the shape rule, too."""
    found = Builder().emit(name, *(value(one) if isinstance(one, np.ndarray) else one for one in operands)).content
    results, wanted = (one if isinstance(one, tuple) else (one,) for one in (found, expected))
    for result, array in zip(results, wanted, strict=True):
        np.testing.assert_allclose(result, array, rtol=1e-13, atol=1e-15)
        assert (result.shape, result.dtype) == (array.shape, array.dtype)


@pytest.mark.parametrize("axis", AXES)
def test_elements_are_replaced_at_every_axis(axis):
    shape = [2 if at == axis % 3 else n for at, n in enumerate(X.shape)]
    index = np.argsort(np.random.RandomState(3).rand(*X.shape), axis).take((0, 1), axis)
    source = np.random.RandomState(4).randn(*shape)
    wanted = X.copy()
    np.put_along_axis(wanted, index, source, axis)
    wider = np.pad(source, [(0, 1)] * 3)  # a larger source is used from its beginning
    for given in (source, wider):
        builder, operands = Builder(), [value(X), axis, value(index), value(given), 0]
        out = builder.emit("Scatter", *operands)
        np.testing.assert_array_equal(out.content, wanted)
        dout = np.cos(np.arange(X.size)).reshape(X.shape)
        dx, *rest, dsource, last = find("Scatter").grad(builder, operands, out, value(dout), {})
        assert [*rest, last] == [None, None, None]
        np.testing.assert_array_equal(dx.content, np.where(np.equal(wanted, X), dout, 0))
        taken = np.take_along_axis(dout, index, axis)
        np.testing.assert_array_equal(dsource.content, taken if given is source else np.pad(taken, [(0, 1)] * 3))
    np.put_along_axis(wanted, index, 7.5, axis)
    np.testing.assert_array_equal(Builder().emit("ScatterValue", value(X), axis, value(index), 7.5).content, wanted)
