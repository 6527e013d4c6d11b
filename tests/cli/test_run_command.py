"""What ``dumpsim run`` starts: the program, its arguments and its environment."""

import os
import sys

import pytest
from typer.testing import CliRunner

from dumpsim.cli.app import app


class Replaced(Exception):
    """In the place of a process that would be another program from here on."""


@pytest.fixture
def started(tmp_path, monkeypatch):
    """Run a command line; returns the program, its arguments and its environment."""
    (tmp_path / "train.py").write_text("")
    (tmp_path / "job.sh").write_text("")
    (tmp_path / "dump.json").write_text("{}")
    monkeypatch.chdir(tmp_path)

    def replace(program, arguments, environment):
        raise Replaced(program, arguments, environment)

    monkeypatch.setattr(os, "execve", replace)
    monkeypatch.setattr(os, "execvpe", replace)

    def start(*line):
        with pytest.raises(Replaced) as caught:
            CliRunner().invoke(app, ["run", *line], catch_exceptions=False)
        return caught.value.args

    return start


@pytest.mark.parametrize(
    ("line", "program", "arguments"),
    [
        (["train.py"], sys.executable, [sys.executable, "train.py"]),
        (["train.py", "--seed", "3", "x"], sys.executable, [sys.executable, "train.py", "--seed", "3", "x"]),
        (["-m", "pack"], sys.executable, [sys.executable, "-m", "pack"]),
        (["-m", "pack", "word"], sys.executable, [sys.executable, "-m", "pack", "word"]),
        (["job.sh", "word"], "bash", ["bash", "job.sh", "word"]),
        (
            ["--ranks", "2", "train.py", "7"],
            sys.executable,
            [sys.executable, "-m", "dumpsim.emulate.localjob", "2", "train.py", "7"],
        ),
    ],
)
def test_the_program_takes_the_place_of_the_command(started, line, program, arguments):
    assert started(*line)[:2] == (program, arguments)


def test_options_travel_in_the_environment(started, tmp_path):
    _, _, plain = started("train.py")
    _, _, chosen = started("--seed", "5", "--chip", "910A", "--quiet", "--manifest", "none", "train.py")
    changed = {name: chosen[name] for name in chosen if chosen[name] != plain.get(name)}
    assert "5" in " ".join(changed.values())
    assert "910A" in " ".join(changed.values())
    assert started("train.py")[2] == plain


@pytest.mark.parametrize(
    ("line", "text"),
    [
        (["--transport", "locol", "train.py"], "unknown transport 'locol'"),
        (["--transport", "mpi", "--ranks", "2", "train.py"], "mpirun sets the number of ranks"),
        (["--transport", "local", "train.py"], "needs --ranks"),
        (["--transport", "process", "train.py"], "needs --ranks"),
        (["--transport", "process", "--ranks", "2", "--schedule", "rank", "train.py"], "do not take turns"),
        (["--transport", "mpi", "--schedule", "rank", "train.py"], "do not take turns"),
        (["--ranks", "2", "job.sh"], "a shell script cannot run on ranks"),
        (["none.py"], "the script 'none.py' does not exist"),
        (["--conf", "dump.json", "train.py"], r"unknown option '--conf' \(did you mean '--config'\?\)"),
        (["--rank=2", "train.py"], r"unknown option '--rank' \(did you mean '--ranks'\?\)"),
        (["dump.json", "train.py"], "'dump.json' is a dump config, not a script: --config dump.json"),
        ([], "give a SCRIPT or -m MODULE"),
    ],
)
def test_what_does_not_fit_is_refused(started, line, text):
    with pytest.raises(Exception, match=text):
        CliRunner().invoke(app, ["run", *line], catch_exceptions=False)
