"""Which operators of two dumps are the same: by provenance, then by name, then by order and shape."""

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import nan

import numpy as np

from dumpsim.analysis.operator import Operator
from dumpsim.analysis.sequence import Floats, increasing, pair
from dumpsim.core.errors import DumpsimError

__all__ = ["PUT_IN", "Match", "align"]


_LAYERS = {"conv2d": "conv2d", "matmul": "dense"}  # what a layer with a bias begins with in a graph
PUT_IN = ("transdata", "cast", "tensormove")  # by compilers, in places of their own, under names that say nothing


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """Operators that belong together: one of each side, or the parts of a fused one.

    Attributes
    ----------
    left, right : tuple of Operator
        In the order of execution; one of the two is empty for what has no counterpart.
    by : str
        ``line`` (the same line of the script), ``scope`` (the same module), ``name``, ``order`` (place and shapes),
        ``fusion``, or empty.
    """

    left: tuple[Operator, ...]
    right: tuple[Operator, ...]
    by: str = ""


def align(left: Sequence[Operator], right: Sequence[Operator]) -> list[Match]:
    """Match the operators of an iteration of two dumps.

    Near linear in their number; no recursion. Where the same operator ran another number of times, values (maximum,
    minimum, norm of the last output) tell which runs belong together.

    Returns
    -------
    list of Match
        Every operator is in exactly one; in the order of `left`, those of `right` alone where they ran.
    """
    state = _State(left, right)
    calls = any(one.api for one in left) or any(one.api for one in right)
    if not calls:
        state.groups(_provenance, "line")
        state.groups(_named, "name")
        state.fused()
    else:
        state.composed()
        state.groups(_module, "scope")
        state.layers()
        state.gaps(lambda one: not one.backward)
        state.backward()
    state.gaps(lambda one: one.word not in PUT_IN)
    return state.matches()


class _State:
    """What is matched so far, by index."""

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
        """What has no counterpart yet."""
        known = self.partner if side == 0 else self.back
        count = len(self.left if side == 0 else self.right)
        return [n for n in range(count) if n not in known and n not in self.taken[side]]

    def groups(self, key: Callable[[Operator], Hashable | None], how: str) -> None:
        """Match those of equal keys: by their numbers, by their order, or as sequences where their counts differ."""
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
        """A fused operator belongs to those that it was made of. [spec ge 4.6]"""
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

    def composed(self) -> None:
        """A call belongs to those that are said to do its work together, and that end in the same shape."""
        wholes = [i for i in self.free(0) if len(self.left[i].meant) > 1 and not self.left[i].backward]
        for count in sorted({len(self.left[i].meant) for i in wholes}, reverse=True):
            free = [j for j in self.free(1) if not self.right[j].backward and self.right[j].word not in PUT_IN]
            runs = [free[n : n + count] for n in range(len(free) - count + 1)]
            ours = [i for i in wholes if len(self.left[i].meant) == count]
            keys = (
                [(self.left[i].meant, self.left[i].shapes[1][:1]) for i in ours],
                [(tuple(self.right[j].word for j in run), self.right[run[-1]].shapes[1][:1]) for run in runs],
            )
            for n, at in pair(*keys):
                if self.taken[1].isdisjoint(runs[at]):
                    self.taken[0].add(ours[n])
                    self.taken[1].update(runs[at])
                    self.whole.append(((ours[n],), tuple(runs[at])))

    def layers(self) -> None:
        """A call of a layer in an API dump belongs to the two operators that a graph makes of it."""
        calls = [i for i in self.free(0) if self.left[i].api], [j for j in self.free(1) if self.right[j].api]
        for side, (whole, parts) in enumerate(((self.left, self.right), (self.right, self.left))):
            if not calls[side] or calls[1 - side]:
                continue
            free = [n for n in self.free(1 - side) if parts[n].word not in PUT_IN]
            twos = [two for two in pairwise(free) if _layer(*(parts[n] for n in two))]
            keys = [_first_result(whole[n]) for n in calls[side]], [_layer(*(parts[n] for n in two)) for two in twos]
            for n, at in pair(*keys):
                one, two = (calls[side][n],), twos[at]
                self.taken[side].update(one)
                self.taken[1 - side].update(two)
                self.whole.append((one, two) if side == 0 else (two, one))

    def backward(self) -> None:
        """A call's backward belongs to the backward of its forward's counterpart."""
        theirs = {self.right[j].op_name: j for j in self.free(1)}
        pairs = [(self.left[i].op_name, self.right[j].op_name, self.how[i]) for i, j in self.partner.items()]
        pairs += [(self.left[i].op_name, self.right[j].op_name, "fusion") for (*_, i), (*_, j) in self.whole]
        forward = {one: (other, how) for one, other, how in pairs}
        for i in self.free(0):
            call = self.left[i].op_name.removesuffix("_backward")
            other, how = forward.get(f"{call}_forward", ("", ""))
            j = theirs.get(f"{other.removesuffix('_forward')}_backward")
            if j is not None and j not in self.back:
                self.match(i, j, how)

    def gaps(self, wanted: Callable[[Operator], bool]) -> None:
        """Between what is matched: by type and shapes, then a single one by its shapes."""
        chain = self._chain(self.partner)
        free = [i for i in self.free(0) if wanted(self.left[i])], [j for j in self.free(1) if wanted(self.right[j])]
        at = [0, 0]
        for i, j in (*chain, (len(self.left), len(self.right))):
            gap: tuple[list[int], list[int]] = ([], [])
            for side, stop in enumerate((i, j)):
                while at[side] < len(free[side]) and free[side][at[side]] < stop:
                    gap[side].append(free[side][at[side]])
                    at[side] += 1
            if gap[0] and gap[1]:
                self._gap(*gap)

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
        """The longest rising choice of what some operators are matched with."""
        return increasing(sorted((i, self.partner[i]) for i in mine if i in self.partner))

    def _rest(
        self,
        mine: list[int],
        others: list[int],
        kind: Callable[[Operator], Hashable | None],
        numbers: tuple[list[int], list[int]],
        chain: list[tuple[int, int]],
    ) -> list[tuple[int, int]]:
        """Pairs between what the earlier kinds matched in a gap."""
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
        """Everything, in order."""
        at: list[tuple[tuple[int, int], Match]] = []
        for i, j in self.partner.items():
            at.append(((i, 1), Match(left=(self.left[i],), right=(self.right[j],), by=self.how[i])))
        for ours, theirs in self.whole:
            one = Match(left=tuple(self.left[i] for i in ours), right=tuple(self.right[j] for j in theirs), by="fusion")
            at.append(((max(ours), 1), one))
        at.extend(((i, 1), Match(left=(self.left[i],), right=())) for i in self.free(0))
        known = [*self.partner.items(), *((max(ours), max(theirs)) for ours, theirs in self.whole)]
        before = {j: i for i, j in increasing(sorted(known))}
        last = -1
        lonely = set(self.free(1))
        for j in range(len(self.right)):
            last = before.get(j, last)
            if j in lonely:
                at.append(((last, 2), Match(left=(), right=(self.right[j],))))
        return [match for _, match in sorted(at, key=lambda item: item[0])]


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
    """What lies between the links of a chain and is not a link itself."""
    links = {i for i, _ in chain}, {j for _, j in chain}
    found = []
    a = c = 0
    for i, j in (*chain, (mine[-1] + 1 if mine else 0, others[-1] + 1 if others else 0)):
        ours, theirs = [], []
        while a < len(mine) and mine[a] <= i:
            if mine[a] not in links[0]:
                ours.append(mine[a])
            a += 1
        while c < len(others) and others[c] <= j:
            if others[c] not in links[1]:
                theirs.append(others[c])
            c += 1
        found.append((ours, theirs))
    return found


