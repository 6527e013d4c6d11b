"""The commands, by name."""

import os
import sys
import warnings
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

import dumpsim
from dumpsim.cli import check, compare, comparetool, convert, explain, first, ls, msrun, replay, run, show, stat
from dumpsim.cli.output import echo
from dumpsim.core.errors import BadInputError, UnfinishedWarning, nearest

__all__ = ["app"]


class _Group(TyperGroup):
    """Commands, with suggestions for unknown ones; a reader that leaves early (``dumpsim ls | head``) is no error."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the command; an unknown one is refused with the one that was probably meant."""
        if args and not args[0].startswith("-") and args[0] not in self.commands:
            raise BadInputError(
                f"No such command {args[0]!r}",
                allowed=self.commands,
                nearest=nearest(args[0], self.commands),
                code="DS-RUN-010",
            )
        return super().resolve_command(ctx, args)

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
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is buffered goes nowhere
            raise typer.Exit(0) from None


app = typer.Typer(
    name="dumpsim",
    cls=_Group,
    help="Run MindSpore scripts with dump on an emulated device, and look into dumps, also those of real machines.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


_show_other = warnings.showwarning


def _show(message: Any, category: type[Warning], *place: Any, **more: Any) -> None:
    """A file that ends within a line is reported as damaged files are; any other warning as always."""
    if issubclass(category, UnfinishedWarning):
        echo(f"dumpsim: {message}", err=True)
    else:
        _show_other(message, category, *place, **more)


def _version(value: bool) -> None:
    if value:
        echo(f"dumpsim {dumpsim.__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Run MindSpore scripts with dump on an emulated device, and look into dumps, also those of real machines."""


_SCRIPT = {"allow_extra_args": True, "ignore_unknown_options": True, "allow_interspersed_args": False}
_RUN, _READ, _JUDGE = "Run scripts", "Look into dumps", "Judge dumps"

app.command("run", context_settings=_SCRIPT, rich_help_panel=_RUN)(run.run)
app.command("msrun", context_settings=_SCRIPT, rich_help_panel=_RUN)(msrun.msrun)
app.command("check", rich_help_panel=_RUN)(check.check)
app.command("ls", rich_help_panel=_READ)(ls.ls)
app.command("show", rich_help_panel=_READ)(show.show)
app.command("stat", rich_help_panel=_READ)(stat.stat)
app.command("explain", rich_help_panel=_RUN)(explain.explain)
app.command("convert", rich_help_panel=_READ)(convert.convert)
app.command("compare", rich_help_panel=_JUDGE)(compare.compare)
app.command("first", rich_help_panel=_JUDGE)(first.first)
app.command("replay", rich_help_panel=_JUDGE)(replay.replay)
app.command(
    "msaccucmp",
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False, "help_option_names": []},
    rich_help_panel=_JUDGE,
)(comparetool.msaccucmp)
