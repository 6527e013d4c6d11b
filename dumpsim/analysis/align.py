"""Match the operators of two dumps: by script line, then by name, then by order and shape.

Calls of two API dumps are aligned by `callgroup`, as `api_dump_compare` aligns them.
"""

from bisect import bisect
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from math import nan

import numpy as np

from dumpsim.analysis.apicall import calls
from dumpsim.analysis.apitree import ApiEntry
from dumpsim.analysis.callgroup import align as align_calls
from dumpsim.analysis.namemap import NO_NAMES, Names
from dumpsim.analysis.operator import Operator
from dumpsim.analysis.sequence import Floats, increasing, pair
from dumpsim.core.errors import DumpsimError

__all__ = ["PUT_IN", "Match", "align"]


_LAYERS = {
    "conv2d": ("conv2d", "biasadd"),
    "dense": ("matmul", "biasadd"),
}  # layer of an API dump -> operators of a graph
PUT_IN = ("transdata", "cast", "tensormove")  # operators that compilers insert, where and under what names they like


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """Matched operators: one of each side, or a fused one and its parts.

    Attributes
    ----------
    left, right : tuple of Operator
        In the order of execution; one of the two is empty for what has no counterpart.
    by : str
        How they were matched: ``line`` (of the script), ``name``, ``order`` (with shapes), ``fusion``, or empty.
    """

    left: tuple[Operator, ...]
    right: tuple[Operator, ...]
    by: str = ""


def align(left: Sequence[Operator], right: Sequence[Operator], names: Names = NO_NAMES) -> list[Match]:
    """Match the operators of an iteration of two dumps.

    Nearly linear in their number, without recursion. If an operator ran more often on one side, values (maximum,
    minimum, norm of the last output) decide which runs are matched.

    Parameters
    ----------
    left, right : sequence of Operator
    names : Names
        The names that calls of the left API dump have on the right.

    Returns
    -------
    list of Match
        Each operator is in exactly one. In the order of `left`; operators of `right` alone stand where they ran.
    """
    apis = [any(one.api for one in side) for side in (left, right)]
    if all(apis):
        state = _State(left, right)
        state.calls(names)
        return state.matches()
    if apis[0] and names.pairs:
        left = [replace(one, meant=names.words(*one.call)) for one in left]
    state = _State(left, right)
    if not any(apis):
        state.groups(_provenance, "line")
        state.groups(_named, "name")
        state.fused()
    else:
        state.layers()
    state.gaps(lambda one: one.word not in PUT_IN)
    return state.matches()


