"""What differs between two trees, in the words that a user reads."""

import numpy as np
import pytest

from dumpsim.testing.neutral import NeutralTree
from dumpsim.testing.treediff import (
    Tolerance,
    _arrays,
    _graph_text,
    _paired,
    _same_cell,
    _text,
    tree_differences,
)

INF, NAN = float("inf"), float("nan")
EXACT = Tolerance()


@pytest.mark.parametrize(
    ("value", "golden", "rtol", "atol", "close"),
    [
        (1.0, 1.0, 0, 0, True), (NAN, NAN, 0, 0, True), (NAN, 1.0, 0, INF, False), (1.0, NAN, 0, INF, False),
        (INF, INF, 0, 0, True), (INF, -INF, 0, INF, False), (INF, 1.0, 0, INF, False), (1.0, INF, 1, INF, False),
        (1.5, 1.0, 0, 0.5, True), (1.51, 1.0, 0, 0.5, False), (-3.0, -2.0, 0.5, 0, True), (-2.0, -3.5, 0.5, 0, True),
        (INF, -INF, 1, 0, False), (-INF, INF, 1, 1, False), (1.0, -INF, 1, 0, False), (-INF, 1.0, 1, 0, False),
        (NAN, INF, 1, 0, False), (3.0, 2.0, 0.25, 0.5, True), (3.01, 2.0, 0.25, 0.5, False), (1e-9, 0.0, 9, 0, False),
    ],
)  # fmt: skip
def test_numbers_are_close_as_numpy_has_it(value, golden, rtol, atol, close):
    tolerance = Tolerance(rtol=rtol, atol=atol)
    assert tolerance.close(value, golden) is close
    assert tolerance.exact is (rtol == 0 and atol == 0)
    if np.isfinite(atol):
        assert bool(np.isclose(value, golden, rtol=rtol, atol=atol, equal_nan=True)) is close
        own, other = np.array([value, 7.0]), np.array([golden, 7.0])
        assert (list(_arrays("x", own, other, tolerance)) == []) is close


F = np.float32
TENSORS = [
    (F([1, 2]), F([1, 2]), EXACT, None),
    (F([1, 2]), np.array([1.0, 2.0]), EXACT, "x: float64[2] -> float32[2]"),
    (F([[1, 2]]), F([1, 2]), EXACT, "x: float32[2] -> float32[1, 2]"),
    (F([[1, 2], [3, 5]]), F([[1, 2.5], [3, 4]]), EXACT,
     "x: float32[2, 2]: 2 of 4 elements differ, most at [1, 1]: 4.0 -> 5.0 (by 1, relative 0.25)"),
    (F([1, 0]), F([0, 0]), EXACT, "x: float32[2]: 1 of 2 elements differ, most at [0]: 0.0 -> 1.0 (by 1)"),
    (F([1, NAN, INF]), F([2, 3, INF]), EXACT,
     "x: float32[3]: 2 of 3 elements differ, most at [1]: 3.0 -> nan; NaN: 0 -> 1"),
    (F([1, -INF]), F([2, INF]), EXACT, "x: float32[2]: 2 of 2 elements differ, most at [1]: inf -> -inf"),
    (F([1, 4]), F([INF, INF]), EXACT,
     "x: float32[2]: 2 of 2 elements differ, most at [0]: inf -> 1.0; infinities: 2 -> 0"),
    (F([0.0]), F([-0.0]), EXACT, "x: float32[1]: the signs of zeros or the bits of NaN differ"),
    (F([0.0]), F([-0.0]), Tolerance(atol=1e-9), None),
    (F([1, 2.5]), F([1, 2]), Tolerance(atol=0.5), None),
    (F([1, 2.5]), F([1, 2]), Tolerance(rtol=0.2),
     "x: float32[2]: 1 of 2 elements differ, most at [1]: 2.0 -> 2.5 (by 0.5, relative 0.25)"),
    (np.complex64([1 + 1j]), np.complex64([1 - 2j]), EXACT,
     "x: complex64[1]: 1 of 1 elements differ, most at [0]: (1-2j) -> (1+1j) (by 3, relative 1.34)"),
    (np.int64([2**53 + 1]), np.int64([2**53]), EXACT,  # doubles do not tell them apart
     "x: int64[1]: 1 of 1 elements differ, most at [0]: 9007199254740992 -> 9007199254740993 (by 0, relative 0)"),
    (np.array([True, False]), np.array([True, True]), EXACT,
     "x: bool[2]: 1 of 2 elements differ, most at [1]: True -> False (by 1, relative 1)"),
    (np.array([b"ab"]), np.array([b"ac"]), EXACT, "x: |S2[1]: its bytes differ"),
    (np.array([b"ab"]), np.array([b"ab"]), EXACT, None),
]  # fmt: skip


