"""The first bad operator of a dump, or of a pair of dumps: `dumpsim.first` and the command of that name."""

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from dumpsim.analysis.align import Match, align
from dumpsim.analysis.compare import FINDINGS, Accuracy, pairs_of, together
from dumpsim.analysis.condition import Condition, conditions
from dumpsim.analysis.dumpset import DumpSet
from dumpsim.analysis.dumpset import open as open_dump
from dumpsim.analysis.entry import Entry
from dumpsim.analysis.operator import Operator, Series, series
from dumpsim.analysis.scan import INTENDED, Finding, Run, Scan, Tensor
from dumpsim.analysis.spread import spread, worth
from dumpsim.analysis.tolerance import rule
from dumpsim.analysis.verdict import Outcome, Side, Task, judge_all, side_of

__all__ = ["Search", "first"]

_PIECE = 32  # operators that are looked at together


@dataclass(frozen=True, kw_only=True)
class Search:
    """What a search found; iterating gives the findings, the earliest first.

    Attributes
    ----------
    findings : tuple of Finding
    operators : int
        Operators that were looked at.
    passed_on : int
        Operators with bad results that only pass on what they got.
    unreadable : tuple of str
        What is wrong with files that could not be read.
    """

    findings: tuple[Finding, ...]
    operators: int
    passed_on: int = 0
    unreadable: tuple[str, ...] = ()

    def __iter__(self) -> Iterator[Finding]:
        return iter(self.findings)

    def __len__(self) -> int:
        return len(self.findings)

    @property
    def maker(self) -> Finding | None:
        """The operator that made the first bad result, None where none did."""
        return next((one for one in self.findings if one.kind == "made"), None)


def first(
    a: "str | Path | DumpSet",
    b: "str | Path | DumpSet | None" = None,
    *,
    allow: Sequence[str] = (),
    intended: Sequence[str] = INTENDED,
    tol: Iterable[str] = (),
    match: str = "number",
    everything: bool = False,
    jobs: int | None = 1,
    scheduler: str | None = None,
    progress: Callable[[int], None] | None = None,
) -> Search:
    """The operator that made a NaN, an infinity or a difference, as opposed to those that pass it on.

    Parameters
    ----------
    a, b : path or DumpSet
        One dump: the first operator with finite inputs and a result that is not. Two: the first one whose inputs agree
        and whose results differ. Inputs that were not dumped are judged by the graph, if there is one, or else by the
        order of execution.
    allow : sequence of str
        Globs on name, type or label (``*Add-op0:input.1``) of tensors that may hold infinities.
    intended : sequence of str
        The same for results with -inf only; by default masks and what fills them.
    tol, match, jobs, scheduler
        As in `dumpsim.compare`.
    everything : bool
        Search on behind the first maker, and count who passes on.
    progress : callable
        ``progress(operators)`` that were looked at so far.

    Returns
    -------
    Search

    Raises
    ------
    UnreadableError
        Where there is no dump.

    Examples
    --------
    >>> import tempfile, numpy as np
    >>> place = Path(tempfile.mkdtemp()) / "rank_0" / "Net" / "0" / "0"
    >>> place.mkdir(parents=True)
    >>> for n, (name, value) in enumerate([("Log-op0.input", 0.0), ("Log-op0.output", -np.inf),
    ...                                    ("Exp-op0.input", -np.inf), ("Exp-op0.output", np.nan)]):
    ...     kind, _, io = name.partition("-op0.")
    ...     file = f"{kind}.Default_{kind}-op0.0.0.170000000000000{n}.{io}.0.DefaultFormat.npy"
    ...     np.save(place / file, np.full(2, value, np.float32))
    >>> finding, = first(place)
    >>> finding.kind, finding.what, finding.op_name, finding.tensor
    ('made', 'inf', 'Default_Log-op0', 'output.0')
    """
    scan = Scan(
        allow=tuple(allow),
        intended=tuple(intended),
        everything=everything,
        words=(_word(a), _word(b)),
        pair=b is not None,
    )
    stream = _alone(a, scan, jobs, scheduler) if b is None else _both(a, b, scan, tuple(tol), match, jobs, scheduler)
    count = 0
    group: _Group | None = None
    heard = False  # enough of this rank and iteration
    with closing(stream):
        for here, run in stream:
            if here is not group:
                if scan.enough and (group is None or here.iteration != group.iteration or scan.ranks == 1):
                    break
                group, heard = here, False
                scan.open_rank(here.rank, here.operators)
            if heard:
                continue
            count += 1
            if progress is not None:
                progress(count)
            heard = scan.take(run)
            if heard and scan.ranks == 1:
                break
    return Search(
        findings=scan.findings,
        operators=count,
        passed_on=scan.passed_on,
        unreadable=tuple(dict.fromkeys(scan.unreadable)),
    )


