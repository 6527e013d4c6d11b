"""``dumpsim msaccucmp``: CANN's comparison tool, with its own flags and exit codes.

The file has another name than the command, so that ``find -name msaccucmp.py`` finds the one script. [seed 001]
"""

from typing import Annotated

import typer

__all__ = ["msaccucmp"]


def msaccucmp(
    arguments: Annotated[
        list[str] | None, typer.Argument(help="convert, overflow, compare or file_compare, and flags.")
    ] = None,
) -> None:
    """Convert and compare dumps with the flags of CANN's msaccucmp.py."""
    from dumpsim.analysis.msaccucmp.command import run

    raise typer.Exit(run(arguments or [], program="dumpsim msaccucmp"))
