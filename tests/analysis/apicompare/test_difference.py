"""The numbers of a pair of arrays by numpy's formulas, and their texts."""

import math

import ml_dtypes
import numpy as np
import pytest

from dumpsim.analysis.apicompare.difference import compare_arrays, mean_max_min, percent, truncated
from dumpsim.analysis.tolerance import Tolerance

LOOSE = Tolerance(rtol=0.25, atol=0.5)
KINDS = [np.float16, ml_dtypes.bfloat16, np.float32, np.float64, np.int8, np.uint8, np.int64, np.bool_]


@pytest.mark.parametrize("count", [1, 2, 31, 32, 33, 64, 65, 1000, 4097])
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: np.dtype(kind).name)
def test_numbers_of_a_pair_are_those_of_the_formulas(kind, count):
    random = np.random.default_rng(count)
    one, other = ((random.standard_normal(count) * 4).astype(kind) for _ in range(2))
    one[0] = 1
    other[0] = 0  # they differ
    found = compare_arrays(one, other, LOOSE)
    x, y = one.astype(np.float64), other.astype(np.float64)
    apart = np.abs(x - y)
    assert found.ratio == np.isclose(x, y, rtol=0.25, atol=0.5).mean()
    assert found.mean == pytest.approx(apart[x != y].mean(), rel=1e-4)
    assert found.max == pytest.approx(apart.max(), rel=1e-4)
    if np.linalg.norm(y):
        assert found.cosine == pytest.approx(x @ y / np.linalg.norm(x) / np.linalg.norm(y), rel=1e-4, abs=1e-6)
    else:
        assert math.isnan(found.cosine)
    assert (found.same_shape, found.outcome.count) == (True, count)
    assert mean_max_min(one) == pytest.approx((x.mean(), x.max(), x.min()), rel=1e-4)


def test_whole_numbers_are_compared_without_overflow_and_types_of_two_sides_together():
    found = compare_arrays(np.uint8([0, 200]), np.uint8([255, 200]), LOOSE)
    assert (found.max, found.mean, found.ratio) == (255, 255, 0.5)
    found = compare_arrays(np.float16([60000]), np.float16([-60000]), LOOSE)
    assert found.max == 120000
    assert compare_arrays(np.int64([2**62]), np.int64([-(2**62)]), LOOSE).max == 2.0**63
    assert mean_max_min(np.int64([2**62, 2**62])) == (2.0**62, 2.0**62, 2.0**62)
    assert compare_arrays(np.float64([1 + 1e-10]), np.float64([1]), LOOSE).max == pytest.approx(1e-10, rel=1e-5)
    found = compare_arrays(np.float32([3, 4]), np.float64([4, 3]), LOOSE)
    assert found.cosine == pytest.approx(24 / 25, rel=1e-12)


@pytest.mark.parametrize(
    ("one", "other", "cosine", "ratio"),
    [
        ([0.0, 0.0], [0.0, 0.0], 1.0, 1.0), ([0.0, 0.0], [9.0, 0.0], math.nan, 0.5),
        ([9.0, 0.0], [0.0, 0.0], math.nan, 0.5),
        ([1e-30, 0.0], [0.0, 1e-30], 1.0, 1.0),  # of float32: their squares are 0
        ([3.0, 4.0], [-3.0, -4.0], -1.0, 0.0), ([1.0, 2.0], [1.0, 2.0], 1.0, 1.0),
        ([math.nan, 1.0], [math.nan, 1.0], math.nan, 0.5), ([math.inf, 1.0], [math.inf, 1.0], 1.0, 1.0),
    ],
)  # fmt: skip
def test_cosines_of_nothing_and_of_opposites(one, other, cosine, ratio):
    found = compare_arrays(np.float32(one), np.float32(other), LOOSE)
    assert found.cosine == pytest.approx(cosine, nan_ok=True)
    assert found.ratio == ratio


def test_equal_pairs_have_no_difference_and_pairs_of_other_shapes_no_numbers():
    found = compare_arrays(np.arange(3), np.arange(3), LOOSE)
    assert (found.ratio, found.cosine, found.mean, found.max, found.same_shape) == (1.0, 1.0, 0.0, 0.0, True)
    found = compare_arrays(np.arange(3), np.arange(4), LOOSE)
    assert (found.ratio, found.same_shape, found.outcome.agrees) == (0.0, False, False)
    assert all(math.isnan(number) for number in (found.cosine, found.mean, found.max))
    nan = np.float32([math.nan])
    assert compare_arrays(nan, nan, LOOSE, equal_nan=True).outcome.agrees
    assert not compare_arrays(nan, nan, LOOSE).outcome.agrees


def test_complex_numbers_are_pairs():
    found = compare_arrays(np.complex64([1 + 2j]), np.complex64([1 + 4j]), LOOSE)
    assert (found.max, found.mean) == (2, 2)  # of the part that differs
    assert found.cosine == pytest.approx((1 + 8) / math.sqrt(5 * 17))
    assert mean_max_min(np.complex64([1 + 2j])) == (1.5, 2, 1)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.123456789, "0.12345"), (-0.123456789, "-0.12345"), (0.000009, "0.00000"), (2, "2.00000"),
        (1e305, f"{1e305:.5f}"), (math.inf, "inf"), (-math.inf, "-inf"), (math.nan, "nan"), (np.float32(3e38), None),
    ],
)  # fmt: skip
def test_numbers_are_cut_after_five_digits(value, text):
    if isinstance(value, np.float32):  # too large for the number type: as it is
        text = f"{float(value):.5f}"
    assert truncated(value) == text


@pytest.mark.parametrize(
    ("ratio", "text"), [(1.0, "100.00%"), (0.99999, "99.99%"), (0.12345, "12.34%"), (0.0, "0.00%"), (2 / 3, "66.66%")]
)
def test_ratios_are_cut_after_a_hundredth_of_a_percent(ratio, text):
    assert percent(ratio) == text
