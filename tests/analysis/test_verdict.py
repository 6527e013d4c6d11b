"""What a pair of tensors is to each other, and what is wrong with one, by arithmetic that can be done by hand."""

import hashlib
import math

import numpy as np
import pytest

from dumpsim.analysis.condition import Condition, condition
from dumpsim.analysis.tolerance import Tolerance
from dumpsim.analysis.verdict import Side, Task, judge, judge_arrays
from dumpsim.tensor.layout import to_device

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


BIG = (1 << 18) + 5  # more than a block


def test_a_tensor_of_several_blocks_is_judged_as_a_whole():
    random = np.random.default_rng(4)
    golden = random.normal(size=BIG).astype(F)
    own = golden + F(0.25)
    own[[3, -1]] += F(4)  # in the first and in the last block
    own[7], own[8], own[-2], golden[9], golden[-3] = NAN, INF, INF, NAN, -INF
    found = judge_arrays(own, golden, LOOSE, equal_nan=True)
    x, y = own.astype(float), golden.astype(float)
    both = np.isfinite(x) & np.isfinite(y)
    with np.errstate(all="ignore"):
        far = ~both | (np.abs(x - y) > 0.5 + 0.25 * np.abs(y))
    assert (found.verdict, found.outside, found.count) == ("differs", int(far.sum()), BIG)
    assert found.note == "3 NaN or Inf in A only; 2 NaN or Inf in B only"
    assert found.relative == INF
    own[~both] = golden[~both] = 1
    found = judge_arrays(own, golden, LOOSE, equal_nan=True)
    x, y = own.astype(float), golden.astype(float)
    assert (found.verdict, found.outside) == ("differs", 2)
    assert found.relative == pytest.approx(np.linalg.norm(x - y) / np.linalg.norm(y), rel=1e-9)
    whole = np.arange(BIG)
    assert judge_arrays(whole, whole.copy(), TIGHT, equal_nan=True).verdict == "equal"
    other = whole.copy()
    other[-1] -= 1
    assert judge_arrays(whole, other, TIGHT, equal_nan=True).outside == 1
    many = np.full(BIG, NAN, F)
    assert judge_arrays(many, many.copy(), TIGHT, equal_nan=True).note == f"{BIG} NaN on both sides"


@pytest.mark.parametrize(
    "golden",
    [
        [1, 2, 3, 10], [1, 2, 3], [-1, -2, 3, 4, 100], [0, 0, 5, 7], [NAN, INF, 4], [0, 0], [], [1e9, 2, 3, 4],
        [-1e9] * 3 + [2] * 4, [2e-9, 3e-9], list(range(100)),
    ],
)  # fmt: skip
def test_a_scaled_tolerance_is_that_of_the_median_of_what_is_not_zero(golden):
    golden = np.array(golden, F)
    sizes = np.abs(golden.astype(float))
    sizes = sizes[np.isfinite(sizes) & (sizes > 0)]
    median = float(np.median(sizes)) if sizes.size else 1.0
    found = judge_arrays(golden + F(1), golden, Tolerance(rtol=0.5, atol=0.25, scaled=True), equal_nan=True)
    if golden.size:
        assert found.tolerance.atol == pytest.approx(0.25 * max(median, 1e-5), rel=1e-9)
        assert (found.tolerance.rtol, found.tolerance.scaled) == (0.5, False)
    else:
        assert (found.verdict, found.tolerance) == ("equal", None)


@pytest.mark.parametrize(("size", "step"), [(65535, 1), (131072, 3), (196608, 3), (262144, 5)])
def test_the_size_of_a_large_tensor_is_that_of_a_sample(size, step):
    """Every third or fifth element: an odd step does not follow the rows of an even width."""
    golden = np.arange(1, size + 1, dtype=np.float64)
    found = judge_arrays(golden + 1, golden, Tolerance(rtol=0.0, atol=0.25, scaled=True), equal_nan=True)
    assert found.tolerance.atol == 0.25 * np.median(golden[::step])


def test_masks_do_not_count_in_a_relative_difference():
    """Elements of more than a thousand times the typical size, 2: the golden side without them has 2, 2, 1999."""
    golden = F([2, 2, -1e9, 1999, 2001])
    own = golden + F([1, 0, 0, 0, 0])
    found = judge_arrays(own, golden, TIGHT, equal_nan=True)
    size = float(np.median(np.abs(golden)))
    kept = golden[np.abs(golden) <= 1000 * size].astype(float)
    assert found.relative == pytest.approx(1 / np.linalg.norm(kept), rel=1e-6)
    masks = F([-1e9, -1e9, 1, 1, 1])
    found = judge_arrays(masks + F([0, 0, 1, 0, 0]), masks, TIGHT, equal_nan=True)
    assert found.relative == pytest.approx(1 / math.sqrt(3), rel=1e-6)


