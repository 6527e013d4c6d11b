"""The report at the end of a dump."""

import pytest

from dumpsim.dump.findings import Fact
from dumpsim.dump.summary import Summary, Tally

COUNTS = {"path": "/d/rank_0", "rank": 0, "asked": 3, "captured": 3, "skipped": (), "tensors": 3, "rows": 0, "files": 4,
          "bytes": 1500, "iterations": (0,)}  # fmt: skip


def test_the_whole_text_of_a_summary():
    assert str(Summary(**COUNTS)) == ("dumpsim: asked 3, captured 3, written 3 tensors; 4 files, 1.5 kB, in /d/rank_0")
    tally = Tally(asked=7, captured=3, tensors=2, rows=1, iterations={2, 0})
    for reason in ("late", "b", "a", "late"):
        tally.skip(reason)
    for text in ("first", "second", "first"):
        tally.note(text)
    tally.fail("full")
    tally.fail("full again")
    fact = Fact(
        kind="NaN", op_type="Log", op_name="Default/Log-op0", tensor="output.0", graph_id=0, iteration=2, count=1
    )
    found = tally.summary(
        path="/d/rank_0", rank=5, facts=(fact,), following="dumpsim first /d",
        written={"/d/rank_0/Net/0/10": (1, 999), "/d/rank_0": (2, 1), "/d/rank_0/graphs": (3, 2000),
                 "/d/rank_0/Net/0/constants": (1, 4), "/d/rank_0/Net/0/9": (12, 10**9)},
    )  # fmt: skip
    assert str(found).splitlines() == [
        "dumpsim: /d/rank_0",
        "  Net/0/9                 12 files     1.0 GB",
        "  Net/0/10                 1 file       999 B",
        "  Net/0/constants          1 file         4 B",
        "  .                        2 files        1 B",
        "  graphs                   3 files     2.0 kB",
        "dumpsim: asked 11, captured 3, skipped 4 (2 late; 1 a; 1 b), written 2 tensors, 1 statistics rows; "
        "19 files, 1.0 GB",
        "dumpsim: first",
        "dumpsim: second",
        "dumpsim: full",
        "dumpsim: 2 failures in all",
        "dumpsim: NaN first in Log (Default/Log-op0 output.0, iteration 2)",
        "dumpsim: next: dumpsim first /d",
    ]
    assert (found.rank, found.asked, found.iterations, found.failed, found.files) == (5, 11, (0, 2), True, 19)
    assert found.bytes == 10**9 + 999 + 1 + 2000 + 4


@pytest.mark.parametrize(
    ("changes", "complete"),
    [({}, True), ({"asked": 0}, False), ({"asked": 1}, True), ({"skipped": (("late", 1),)}, False),
     ({"failed": True}, False)],
)  # fmt: skip
def test_a_complete_dump_has_all_that_was_asked_for(changes, complete):
    assert Summary(**COUNTS | changes).complete is complete


def test_one_failure_is_not_counted_for_people():
    tally = Tally()
    tally.fail("full")
    assert tally.summary(path="/d", rank=0, written={}).notes == ("full",)
    assert tally.summary(path="/d", rank=0, written={}).failed is True
    assert Tally().summary(path="/d", rank=0, written={}) == Summary(
        path="/d", rank=0, asked=0, captured=0, skipped=(), tensors=0, rows=0, files=0, bytes=0, iterations=(),
        failed=False, notes=(), directories=(), facts=(), following="",
    )  # fmt: skip


def lines(steps, others):
    """The tree of a summary with so many steps and other directories, paths only."""
    names = [f"Net/0/{step}" for step in range(steps)] + [f"other{at:02}" for at in range(others)]
    found = Tally().summary(path="/d", rank=0, written={f"/d/{name}": (1, 600) for name in names})
    return [line.split("  ")[1] for line in str(found).splitlines()[1:-1]]


@pytest.mark.parametrize(
    ("steps", "others", "first", "hidden", "last"),
    [
        (12, 0, 12, 0, 0), (13, 0, 9, 2, 2), (100, 0, 9, 89, 2), (100, 1, 9, 90, 2), (100, 2, 8, 91, 3),
        (100, 9, 1, 98, 10), (100, 12, 1, 101, 10),
    ],
)  # fmt: skip
def test_of_many_directories_the_first_and_the_last_are_shown(steps, others, first, hidden, last):
    """At most twelve lines, with the last iteration and all directories without data, as far as they fit."""
    names = [f"Net/0/{step}" for step in range(steps)] + [f"other{at:02}" for at in range(others)]
    middle = [f"and {hidden} more"] if hidden else []
    assert lines(steps, others) == names[:first] + middle + (names[-last:] if last else [])
    assert first + bool(hidden) + last == min(steps + others, 12)


def test_long_paths_make_the_tree_wider():
    long = "N" * 30
    found = Tally().summary(path="/d", rank=0, written={f"/d/{long}": (10_000, 5), "/d/a": (1, 5)})
    assert str(found).splitlines()[1:3] == [
        f"  {long}  10000 files        5 B", f"  {'a':30}     1 file         5 B",
    ]  # fmt: skip
