"""Names of strangers' dumps on the terminal: no command prints what could steer it; JSON keeps them to the letter."""

import json
import unicodedata

import numpy as np
import pytest

from dumpsim.cli import main
from dumpsim.cli.output import plain
from dumpsim.codecs import statcsv

EVIL = "a\x1b]0;owned\x07\x9b2J\r\x7f\u202eb\u2028\tc"
HEAD = statcsv.header(["max", "min", "avg", "l2norm"])


def run(monkeypatch, capsys, *arguments):
    """Exit code, what went to stdout and to stderr."""
    monkeypatch.setattr("sys.argv", ["dumpsim", *map(str, arguments)])
    with pytest.raises(SystemExit) as ended:
        main()
    out, err = capsys.readouterr()
    return ended.value.code or 0, out, err


def steering(text):
    """Characters that a terminal would obey."""
    return [c for c in text if unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp") and c not in "\n\t"]


@pytest.fixture
def tree(tmp_path):
    """Names in rows, file names, directories and broken files."""
    place = tmp_path / "rank_0" / f"Net{EVIL}" / "0" / "0"
    place.mkdir(parents=True)
    quoted = f'Default/{EVIL}, "x"\ny'.replace('"', '""')
    row = f'Add,"{quoted}",0,0,17,output,0,8,float32,"(2,)",1,1,1,1\n'
    (place / "statistic.csv").write_text(HEAD + row, newline="")
    np.save(place / f"Add.Default_{EVIL}-op0.0.0.18.output.0.DefaultFormat.float32.npy", np.float32([1, np.nan]))
    (place / f"Mul.Default_{EVIL}-op1.0.0.19.output.0.DefaultFormat.float32.npy").write_bytes(b"no npy")
    np.save(place / "Sub.Default_\udcff-op2.0.0.20.output.0.DefaultFormat.float32.npy", np.float32([1, 2]))
    return tmp_path


COMMANDS = [
    ("ls",), ("ls", "--json"), ("ls", "--paths"), ("ls", "--summary"), ("show",), ("show", "--json"), ("stat",),
    ("stat", "--json"), ("stat", "--bad"), ("first",), ("first", "--json"),
]  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_no_command_prints_what_steers_a_terminal(monkeypatch, capsys, tree, command):
    code, out, err = run(monkeypatch, capsys, command[0], tree, *command[1:])
    assert code in (0, 1, 3)
    assert "owned" in out + err
    assert steering(out + err) == []
    if "--json" in command:
        assert any(EVIL in json.loads(line)["op_name"] for line in out.splitlines())


@pytest.mark.parametrize("options", [(), ("--json",), ("--all",)], ids=str)
def test_compare_and_first_of_two(monkeypatch, capsys, tree, options):
    for command in ("compare", "first"):
        _, out, err = run(monkeypatch, capsys, command, tree, tree, *(o for o in options if o != "--all"))
        assert steering(out + err) == []


def test_rows_stay_rows(monkeypatch, capsys, tree):
    _, out, _ = run(monkeypatch, capsys, "ls", tree)
    head, *rows = out.splitlines()
    assert len(rows) == 3
    assert {row.count("\t") for row in rows} == {head.count("\t")}


def test_fields_with_quotes_commas_and_newlines_are_read_back(monkeypatch, capsys, tree):
    _, out, _ = run(monkeypatch, capsys, "ls", tree, "--json")
    assert f'Default/{EVIL}, "x"\ny' in [json.loads(line)["op_name"] for line in out.splitlines()]


def test_errors_name_files_without_what_steers(monkeypatch, capsys, tmp_path):
    (tmp_path / f"{EVIL}.json").write_text("{")
    for arguments in (("ls", tmp_path / f"none{EVIL}"), ("check", tmp_path / f"{EVIL}.json"), ("show", f"x{EVIL}")):
        code, out, err = run(monkeypatch, capsys, *arguments)
        assert code
        assert steering(out + err) == []


def test_plain_leaves_text_as_it_is():
    assert plain("Default/relu é 中 \xa0") == "Default/relu é 中 \xa0"
    assert plain("\udcff\x00\u200f") == r"\udcff\x00\u200f"
