"""What commands print, and what they do not while nobody watches."""

import io
import json
import os
import sys

import numpy as np
import pytest

from dumpsim import cli
from dumpsim.cli import app, first, output
from dumpsim.core.errors import BadInputError, UnfinishedWarning, UnreadableError


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (-1024, "-1.0 KiB"), (1024**2 - 1, "1024.0 KiB"),
     (1024**2, "1.0 MiB"), (3 * 1024**3, "3.0 GiB"), (1024**4, "1.0 TiB"), (5000 * 1024**4, "5000.0 TiB")],
)  # fmt: skip
def test_bytes_have_the_largest_unit_that_leaves_one(count, text):
    assert output.human_bytes(count) == text


def test_json_has_no_value_that_json_has_not(capsys):
    row = {
        "nan": float("nan"), "inf": [float("inf"), -float("inf")], "complex": complex(1, float("nan")), 3: (1, None),
        "numpy": [np.float32(0.5), np.int64(7), np.bool_(True), np.float32("nan")], "text": "\x1b\x85\u202eé",
    }  # fmt: skip
    output.print_json(row)
    (line,) = capsys.readouterr().out.splitlines()
    assert line.isprintable()
    assert line.endswith('"text": "\\u001b\\u0085\\u202eé"}')
    assert json.loads(line) == {
        "nan": "nan", "inf": ["inf", "-inf"], "complex": [1.0, "nan"], "3": [1, None],
        "numpy": [0.5, 7, True, "nan"], "text": "\x1b\x85\u202eé",
    }  # fmt: skip


def test_rows_are_tabs_of_a_pipe_and_columns_without_a_value_are_left_out(capsys):
    rows = [{"a": None, "b": True, "c": 1 / 3, "d": (1, "x\n")}, {"a": None, "b": "two\twords", "d": [], "e": 3}]
    assert output.print_rows(("a", "b", "c", "d", "z"), iter(rows), optional={"a", "c"}) == 2
    assert capsys.readouterr().out == "b\tc\td\tz\nTrue\t0.333333\t(1,x\\n)\t\ntwo\\twords\t\t()\t\n"
    assert output.print_rows(("a",), rows, as_json=True) == 2
    assert len(capsys.readouterr().out.splitlines()) == 2
    assert output.print_rows(("a",), [], as_json=True) == output.print_rows(("a",), []) == 0


def test_a_bar_is_for_who_watches(monkeypatch):
    asked = []
    items = [1, 2, 3]
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    assert list(output.progress(items, what="read", total=lambda: asked.append(1) or 3)) == items
    assert (asked, sys.stderr.getvalue()) == ([], "")
    for total in (3, lambda: asked.append(1) or 3):
        monkeypatch.setattr(sys, "stderr", Terminal())
        assert list(output.progress(items, what="read", total=total)) == items
        assert "read" in sys.stderr.getvalue()
        assert "100%" in sys.stderr.getvalue()
    assert asked == [1]


def test_a_bar_is_gone_when_all_is_done(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", Terminal())
    assert list(output.progress([1, 2], what="read", total=2)) == [1, 2]
    assert sys.stderr.getvalue().rpartition("read")[2].endswith("\x1b[2K")  # erases the line


def test_rows_on_a_terminal_are_aligned(monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(sys, "stdout", Terminal())
    assert output.print_rows(("a", "b"), [{"a": "long word", "b": 1}, {"a": "x", "b": None}]) == 2
    assert sys.stdout.getvalue() == "a          b\nlong word  1\nx\n"


def test_a_pipe_that_closes_early_is_no_error(monkeypatch, tmp_path):
    """What was printed before that is lost, and nothing is said of it, now or at the end of the process."""
    place = tmp_path / "rank_0" / "Net" / "0" / "0"
    place.mkdir(parents=True)
    np.save(place / "Op.Default_Op-op0.0.0.1.output.0.DefaultFormat.npy", np.ones(2))
    read, write = os.pipe()
    os.close(read)
    with open(write, "w") as closed:
        monkeypatch.setattr(sys, "stdout", closed)
        monkeypatch.setattr(sys, "argv", ["dumpsim", "ls", str(tmp_path)])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        assert ended.value.code == 0


def test_first_counts_operators_for_who_watches(monkeypatch):
    said = []

    class Status:
        def __init__(self, text):
            said.append(text)

        start, stop = (lambda self: said.append("start")), (lambda self: said.append("stop"))

        def update(self, text):
            said.append(text)

    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with first._counter() as count:
        count(64)
    assert sys.stderr.getvalue() == ""
    monkeypatch.setattr("rich.console.Console.status", lambda self, text: said.append(self.stderr) or Status(text))
    monkeypatch.setattr(sys, "stderr", Terminal())
    with first._counter() as count:
        for number in range(1, 130):
            count(number)
    assert said == [True, "first: reading names", "start", "first: 64 operators", "first: 128 operators", "stop"]


def test_warnings_of_others_are_shown_as_they_are(monkeypatch, capsys):
    shown = []
    monkeypatch.setattr(app, "_show_other", lambda *args, **more: shown.append((*args, more)))
    app._show("odd", UserWarning, "f.py", 3, line="x")
    assert shown == [("odd", UserWarning, "f.py", 3, {"line": "x"})]
    app._show("f.csv ends within a line", UnfinishedWarning, "f.py", 3)
    assert (len(shown), capsys.readouterr().err) == (1, "dumpsim: f.csv ends within a line\n")


class Noted(BadInputError):
    __notes__ = ("see there",)


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (BadInputError("odd word", where="--x"), 2, "dumpsim: --x: odd word\n"),
        (Noted("odd word"), 2, "dumpsim: odd word\n  see there\n"),
        (UnreadableError("f.npy: cut short"), 3, "dumpsim: f.npy: cut short\n"),
        (FileNotFoundError(2, "No such file or directory", "f"), 3, "dumpsim: f: No such file or directory\n"),
        (ValueError("oh"), 4,
         "ValueError: oh\ndumpsim: this is a bug in dumpsim, not a mistake in your input; please report it\n"),
    ],
)  # fmt: skip
def test_each_kind_of_failure_has_its_exit_code(monkeypatch, capsys, error, code, said):
    def fail():
        raise error

    monkeypatch.setattr("dumpsim.cli.app.app", fail)
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == code
    assert capsys.readouterr().err.endswith(said)
