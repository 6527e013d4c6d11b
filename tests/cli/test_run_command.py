"""What ``dumpsim run`` starts: the program, its arguments and its environment."""

import os
import re
import sys
from dataclasses import replace

import pytest
from typer.testing import CliRunner

from dumpsim.cli.app import app
from dumpsim.core.errors import BadInputError
from dumpsim.core.settings import RunSettings


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
        (["--chip", "910D", "train.py"], "unknown chip '910D'"),
        (["--conf", "dump.json", "train.py"], r"unknown option '--conf' \(did you mean '--config'\?\)"),
        (["--rank=2", "train.py"], r"unknown option '--rank' \(did you mean '--ranks'\?\)"),
        (["dump.json", "train.py"], "'dump.json' is a dump config, not a script: --config dump.json"),
        ([], "give a SCRIPT or -m MODULE"),
    ],
)
def test_what_does_not_fit_is_refused(started, line, text):
    with pytest.raises(BadInputError, match=text):
        CliRunner().invoke(app, ["run", *line], catch_exceptions=False)


@pytest.mark.parametrize(
    ("words", "field", "value"),
    [
        (["--device", "GPU"], "device", "gpu"), (["--chip", "910A"], "chip", "910A"),
        (["--mindspore", "2.7"], "mindspore", "2.7"), (["--clock", "wall"], "clock", "wall"),
        (["--engine", "null"], "engine", "null"), (["--seed", "5"], "seed", 5),
        (["--set", "op_name=short", "--set", "bug_compat=true"], "overrides",
         {"op_name": "short", "bug_compat": "true"}),
        (["--append"], "append", True), (["--durable"], "durable", True), (["--check-races"], "check_races", True),
        (["--quiet"], "quiet", True), (["-q"], "quiet", True), (["--schedule", "reverse", "--ranks", "2"], "schedule",
        "reverse"), (["--reduce-order", "ring"], "reduce_order", "ring"),
        (["--collective-check", "off"], "collective_check", "off"), (["--transport", "mpi"], "transport", "mpi"),
        (["--manifest", "none"], "manifest", None), (["--manifest", "m.json"], "manifest", "{here}/m.json"),
    ],
)  # fmt: skip
def test_each_option_changes_the_setting_of_its_name(started, tmp_path, words, field, value):
    base, found = (RunSettings.from_environment(started(*given, "train.py")[2]) for given in ([], words))
    value = value.format(here=tmp_path) if isinstance(value, str) else value
    assert getattr(base, field) != value
    assert found == replace(base, **{field: value})


def test_without_options_settings_are_the_defaults(started, tmp_path):
    assert RunSettings.from_environment(started("train.py")[2]) == replace(
        RunSettings(), manifest=str(tmp_path / "dumpsim-manifest.json")
    )


def test_a_config_and_a_fault_plan_travel_by_their_whole_paths(started, tmp_path):
    (tmp_path / "faults.json").write_text('{"faults": []}')
    environment = started("--config", "dump.json", "--faults", "faults.json", "train.py")[2]
    assert environment["MINDSPORE_DUMP_CONFIG"] == str(tmp_path / "dump.json")
    assert RunSettings.from_environment(environment).faults == str(tmp_path / "faults.json")
    assert "MINDSPORE_DUMP_CONFIG" not in started("train.py")[2]
    for words, said in (
        (["--config", "none.json"], "the file 'none.json' does not exist"),
        (["--manifest", "none/m.json"], f"the directory {str(tmp_path / 'none')!r} does not exist"),
        (["--clock", "walk"], "walk"), (["--set", "op_name"], "'op_name' is not FIELD=VALUE"),
    ):  # fmt: skip
        with pytest.raises(BadInputError, match=re.escape(said)):
            CliRunner().invoke(app, ["run", *words, "train.py"], catch_exceptions=False)


def test_ranks_in_processes_are_started_here(tmp_path, monkeypatch):
    asked = []
    (tmp_path / "train.py").write_text("")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(
        "dumpsim.emulate.processjob.run_processes", lambda *args, quiet: asked.append((*args[:2], quiet)) or 7
    )
    found = CliRunner().invoke(app, ["run", "--transport", "process", "--ranks", "3", "-q", "train.py", "x"])
    assert (found.exit_code, asked) == (7, [(["train.py", "x"], 3, True)])


def test_no_rank_is_no_number_of_ranks(started):
    found = CliRunner().invoke(app, ["run", "--ranks", "0", "train.py"])
    assert (found.exit_code, "--ranks" in found.stderr) == (2, True)
    assert started("--ranks", "1", "train.py")[1][2:4] == ["dumpsim.emulate.localjob", "1"]
