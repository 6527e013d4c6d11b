"""``dumpsim replay``: recompute the operators of one dump and rank them by error."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dumpsim.cli.compare import Iteration, Jobs, Rank, Scheduler, Step, absent, empty_columns, say
from dumpsim.cli.output import echo, print_json, print_rows, progress
from dumpsim.cli.selection import Json

if TYPE_CHECKING:
    from dumpsim.replay.replay import Replay, Row

__all__ = ["replay"]

_COLUMNS = ("rank", "iteration", "op_type", "op_name", "verdict", "error", "explained", "excess", "source", "reason")


def replay(
    dump: Annotated[Path, typer.Argument(metavar="DUMP", help="A dump, a directory inside it, or one of its files.")],
    op: Annotated[str | None, typer.Option(help="Glob on the operator's full name or type.")] = None,
    rank: Rank = None,
    iteration: Iteration = None,
    step: Step = None,
    every: Annotated[
        bool, typer.Option("--all", "-a", help="List operators that are ok or were skipped, too.")
    ] = False,
    factor: Annotated[float, typer.Option(help="Multiple of the rounding bound that an error may reach.")] = 1.0,
    compute: Annotated[
        list[str] | None,
        typer.Option(
            help="'PATTERN:TYPE': matching operators compute in TYPE (tf32, hf32, float16, bfloat16 or float64)."
        ),
    ] = None,
    device: Annotated[
        str | None, typer.Option(help="Kernels that were used: cpu or device; by default inferred from the file names.")
    ] = None,
    jobs: Jobs = None,
    scheduler: Scheduler = None,
    as_json: Json = False,
) -> None:
    """Recompute each operator of one dump from its inputs; exit code 1 if rounding does not explain a result."""
    from dumpsim.analysis.choice import missing, named
    from dumpsim.analysis.dumpset import open as open_dump
    from dumpsim.replay.replay import prepare

    wanted: dict[str, Any] = {"rank": rank, "iteration": iteration, "step": step}
    whole = open_dump(dump)
    work = prepare(whole.filter(**wanted), factor=factor, compute=compute or (), device=device)
    if not work.lines:
        say(absent([whole], wanted))
    elif op is not None:
        names = work.names
        work = work.of(named(op))
        if not work.lines:
            say([missing("op", op, names)])
    rows = work.rows(jobs=jobs, scheduler=scheduler)
    result = work.result(progress(rows, what="replay", total=len(work)))
    if as_json:
        for row in result:
            print_json(row.as_dict())
    else:
        _print([row for row in result if every or row.verdict == "suspect"])
    _summary(result)
    if result.unreadable or any(row.unreadable for row in result):
        raise typer.Exit(3)
    if not result.ok:
        raise typer.Exit(1)


def _print(rows: "Iterable[Row]") -> None:
    shown = [{**row.as_dict(), "excess": row.excess if row.error is not None else None} for row in rows]
    if shown:
        empty = empty_columns(shown, ("rank", "iteration"), ("source", "reason"))
        print_rows([column for column in _COLUMNS if column not in empty], shown)


def _summary(result: "Replay") -> None:
    """Print on stderr how many operators were recomputed, and why others were not."""
    lines = [f"skipped: {count} {said}" for said, count in result.skipped.items()]
    lines += [f"not read: {said}" for said in result.unreadable]
    counts = result.counts
    done = counts.get("ok", 0) + counts.get("suspect", 0)
    said = ", ".join(f"{count} {verdict}" for verdict, count in counts.items()) or "no operators"
    lines.append(f"{done} operator{'s' * (done != 1)} recomputed: {said}")
    for line in lines:
        echo(line, err=True)
