"""``dumpsim watchdiff``: find the operator that overwrote a watched output, and whether it was allowed to."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dumpsim.cli.output import echo, print_json
from dumpsim.cli.selection import Json

if TYPE_CHECKING:
    from dumpsim.analysis.watchdiff import Change

__all__ = ["watchdiff"]


def watchdiff(
    dump: Annotated[Path, typer.Argument(help="A dump of watch mode (dump_scene watcher).")], as_json: Json = False
) -> None:
    """Name the first operator after which a watched output changed; exit code 1 if it must not have changed."""
    from dumpsim.analysis.watchdiff import watchdiff as compared

    found = compared(dump)
    for change in found.changes:
        if as_json:
            print_json(asdict(change))
        else:
            echo("\n".join(_lines(change)))
    for name in found.missing:
        echo(f"dumpsim: {name}: the operator's own file is missing, so its outputs cannot be compared", err=True)
    if not as_json:
        kinds = ", ".join(
            f"{count} {kind}"
            for kind in ("trampled", "written in place", "reused", "unknown")
            if (count := sum(change.verdict == kind for change in found.changes))
        )
        echo(f"{dump}: {found.watched} watched outputs, read {found.reads} times: {kinds or 'no change'}")
    if found.trampled or found.missing:
        raise typer.Exit(1)


_SAYS = {
    "trampled": "TRAMPLED: the output was still needed",
    "written in place": "written in place: the operator is meant to write there",
    "reused": "legal reuse: nobody needed the output any longer",
    "unknown": "the dump does not say whether the output was still needed",
}


def _lines(change: "Change") -> list[str]:
    where = f" at {change.address:#x}" if change.address else ""
    lines = [
        f"{change.directory}: {change.node} output {change.slot}: changed after {change.after} (unchanged after "
        f"{change.before})",
        f"  bytes {change.first} to {change.last} of {change.nbytes}{where}, {change.changed} of them differ",
        f"  {_SAYS[change.verdict]}",
    ]
    if change.owners:
        lines[-1] += f"; the memory held {', '.join(change.owners)}"
    return lines
