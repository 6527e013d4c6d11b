"""The current capture: tells operators whether they are run or recorded."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dumpsim.frontends.mindspore._capture.trace import Tracer

__all__ = ["capturing", "tracing"]

_current: "ContextVar[Tracer | None]" = ContextVar("tracer", default=None)


def capturing() -> "Tracer | None":
    """Return the current capture, or None in PYNATIVE."""
    return _current.get()


@contextmanager
def tracing(tracer: "Tracer | None") -> "Iterator[Tracer | None]":
    """Record operators with `tracer`; with None, run them."""
    token = _current.set(tracer)
    try:
        yield tracer
    finally:
        _current.reset(token)
