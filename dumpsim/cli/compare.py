"""``dumpsim compare``: compare two dumps, tensor by tensor."""

import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dumpsim.archive.naming import escape
from dumpsim.cli.output import echo, print_json, print_rows, progress
from dumpsim.cli.selection import Json
from dumpsim.core.errors import BadInputError

if TYPE_CHECKING:
    from dumpsim.analysis.compare import Comparison, Row
    from dumpsim.analysis.dumpset import DumpSet

__all__ = [
    "Iteration",
    "Jobs",
    "Matching",
    "NameMap",
    "Rank",
    "Scheduler",
    "Step",
    "Tolerances",
    "absent",
    "compare",
    "empty_columns",
    "say",
]

Tolerances = Annotated[
    list[str] | None,
    typer.Option(
        "--tol", help="'PATTERN:RTOL[:ATOL]' for tensors whose operator, type or label matches; the last match wins."
    ),
]
Matching = Annotated[
    str, typer.Option("--match", help="Pair iterations by number, or by order (the first of A with the first of B).")
]
NameMap = Annotated[
    Path | None,
    typer.Option(
        "--map", help="File of lines 'NN.Mine: NN.Dense' or 'NN.Mine: [NN.Dense, NN.ReLU]': what B calls for A's API."
    ),
]
Jobs = Annotated[
    int | None, typer.Option("--jobs", "-j", help="Number of processes; by default one per CPU for large dumps.")
]
Scheduler = Annotated[
    str | None, typer.Option(help="Address of a Dask scheduler whose workers see the dumps (extra dask).")
]
Rank = Annotated[int | None, typer.Option(help="Rank.")]
Iteration = Annotated[int | None, typer.Option(help="Iteration.")]
Step = Annotated[int | None, typer.Option(help="Training step (O2 dumps only).")]
_COLUMNS = ("rank", "iteration", "op_type", "op_name", "io", "slot", "matched_by", "verdict", "outside", "count")
_GLOBAL_COLUMNS = (
    *("iteration", "op_type", "op_name", "io", "slot", "verdict", "ranks"),
    *("outside", "count", "shape", "note"),
)
_MEASURES = ("cosine", "max_absolute", "max_relative")
_TAIL = ("dtype", "other_dtype", "shape", "source", "note")


