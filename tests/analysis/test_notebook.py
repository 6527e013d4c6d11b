"""A dump in an interactive session: its text, its table, its tensors by number and by name."""

import math
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
from rebuild import rebuild
from smalltree import chain, write

import dumpsim
from dumpsim.analysis import notebook
from dumpsim.analysis.notebook import sparkline
from dumpsim.core.errors import BadInputError


@pytest.fixture
def steps(tmp_path):
    """Three iterations of one operator whose result grows and ends as NaN."""
    for at, value in enumerate((1.0, 4.0, np.nan)):
        write(tmp_path, chain(np.ones((2, 2), np.float32), np.full((2, 2), value, np.float32)), iteration=at)
    return dumpsim.open(tmp_path)


def table(dump):
    return ElementTree.fromstring(f"<div>{dump._repr_html_()}</div>")


def test_the_text_says_how_much_there_is(steps):
    assert repr(steps)[1:-1] in "".join(table(steps).itertext())
    assert repr(steps) == f"<DumpSet {steps.root}: 6 tensors of 1 operators, rank 0, iteration 0-2>"
    assert repr(steps.filter(io="output", iteration=1)).endswith(
        "1 tensors of 1 operators, rank 0, iteration 1 (filtered)>"
    )


def test_a_notebook_shows_a_row_a_tensor_and_its_steps(steps):
    rows = table(steps).findall(".//tbody/tr")
    texts = [[cell.text or "" for cell in row] for row in rows]
    assert [text[:2] for text in texts] == [["Default_Add-op0", "input.0"], ["Default_Add-op0", "output.0"]]
    assert texts[0][2:7] == ["float32", "2×2", "1", "1", "2"]
    assert (rows[0].get("style"), rows[1].get("style")) == (None, "color:#c00")
    assert len(rows[1].find(".//svg/polyline").get("points").split()) == 2
    assert len(rows[1].findall(".//svg/circle")) == 1


def test_names_of_strangers_are_text(tmp_path):
    write(tmp_path, [("Add", "Default/<script>alert(1)<|script>-op0", [np.ones(2)], [np.ones(2)])])
    assert "<script" not in dumpsim.open(tmp_path)._repr_html_()


def test_a_long_dump_has_a_short_table(tmp_path):
    rebuild("lenet_fwd", tmp_path)
    page = table(dumpsim.open(tmp_path))
    assert len(page.findall(".//tbody/tr")) == 30
    shown, more = 30, int(page.findall("p")[-1].text.split()[1])
    assert shown + more == len(dumpsim.open(tmp_path))


def test_a_damaged_dump_has_a_text_too(tmp_path):
    write(tmp_path, chain(np.ones(2), np.ones(2)))
    next(tmp_path.rglob("*output*.npy")).write_bytes(b"\x93NUMPY\x01")
    dump = dumpsim.open(tmp_path)
    assert "2 tensors" in repr(dump)
    assert [row[2].text for row in table(dump).findall(".//tbody/tr")] == ["float64", "unreadable"]


def test_tensors_by_number_and_by_name(steps):
    every = list(steps)
    assert [steps[n].path for n in range(6)] == [entry.path for entry in every]
    assert [steps[n].path for n in range(-6, 0)] == [entry.path for entry in every]
    for piece in (slice(1, 4), slice(None, None, 2), slice(-2, None), slice(None, None, -1), slice(3, -1)):
        assert [entry.path for entry in steps[piece]] == [entry.path for entry in every[piece]]
    assert len(steps["add"]) == 6
    for number in (6, -7):
        with pytest.raises(IndexError, match=f"tensor {number} of a dump of 6"):
            steps[number]
    with pytest.raises(KeyError, match="no operator called 'conv'; there is Default_Add-op0"):
        steps["conv"]
    assert steps
    assert not steps.filter(iteration=9)


def test_an_unknown_statistic_is_refused_with_the_one_that_was_meant(steps):
    with pytest.raises(BadInputError, match=r"unknown statistic 'mx'; allowed: .*did you mean 'max'"):
        steps[0].statistic("mx")


@pytest.mark.parametrize(
    "values", [[], [1.0], [2.0, 2.0], [None, None], [1e308, -1e308, 0.0], [np.inf, 1.0, None, 3.0]]
)
def test_a_sparkline_stays_inside(values):
    text = sparkline(values)
    assert bool(text) == (len(values) > 1)
    if not text:
        return
    points = [float(n) for point in ElementTree.fromstring(text).findall("polyline") for n in
              point.get("points").replace(",", " ").split()]  # fmt: skip
    assert all(0 <= n <= 96 for n in points)
    assert len(points) == 2 * sum(value is not None and np.isfinite(value) for value in values)


def test_a_sparkline_has_a_point_a_step_and_a_dot_where_there_is_none():
    """96 by 18, with 2 around it: 92 wide and 14 high."""
    assert sparkline([0.0, 10.0, 5.0, 2.5, None, math.nan, -math.inf, 10.0]) == (
        "<svg width='96' height='18'><polyline points='"
        + " ".join(f"{2 + 92 * at / 7:.4g},{16 - 14 * share:.4g}" for at, share in
                   ((0, 0), (1, 1), (2, 0.5), (3, 0.25), (7, 1)))
        + "' fill='none' stroke='#36c'/>"
        + "".join(f"<circle cx='{2 + 92 * at / 7:.4g}' cy='9' r='2' fill='#c00'/>" for at in (5, 6))
        + "</svg>"
    )  # fmt: skip
    assert sparkline([3.0, 3.0]) == (
        "<svg width='96' height='18'><polyline points='2,9 94,9' fill='none' stroke='#36c'/></svg>"
    )
    assert sparkline([math.inf, math.nan]).count("polyline") == 0


@pytest.mark.parametrize(("count", "end"), [(30, None), (31, "and 1 more tensors"), (33, "and 3 more tensors")])
def test_thirty_tensors_have_a_row(tmp_path, count, end):
    write(tmp_path, [("Data", f"x{n}", [], [np.ones(2, np.float32)]) for n in range(count)])
    page = table(dumpsim.open(tmp_path))
    assert len(page.findall(".//tbody/tr")) == 30
    assert [one.text for one in page.findall("p")[1:]] == ([] if end is None else [end])


def test_of_a_long_dump_a_part_is_looked_at(tmp_path, monkeypatch):
    monkeypatch.setattr(notebook, "_ENTRIES", 40)
    for count, end in ((40, "and 10 more tensors"), (41, "and at least 11 more tensors"),
                       (45, "and at least 11 more tensors")):  # fmt: skip
        root = write(tmp_path / str(count), [("Data", f"x{n}", [], [np.ones(2, np.float32)]) for n in range(count)])
        assert table(dumpsim.open(root)).findall("p")[-1].text == end


def test_statistics_of_large_tensors_are_not_computed(tmp_path):
    """1 MiB is not large."""
    for name, count, shown in (("a", 1 << 18, "1"), ("b", (1 << 18) + 1, None)):
        root = write(tmp_path / name, [("Data", "x", [], [np.ones(count, np.float32)])])
        (row,) = table(dumpsim.open(root)).findall(".//tbody/tr")
        assert row[4].text == shown
