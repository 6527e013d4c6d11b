"""Tables on a terminal."""

import re

import numpy as np
import pytest

from dumpsim.cli.table import Table, middle

COLUMNS = ("rank", "iteration", "op_type", "op_name", "io", "dtype", "max", "note")


def shown(rows, screen):
    table = Table(COLUMNS)
    for row in rows:
        table.measure(row)
    return [re.sub(r"\x1b\[\d+m", "", line) for line in table.lines(iter(rows), [True] * len(COLUMNS), screen)]


def drawn(seed):
    random = np.random.default_rng(seed)
    words = ["network-WithLossCell", "_backbone-Net", "layer", "conv1-Conv2d", "x"]
    scope = "/".join(["Default", *random.choice(words, random.integers(0, 4))])
    rows = []
    for n in range(random.integers(1, 9)):
        name = "/".join([scope, *random.choice(words, random.integers(0, 3)), f"Add-op{n}"])
        rank, note = str(random.integers(0, 2)), " ".join(random.choice(words, random.integers(0, 4)))
        rows.append([rank, "7", "Add", name, "output", "float32", f"{random.normal():.6g}", note])
    return rows


@pytest.mark.parametrize("seed", range(25))
def test_lines_fit_and_nothing_but_the_middle_of_names_is_lost(seed):
    rows = drawn(seed)
    wide = shown(rows, 1000)
    assert wide[0].split() == list(COLUMNS)
    assert [line.split() for line in wide[1:]] == [" ".join(row).split() for row in rows]
    for screen in (90, 110, 140):
        lines = shown(rows, screen)
        told = lines.pop(0).removeprefix("in all rows: ") if lines[0].startswith("in all rows: ") else ""
        assert max(map(len, lines)) <= screen
        head = lines.pop(0)
        common = dict(part.rsplit(" ", 1) for part in told.split(", ") if part)
        scope = common.pop("op_name below", "")
        for line, row in zip(lines, rows, strict=True):
            for name, cell in zip(COLUMNS, row, strict=True):
                if name in common:
                    assert common[name] == cell
                    continue
                begin = head.index(name)
                text = re.split(r"  +", line[begin:])[0] if cell else ""
                text = scope + text if name == "op_name" else text
                left, _, right = text.partition("…")
                assert cell.startswith(left)
                assert cell.endswith(right)
                assert name in ("op_name", "note") or "…" not in text


def test_rows_that_are_bad_are_red_and_no_color_is_respected(monkeypatch):
    rows = [["0", "0", "Log", "Default/Log-op0", "output", "float32", value, ""] for value in ("1", "nan", "-inf")]
    table = Table(COLUMNS)
    for row in rows:
        table.measure(row)
    monkeypatch.delenv("NO_COLOR", raising=False)
    lines = list(table.lines(rows, [True] * 8, 200))
    assert ["\x1b[31m" in line for line in lines] == [False, False, True, True]
    monkeypatch.setenv("NO_COLOR", "1")
    assert not any("\x1b" in line for line in table.lines(rows, [True] * 8, 200))


def test_the_scope_that_all_names_share_is_told_once_and_whole():
    rows = [
        ["0", "7", "Add", f"Default/network-WithLossCell/{inner}/Add-op{n}", "output", "float32", str(n), "a" * 9]
        for n, inner in enumerate(("conv/a", "conv/b"))
    ]
    told, _, *lines = shown(rows, 40)
    assert told.endswith("op_name below Default/network-WithLossCell/conv/")
    assert [line.split()[1] for line in lines] == ["a/Add-op0", "b/Add-op1"]


@pytest.mark.parametrize("width", range(2, 40))
def test_the_end_of_a_name_stays_longest(width):
    text = "abcdefghijklmnopqrstuvwxyz"
    short = middle(text, width)
    assert len(short) == min(width, len(text))
    left, mark, right = short.partition("…")
    assert (text.startswith(left), text.endswith(right), bool(mark)) == (True, True, width < 26)
    assert not mark or len(left) <= len(right) + 1


