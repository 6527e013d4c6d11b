"""Recompute and rank all operators of one dump: `dumpsim.replay` and the command of that name."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from dumpsim.analysis.dumpset import DumpSet
from dumpsim.analysis.dumpset import open as open_dump
from dumpsim.analysis.spread import spread, worth
from dumpsim.analysis.verdict import Side
from dumpsim.core.errors import BadInputError, UnreadableError
from dumpsim.core.evidence import Evidence
from dumpsim.replay.call import Call
from dumpsim.replay.judge import judge
from dumpsim.replay.plan import plan, rule
from dumpsim.replay.slope import MACHINES

__all__ = ["Replay", "Row", "Work", "prepare", "replay"]

_PIECE = 16  # operators sent to a process at a time
_UNREADABLE = "unreadable: "


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One run of an operator.

    Attributes
    ----------
    op_name, op_type : str
    graph, iteration : int or None
    error, explained : float or None
        As in `dumpsim.core.evidence.Evidence`; None if the operator was skipped.
    verdict : str
        ``ok``, ``suspect`` or ``skipped``.
    reason : str
    rank : int
    source : str
        ``train.py:175``, empty if unknown.
    """

    op_name: str
    op_type: str
    graph: int | None
    iteration: int | None
    error: float | None = None
    explained: float | None = None
    verdict: str = "skipped"
    reason: str = ""
    rank: int = 0
    source: str = ""

    @property
    def excess(self) -> float:
        """The error as a multiple of the explained error; 0 for skipped operators."""
        if self.error is None or self.explained is None:
            return 0.0
        return Evidence(self.error, self.explained, "ok").excess

    @property
    def unreadable(self) -> bool:
        """Whether one of its files is damaged or missing."""
        return self.reason.startswith(_UNREADABLE)

    def as_dict(self) -> dict[str, Any]:
        """Return plain values by field name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


@dataclass(frozen=True, kw_only=True)
class Replay:
    """All rows, the worst first; iterating yields them.

    Attributes
    ----------
    rows : tuple of Row
    unreadable : tuple of str
        Errors of files that list the tensors, such as mapping.csv.
    """

    rows: tuple[Row, ...]
    unreadable: tuple[str, ...] = ()

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def suspects(self) -> tuple[Row, ...]:
        """Operators whose errors rounding does not explain."""
        return tuple(row for row in self.rows if row.verdict == "suspect")

    @property
    def counts(self) -> dict[str, int]:
        """Number of rows by verdict."""
        return dict(sorted(Counter(row.verdict for row in self.rows).items()))

    @property
    def skipped(self) -> dict[str, int]:
        """Number of skipped operators by type and reason, the most frequent first."""
        found = Counter(f"{row.op_type}: {row.reason}" for row in self.rows if row.verdict == "skipped")
        return dict(found.most_common())

    @property
    def ok(self) -> bool:
        """Whether something was recomputed, nothing is suspect, and nothing was unreadable."""
        unreadable = self.unreadable or any(row.unreadable for row in self.rows)
        return not self.suspects and not unreadable and "ok" in self.counts

    def __repr__(self) -> str:
        counts = ", ".join(f"{count} {verdict}" for verdict, count in self.counts.items())
        return f"<Replay of {len(self.rows)} operators: {counts or 'none'}>"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Line:
    """A row that has not been filled in."""

    row: Row
    call: Call


@dataclass(frozen=True, kw_only=True)
class Work:
    """The operators that a replay recomputes; `rows` does the work, in the order of execution."""

    lines: tuple[_Line, ...]
    factor: float
    root: Path
    unreadable: list[str]

    def __len__(self) -> int:
        return len(self.lines)

    @property
    def names(self) -> set[str]:
        """Names of the operators."""
        return {line.row.op_name for line in self.lines}

    def of(self, wanted: Callable[[str], bool]) -> "Work":
        """Return the part whose operators' names or types are wanted."""
        return replace(
            self, lines=tuple(one for one in self.lines if wanted(one.row.op_name) or wanted(one.row.op_type))
        )

    def rows(self, *, jobs: int | None = 1, scheduler: str | None = None) -> Iterator[Row]:
        """Yield the rows, computed by processes or a Dask cluster (`dumpsim.analysis.spread.spread`)."""
        if jobs is None and not worth(len(self.lines), (path for line in self.lines for path in _paths(line.call))):
            jobs = 1
        pieces = _pieces(line.call for line in self.lines)
        work = partial(_judged, factor=self.factor)
        found = spread(work, pieces, jobs=jobs, scheduler=scheduler, files=(self.root,))
        evidence = (one for piece in found for one in piece)
        for line, one in zip(self.lines, evidence, strict=True):
            yield _filled(line.row, one)

    def result(self, rows: Iterable[Row]) -> Replay:
        """Return the replay with these rows, the worst first."""
        ranked = sorted(rows, key=lambda row: (_ORDER.index(row.verdict), -row.excess, -(row.error or 0.0)))
        return Replay(rows=tuple(ranked), unreadable=tuple(self.unreadable))