def _word(dump: "str | Path | DumpSet | None") -> str:
    return "" if dump is None else str(dump.root if isinstance(dump, DumpSet) else dump)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Group:
    """The operators of one rank in one iteration."""

    rank: int
    iteration: int | None
    operators: tuple[Operator, ...]


Stream = Generator[tuple[_Group, Run], None, None]


def _alone(a: "str | Path | DumpSet", scan: Scan, jobs: int | None, scheduler: str | None) -> Stream:
    """The operators of one dump, iteration by iteration and rank by rank, with the condition of their tensors."""
    every = sorted(series(a if isinstance(a, DumpSet) else open_dump(a)), key=lambda one: one.iteration or 0)
    scan.ranks = len({one.rank for one in every})
    asked: deque[tuple[_Group, Sequence[Operator]]] = deque()

    def pieces() -> Iterator[list[Side]]:
        for one in every:
            group = _Group(rank=one.rank, iteration=one.iteration, operators=one.operators)
            for piece in _cut(one.operators):
                asked.append((group, piece))
                yield [side_of(entry) for operator in piece for entry in operator.entries]

    jobs = _jobs(jobs, every)
    for found in spread(conditions, pieces(), jobs=jobs, scheduler=scheduler):
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
        kinds = _kinds(state)
        rest = kinds - scan.allowed(entry, state) if kinds else kinds
        tolerated |= kinds - rest
        tensors.append(Tensor(entry=entry, other=None, kinds=rest, detail=_counts(state)))
    return Run(operator=one, partner=None, tensors=tuple(tensors), tolerated=tolerated)


def _jobs(jobs: int | None, every: Iterable[Series]) -> int | None:
    """As asked; if nothing was, one process where more are not worth their start."""
    if jobs is not None:
        return jobs
    entries = [entry for one in every for operator in one.operators for entry in operator.entries]
    return None if worth(len(entries), (entry.path for entry in entries)) else 1


def _cut(operators: Sequence[Operator]) -> Iterator[Sequence[Operator]]:
    rest = iter(operators)
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


def _both(
    a: "str | Path | DumpSet",
    b: "str | Path | DumpSet",
    scan: Scan,
    tol: Sequence[str],
    match: str,
    jobs: int | None,
    scheduler: str | None,
) -> Stream:
    """The matched operators of two dumps, with the verdicts on their tensors."""
    rules = tuple(rule(text) for text in tol)
    every = [(left, right) for left, right in together(a, b, match=match) if left is not None and right is not None]
    every.sort(key=lambda pair: pair[0].iteration or 0)
    scan.ranks = len({left.rank for left, _ in every})
    asked: deque[tuple[_Group, list[tuple[Match, list[tuple[Entry, Entry]]]]]] = deque()

    def pieces() -> Iterator[list[Task]]:
        for left, right in every:
            group = _Group(rank=left.rank, iteration=left.iteration, operators=left.operators)
            accuracy = Accuracy(rules)
            matches = iter([one for one in align(left.operators, right.operators) if one.left and one.right])
            while piece := [(one, _pairs(one)) for one in islice(matches, _PIECE)]:
                asked.append((group, piece))
                yield [_task(own, other, accuracy) for _, pairs in piece for own, other in pairs]

    jobs = _jobs(jobs, (left for left, _ in every))
    for outcomes in spread(judge_all, pieces(), jobs=jobs, scheduler=scheduler):
        group, piece = asked.popleft()
        answers = iter(outcomes)
        for one, pairs in piece:
            yield group, _verdict_run(one, pairs, answers, scan)


def _pairs(match: Match) -> list[tuple[Entry, Entry]]:
    """The tensors that both sides have."""
    return [(one.left, one.right) for one in pairs_of(match) if one.left is not None and one.right is not None]


def _task(left: Entry, right: Entry, accuracy: Accuracy) -> Task:
    return Task(left=side_of(left), right=side_of(right), tolerance=accuracy.of(left, right), measures=False)


def _verdict_run(match: Match, pairs: Sequence[tuple[Entry, Entry]], answers: Iterator[Outcome], scan: Scan) -> Run:
    tensors = []
    for left, right in pairs:
        outcome = next(answers)
        if outcome.verdict == "unreadable":
            scan.unreadable.append(outcome.note)
        kinds = frozenset({"difference"} if outcome.verdict in FINDINGS else ())
        tensors.append(Tensor(entry=left, other=right, kinds=kinds, detail=_distance(outcome)))
    return Run(operator=match.left[-1], partner=match.right[-1], tensors=tuple(tensors))


def _distance(outcome: Outcome) -> str:
    if outcome.verdict == "shape":
        return f"shapes {outcome.note}"
    what = "elements" if outcome.basis == "values" else "statistics"
    said = f"{outcome.outside} of {outcome.count} {what} beyond the tolerance"
    return f"{said}; {outcome.note}" if outcome.note else said
