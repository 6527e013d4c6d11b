"""What a pair of tensors is to each other, and what is wrong with one, by arithmetic that can be done by hand."""

import hashlib
import math

import numpy as np
import pytest

from dumpsim.analysis.condition import Condition, condition
from dumpsim.analysis.tolerance import Tolerance
from dumpsim.analysis.verdict import Side, Task, judge, judge_arrays

F, INF, NAN = np.float32, math.inf, math.nan
TIGHT = Tolerance(rtol=0.0, atol=0.0)
LOOSE = Tolerance(rtol=0.25, atol=0.5)


def side(path=None, *, format="", dtype="", shape=(), **row):
    return Side(path=path, binary=False, io="", slot=0, format=format, dtype=dtype, shape=shape, row=row)


ARRAYS = [
    # left, right, tolerance, verdict, outside, relative, note
    (F([1, 2]), F([1, 2]), TIGHT, "equal", 0, 0.0, ""),
    (F([1, 0.0]), F([1, -0.0]), TIGHT, "equal", 0, 0.0, ""),
    (F([1, NAN, NAN]), F([1, NAN, NAN]), TIGHT, "equal", 0, 0.0, "2 NaN on both sides"),
    (F([3, 4]), F([3, 5]), TIGHT, "differs", 1, 1 / math.sqrt(34), ""),
    (F([3, 4]), F([3, 6]), LOOSE, "close", 0, 2 / math.sqrt(45), ""),  # 2 = 0.5 + 6 / 4
    (F([3, 4]), F([3, 6.1]), LOOSE, "differs", 1, 2.1 / math.sqrt(9 + 6.1**2), ""),
    (F([3, -4]), F([3, -6]), LOOSE, "close", 0, 2 / math.sqrt(45), ""),
    (F([NAN, 1, INF]), F([0, 1, INF]), LOOSE, "differs", 1, INF, "1 NaN or Inf in A only"),
    (F([0, 1, 2]), F([INF, -INF, NAN]), LOOSE, "differs", 3, INF, "3 NaN or Inf in B only"),
    (F([NAN, 1]), F([1, INF]), LOOSE, "differs", 2, INF, "1 NaN or Inf in A only; 1 NaN or Inf in B only"),
    (F([INF]), F([-INF]), LOOSE, "differs", 1, INF, ""),
    (F([INF, 1]), F([NAN, 1]), LOOSE, "differs", 1, INF, ""),
    (F([1]), F([0]), TIGHT, "differs", 1, INF, ""),
    (np.int64([2**60 + 1]), np.int64([2**60]), TIGHT, "differs", 1, 0.0, ""),
    (np.int64([5, 7]), np.int64([4, 7]), LOOSE, "close", 0, 1 / math.sqrt(65), ""),
    (np.uint8([1]), np.uint8([255]), TIGHT, "differs", 1, 254 / 255, ""),
    (np.int8([-3]), F([-3]), TIGHT, "equal", 0, 0.0, ""),
    (np.array([True, False]), np.array([True, True]), TIGHT, "differs", 1, 1 / math.sqrt(2), ""),
    (np.complex64([1 + 1j]), np.complex64([1 + 2j]), LOOSE, "close", 0, 1 / math.sqrt(5), ""),
    (F([[1, 2]]), F([1, 2]), TIGHT, "equal", 0, 0.0, "(2,) as (1, 2)"),
    (np.zeros((2, 6), F), np.zeros((2, 2, 3), F), TIGHT, "equal", 0, 0.0, "(2, 2, 3) as (2, 6)"),
    (np.zeros((2, 6), F), np.zeros((6, 2), F), TIGHT, "shape", 0, INF, "(2, 6) and (6, 2)"),
    (np.zeros(3, F), np.zeros(4, F), TIGHT, "shape", 0, INF, "(3,) and (4,)"),
    (np.zeros(0, F), np.zeros(0, F), TIGHT, "equal", 0, 0.0, ""),
]  # fmt: skip


@pytest.mark.parametrize(("own", "other", "tolerance", "verdict", "outside", "relative", "note"), ARRAYS)
def test_a_pair_of_arrays(own, other, tolerance, verdict, outside, relative, note):
    found = judge_arrays(own, other, tolerance, equal_nan=True)
    assert (found.verdict, found.outside, found.note, found.count) == (verdict, outside, note, own.size)
    assert found.relative == pytest.approx(relative, rel=1e-6)
    assert found.agrees is (verdict in ("equal", "close"))
    assert found.shapes == (own.shape, other.shape)
    assert found.basis == "values"


