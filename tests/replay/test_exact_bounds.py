"""Bounds as the books give them: each formula a second time, element by element, in a type of a round unit."""

from itertools import product
from math import prod, sqrt

import ml_dtypes
import numpy as np
import pytest
from en_dtypes import hifloat8

from dumpsim.ops.table import find
from dumpsim.replay.bounded import Bounded, Untracked, exact, plain
from dumpsim.replay.complexes import bound_of_complex
from dumpsim.replay.kernel import Computed, Refusal, compute
from dumpsim.replay.measure import Measured, measure
from dumpsim.replay.slope import MACHINES, ROUGH, Machine
from dumpsim.replay.unit import largest, smallest, unit

U = 2.0**-10
MACHINE = Machine(unit=U, slopes=MACHINES["device"])
X = np.arange(1.0, 25.0).reshape(2, 3, 4) * np.where(np.arange(24).reshape(2, 3, 4) % 5 == 2, -1, 1)
B = np.arange(24.0).reshape(2, 3, 4) / 2**20  # an error of each, one of them none


def gamma(terms):
    return min(terms, 8 * sqrt(terms)) * U


def carried(value=X, bound=B):
    return Bounded.of(value, bound, MACHINE)


def slices(axis, keepdims):
    """Each element of a reduction with what it is made of."""
    axes = tuple(range(3)) if axis is None else tuple(a % 3 for a in (axis if isinstance(axis, tuple) else (axis,)))
    shape = tuple(1 if at in axes else n for at, n in enumerate(X.shape))
    for place in product(*map(range, shape)):
        key = tuple(slice(None) if at in axes else n for at, n in enumerate(place))
        out = place if keepdims else tuple(n for at, n in enumerate(place) if at not in axes)
        yield out, X[key].reshape(-1), B[key].reshape(-1)


@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("axis", [None, 0, 1, 2, -1, (0, 2)])
def test_reductions(axis, keepdims):
    total = carried().sum(axis=axis, keepdims=keepdims)
    mean = np.mean(carried(), axis=axis, keepdims=keepdims)
    times = np.prod(carried(), axis=axis, keepdims=keepdims)
    most, least = carried().max(axis=axis, keepdims=keepdims), np.min(carried(), axis=axis, keepdims=keepdims)
    assert total.shape == mean.shape == times.shape == most.shape == X.sum(axis=axis, keepdims=keepdims).shape
    for at, x, b in slices(axis, keepdims):
        error = b.sum() + gamma(x.size - 1) * (np.abs(x).sum() + b.sum())
        assert (total[at], total.bound[at]) == (x.sum(), pytest.approx(error))
        divided = error / x.size + 4 * U * abs(x.sum()) / x.size
        assert (mean[at], mean.bound[at]) == (x.sum() / x.size, pytest.approx(divided))
        error = abs(np.prod(x)) * ((b / np.abs(x)).sum() + gamma(x.size))
        assert (times[at], times.bound[at]) == (pytest.approx(np.prod(x)), pytest.approx(error))
        assert (most[at], least[at], most.bound[at], least.bound[at]) == (x.max(), x.min(), b.max(), b.max())


@pytest.mark.parametrize(("ufunc", "name"), [(np.add, "sum"), (np.multiply, "prod"), (np.maximum, "max")])
def test_a_reduction_of_a_ufunc_is_that_of_the_method(ufunc, name):
    for axis, keepdims in ((0, True), (1, False), (None, False)):
        found = ufunc.reduce(carried(), axis=axis, keepdims=keepdims)
        wanted = getattr(carried(), name)(axis=axis, keepdims=keepdims)
        assert (plain(found) == plain(wanted)).all()
        assert (found.bound == wanted.bound).all()
    assert (ufunc.reduce(carried()).bound == getattr(carried(), name)(axis=0).bound).all()


