"""The capture of one network: the tracer that records operators as graph nodes."""

from contextvars import ContextVar
from typing import Any

__all__ = ["Tracer", "current"]


class Tracer:
    """Records operators."""

    def emit(self, *args: Any, **kwargs: Any) -> Any:
        """Placeholder until the tracer lands."""
        raise NotImplementedError


_current: ContextVar[Tracer | None] = ContextVar("tracer", default=None)


def current() -> Tracer | None:
    """The capture under way, None outside of one."""
    return _current.get()