class _State:
    """The matches so far, by index."""

    def __init__(self, left: Sequence[Operator], right: Sequence[Operator]) -> None:
        self.left, self.right = left, right
        self.partner: dict[int, int] = {}
        self.back: dict[int, int] = {}
        self.how: dict[int, str] = {}
        self.whole: list[tuple[tuple[int, ...], tuple[int, ...]]] = []  # fused operators and their parts
        self.taken: tuple[set[int], set[int]] = (set(), set())

    def match(self, i: int, j: int, how: str) -> None:
        self.partner[i], self.back[j], self.how[i] = j, i, how

    def free(self, side: int) -> list[int]:
        """The operators without a counterpart so far."""
        known = self.partner if side == 0 else self.back
        count = len(self.left if side == 0 else self.right)
        return [n for n in range(count) if n not in known and n not in self.taken[side]]

    def groups(self, key: Callable[[Operator], Hashable | None], how: str) -> None:
        """Match operators of equal keys: by number, by order, or as sequences if their counts differ."""
        ours = _grouped(self.left, self.free(0), key)
        theirs = _grouped(self.right, self.free(1), key)
        for name, mine in ours.items():
            others = theirs.get(name, [])
            if not others:
                continue
            numbers = [self.left[i].number for i in mine], [self.right[j].number for j in others]
            if len(mine) == len(others) and sorted(numbers[0]) == sorted(numbers[1]):
                mine = sorted(mine, key=lambda i: self.left[i].number)
                others = sorted(others, key=lambda j: self.right[j].number)
                pairs = list(zip(mine, others, strict=True))
            elif len(mine) == len(others):
                pairs = list(zip(mine, others, strict=True))
            else:
                pairs = self._sequence(mine, others, lambda one: one.stem, numbers)
            for i, j in pairs:
                self.match(i, j, how)

    def _sequence(
        self,
        mine: Sequence[int],
        others: Sequence[int],
        key: Callable[[Operator], Hashable | None],
        numbers: tuple[list[int], list[int]] | None = None,
    ) -> list[tuple[int, int]]:
        keys = [key(self.left[i]) for i in mine], [key(self.right[j]) for j in others]

        def values(rows: Sequence[int], columns: Sequence[int]) -> tuple[Floats, Floats]:
            return (
                np.array([_fingerprint(self.left[mine[n]]) for n in rows]),
                np.array([_fingerprint(self.right[others[n]]) for n in columns]),
            )

        return [(mine[i], others[j]) for i, j in pair(*keys, values, numbers)]

    def fused(self) -> None:
        """Match a fused operator with its parts. [spec ge 4.6]"""
        for side, (whole, parts) in enumerate(((self.left, self.right), (self.right, self.left))):
            other = 1 - side
            by_name: dict[str, list[int]] = defaultdict(list)
            for n in self.free(other):
                by_name[parts[n].name].append(n)
            for n in self.free(side):
                names = whole[n].parts
                if len(names) < 2:
                    continue
                found = [by_name[name].pop(0) for name in names if by_name.get(name)]
                if not found:
                    continue
                self.taken[side].add(n)
                self.taken[other].update(found)
                self.whole.append(((n,), tuple(found)) if side == 0 else (tuple(found), (n,)))

    def layers(self) -> None:
        """Match a call of an API dump with the operators that a graph has for it, if they end in the same shape."""
        for side, (wholes, parts) in enumerate(((self.left, self.right), (self.right, self.left))):
            ways = {n: way for n in self.free(side) if wholes[n].api and (way := _parts(wholes[n]))}
            for count in sorted({len(way) for way in ways.values()}, reverse=True):
                free = [n for n in self.free(1 - side) if parts[n].word not in PUT_IN]
                runs = [free[n : n + count] for n in range(len(free) - count + 1)]
                ours = [n for n, way in ways.items() if len(way) == count]
                keys = (
                    [(ways[n], wholes[n].shapes[1][:1]) for n in ours],
                    [(tuple(parts[n].word for n in run), parts[run[-1]].shapes[1][:1]) for run in runs],
                )
                for n, at in pair(*keys):
                    if self.taken[1 - side].isdisjoint(runs[at]):
                        one, many = (ours[n],), tuple(runs[at])
                        self.belong(*((one, many) if side == 0 else (many, one)))

    def belong(self, ours: tuple[int, ...], theirs: tuple[int, ...], how: str = "order") -> None:
        """Match one or several operators of one side with those of the other."""
        if len(ours) == len(theirs) == 1:
            self.match(ours[0], theirs[0], how)
        elif ours and theirs:
            self.taken[0].update(ours)
            self.taken[1].update(theirs)
            self.whole.append((ours, theirs))

    def calls(self, names: Names) -> None:
        """Match the calls of two API dumps, and the backward of a call with that of its counterpart."""
        sides = [
            calls(entry for one in side for entry in (*one.layers, *one.entries) if isinstance(entry, ApiEntry))
            for side in (self.left, self.right)
        ]
        at = [{one.op_name: n for n, one in enumerate(side)} for side in (self.left, self.right)]
        for group in align_calls(sides[0], sides[1], names):
            members = group.origin, group.target
            words = [[call.meaning.word for call in side] for side in members]
            for direction in ("forward", "backward"):
                found = [
                    tuple(at[n][name] for call in side if (name := f"{call.name}_{direction}") in at[n])
                    for n, side in enumerate(members)
                ]
                self.belong(found[0], found[1], "name" if words[0] == words[1] else "order")

    def gaps(self, wanted: Callable[[Operator], bool]) -> None:
        """Match operators between matched ones: by type and shapes, then a single one by its shapes."""
        free = [i for i in self.free(0) if wanted(self.left[i])], [j for j in self.free(1) if wanted(self.right[j])]
        for ours, theirs in _cut(*free, self._chain(self.partner)):
            self._gap(ours, theirs)

    def _gap(self, mine: list[int], others: list[int]) -> None:
        for kind in (_call, _shape_of_result, _first_result):
            rest = [i for i in mine if i not in self.partner], [j for j in others if j not in self.back]
            numbers = [self.left[i].number for i in rest[0]], [self.right[j].number for j in rest[1]]
            for i, j in self._rest(*rest, kind, numbers, self._chain(mine)):
                self.match(i, j, "order")
        for ours, theirs in _cut(mine, others, self._chain(mine)):
            if len(ours) == len(theirs) == 1:
                i, j = ours[0], theirs[0]
                one, other = self.left[i], self.right[j]
                if one.backward == other.backward and one.shapes == other.shapes and any(one.shapes):
                    self.match(i, j, "order")

    def _chain(self, mine: Iterable[int]) -> list[tuple[int, int]]:
        """Return the longest increasing subsequence of the matches."""
        return increasing(sorted((i, self.partner[i]) for i in mine if i in self.partner))

    def _rest(
        self,
        mine: list[int],
        others: list[int],
        kind: Callable[[Operator], Hashable | None],
        numbers: tuple[list[int], list[int]],
        chain: list[tuple[int, int]],
    ) -> list[tuple[int, int]]:
        """Match the rest of a gap."""
        if not mine or not others:
            return []
        if not chain:
            return self._sequence(mine, others, kind, numbers)
        found = []
        for ours, theirs in _cut(mine, others, chain):
            if ours and theirs:
                found += self._sequence(ours, theirs, kind)
        return found

    def matches(self) -> list[Match]:
        """Return all matches, in order."""
        at: list[tuple[int, Match]] = []
        for i, j in self.partner.items():
            at.append((i, Match(left=(self.left[i],), right=(self.right[j],), by=self.how[i])))
        for ours, theirs in self.whole:
            one = Match(left=tuple(self.left[i] for i in ours), right=tuple(self.right[j] for j in theirs), by="fusion")
            at.append((max(ours), one))
        at.extend((i, Match(left=(self.left[i],), right=())) for i in self.free(0))
        known = [*self.partner.items(), *((max(ours), max(theirs)) for ours, theirs in self.whole)]
        before = {j: i for i, j in increasing(sorted(known))}
        last = -1
        alone = set(self.free(1))
        for j in range(len(self.right)):
            last = before.get(j, last)
            if j in alone:
                at.append((last, Match(left=(), right=(self.right[j],))))
        return [match for _, match in sorted(at, key=lambda item: item[0])]  # of one place those of the right are last


