"""Threads that start during a dump: function modes are per thread, so each has to put ours on its own stack."""

import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any, Literal

__all__ = ["Newcomers"]

Event = Literal["call", "return", "c_call", "c_return", "c_exception"]
Profile = Callable[[FrameType, Event, Any], object]


class Newcomers:
    """Runs a function first thing in each thread that starts from `begin` to `end`.

    ``threading.setprofile`` is Python's own door for that: the first event in a thread takes the profile function off
    again, or puts the user's in its place. Daemon threads are left alone, since the interpreter may end under them.

    Parameters
    ----------
    greet : callable
        Run in the new thread.
    """

    def __init__(self, greet: Callable[[], None]) -> None:
        self._greet = greet
        self._before: Profile | None = None
        self._own: Profile | None = None

    def begin(self) -> None:
        self.end()
        before = self._before = threading.getprofile()
        greet = self._greet

        def first_event(frame: FrameType, event: Event, argument: Any) -> None:
            sys.setprofile(before)
            if before is not None:
                before(frame, event, argument)
            if not threading.current_thread().daemon:
                greet()

        self._own = first_event
        threading.setprofile(first_event)

    def end(self) -> None:
        own, self._own = self._own, None
        if own is not None and threading.getprofile() is own:
            threading.setprofile(self._before)
        self._before = None