def test_a_reduction_of_one_element_adds_no_error_but_that_of_a_product():
    one = carried(X[:1], B[:1])
    for found, error in (
        (one.sum(axis=0), B[0]), (one.max(axis=0), B[0]), (one.min(axis=0), B[0]),
        (one.cumsum(axis=0)[0], B[0] + U * np.abs(X[0])), (one.prod(axis=0), B[0] + U * np.abs(X[0])),
        (one.mean(axis=0), B[0] + 4 * U * np.abs(X[0])),
    ):  # fmt: skip
        assert np.allclose(found.bound, error, rtol=1e-12, atol=0)
        assert (plain(found) == X[0]).all()
    empty = carried(np.empty((0, 3)), np.empty((0, 3)))
    assert (empty.sum().item(), empty.sum().bound.item(), empty.sum(axis=0).bound.tolist()) == (0, 0, [0, 0, 0])
    assert (empty.prod().item(), empty.prod().bound.item()) == (1, 0)


def test_number_types_that_kernels_ask_for_change_nothing():
    """Everything is computed in float64, whatever a kernel says."""
    for given, wanted in (
        (np.multiply(carried(), 0.3, dtype=np.float32), np.multiply(carried(), 0.3)),
        (np.add.reduce(carried(), axis=1, dtype=np.float16), np.add.reduce(carried(), axis=1)),
        (np.exp(carried(), dtype=np.float32), np.exp(carried())),
    ):
        assert (plain(given) == plain(wanted)).all()
        assert (given.bound == wanted.bound).all()
    for call in (lambda: np.add(carried(), 1.0, where=X > 0), lambda: np.divmod(carried(), 2.0),
                 lambda: np.add.outer(carried(), X), lambda: np.spacing(carried())):  # fmt: skip
        with pytest.raises(Untracked):
            call()


@pytest.mark.parametrize("axis", [0, 2])
def test_running_reductions(axis):
    running = carried().cumsum(axis=axis)
    terms = gamma(X.shape[axis])
    assert np.allclose(running.bound, B.cumsum(axis=axis) + terms * np.abs(X).cumsum(axis=axis))
    assert (np.add.accumulate(carried(), axis).bound == running.bound).all()
    products = exact(X, MACHINE).cumprod(axis=axis)
    assert np.allclose(products.bound, terms * np.abs(X.cumprod(axis=axis)))
    assert carried().cumsum().bound[-1] == pytest.approx(B.sum() + gamma(24) * np.abs(X).sum())
    assert exact(X, MACHINE).cumprod().bound[-1] == pytest.approx(gamma(24) * abs(prod(X.reshape(-1))))
    with pytest.raises(Untracked, match="cumprod"):
        carried().cumprod(axis=axis)


@pytest.mark.parametrize(("equation", "terms"), [
    ("abc,abc->ab", 4), ("abc,dbc->ad", 12), ("abc->b", 8), ("abc,abc->abc", 1), ("abc,dec->abde", 4),
])  # fmt: skip
def test_einsum_counts_the_products_of_a_sum(equation, terms):
    count = equation.partition("->")[0].count(",") + 1
    found = np.einsum(equation, *[exact(X, MACHINE)] * count)
    assert (plain(found) == np.einsum(equation, *[X] * count)).all()
    assert np.allclose(found.bound, gamma(terms + count) * np.einsum(equation, *[np.abs(X)] * count))


def test_what_moves_elements_moves_their_bounds():
    x = carried()
    for move in (
        lambda a: a.T, lambda a: a[1, :, 1:], lambda a: a.reshape(4, 6), lambda a: a.transpose(2, 0, 1),
        lambda a: a.swapaxes(0, 2), lambda a: a[:1].squeeze(0), lambda a: a.ravel(), lambda a: a.copy(),
        lambda a: np.moveaxis(a, 0, 2), lambda a: np.flip(a, 1), lambda a: np.roll(a, 1, 2), lambda a: np.tile(a, 2),
        lambda a: np.repeat(a, 2, 1), lambda a: np.expand_dims(a, 1), lambda a: np.take(a, [2, 0], 1),
        lambda a: np.triu(a), lambda a: np.concatenate([a, a[:, :1]], axis=1), lambda a: np.stack([a, a], axis=1),
        lambda a: np.split(a, 2, axis=2)[1], lambda a: np.array_split(a, 3, axis=2)[0],
        lambda a: np.pad(a, 1), lambda a: np.broadcast_to(a, (2, 2, 3, 4)),
    ):  # fmt: skip
        moved = move(x)
        assert (plain(moved) == move(X)).all()
        assert (moved.bound == move(B)).all()
        assert moved.machine is MACHINE


