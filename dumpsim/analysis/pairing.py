"""Pairs the iterations of two dumps, then the tensors of matched operators, and chooses tolerances."""

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from operator import attrgetter
from pathlib import Path

from dumpsim.analysis.align import Match
from dumpsim.analysis.callgroup import align_arrays
from dumpsim.analysis.dumpset import DumpSet
from dumpsim.analysis.dumpset import open as open_dump
from dumpsim.analysis.entry import Entry
from dumpsim.analysis.namemap import NameMap, Names, read_names
from dumpsim.analysis.operator import Operator, Series, series, squeezed
from dumpsim.analysis.tolerance import Rule, Tolerance, usual
from dumpsim.core.errors import BadInputError, DumpsimError, nearest

__all__ = ["MATCHING", "Accuracy", "Pair", "Together", "flags", "idle", "lenient", "pairs_of", "together"]

MATCHING = ("number", "order")


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Two tensors of matched operators, or one without a counterpart."""

    left: Entry | None
    right: Entry | None
    note: str = ""


class Accuracy:
    """Tolerances along an iteration.

    After a pair of different floating types, later results have only the accuracy of the narrower type, whatever their
    own type is: later defaults are at least that type's.
    """

    def __init__(self, rules: Sequence[Rule] = ()) -> None:
        self._rules = tuple(reversed(rules))  # the last match wins
        self._types: set[str] = set()

    def of(self, left: Entry, right: Entry) -> Tolerance:
        """Return the tolerance of the next pair."""
        for one in self._rules:
            if left.answers(one.pattern) or right.answers(one.pattern):
                return one.tolerance
        types = {_dtype(left), _dtype(right)}
        floats = {name for name in types if "float" in name}
        if len(floats) == 2:
            self._types |= floats
        return usual(types | self._types if floats else types)


def _dtype(entry: Entry) -> str:
    """Number type, empty for an unreadable file, which the comparison reports."""
    try:
        return entry.dtype
    except (DumpsimError, OSError):
        return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Together:
    """The paired iterations of two dumps.

    Attributes
    ----------
    pairs : list
        By rank and iteration; None if one dump does not have it.
    unreadable : list of str
        Errors of unreadable files that list tensors; reading an operator's line may add some.
    roots : tuple of Path
    names : Names
        The names that calls of the first dump have in the second.
    unused : tuple of str
        A sentence for each name that no call of the first dump has.
    """

    pairs: list[tuple[Series | None, Series | None]]
    unreadable: list[str]
    roots: tuple[Path, ...]
    names: Names
    unused: tuple[str, ...] = ()

    @property
    def unmatched(self) -> tuple[str, ...]:
        """A sentence for each rank and iteration that only one dump has."""
        said = []
        for left, right in self.pairs:
            one = left if right is None else right if left is None else None
            if one is not None:
                iteration = ", constants" if one.iteration is None else f", iteration {one.iteration}"
                said.append(f"rank {one.rank}{iteration}: in {'A' if right is None else 'B'} only")
        return tuple(said)


def flags(tol: Iterable[str], match: str, name_map: NameMap | None) -> tuple[str, ...]:
    """Return the settings as command-line options, for a suggested command; a dict of names has no option."""
    words = [word for text in tol for word in ("--tol", text)]
    words += ["--match", match] if match != MATCHING[0] else []
    words += ["--map", os.fspath(name_map)] if isinstance(name_map, str | os.PathLike) else []
    return tuple(words)


def idle(patterns: Iterable[str], every: Iterable[Series | None]) -> tuple[str, ...]:
    """Return a sentence for each pattern that matches no tensor."""
    waiting = list(dict.fromkeys(patterns))
    if not waiting:
        return ()
    types: set[str] = set()
    for entry in (entry for one in every if one is not None for found in one.operators for entry in found.entries):
        waiting = [pattern for pattern in waiting if not entry.answers(pattern)]
        if not waiting:
            break
        types.add(entry.op_type)
    guesses = ((pattern, nearest(pattern.strip("*"), sorted(types))) for pattern in waiting)
    return tuple(
        f"no tensor matches {pattern!r}" + (f" (did you mean {guess!r}?)" if guess else "")
        for pattern, guess in guesses
    )


def lenient(dump: "str | Path | DumpSet", unreadable: list[str]) -> DumpSet:
    """Return a dump that records errors of damaged files and shows all others."""
    opened = dump if isinstance(dump, DumpSet) else open_dump(dump)
    return opened.lenient(lambda error: unreadable.append(str(error)))


def together(
    a: "str | Path | DumpSet", b: "str | Path | DumpSet", *, match: str = "number", name_map: NameMap | None = None
) -> Together:
    """Pair ranks by number, or the only rank of each; pair iterations by number or by order."""
    if match not in MATCHING:
        raise BadInputError(
            f"unknown way of matching {match!r}", where="match", allowed=MATCHING, nearest=nearest(match, MATCHING)
        )
    names = read_names(name_map)
    unreadable: list[str] = []
    dumps = lenient(a, unreadable), lenient(b, unreadable)
    left, right = (list(series(one)) for one in dumps)
    calls = {one.call for found in left for one in found.operators if one.api} if names.pairs else set()
    unused = tuple(f"no call in A is of {name!r}" for name in names.unused(calls))
    ranks = {one.rank for one in left}, {one.rank for one in right}
    same = len(ranks[0]) == len(ranks[1]) == 1
    ours, theirs = (_keyed(side, 0 if same else None, match) for side in (left, right))
    keys = [*ours, *(key for key in theirs if key not in ours)]
    order = sorted(keys, key=lambda key: (key[0], key[1] is not None, key[1] or 0))
    pairs = [(ours.get(key), theirs.get(key)) for key in order]
    return Together(
        pairs=pairs, unreadable=unreadable, roots=tuple(one.root for one in dumps), names=names, unused=unused
    )


def _keyed(side: Sequence[Series], rank: int | None, match: str) -> dict[tuple[int, int | None], Series]:
    """Return the iterations by rank, which may be overridden, and number."""
    found: dict[tuple[int, int | None], Series] = {}
    for own, members in groupby(side, attrgetter("rank")):
        for n, one in enumerate(members):
            found[own if rank is None else rank, n if match == "order" else one.iteration] = one
    return found


def pairs_of(match: Match) -> list[Pair]:
    """Pair the tensors of matched operators: by slot, then by shape in order; the rest stays alone."""
    if not match.left or not match.right:
        alone = [entry for one in (*match.left, *match.right) for entry in one.entries]
        return [Pair(left=one if match.left else None, right=None if match.left else one) for one in alone]
    if match.left[0].api and match.right[0].api:
        return _calls(match.left, match.right)
    if len(match.left) == len(match.right) == 1:
        one, other = match.left[0], match.right[0]
        return [*_side_by_side(one.inputs, other.inputs), *_side_by_side(one.outputs, other.outputs)]
    return _fused(match.left, match.right)


def _calls(left: Sequence[Operator], right: Sequence[Operator]) -> list[Pair]:
    """Pair calls of two API dumps by shape: inputs of the first ones, results of the last ones."""
    backward = left[-1].backward  # gradients of results, which only the last calls have in common
    ends = [(left[-1].inputs, right[-1].inputs)]
    if not backward:
        ends = [(left[0].inputs, right[0].inputs), (left[-1].outputs, right[-1].outputs)]
    pairs = [
        Pair(left=one, right=other)
        for ours, theirs in ends
        for one, other in align_arrays(ours, theirs, lambda entry: entry.name.shape)
    ]
    seen = {id(entry) for pair in pairs for entry in (pair.left, pair.right)}
    inner = [[entry for one in side for entry in one.entries if id(entry) not in seen] for side in (left, right)]
    pairs += [Pair(left=entry, right=None, note=f"inside {right[-1].op_name}") for entry in inner[0]]
    pairs += [Pair(left=None, right=entry, note=f"inside {left[-1].op_name}") for entry in inner[1]]
    return pairs


def _side_by_side(left: Sequence[Entry], right: Sequence[Entry]) -> list[Pair]:
    theirs = {entry.slot: entry for entry in right}
    both = {entry.slot: theirs[entry.slot] for entry in left if entry.slot in theirs}
    used = {id(entry) for entry in both.values()}
    rest = [entry for entry in right if id(entry) not in used]
    found = []
    for entry in left:
        other = both.get(entry.slot)
        if other is None:
            other = next((one for one in rest if squeezed(one) == squeezed(entry)), None)
            if other is not None:
                rest.remove(other)
        found.append(Pair(left=entry, right=other))
    return [*found, *(Pair(left=None, right=entry) for entry in rest)]


def _fused(left: Sequence[Operator], right: Sequence[Operator]) -> list[Pair]:
    """Pair a fused operator with its parts: inputs in order by shape, results with those of the last part."""
    swapped = len(left) == 1
    whole, parts = (left[0], right) if swapped else (right[0], left)
    queue = list(parts[0].inputs)
    for before, one in pairwise(parts):
        made = [squeezed(entry) for entry in before.outputs]
        within = next((entry for entry in one.inputs if squeezed(entry) in made), None)
        queue += [entry for entry in one.inputs if entry is not within]
    last = parts[-1].outputs
    pairs: list[tuple[Entry | None, Entry | None]] = []
    for entry in whole.inputs:
        found = next((one for one in queue if squeezed(one) == squeezed(entry)), None)
        if found is not None:
            del queue[: queue.index(found) + 1]
        pairs.append((found, entry))
    used = {id(one) for one, _ in pairs if one is not None}
    inner = [entry for one in parts for entry in one.entries if id(entry) not in used and entry not in last]
    note = f"inside {whole.op_name}"
    results = _side_by_side(whole.outputs, last) if swapped else _side_by_side(last, whole.outputs)
    ordered = [Pair(left=b, right=a) if swapped else Pair(left=a, right=b) for a, b in pairs]
    alone = [Pair(left=None if swapped else one, right=one if swapped else None, note=note) for one in inner]
    return [*ordered, *alone, *results]
