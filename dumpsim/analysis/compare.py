"""Compare two dumps: `dumpsim.compare` and the command of that name."""

import csv
import io
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dumpsim.analysis.align import align
from dumpsim.analysis.coverage import MIN_MATCHED, Coverage, Group, group_of
from dumpsim.analysis.dumpset import DumpSet
from dumpsim.analysis.entry import Entry
from dumpsim.analysis.frame import frames
from dumpsim.analysis.namemap import NameMap
from dumpsim.analysis.pairing import Accuracy, Pair, idle, pairs_of, together
from dumpsim.analysis.spread import spread, worth
from dumpsim.analysis.tolerance import Tolerance, rule
from dumpsim.analysis.verdict import AGREEING, FINDINGS, Outcome, Task, judge_all, side_of
from dumpsim.analysis.wholefile import write_named
from dumpsim.core.errors import BadInputError

if TYPE_CHECKING:
    import pandas

__all__ = ["Comparison", "Plan", "Row", "compare", "prepare"]

LONELY = ("only_a", "only_b")
_PIECE = 128  # pairs per batch of a process


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One tensor of a comparison; fields with the prefix ``other_`` are of the second dump.

    Attributes
    ----------
    rank, iteration : int
    op_type, op_name, io, slot, dtype, shape, path
        Of the first dump; empty or None for a tensor of the second alone.
    matched_by : str
        ``line``, ``name``, ``order`` or ``fusion`` (see `Match`), empty for a tensor of one dump alone.
    verdict : str
        ``equal``, ``close``, ``differs``, ``shape``, ``unknown``, ``unreadable``, ``only_a`` or ``only_b``.
    basis : str
        ``values`` or ``statistics``.
    outside, count : int
        Elements beyond the tolerance, and all elements; the same for statistics.
    rtol, atol : float
        The tolerance that was used; defaults are scaled to the size of the elements.
    cosine, max_absolute, ... : float or None
        Measures of `dumpsim.tensor.metrics.Distance`; those of equal tensors are 1 and 0.
    mean, deviation : float or None
        Of all elements; unknown for equal tensors.
    note : str
    source : str
        ``train.py:175`` of the first dump, or else of the second.
    """

    rank: int
    iteration: int | None
    op_type: str = ""
    op_name: str = ""
    io: str = ""
    slot: int | None = None
    other_type: str = ""
    other_name: str = ""
    other_io: str = ""
    other_slot: int | None = None
    matched_by: str = ""
    verdict: str = ""
    basis: str = ""
    dtype: str = ""
    other_dtype: str = ""
    shape: tuple[int, ...] | None = None
    other_shape: tuple[int, ...] | None = None
    outside: int | None = None
    count: int | None = None
    rtol: float | None = None
    atol: float | None = None
    cosine: float | None = None
    max_absolute: float | None = None
    accumulated_relative: float | None = None
    relative_euclidean: float | None = None
    kullback_leibler: float | None = None
    mean_absolute: float | None = None
    root_mean_square: float | None = None
    max_relative: float | None = None
    mean_relative: float | None = None
    mean: float | None = None
    deviation: float | None = None
    other_mean: float | None = None
    other_deviation: float | None = None
    note: str = ""
    source: str = ""
    path: str | None = None
    other_path: str | None = None

    @property
    def finding(self) -> bool:
        """Whether the two tensors disagree."""
        return self.verdict in FINDINGS

    def as_dict(self) -> dict[str, Any]:
        """Plain values by field name."""
        return {name: getattr(self, name) for name in COLUMNS}


COLUMNS = tuple(field.name for field in fields(Row))
_MEASURES = COLUMNS[COLUMNS.index("cosine") : COLUMNS.index("mean")]
_MOMENTS = {  # column -> field of Distance
    "mean": "own_mean",
    "deviation": "own_deviation",
    "other_mean": "golden_mean",
    "other_deviation": "golden_deviation",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Line:
    """A row before its tensors are read."""

    rank: int
    iteration: int | None
    by: str
    pair: Pair
    tolerance: Tolerance | None  # None for a tensor without counterpart


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The pairs that a comparison reads; `rows` does the work, one row per tensor, in order."""

    lines: tuple[_Line, ...]
    equal_nan: bool
    unmatched: tuple[str, ...]
    idle: tuple[str, ...]
    unreadable: tuple[str, ...]
    roots: tuple[Path, ...]
    groups: tuple[Group, ...] = ()
    min_matched: float = MIN_MATCHED

    def __len__(self) -> int:
        return len(self.lines)

    @property
    def names(self) -> set[str]:
        """Names of the operators of both sides."""
        return {one.op_name for line in self.lines for one in (line.pair.left, line.pair.right) if one is not None}

    def of(self, wanted: Callable[[str], bool]) -> "Plan":
        """Return the part whose operators have one of the wanted names on either side."""
        chosen = (
            line
            for line in self.lines
            if any(wanted(one.op_name) for one in (line.pair.left, line.pair.right) if one is not None)
        )
        return replace(self, lines=tuple(chosen), groups=tuple(one for one in self.groups if one.any(wanted)))

    def rows(self, *, jobs: int | None = 1, scheduler: str | None = None) -> Iterator[Row]:
        """Compute the rows, with several processes or a Dask cluster (`dumpsim.analysis.spread.spread`)."""
        if jobs is None and not worth(len(self.lines), (line.pair.left.path for line in self.lines if line.pair.left)):
            jobs = 1
        tasks = (task for line in self.lines if (task := self._task(line)) is not None)
        pieces = spread(judge_all, _pieces(tasks), jobs=jobs, scheduler=scheduler, files=self.roots)
        outcomes = (one for piece in pieces for one in piece)
        for line in self.lines:
            yield self._row(line, next(outcomes) if line.tolerance is not None else None)

    def result(self, rows: Iterable[Row]) -> "Comparison":
        """Return the comparison with these rows."""
        return Comparison(
            rows=tuple(rows),
            unmatched=self.unmatched,
            idle=self.idle,
            unreadable=self.unreadable,
            coverage=Coverage.of(self.groups),
            min_matched=self.min_matched,
        )

    def _task(self, line: _Line) -> Task | None:
        left, right = line.pair.left, line.pair.right
        if left is None or right is None or line.tolerance is None:
            return None
        return Task(left=side_of(left), right=side_of(right), tolerance=line.tolerance, equal_nan=self.equal_nan)

    def _row(self, line: _Line, outcome: Outcome | None) -> Row:
        left, right = line.pair.left, line.pair.right
        values: dict[str, Any] = {"rank": line.rank, "iteration": line.iteration, "matched_by": line.by}
        if left is not None:
            values |= {"op_type": left.op_type, "op_name": left.op_name, "io": left.io, "slot": left.slot}
            values |= {"path": str(left.path) if left.path is not None else None}
        if right is not None:
            values |= {"other_type": right.op_type, "other_name": right.op_name, "other_io": right.io}
            values |= {"other_slot": right.slot, "other_path": str(right.path) if right.path is not None else None}
        values["source"] = _source(left) or _source(right)
        if outcome is None:
            one = left if left is not None else right
            assert one is not None
            prefix = "" if left is not None else "other_"
            values |= {"verdict": LONELY[left is None], "note": line.pair.note, "matched_by": ""}
            values |= {f"{prefix}dtype": one.name.dtype, f"{prefix}shape": one.name.shape or None}
            return Row(**values)
        tolerance = outcome.tolerance or line.tolerance
        assert tolerance is not None
        return Row(
            **values,
            verdict=outcome.verdict,
            basis=outcome.basis,
            dtype=outcome.dtypes[0],
            other_dtype=outcome.dtypes[1],
            shape=outcome.shapes[0],
            other_shape=outcome.shapes[1],
            outside=outcome.outside,
            count=outcome.count,
            rtol=tolerance.rtol,
            atol=tolerance.atol,
            note=outcome.note,
            **_measures(outcome),
        )


