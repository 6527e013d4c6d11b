"""Help pages, and what is loaded for them."""

import os
import subprocess
import sys
from importlib import import_module

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from dumpsim.cli import main
from dumpsim.cli.app import COMMANDS, app
from dumpsim.core.version import __version__

NAMES = [one.name for one in COMMANDS]


def dumpsim(*arguments, **variables):
    return subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "dumpsim", *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, **variables},
        check=False,
    )


def imported(process):
    return {line.rpartition("|")[2].strip() for line in process.stderr.splitlines() if line.startswith("import time:")}


@pytest.mark.parametrize("entry", COMMANDS, ids=lambda entry: entry.name)
def test_the_list_of_commands_says_what_each_command_says(entry):
    function = getattr(import_module(entry.home), entry.name)
    assert entry.summary == function.__doc__.splitlines()[0]


@pytest.mark.parametrize("columns", ["60", "80", "120"])
@pytest.mark.parametrize("command", ["", "run", "compare"])
def test_a_page_is_as_wide_as_the_terminal(columns, command):
    found = dumpsim(*filter(None, [command]), "--help", COLUMNS=columns)
    widest = max(map(len, found.stdout.splitlines()))
    assert int(columns) * 0.8 < widest <= int(columns)
    assert "\x1b" not in found.stdout


def test_options_are_listed_by_section():
    page = dumpsim("run", "--help", COLUMNS="80").stdout
    titles = [line for line in page.splitlines() if line.endswith(":") and not line.startswith(" ")]
    assert titles == ["Arguments:", "Options:", "Emulated machine and dump:", "Ranks:"]
    assert "[default: seed]" in page


def test_version_needs_no_parser_and_help_no_commands():
    version, page = dumpsim("--version"), dumpsim("--help")
    assert version.stdout == f"dumpsim {__version__}\n"
    assert not imported(version) & {"typer", "numpy", "dumpsim.core.errors"}
    assert page.returncode == 0
    assert not imported(page) & {"rich", "numpy", "pydantic", *(entry.home for entry in COMMANDS)}


@pytest.mark.parametrize("entry", COMMANDS[:-1], ids=lambda entry: entry.name)
def test_a_page_lists_every_argument_and_option_once(entry):
    lines = CliRunner().invoke(app, [entry.name, "--help"]).stdout.splitlines()
    section, listed = "", {}
    for line in lines:
        if line.endswith(":") and not line.startswith(" "):
            section = line
        elif section and line.startswith("  ") and line[2] != " ":
            listed.setdefault(section, []).append(line.replace(",", " ").split()[0])
    arguments = listed.pop("Arguments:")
    options = [name for names in listed.values() for name in names]
    known = [parameter.param_type_name for parameter in entry.command.params]
    assert len(arguments) == known.count("argument")
    assert not any(name.startswith("-") for name in arguments)
    names = [one.opts for one in entry.command.params if one.param_type_name == "option"]
    assert len(options) == len(names) + 1
    assert all(sum(name in options for name in one) == 1 for one in [*names, ["-h", "--help"]])


@pytest.mark.parametrize("words", [["ls", "--version"], ["ls", "d", "--version"]])
def test_the_version_is_no_option_of_a_command(monkeypatch, capsys, words):
    monkeypatch.setattr(sys, "argv", ["dumpsim", *words])
    with pytest.raises(SystemExit) as ended:
        main()
    out, err = capsys.readouterr()
    assert (ended.value.code, out, "No such option" in err) == (2, "", True)


NUMBERS = {
    "check device_id": 0, "compare min_matched": 0.5, "msrun cluster_time_out": 600, "msrun local_worker_num": 8,
    "msrun master_port": 8118, "msrun node_rank": -1, "msrun sim_level": -1, "msrun sim_rank_id": -1,
    "msrun worker_num": 8, "plan devices": 8, "plan measure": 2, "replay factor": 1.0, "show bins": 16,
    "show limit": 8, "show values": 12,
}  # fmt: skip


