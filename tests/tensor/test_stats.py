"""Statistics against numpy, over every number type, stride and byte order."""

import math
import struct
import threading
from types import SimpleNamespace

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from dumpsim.core.errors import BadInputError, DtypeError
from dumpsim.tensor import stats
from dumpsim.tensor.simd import simd_levels
from dumpsim.tensor.stats import BLOCK, CODES, WIDER, Statistics, measurer, statistics

CHUNK = 65536
FLOATS = [np.dtype(t) for t in (np.float16, ml_dtypes.bfloat16, np.float32, np.float64)]
TYPES = list(CODES)
IDS = [t.name for t in TYPES]


def special_values(dtype):
    """Values at the edges of a type."""
    if dtype == np.bool_:
        return np.array([True, False, True])
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return np.array([info.min, info.max, 0, 1, info.max - 1, info.min + 1], dtype)
    info = ml_dtypes.finfo(dtype)
    edges = [0.0, -0.0, 1.0, -1.0, float(info.max), float(info.min), float(info.tiny), -float(info.tiny)]
    edges += [float(info.smallest_subnormal), -float(info.smallest_subnormal)]
    return np.array(edges, np.float64).astype(dtype)


def sample(dtype, size, seed=0, *, wild=False):
    """Random numbers of a type; wild ones hold NaN, infinities and subnormals."""
    rng = np.random.default_rng(seed)
    if dtype == np.bool_:
        return rng.random(size) < 0.5
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return rng.integers(info.min, info.max, size, dtype=dtype, endpoint=True)
    x = rng.standard_normal(size).astype(dtype)
    x[rng.random(size) < 0.1] = 0
    if wild:
        bits = rng.integers(0, 256, size * dtype.itemsize, dtype=np.uint8)
        where = rng.random(size) < 0.5
        x[where] = bits.view(dtype)[where]
    return x


def as_double(x):
    with np.errstate(invalid="ignore"):  # signalling NaN
        return np.asarray(x).astype(np.float64).reshape(-1)


def check(found, x):
    """`found` is what numpy finds in `x`, whatever the order of summation."""
    with np.errstate(all="ignore"):
        d = as_double(x)
        nan = np.isnan(d)
        assert found.count == d.size
        assert found.nan == nan.sum()
        assert found.negative == (d < 0).sum()
        assert found.positive == (d > 0).sum()
        assert found.zero == (d == 0).sum()
        assert found.positive_inf == np.isposinf(d).sum()
        assert found.negative_inf == np.isneginf(d).sum()
        if nan.any():
            assert math.isnan(found.max)
            assert math.isnan(found.min)
        else:
            assert found.max == d.max()
            assert found.min == d.min()
        wide = d.astype(np.longdouble)
        total, squares, scale = wide.sum(), (wide * wide).sum(), np.abs(wide).sum()
        if scale <= np.finfo(np.float64).max or not np.isfinite(d).all():
            atol = 1e-13 * float(scale) if np.isfinite(scale) else 0.0
            np.testing.assert_allclose(found.sum, float(total), rtol=1e-13, atol=atol)
            np.testing.assert_allclose(found.avg, float(total / d.size), rtol=1e-13, atol=atol / d.size)
        np.testing.assert_allclose(found.sumsq, np.float64(squares), rtol=1e-13, atol=d.size * 5e-324)
        np.testing.assert_allclose(found.l2norm, np.sqrt(np.float64(squares)), rtol=1e-13, atol=1e-160)


def bits(s):
    """Every bit of a result, the signs of zeros and NaN too."""
    return struct.pack(
        "<4d6q", s.sum, s.sumsq, s.max, s.min, s.count, s.negative, s.zero, s.nan, s.positive_inf, s.negative_inf
    )


@pytest.mark.parametrize("size", [1, 2, 15, 16, 17, 2047, 2049, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK + 5])
@pytest.mark.parametrize("dtype", TYPES, ids=IDS)
def test_equals_numpy(dtype, size):
    x = sample(dtype, size, size)
    check(statistics(x), x)


@pytest.mark.parametrize("dtype", TYPES, ids=IDS)
def test_edges_of_the_type(dtype):
    x = special_values(dtype)
    check(statistics(x), x)
    check(statistics(np.tile(x, 1000)), np.tile(x, 1000))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("dtype", FLOATS, ids=[t.name for t in FLOATS])
