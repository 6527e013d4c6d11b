"""Read-only arrays that replace ranges of a device's memory until they are written (copy on write)."""

from bisect import bisect_right
from collections.abc import Iterator

from dumpsim.device.arena import Bytes

__all__ = ["SharedRanges"]


class SharedRanges:
    """The ranges of one memory whose bytes are in arrays that other memories may share.

    No two ranges overlap. A write to a part of a range leaves the rest of it shared.

    Examples
    --------
    >>> import numpy as np
    >>> ranges = SharedRanges()
    >>> ranges.add(100, np.arange(8, dtype=np.uint8))
    >>> ranges.find(102, 104).tolist(), ranges.find(98, 104)
    ([2, 3], None)
    >>> [(at, piece.tolist()) for at, piece in ranges.cut(103, 105)], list(ranges)
    ([(103, [3, 4])], [(100, 103), (105, 108)])
    """

    __slots__ = ("_arrays", "_starts")

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._arrays: list[Bytes] = []  # in the same order

    def __bool__(self) -> bool:
        return bool(self._starts)

    def __iter__(self) -> Iterator[tuple[int, int]]:
        for start, array in zip(self._starts, self._arrays, strict=True):
            yield start, start + array.size

    def add(self, start: int, array: Bytes) -> None:
        """Add a range that begins at `start`; overlapping ranges must have been cut out before."""
        at = bisect_right(self._starts, start)
        self._starts.insert(at, start)
        self._arrays.insert(at, array)

    def find(self, start: int, stop: int) -> Bytes | None:
        """Return the bytes from `start` to `stop` if one range contains all of them, else None."""
        at = bisect_right(self._starts, start) - 1
        if at < 0:
            return None
        array, low = self._arrays[at], start - self._starts[at]
        if stop - self._starts[at] > array.size:
            return None
        return array if stop - start == array.size else array[low : low + stop - start]

    def cut(self, start: int, stop: int) -> list[tuple[int, Bytes]]:
        """Remove the bytes from `start` to `stop`; return those that were shared, with their addresses."""
        at = max(0, bisect_right(self._starts, start) - 1)
        taken: list[tuple[int, Bytes]] = []
        while at < len(self._starts) and self._starts[at] < stop:
            first, array = self._starts[at], self._arrays[at]
            low, high = max(start - first, 0), min(stop - first, array.size)
            if low >= high:
                at += 1
                continue
            taken.append((first + low, array[low:high]))
            rest = [(first, array[:low])] if low else []
            rest += [(first + high, array[high:])] if high < array.size else []
            self._starts[at : at + 1] = [address for address, _ in rest]
            self._arrays[at : at + 1] = [piece for _, piece in rest]
            at += len(rest)
        return taken
