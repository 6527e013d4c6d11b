"""The operators of one or two dumps with judged tensors, in the order in which bad values can spread."""

from collections import deque
from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TypeVar

from dumpsim.analysis.align import Match, align
from dumpsim.analysis.condition import Condition, conditions
from dumpsim.analysis.dumpset import DumpSet
from dumpsim.analysis.entry import Entry
from dumpsim.analysis.finding import Run, Tensor
from dumpsim.analysis.namemap import NameMap
from dumpsim.analysis.operator import Operator, Series, series
from dumpsim.analysis.pairing import Accuracy, idle, lenient, pairs_of, together
from dumpsim.analysis.scan import Scan
from dumpsim.analysis.spread import spread, worth
from dumpsim.analysis.tolerance import rule
from dumpsim.analysis.verdict import FINDINGS, Outcome, Side, Task, judge_all, side_of

__all__ = ["Group", "of_one", "of_two"]

T = TypeVar("T")

_PIECE = 64  # operators per batch
_ALONE = ("in A only", "in B only")
_UNJUDGED = {"unreadable": "unreadable", "unknown": "neither values nor common statistics"}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Group:
    """The operators of one rank in one iteration."""

    rank: int
    iteration: int | None
    operators: tuple[Operator, ...]


Stream = Generator[tuple[Group, Run], None, None]


def of_one(a: "str | Path | DumpSet", scan: Scan, jobs: int | None, scheduler: str | None) -> Stream:
    """Yield the operators of one dump by iteration and rank, with the condition of their tensors."""
    dump = lenient(a, scan.unreadable)
    every = sorted(series(dump), key=lambda one: one.iteration or 0)
    scan.idle = idle(scan.allow, every)
    scan.ranks = len({one.rank for one in every})
    asked: deque[tuple[Group, Sequence[Operator]]] = deque()

    def pieces() -> Iterator[list[Side]]:
        for one in every:
            group = Group(rank=one.rank, iteration=one.iteration, operators=one.operators)
            for piece in _cut(one.operators):
                asked.append((group, piece))
                yield [side_of(entry) for operator in piece for entry in operator.entries]

    jobs = _jobs(jobs, every)
    for found in spread(conditions, pieces(), jobs=jobs, scheduler=scheduler, files=[dump.root]):
        group, piece = asked.popleft()
        answers = iter(found)
        for one in piece:
            yield group, _condition_run(one, answers, scan)


def _condition_run(one: Operator, answers: Iterator[Condition], scan: Scan) -> Run:
    tensors = []
    tolerated: frozenset[str] = frozenset()
    for entry in one.entries:
        state = next(answers)
        if state.error:
            scan.unreadable.append(state.error)
            scan.skipped["unreadable"] += 1
            continue
        if not state.known:
            scan.skipped["neither values nor statistics"] += 1
            continue
        kinds = _kinds(state)
        rest = kinds - scan.allowed(entry, state) if kinds else kinds
        tolerated |= kinds - rest
        mask = kinds == {"inf"} and not state.positive_inf
        infinite = "inf" in kinds
        tensors.append(Tensor(entry=entry, other=None, kinds=rest, detail=_counts(state), mask=mask, infinite=infinite))
    return Run(operator=one, partner=None, tensors=tuple(tensors), tolerated=tolerated)


def _jobs(jobs: int | None, every: Iterable[Series]) -> int | None:
    """Return the requested number of processes; by default 1 if starting more does not pay off."""
    if jobs is not None:
        return jobs
    entries = [entry for one in every for operator in one.operators for entry in operator.entries]
    return None if worth(len(entries), (entry.path for entry in entries)) else 1


def _cut(items: Sequence[T]) -> Iterator[Sequence[T]]:
    rest = iter(items)
    while piece := list(islice(rest, _PIECE)):
        yield piece


def _kinds(state: Condition) -> frozenset[str]:
    found = {"nan"} if state.nan else set()
    if state.positive_inf or state.negative_inf:
        found.add("inf")
    return frozenset(found)


def _counts(state: Condition) -> str:
    parts = (("NaN", state.nan), ("+Inf", state.positive_inf), ("-Inf", state.negative_inf))
    return ", ".join(name if count < 0 else f"{count} {name}" for name, count in parts if count)