def test_a_nan_on_both_sides_is_a_difference_on_demand():
    found = judge_arrays(F([NAN, 1]), F([NAN, 1]), LOOSE, equal_nan=False)
    assert (found.verdict, found.outside, found.note, found.relative) == ("differs", 1, "", INF)


def test_few_elements_may_be_a_little_further_away_unless_a_user_says_how_far():
    scaled = Tolerance(rtol=0.0, atol=0.25, scaled=True)  # of elements around 2: 0.5, and a quarter of them
    golden = np.full(8, 2.0, F)
    for changes, verdict, note in (
        ({0: 2.75}, "close", "few, and at most 1.5 times the tolerance"),
        ({0: 2.75, 1: 7.0}, "close", "few, and at most 10.0 times the tolerance"),
        ({0: 2.75, 1: 7.5}, "differs", ""),
        ({0: 2.75, 1: 2.75, 2: 2.75}, "differs", ""),
        ({0: NAN}, "differs", "1 NaN or Inf in A only"),
        ({0: 2.5}, "close", ""),
    ):
        own = golden.copy()
        for at, value in changes.items():
            own[at] = value
        found = judge_arrays(own, golden, scaled, equal_nan=True)
        assert (found.verdict, found.note) == (verdict, note)
        assert found.tolerance == Tolerance(rtol=0.0, atol=0.5)
    own[0] = 2.75
    assert judge_arrays(own, golden, Tolerance(rtol=0.0, atol=0.5), equal_nan=True).verdict == "differs"


def test_orders_of_axes_are_turned_where_both_are_named(tmp_path):
    x = np.arange(24, dtype=F).reshape(1, 2, 3, 4)
    paths = [str(tmp_path / name) for name in ("a.npy", "b.npy")]
    np.save(paths[0], x)
    for formats, turned, verdict, note in (
        (("NCHW", "NHWC"), x.transpose(0, 2, 3, 1), "equal", "NHWC as NCHW"),
        (("NHWC", "NCHW"), x.transpose(0, 3, 1, 2), "equal", "NCHW as NHWC"),
        (("NCHW", "NCHW"), x, "equal", ""), (("NCHW", "ND"), x, "equal", ""),
    ):  # fmt: skip
        np.save(paths[1], turned)
        sides = [side(path, format=layout) for path, layout in zip(paths, formats, strict=True)]
        found = judge(Task(left=sides[0], right=sides[1], tolerance=TIGHT))
        assert (found.verdict, found.note) == (verdict, note)
        assert found.dtypes == ("float32", "float32")
        assert found.distance is None
    np.save(paths[1], x + 1)
    found = judge(Task(left=side(paths[0], dtype="fp32"), right=side(paths[1]), tolerance=TIGHT))
    assert (found.dtypes, found.distance.max_absolute) == (("fp32", "float32"), 1.0)
    (tmp_path / "b.npy").write_bytes(b"")
    found = judge(Task(left=side(paths[0], dtype="a"), right=side(paths[1], dtype="b"), tolerance=TIGHT))
    assert (found.verdict, found.dtypes) == ("unreadable", ("a", "b"))
    assert "b.npy" in found.note


ROW = {"max": 4.0, "min": -2.0, "avg": 1.0, "l2norm": 6.0}
ROWS = [
    (ROW, ROW, "equal", 0, 0.0, ""),
    (ROW, {**ROW, "max": 4.5}, "close", 0, 0.5 / 4.5, ""),
    (ROW, {**ROW, "max": 9.0}, "differs", 1, 5.0 / 9.0, "max 4 and 9"),
    (ROW, {**ROW, "max": INF}, "differs", 1, INF, "max 4 and inf"),
    ({**ROW, "avg": NAN}, {**ROW, "avg": NAN}, "equal", 0, 0.0, ""),
    ({"md5": "x", **ROW}, {"md5": "x", "max": 0.0}, "equal", 0, 0.0, "the same md5"),
    ({"md5": "x", "sha1": "1"}, {"md5": "", "sha1": "1"}, "equal", 0, 0.0, "the same sha1"),
    ({"md5": "x", **ROW}, {"md5": "y", **ROW}, "close", 0, 0.0, "another md5"),
    ({"md5": "x"}, {"md5": "y"}, "unknown", 0, NAN, "neither values nor common statistics were dumped"),
    ({"max": 1.0}, {"min": 1.0}, "unknown", 0, NAN, "neither values nor common statistics were dumped"),
]