def test_measures_are_those_of_unequal_pairs_that_are_asked_for(tmp_path):
    paths = [str(tmp_path / name) for name in ("a.npy", "b.npy")]
    for own, other, known in (
        (F([1, 2]), F([1, 3]), True), (F([1, 2]), F([1, 2]), False), (np.int8([1]), np.int8([2]), True),
        (np.array([True]), np.array([False]), True), (np.complex64([1]), np.complex64([2]), True),
    ):  # fmt: skip
        np.save(paths[0], own)
        np.save(paths[1], other)
        sides = [side(path) for path in paths]
        assert (judge(Task(left=sides[0], right=sides[1], tolerance=LOOSE)).distance is not None) is known
        assert judge(Task(left=sides[0], right=sides[1], tolerance=LOOSE, measures=False)).distance is None


def statistics_of(own, other, tolerance=LOOSE, equal_nan=True, shapes=((4,), (4,)), dtypes=("float32", "float32")):
    sides = [
        side(dtype=kind, shape=shape, **row) for row, shape, kind in zip((own, other), shapes, dtypes, strict=True)
    ]
    return judge(Task(left=sides[0], right=sides[1], tolerance=tolerance, equal_nan=equal_nan))


def test_rows_of_padded_tensors_say_which_is_which():
    own, other = {"max": 3.0, "min": 1.0, "avg": 2.0}, {"max": 3.0, "min": 0.0, "avg": 2.0 * 6 / 32}
    shapes = (2, 3, 1, 1), (2, 1, 1, 1, 16)
    note = "(2, 3, 1, 1) is (2, 1, 1, 1, 16) on the device"
    found = statistics_of(own, other, TIGHT, shapes=shapes)
    assert (found.verdict, found.note, found.relative) == ("equal", note, 0.0)
    found = statistics_of(other, own, TIGHT, shapes=shapes[::-1])
    assert (found.verdict, found.note) == ("equal", note)
    assert (found.shapes, found.dtypes) == (shapes[::-1], ("float32", "float32"))
    found = statistics_of({**own, "max": 9.0}, other, TIGHT, shapes=shapes)
    assert (found.verdict, found.outside, found.note) == ("differs", 1, f"{note}, max 9 and 3")
    found = statistics_of(own, other, shapes=((2, 3), (3, 3)))
    assert (found.verdict, found.relative, found.note) == ("shape", INF, "(2, 3) and (3, 3)")
    assert statistics_of(own, own, shapes=((), (3, 3))).verdict == "equal"  # a shape that the dump does not name
    assert statistics_of(own, own, shapes=((2, 3), (6,))).verdict == "equal"


def test_digests_decide_for_one_type_alone():
    one, other = {"md5": "x", "sha1": "s", **ROW}, {"md5": "x", "sha1": "t", "max": 0.0}
    found = statistics_of(one, other)
    assert (found.verdict, found.count, found.relative, found.note) == ("equal", 1, 0.0, "the same md5")
    found = statistics_of(one, other, dtypes=("float32", "float16"))
    assert (found.verdict, found.note) == ("differs", "max 4 and 0")
    found = statistics_of({"md5": "x", **ROW}, {"md5": "y", **ROW, "max": 9.0})
    assert (found.verdict, found.note, found.count) == ("differs", "max 4 and 9", 4)
    found = statistics_of({"md5": "x", "sha1": "s", **ROW}, {"md5": "y", "sha1": "t", **ROW})
    assert (found.verdict, found.note, found.outside) == ("close", "another md5, another sha1", 0)


def test_nan_in_rows_is_a_difference_on_demand():
    row = {**ROW, "avg": NAN}
    assert statistics_of(row, row).verdict == "equal"
    found = statistics_of(row, row, equal_nan=False)
    assert (found.verdict, found.outside, found.count, found.note) == ("differs", 1, 4, "avg nan and nan")
    found = statistics_of(row, {**row, "max": 99.0}, equal_nan=False)
    assert (found.outside, found.note) == (2, "max 4 and 99, avg nan and nan")