def _pieces(tasks: Iterator[Task]) -> Iterator[list[Task]]:
    while piece := list(islice(tasks, _PIECE)):
        yield piece


def _measures(outcome: Outcome) -> dict[str, Any]:
    if outcome.distance is not None:
        fields_of = dict.fromkeys(_MEASURES) | _MOMENTS
        return {name: getattr(outcome.distance, own or name) for name, own in fields_of.items()}
    if outcome.verdict == "equal" and outcome.basis == "values":
        return {name: 1.0 if name == "cosine" else 0.0 for name in _MEASURES}
    return {}


def _source(entry: Entry | None) -> str:
    line = entry.script_line if entry is not None else None
    return f"{line.path}:{line.line}" if line is not None else ""


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """The rows of a comparison; iterate over it to get them.

    Attributes
    ----------
    rows : tuple of Row
    unmatched : tuple of str
        A sentence for each rank and iteration that only one dump has.
    idle : tuple of str
        A sentence for each tolerance pattern that matches no tensor, and each name that no call has.
    unreadable : tuple of str
        Errors of unreadable files that list tensors.
    coverage : Coverage
        Operators with a counterpart.
    min_matched : float
        The share of operators with a counterpart below which the dumps may be of different networks.
    """

    rows: tuple[Row, ...]
    unmatched: tuple[str, ...] = ()
    idle: tuple[str, ...] = ()
    unreadable: tuple[str, ...] = ()
    coverage: Coverage = Coverage()  # noqa: RUF009
    min_matched: float = MIN_MATCHED

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def counts(self) -> dict[str, int]:
        """Rows by verdict."""
        return dict(sorted(Counter(row.verdict for row in self.rows).items()))

    @property
    def findings(self) -> tuple[Row, ...]:
        """Rows of tensors that disagree."""
        return tuple(row for row in self.rows if row.finding)

    @property
    def compared(self) -> int:
        """Number of compared pairs."""
        return sum(row.verdict in (*AGREEING, *FINDINGS) for row in self.rows)

    @property
    def matched(self) -> float:
        """The share of operators that have a counterpart (`Coverage.share`)."""
        return self.coverage.share

    @property
    def shortfall(self) -> str:
        """A sentence if too few operators have a counterpart, else empty."""
        return self.coverage.shortfall(self.min_matched)

    @property
    def ok(self) -> bool:
        """Whether enough operators have a counterpart, all pairs agree, and all files were readable."""
        unreadable = self.unreadable or any(row.verdict == "unreadable" for row in self.rows)
        return bool(self.compared) and not self.findings and not unreadable and not self.shortfall

    def to_csv(self, path: "str | Path") -> None:
        """Write all rows to a CSV file with a header, atomically.

        Raises
        ------
        DumpWriteError
            With the file's name; the file is not changed.
        """
        file = io.StringIO()
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows(["" if value is None else value for value in row.as_dict().values()] for row in self.rows)
        write_named(path, file.getvalue().encode("utf-8", "surrogateescape"))

    def to_pandas(self) -> "pandas.DataFrame":
        """Return a pandas table with one row per tensor (extra ``report``)."""
        frame = frames("pandas").DataFrame([row.as_dict() for row in self.rows], columns=COLUMNS)
        whole = dict.fromkeys(("rank", "iteration", "slot", "other_slot", "outside", "count"), "Int64")
        real = dict.fromkeys(("rtol", "atol", *_MEASURES, *_MOMENTS), "float64")
        table: pandas.DataFrame = frame.astype(whole | real)
        return table

    def __repr__(self) -> str:
        said = ", ".join(f"{count} {verdict}" for verdict, count in self.counts.items())
        return f"<Comparison of {len(self.rows)} tensors: {said}>"


