"""The ten measures against numpy formulas, the documents' vectors, and themselves over blocks and threads."""

import math
import tracemalloc
from dataclasses import asdict
from types import SimpleNamespace

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from dumpsim.core.errors import BadInputError, DtypeError
from dumpsim.tensor import metrics as module
from dumpsim.tensor.metrics import METRICS, distance, metrics, selected
from dumpsim.tensor.simd import simd_levels


def formulas(own, golden):
    """The formulas of [spec ge 4.5], whole arrays at a time: elements in float32, sums in double."""
    a, b = own.astype(np.float32).ravel(), golden.astype(np.float32).ravel()
    wide_a, wide_b = a.astype(np.float64), b.astype(np.float64)

    def scaled(x):
        if x.max() != x.min():
            x = (x - x.min()) / (x.max() - x.min())
        x = np.maximum(x, np.finfo(np.float32).eps)
        return x / x.sum()

    with np.errstate(all="ignore"):
        gap = np.abs(a - b).astype(np.float64)
        ratio = np.where(np.abs(b) > np.finfo(np.float64).eps, np.abs(a / b - np.float32(1)), 0).astype(np.float64)
        norms = np.sqrt((wide_a**2).sum()) * np.sqrt((wide_b**2).sum())
        p, q = scaled(wide_a), scaled(wide_b)
        return {
            "CosineSimilarity": min((wide_a * wide_b).sum() / norms, 1.0),
            "MaxAbsoluteError": gap.max(),
            "AccumulatedRelativeError": ratio.sum(),
            "RelativeEuclideanDistance": np.sqrt((gap**2).sum() / (wide_b**2).sum()),
            "KullbackLeiblerDivergence": (p * np.log(p / q)).sum(),
            "MeanAbsoluteError": gap.mean(),
            "RootMeanSquareError": np.sqrt((gap**2).mean()),
            "MaxRelativeError": ratio.max(),
            "MeanRelativeError": ratio.mean(),
        }


FIELDS = {
    "CosineSimilarity": "cosine",
    "MaxAbsoluteError": "max_absolute",
    "AccumulatedRelativeError": "accumulated_relative",
    "RelativeEuclideanDistance": "relative_euclidean",
    "KullbackLeiblerDivergence": "kullback_leibler",
    "MeanAbsoluteError": "mean_absolute",
    "RootMeanSquareError": "root_mean_square",
    "MaxRelativeError": "max_relative",
    "MeanRelativeError": "mean_relative",
}


@pytest.mark.parametrize("size", [2, 1000, module.BLOCK + 1, 5 * module.BLOCK - 7])
@pytest.mark.parametrize("dtype", ["float32", "float16", "float64", "int32", "uint8"])
def test_numbers_are_those_of_the_formulas(size, dtype):
    random = np.random.default_rng(size)
    own = (random.standard_normal(size) * 50 + 60).astype(dtype)
    golden = (own + random.standard_normal(size) * 3).astype(dtype)
    found = distance(own, golden)
    for name, value in formulas(own, golden).items():
        assert getattr(found, FIELDS[name]) == pytest.approx(value, rel=1e-9, abs=1e-12), name
    assert found.own_mean == pytest.approx(own.astype(np.float32).astype(np.float64).mean(), rel=1e-12)
    assert found.own_deviation == pytest.approx(own.astype(np.float32).astype(np.float64).std(), rel=1e-9)
    assert found.golden_deviation == pytest.approx(golden.astype(np.float32).astype(np.float64).std(), rel=1e-9)


def test_the_deviation_survives_a_large_mean():
    """Sums of squares would have cancelled every digit."""
    values = np.float32(2.0**23) + np.tile(np.float32([0, 1]), 3 * module.BLOCK)
    assert distance(values, values).own_deviation == pytest.approx(0.5, rel=1e-12)


def test_sums_are_those_of_blocks_of_65536_elements():
    """Their last bits are in golden files: each block by itself, then neighbours by Chan's rule."""
    random = np.random.default_rng(3)
    own = (random.standard_normal(2 * 65536 + 1000) * 50 + 60).astype(np.float32)
    pieces = [own[:65536], own[65536 : 2 * 65536], own[2 * 65536 :]]
    means = [distance(piece, piece).own_mean for piece in pieces]
    pair = means[0] + (means[1] - means[0]) * (65536 / (2 * 65536))
    assert distance(own, own).own_mean == pair + (means[2] - pair) * (1000 / own.size)