def _grouped(
    all_of: Sequence[Operator], chosen: Iterable[int], key: Callable[[Operator], Hashable | None]
) -> dict[Hashable, list[int]]:
    groups: dict[Hashable, list[int]] = {}
    for n in chosen:
        if (name := key(all_of[n])) is not None:
            groups.setdefault(name, []).append(n)
    return groups


def _cut(
    mine: Sequence[int], others: Sequence[int], chain: Sequence[tuple[int, int]]
) -> "list[tuple[list[int], list[int]]]":
    """Return the ranges between the links of a chain."""
    sides = []
    for side, members in enumerate((mine, others)):
        stops = [link[side] for link in chain]
        links = set(stops)
        ranges: list[list[int]] = [[] for _ in (*chain, None)]
        for n in members:
            if n not in links:
                ranges[bisect(stops, n)].append(n)
        sides.append(ranges)
    return list(zip(*sides, strict=True))


def _provenance(one: Operator) -> Hashable | None:
    """Return script line, scope and type. A line is identified by its text, since edits above change its number."""
    line = one.line
    if line is None or not line.code.strip():
        return None
    return (line.path.rpartition("/")[2], line.code.strip(), one.stem, one.op_type)


def _named(one: Operator) -> Hashable:
    """The name without its number; a parameter has its file after the step, a Data operator before it. [seed 001]"""
    return (one.stem, one.op_type == "Parameter")


def _call(one: Operator) -> Hashable:
    """Type and shapes."""
    return (one.word, one.backward, one.shapes)


def _shape_of_result(one: Operator) -> Hashable:
    """Return type and shapes of the results: frameworks pass different inputs."""
    return (one.word, one.backward, one.shapes[1])


def _first_result(one: Operator) -> Hashable | None:
    """Return type and shape of the first result: further ones depend on the framework."""
    return (one.word, one.backward, one.shapes[1][0]) if one.shapes[1] else None


def _parts(one: Operator) -> tuple[str, ...]:
    """The operations that do the work of a call together, as a name map or a graph has them."""
    return one.meant if len(one.meant) > 1 else _LAYERS.get(one.word, ())


def _fingerprint(one: Operator) -> tuple[float, float, float]:
    """Return numbers that distinguish runs of an operator; NaN for unknown ones."""
    entry = (one.outputs or one.inputs)[-1]
    try:
        found = [entry.statistic(name) if name in entry.row or entry.path else None for name in ("max", "min")]
        third = entry.statistic("avg" if "avg" in entry.row and "l2norm" not in entry.row else "l2norm")
    except (DumpsimError, OSError):
        return (nan, nan, nan)
    return tuple(nan if value is None else float(value) for value in (*found, third))  # type: ignore[return-value]
