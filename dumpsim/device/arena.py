"""The host memory of a device, whose address space is reserved in steps."""

import mmap
import sys
from bisect import bisect_right
from collections.abc import Iterator
from itertools import pairwise
from operator import attrgetter
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from dumpsim.core.errors import DeviceError, OutOfMemoryError

__all__ = ["STEP", "Arena", "Bytes"]

Bytes: TypeAlias = npt.NDArray[np.uint8]

STEP = 1 << 30
_PAGE = mmap.PAGESIZE
_CHUNK = 1 << 20
_FLAGS = (
    mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_NORESERVE", 0x4000 if sys.platform == "linux" else 0x40)
)


class _Step:
    """The offsets `start` to `stop`, in a mapping whose first byte has the offset `base`."""

    __slots__ = ("base", "bytes", "map", "start", "stop")

    def __init__(self, start: int, stop: int) -> None:
        self.base = self.start = start
        self.stop = stop
        self.map = mmap.mmap(-1, stop - start, flags=_FLAGS)
        self.bytes: Bytes = np.frombuffer(self.map, dtype=np.uint8)

    def view(self, start: int, stop: int) -> Bytes:
        return self.bytes[start - self.base : stop - self.base]


_start = attrgetter("start")


class Arena:
    """A range of offsets whose bytes use host memory only once they are touched.

    Address space is reserved in steps, so that thousands of arenas fit into a process. Each block is within one step
    (see `reserve`), so that it is one array; the bounds of the steps depend on the blocks.

    Parameters
    ----------
    capacity : int
        Offsets are from 0 to `capacity`.
    step : int
        Bytes reserved at a time; more for a larger block.
    where : str
        Owner of the memory, for messages.

    Examples
    --------
    >>> arena = Arena(1 << 40)
    >>> arena.reserve(0, 512, 0)
    >>> arena.view(0, 4)[:] = 7
    >>> arena.view(2, 6).tolist(), arena.reserved
    ([7, 7, 0, 0], 1073741824)
    """

    __slots__ = ("_last", "_steps", "capacity", "step", "where")

    def __init__(self, capacity: int, *, step: int = STEP, where: str = "") -> None:
        self.capacity = capacity
        self.step = step
        self.where = where
        self._steps: list[_Step] = []  # by offset, none overlaps another
        self._last: _Step | None = None

    @property
    def reserved(self) -> int:
        """Bytes of reserved address space."""
        return sum(len(step.bytes) for step in self._steps)

    def reserve(self, start: int, stop: int, used: int) -> None:
        """Reserve the bytes from `start` to `stop` in one step; there must be no view of them.

        Bytes that were written before the offset `used` are preserved.

        Raises
        ------
        OutOfMemoryError
            If the machine refuses the address space.
        """
        step = self._find(start)
        if step is not None and stop <= step.stop:
            return
        later = [max(step.start, stop) for step in self._steps if step.stop > stop]
        end = min([self.capacity, max(stop, start + self.step), *later])
        made = self._reserve(start, end)
        for step in self._steps:
            low, high = max(step.start, start), min(step.stop, end, used)
            for at in range(low, high, _CHUNK):
                chunk = step.view(at, min(at + _CHUNK, high))
                if chunk.any():  # untouched bytes must stay untouched
                    made.view(at, at + len(chunk))[:] = chunk
            if step.start < start:
                step.stop = min(step.stop, start)
            else:
                step.start = max(step.start, min(step.stop, end))
        self._steps = sorted([made, *(step for step in self._steps if step.stop > step.start)], key=_start)

    def view(self, start: int, stop: int) -> Bytes:
        """Return the bytes from `start` to `stop`, writable.

        Raises
        ------
        DeviceError
            If they are not within one step.
        """
        step = self._last
        if step is None or start < step.start or stop > step.stop:
            step = self._last = self._one(start, stop)
        return step.view(start, stop)

    def write(self, start: int, data: Bytes) -> None:
        """Write bytes, across steps if necessary."""
        stop = start + len(data)
        for low, high in self._pieces(start, stop):
            self.view(low, high)[:] = data[low - start : high - start]

    def discard(self, start: int, stop: int) -> list[tuple[int, int]]:
        """Release the whole pages between two offsets; return their ranges, which now read as zeros."""
        released: list[tuple[int, int]] = []
        if not hasattr(mmap, "MADV_DONTNEED"):
            return released
        for step in self._steps:
            low = -(-(max(start, step.start) - step.base) // _PAGE) * _PAGE
            high = (min(stop, step.stop) - step.base) // _PAGE * _PAGE
            if high > low:
                step.map.madvise(mmap.MADV_DONTNEED, low, high - low)
                released.append((step.base + low, step.base + high))
        return released

    def _find(self, offset: int) -> _Step | None:
        """Return the last step that begins at or before an offset."""
        at = bisect_right(self._steps, offset, key=_start)
        return self._steps[at - 1] if at else None

    def _one(self, start: int, stop: int) -> _Step:
        step = self._find(start)
        if step is not None and stop <= step.stop:
            return step
        if any(step.start < stop and step.stop > start for step in self._steps):
            raise DeviceError(f"{stop - start} bytes at offset {start:#x} belong to several blocks", where=self.where)
        self.reserve(start, stop, start)
        step = self._find(start)
        assert step is not None
        return step

    def _pieces(self, start: int, stop: int) -> Iterator[tuple[int, int]]:
        """Split a range at the bounds of the steps."""
        cuts = {min(max(offset, start), stop) for step in self._steps for offset in (step.start, step.stop)}
        return pairwise(sorted({start, stop, *cuts}))

    def _reserve(self, start: int, stop: int) -> _Step:
        try:
            return _Step(start, stop)
        except OSError as error:
            raise OutOfMemoryError(
                f"this machine refuses {stop - start} bytes of address space for the device's memory ({error})",
                where=self.where,
            ) from error