# recorded from the real tool, or in the documents [spec ge 4.5]
@pytest.mark.parametrize(
    ("own", "golden", "texts"),
    [
        (
            [2, 2, 2, 2],
            [3, 3, 3, 3],
            "1.000000 1.000000 1.333333 0.333333 0.000000 (2.000;0.000),(3.000;0.000) "
            "1.000000 1.000000 0.333333 0.333333",
        ),
        (
            [0, 0, 0, 0],
            [1, 1, 1, 1],
            "NaN 1.000000 4.000000 1.000000 0.000000 (0.000;0.000),(1.000;0.000) 1.000000 1.000000 1.000000 1.000000",
        ),
        (
            [0, 0, 0, 0],
            [0, 0, 0, 0],
            "1.0 0.000000 0.000000 0.000000 0.000000 (0.000;0.000),(0.000;0.000) 0.000000 0.000000 0.000000 0.000000",
        ),
        (
            [1, 0],
            [0, 1],
            "0.000000 1.000000 1.000000 1.414214 15.942381 (0.500;0.500),(0.500;0.500) "
            "1.000000 1.000000 1.000000 0.500000",
        ),
        (
            [0, 1, 2, 3],
            [2, 2, 2, 2],
            "0.801784 2.000000 2.000000 0.612372 - - 1.000000 1.224745 1.000000 0.500000",
        ),
        ([1, math.nan, math.inf, 2], [1, 1, 1, 1], "nan nan nan nan nan - nan nan nan nan"),
        (3, 4, "1.000000 1.000000 0.250000 0.250000 - - 1.000000 1.000000 0.250000 0.250000"),
    ],
)  # fmt: skip
def test_texts_are_the_tools(own, golden, texts):
    found = metrics(np.float32(own), np.float32(golden))
    assert list(found) == list(METRICS)
    for metric, text in zip(found.values(), texts.split(), strict=True):
        assert text in ("-", metric.text)


def test_notes_say_why_there_is_no_cosine():
    zero, one = np.zeros(4), np.ones(4)
    note = metrics(zero, one, own_name="a.npy", golden_name="b.npy")["CosineSimilarity"].note
    assert note == "Cannot compare by Cosine Similarity. All the data is zero in a.npy."
    assert metrics(one, zero, golden_name="b.npy")["CosineSimilarity"].note.endswith("in b.npy.")
    assert metrics([3.0], [4.0])["CosineSimilarity"].note == "This tensor is scalar."


@pytest.mark.parametrize("first", [True, False])
def test_extremes_and_nan_in_any_block(first):
    """Of two blocks, either may have the extremes or the NaN."""
    own = np.zeros(2 * module.BLOCK, np.float32)
    at = 5 if first else module.BLOCK + 5
    own[at : at + 2] = 3, -7
    golden = np.ones_like(own)
    found, expected = distance(own, golden), formulas(own, golden)
    assert (found.max_absolute, found.max_relative) == (8.0, 8.0)
    assert found.kullback_leibler == pytest.approx(expected["KullbackLeiblerDivergence"], rel=1e-9)
    assert found.own_mean == pytest.approx(-4 / own.size, rel=1e-12)
    own[at] = math.nan
    found = distance(own, golden)
    assert all(map(math.isnan, (found.max_absolute, found.max_relative, found.own_mean, found.kullback_leibler)))


def test_a_cosine_is_never_above_one():
    values = np.float32([0.1, 0.2, 0.3, 0.7] * 9)
    found = [distance(values * np.float32(factor), values).cosine for factor in (0.1, 0.3, 1, 3, 7, 1e3)]
    assert max(found) <= 1
    assert min(found) == pytest.approx(1, rel=1e-6)


def test_arrays_that_are_contiguous_and_unaligned_or_neither():
    raw = np.frombuffer(b"\0" + np.arange(999, dtype=np.float32).tobytes(), np.uint8)[1:].view(np.float32)
    assert not raw.flags.aligned
    aligned = raw.copy()
    assert distance(raw, aligned + 1) == distance(aligned, aligned + 1)
    assert distance(np.repeat(aligned, 2)[::2], aligned + 1) == distance(aligned, aligned + 1)


def test_memory_is_that_of_a_few_blocks():
    """Neither a tensor of any strides nor one of another type is copied as a whole."""
    whole = np.ones((2, 8 * module.BLOCK), np.float32)
    for own in (whole[:, 1:], whole[0].astype(">f4")):
        tracemalloc.start()
        try:
            assert distance(own, own).max_absolute == 0
            assert tracemalloc.get_traced_memory()[1] < own.nbytes
        finally:
            tracemalloc.stop()


def test_complex_numbers_of_double_precision_become_single():
    own = np.array([complex(1e-300, 1e300)])
    golden = np.array([complex(1, 1)])
    assert distance(own, golden).max_absolute == math.inf  # beyond float32, as for real numbers
    assert distance(own, golden).count == 2


