"""Clocks: where time stamps come from.

The virtual clock makes two runs of a script write the same names; it counts integer nanoseconds and starts at
1,700,000,000 s after 1970. Names print microseconds, strictly increasing per rank. [design]
"""

import time
from dataclasses import dataclass
from typing import Protocol

__all__ = ["START_NS", "Clock", "VirtualClock", "WallClock"]

START_NS = 1_700_000_000 * 10**9


class Clock(Protocol):
    """A source of time."""

    @property
    def now_ns(self) -> int:
        """Nanoseconds since 1970."""
        ...

    def advance(self, ns: int) -> None:
        """Advance by `ns` nanoseconds; a wall clock ignores the call."""
        ...

    def stamp_us(self) -> int:
        """Return a time stamp in microseconds that is greater than all earlier ones."""
        ...


@dataclass(slots=True)
class VirtualClock:
    """A clock that moves only when advanced.

    Examples
    --------
    >>> clock = VirtualClock()
    >>> clock.stamp_us(), clock.stamp_us()
    (1700000000000000, 1700000000000001)
    """

    now_ns: int = START_NS
    _last_us: int = 0

    def advance(self, ns: int) -> None:
        """Advance by `ns` nanoseconds."""
        self.now_ns += ns

    def stamp_us(self) -> int:
        """Return the current microsecond, or the one after the last stamp."""
        self._last_us = max(self.now_ns // 1000, self._last_us + 1)
        return self._last_us

    def resume_after(self, stamp_us: int) -> None:
        """Continue after the stamps that a tree already contains (``--append``)."""
        self._last_us = max(self._last_us, stamp_us)
        self.now_ns = max(self.now_ns, (stamp_us + 1) * 1000)


@dataclass(slots=True)
class WallClock:
    """The machine's clock."""

    _last_us: int = 0

    @property
    def now_ns(self) -> int:
        """Nanoseconds since 1970."""
        return time.time_ns()

    def advance(self, ns: int) -> None:
        """Do nothing: real time advances by itself."""

    def stamp_us(self) -> int:
        """Return the current microsecond, or the one after the last stamp."""
        self._last_us = max(self.now_ns // 1000, self._last_us + 1)
        return self._last_us

    def resume_after(self, stamp_us: int) -> None:
        """Continue after a stamp, even if the machine's clock has been set back."""
        self._last_us = max(self._last_us, stamp_us)
