"""``dumpsim ls``: list the tensors of a dump."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dumpsim.cli.output import echo, plain, print_rows, progress
from dumpsim.cli.selection import Json, Unreadable, nothing, reads
from dumpsim.core.errors import UnreadableError
from dumpsim.core.statistic import REAL

if TYPE_CHECKING:
    from dumpsim.analysis.dumpset import DumpSet

__all__ = ["ls"]

_COLUMNS = ("rank", "graph", "iteration", "op_type", "op_name", "io", "slot", "dtype", "shape", "format")
_OVERFLOW = ("rank", "step", "iteration", "unit", "task_id", "stream_id", "status", "meaning", "operators")
_SUMMARY = ("rank", "net", "graph", "iteration", "operators", "tensors", "bytes")


@reads
def ls(
    dump: "DumpSet",
    paths: Annotated[bool, typer.Option("--paths", "-p", help="Print file names only.")] = False,
    summary: Annotated[bool, typer.Option("--summary", "-s", help="Print one line per iteration.")] = False,
    overflow: Annotated[bool, typer.Option("--overflow", help="List the overflows recorded in the dump.")] = False,
    as_json: Json = False,
) -> None:
    """List the tensors of a dump in the order in which they were written."""
    unreadable = Unreadable()
    dump = dump.lenient(unreadable)
    if paths:
        for path in dict.fromkeys(entry.path for entry in dump if entry.path is not None):
            echo(plain(path))
        unreadable.exit()
        return
    if overflow:
        rows = [row for found in dump.overflows() for row in found.rows()]
        if not print_rows(_OVERFLOW, rows, as_json=as_json):
            echo("nothing matches", err=True)
            raise typer.Exit(1)
        return
    if summary:
        count = print_rows(_SUMMARY, _summary(dump, unreadable), as_json=as_json)
    else:
        found = progress(dump.rows(broken=unreadable), what="headers", total=dump.__len__)
        count = print_rows(("step", *_COLUMNS, *REAL), found, as_json=as_json, optional={"step", *REAL})
    unreadable.exit()
    if count == 0:
        nothing(dump)


def _summary(dump: "DumpSet", unreadable: Unreadable) -> Iterator[dict[str, Any]]:
    """One row a directory; the entries come directory by directory."""
    row: dict[str, Any] | None = None
    place = None
    names: set[str] = set()
    for entry in dump:
        if entry.place is not place:
            if row is not None:
                yield row | {"operators": len(names)}
            place, names = entry.place, set()
            row = {"rank": entry.rank, "net": entry.place.net, "graph": entry.graph_id, "iteration": entry.iteration}
            row |= {"tensors": 0, "bytes": 0}
        assert row is not None
        try:
            row["bytes"] += entry.nbytes
        except UnreadableError as error:
            unreadable(error)
            continue
        names.add(entry.name.op_name)
        row["tensors"] += 1
    if row is not None:
        yield row | {"operators": len(names)}