def lines_of(columns, rows, screen, used=None):
    table = Table(columns)
    for row in rows:
        table.measure(row)
    return [re.sub(r"\x1b\[\d+m", "", line) for line in table.lines(rows, used or [True] * len(columns), screen)]


NAMED = ("rank", "op_name", "max")
PAIR = [["0", "Default/a/Add-op0", "1"], ["0", "Default/a/Add-op1", "22.5"]]


@pytest.mark.parametrize(
    ("screen", "lines"),
    [
        (29, ["rank  op_name            max", "0     Default/a/Add-op0  1", "0     Default/a/Add-op1  22.5"]),
        (28, ["in all rows: rank 0", "op_name            max", "Default/a/Add-op0  1", "Default/a/Add-op1  22.5"]),
        (23, ["in all rows: rank 0", "op_name            max", "Default/a/Add-op0  1", "Default/a/Add-op1  22.5"]),
        (22, ["in all rows: rank 0, op_name below Default/a/", "op_name  max", "Add-op0  1", "Add-op1  22.5"]),
        (9, ["in all rows: rank 0, op_name below Default/a/", "op_name  max", "Add-op0  1", "Add-op1  22.5"]),
    ],
)
def test_what_rows_share_is_told_once_where_lines_are_too_long(screen, lines):
    """Widths: 4, 17 and 4, with two spaces between them 29."""
    assert lines_of(NAMED, PAIR, screen) == lines


def test_a_short_scope_stays_in_the_rows_and_a_narrow_column_has_its_title():
    for scope, told in (("abcdefg/", False), ("abcdefgh/", True)):
        rows = [["0", f"{scope}{name}", "1"] for name in "xy"]
        lines = lines_of(NAMED, rows, 1)
        assert (lines[0] == f"in all rows: rank 0, max 1, op_name below {scope}") is told
        assert lines[-1] == ("y" if told else f"{scope}y")
        assert lines[1] == "op_name"


def test_names_without_their_scope_are_cut_no_more_than_they_must():
    names = ["abcdefghijklmnopqrstuvwx", "abcdefghijklmnopqrstuvwy"]
    rows = [["0", f"Default/net/{name}", "1.25"] for name in names]
    rows[1][2] = "2"
    assert lines_of(NAMED, rows, 30)[2:] == [f"{names[0]}  1.25", f"{names[1]}  2"]
    assert lines_of(NAMED, rows, 29)[2] == f"{middle(names[0], 23)}  1.25"


def test_one_row_shares_nothing_and_names_are_cut_to_eighteen_letters():
    name = "abcdefghijklmnopqrstuvwxyz0123456789ABCD"
    row = ["0", name, "1"]
    assert lines_of(NAMED, [row], 51)[1] == f"0     {name}  1"
    assert lines_of(NAMED, [row], 40)[1] == f"0     {middle(name, 29)}  1"
    assert len(middle(name, 29)) == 29
    for screen in (29, 1):
        assert lines_of(NAMED, [row], screen)[1] == f"0     {middle(name, 18)}  1"
    both = [["Add", name, name + name]]
    columns = ("op_type", "op_name", "note")
    assert lines_of(columns, both, 100)[1] == f"Add      {name}  {middle(name + name, 49)}"  # the widest first
    assert lines_of(columns, both, 60)[1] == f"Add      {middle(name, 31)}  {middle(name + name, 18)}"
    assert lines_of(("op_type", "dtype"), [["Add", name]], 5)[1] == f"Add      {name}"  # no name: never cut
    assert lines_of(columns, [[*both[0][:2], ""]], 100, [True, True, False])[0] == "op_type  op_name"


def test_columns_that_tell_rows_apart_stay_though_all_have_one_value():
    rows = [["Add", "x", "input", "0", "float32", str(n)] for n in range(2)]
    columns = ("op_type", "op_name", "io", "slot", "dtype", "max")
    assert lines_of(columns, rows, 10) == [
        "in all rows: dtype float32", "op_type  op_name  io     slot  max", "Add      x        input  0     0",
        "Add      x        input  0     1",
    ]  # fmt: skip