def test_constants_around_a_tensor_have_their_own_rounding_errors():
    for constant, error in ((0.5, 0.0), (1 / 3, U / 3)):
        found = np.pad(carried(), 1, constant_values=constant)
        wanted = np.full((4, 5, 6), error)
        wanted[1:-1, 1:-1, 1:-1] = B
        assert found.bound == pytest.approx(wanted)
        assert (plain(found) == np.pad(X, 1, constant_values=constant)).all()
    assert (np.pad(carried(), 1, "reflect").bound == np.pad(B, 1, "reflect")).all()


def test_choices_take_the_bound_of_what_they_chose():
    one, other = carried(), carried(-X, 2 * B)
    found = np.where(X > 0, one, other)
    assert (found.bound == np.where(X > 0, B, 2 * B)).all()
    assert (plain(found) == np.abs(X)).all()
    assert (np.clip(one, -3, 3).bound == B).all()
    target, index = exact(np.zeros((2, 3, 4)), MACHINE), np.zeros((2, 3, 1), np.int64)
    np.put_along_axis(target, index, carried()[..., :1], 2)
    assert (target.bound[..., 0] == B[..., 0]).all()
    assert not target.bound[..., 1:].any()
    assert (plain(target)[..., 0] == X[..., 0]).all()
    third = exact(np.ones(3), MACHINE) * (1 / 3)  # a constant that the type does not hold is rounded as well
    assert third.bound == pytest.approx((U + U) / 3, abs=1e-12)
    assert (exact(np.ones(3), MACHINE) * 0.5).bound == pytest.approx(U / 2)
    wrote = exact(np.zeros(2), MACHINE)
    wrote[1] = 1 / 3
    assert wrote.bound.tolist() == [0, pytest.approx(U / 3)]
    applied = carried().apply(np.sinh, np.cosh)
    assert np.allclose(applied.bound, np.cosh(X) * B + 8 * U * np.abs(np.sinh(X)))


# -- whole operators ---------------------------------------------------------------------------------------------------


def recompute(op_type, *operands, machine=MACHINE, **attrs):
    definition = find(op_type)
    return compute(definition, operands, {**definition.attrs, **attrs}, machine=machine, real=True)


def test_a_convolution_counts_the_elements_of_one_filter():
    x, w = (
        np.random.RandomState(n).randn(*shape).astype(np.float32)
        for n, shape in enumerate([(2, 4, 6, 6), (8, 2, 3, 3)])
    )
    settings = {"kernel_size": (3, 3), "out_channel": 8, "pad": (1, 1, 1, 1), "pad_mode": "pad", "group": 2}
    settings |= {"stride": (1, 1), "dilation": (1, 1)}
    (found,) = recompute("Conv2D", x, w, **settings)
    (sizes,) = recompute("Conv2D", np.abs(x), np.abs(w), **settings)
    assert np.allclose(found.bound, gamma(2 * 9) * sizes.value)
    dout = np.ones(found.value.shape, np.float32)
    (back,) = recompute("Conv2DBackpropInput", dout, w, x.shape, **settings)
    (sizes,) = recompute("Conv2DBackpropInput", dout, np.abs(w), x.shape, **settings)
    assert np.allclose(back.bound, gamma(8 * 9) * sizes.value)
    (back,) = recompute("Conv2DBackpropFilter", dout, x, w.shape, **settings)
    (sizes,) = recompute("Conv2DBackpropFilter", dout, np.abs(x), w.shape, **settings)
    assert np.allclose(back.bound, gamma(2 * 6 * 6) * sizes.value)  # of a channel: as many products as it has elements