@pytest.mark.parametrize(("own", "golden", "tolerance", "line"), TENSORS)
def test_the_difference_of_two_tensors_is_one_line(own, golden, tolerance, line):
    assert list(_arrays("x", own, golden, tolerance)) == ([] if line is None else [line])


@pytest.mark.parametrize(
    ("title", "cell", "golden", "tolerance", "same"),
    [
        ("Max Value", "1", "1", EXACT, True), ("Max Value", "1", "1.0", EXACT, False),
        ("Max Value", "1", "1.0", Tolerance(atol=0.1), True), ("Max Value", "1.2", "1.0", Tolerance(atol=0.1), False),
        ("Max Value", "one", "1.0", Tolerance(atol=9), False), ("Timestamp", "1", "2", EXACT, False),
        ("Timestamp", "1", "2", Tolerance(stamps=False), True), ("Timestamp", "1", "2", Tolerance(atol=9), False),
        ("MD5", "a", "b", EXACT, False), ("MD5", "a", "b", Tolerance(rtol=1e-9), True),
        ("Count", "3", "4", Tolerance(atol=9), False), ("NaN Count", "3", "4", Tolerance(atol=9), False),
        ("Op Type", "Add", "Sub", Tolerance(atol=9, stamps=False), False),
    ],
)  # fmt: skip
def test_a_cell_has_the_tolerance_of_its_column(title, cell, golden, tolerance, same):
    assert _same_cell(title, cell, golden, tolerance) is same


def test_files_are_pairs_up_to_their_stamps():
    own = ["A.1700000000000001.npy", "A.1700000000000005.npy", "A.1700000000000009.npy", "b", "A.170000000000.npy"]
    golden = ["A.1700000000000002.npy", "A.1700000000000005.npy", "c", "A.170000000001.npy"]
    with_stamps = _paired(own, golden, stamps=True)
    assert with_stamps == (
        [(own[0], golden[0]), (own[1], golden[1])], ["c", golden[3]], [own[2], "b", own[4]]
    )  # fmt: skip
    without = _paired(own[:2], golden[:2], stamps=False)
    assert without == ([(own[0], golden[0]), (own[1], golden[1])], [], [])
    assert _paired(own[1:2], golden[:2], stamps=False) == ([(own[1], golden[0])], [golden[1]], [])
    assert _paired(own[:2], golden[1:2], stamps=True) == ([(own[1], golden[1])], [], [own[0]])


HEAD = "Op Type,Op Name,Task ID,Stream ID,Timestamp,IO,Slot,Data Size,Data Type,Shape"


def test_rows_and_cells_of_statistics_are_named():
    def row(op, slot=0, stamp=1, size=8, *more):
        return ",".join(map(str, [*op.split(), 0, 0, stamp, "output", slot, size, "float32", '"(2)"', *more]))

    golden = "\n".join([f"{HEAD},Max Value,MD5", row("Add a", 0, 1, 8, 5, "x"), row("Add a", 0, 2, 8, 6, "y"),
                        row("Mul b", 1, 3, 8, 7, "z")])  # fmt: skip
    own = "\n".join([f"{HEAD},Max Value,L2Norm Value", row("Add a", 0, 1, 8, 5.5, 1), row("Sub c", 0, 2, 8, 6, 1),
                     row("Mul b", 1, 4, 9, 7, 1)])  # fmt: skip
    assert list(_text("s.csv", own, golden, EXACT)) == [
        "s.csv: column MD5: missing", "s.csv: column L2Norm Value: extra",
        "s.csv: row Add a output.0 (number 2): missing", "s.csv: row Sub c output.0: extra",
        "s.csv: row Add a output.0: Max Value 5 -> 5.5",
        "s.csv: row Mul b output.1: Timestamp 3 -> 4; Data Size 8 -> 9",
    ]  # fmt: skip
    loose = Tolerance(atol=1, stamps=False)
    assert [line for line in _text("s.csv", own, golden, loose) if "->" in line] == [
        "s.csv: row Mul b output.1: Data Size 8 -> 9"
    ]
    assert list(_text("s.csv", golden + "\r\n", golden + "\n", EXACT)) == []


def test_text_with_the_titles_of_statistics_on_one_side_is_compared_by_line():
    table = f"{HEAD}\nAdd,a,0,0,1,output,0\n"
    for own, golden in (("", table), (table, ""), ("a,b\n", table), (table, "a,b\n")):
        (text,) = _text("s.csv", own, golden, EXACT)
        assert text.startswith("--- golden/s.csv\n+++ dump/s.csv\n@@ ")


