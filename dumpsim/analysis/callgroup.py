"""Match the calls of one step with those of another: groups of calls that do the same work.

Calls of one meaning on tensors of the same shapes are pairs, as many as keep the order; among equally many, those whose
values agree. What is left between two pairs is cut where the tensors that pass from one call to the next have the same
shapes on both sides, so that a linear layer meets a product and a sum.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from dumpsim.analysis.apicall import Call, shapes
from dumpsim.analysis.apiname import COMPOUNDS
from dumpsim.analysis.chain import WINDOW, Row, heaviest_chain
from dumpsim.analysis.namedistance import name_distances
from dumpsim.analysis.namemap import NO_NAMES, Names
from dumpsim.analysis.sequence import landmarks

__all__ = ["Group", "align", "align_arrays", "gap_groups"]

Compounds = Mapping[str, tuple[tuple[str, ...], ...]]
Span = tuple[int, int]

_SENSE = 0.9  # of the weight of equal names: the same operation under another kind or word
_NAME_COST = 0.05  # how much the names count against the shapes between two calls [spec api_dump 2.2]
_AGREEMENT_FLOOR = 0.25  # a relative difference of 1% or more says nothing about which call is which
_SMALL = 1e-3


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Group:
    """Calls of the origin and of the target that do the same work; one side may be empty."""

    origin: tuple[Call, ...]
    target: tuple[Call, ...]


def align(origin: Sequence[Call], target: Sequence[Call], names: Names = NO_NAMES) -> list[Group]:
    """Return the groups of two steps, in the order of the calls.

    Parameters
    ----------
    origin, target : sequence of Call
    names : Names
        The names that calls of the origin have in the target.
    """
    framework = target[0].framework if target else ""
    if names.pairs:
        means = [names.meaning((call.kind, call.api), framework) or call.meaning for call in origin]
        origin = [replace(call, meaning=mean) for call, mean in zip(origin, means, strict=True)]
    compounds = names.compounds(framework)
    pairs = _pairs(origin, target)
    groups: list[Group] = []
    at_i = at_j = 0
    for i, j in [*pairs, (len(origin), len(target))]:
        groups += gap_groups(origin[at_i:i], target[at_j:j], compounds)
        if i < len(origin):
            groups.append(Group((origin[i],), (target[j],)))
        at_i, at_j = i + 1, j + 1
    return groups


def _pairs(origin: Sequence[Call], target: Sequence[Call]) -> list[tuple[int, int]]:
    """The calls of one meaning and equal shapes that keep the order."""
    keys = [call.key for call in origin], [call.key for call in target]
    if keys[0] == keys[1]:
        return [(i, i) for i in range(len(origin))]
    if not origin or not target:
        return []
    codes: dict[Hashable, int] = {}
    exact = [_codes(codes, side) for side in keys]
    senses = [
        _codes(codes, [(call.meaning.sense, *key[1:]) for call, key in zip(side, names, strict=True)])
        for side, names in zip((origin, target), keys, strict=True)
    ]
    rank = np.array([call.meaning.rank for call in origin], np.float64)
    values = [_values(side) for side in (origin, target)]
    known = not any(np.isnan(side).all() for side in values)
    # all agreements of a chain together weigh less than one more pair
    share = 0.05 / (min(len(origin), len(target)) + 1)

    def row(i: int, lo: int, hi: int) -> NDArray[np.float64]:
        weights = np.where(senses[1][lo:hi] == senses[0][i], _SENSE, 0.0)
        weights[exact[1][lo:hi] == exact[0][i]] = 1.0
        (hits,) = np.nonzero(weights)
        if hits.size:
            agreed = _agreement(values[0][i], values[1][lo:hi][hits]) if known else 0.0
            weights[hits] += share * (agreed - _SMALL * rank[i])
        return weights

    head, tail = _equal_ends(exact, values)
    pairs = [(i, i) for i in range(head)]
    stops = len(origin) - tail, len(target) - tail
    marks: list[tuple[int, int]] = []
    if max(stops) - head > WINDOW:
        named = [
            _with_values(code[head:stop], value[head:stop])
            for code, value, stop in zip(exact, values, stops, strict=True)
        ]
        marks = [(i + head, j + head) for i, j in landmarks(*named)]
    at_i = at_j = head
    for i, j in [*marks, stops]:
        pairs += [(at_i + a, at_j + b) for a, b in heaviest_chain(i - at_i, j - at_j, _shifted(row, at_i, at_j))]
        pairs += [(i, j)] if i < stops[0] else []
        at_i, at_j = i + 1, j + 1
    return pairs + [(stops[0] + k, stops[1] + k) for k in range(tail)]


def _equal_ends(codes: Sequence[NDArray[np.int64]], values: Sequence[NDArray[np.float64]]) -> tuple[int, int]:
    """How many calls at the beginning and at the end are equal in name, shapes and values: no chain does better."""
    length = min(map(len, codes))

    def run(forward: bool, limit: int) -> int:
        ends = [slice(0, limit) if forward else slice(len(side) - limit, None) for side in codes]
        a, b = (side[end] for side, end in zip(values, ends, strict=True))
        same = (codes[0][ends[0]] == codes[1][ends[1]]) & np.all(a == b, axis=1)
        same = same if forward else same[::-1]
        return limit if same.all() else int(np.argmin(same))

    head = run(True, length)
    return head, run(False, length - head)


def _shifted(row: Row, by_i: int, by_j: int) -> Row:
    """Weights of the elements from some place on."""
    return lambda i, lo, hi: row(i + by_i, lo + by_j, hi + by_j)


def _codes(codes: dict[Hashable, int], keys: Sequence[Hashable]) -> NDArray[np.int64]:
    """One integer for each distinct key."""
    return np.array([codes.setdefault(key, len(codes)) for key in keys], np.int64)


def _values(calls: Sequence[Call]) -> NDArray[np.float64]:
    """The signatures of all calls of a side."""
    return np.array([call.signature for call in calls], np.float64).reshape(len(calls), -1)


def _with_values(codes: NDArray[np.int64], values: NDArray[np.float64]) -> list[Hashable]:
    """Keys that hold five digits of the values too."""
    return [(int(code), *(f"{v:.4e}" for v in row)) for code, row in zip(codes, values.tolist(), strict=True)]


def _agreement(one: NDArray[np.float64], many: NDArray[np.float64]) -> NDArray[np.float64]:
    """How well values agree, from 0 (by less than two digits) to 1 (equal); unknown values say nothing."""
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        difference = np.abs(many - one) / np.maximum(np.abs(many), np.abs(one))
        digits = np.clip(-np.log10(difference + 1e-8) / 8, 0.0, 1.0)
    digits = np.where((many == one) | (np.isnan(many) & np.isnan(one)), 1.0, np.nan_to_num(digits))
    known = ~(np.isnan(many) & np.isnan(one))
    mean = (digits * known).sum(axis=1) / np.maximum(known.sum(axis=1), 1)
    return np.where(mean < _AGREEMENT_FLOOR, 0.0, mean)


def gap_groups(origin: Sequence[Call], target: Sequence[Call], compounds: Compounds = COMPOUNDS) -> list[Group]:
    """Groups of the calls between two pairs: several for one where that is known, else cut where shapes tell."""
    if not origin or not target:
        return _cut_groups(origin, target)
    if any(call.is_layer for call in origin) != any(call.is_layer for call in target):
        return _without_layers(origin, target, compounds)
    groups: list[Group] = []
    at_i = at_j = 0
    for (i, stop_i), (j, stop_j) in _compound_pairs(origin, target, compounds):
        groups += _cut_groups(origin[at_i:i], target[at_j:j])
        groups.append(Group(tuple(origin[i:stop_i]), tuple(target[j:stop_j])))
        at_i, at_j = stop_i, stop_j
    return groups + _cut_groups(origin[at_i:], target[at_j:])


def _compound_pairs(origin: Sequence[Call], target: Sequence[Call], compounds: Compounds) -> list[tuple[Span, Span]]:
    """Calls of one side with the several of the other that do the same and end in the same shapes; none cross."""
    sides = origin, target
    ended = [_ended(side, compounds) for side in sides]  # at each call: how many calls do what one of a sense does
    if not any(map(any, ended)):
        return []
    codes: dict[Hashable, int] = {}
    passed = [_codes(codes, [shapes(call.outputs) for call in side]) for side in sides]
    senses = _codes(codes, [call.meaning.sense for call in target])
    wholes = {sense: np.array([sense in here for here in ended[1]]) for sense in {s for here in ended[1] for s in here}}

    def row(i: int, lo: int, hi: int) -> NDArray[np.float64]:
        weights = np.zeros(hi - lo)
        if (whole := wholes.get(origin[i].meaning.sense)) is not None:
            weights[whole[lo:hi]] = 1.0
        for sense in ended[0][i]:
            weights[senses[lo:hi] == codes.get(sense, -1)] = 1.0
        weights[passed[1][lo:hi] != passed[0][i]] = 0.0
        return weights

    found: list[tuple[Span, Span]] = []
    for i, j in heaviest_chain(len(origin), len(target), row):
        many = ended[1][j].get(origin[i].meaning.sense)
        starts = (i, j + 1 - many) if many else (i + 1 - ended[0][i][target[j].meaning.sense], j)
        if not found or (starts[0] >= found[-1][0][1] and starts[1] >= found[-1][1][1]):
            found.append(((starts[0], i + 1), (starts[1], j + 1)))
    return found


def _ended(calls: Sequence[Call], compounds: Compounds) -> list[dict[str, int]]:
    """For each call the senses whose parts end with it, and how many parts that are."""
    by_last: dict[str, list[tuple[str, tuple[str, ...]]]] = {}
    for sense, ways in compounds.items():
        for parts in ways:
            by_last.setdefault(parts[-1], []).append((sense, parts))
    senses = [call.meaning.sense for call in calls]
    return [
        {
            sense: len(parts)
            for sense, parts in by_last.get(last, ())
            if tuple(senses[max(0, at + 1 - len(parts)) : at + 1]) == parts
        }
        for at, last in enumerate(senses)
    ]


def _cut_groups(origin: Sequence[Call], target: Sequence[Call]) -> list[Group]:
    """Cut where the same shapes pass from one call to the next."""
    if not origin and not target:
        return []
    groups, at_i, at_j = [], 0, 0
    for i, j in [*_cuts(origin, target), (len(origin), len(target))]:
        groups.append(Group(tuple(origin[at_i : i + 1]), tuple(target[at_j : j + 1])))
        at_i, at_j = i + 1, j + 1
    return groups


def _without_layers(origin: Sequence[Call], target: Sequence[Call], compounds: Compounds) -> list[Group]:
    """Modules of the side that names them take no part; they are put back where they were."""
    work = [[call for call in side if not call.is_layer] for side in (origin, target)]
    groups: list[Group] = []
    swapped = any(call.is_layer for call in target)
    side = list(target if swapped else origin)
    at = 0
    for group in gap_groups(work[0], work[1], compounds):
        members = group.target if swapped else group.origin
        before = at
        while members and side[at] is not members[0]:
            at += 1
        groups += _alone(side[before:at], swapped)
        if members:
            end = next(k for k in range(at, len(side)) if side[k] is members[-1]) + 1
            inside = tuple(side[at:end])
            group, at = (Group(group.origin, inside) if swapped else Group(inside, group.target)), end
        groups.append(group)
    return groups + _alone(side[at:], swapped)


def _alone(calls: Sequence[Call], swapped: bool) -> list[Group]:
    """Return calls without a counterpart as groups of their own."""
    if not calls:
        return []
    return [Group((), tuple(calls)) if swapped else Group(tuple(calls), ())]


def _cuts(origin: Sequence[Call], target: Sequence[Call]) -> list[tuple[int, int]]:
    """Return the calls after which both sides are cut."""
    codes: dict[Hashable, int] = {}
    edges = [
        _codes(codes, [(shapes(a.outputs), shapes(b.inputs)) for a, b in pairwise(side)]) for side in (origin, target)
    ]
    names: dict[str, int] = {}
    apis = [
        np.array([names.setdefault(_api(call), len(names)) for call in side], np.int64) for side in (origin, target)
    ]
    distance = name_distances(tuple(names)) if len(names) <= WINDOW else None

    def apart(one: int, many: NDArray[np.int64]) -> NDArray[np.float64]:
        return (many != one).astype(np.float64) if distance is None else distance(one)[many]

    def row(i: int, lo: int, hi: int) -> NDArray[np.float64]:
        same = edges[1][lo:hi] == edges[0][i]
        if not same.any():
            return np.zeros(hi - lo)
        ends = (apart(int(apis[0][i + k]), apis[1][lo + k : hi + k]) for k in (0, 1))
        return np.where(same, 2 - _NAME_COST * sum(ends) / 2, 0.0)

    return heaviest_chain(len(edges[0]), len(edges[1]), row, prefer_match=True)


def _api(call: Call) -> str:
    """The name that is compared: MindSpore's word without its kind."""
    return call.meaning.word.partition("_")[2]


def align_arrays(
    origin: Sequence[T], target: Sequence[T], shape: Callable[[T], tuple[int, ...]]
) -> list[tuple[T | None, T | None]]:
    """Arrays of one call beside those of another: equal shapes in order, the rest alone."""
    wanted = [[shape(array) for array in side] for side in (origin, target)]
    if wanted[0] == wanted[1]:
        return list(zip(origin, target, strict=True))

    def row(i: int, lo: int, hi: int) -> NDArray[np.float64]:
        return np.array([float(other == wanted[0][i]) for other in wanted[1][lo:hi]])

    rows: list[tuple[T | None, T | None]] = []
    at_i = at_j = 0
    for i, j in [*heaviest_chain(len(origin), len(target), row), (len(origin), len(target))]:
        rows += [(None, array) for array in target[at_j:j]]
        rows += [(array, None) for array in origin[at_i:i]]
        if i < len(origin):
            rows.append((origin[i], target[j]))
        at_i, at_j = i + 1, j + 1
    return rows