def test_any_bit_pattern(dtype, seed):
    x = sample(dtype, 70001, seed, wild=True)
    check(statistics(x), x)
    x = x[np.isfinite(as_double(x))]
    check(statistics(x), x)


@pytest.mark.parametrize("dtype", FLOATS[:2], ids=["float16", "bfloat16"])
@pytest.mark.parametrize("level", simd_levels())
def test_every_16_bit_float(dtype, level):
    """Each of the 65536 values alone in an array decides all fields as numpy says."""
    x = np.arange(65536, dtype=np.uint16).view(dtype)
    check(statistics(x, _level=level), x)
    for v in x[simd_levels().index(level) :: 37 * len(simd_levels())]:  # every level has others
        block = np.full(17, v)
        check(statistics(block, _level=level), block)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("at", [0, 5, 16, CHUNK - 1, CHUNK, -1])
@pytest.mark.parametrize("dtype", FLOATS, ids=[t.name for t in FLOATS])
@pytest.mark.parametrize("level", simd_levels())
def test_one_special_element_anywhere(dtype, value, at, level):
    x = sample(dtype, CHUNK + 77)
    x[at] = value
    found = statistics(x, _level=level)
    check(found, x)
    assert math.isnan(found.avg) == math.isnan(value)
    assert math.isfinite(found.l2norm) is False


def test_infinities_of_both_signs_average_to_nan():
    found = statistics(np.array([np.inf, -np.inf, 1.0], np.float32))
    assert math.isnan(found.avg)
    assert (found.max, found.min, found.l2norm) == (math.inf, -math.inf, math.inf)


def test_float64_squares_overflow_without_infinite_elements():
    x = np.array([1e300, -1e300, 0.0, np.finfo(np.float64).max])
    found = statistics(x)
    assert found.l2norm == math.inf
    assert (found.positive_inf, found.negative_inf, found.nan, found.zero, found.negative) == (0, 0, 0, 1, 1)


@pytest.mark.parametrize("dtype", FLOATS, ids=[t.name for t in FLOATS])
@pytest.mark.parametrize("level", simd_levels())
def test_the_first_zero_gives_the_sign(dtype, level):
    """std::max and std::min keep the first of equal values. [spec mindspore 4.2]"""
    for zeros in ([0.0, -0.0], [-0.0, 0.0]):
        for head in (0, 3, 40, CHUNK + 9):
            below = np.concatenate([np.full(head, -1.0), zeros, np.full(40, -2.0)]).astype(dtype)
            above = np.concatenate([np.full(head, 1.0), zeros, np.full(40, 2.0)]).astype(dtype)
            assert math.copysign(1, statistics(below, _level=level).max) == math.copysign(1, zeros[0])
            assert math.copysign(1, statistics(above, _level=level).min) == math.copysign(1, zeros[0])


def test_any_bit_makes_a_bool_true():
    x = np.array([0, 1, 2, 128, 255, 0], np.uint8).view(np.bool_)
    found = statistics(x)
    assert (found.sum, found.sumsq, found.max, found.min, found.zero, found.positive) == (4, 4, 1, 0, 2, 4)
    assert statistics(np.ones(20, np.bool_)).min == 1
    assert statistics(np.zeros(20, np.bool_)).max == 0


def test_64_bit_integers_are_rounded_one_by_one():
    x = np.array([2**53 + 1, -(2**53) - 1, 2**63 - 1], np.int64)
    found = statistics(x)
    assert found.max == float(2**63)
    assert found.min == -float(2**53)
    assert found.sum == float(2**63)
    u = np.array([2**64 - 1, 2**63 + 1, 2**53 + 1, 2**63 + 1025, 2**63 + 1024], np.uint64)
    assert statistics(u).max == float(2**64)
    for value in u:
        assert statistics(np.array([value])).sum == float(int(value))


@pytest.mark.parametrize("dtype", TYPES, ids=IDS)
def test_threads_change_no_bit(dtype):
    x = sample(dtype, 3 * BLOCK + 70000, wild=dtype.kind not in "biu")
    want = bits(statistics(x))
    for threads in (2, 3, 7):
        assert bits(statistics(x, threads=threads)) == want, threads


