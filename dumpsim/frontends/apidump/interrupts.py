"""SIGTERM and SIGINT during an API dump: write everything recorded before the previous handler runs."""

import os
import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

__all__ = ["Interrupts"]

_SIGNALS = (signal.SIGTERM, signal.SIGINT)


class Interrupts:
    """Signal handlers that flush the dump before the process ends.

    Handlers run in the main thread between two instructions. Inside ``with interrupts:`` a signal is deferred to the
    end of the block, so that `flush` never sees incomplete data; a second signal is not deferred.

    Parameters
    ----------
    flush : callable
        Writes everything; must not raise.
    leave : callable
        Called if the signal ends the process immediately, without `atexit`; must not raise.

    Examples
    --------
    >>> before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it
    >>> written = []
    >>> interrupts = Interrupts(lambda: written.append("all"), lambda: None)
    >>> interrupts.install()
    >>> try:
    ...     signal.raise_signal(signal.SIGINT)
    ... except KeyboardInterrupt:
    ...     print(written)
    ['all']
    >>> interrupts.restore()
    >>> signal.signal(signal.SIGINT, before) is signal.default_int_handler
    True
    """

    def __init__(self, flush: Callable[[], object], leave: Callable[[], object]) -> None:
        self._flush = flush
        self._leave = leave
        self._before: dict[int, Any] = {}
        self._handler = self._handle
        self._depth = 0
        self._late: int | None = None
        self._active = False
        self._main = threading.main_thread().ident

    def __enter__(self) -> None:
        if threading.get_ident() == self._main:
            self._depth += 1

    def __exit__(self, *_: object) -> None:
        if threading.get_ident() == self._main:
            self._depth -= 1
            if self._late is not None and not self._depth:
                number, self._late = self._late, None
                self._handle(number, None)

    def install(self) -> None:
        """Install the handlers; do nothing outside the main thread, which is the only one that can."""
        if threading.current_thread() is not threading.main_thread():
            return
        self._active = True
        for number in _SIGNALS:
            before = signal.getsignal(number)
            # a handler in C cannot be called from here, and ignored signals remain ignored
            if before not in (None, signal.SIG_IGN, self._handler):
                self._before[number] = before
                signal.signal(number, self._handler)

    def restore(self) -> None:
        """Restore the previous signal handlers; if another handler was installed since, only pass signals on."""
        self._active = False
        if threading.current_thread() is not threading.main_thread():
            return
        for number, before in list(self._before.items()):
            if signal.getsignal(number) == self._handler:
                signal.signal(number, _still_active(number, before))
                del self._before[number]

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self._depth and self._late is None:
            self._late = number
            return
        if self._active and not self._depth:
            self._flush()
        before = self._before.get(number, signal.SIG_DFL)
        if callable(before):
            before(number, frame)
        elif before == signal.SIG_DFL:
            self._leave()
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)


def _still_active(number: int, handler: Any) -> Any:
    """Return the handler; if it belongs to a dump that has ended, the one before it."""
    owner = getattr(handler, "__self__", None)
    while isinstance(owner, Interrupts) and not owner._active:
        handler = owner._before.get(number, signal.SIG_DFL)
        owner = getattr(handler, "__self__", None)
    return handler
