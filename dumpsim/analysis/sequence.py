"""Aligns two sequences: by unique keys first (patience), then by the best common subsequence in between.

No recursion, and near linear where keys tell: what is unique on both sides cuts the sequences into short ranges. Only
ranges of repeated keys of unequal counts are searched, in windows that bound time and memory.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from dumpsim.analysis.chain import heaviest_chain

__all__ = ["Floats", "increasing", "landmarks", "pair"]

_KEY, _VALUE, _NUMBER = 4, 2, 1  # weights of an equal key, of agreeing values, of an equal number

Pair = tuple[int, int]
_Link = tuple[Pair, "_Link | None"]
Floats = np.ndarray[tuple[int, int], np.dtype[np.float64]]
Values = Callable[[Sequence[int], Sequence[int]], tuple[Floats, Floats]]


def pair(
    left: Sequence[Hashable],
    right: Sequence[Hashable],
    values: Values | None = None,
    numbers: tuple[Sequence[int], Sequence[int]] | None = None,
) -> list[Pair]:
    """Return the indices of paired elements, increasing on both sides.

    Parameters
    ----------
    left, right : sequence
        Keys; only equal ones are paired, and None is never paired.
    values : callable
        ``values(indices_left, indices_right)`` gives a table of numbers for each side, one row an element, which tell
        apart elements of one key; asked only for ranges where keys do not decide.
    numbers : pair of sequences
        A further number of each element that counts a little where it is equal.

    Examples
    --------
    >>> pair("abcde", "axcdye")
    [(0, 0), (2, 2), (3, 3), (4, 5)]
    """
    found: list[Pair] = []
    ranges = [(0, len(left), 0, len(right))]
    while ranges:
        a, b, c, d = ranges.pop()
        if a == b or c == d:
            continue
        if b - a == d - c and all(left[a + n] == right[c + n] for n in range(b - a)):
            found.extend((a + n, c + n) for n in range(b - a) if left[a + n] is not None)
            continue
        anchors = _anchors(left, right, (a, b, c, d))
        if anchors:
            found.extend(anchors)
            ranges.extend(_between((a, b, c, d), anchors))
        else:
            found.extend(_search(left, right, (a, b, c, d), values, numbers))
    return sorted(found)


def increasing(pairs: Sequence[Pair]) -> list[Pair]:
    """Return the longest subsequence of pairs that increases on both sides; `pairs` are in the order of the left.

    Examples
    --------
    >>> increasing([(0, 3), (1, 0), (2, 1), (3, 2)])
    [(1, 0), (2, 1), (3, 2)]
    """
    tails: list[int] = []
    links: list[_Link] = []  # the last pair of the best choice of each length, and the links before it
    for pair in pairs:
        length = bisect_left(tails, pair[1])
        link = pair, links[length - 1] if length else None
        tails[length : length + 1] = [pair[1]]
        links[length : length + 1] = [link]
    chosen = []
    last = links[-1] if links else None
    while last is not None:
        chosen.append(last[0])
        last = last[1]
    return chosen[::-1]


def landmarks(left: Sequence[Hashable], right: Sequence[Hashable]) -> list[Pair]:
    """Return the longest increasing subsequence of keys that are unique on both sides.

    Examples
    --------
    >>> landmarks("axbxc", "yabxxc")
    [(0, 1), (2, 2), (4, 5)]
    """
    return _anchors(left, right, (0, len(left), 0, len(right)))


def _anchors(left: Sequence[Hashable], right: Sequence[Hashable], box: tuple[int, int, int, int]) -> list[Pair]:
    """Return the landmarks of two ranges."""
    a, b, c, d = box
    ones = _once(left, a, b)
    others = _once(right, c, d)
    return increasing([(n, others[key]) for key, n in ones.items() if key in others])


def _once(keys: Sequence[Hashable], start: int, stop: int) -> dict[Hashable, int]:
    counts = Counter(keys[start:stop])
    return {keys[n]: n for n in range(start, stop) if keys[n] is not None and counts[keys[n]] == 1}


def _between(box: tuple[int, int, int, int], anchors: Sequence[Pair]) -> Iterator[tuple[int, int, int, int]]:
    a, b, c, d = box
    for i, j in (*anchors, (b, d)):
        yield a, i, c, j
        a, c = i + 1, j + 1


def _search(
    left: Sequence[Hashable],
    right: Sequence[Hashable],
    box: tuple[int, int, int, int],
    values: Values | None,
    numbers: tuple[Sequence[int], Sequence[int]] | None,
) -> list[Pair]:
    """Return the common subsequence of the greatest weight."""
    a, b, c, d = box
    shared = (set(left[a:b]) & set(right[c:d])) - {None}
    rows = [n for n in range(a, b) if left[n] in shared]
    columns = [n for n in range(c, d) if right[n] in shared]
    if not rows:
        return []
    codes = {key: n for n, key in enumerate(shared)}
    own = np.array([codes[left[n]] for n in rows])
    other = np.array([codes[right[n]] for n in columns])
    tables = values(rows, columns) if values is not None else None
    counts = None
    if numbers is not None:
        counts = (np.array([numbers[0][n] for n in rows]), np.array([numbers[1][n] for n in columns]))

    def weight(row: int, start: int, stop: int) -> NDArray[np.float64]:
        score = np.full(stop - start, _KEY, np.float64)
        if tables is not None:
            score += _VALUE * _alike(tables[0][row], tables[1][start:stop])
        if counts is not None:
            score += _NUMBER * (counts[0][row] == counts[1][start:stop])
        return np.where(own[row] == other[start:stop], score, 0.0)

    return [(rows[i], columns[j]) for i, j in heaviest_chain(len(rows), len(columns), weight)]


def _alike(
    own: "np.ndarray[tuple[int], np.dtype[np.float64]]", others: Floats
) -> "np.ndarray[tuple[int], np.dtype[np.bool_]]":
    """Return which rows of numbers agree roughly; unknown numbers never agree."""
    scale = np.maximum(np.abs(own).max(initial=0.0), np.abs(others).max(axis=1, initial=0.0))
    with np.errstate(invalid="ignore"):
        near = np.abs(others - own) <= 1e-3 * scale[:, None] + 1e-9
    alike: np.ndarray[tuple[int], np.dtype[np.bool_]] = np.all(near, axis=1)
    return alike