@pytest.mark.parametrize("contiguous", [True, False])
def test_threads_measure_at_the_same_time(monkeypatch, contiguous):
    """Two threads meet inside of the kernel; one alone would wait for the other in vain."""
    together, kernel = threading.Barrier(2, timeout=20), stats._stats.measure
    names = set()

    def measure(data, code, level):
        if threading.current_thread().name not in names:
            names.add(threading.current_thread().name)
            together.wait()
        return kernel(data, code, level)

    monkeypatch.setattr(stats, "_stats", SimpleNamespace(measure=measure, CHUNK=stats._stats.CHUNK))
    values = np.ones(2 * BLOCK * (1 if contiguous else 2), np.float32)[:: 1 if contiguous else 2]
    assert statistics(values, threads=2).positive == 2 * BLOCK
    assert len(names) == 2
    assert threading.current_thread().name not in names


@pytest.mark.parametrize("dtype", TYPES, ids=IDS)
def test_levels_change_no_bit(dtype):
    for size in (1, 31, 4100, 2 * CHUNK + 333):
        for wild in (False, True):
            x = sample(dtype, size, size, wild=wild and dtype.kind not in "biu")
            want = bits(statistics(x, _level="baseline"))
            for level in simd_levels():
                assert bits(statistics(x, _level=level)) == want, (level, size)


@pytest.mark.parametrize("dtype", TYPES, ids=IDS)
def test_strides_change_no_bit(dtype):
    x = sample(dtype, 6 * 411 * 101).reshape(6, 411, 101)
    for view in (x[::2], x[:, ::-1], x[..., ::3], x.T, x.swapaxes(0, 1), x[::-1, 5:-7, 3:90:2], x[:, :1, :]):
        want = bits(statistics(np.ascontiguousarray(view)))
        assert bits(statistics(view)) == want
        assert bits(statistics(view, threads=2)) == want


def test_strides_and_threads_over_several_blocks():
    x = sample(np.dtype(np.float32), 2 * (2 * BLOCK + 999)).reshape(-1, 2)[:, 0]
    want = bits(statistics(x.copy()))
    assert bits(statistics(x)) == want
    assert bits(statistics(x, threads=3)) == want


@pytest.mark.parametrize("code", [">f2", ">f4", ">f8", ">i2", ">u4", ">i8"])
def test_big_endian(code):
    x = sample(np.dtype(code).newbyteorder("="), 70000)
    assert bits(statistics(x.astype(code))) == bits(statistics(x))


def test_unaligned_and_read_only():
    raw = np.frombuffer(b"\0" + sample(np.dtype(np.float32), 999).tobytes(), np.uint8)
    x = raw[1:].view(np.float32)
    assert not x.flags.aligned
    assert not x.flags.writeable
    assert bits(statistics(x)) == bits(statistics(x.copy()))


def test_scalars_and_lists():
    assert statistics(np.float32(2.5)).max == 2.5
    assert statistics(np.array(-3, np.int8)).negative == 1
    assert statistics([1.0, 2.0]).avg == 1.5


@pytest.mark.parametrize("dtype", TYPES, ids=IDS)
def test_empty(dtype):
    for shape in ((0,), (3, 0), (0, 5)):
        found = statistics(np.zeros(shape, dtype))
        assert found == Statistics.empty()
        assert (found.max, found.min, found.l2norm, found.count) == (-math.inf, math.inf, 0.0, 0)
        assert math.isnan(found.avg)


def test_nothing_in_another_byte_order():
    assert statistics(np.zeros(0, ">f4")) == Statistics.empty() == statistics(np.zeros((3, 0), ">f4"), threads=2)


def test_a_result_shows_every_statistic():
    shown = repr(statistics([3.0, -1.0, 0.0, 2.0]))
    assert shown == (
        "Statistics(max=3.0, min=-1.0, avg=1.0, l2norm=3.7416573867739413, count=4, negative=1, positive=2, zero=1, "
        "nan=0, positive_inf=0, negative_inf=0)"
    )


@pytest.mark.parametrize("dtype", list(WIDER), ids=[t.name for t in WIDER])
def test_narrow_types(dtype):
    x = np.arange(-8, 8, dtype=np.int8) if dtype.name == "int4" else np.arange(16, dtype=np.uint8)
    x = np.arange(256, dtype=np.uint8).view(dtype) if dtype.name.startswith("float8") else x.astype(dtype)
    check(statistics(x), x)


@pytest.mark.parametrize("dtype", CODES, ids=str)
def test_prepared_measurements_are_those_of_statistics(dtype):
    x = np.arange(100).astype(dtype)
    found, want = measurer(dtype)(x.view(np.uint8)), statistics(x)
    names = ["count" if name == "elements" else name for name in found._fields]
    assert [getattr(want, name) for name in names] == list(found)