@pytest.mark.parametrize("kernel", [(1, 1, 3, 2), (3, 2)])
def test_a_gradient_of_a_pooling_adds_up_as_many_as_a_window_has(kernel):
    """Of windows of 3x2 that start at each element, an element may be the largest of six."""
    attrs = {"kernel_size": kernel, "strides": (1, 1, 1, 1), "pad_mode": "VALID", "format": "NCHW"}
    x = np.random.RandomState(0).randn(1, 2, 5, 5).astype(np.float32)
    dout = np.random.RandomState(1).randn(1, 2, 3, 4).astype(np.float32)
    out = find("MaxPool").kernel(x, **attrs)
    (found,) = recompute("MaxPoolGrad", x, out, dout, **attrs)
    sizes = find("MaxPoolGrad").kernel(x, out, np.abs(dout), **attrs)
    assert np.allclose(found.bound, gamma(6) * sizes)
    assert np.allclose(found.value, find("MaxPoolGrad").kernel(x, out, dout, **attrs))


def test_sums_of_operands_and_at_indices():
    x = np.float32([[1, -2, 3], [4, 5, -6]])
    (found,) = recompute("AddN", (x, x, -x))
    assert np.allclose(found.bound, gamma(3) * 3 * np.abs(x)) or np.allclose(
        found.bound, 2 * U * 3 * np.abs(x), rtol=0.6
    )
    (found,) = recompute("UnsortedSegmentSum", x, np.int32([0, 0]), 2)
    assert np.allclose(found.bound, [gamma(6) * np.abs(x).sum(0), [0, 0, 0]])


@pytest.mark.parametrize("op_type", ["LeftShift", "Gcd"])
def test_functions_of_whole_numbers_have_no_bound_for_real_ones(op_type):
    with pytest.raises(Refusal, match=f"no rule bounds the rounding errors of {op_type}"):
        recompute(op_type, np.int32([4, 6]), np.int32([2, 4]))


def test_each_factor_of_a_product_at_an_index_rounds_once():
    x, index, by = np.float32([1.5, 2.5, 0.0]), np.int32([[0], [0], [2]]), np.float32([3, 5, 7])
    (found,) = recompute("TensorScatterMul", x, index, by)
    assert found.value.tolist() == [22.5, 2.5, 0]
    assert np.allclose(found.bound, [4 * 3 * U * 22.5, 4 * U * 2.5, 0])
    (found,) = recompute("TensorScatterDiv", x, index, by)
    assert np.allclose(found.value, [0.1, 2.5, 0])
    assert np.allclose(found.bound, [4 * 3 * U * 0.1, 4 * U * 2.5, 0])
    narrow = Machine(unit=2.0**-11, slopes=MACHINES["device"])
    for value, lost in ((65504.0 / 4, False), (65504.0 / 2, True)):  # the largest half, and beyond
        (found,) = recompute(
            "TensorScatterMul", np.float32([2]), np.int32([[0], [0]]), np.float32([value, 2]), machine=narrow
        )
        assert np.isinf(found.bound).tolist() == [lost]
    for value, lost in ((2.0**-23, False), (2.0**-24, True)):
        (found,) = recompute(
            "TensorScatterMul", np.float32([0.5]), np.int32([[0]]), np.float32([value]), machine=narrow
        )
        assert np.isinf(found.bound).tolist() == [lost]


def test_a_fused_operator_of_a_sum_takes_no_errors_on():
    x = carried(X.reshape(1, 2, 3, 4), B.reshape(1, 2, 3, 4))
    attrs = {"kernel_size": (1, 1, 2, 2), "strides": (1, 1, 1, 1), "pad_mode": "VALID", "format": "NCHW"}
    dout = np.ones((1, 2, 2, 3), np.float32)
    out = find("MaxPool").kernel(plain(x), **attrs)
    definition = find("MaxPoolGrad")
    with pytest.raises(Refusal, match="no rule bounds how MaxPoolGrad propagates the rounding errors of its operands"):
        compute(definition, (x, out, dout), {**definition.attrs, **attrs}, machine=MACHINE, real=True)


