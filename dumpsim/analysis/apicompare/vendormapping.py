"""The mapping of troubleshooter 1.0.17, call by call, with its weaknesses. [spec api_dump 2.2]

First the "convinced" pairs: calls of one name and shapes, of which both sides have equally many. Between them the edges
from call to call are aligned by an edit distance, and both sides are cut where edges are paired. Values play no part.
The tool recurses and keeps Python lists of every cell; nothing here does, but the edges still cost their product.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Sequence
from itertools import chain, pairwise

import numpy as np
from numpy.typing import NDArray

from dumpsim.analysis.apicall import Call, shapes
from dumpsim.analysis.apicompare.unlisted import UNLISTED
from dumpsim.analysis.callgroup import Group
from dumpsim.analysis.namedistance import name_distances
from dumpsim.core.errors import UnsupportedError

__all__ = ["METHODS", "vendor_groups"]

METHODS = ("recursion", "global", "simple")

Key = tuple[str, tuple[tuple[int, ...], ...], tuple[tuple[int, ...], ...]]
Pair = tuple[int, int]

_MAX_CELLS = 1 << 28  # of one gap, a byte each
_MATCH, _REPLACE, _SKIP_ORIGIN, _SKIP_TARGET = 1, 2, 3, 4
_NAME_COST = 20.0  # the inverse is the highest cost of the names of two edges


def vendor_groups(
    origin: Sequence[Call], target: Sequence[Call], method: str, frameworks: tuple[str, str]
) -> list[Group]:
    """Return the groups of two steps as the real tool finds them.

    Parameters
    ----------
    origin, target : sequence of Call
    method : {'recursion', 'global', 'simple'}
        How the convinced pairs are found: best names first and then within the gaps; best names first as long as the
        order holds; one pass in order.
    frameworks : pair of str

    Raises
    ------
    UnsupportedError
        If a gap has more edges than the tool itself can process.
    """
    keys = [
        [_key(call, framework) for call in side] for side, framework in zip((origin, target), frameworks, strict=True)
    ]
    groups: list[Group] = []
    at_i = at_j = 0
    for i, j in [*_PAIRS[method](keys[0], keys[1]), (len(origin), len(target))]:
        groups += _gap(origin[at_i:i], target[at_j:j])
        if i < len(origin) and j < len(target):
            groups.append(Group((origin[i],), (target[j],)))
        at_i, at_j = i + 1, j + 1
    return groups


def _key(call: Call, framework: str) -> Key:
    """Name and shapes; MindTorch's names and those that the tool's table lacks stay as they are."""
    word = call.meaning.word
    if framework == "mindtorch" or (framework == "torch" and call.kind == "Torch" and call.api in UNLISTED):
        word = f"{call.kind.lower()}_{call.api}"
    elif framework == "torch" and call.kind == "NN" and call.api == "SELU":
        word = "nn_SELU"
    return (word, shapes(call.inputs), shapes(call.outputs))


_RANKS = {"nn": 0, "functional": 1, "tensor": 2}


def _priority(key: Key, count: int) -> tuple[int, float, int]:
    """Smaller is better: cells first, then the more the sizes of inputs and outputs differ, then the more frequent."""
    sizes = [math.prod(chain.from_iterable(side)) for side in key[1:]]
    return (_RANKS.get(key[0].partition("_")[0], 3), min(sizes) / (max(sizes) + 1e-6), -count)


def _recursion(origin: Sequence[Key], target: Sequence[Key]) -> list[Pair]:
    """The best key of equal counts, and again between its calls; of equally good ones the first of the origin."""
    found: list[Pair] = []
    ranges = [(0, len(origin), 0, len(target))]
    while ranges:
        a, b, c, d = ranges.pop()
        if origin[a:b] == target[c:d]:
            found += zip(range(a, b), range(c, d), strict=True)
            continue
        where = _places(origin, a, b), _places(target, c, d)
        equal = {key: len(places) for key, places in where[0].items() if len(places) == len(where[1].get(key, ()))}
        if not equal:
            continue
        best = min(equal, key=lambda key: _priority(key, equal[key]))
        pairs = list(zip(where[0][best], where[1][best], strict=True))
        found += pairs
        for i, j in [*pairs, (b, d)]:
            ranges.append((a, i, c, j))
            a, c = i + 1, j + 1
    return sorted(found)


def _places(keys: Sequence[Key], start: int, stop: int) -> dict[Key, list[int]]:
    """Where each key stands."""
    places: dict[Key, list[int]] = defaultdict(list)
    for at in range(start, stop):
        places[keys[at]].append(at)
    return dict(places)


def _global(origin: Sequence[Key], target: Sequence[Key]) -> list[Pair]:
    """Keys of equal counts, the best first; the calls of one are taken all or, where they cross others, not at all.

    The keys of both sides are sorted apart, so that equally good ones may meet as they stand. [1.0.17: seen]
    """
    counts = Counter(origin)
    sides = [
        sorted(
            ((key, where) for key, where in _places(side, 0, len(side)).items() if counts[key] == other[key]),
            key=lambda item: _priority(item[0], counts[item[0]]),
        )
        for side, other in ((origin, Counter(target)), (target, Counter(target)))
    ]
    kept: list[Pair] = []
    for (_, ours), (_, theirs) in zip(*sides, strict=True):
        kept = _merged(kept, list(zip(ours, theirs, strict=False)))
    return kept


def _merged(kept: list[Pair], new: list[Pair]) -> list[Pair]:
    """Both in order, or what was kept where they cross. At the start the last pair is asked too. [1.0.17: seen]"""
    if not kept or not new:
        return kept or new
    merged = []
    a = b = 0
    while a < len(kept) and b < len(new):
        (i, j), (k, m) = kept[a], new[b]
        if i < k and ((j < m and b == 0) or j > new[b - 1][1]):
            merged.append(kept[a])
            a += 1
        elif i > k and ((j > m and a == 0) or kept[a - 1][1] < m):
            merged.append(new[b])
            b += 1
        else:
            return kept
    if a < len(kept):
        return kept if kept[a][1] < new[b - 1][1] else merged + kept[a:]
    return kept if kept[a - 1][1] > new[b][1] else merged + new[b:]


def _simple(origin: Sequence[Key], target: Sequence[Key]) -> list[Pair]:
    """Calls of equal counts in order, whatever their names."""
    counts = Counter(origin), Counter(target)
    sides = [[at for at, key in enumerate(side) if counts[0][key] == counts[1][key]] for side in (origin, target)]
    return list(zip(*sides, strict=True))


_PAIRS: dict[str, Callable[[Sequence[Key], Sequence[Key]], list[Pair]]] = {
    "recursion": _recursion,
    "global": _global,
    "simple": _simple,
}


def _gap(origin: Sequence[Call], target: Sequence[Call]) -> list[Group]:
    """Groups of the calls between two convinced pairs."""
    if not origin or not target:
        return [Group(tuple(origin), tuple(target))] if origin or target else []
    groups = []
    at_i = at_j = 0
    for i, j in [*_paired_edges(origin, target), (len(origin), len(target))]:
        groups.append(Group(tuple(origin[at_i:i]), tuple(target[at_j:j])))
        at_i, at_j = i, j
    return [group for group in groups if group.origin or group.target]


def _paired_edges(origin: Sequence[Call], target: Sequence[Call]) -> list[Pair]:
    """Edges that meet; edge i leads from call i - 1 to call i, the first and the last from and to nothing."""
    rows, columns = len(origin) + 1, len(target) + 1
    if rows * columns > _MAX_CELLS:
        raise UnsupportedError(
            f"{len(origin)} calls beside {len(target)} without a counterpart are too many for the mapping of 1.0.17",
            where="convinced_match_method",
            allowed=("None, which maps them in little memory",),
            code="DS-API-014",
        )
    cost = _edge_costs(origin, target)
    moves = np.zeros((rows + 1, columns + 1), np.uint8)
    flat = moves.reshape(-1)
    # by anti-diagonals: cells (i, d - i), i from lo to hi; every cell takes the tool's own steps, so that ties are its
    before = np.zeros(0), 0
    last = np.zeros(1), 0
    for d in range(1, rows + columns + 1):
        lo, hi = max(0, d - columns), min(d, rows)
        line = np.full(hi - lo + 1, float(d))  # the borders: as many steps as cells
        a, b = max(lo, 1), min(hi, d - 1)
        if a <= b:
            at = np.arange(a, b + 1)
            apart = cost(at - 1, d - at - 1)
            options = np.stack(
                (
                    before[0][a - 1 - before[1] : b - before[1]] + apart,
                    last[0][a - 1 - last[1] : b - last[1]] + 1,
                    last[0][a - last[1] : b + 1 - last[1]] + 1,
                )
            )
            choice = options.argmin(axis=0)
            line[a - lo : b + 1 - lo] = options[choice, np.arange(choice.size)]
            steps = np.where(choice == 0, np.where(apart < 1, _MATCH, _REPLACE), choice + _SKIP_ORIGIN - 1)
            flat[a * columns + d : b * columns + d + 1 : columns] = steps
        before, last = last, (line, lo)
    return _walk(moves)


def _walk(moves: NDArray[np.uint8]) -> list[Pair]:
    """From the last edges back to the first."""
    pairs = []
    i, j = moves.shape[0] - 1, moves.shape[1] - 1
    while i > 0 and j > 0:
        move = moves[i, j]
        if move == _MATCH:
            pairs.append((i - 1, j - 1))
        i -= move != _SKIP_TARGET
        j -= move != _SKIP_ORIGIN
    return pairs[::-1]


def _edge_costs(
    origin: Sequence[Call], target: Sequence[Call]
) -> "Callable[[NDArray[np.int64], NDArray[np.int64]], NDArray[np.float64]]":
    """What it costs to pair edges: 1 where other shapes pass, else a little for other names."""
    codes: dict[Hashable, int] = {}
    names: dict[str, int] = {}
    ends: list[tuple[NDArray[np.int64], ...]] = []
    for side in (origin, target):
        passing = [
            (() if one is None else shapes(one.outputs), () if other is None else shapes(other.inputs))
            for one, other in pairwise([None, *side, None])
        ]
        apis = [names.setdefault(api, len(names)) for api in ["", *(call.api for call in side), ""]]
        ends.append(
            (
                np.array([codes.setdefault(edge, len(codes)) for edge in passing]),
                np.array(apis[:-1]),
                np.array(apis[1:]),
            )
        )
    distances = name_distances(tuple(names))
    table = np.stack([distances(at) for at in range(len(names))])
    nothing = names[""]
    table[nothing, nothing] = 1.0  # two ends cost as much as an end and a call

    def cost(i: NDArray[np.int64], j: NDArray[np.int64]) -> NDArray[np.float64]:
        (edges, givers, takers), (other_edges, other_givers, other_takers) = ends
        apart = (table[takers[i], other_takers[j]] + table[givers[i], other_givers[j]]) / 2
        return np.where(edges[i] == other_edges[j], apart / _NAME_COST, 1.0)

    return cost
