"""Compare a dump whose ranks hold slices with another dump, by the tensors of the whole network."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dumpsim.analysis.align import align
from dumpsim.analysis.dumpset import DumpSet
from dumpsim.analysis.dumpset import open as open_dump
from dumpsim.analysis.entry import Entry
from dumpsim.analysis.globalarray import GlobalArray, Key, joined, key_of
from dumpsim.analysis.namemap import NameMap
from dumpsim.analysis.pairing import Accuracy, pairs_of, together
from dumpsim.analysis.slicing import layouts_of
from dumpsim.analysis.tolerance import Tolerance, rule
from dumpsim.analysis.verdict import AGREEING, judge_arrays
from dumpsim.core.errors import BadInputError, UnreadableError

__all__ = ["GlobalComparison", "GlobalRow", "compare_global"]

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class GlobalRow:
    """One tensor of the whole network.

    Attributes
    ----------
    iteration, op_type, op_name, io, slot
        Of the first dump.
    other_name : str
        The operator in the second.
    verdict : str
        As in `dumpsim.analysis.compare.Row`; ``replicas`` if the tensor agrees but its replicas disagree.
    ranks : tuple of int
        Ranks whose slice differs from the other dump, or from its replicas.
    outside, count : int
        Elements beyond the tolerance, and all elements.
    shape : tuple of int
        Of the whole tensor.
    note : str
    source : str
    """

    iteration: int | None
    op_type: str
    op_name: str
    io: str
    slot: int
    other_name: str
    verdict: str
    ranks: tuple[int, ...]
    outside: int
    count: int
    shape: tuple[int, ...]
    note: str
    source: str

    @property
    def finding(self) -> bool:
        """Whether the tensors disagree."""
        return self.verdict not in (*AGREEING, "unknown")

    def as_dict(self) -> dict[str, Any]:
        """Plain values by field name."""
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class GlobalComparison:
    """The rows, in the order of execution of the lowest rank.

    Attributes
    ----------
    rows : tuple of GlobalRow
    unmatched : tuple of str
        Iterations of one dump only, and tensors of the first dump without a layout or a counterpart.
    """

    rows: tuple[GlobalRow, ...]
    unmatched: tuple[str, ...] = ()

    def __iter__(self) -> Iterator[GlobalRow]:
        return iter(self.rows)

    @property
    def findings(self) -> tuple[GlobalRow, ...]:
        """The rows that disagree."""
        return tuple(row for row in self.rows if row.finding)

    @property
    def first(self) -> GlobalRow | None:
        """The earliest tensor that disagrees; look at its operator and ranks first."""
        return next(iter(self.findings), None)

    @property
    def ok(self) -> bool:
        """Whether everything agrees."""
        return not self.findings

    @property
    def counts(self) -> dict[str, int]:
        """Rows by verdict."""
        return dict(Counter(row.verdict for row in self.rows))


def compare_global(
    a: "str | Path | DumpSet",
    b: "str | Path | DumpSet",
    *,
    manifests: Iterable[str | Path] | None = None,
    tol: Iterable[str] = (),
    match: str = "number",
    name_map: NameMap | None = None,
    equal_nan: bool = True,
) -> GlobalComparison:
    """Assemble whole tensors from the slices of `a`, and compare them with `b`.

    Parameters
    ----------
    a : path or DumpSet
        The dump of all ranks of a sliced network.
    b : path or DumpSet
        A dump of the same network on one device, or on ranks with other slices.
    manifests : iterable of path, optional
        The manifests of `a`, which have the layouts; by default those beside the dump. Without any, layouts are derived
        from the graphs in the dump (``rank_0/graphs/*.ir``).
    tol, match, name_map, equal_nan
        See `dumpsim.compare`.

    Raises
    ------
    BadInputError
        If neither a manifest nor a graph of `a` has a layout.
    """
    left = a if isinstance(a, DumpSet) else open_dump(a)
    right = b if isinstance(b, DumpSet) else open_dump(b)
    layouts = layouts_of(left.root, None if manifests is None else [Path(path) for path in manifests])
    if not layouts:
        raise BadInputError(
            f"no manifest and no graph of {left.root} has the layout of a tensor",
            where="compare_global",
            allowed=("manifests=[...]",),
        )
    others = layouts_of(right.root)
    wholes = dict(joined(left, layouts))
    golden = dict(joined(right, others)) if others else {}
    rules = tuple(rule(text) for text in tol)
    rows: list[GlobalRow] = []
    both = together(_lowest(left), _lowest(right), match=match, name_map=name_map)
    unmatched = list(both.unmatched)
    for ours, theirs in both.pairs:
        if ours is None or theirs is None:
            continue
        accuracy = Accuracy(rules)
        runs: Counter[Key] = Counter()
        golden_runs: Counter[Key] = Counter()
        for found in align(ours.operators, theirs.operators, both.names):
            for pair in pairs_of(found):
                whole = wholes.get(_next(pair.left, runs)) if pair.left is not None else None
                other = golden.get(_next(pair.right, golden_runs)) if pair.right is not None else None
                if whole is None or pair.right is None or pair.left is None:
                    if pair.left is not None:
                        unmatched.append(f"{pair.left.label}: {'no layout' if whole is None else 'in A only'}")
                    continue
                expected = other.array if other is not None else np.asarray(pair.right.array())
                rows.append(_row(whole, pair.right, expected, accuracy.of(pair.left, pair.right), equal_nan))
    return GlobalComparison(rows=tuple(rows), unmatched=tuple(unmatched))


def _lowest(dump: DumpSet) -> DumpSet:
    """Return the lowest rank, which defines the order of execution."""
    ranks = {entry.rank for entry in dump}
    if not ranks:
        raise UnreadableError("holds no tensor", where=str(dump.root))
    return dump.filter(rank=min(ranks))


def _next(entry: Entry, runs: "Counter[Key]") -> Key:
    """Return the key of an entry, with the number of the operator's run."""
    plain = key_of(entry)
    runs[plain] += 1
    return key_of(entry, runs[plain] - 1)


def _row(whole: GlobalArray, other: Entry, expected: Array, tolerance: Tolerance, equal_nan: bool) -> GlobalRow:
    entry = whole.entry
    outcome = judge_arrays(whole.array, expected, tolerance, equal_nan=equal_nan)
    ranks: Sequence[int] = ()
    notes = [outcome.note, *(f"replicas disagree: {odd}" for odd in whole.disagreements)]
    if whole.missing:
        notes.append(f"not dumped by rank {', '.join(map(str, whole.missing))}")
    verdict = outcome.verdict
    if verdict == "differs" or whole.disagreements:
        ranks = _guilty(whole, expected, tolerance, equal_nan)
        ranks = ranks or [rank for odd in whole.disagreements for rank in odd.ranks]
    if verdict in AGREEING and whole.disagreements:
        verdict = "replicas"
    line = entry.script_line
    return GlobalRow(
        iteration=entry.iteration,
        op_type=entry.op_type,
        op_name=entry.op_name,
        io=entry.io,
        slot=entry.slot,
        other_name=other.op_name,
        verdict=verdict,
        ranks=tuple(sorted(set(ranks))),
        outside=outcome.outside,
        count=outcome.count,
        shape=whole.shape,
        note="; ".join(filter(None, notes)),
        source=f"{line.path}:{line.line}" if line is not None else "",
    )


def _guilty(whole: GlobalArray, expected: Array, tolerance: Tolerance, equal_nan: bool) -> Sequence[int]:
    """Return the ranks whose slice differs; none for a sum, of which each rank has only a term."""
    if whole.sliced.summed or whole.array.shape != expected.shape:
        return ()
    regions: Mapping[int, Any] = {rank: whole.sliced.layout.region(rank) for rank in whole.entries}
    return [
        rank
        for rank, entry in whole.entries.items()
        if judge_arrays(np.asarray(entry.array()), expected[regions[rank]], tolerance, equal_nan=equal_nan).verdict
        not in AGREEING
    ]