def _provenance(one: Operator) -> Hashable | None:
    """Script line, scope and type; a line is known by its text, since lines above it come and go."""
    line = one.line
    if line is None or not line.code.strip():
        return None
    return (line.path.rpartition("/")[2], line.code.strip(), one.stem, one.op_type)


def _named(one: Operator) -> Hashable:
    """The name without its number; a parameter has its file after the step, a Data operator before it. [seed 001]"""
    return (one.stem, one.op_type == "Parameter")


def _module(one: Operator) -> Hashable | None:
    """The module whose forward an API dump told of, and its class."""
    return (one.module, one.word) if one.module and not one.backward else None


def _call(one: Operator) -> Hashable:
    """Type and shapes."""
    return (one.word, one.backward, one.shapes)


def _shape_of_result(one: Operator) -> Hashable:
    """Type and shapes of results: what is handed over as input differs between frameworks."""
    return (one.word, one.backward, one.shapes[1])


def _first_result(one: Operator) -> Hashable | None:
    """Type and shape of the first result: other ones are a framework's own."""
    return (one.word, one.backward, one.shapes[1][0]) if one.shapes[1] else None


def _layer(one: Operator, bias: Operator) -> Hashable | None:
    """What `_first_result` says of the layer that two operators are, None where they are none."""
    name = _LAYERS.get(one.word, "")
    if not name or bias.word != "biasadd" or not one.shapes[1] or one.shapes[1] != bias.shapes[1]:
        return None
    return (name, False, bias.shapes[1][0])


def _fingerprint(one: Operator) -> tuple[float, float, float]:
    """Numbers that tell runs of an operator apart; NaN for what is not known."""
    entry = (one.outputs or one.inputs)[-1]
    try:
        found = [entry.statistic(name) if name in entry.row or entry.path else None for name in ("max", "min")]
        third = entry.statistic("avg" if "avg" in entry.row and "l2norm" not in entry.row else "l2norm")
    except (DumpsimError, OSError):
        return (nan, nan, nan)
    return tuple(nan if value is None else float(value) for value in (*found, third))  # type: ignore[return-value]