def compare(
    a: "str | Path | DumpSet",
    b: "str | Path | DumpSet",
    *,
    tol: Iterable[str] = (),
    match: str = "number",
    name_map: NameMap | None = None,
    equal_nan: bool = True,
    min_matched: float = MIN_MATCHED,
    jobs: int | None = 1,
    scheduler: str | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Comparison:
    """Compare two dumps tensor by tensor.

    Operators are matched by the script line that created them, then by name (with its number, or without it), fused
    operators by the names of their parts, and the rest by order and shapes. Tensors in a device layout are converted to
    the host's layout first. If a dump has no values, statistics are compared.

    Parameters
    ----------
    a, b : path or DumpSet
        Anything that `dumpsim.open` reads. `b` is the golden dump, to whose values relative tolerances refer.
    tol : sequence of str
        ``PATTERN:RTOL[:ATOL]``; the pattern is a glob on name, type or label of either side; the last match
        wins. By default, the wider default of the two number types (`tolerance.DEFAULTS`) applies, with its ATOL scaled
        to the size of the golden tensor's elements; after a pair of float16 and float32, that of float16; integers must
        be equal.
    match : str
        Pair iterations by ``number`` or by ``order``.
    name_map : dict or path, optional
        The names of APIs of an API dump `a` in `b`, one or several for each, as for `api_dump_compare`:
        ``{"NN.MyDense": ["NN.Dense", "NN.ReLU"]}``, or a file of such lines.
    equal_nan : bool
        Treat NaN at the same index as equal.
    min_matched : float
        The share of operators, from 0 to 1, that must have a counterpart in one of the two dumps; below it, the dumps
        may be of different networks, and the comparison is not `ok`. Operators that compilers insert do not count.
    jobs, scheduler
        See `dumpsim.analysis.spread.spread`.
    progress : callable
        ``progress(done, total)``

    Returns
    -------
    Comparison

    Raises
    ------
    UnreadableError
        If one of the two is not a dump.
    BadInputError
        For an invalid tolerance, an unknown way of matching, and an unknown name.

    Examples
    --------
    >>> import tempfile, numpy as np
    >>> root = Path(tempfile.mkdtemp())
    >>> for name, value in (("a", 1.0), ("b", 1.1)):
    ...     place = root / name / "rank_0" / "Net" / "0" / "0"
    ...     place.mkdir(parents=True)
    ...     file = "ReLU.Default_ReLU-op0.0.0.1700000000000001.output.0.DefaultFormat.npy"
    ...     np.save(place / file, np.full(3, value, np.float32))
    >>> for row in compare(root / "a", root / "b"):
    ...     print(row.op_name, row.verdict, row.outside, round(row.max_absolute, 3))
    Default_ReLU-op0 differs 3 0.1
    >>> compare(root / "a", root / "b", tol=["*relu*:0.2"]).ok
    True
    """
    plan = prepare(a, b, tol=tol, match=match, name_map=name_map, equal_nan=equal_nan, min_matched=min_matched)
    rows = []
    for row in plan.rows(jobs=jobs, scheduler=scheduler):
        rows.append(row)
        if progress is not None:
            progress(len(rows), len(plan))
    return plan.result(rows)


def prepare(
    a: "str | Path | DumpSet",
    b: "str | Path | DumpSet",
    *,
    tol: Iterable[str] = (),
    match: str = "number",
    name_map: NameMap | None = None,
    equal_nan: bool = True,
    min_matched: float = MIN_MATCHED,
) -> Plan:
    """Align two dumps; read only names, and headers if names do not decide."""
    if not 0 <= min_matched <= 1:
        raise BadInputError(f"{min_matched} is not a share", where="min_matched", allowed=("0 to 1",))
    groups: list[Group] = []
    rules = tuple(rule(text) for text in tol)
    lines: list[_Line] = []
    both = together(a, b, match=match, name_map=name_map)
    for left, right in both.pairs:
        own = left if left is not None else right
        assert own is not None
        accuracy = Accuracy(rules)
        for found in align(left.operators if left else (), right.operators if right else (), both.names):
            pairs = pairs_of(found)
            if left is not None and right is not None:
                groups.append(group_of(found, pairs))
            for pair in pairs:
                tolerance = accuracy.of(pair.left, pair.right) if pair.left and pair.right else None
                lines.append(_Line(rank=own.rank, iteration=own.iteration, by=found.by, pair=pair, tolerance=tolerance))
    return Plan(
        lines=tuple(lines),
        equal_nan=equal_nan,
        unmatched=both.unmatched,
        idle=(*both.unused, *idle((one.pattern for one in rules), (one for pair in both.pairs for one in pair))),
        unreadable=tuple(both.unreadable),
        roots=both.roots,
        groups=tuple(groups),
        min_matched=min_matched,
    )