def test_what_a_machine_is_known_to_lose_is_added():
    x = np.float32([0.5, 3.0])
    fine, rough = (Machine(unit=U, slopes=MACHINES["device"], rough=ROUGH[name]) for name in ("device", "cpu"))
    (good,), (bad,) = (recompute("Softplus", x, machine=one) for one in (fine, rough))
    assert np.allclose(bad.bound - good.bound, U * (64 + 4 * np.log1p(np.exp(x.astype(np.float64)))))
    good, bad = (recompute("ApplyAdagrad", x, x + 1, 0.5, x - 1, machine=one) for one in (fine, rough))
    assert len(good) == len(bad) == 2
    for one, other in zip(good, bad, strict=True):  # one unit in the last place
        assert np.allclose(other.bound - one.bound, 2 * U * np.abs(one.value))


A, C = (np.random.RandomState(n).randn(3, 4) + 1j * np.random.RandomState(n + 9).randn(3, 4) for n in (1, 2))


@pytest.mark.parametrize(("op_type", "operands", "bound"), [
    ("Mul", (A, C), lambda: 4 * U * np.abs(A) * np.abs(C)),
    ("Square", (A,), lambda: 4 * U * np.abs(A) ** 2),
    ("RealDiv", (A, C), lambda: 16 * U * np.abs(A / C)),
    ("MatMul", (A, C, False, True), lambda: gamma(2 * 4 + 2) * np.abs(A) @ np.abs(C).T),
    ("ReduceSum", (A, (0,), False, False), lambda: gamma(3 + 1) * np.abs(A).sum(0)),
    ("ReduceMean", (A, (1,), True), lambda: gamma(4 + 1) * np.abs(A).mean(1, keepdims=True)),
    ("AddN", ((A, C, A),), lambda: gamma(3) * (2 * np.abs(A) + np.abs(C))),
    ("ReduceSum", (A, (0, 1), False, False), lambda: gamma(12 + 1) * np.abs(A).sum()),
    ("CumSum", (A, 0, False, False), lambda: gamma(4 * 12) * np.abs(A).cumsum(0)),
    ("UnsortedSegmentSum", (A, np.int32([1, 0, 1]), 2),
     lambda: gamma(4 * 12) * np.array([np.abs(A[1]), np.abs(A[0]) + np.abs(A[2])])),
    ("Reciprocal", (A,), lambda: 16 * U / np.abs(A)),
    ("BiasAddGrad", (A,), lambda: gamma(3 + 1) * np.abs(A).sum(0)),
    ("Transpose", (A, (1, 0)), lambda: 0.0),
    ("Tanh", (A,), lambda: None),
])  # fmt: skip
def test_complex_rules(op_type, operands, bound):
    definition = find(op_type)
    run = lambda given: [np.asarray(definition.kernel(*given, **definition.attrs))]  # noqa: E731
    found = bound_of_complex(definition, run, operands, run(operands)[0], MACHINE)
    assert (found is None) == (bound() is None)
    assert found is None or np.allclose(found, bound())


def test_terms_of_several_complex_operands_are_counted_together():
    definition = find("Einsum")
    run = lambda given: [np.asarray(definition.kernel(*given, equation="ab,ab->a"))]  # noqa: E731
    found = bound_of_complex(definition, run, ((A, C),), run(((A, C),))[0], MACHINE)
    assert np.allclose(found, gamma(4 * (12 + 12)) * (np.abs(A) * np.abs(C)).sum(1))


def test_lists_of_constants_are_exact():
    found = np.add(carried(), [1.0, 2.0, 3.0, 4.0])
    assert np.allclose(found.bound, B + U * np.abs(np.add(X, [1.0, 2.0, 3.0, 4.0])))


# -- measuring ---------------------------------------------------------------------------------------------------------

HALF_TABLE = np.arange(0x7C00, dtype=np.uint16)
TYPES = {
    "float16": HALF_TABLE.view(np.float16),
    "bfloat16": np.arange(0x7F80, dtype=np.uint16).view(ml_dtypes.bfloat16),
    "float8_e4m3fn": np.arange(0x7F, dtype=np.uint8).view(ml_dtypes.float8_e4m3fn),
    "float8_e5m2": np.arange(0x7C, dtype=np.uint8).view(ml_dtypes.float8_e5m2),
}


