"""The kernels that GE's library splits operators into, against the formulas of the whole."""

import numpy as np
import pytest

from dumpsim.core.abstract import TensorType, TupleType
from dumpsim.core.dtype import dtype
from dumpsim.graph.ge.machine import (
    BN_REDUCE,
    BN_REDUCE_GRAD,
    BN_UPDATE,
    BN_UPDATE_GRAD,
    DROP_DO_MASK,
    Composition,
    Source,
    drop_gen_mask,
)
from dumpsim.ops.table import find

RNG = np.random.default_rng(11)
SHAPES = [(4, 3), (5, 3, 4), (2, 3, 4, 5)]


def channels(values, rank):
    return values.reshape(1, -1, *(1,) * (rank - 2))


def operands(shape):
    x = RNG.normal(2, 3, shape)
    rest = tuple(axis for axis in range(len(shape)) if axis != 1)
    return x, rest, RNG.uniform(0.5, 2, 3), RNG.normal(size=3)


@pytest.mark.parametrize("shape", SHAPES)
def test_reduce_gives_the_sums_of_each_channel(shape):
    x, rest, *_ = operands(shape)
    total, squares = BN_REDUCE.kernel(x, kind=dtype("float32"))
    np.testing.assert_allclose(total, x.sum(rest))
    np.testing.assert_allclose(squares, (x * x).sum(rest))
    abstract = BN_REDUCE.infer([TensorType(dtype=dtype("float16"), shape=shape)], {"kind": dtype("float32")})
    assert abstract == TupleType(items=(TensorType(dtype=dtype("float32"), shape=(3,)),) * 2)


@pytest.mark.parametrize("shape", SHAPES)
def test_update_normalises_and_moves_the_averages(shape):
    x, rest, scale, offset = operands(shape)
    mean, variance = RNG.normal(size=3), RNG.uniform(1, 2, 3)
    before = mean.copy(), variance.copy()
    total, squares = BN_REDUCE.kernel(x, kind=dtype("float64"))
    y, *saved = BN_UPDATE.kernel(x, total, squares, scale, offset, mean, variance, factor=0.3, epsilon=1e-3)
    middle, spread = x.mean(rest), x.var(rest)
    wanted = (x - channels(middle, x.ndim)) / np.sqrt(channels(spread, x.ndim) + 1e-3)
    np.testing.assert_allclose(y, wanted * channels(scale, x.ndim) + channels(offset, x.ndim))
    np.testing.assert_allclose(mean, 0.7 * before[0] + 0.3 * middle)
    np.testing.assert_allclose(variance, 0.7 * before[1] + 0.3 * x.var(rest, ddof=1))
    for one, truth in zip(saved, (middle, spread, middle, spread), strict=True):
        np.testing.assert_allclose(one, truth)
    one, line = TensorType(dtype=dtype("float16"), shape=shape), TensorType(dtype=dtype("float32"), shape=(3,))
    assert BN_UPDATE.infer([one, line, line, line, line, line, line], {}) == TupleType(items=(one, *(line,) * 4))
    assert BN_UPDATE.updates == (5, 6)


def test_the_variance_of_equal_values_is_never_negative():
    x = np.full((3, 1, 7), np.float32(0.1))
    total, squares = BN_REDUCE.kernel(x, kind=dtype("float32"))
    mean, variance = np.zeros(1, np.float32), np.ones(1, np.float32)
    ones = np.ones(1, np.float32)
    y, _, spread, *_ = BN_UPDATE.kernel(x, total, squares, ones, ones * 5, mean, variance, factor=1.0, epsilon=1e-5)
    assert spread >= 0
    np.testing.assert_allclose(y, 5, atol=1e-3)


