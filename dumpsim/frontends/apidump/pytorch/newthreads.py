"""Notice threads that start during a dump: function modes are per thread, so each one must push ours."""

import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any, Literal

__all__ = ["NewThreads"]

Event = Literal["call", "return", "c_call", "c_return", "c_exception"]
Profile = Callable[[FrameType, Event, Any], object]


class NewThreads:
    """Calls a function at the start of each thread that starts between `begin` and `end`.

    Uses ``threading.setprofile``: the first event in a thread removes the profile function again, or replaces it by the
    user's. Daemon threads are ignored, since they may still run while the interpreter ends.

    Parameters
    ----------
    callback : callable
        Called in the new thread.
    """

    def __init__(self, callback: Callable[[], None]) -> None:
        self._callback = callback
        self._before: Profile | None = None
        self._own: Profile | None = None

    def begin(self) -> None:
        self.end()
        before = self._before = threading.getprofile()
        callback = self._callback

        def first_event(frame: FrameType, event: Event, argument: Any) -> None:
            sys.setprofile(before)
            if before is not None:
                before(frame, event, argument)
            if not threading.current_thread().daemon:
                callback()

        self._own = first_event
        threading.setprofile(first_event)

    def end(self) -> None:
        own, self._own = self._own, None
        if own is not None and threading.getprofile() is own:
            threading.setprofile(self._before)
        self._before = None