@pytest.mark.parametrize("name", [*TYPES, "hifloat8"])
def test_a_type_rounds_as_its_numbers_lie(name):
    if name == "hifloat8":
        numbers = np.unique(np.arange(256, dtype=np.uint8).view(hifloat8).astype(np.float64))
        numbers = numbers[(numbers > 0) & np.isfinite(numbers)]
    else:
        numbers = TYPES[name].astype(np.float64)[1:]
    middle = (numbers[:-1] + numbers[1:]) / 2
    worst = ((middle - numbers[:-1]) / middle)[numbers[:-1] >= 1].max()
    assert worst == pytest.approx(unit(name) / (1 + unit(name)))
    assert largest(name) == numbers[-1]
    if name != "bfloat16":  # devices flush its subnormal numbers
        assert smallest(name) == numbers[0]


def test_single_and_double():
    for name, kind in (("float32", np.float32), ("float64", np.float64)):
        limits = np.finfo(kind)
        assert (unit(name), largest(name)) == (limits.eps / 2, limits.max)
        assert smallest(name) == smallest({"float32": "bfloat16"}.get(name, name)) == limits.smallest_normal


def excess(own, value, bound=0.0, kind="float16", machine=2.0**-24, **options):
    one = Computed(np.atleast_1d(np.float64(value)), bound)
    return measure(np.atleast_1d(own), one, kind, machine, **options)


def test_an_output_is_rounded_once_to_its_type():
    third = np.float64(1) / 3
    assert excess(np.float16(third), third).excess <= 1
    assert excess(np.float16(third) + np.float16(2.0**-11), third).excess > 1
    assert excess(np.float16(0.5), 0.5).explained == 0  # nothing is rounded
    for kind in ("bfloat16", "float8_e4m3fn", "float8_e5m2"):
        number = np.dtype(getattr(ml_dtypes, kind)).type
        assert excess(number(0.5), 0.5, kind=kind).explained == 0
        assert excess(number(third), third, kind=kind).excess <= 1 < excess(number(0.5), third, kind=kind).excess
    found = excess(np.float16(0.5), 0.5 + 2.0**-13)
    assert found.explained == pytest.approx(2.0**-11 * (0.5 + 2.0**-13) + 2.0**-24)
    # an output as wide as what the machine computes in: its bound has the last rounding
    assert excess(np.float32(1.5), 1.5 + 2.0**-20, 2.0**-20, "float32").explained == 2.0**-20 + smallest("float32")
    assert excess(np.float32(1.5), 1.5 + 2.0**-20, 2.0**-20, "float32", factor=3.0).explained == pytest.approx(
        3 * 2.0**-20
    )
    assert excess(np.float16(1.5), 1.5, 2.0**-20).explained == 2.0**-20 + 2.0**-24 + 1.5 * 2.0**-11


@pytest.mark.parametrize(("own", "value", "right"), [
    (np.inf, 70000.0, True), (65504.0, 70000.0, True), (-np.inf, -70000.0, True),  # infinite, or the largest number
    (-np.inf, 70000.0, False), (60000.0, 70000.0, False), (np.inf, 65000.0, False), (np.nan, 1.5, False),
    (np.nan, np.nan, True), (1.0, np.nan, False), (np.inf, np.inf, True),
    (1.0, np.inf, False), (-np.inf, np.inf, False),
    (0.0, 2.0**-26, True), (2.0**-24, 2.0**-26, True), (2.0**-22, 2.0**-26, False),
])  # fmt: skip
def test_numbers_out_of_range(own, value, right):
    found = excess(np.float16(own), value)
    assert (found.excess <= 1) == right
    assert found.outside == (not right)


def test_an_infinite_bound_judges_nothing_else():
    one = Computed(np.array([1.0, 2.0, np.inf]), np.array([np.inf, 0.0, np.nan]))
    assert measure(np.array([9.0, 2.0, np.nan], np.float32), one, "float32", 2.0**-24) == Measured(0.0, 0.0, 0, 0)
    found = measure(np.array([9.0, 2.5, np.nan], np.float32), one, "float32", 2.0**-24)
    assert (found.index, found.error, found.outside) == (1, 0.5, 1)


