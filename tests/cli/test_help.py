"""Help pages, and what is loaded for them."""

import os
import subprocess
import sys
from importlib import import_module

import pytest

from dumpsim.cli.app import COMMANDS
from dumpsim.core.version import __version__


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