def test_flags_are_off_unless_they_are_given_and_numbers_have_their_defaults():
    """Only NaN is equal to NaN unless it is said not to be."""
    known = {f"{entry.name} {one.name}": one for entry in COMMANDS for one in entry.command.params}
    flags = {name for name, one in known.items() if getattr(one, "is_flag", False)}
    assert len(flags) > 20
    assert not [name for name in known if "completion" in name]  # of dumpsim itself alone
    assert {name for name in flags if known[name].default} == {"compare equal_nan"}
    others = {name: one.default for name, one in known.items() if name not in flags}
    assert {name: value for name, value in others.items() if isinstance(value, int | float)} == NUMBERS


@pytest.mark.parametrize(
    "words",
    [["convert", "-d", "x", "--help"], ["-h"], ["--help"], ["--version"], ["-x", "compare", "-m", "a", "--", "-f"], []],
)
def test_all_words_after_msaccucmp_are_for_that_tool(monkeypatch, words):
    asked = []
    monkeypatch.setattr("dumpsim.analysis.msaccucmp.command.run", lambda given, program: asked.append(given) or 5)
    assert CliRunner().invoke(app, ["msaccucmp", *words]).exit_code == 5
    assert asked == [words]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_complete_commands(shell):
    words = {"COMP_WORDS": "dumpsim c", "COMP_CWORD": "1", "_TYPER_COMPLETE_ARGS": "dumpsim c"}
    words["_TYPER_COMPLETE_FISH_ACTION"] = "get-args"
    script = "import sys; sys.argv = ['dumpsim']; from dumpsim.cli import main; main()"
    found = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        env={**os.environ, **words, "_DUMPSIM_COMPLETE": f"complete_{shell}"},
        check=False,
    )
    assert [name in found.stdout for name in ("check", "convert", "compare", "show")] == [True, True, True, False]


def test_no_page_is_wider_than_120_columns(monkeypatch, capsys):
    def page(columns, *words):
        monkeypatch.setenv("COLUMNS", columns)
        monkeypatch.setattr("sys.argv", ["dumpsim", *words, "--help"])
        with pytest.raises(SystemExit) as ended:
            main()
        assert not ended.value.code
        return capsys.readouterr().out

    def pages(columns):
        return [page(columns), *(page(columns, name) for name in NAMES if name != "msaccucmp")]

    wide, full, narrow = pages("300"), pages("120"), pages("110")
    assert wide == full
    assert full != narrow
    assert 110 < max(len(line) for page in wide for line in page.splitlines()) <= 120
    assert all("Options:" in page for page in wide)


def test_pages_are_set_for_120_columns_on_a_wider_terminal(monkeypatch):
    """The parser leaves two columns free."""
    commands = [get_command(app), *(entry.command for entry in COMMANDS)]
    for columns, width in (("300", 118), ("121", 118), ("120", 118), ("119", 117)):
        monkeypatch.setenv("COLUMNS", columns)
        for command in commands:
            context = command.make_context("dumpsim", [], resilient_parsing=True)
            assert context.make_formatter().width == width


def test_a_command_line_without_a_command_shows_the_page(monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    bare, page = CliRunner().invoke(app, []), CliRunner().invoke(app, ["-h"])
    assert (bare.exit_code, page.exit_code) == (2, 0)
    assert bare.output == page.stdout
    assert CliRunner().invoke(app, ["--version"]).stdout == f"dumpsim {__version__}\n"
    for words, said in (
        (["shwo"], "did you mean 'show'"),
        (["--nothing"], "No such option"),
        (["-x"], "No such option"),
    ):
        found = CliRunner().invoke(app, words)
        assert found.exit_code != 0
        assert said in f"{found.exception} {found.output}"
    words = [line.split()[0] for line in page.stdout.splitlines() if line.startswith("  ")]
    assert [word for word in words if word in NAMES] == NAMES


def test_options_that_a_command_does_not_have_are_for_scripts_alone():
    """Words after a script are the script's; those before it, and those of other commands, are not."""
    for words in (["ls", "d", "--nothing"], ["compare", "a", "b", "--every"], ["explain", "--nothing", "x"]):
        found = CliRunner().invoke(app, words)
        assert (found.exit_code, "No such option" in found.stderr) == (2, True)
    found = CliRunner().invoke(app, ["ls", "a", "b"])
    assert (found.exit_code, "unexpected extra argument" in found.stderr) == (2, True)