def test_no_elements():
    found = metrics(np.empty((0, 2)), np.empty((0, 2)))
    texts = [found[name].text for name in METRICS]
    assert texts == [
        "1.0",
        "NaN",
        "0.000000",
        "0.000000",
        "0.000000",
        "(nan;nan),(nan;nan)",
        "nan",
        "nan",
        "NaN",
        "nan",
    ]
    assert found["MaxAbsoluteError"].note
    assert not found["MeanAbsoluteError"].note


pairs = st.integers(1, 40).flatmap(
    lambda n: st.tuples(*[hnp.arrays(np.float32, n, elements=st.floats(-1e6, 1e6, width=32))] * 2)
)


@given(pairs)
@settings(max_examples=60, deadline=None)
def test_any_finite_pair(pair):
    own, golden = pair
    found, expected = distance(own, golden), formulas(own, golden)
    for name in ("MaxAbsoluteError", "MeanAbsoluteError", "RootMeanSquareError", "MaxRelativeError"):
        assert getattr(found, FIELDS[name]) == pytest.approx(float(expected[name]), rel=1e-6, nan_ok=True)
    assert found.max_absolute >= found.root_mean_square * (1 - 1e-12) >= found.mean_absolute * (1 - 1e-9)
    assert found.kullback_leibler >= -1e-9
    assert not found.cosine > 1


def test_blocks_threads_and_strides_change_no_bit():
    random = np.random.default_rng(3)
    own = random.standard_normal((3, 2 * module.BLOCK + 5)).astype(np.float32)
    golden = own + random.standard_normal(own.shape).astype(np.float32)
    one = distance(own, golden)
    assert distance(own, golden, threads=3) == one
    assert distance(np.asfortranarray(own), golden[:, ::-1][:, ::-1], threads=2) == one
    assert distance(own.astype(">f4"), np.asfortranarray(golden.astype(">f4"))) == one


@pytest.mark.parametrize("special", [None, math.nan, math.inf, -math.inf, 0.0])
def test_every_level_gives_the_same_bits(special):
    random = np.random.default_rng(4)
    own = (random.standard_normal(module.BLOCK + 333) * 1e3).astype(np.float32)
    golden = own[::-1].copy()
    if special is not None:
        own[777] = special
        golden[-5:] = special
    texts = {repr(distance(own, golden, _level=level)) for level in simd_levels()}
    assert len(texts) == 1


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_values_that_are_not_finite(value):
    own = np.linspace(-3, 5, 100, dtype=np.float32)
    golden = own + np.float32(1)
    own[50] = value
    found = distance(own, golden)
    for name, expected in formulas(own, golden).items():
        assert getattr(found, FIELDS[name]) == pytest.approx(expected, nan_ok=True, rel=1e-6), name
    assert math.isnan(found.own_deviation)
    assert distance(golden, own).max_absolute == pytest.approx(found.max_absolute, nan_ok=True)


def test_constants_stay_as_they_are_in_the_divergence():
    """A side whose extrema are equal is not scaled. [spec ge 4.5]"""
    own, golden = np.full(8, 1e30, np.float32), np.arange(8, dtype=np.float32)
    assert distance(own, golden).kullback_leibler == pytest.approx(formulas(own, golden)["KullbackLeiblerDivergence"])


@pytest.mark.parametrize(
    ("mixed", "found"), [(2.0**-52, 2.0**-52), (-(2.0**-52), -(2.0**-52)), (2.0**-53, 0), (-(2.0**-53), 0)]
)
def test_a_divergence_smaller_than_the_rounding_of_one_is_zero(monkeypatch, mixed, found):
    """[spec ge 4.5]"""
    monkeypatch.setattr(module, "_spread", lambda *args: [(2.0, 2.0, 2.0 * mixed)])
    side = SimpleNamespace(low=0.0, high=1.0)
    assert module._divergence(None, None, SimpleNamespace(own=side, golden=side), 1, 0) == found


def test_complex_and_low_precision_numbers():
    own, golden = np.array([1 + 2j, 3 - 1j], np.complex64), np.array([1 + 2j, 3 + 1j], np.complex64)
    assert distance(own, golden).max_absolute == 2
    half = np.array([1.0, 2.0, -3.0], ml_dtypes.bfloat16)
    assert distance(half, half.astype(np.float32)).max_absolute == 0


def test_the_second_pass_is_left_out_where_nobody_asks():
    assert math.isnan(distance([1.0, 2.0], [1.0, 3.0], divergence=False).kullback_leibler)
    assert list(metrics([1.0, 2.0], [1.0, 3.0], ["MeanAbsoluteError"])) == ["MeanAbsoluteError"]


