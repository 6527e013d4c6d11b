"""``dumpsim first``: find the operator that made a NaN, an infinity or a difference."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dumpsim.archive.naming import escape
from dumpsim.cli.compare import Iteration, Jobs, Matching, NameMap, Rank, Scheduler, Step, Tolerances, absent, say
from dumpsim.cli.output import echo, print_json, print_rows
from dumpsim.cli.selection import Json

if TYPE_CHECKING:
    from dumpsim.analysis.amplify import Blame
    from dumpsim.analysis.finding import Finding
    from dumpsim.analysis.first import Search

__all__ = ["first"]

_KINDS = {"amplified": "amplified by", "made": "made by", "received": "received by", "given": "given by"}
_GOOD = ("are finite", "agree")
_BASES = {
    "inputs": "its inputs {}",
    "statistics": "the statistics of its inputs {}, which their elements need not do",
    "infinite": "its inputs have infinities, and no NaN",
    "gradient": "the gradient that flows into it and all results before it {}",
    "graph": "its inputs were not dumped; the graph names the operators that made them, whose results {}",
    "order": "its inputs were not dumped; all results before it {}",
    "argument": "its inputs {}, a number that it was given does not",
    "detached": "one dump alone has its backward",
}
_RANKING = ("error_in", "error_out", "explained", "verdict", "op_type", "op_name", "reason")
_RANKED = 5  # operators of the ranking to print
_SHOWN = 4  # findings to print; the others are counted


def first(
    a: Annotated[Path, typer.Argument(metavar="A", help="A dump, a directory inside one, or one of its files.")],
    b: Annotated[
        Path | None,
        typer.Argument(
            metavar="[B]", help="The dump to compare with (the golden one); without it, look for NaN and infinities."
        ),
    ] = None,
    allow: Annotated[
        list[str] | None,
        typer.Option(help="Glob on operator, type or label (NAME:input.1) of tensors that may hold infinities."),
    ] = None,
    no_intended: Annotated[
        bool,
        typer.Option(
            "--no-intended", help="Report -inf in attention masks too, which is intended and ignored by default."
        ),
    ] = False,
    tol: Tolerances = None,
    rank: Rank = None,
    iteration: Iteration = None,
    step: Step = None,
    match: Matching = "number",
    name_map: NameMap = None,
    every: Annotated[
        bool, typer.Option("--all", "-a", help="List all operators that made one, not only the first.")
    ] = False,
    jobs: Jobs = None,
    scheduler: Scheduler = None,
    as_json: Json = False,
) -> None:
    """Find the operator that turns good inputs into a bad result; exit code 1 if there is one."""
    from dumpsim.analysis.dumpset import open as open_dump
    from dumpsim.analysis.scan import INTENDED
    from dumpsim.replay.first import first as search

    wanted: dict[str, Any] = {"rank": rank, "iteration": iteration, "step": step}
    whole = [open_dump(path) for path in (a, b) if path is not None]
    with _counter() as count:
        found = search(
            *(dump.filter(**wanted) for dump in whole),
            allow=allow or (),
            intended=() if no_intended else INTENDED,
            tol=tol or (),
            match=match,
            name_map=name_map,
            everything=every,
            jobs=jobs,
            scheduler=scheduler,
            progress=count,
        )
    if as_json:
        for finding in found:
            ranked = found.ranking if every else found.ranking[:_RANKED]
            more = {"ranking": [one.as_dict() for one in ranked]} if finding is found.maker and ranked else {}
            print_json(finding.as_dict() | more)
    else:
        _print(found, pair=b is not None, every=every)
    for line in _coverage(found, pair=b is not None):
        echo(line, err=as_json)
    say((*found.idle, *found.unreadable))
    if not (found.tensors or found.skipped):
        say(absent(whole, wanted))
    if found.unreadable:
        raise typer.Exit(3)
    if found.findings or not found.tensors:
        raise typer.Exit(1)


def _print(found: "Search", *, pair: bool, every: bool) -> None:
    """Print at most a screen of findings, always with the maker."""
    maker = found.maker
    shown = [one for n, one in enumerate(found) if every or n < _SHOWN - 1 or one is maker]
    for finding in shown:
        echo("\n".join(_lines(finding, pair)))
    if len(shown) < len(found):
        echo(f"{len(found) - len(shown)} more, received or given: see --all or --json")
    ranked = found.ranking if every else found.ranking[:_RANKED]
    if ranked:
        echo("operators ranked by the difference that their inputs do not explain (relative differences):")
        print_rows(_RANKING, [_ranked(one) for one in ranked])
        if len(ranked) < len(found.ranking):
            echo(f"{len(found.ranking) - len(ranked)} more: see --all or --json")


def _ranked(one: "Blame") -> dict[str, Any]:
    """A row of the ranking."""
    numbers = (one.error_in, one.error_out, one.explained)
    said = {name: f"{value:.3g}" if value == value else "" for name, value in zip(_RANKING, numbers, strict=False)}
    return said | {"verdict": one.verdict, "op_type": one.op_type, "op_name": one.op_name, "reason": one.reason}


def _coverage(found: "Search", *, pair: bool) -> list[str]:
    """A sentence on what was compared and what was not."""
    nothing = "no difference" if pair else "no NaN, no infinity that is not intended"
    counts = (f"{n} {word}{'s' * (n != 1)}" for n, word in ((found.operators, "operator"), (found.tensors, "tensor")))
    said = f"{', '.join(counts)} {'compared' if pair else 'looked at'}"
    if not found.findings and found.tensors:
        said += f": {nothing}"
    elif found.passed_on:
        said += f"; {found.passed_on} {'operators pass' if found.passed_on > 1 else 'operator passes'} it on"
    lines = [said]
    if found.skipped:
        reasons = ", ".join(f"{count} tensor{'s' * (count != 1)} {reason}" for reason, count in found.skipped)
        lines.append(f"not {'compared' if pair else 'looked at'}: {reasons}")
    if found.unmatched:
        lines.append("not compared: " + "; ".join(found.unmatched[:4]) + (" ..." if len(found.unmatched) > 4 else ""))
    if not found.tensors:
        done = "compared" if pair else "looked at"
        lines.append(f"nothing could be {done}" + ("; try --match order" if found.unmatched else ""))
    return lines


def _lines(finding: "Finding", pair: bool) -> list[str]:
    """Lines that show a finding to a person."""
    where = f"rank {finding.rank}" + ("" if finding.iteration is None else f", iteration {finding.iteration}")
    lines = [f"{finding.what} {_KINDS[finding.kind]} {finding.op_type}  {finding.op_name}  ({where})"]
    lines.append(f"  {finding.tensor}: {finding.detail}" if finding.detail else f"  {finding.tensor}")
    if finding.kind in ("made", "amplified") and finding.basis in _BASES:
        lines.append("  " + _BASES[finding.basis].format(_GOOD[pair]))
    if finding.note:
        lines.append(f"  {finding.note}")
    if pair and finding.kind == "received" and finding.iteration in (None, 0):
        lines.append("  the runs start from different weights or data: start both from one checkpoint and one batch")
    if finding.other_name and escape(finding.other_name) != escape(finding.op_name):
        lines.append(f"  in B {finding.other_name}")
    if finding.source:
        lines.append(f"  script line {finding.source}  {finding.code}")
    lines += [f"  {path}" for path in (finding.path, finding.other_path) if path]
    return [*lines, f"  next: {finding.next}"]


class _counter:  # noqa: N801 (used as a function)
    """Shows a count of operators on stderr if that is a terminal."""

    def __init__(self) -> None:
        self._status: Any = None

    def __enter__(self) -> "_counter":
        if sys.stderr.isatty():
            from rich.console import Console

            self._status = Console(stderr=True).status("first: reading names")
            self._status.start()
        return self

    def __call__(self, count: int) -> None:
        if self._status is not None and count % 64 == 0:
            self._status.update(f"first: {count} operators")

    def __exit__(self, *failure: object) -> None:
        if self._status is not None:
            self._status.stop()