@pytest.mark.parametrize("shape", SHAPES)
def test_gradients_are_those_of_finite_differences(shape):
    x, rest, scale, offset = operands(shape)
    dy = RNG.normal(size=shape)

    def total(x, scale, offset):
        middle, spread = channels(x.mean(rest), x.ndim), channels(x.var(rest), x.ndim)
        y = (x - middle) / np.sqrt(spread + 1e-3) * channels(scale, x.ndim) + channels(offset, x.ndim)
        return (y * dy).sum()

    middle, spread = x.mean(rest), x.var(rest)
    dscale, doffset = BN_UPDATE_GRAD.kernel(dy, x, middle, spread, epsilon=1e-3)
    dx = BN_REDUCE_GRAD.kernel(dy, x, dscale, doffset, scale, middle, spread, epsilon=1e-3)
    for given, slope in ((x, dx), (scale, dscale), (offset, doffset)):
        for place in [(0,) * given.ndim, tuple(n - 1 for n in given.shape)]:
            kept = given[place]
            given[place] = kept + 1e-6
            above = total(x, scale, offset)
            given[place] = kept - 1e-6
            below = total(x, scale, offset)
            given[place] = kept
            assert slope[place] == pytest.approx((above - below) / 2e-6, rel=1e-5, abs=1e-6)
    one, line = TensorType(dtype=dtype("float16"), shape=shape), TensorType(dtype=dtype("float32"), shape=(3,))
    assert BN_UPDATE_GRAD.infer([one, one, line, line], {}) == TupleType(items=(line, line))
    assert BN_REDUCE_GRAD.infer([one, one, *(line,) * 5], {}) is one


@pytest.mark.parametrize(("shape", "nbytes"), [((3, 5), 16), ((128,), 16), ((129,), 32), ((2, 64, 3), 48)])
def test_a_mask_of_dropout_has_a_bit_an_element_in_blocks_of_16_bytes(shape, nbytes):
    dropout = find("Dropout")
    gen = drop_gen_mask(dropout)
    abstract = gen.infer([], {"shape": shape})
    assert abstract == TensorType(dtype=dtype("uint8"), shape=(nbytes,))
    assert gen.operands == ("keep_prob", "seed0", "seed1")
    numbers = (0.5, 1, 2)
    mask = gen.kernel(*numbers, shape=shape, counter=3)
    assert mask.shape == (nbytes,)
    drawn = dropout.kernel(np.ones(shape, np.float32), *numbers, counter=3)[1]
    size = int(np.prod(shape))
    bits = np.array([mask[at // 8] >> (at % 8) & 1 for at in range(8 * nbytes)])
    assert bits[:size].tolist() == (drawn.reshape(-1) > 0).astype(int).tolist()
    assert not bits[size:].any()


def test_a_composition_computes_and_infers_its_last_kernel():
    """Batch normalisation between additions: its sums go on by their position, of the last kernel the first output."""
    x, rest, scale, offset = operands((4, 3, 5))
    mean, variance = np.zeros(3), np.ones(3)
    add, kind = find("Add"), dtype("float64")
    whole, member = (lambda at: Source(False, at)), (lambda at, item=None: Source(True, at, item))
    chain = Composition(
        definitions=(add, BN_REDUCE, BN_UPDATE),
        attrs=({}, {"kind": kind}, {"factor": 0.1, "epsilon": 1e-3}),
        wiring=(
            (whole(0), whole(1)),
            (member(0),),
            (member(0), member(1, 0), member(1, 1), whole(2), whole(3), whole(4), whole(5)),
        ),
    ).definition("fused")
    given = (x, x * 2, scale, offset, mean, variance)
    shown = [TensorType(dtype=kind, shape=array.shape) for array in given]
    total = 3 * x
    middle, spread = total.mean(rest), total.var(rest)
    wanted = (total - channels(middle, 3)) / np.sqrt(channels(spread, 3) + 1e-3) * channels(scale, 3)
    np.testing.assert_allclose(chain.kernel(*given), wanted + channels(offset, 3))
    assert chain.infer(shown, {}) == TensorType(dtype=kind, shape=x.shape)
    twice = Composition(definitions=(add, add), attrs=({}, {}), wiring=((whole(0), whole(1)), (member(0), whole(1))))
    assert twice.definition("AddAdd").infer(shown[:2], {}) == shown[0]
    np.testing.assert_allclose(twice.definition("AddAdd").kernel(x, x * 2), 5 * x)


def test_the_product_with_a_mask_has_the_type_of_its_operand():
    """Elements whose bit is 0 are zero, the others are divided by the probability to be kept."""
    x = np.arange(1, 11, dtype=np.float32).reshape(2, 5)
    mask = np.array([0b10110101, 0b10] + [0] * 14, np.uint8)  # the lowest bit comes first
    kept = np.array([[1, 0, 1, 0, 1], [1, 0, 1, 0, 1]], np.float32)
    y = DROP_DO_MASK.kernel(x, mask, 0.5)
    assert y.dtype == np.float32
    np.testing.assert_array_equal(y, x * kept * 2)
    kinds = [TensorType(dtype=dtype("float32"), shape=(2, 5)), TensorType(dtype=dtype("uint8"), shape=(16,))]
    assert DROP_DO_MASK.infer(kinds, {}) is kinds[0]