def test_what_is_refused():
    with pytest.raises(BadInputError, match="different shapes"):
        distance(np.ones(2), np.ones(3))
    with pytest.raises(BadInputError, match="did you mean 'MaxAbsoluteError'"):
        metrics([1.0], [1.0], ["MaxAbsolutError"])
    for array in (np.array(["a"]), np.zeros(2, [("a", "i4"), ("b", "i4")]), np.zeros(2, "V4")):
        with pytest.raises(DtypeError, match="no measures of"):
            distance(array, array)
    for threads in (0, 257, "2", True):
        with pytest.raises(BadInputError, match="is not a number of threads"):
            distance([1.0], [1.0], threads=threads)


def test_lists_of_measures():
    assert selected("all") == (METRICS, ())
    assert selected("9, CosineSimilarity,0,Own,10") == (("MeanRelativeError", "CosineSimilarity"), ("Own", "10"))


def test_complex_and_real_numbers_are_compared_as_pairs():
    """A real tensor has zeros beside its numbers."""
    real, other = np.float32([1, 2, 3]), np.complex64([1, 2 + 1j, 3])
    for own, golden in ((real, other), (other, real)):
        found = distance(own, golden)
        assert found.count == 6
        assert found.cosine == pytest.approx(14 / math.sqrt(14 * 15), rel=1e-6)


def test_tiny_tensors_are_zero_below_the_square_of_the_smallest_step():
    smallest = np.finfo(np.float64).eps ** 2
    for size, zero in ((smallest * 0.5, True), (smallest * 2, False), (smallest**1.5, True)):
        found = distance(np.float64([size, 0]), np.float64([1, 0]))
        assert (found.own_zero, found.golden_zero, math.isnan(found.cosine)) == (zero, False, zero)
        found = distance(np.float64([1, 0]), np.float64([size, 0]))
        assert (found.own_zero, found.golden_zero) == (False, zero)


def test_the_euclidean_distance_beside_infinity():
    """Numbers beyond those of float32 are infinite to the measures."""
    golden = np.array([1e200, 1.0])
    assert math.isnan(distance(np.array([1.0, 1.0]), golden).relative_euclidean)
    assert math.isnan(distance(golden, golden).relative_euclidean)
    assert distance(np.array([3.0, 4.0]), np.array([0.0, 4.0])).relative_euclidean == 0.75


def test_a_distance_of_nothing_has_sums_and_no_means():
    """[spec ge 4.5]"""
    nan = math.nan
    wanted = {
        "count": 0, "own_zero": True, "golden_zero": True, "cosine": nan, "max_absolute": nan,
        "accumulated_relative": 0.0, "relative_euclidean": 0.0, "kullback_leibler": 0.0, "own_mean": nan,
        "own_deviation": nan, "golden_mean": nan, "golden_deviation": nan, "mean_absolute": nan,
        "root_mean_square": nan, "max_relative": nan, "mean_relative": nan,
    }  # fmt: skip
    found = asdict(distance([], [], threads=2))
    assert list(found) == list(wanted)
    assert found == {name: pytest.approx(value, abs=0, rel=0, nan_ok=True) for name, value in wanted.items()}


@pytest.mark.parametrize(
    ("mean", "text"),
    [(0.001, "0.001"), (0.0009, "0.000"), (-0.0009, "0.000"), (-0.001, "-0.001"), (0.0015, "0.002"), (7, "7.000")],
)
def test_means_below_a_thousandth_print_as_0(mean, text):
    """The three numbers of float32 add up to four times the mean in double precision."""
    high = np.float32(4 * mean)
    middle = np.float32(4 * mean - float(high))
    low = np.float32(4 * mean - float(high) - float(middle))
    values = np.float32([high, middle, low, 0])
    assert distance(values, values).own_mean == mean
    found = metrics(values, [0.0, 8.0, 0.0, 0.0], ["StandardDeviation"])["StandardDeviation"].text
    assert found.partition(";")[0] == f"({text}"
    assert found.endswith(",(2.000;3.464)")  # the root of 12


def test_deviations_below_a_thousandth_print_as_0():
    for step, text in ((2.0**-9, "0.002"), (2.0**-10, "0.000"), (0.0, "0.000")):
        values = np.array([1 - step, 1 + step])
        assert metrics(values, values, ["StandardDeviation"])["StandardDeviation"].text == (
            f"(1.000;{text}),(1.000;{text})"
        )


def test_a_norm_of_at_most_the_smallest_step_has_no_euclidean_distance():
    """[spec ge 4.5]"""
    step = 2.0**-52
    for golden, found in ((step, 0.0), (2 * step, 1.0), (step / 2, 0.0), (-step, 0.0)):
        assert distance([0.0, 0.0], [golden, 0.0]).relative_euclidean == found
    for size, zero in ((step**2, True), (1.5 * step**2, False)):
        for pair in (([size, 0.0], [1.0, 0.0]), ([1.0, 0.0], [size, 0.0])):
            found = distance(*pair)
            assert (found.own_zero or found.golden_zero, math.isnan(found.cosine)) == (zero, zero)