def test_a_row_may_end_anywhere():
    row = ["Add", "a", "0", "0", "1", "output", "0", "8", "float32", "2"]
    for length in range(len(row) + 1):
        (line,) = _text("s.csv", HEAD, f"{HEAD}\n{','.join(row[:length])}\n", EXACT)
        names = dict.fromkeys((0, 1, 5, 6), "") | dict(enumerate(row[:length]))
        assert line == f"s.csv: row {names[0]} {names[1]} {names[5]}.{names[6]}: missing"


def test_rows_that_are_cut_are_named_by_what_they_have():
    golden = "\n".join([HEAD, "Add,a", "Add,a", "Sub,b,0,0,1,output,3"])
    assert list(_text("s.csv", f"{HEAD}\n", golden, EXACT)) == [
        "s.csv: row Add a .: missing", "s.csv: row Add a . (number 2): missing", "s.csv: row Sub b output.3: missing"
    ]  # fmt: skip


def test_differences_are_in_the_order_of_files_and_those_of_a_file_as_they_were_found(tmp_path):
    trees = []
    for name, files in (
        ("own", {"b.csv": f"{HEAD}\nSub,c,0,0,1,output,0\n", "a.x": "2", "d.npy": None, "e.x": ""}),
        ("golden", {"b.csv": f"{HEAD}\nSub,a,0,0,1,output,0\nAdd,b,0,0,1,input,1\n", "a.x": "1", "d.npy": None}),
    ):
        (tmp_path / name).mkdir()
        for file, text in files.items():
            if text is None:
                np.save(tmp_path / name / file, F([len(name), 1]))
            else:
                (tmp_path / name / file).write_text(text)
        trees.append(NeutralTree(tmp_path / name))
    own, golden = trees
    assert tree_differences(own, golden, EXACT) == [
        "a.x: bytes differ from offset 0 on",
        "b.csv: row Sub a output.0: missing", "b.csv: row Add b input.1: missing", "b.csv: row Sub c output.0: extra",
        "d.npy: float32[2]: 1 of 2 elements differ, most at [0]: 6.0 -> 3.0 (by 3, relative 0.5)",
        "e.x: extra",
    ]  # fmt: skip
    assert tree_differences(golden, golden, EXACT) == []
    (tmp_path / "own" / "d.npy").write_bytes(b"no array")
    (damaged,) = [line for line in tree_differences(own, golden, EXACT) if line.startswith("d.npy: ")]
    assert "d.npy" in damaged.removeprefix("d.npy: ")


def test_stamps_that_moved_are_counted_and_the_first_one_is_shown(tmp_path):
    trees = []
    for name, stamps in (("own", (1, 2, 3)), ("golden", (1, 5, 6))):
        (tmp_path / name).mkdir()
        for stamp in stamps:
            (tmp_path / name / f"A.170000000000000{stamp}.x").write_text("same")
        trees.append(NeutralTree(tmp_path / name))
    moved = "with other time stamps: A.1700000000000005.x -> A.1700000000000002.x"
    assert tree_differences(*trees, EXACT) == [f"2 files {moved} ..."]
    assert tree_differences(*trees, Tolerance(stamps=False)) == []
    for name in ("own/A.1700000000000003.x", "golden/A.1700000000000006.x"):
        (tmp_path / name).unlink()
    assert tree_differences(*trees, EXACT) == [f"1 file {moved}"]


def test_bytes_that_stand_for_the_same_values_are_told(tmp_path):
    trees = []
    for name, version in (("own", (1, 0)), ("golden", (2, 0))):
        (tmp_path / name).mkdir()
        with open(tmp_path / name / "a.npy", "wb") as file:
            np.lib.format.write_array(file, F([1, 2]), version=version)
        trees.append(NeutralTree(tmp_path / name))
    assert tree_differences(*trees, EXACT) == ["a.npy: its bytes differ, its values are equal"]
    for tolerance in (Tolerance(atol=1e-9), Tolerance(stamps=False)):
        assert tree_differences(*trees, tolerance) == []


def test_a_graph_that_is_none_is_shown_in_groups_of_16_bytes():
    """A field of 127 bytes that has three."""
    assert _graph_text(b"\x0a\x7f" + bytes(range(19))) == "0a7f000102 030405060708090a0b0c0d0e0f101112"


def test_other_text_is_compared_by_line():
    assert list(_text("a.json", "1\n2\n3\n4\n", "1\n2\n5\n4\n", EXACT)) == [
        "--- golden/a.json\n+++ dump/a.json\n@@ -2,3 +2,3 @@\n 2\n-5\n+3\n 4"
    ]
    assert list(_text("a.json", "1\r\n2", "1\n2", EXACT)) == ["a.json: line endings differ"]
