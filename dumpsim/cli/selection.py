"""The options that choose tensors, the same for every command that reads a dump."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from dumpsim.analysis.dumpset import DumpSet

__all__ = [
    "Dtype",
    "Graph",
    "Io",
    "Iteration",
    "Json",
    "Op",
    "OpType",
    "PathArgument",
    "Rank",
    "Slot",
    "Source",
    "select",
]

PathArgument = Annotated[
    Path, typer.Argument(help="Root of a dump, a directory inside it, an .npy or a statistic.csv.")
]
Op = Annotated[str | None, typer.Option(help="Glob on the operator's full name, e.g. '*conv3*'.")]
OpType = Annotated[str | None, typer.Option("--type", help="Operator type, e.g. Conv2D.")]
Io = Annotated[str | None, typer.Option(help="input or output.")]
Slot = Annotated[int | None, typer.Option(help="Number of the input or output.")]
Dtype = Annotated[str | None, typer.Option(help="Number type, e.g. float16.")]
Rank = Annotated[int | None, typer.Option(help="Rank.")]
Graph = Annotated[int | None, typer.Option(help="Graph id.")]
Iteration = Annotated[int | None, typer.Option(help="Iteration.")]
Source = Annotated[str | None, typer.Option(help="Line of the script that made the operator: train.py:175.")]
Json = Annotated[bool, typer.Option("--json", help="JSON, one value a line.")]


def select(
    path: Path,
    op: str | None,
    op_type: str | None,
    io: str | None,
    slot: int | None,
    dtype: str | None,
    rank: int | None,
    graph: int | None,
    iteration: int | None,
    source: str | None,
) -> "DumpSet":
    """The tensors that the options name; several iterations of one operator all count."""
    from dumpsim.analysis.dumpset import open as open_dump

    return open_dump(path).filter(
        op=op,
        op_type=op_type,
        io=io,
        slot=slot,
        dtype=dtype,
        rank=rank,
        graph=graph,
        iteration=iteration,
        source=source,
    )
