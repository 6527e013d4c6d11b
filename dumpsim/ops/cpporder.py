"""Sorting algorithms of the C++ standard library, which determine the order of equal elements and NaN.

`nth_element` and `stable_sort` are those of libstdc++, with which MindSpore's CPU wheel is built: introselect with the
median of three as pivot, and a merge sort that begins with runs of seven. [observed 2.10]
"""

from collections.abc import Callable

__all__ = ["nth_element", "stable_sort"]

Before = Callable[[int, int], bool]

_RUN = 7  # elements that are sorted by insertion before runs are merged


def nth_element(index: list[int], nth: int, before: Before) -> None:
    """Partially sort: element `nth` is the one that sorting would put there, and all smaller ones precede it.

    Parameters
    ----------
    index : list of int
        Indices of the elements; sorted in place.
    nth : int
        Position from 0; if it is the length of the list, nothing is done.
    before : callable
        Returns whether an element belongs before another.

    Examples
    --------
    >>> values, index = [2, 2, 1, 1], [0, 1, 2, 3]
    >>> nth_element(index, 2, lambda one, other: values[one] > values[other])
    >>> index
    [1, 0, 3, 2]
    """
    first, last = 0, len(index)
    if nth >= last:
        return
    depth = 2 * (len(index).bit_length() - 1)
    while last - first > 3:
        if not depth:
            _heap_select(index, first, nth + 1, last, before)
            index[first], index[nth] = index[nth], index[first]
            return
        depth -= 1
        cut = _partition(index, first, last, before)
        if cut <= nth:
            first = cut
        else:
            last = cut
    _insertion_sort(index, first, last, before)


def stable_sort(index: list[int], before: Before) -> None:
    """Sort in place; equal elements stay in order, unless NaN makes the comparison inconsistent.

    Examples
    --------
    >>> values, index = [3.0, float("nan"), 1.0], [0, 1, 2]
    >>> stable_sort(index, lambda one, other: values[one] < values[other])
    >>> index
    [0, 1, 2]
    """
    middle = (len(index) + 1) // 2
    one, other = (_merge_sort(part, before) for part in (index[:middle], index[middle:]))
    index[:] = _merge(one, other, before) if len(one) <= len(other) else _merge_backwards(one, other, before)


def _partition(index: list[int], first: int, last: int, before: Before) -> int:
    """Partition a range by the median of its second, middle and last element; return the start of the second part."""
    a, b, c = first + 1, first + (last - first) // 2, last - 1
    if before(index[a], index[b]):
        pivot = b if before(index[b], index[c]) else c if before(index[a], index[c]) else a
    else:
        pivot = a if before(index[a], index[c]) else c if before(index[b], index[c]) else b
    index[first], index[pivot] = index[pivot], index[first]
    low, high = first + 1, last
    while True:
        while before(index[low], index[first]):
            low += 1
        high -= 1
        while before(index[first], index[high]):
            high -= 1
        if low >= high:
            return low
        index[low], index[high] = index[high], index[low]
        low += 1


def _insertion_sort(index: list[int], first: int, last: int, before: Before) -> None:
    for at in range(first + 1, last):
        taken = index[at]
        if before(taken, index[first]):
            place = first
        else:
            place = at
            while before(taken, index[place - 1]):
                place -= 1
        index[place + 1 : at + 1] = index[place:at]
        index[place] = taken


def _heap_select(index: list[int], first: int, middle: int, last: int, before: Before) -> None:
    """Collect the first elements of a range, in sorting order, in a heap before `middle`."""
    size = middle - first
    for parent in range((size - 2) // 2, -1, -1):
        _sift(index, first, parent, size, index[first + parent], before)
    for at in range(middle, last):
        if before(index[at], index[first]):
            taken, index[at] = index[at], index[first]
            _sift(index, first, 0, size, taken, before)


def _sift(index: list[int], first: int, hole: int, size: int, taken: int, before: Before) -> None:
    """Move a hole of a heap down to a leaf, then up to where `taken` belongs."""
    top, child = hole, hole
    while child < (size - 1) // 2:
        child = 2 * (child + 1)
        if before(index[first + child], index[first + child - 1]):
            child -= 1
        index[first + hole] = index[first + child]
        hole = child
    if size % 2 == 0 and child == (size - 2) // 2:
        child = 2 * (child + 1)
        index[first + hole] = index[first + child - 1]
        hole = child - 1
    while hole > top:
        parent = (hole - 1) // 2
        if not before(index[first + parent], taken):
            break
        index[first + hole] = index[first + parent]
        hole = parent
    index[first + hole] = taken


def _merge_sort(part: list[int], before: Before) -> list[int]:
    for start in range(0, len(part), _RUN):
        _insertion_sort(part, start, min(start + _RUN, len(part)), before)
    step = _RUN
    while step < len(part):
        merged: list[int] = []
        for start in range(0, len(part), 2 * step):
            merged += _merge(part[start : start + step], part[start + step : start + 2 * step], before)
        part, step = merged, 2 * step
    return part


def _merge(one: list[int], other: list[int], before: Before) -> list[int]:
    result: list[int] = []
    i = j = 0
    while i < len(one) and j < len(other):
        if before(other[j], one[i]):
            result.append(other[j])
            j += 1
        else:
            result.append(one[i])
            i += 1
    return result + one[i:] + other[j:]


def _merge_backwards(one: list[int], other: list[int], before: Before) -> list[int]:
    result: list[int] = []
    i, j = len(one), len(other)
    while i and j:
        if before(other[j - 1], one[i - 1]):
            i -= 1
            result.append(one[i])
        else:
            j -= 1
            result.append(other[j])
    return one[:i] + other[:j] + result[::-1]