@pytest.mark.parametrize("dtype", WIDER, ids=str)
def test_prepared_measurements_widen_nothing(dtype):
    with pytest.raises(DtypeError, match="is not supported without widening"):
        measurer(dtype)


@pytest.mark.parametrize("value", [1j, "a", None, np.datetime64("2020-01-01")])
def test_other_types_are_refused(value):
    with pytest.raises(TypeError, match=r"allowed: bool, int8.*bfloat16, float32") as caught:
        statistics(np.array([value]))
    assert isinstance(caught.value, DtypeError)


def test_no_threads():
    for threads in (0, 1.5, "2", True):
        with pytest.raises(BadInputError, match="threads"):
            statistics([1.0], threads=threads)


arrays = st.sampled_from(TYPES).flatmap(
    lambda t: (
        hnp.arrays(t, st.integers(0, 60))
        if t.name != "bfloat16"
        else hnp.arrays(np.uint16, st.integers(0, 60)).map(lambda a: a.view(ml_dtypes.bfloat16))
    )
)


@settings(deadline=None, max_examples=300)
@given(arrays, st.lists(st.integers(0, 60), max_size=4))
def test_merging_parts_is_measuring_the_whole(x, cuts):
    whole, merged = statistics(x), Statistics.empty()
    for part in np.split(x, sorted(c for c in cuts if c < x.size)):
        merged = merged.merge(statistics(part))
    exact = ("count", "negative", "positive", "zero", "nan", "positive_inf", "negative_inf")
    assert [getattr(merged, f) for f in exact] == [getattr(whole, f) for f in exact]
    assert struct.pack("<2d", merged.max, merged.min) == struct.pack("<2d", whole.max, whole.min)
    with np.errstate(all="ignore"):
        d = as_double(x)
        scale = float(np.abs(d).sum())
    if math.isfinite(scale) and math.isfinite(whole.sum):
        assert merged.sum == pytest.approx(whole.sum, rel=1e-12, abs=1e-12 * scale)
    else:
        assert math.isnan(merged.sum) == math.isnan(whole.sum) or not math.isfinite(scale)
    assert merged.sumsq == pytest.approx(whole.sumsq, rel=1e-12, nan_ok=True)


@given(arrays, arrays, arrays)
@settings(deadline=None, max_examples=50)
def test_empty_is_the_identity(a, b, c):
    for x in (a, b, c):
        one = statistics(x)
        assert bits(one.merge(Statistics.empty())) == bits(one) == bits(Statistics.empty().merge(one))


def test_merge_at_a_block_is_the_tree_itself():
    """A power of two of chunks, then the rest: the very bits of the whole."""
    x = sample(np.dtype(np.float32), 4 * CHUNK + 1234)
    assert bits(statistics(x[: 4 * CHUNK]).merge(statistics(x[4 * CHUNK :]))) == bits(statistics(x))


def test_the_documented_order_of_summation():
    """16 lanes per chunk, halved down, then the tree over chunks, done again in numpy."""
    x = sample(np.dtype(np.float64), 5 * CHUNK + 777)

    def leaf(part):
        lanes = np.zeros(16)
        padded = np.concatenate([part, np.full(-part.size % 16, 0.0)]).reshape(-1, 16)
        for row in padded:
            lanes = lanes + row
        for half in (8, 4, 2, 1):
            lanes = lanes[:half] + lanes[half : 2 * half]
        return lanes[0]

    def tree(leaves):
        if len(leaves) == 1:
            return leaves[0]
        left = 1
        while 2 * left < len(leaves):
            left *= 2
        return tree(leaves[:left]) + tree(leaves[left:])

    assert statistics(x).sum == tree([leaf(x[i : i + CHUNK]) for i in range(0, x.size, CHUNK)])


@pytest.mark.slow
def test_more_than_two_to_the_31_elements():
    size = 2**31 + 12345
    found = statistics(np.broadcast_to(np.int8(-3), (size,)), threads=2)
    assert (found.count, found.negative, found.sum, found.sumsq) == (size, size, -3.0 * size, 9.0 * size)


@pytest.mark.slow
def test_a_contiguous_array_of_more_than_two_to_the_31_elements():
    x = np.zeros(2**31 + 9, np.bool_)  # fresh zero pages cost no memory until they are written
    x[-1] = True
    found = statistics(x)
    assert (found.count, found.zero, found.sum, found.max, found.min) == (x.size, x.size - 1, 1.0, 1.0, 0.0)