@pytest.mark.parametrize(
    ("own", "other", "relative"),
    [
        ({"l2norm": 8.0}, {"l2norm": 6.0}, 2 / 6), ({"max": 4.0, "l2norm": 8.0}, {"max": 4.0, "l2norm": 6.0}, 1 / 4),
        ({"max": 4.0, "min": -9.0}, {"max": 4.0, "min": -8.0}, 1 / 8), ({"max": 1.0}, {"max": 0.0}, INF),
        ({"max": 1.0, "nan": 2}, {"max": 1.0, "nan": 1}, 0.0), ({"nan": 2}, {"nan": 1}, NAN),
        ({"max": INF, "min": 1.0}, {"max": INF, "min": 2.0}, 1 / 2), ({"max": INF}, {"max": 1.0}, INF),
        ({"max": 1.0}, {"max": NAN}, INF), ({"avg": 3.0, "max": 4.0}, {"avg": 2.0, "max": 4.0}, 1 / 4),
    ],
)  # fmt: skip
def test_a_relative_difference_of_rows(own, other, relative):
    """Four elements: a norm of 8 is 4 for each of them."""
    assert statistics_of(own, other).relative == pytest.approx(relative, nan_ok=True)


@pytest.mark.parametrize(("norm", "atol"), [(1.0, 0.125), (2.0, 0.25), (8.0, 0.25)])
def test_rows_are_scaled_down_alone(norm, atol):
    """Four elements of norm 1 are of size 1/2; for larger elements RTOL is enough."""
    found = statistics_of({"l2norm": norm + 1}, {"l2norm": norm}, Tolerance(rtol=0.0, atol=0.25, scaled=True))
    assert found.tolerance == Tolerance(rtol=0.0, atol=atol)


def blocked(x, c0):
    """NC1HWC0 by numpy alone."""
    n, c, h, w = x.shape
    wide = np.zeros((n, -(-c // c0) * c0, h, w), x.dtype)
    wide[:, :c] = x
    return np.ascontiguousarray(wide.reshape(n, -1, c0, h, w).transpose(0, 1, 3, 4, 2))


def fractal(x):
    """FRACTAL_NZ by numpy alone."""
    rows, columns = (-(-extent // 16) * 16 for extent in x.shape)
    wide = np.zeros((rows, columns), x.dtype)
    wide[: x.shape[0], : x.shape[1]] = x
    return np.ascontiguousarray(wide.reshape(rows // 16, 16, columns // 16, 16).transpose(2, 0, 1, 3))


X4 = np.arange(1, 2 * 19 * 3 * 5 + 1, dtype=F).reshape(2, 19, 3, 5)
X2 = np.arange(1, 20 * 40 + 1, dtype=F).reshape(20, 40)


@pytest.mark.parametrize(
    ("layout", "device", "host", "fits"),
    [
        ("NC1HWC0", blocked(X4, 16), X4, True), ("NC1HWC0", blocked(X4, 32), X4, True),
        ("NC1HWC0", blocked(X4, 8), X4, True), ("FRACTAL_NZ", fractal(X2), X2, True),
        ("NC1HWC0", blocked(X4, 16)[:, :1], X4, False), ("NC1HWC0", np.float32(7), X4, False),
        ("FRACTAL_NZ", fractal(X2), np.ones((40, 40), F), False),
        ("ND", fractal(X2), X2, False), ("", fractal(X2), X2, False),
        ("FRACTAL_NZ", fractal(X2), np.float32(1), False), ("NCHW", blocked(X4, 16), X4, False),
    ],
)  # fmt: skip
def test_a_layout_of_the_device_is_compared_as_on_the_host(tmp_path, layout, device, host, fits):
    paths = [str(tmp_path / name) for name in ("device.npy", "host.npy")]
    for path, array in zip(paths, (device, host), strict=True):
        np.save(path, array)
    there, here = side(paths[0], format=layout), side(paths[1])
    shapes = device.shape, host.shape
    for left, right, both in ((there, here, shapes), (here, there, shapes[::-1])):
        found = judge(Task(left=left, right=right, tolerance=TIGHT))
        assert (found.verdict, found.shapes) == ("equal" if fits else "shape", both)
        assert found.note == (f"{layout} as on the host" if fits else f"{both[0]} and {both[1]}")
        assert found.count == (host.size if fits else np.load(left.path).size)
    if fits:
        np.save(paths[1], host + 1)
        found = judge(Task(left=there, right=here, tolerance=TIGHT))
        assert (found.verdict, found.outside, found.distance.max_absolute) == ("differs", host.size, 1.0)


def test_weights_of_an_lstm_are_in_the_layout_of_ge_alone(tmp_path):
    """MindSpore refuses to convert it."""
    x = np.arange(1, 33 * 20 + 1, dtype=np.float16).reshape(33, 20)
    paths = [str(tmp_path / name) for name in ("device.npy", "host.npy")]
    np.save(paths[0], to_device(x, "FRACTAL_ZN_LSTM", dialect="ge"))
    np.save(paths[1], x)
    found = judge(Task(left=side(paths[0], format="FRACTAL_ZN_LSTM"), right=side(paths[1]), tolerance=TIGHT))
    assert (found.verdict, found.note) == ("equal", "FRACTAL_ZN_LSTM as on the host")