def compare(
    a: Annotated[Path, typer.Argument(metavar="A", help="A dump, a directory inside one, or one of its files.")],
    b: Annotated[Path, typer.Argument(metavar="B", help="The dump to compare with (the golden one).")],
    tol: Tolerances = None,
    op: Annotated[str | None, typer.Option(help="Part of the operator's name in either dump, or a glob on it.")] = None,
    rank: Rank = None,
    iteration: Iteration = None,
    step: Step = None,
    match: Matching = "number",
    name_map: NameMap = None,
    every: Annotated[
        bool, typer.Option("--all", "-a", help="List tensors that agree and tensors without a counterpart, too.")
    ] = False,
    strict: Annotated[bool, typer.Option("--strict", help="Fail if a tensor has no counterpart.")] = False,
    equal_nan: Annotated[bool, typer.Option(help="Treat NaN at the same index as equal.")] = True,
    min_matched: Annotated[
        float,
        typer.Option(help="Exit with 1 if a smaller share of the operators has a counterpart."),
    ] = 0.5,
    csv: Annotated[Path | None, typer.Option(help="Write all rows to this CSV file.")] = None,
    jobs: Jobs = None,
    scheduler: Scheduler = None,
    whole_tensors: Annotated[
        bool,
        typer.Option(
            "--global",
            help="Assemble whole tensors from the slices of A's ranks first, by the layouts in its manifests.",
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    """Compare two dumps of any kind; exit code 1 if tensors differ or too few have a counterpart."""
    if whole_tensors:
        for name, value in (("rank", rank), ("csv", csv), ("jobs", jobs), ("scheduler", scheduler)):
            if value is not None:
                raise BadInputError("cannot be combined with --global", where=f"--{name}")
        near = {"op": op, "iteration": iteration, "step": step}
        _compare_global(a, b, near, tol or (), match, name_map, equal_nan, every, strict, as_json)
        return
    from dumpsim.analysis.choice import missing, named
    from dumpsim.analysis.compare import prepare
    from dumpsim.analysis.dumpset import open as open_dump
    from dumpsim.analysis.pairing import flags

    if csv is not None and (csv.is_dir() or not csv.parent.is_dir()):
        said = f"{csv} is a directory" if csv.is_dir() else f"the directory {str(csv.parent)!r} does not exist"
        raise BadInputError(said, where="--csv")
    wanted: dict[str, Any] = {"rank": rank, "iteration": iteration, "step": step}
    whole = [open_dump(path) for path in (a, b)]
    parts = [dump.filter(**wanted) for dump in whole]
    plan = prepare(*parts, tol=tol or (), match=match, name_map=name_map, equal_nan=equal_nan, min_matched=min_matched)
    if not plan.lines:
        say(absent(whole, wanted))
    elif op is not None:
        names = plan.names
        plan = plan.of(named(op))
        if not plan.lines:
            say([missing("op", op, names)])
    result = plan.result(progress(plan.rows(jobs=jobs, scheduler=scheduler), what="compare", total=len(plan)))
    if csv is not None:
        result.to_csv(csv)
    if result.shortfall:
        say([result.shortfall])
    if as_json:
        for row in result:
            print_json(row.as_dict() | {"matched_share": result.matched})
    else:
        if result.shortfall:
            echo(result.shortfall)
        _print(result.rows, every)
    _summary(result, every or as_json)
    if result.findings:
        options = [*flags(tol or (), match, name_map)]
        options += [word for name, value in wanted.items() if value is not None for word in (f"--{name}", str(value))]
        echo(f"next: {shlex.join(['dumpsim', 'first', str(a), str(b), *options])}", err=True)
    unmatched = any(row.verdict in ("only_a", "only_b") for row in result) or bool(result.unmatched)
    if result.unreadable or any(row.verdict == "unreadable" for row in result):
        raise typer.Exit(3)
    if not result.ok or (strict and unmatched):
        raise typer.Exit(1)


def _compare_global(
    a: Path,
    b: Path,
    wanted: dict[str, Any],
    tol: Sequence[str],
    match: str,
    name_map: Path | None,
    equal_nan: bool,
    every: bool,
    strict: bool,
    as_json: bool,
) -> None:
    """Compare whole tensors, and name the ranks whose slices differ."""
    from dumpsim.analysis.compareglobal import compare_global
    from dumpsim.analysis.dumpset import open as open_dump

    left, right = (open_dump(path).filter(**wanted) for path in (a, b))
    found = compare_global(left, right, tol=tol, match=match, name_map=name_map, equal_nan=equal_nan)
    if as_json:
        for row in found:
            print_json(row.as_dict())
    elif shown := [row for row in found if every or row.finding]:
        print_rows(_GLOBAL_COLUMNS, [row.as_dict() for row in shown])
    lines = [f"not compared: {said}" for said in found.unmatched[:8]]
    if len(found.unmatched) > 8:
        lines.append(f"not compared: {len(found.unmatched) - 8} more tensors")
    if (first := found.first) is not None:
        ranks = f" on rank {', '.join(map(str, first.ranks))}" if first.ranks else ""
        lines.append(f"first difference: {first.op_name}:{first.io}.{first.slot}{ranks}")
    counts = ", ".join(f"{count} {verdict}" for verdict, count in found.counts.items()) or "no tensors"
    for line in (*lines, f"{len(found.rows)} whole tensors compared: {counts}"):
        echo(line, err=True)
    if not found.ok or (strict and found.unmatched):
        raise typer.Exit(1)


def say(lines: Iterable[str]) -> None:
    """Report on stderr what the selection asks for and a dump does not have."""
    for line in lines:
        echo(f"dumpsim: {line}", err=True)


def absent(dumps: "Iterable[DumpSet]", wanted: Mapping[str, int | None]) -> Iterator[str]:
    """Return a line for each requested rank, iteration and step that a dump does not have."""
    for dump in dumps:
        for line in dump.filter(**wanted).absent():  # type: ignore[arg-type]
            yield f"{dump.root}: {line}"


def empty_columns(rows: Sequence[Mapping[str, Any]], numbers: Sequence[str], others: Sequence[str]) -> frozenset[str]:
    """Return the columns that say nothing: no row has a value, or, of those in `numbers`, none but 0."""
    empty = [name for name in numbers if all(row[name] in (None, 0) for row in rows)]
    empty += [name for name in others if all(row[name] in (None, "") for row in rows)]
    return frozenset(empty)


def _print(rows: "Sequence[Row]", every: bool) -> None:
    """Print the rows that do not agree, or all rows."""
    shown = [row for row in rows if every or row.finding or row.verdict in ("unreadable", "unknown")]
    if not shown:
        return
    named = [_named(row) for row in shown]
    empty = empty_columns(named, ("rank", "iteration"), (*_MEASURES, "source", "note"))
    print_rows([column for column in (*_COLUMNS, *_MEASURES, *_TAIL) if column not in empty], named)


def _named(row: "Row") -> dict[str, Any]:
    """Return a row with the names of the dump that has the tensor."""
    values = row.as_dict()
    if row.verdict == "only_b":
        values |= {"op_type": row.other_type, "op_name": row.other_name, "io": row.other_io, "slot": row.other_slot}
        values |= {"shape": row.other_shape}
    elif row.other_name and escape(row.other_name) != escape(row.op_name):
        values["note"] = "; ".join(filter(None, (f"B: {row.other_name}", row.note)))
    return values


def _summary(result: "Comparison", every: bool) -> None:
    """Print the counts and the tensors without a counterpart on stderr."""
    say(result.idle)
    lines = []
    if not every:
        for verdict, side in (("only_a", "A"), ("only_b", "B")):
            rows = [row for row in result if row.verdict == verdict]
            names = Counter((row.op_name or row.other_name) for row in rows if not row.note.startswith("inside"))
            inside = sum(row.note.startswith("inside") for row in rows)
            if names:
                few = ", ".join(list(names)[:8])
                more = f" and {len(names) - 8} more" if len(names) > 8 else ""
                lines.append(f"in {side} only: {sum(names.values())} tensors of {few}{more}")
            if inside:
                lines.append(f"in {side} only: {inside} tensors inside operators that are fused on the other side")
    lines += [f"not compared: {said}" for said in (*result.unmatched, *result.unreadable)]
    if result.unmatched and not result.compared:
        lines.append("--match order pairs iterations by their order and ignores their numbers")
    counts = ", ".join(f"{count} {verdict}" for verdict, count in result.counts.items()) or "no tensors"
    lines.append(f"{result.compared} pair{'s' * (result.compared != 1)} compared: {counts}")
    for line in lines:
        echo(line, err=True)
