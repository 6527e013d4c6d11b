"""The heaviest chain of pairs between two sequences: a weighted longest common subsequence, row by row.

Nothing recurses. Up to two thousand elements on both sides the chain is the best there is; longer sequences go
through overlapping windows, so that time and memory grow with their length and not with its square.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["WINDOW", "Row", "heaviest_chain"]

Row = Callable[[int, int, int], NDArray[np.float64]]
"""Weights of element i of one side with elements lo..hi of the other; 0 where the two cannot be a pair."""

WINDOW = 2048
_MATCH, _SKIP_FIRST = 1, 2


def heaviest_chain(first: int, second: int, row: Row, *, prefer_match: bool = False) -> list[tuple[int, int]]:
    """Return pairs (i, j), both increasing, with the largest sum of weights.

    Parameters
    ----------
    first, second : int
        Lengths of the two sequences.
    row : callable
        ``row(i, lo, hi)``: the weights of the pairs of i with lo..hi.
    prefer_match : bool
        Among chains of equal weight, prefer late pairs; else early ones of the first sequence.
    """
    pairs: list[tuple[int, int]] = []
    start_i = start_j = 0
    while start_i < first and start_j < second:
        end_i, end_j = min(first, start_i + WINDOW), min(second, start_j + WINDOW)
        rest = first - end_i, second - end_j
        found = _window((start_i, end_i), (start_j, end_j), rest, row, prefer_match)
        if end_i == first and end_j == second:
            return pairs + found
        # pairs near the end of a window may change with what comes after it
        last_i = first if end_i == first else end_i - WINDOW // 4
        last_j = second if end_j == second else end_j - WINDOW // 4
        kept = [(i, j) for i, j in found if i < last_i and j < last_j]
        pairs += kept
        if kept:
            start_i, start_j = kept[-1][0] + 1, kept[-1][1] + 1
        else:  # nothing in common here: skip half of the window, but no pair
            next_i, next_j = found[0] if found else (end_i, end_j)
            start_i = min(start_i + WINDOW // 2, next_i) if end_i < first else start_i
            start_j = min(start_j + WINDOW // 2, next_j) if end_j < second else start_j
    return pairs


def _window(
    rows: tuple[int, int], columns: tuple[int, int], rest: tuple[int, int], row: Row, prefer_match: bool
) -> list[tuple[int, int]]:
    """Return the heaviest chain within a window, given the numbers of elements after it."""
    (start_i, end_i), (start_j, end_j) = rows, columns
    width = end_j - start_j
    moves = np.zeros((end_i - start_i, width), np.uint8)
    above = np.zeros(width + 1)
    last = np.zeros(end_i - start_i + 1)  # the column at the right edge
    for i in range(start_i, end_i):
        weights = row(i, start_j, end_j)
        matched = np.where(weights > 0, above[:-1] + weights, -1.0)
        best = np.empty_like(above)
        best[0] = 0.0
        np.maximum(matched, above[1:], out=best[1:])
        np.maximum.accumulate(best, out=best)
        line = moves[i - start_i]
        line[best[1:] == above[1:]] |= _SKIP_FIRST
        line[best[1:] == matched] |= _MATCH
        above = best
        last[i - start_i + 1] = best[-1]
    if any(rest):
        stop_i, stop_j = _exit(above, last, rest)
        moves = moves[:stop_i, :stop_j]
    return _trace(moves, start_i, start_j, (_MATCH, _SKIP_FIRST) if prefer_match else (_SKIP_FIRST, _MATCH))


def _exit(bottom: NDArray[np.float64], right: NDArray[np.float64], rest: tuple[int, int]) -> tuple[int, int]:
    """Return where the chain leaves a window: the corner, unless another exit is better.

    A chain that runs beside the diagonal leaves early on one side; it has fewer pairs here, but the elements that it
    leaves over may have theirs after the window. Each of them counts as much as the elements here do on average.
    """
    height, width = len(right) - 1, len(bottom) - 1
    corner = float(bottom[-1])
    each = corner / min(height, width)
    below = bottom + each * np.minimum(rest[0], rest[1] + np.arange(width, -1, -1))
    beside = right + each * np.minimum(rest[0] + np.arange(height, -1, -1), rest[1])
    at_j, at_i = width - int(np.argmax(below[::-1])), height - int(np.argmax(beside[::-1]))
    if max(below[at_j], beside[at_i]) <= below[-1] * (1 + 1e-9):
        return height, width
    return (height, at_j) if below[at_j] >= beside[at_i] else (at_i, width)


def _trace(moves: NDArray[Any], start_i: int, start_j: int, order: tuple[int, int]) -> list[tuple[int, int]]:
    """Walk back from the end; where neither move leads here the second sequence is skipped."""
    pairs = []
    i, j = moves.shape[0] - 1, moves.shape[1] - 1
    while i >= 0 and j >= 0:
        here = moves[i, j]
        move = next((move for move in order if here & move), 0)
        if move == _MATCH:
            pairs.append((start_i + i, start_j + j))
            i, j = i - 1, j - 1
        elif move == _SKIP_FIRST:
            i -= 1
        else:
            j -= 1
    return pairs[::-1]