def test_the_worst_element_counts_and_parts_of_complex_numbers_alike():
    value = np.array([1.0, 1.0, 1.0])
    found = measure(np.float32([1.5, 3.0, 2.0]), Computed(value, np.array([1.0, 1.0, 0.25])), "float32", 2.0**-24)
    assert (found.index, found.error, found.outside) == (2, 1.0, 2)
    found = measure(np.float32([1.0, 1.25, 1.5, 1.0]), Computed(np.ones(4), np.ones(4)), "float32", 2.0**-24)
    assert (found.index, found.error, found.outside) == (2, 0.5, 0)  # also where all are explained
    wide = Computed(np.ones(70_000), np.ones(70_000))
    dumped = np.ones(70_000, np.float32)
    dumped[[10, 20, 40_000]] = 1.5  # of equal ones the first
    assert measure(dumped, wide, "float32", 2.0**-24).index == 10
    one = Computed(np.array([1 + 1j, 2 + 2j]), 2.0**-24)
    found = measure(np.complex64([1.5 + 1j, 2 + 4j]), one, "complex64", 2.0**-24)
    assert (found.index, found.error, found.outside) == (1, 2.0, 1)
    found = measure(np.complex64([1.5 + 1j, 3 + 2j]), one, "complex64", 2.0**-24)
    assert (found.index, found.outside) == (1, 2)


def test_whole_numbers_are_equal_or_wrong():
    value = Computed(np.array([1, 5, 9]), 0.0)
    assert measure(np.array([1, 5, 9]), value, "int32", U) == Measured(0.0, 0.0)
    assert measure(np.array([1, 2, 11]), value, "int32", U) == Measured(3.0, 0.0, 1, 2)
    assert measure(np.array([True, False]), Computed(np.array([True, True]), 0.0), "bool", U) == Measured(
        1.0, 0.0, 1, 1
    )
    assert Measured(0.0, 0.0).excess == 0
    assert Measured(1.0, 0.0).excess == np.inf
    assert Measured(1.0, 4.0).excess == 0.25


EINSUMS = {
    "ij->": 12, "ij": 1, "ij->ji": 1, "ij->j": 3, " i j -> i ": 4, "ij,jk": 4, "ij,jk->ik": 4, "ij,jk->": 60,
    "ij,jk->ijk": 1, "ii": 3, "ii->i": 1, "...j->...": 4, "j...->...": 2, "i...k,...k->i...": 4, "ij,ij,ij->j": 3,
    "i,j->": 12,
}  # fmt: skip
OF_EINSUM = {"ii": [(3, 3)], "ii->i": [(3, 3)], "j...->...": [(2, 3, 4)], "...j->...": [(2, 3, 4)],
             "i,j->": [(3,), (4,)], "i...k,...k->i...": [(2, 3, 4), (3, 4)], "ij,ij,ij->j": [(3, 4)] * 3}  # fmt: skip


@pytest.mark.parametrize("equation", EINSUMS)
def test_sums_of_products_have_as_many_terms_as_their_letters_say(equation):
    """How many products one result adds up, counted by an einsum of ones."""
    shapes = OF_EINSUM.get(equation) or ([(3, 4), (4, 5)] if "," in equation else [(3, 4)])
    values = [np.arange(1.0, 1 + prod(shape)).reshape(shape) for shape in shapes]
    terms = np.unique(np.einsum(equation, *map(np.ones_like, values)))
    assert terms.tolist() == [EINSUMS[equation]]
    found = np.einsum(equation, *(exact(-one, MACHINE) for one in values))
    size = np.einsum(equation, *values)
    assert np.allclose(plain(found), size * (-1) ** len(values))
    assert found.bound == pytest.approx(gamma(EINSUMS[equation] + len(values)) * size)


def test_sums_of_products_of_computed_values_have_no_bound():
    with pytest.raises(Untracked):
        np.einsum("ijk->k", carried())
