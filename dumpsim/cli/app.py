"""The table of commands, by name."""

import os
import sys
import warnings
from typing import Annotated, Any

import typer

from dumpsim.cli.helppage import WIDEST, Commands, Entry
from dumpsim.cli.output import echo
from dumpsim.core.errors import UnfinishedWarning
from dumpsim.core.version import __version__

__all__ = ["COMMANDS", "app"]

_RUN, _READ, _JUDGE = "Run scripts", "Look into dumps", "Judge dumps"
_SCRIPT = {"allow_extra_args": True, "ignore_unknown_options": True, "allow_interspersed_args": False}
_FOREIGN = {"ignore_unknown_options": True, "allow_interspersed_args": False, "help_option_names": []}

COMMANDS = (
    Entry(
        "run", "dumpsim.cli.run", _RUN, "Run SCRIPT on the emulated machine; the exit code is the script's.", _SCRIPT
    ),
    Entry(
        "msrun",
        "dumpsim.cli.msrun",
        _RUN,
        "Run SCRIPT once in each of several processes on the emulated machine, as MindSpore's msrun does.",
        _SCRIPT,
    ),
    Entry(
        "check",
        "dumpsim.cli.check",
        _RUN,
        "Show every error, warning and field without effect of CONFIG; exit code 1 if there is an error.",
    ),
    Entry(
        "plan",
        "dumpsim.cli.plan",
        _RUN,
        "Say what a dump config would write: files, bytes and time, by step, rank and operator type.",
        _SCRIPT,
    ),
    Entry(
        "explain", "dumpsim.cli.explain", _RUN, "Explain WORD: what it means, what is allowed, and the source of that."
    ),
    Entry("ls", "dumpsim.cli.ls", _READ, "List the tensors of a dump in the order in which they were written."),
    Entry(
        "show",
        "dumpsim.cli.show",
        _READ,
        "Show tensors: place, type, script line, statistics, a histogram and the first values.",
    ),
    Entry("stat", "dumpsim.cli.stat", _READ, "Print max, min, average, norm and counts of tensors."),
    Entry(
        "convert",
        "dumpsim.cli.convert",
        _READ,
        "Convert dump files to arrays in the host's layout; exit code 1 if any could not be converted.",
    ),
    Entry(
        "compare",
        "dumpsim.cli.compare",
        _JUDGE,
        "Compare two dumps of any kind; exit code 1 if tensors differ or too few have a counterpart.",
    ),
    Entry(
        "first",
        "dumpsim.cli.first",
        _JUDGE,
        "Find the operator that turns good inputs into a bad result; exit code 1 if there is one.",
    ),
    Entry(
        "watchdiff",
        "dumpsim.cli.watchdiff",
        _JUDGE,
        "Name the first operator after which a watched output changed; exit code 1 if it must not have changed.",
    ),
    Entry(
        "replay",
        "dumpsim.cli.replay",
        _JUDGE,
        "Recompute each operator of one dump from its inputs; exit code 1 if rounding does not explain a result.",
    ),
    Entry(
        "msaccucmp",
        "dumpsim.cli.comparetool",
        _JUDGE,
        "Convert and compare dumps with the flags of CANN's msaccucmp.py.",
        _FOREIGN,
    ),
)


class _Group(Commands):
    """The commands; a pipe that closes early (``dumpsim ls | head``) is not an error."""

    entries = COMMANDS

    def invoke(self, ctx: Any) -> Any:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("default", UnfinishedWarning)
                warnings.showwarning = _show
                try:
                    return super().invoke(ctx)
                finally:
                    sys.stdout.flush()
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # drops what is still buffered
            raise typer.Exit(0) from None


app = typer.Typer(
    name="dumpsim",
    cls=_Group,
    help="Run MindSpore scripts with dump on an emulated device, and look into dumps, also those of real machines.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": WIDEST},
)


_show_other = warnings.showwarning


def _show(message: Any, category: type[Warning], *place: Any, **more: Any) -> None:
    """Report a file with an unfinished last line as damaged files are reported; show other warnings as usual."""
    if issubclass(category, UnfinishedWarning):
        echo(f"dumpsim: {message}", err=True)
    else:
        _show_other(message, category, *place, **more)


def _version(value: bool) -> None:
    if value:
        echo(f"dumpsim {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Run MindSpore scripts with dump on an emulated device, and look into dumps, also those of real machines."""