def of_two(
    a: "str | Path | DumpSet",
    b: "str | Path | DumpSet",
    scan: Scan,
    tol: Sequence[str],
    match: str,
    name_map: NameMap | None,
    jobs: int | None,
    scheduler: str | None,
) -> Stream:
    """Yield the matched operators of two dumps, with the verdicts on their tensors."""
    rules = tuple(rule(text) for text in tol)
    dumps = together(a, b, match=match, name_map=name_map)
    scan.unreadable, scan.unmatched = dumps.unreadable, dumps.unmatched
    scan.idle = (*dumps.unused, *idle((one.pattern for one in rules), (one for pair in dumps.pairs for one in pair)))
    every = [(left, right) for left, right in dumps.pairs if left is not None and right is not None]
    every.sort(key=lambda pair: pair[0].iteration or 0)
    scan.ranks = len({left.rank for left, _ in every})
    asked: deque[tuple[Group, list[tuple[Match, list[tuple[Entry, Entry]]]], list[Task]]] = deque()

    def pieces() -> Iterator[list[Task]]:
        for left, right in every:
            group = Group(rank=left.rank, iteration=left.iteration, operators=left.operators)
            accuracy = Accuracy(rules)
            for matches in _cut(align(left.operators, right.operators, dumps.names)):
                piece = [(one, _pairs(one)) for one in matches]
                tasks = [_task(own, other, accuracy) for _, pairs in piece for own, other in pairs]
                asked.append((group, piece, tasks))
                yield tasks

    jobs = _jobs(jobs, (left for left, _ in every))
    for outcomes in spread(judge_all, pieces(), jobs=jobs, scheduler=scheduler, files=dumps.roots):
        group, piece, tasks = asked.popleft()
        answers = iter(zip(tasks, outcomes, strict=True))
        for one, pairs in piece:
            if one.left and one.right:
                yield group, _verdict_run(one, pairs, answers, scan)
                continue
            scan.skipped[_ALONE[not one.left]] += sum(len(operator.entries) for operator in (*one.left, *one.right))
            for operator in (*one.left, *one.right):
                yield group, Run(operator=operator, partner=None, tensors=(), alone="A" if one.left else "B")


def _pairs(match: Match) -> list[tuple[Entry, Entry]]:
    """Return the pairs of tensors."""
    if not match.left or not match.right:
        return []
    return [(one.left, one.right) for one in pairs_of(match) if one.left is not None and one.right is not None]


def _task(left: Entry, right: Entry, accuracy: Accuracy) -> Task:
    return Task(left=side_of(left), right=side_of(right), tolerance=accuracy.of(left, right), measures=False)


def _verdict_run(
    match: Match, pairs: Sequence[tuple[Entry, Entry]], answers: Iterator[tuple[Task, Outcome]], scan: Scan
) -> Run:
    tensors = []
    for left, right in pairs:
        task, outcome = next(answers)
        if outcome.verdict in _UNJUDGED:
            scan.skipped[_UNJUDGED[outcome.verdict]] += 1
            if outcome.verdict == "unreadable":
                scan.unreadable.append(outcome.note)
            continue
        bad = outcome.verdict in FINDINGS
        kinds = frozenset({"difference"} if bad else ())
        measurable = bad and outcome.verdict == "differs" and outcome.basis == "values"
        tensors.append(
            Tensor(
                entry=left,
                other=right,
                kinds=kinds,
                detail=_distance(outcome),
                task=task if measurable else None,
                counted=outcome.basis == "statistics",
                error=outcome.relative,
            )
        )
    for side, name, count in ((match.left, _ALONE[0], 0), (match.right, _ALONE[1], 1)):
        rest = sum(len(operator.entries) for operator in side) - len({id(pair[count]) for pair in pairs})
        if rest:
            scan.skipped[name] += rest
    return Run(operator=match.left[-1], partner=match.right[-1], tensors=tuple(tensors))


def _distance(outcome: Outcome) -> str:
    if outcome.verdict == "shape":
        return f"shapes {outcome.note}"
    what = "elements" if outcome.basis == "values" else "statistics"
    allowed = f" (rtol {outcome.tolerance.rtol:.3g}, atol {outcome.tolerance.atol:.3g})" if outcome.tolerance else ""
    said = f"{outcome.outside} of {outcome.count} {what} beyond the tolerance{allowed}"
    return f"{said}; {outcome.note}" if outcome.note else said