_ORDER = ("suspect", "ok", "skipped")


def _judged(calls: Sequence[Call], *, factor: float) -> list[Evidence]:
    return [judge(call, factor=factor) for call in calls]


def _pieces(calls: Iterable[Call]) -> Iterator[list[Call]]:
    waiting = iter(calls)
    while piece := list(islice(waiting, _PIECE)):
        yield piece


def _paths(call: Call) -> Iterator[Path]:
    sides = (*call.operands, *(side for _, side in call.outputs))
    return (Path(side.path) for side in sides if isinstance(side, Side) and side.path is not None)


def _filled(row: Row, found: Evidence) -> Row:
    measured = not math.isnan(found.error)
    return replace(
        row,
        error=found.error if measured else None,
        explained=found.explained if measured else None,
        verdict=found.verdict,
        reason=found.reason,
    )


def replay(
    dump: "str | Path | DumpSet",
    *,
    factor: float = 1.0,
    compute: Iterable[str] = (),
    device: str | None = None,
    jobs: int | None = 1,
    scheduler: str | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Replay:
    """Recompute every operator of one dump from its dumped inputs, and rank them by unexplained errors.

    An operator's inputs are its files, constants of its graph, or the outputs of the operators before it; its
    attributes are those of the IR text or protobuf in the tree. It is recomputed in float64 (integers exactly),
    together with a bound on the rounding errors of a device that computes in float32 (or the type in `compute`). An
    output beyond the bound is suspect: no order of summation and no rounding of the output's type explains it.

    Parameters
    ----------
    dump : path or DumpSet
        Anything that `dumpsim.open` reads, except API dumps.
    factor : float
        Allowed error, as a multiple of the explained one.
    compute : sequence of str
        ``PATTERN:TYPE``: operators that compute in a type less precise than float32, such as ``Conv2D*:tf32``. The
        pattern is a glob on name, type or label; the last match applies.
    device : str, optional
        Whose functions were used: ``cpu``, MindSpore's own less precise vector functions, or ``device``. By default
        it is derived from the names of the files.
    jobs, scheduler
        As in `dumpsim.analysis.spread.spread`.
    progress : callable
        ``progress(done, total)``

    Returns
    -------
    Replay

    Raises
    ------
    UnreadableError
        If there is no dump.
    BadInputError
        For an invalid factor, rule or device.

    Examples
    --------
    >>> import tempfile, numpy as np
    >>> place = Path(tempfile.mkdtemp()) / "rank_0" / "Net" / "0" / "0"
    >>> place.mkdir(parents=True)
    >>> files = {"Exp": ([0.0, 1.0], [1.0, 2.718282]), "ReLU": ([-1.0, 2.0], [0.0, 2.02]), "Odd": ([1.0], [1.0])}
    >>> for n, (kind, values) in enumerate(files.items()):
    ...     for io, value in zip(("input", "output"), values):
    ...         name = f"{kind}.Default_{kind}-op0.0.0.17000000000000{n}{len(io)}.{io}.0.DefaultFormat.npy"
    ...         np.save(place / name, np.array(value, np.float32))
    >>> for row in replay(place):
    ...     print(row.op_name, row.verdict, row.reason or "-")
    Default_ReLU-op0 suspect output.0[1]
    Default_Exp-op0 ok -
    Default_Odd-op0 skipped unknown operator type
    """
    work = prepare(dump, factor=factor, compute=compute, device=device)
    rows = []
    for row in work.rows(jobs=jobs, scheduler=scheduler):
        rows.append(row)
        if progress is not None:
            progress(len(rows), len(work))
    return work.result(rows)


def prepare(
    dump: "str | Path | DumpSet", *, factor: float = 1.0, compute: Iterable[str] = (), device: str | None = None
) -> Work:
    """Plan a replay; only names and graphs are read."""
    if not factor > 0:
        raise BadInputError(f"{factor} is not a valid factor", where="factor", allowed=("a number above 0",))
    if device is not None and device not in MACHINES:
        raise BadInputError(f"unknown device {device!r}", where="device", allowed=tuple(MACHINES))
    whole = dump if isinstance(dump, DumpSet) else open_dump(dump)
    unreadable: list[str] = []

    def broken(error: UnreadableError) -> None:
        if str(error) not in unreadable:
            unreadable.append(str(error))

    lines = []
    for one in plan(whole.lenient(broken), machine=device, compute=[rule(text) for text in compute]):
        operator = one.operator
        line = operator.line
        row = Row(
            op_name=operator.op_name,
            op_type=operator.op_type,
            graph=operator.entries[0].graph_id,
            iteration=operator.iteration,
            rank=operator.rank,
            source=f"{line.path}:{line.line}" if line is not None else "",
        )
        lines.append(_Line(row=row, call=one.call))
    return Work(lines=tuple(lines), factor=factor, root=whole.root, unreadable=unreadable)
