"""A simulated slow or full disk, for the fault plan."""

import errno
import time
from collections.abc import Callable
from typing import Protocol

from dumpsim.core.clock import Clock, WallClock

__all__ = ["DiskFaults", "FaultyDisk"]


class DiskFaults(Protocol):
    """Faults of a disk, which a writer of files checks before it writes."""

    def charge(self, nbytes: int) -> None:
        """Account for `nbytes` that are about to be written; OSError if the disk is full."""
        ...


class FaultyDisk:
    """A disk of limited size or speed.

    Parameters
    ----------
    clock : Clock
        Advanced by slow writes; with the wall clock they take real time.
    room : int, optional
        Bytes until the disk is full.
    bytes_per_s : int, optional
        Speed of the disk.

    Examples
    --------
    >>> from dumpsim.core.clock import VirtualClock
    >>> disk = FaultyDisk(VirtualClock(), room=100)
    >>> disk.charge(60)
    >>> disk.charge(60)
    Traceback (most recent call last):
    ...
    OSError: [Errno 28] No space left on device (fault plan: full after 100 bytes)
    """

    __slots__ = ("_clock", "_sleep", "bytes_per_s", "room", "written")

    def __init__(
        self,
        clock: Clock,
        *,
        room: int | None = None,
        bytes_per_s: int | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._clock = clock
        self._sleep = sleep
        self.room = room
        self.bytes_per_s = bytes_per_s
        self.written = 0

    def charge(self, nbytes: int) -> None:
        """Account for `nbytes`; if they do not all fit, none is written."""
        if self.room is not None and self.written + nbytes > self.room:
            raise OSError(errno.ENOSPC, f"No space left on device (fault plan: full after {self.room} bytes)")
        self.written += nbytes
        if self.bytes_per_s is not None:
            duration = nbytes * 10**9 // self.bytes_per_s
            if isinstance(self._clock, WallClock):
                self._sleep(duration / 1e9)
            else:
                self._clock.advance(duration)