@pytest.mark.parametrize(("own", "other", "verdict", "outside", "relative", "note"), ROWS)
def test_statistics_stand_for_values_that_were_not_dumped(own, other, verdict, outside, relative, note):
    sides = [side(dtype="float32", shape=(4,), **row) for row in (own, other)]
    found = judge(Task(left=sides[0], right=sides[1], tolerance=LOOSE))
    assert (found.verdict, found.basis, found.outside, found.note) == (verdict, "statistics", outside, note)
    if verdict != "close" or relative:
        assert found.relative == pytest.approx(relative, nan_ok=True)


def test_a_file_has_the_statistics_of_its_values(tmp_path):
    x = F([4, -2, 1, 1])
    np.save(tmp_path / "x.npy", x)
    row = {"max": 4.0, "min": -2.0, "avg": 1.0, "l2norm": math.sqrt(22)}
    task = Task(left=side(str(tmp_path / "x.npy")), right=side(dtype="float32", shape=(4,), **row), tolerance=LOOSE)
    found = judge(task)
    assert (found.verdict, found.count, found.dtypes, found.shapes) == (
        "close" if found.relative else "equal", 4, ("float32", "float32"), ((4,), (4,))
    )  # fmt: skip
    assert found.relative < 1e-6
    digest = hashlib.md5(x.tobytes(), usedforsecurity=False).hexdigest()
    other = judge(Task(left=side(dtype="float32", md5=digest), right=side(dtype="int32", md5=digest), tolerance=LOOSE))
    assert other.verdict == "unknown"  # equal bytes of another type are other values


@pytest.mark.parametrize(
    ("row", "dtype", "shape", "found"),
    [
        ({"nan": 2, "positive_inf": 3, "negative_inf": 5}, "float32", (9,), (2, 3, 5, True)),
        ({"nan": 0, "positive_inf": 0, "negative_inf": 0, "max": INF}, "float32", (9,), (0, 0, 0, True)),
        ({"nan": 2, "positive_inf": 3}, "float32", (9,), (0, 0, 0, False)),
        ({"max": INF, "min": 1.0}, "float32", (9,), (0, -1, 0, True)),
        ({"max": 1.0, "min": -INF, "avg": -INF}, "float32", (9,), (0, 0, -1, True)),
        ({"max": 1.0, "avg": NAN}, "float32", (9,), (-1, 0, 0, True)),
        ({"avg": INF}, "float32", (9,), (0, -1, 0, True)), ({"avg": -INF}, "float32", (9,), (0, 0, -1, True)),
        ({"max": -INF, "min": INF}, "float32", (9,), (0, 0, 0, True)),
        ({"l2norm": NAN}, "float32", (9,), (-1, 0, 0, True)), ({}, "float32", (9,), (0, 0, 0, False)),
        ({"max": NAN}, "int32", (9,), (0, 0, 0, True)), ({"max": NAN}, "uint8", (9,), (0, 0, 0, True)),
        ({"max": NAN}, "bool", (9,), (0, 0, 0, True)), ({}, "float32", (3, 0), (0, 0, 0, True)),
    ],
)  # fmt: skip
def test_what_a_row_says_of_nan_and_infinities(row, dtype, shape, found):
    one = condition(side(dtype=dtype, shape=shape, **row))
    assert (one.nan, one.positive_inf, one.negative_inf, one.known, one.error) == (*found, "")
    assert one.bad is any(found[:3])


def test_nan_and_infinities_are_counted_in_files(tmp_path):
    path = str(tmp_path / "x.npy")
    for array, found in (
        (F([1, NAN, INF, INF, -INF, -INF, -INF]), (1, 2, 3)), (np.complex64([complex(NAN, INF), 1]), (1, 1, 0)),
        (np.int8([1]), (0, 0, 0)), (np.array(-INF), (0, 0, 1)),
    ):  # fmt: skip
        np.save(path, array)
        assert condition(side(path)) == Condition(nan=found[0], positive_inf=found[1], negative_inf=found[2])
    (tmp_path / "x.npy").write_bytes(b"")
    assert condition(side(path, dtype="int8")) == Condition()  # finite unread
    assert condition(side(path, nan=1, positive_inf=0, negative_inf=0)) == Condition(nan=1)
    assert "x.npy" in condition(side(path)).error
    assert not Condition(error="x").bad
