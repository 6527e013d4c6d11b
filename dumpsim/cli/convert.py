"""``dumpsim convert``: dump files of devices to npy files, whole trees at once."""

from pathlib import Path
from typing import Annotated

import typer

from dumpsim.cli.output import echo, human_bytes, print_json, progress
from dumpsim.cli.selection import Json

__all__ = ["convert"]

_SHOWN = 20  # failures that are listed one by one


def convert(
    paths: Annotated[list[str], typer.Argument(help="Dump files, directories (searched to the bottom), patterns.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Directory of the results.")] = Path("converted"),
    to: Annotated[str, typer.Option(help="npy, bin (elements only) or pt.")] = "npy",
    layout: Annotated[str, typer.Option("--format", "-f", help="host, device, or an order such as NHWC.")] = "host",
    jobs: Annotated[
        int | None, typer.Option("--jobs", "-j", help="Files at the same time; by default one a CPU.")
    ] = None,
    overwrite: Annotated[bool, typer.Option(help="Replace results that are there already.")] = False,
    as_json: Json = False,
) -> None:
    """Convert dump files to arrays in the host's layout; exit code 1 if any could not be converted."""
    from dumpsim.analysis.convert import Failure, convert_each, find

    found = find(paths, out)
    if not found:
        echo("no bin file there; npy files need no conversion", err=True)
        raise typer.Exit(1)
    tensors = nbytes = 0
    failures: list[Failure] = []
    results = convert_each(found, to=to, format=layout, jobs=jobs, overwrite=overwrite)
    for result in progress(results, what="convert", total=len(found)):
        tensors += len(result.written)
        nbytes += result.nbytes
        failures += result.failures
    if as_json:
        listed = [{"path": one.path, "tensor": one.tensor or None, "reason": one.reason} for one in failures]
        print_json({"files": len(found), "written": tensors, "bytes": nbytes, "out": str(out), "failed": listed})
    else:
        for one in failures[:_SHOWN]:
            echo(f"{one.path}{': ' if one.tensor else ''}{one.tensor}: {one.reason}", err=True)
        if len(failures) > _SHOWN:
            echo(f"... and {len(failures) - _SHOWN} more; --json lists all", err=True)
        line = f"{len(found)} files, {tensors} results, {human_bytes(nbytes)} in {out}"
        echo(f"{line}; {len(failures)} failed" if failures else line)
    if failures:
        raise typer.Exit(1)
