"""``dumpsim convert``: convert dump files, or whole trees, to npy files in the host's layout."""

from pathlib import Path
from typing import Annotated

import typer

from dumpsim.cli.output import echo, human_bytes, print_json, progress
from dumpsim.cli.selection import Json

__all__ = ["convert"]

_SHOWN = 20  # failures to list


def convert(
    paths: Annotated[
        list[str], typer.Argument(help="Dump files, directories (searched recursively) or glob patterns.")
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="Directory to write to.")] = Path("converted"),
    to: Annotated[
        str, typer.Option(help="Format of the results: npy, bin (elements without a header) or pt (PyTorch).")
    ] = "npy",
    layout: Annotated[
        str,
        typer.Option("--format", "-f", help="Layout of the results: host, device, or an order of axes such as NHWC."),
    ] = "host",
    jobs: Annotated[
        int | None,
        typer.Option("--jobs", "-j", help="Number of files to convert at the same time; by default one per CPU."),
    ] = None,
    overwrite: Annotated[bool, typer.Option(help="Replace existing results.")] = False,
    as_json: Json = False,
) -> None:
    """Convert dump files to arrays in the host's layout; exit code 1 if any could not be converted."""
    from dumpsim.analysis.convert import Failure, convert_each, find

    found = find(paths, out)
    if not found:
        echo("no binary dump file found; npy files need no conversion", err=True)
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
