"""Match calls that backward repeats with those of the first run.

A reentrant checkpoint (or a similar ``autograd.Function``) runs its region first without gradients, then again in
backward, where the gradients flow through the graph of the second run. The region is identified by the context object
of the function, which is in a frame of both runs.
"""

import weakref
from collections.abc import Iterator
from types import FrameType
from typing import Any

import torch
from torch.autograd.function import BackwardCFunction, Function, FunctionCtx

__all__ = ["Regions", "Repeated", "is_made_again"]

_APPLY = Function.apply.__func__.__code__  # type: ignore[attr-defined]  # calls the user's forward
_BACKWARD = torch.autograd.graph._engine_run_backward.__code__
_CALL = torch.nn.Module._call_impl.__code__
_CHECKPOINT = "/torch/utils/checkpoint.py"
_NODE = BackwardCFunction.apply.__code__  # calls the user's backward
_graph_task = torch._C._current_graph_task_id


class Repeated:
    """A call of the first run.

    Attributes
    ----------
    name : str or None
        Name of the record; None for a call that was not selected.
    request : Request
        The request at that time.
    gradients : dict
        The hooks of its outputs, by record.
    """

    __slots__ = ("gradients", "name", "request")

    def __init__(self, name: str | None, request: Any) -> None:
        self.name = name
        self.request = request
        self.gradients: dict[str, Any] = {}


class _Region:
    """The calls of one region in order, by API, and the progress of the current backward."""

    __slots__ = ("calls", "met", "task")

    def __init__(self) -> None:
        self.calls: dict[str, list[Repeated]] = {}
        self.met: dict[str, int] = {}
        self.task = -1


class Regions:
    """The regions of functions whose graphs are alive."""

    def __init__(self) -> None:
        self._regions: weakref.WeakKeyDictionary[FunctionCtx, _Region] = weakref.WeakKeyDictionary()

    def note(self, frame: FrameType | None, base: str, call: Repeated) -> None:
        """Note a call without gradients, in every enclosing region."""
        for context in _forwards(frame):
            self._regions.setdefault(context, _Region()).calls.setdefault(base, []).append(call)

    def find(self, frame: FrameType | None, base: str) -> Repeated | None:
        """Return the call that a recomputed one repeats: the next one of this API in its region."""
        context = _backward(frame)
        region = self._regions.get(context) if context is not None else None
        if region is None:
            return None
        if region.task != _graph_task():
            region.task = _graph_task()
            region.met.clear()
        number = region.met.get(base, 0)
        region.met[base] = number + 1
        calls = region.calls.get(base, [])
        return calls[number] if number < len(calls) else None


def is_made_again(frame: FrameType | None) -> bool:
    """Whether a frame is inside a forward that backward repeats, not only in a hook or ``autograd.Function``."""
    while frame is not None and frame.f_code is not _BACKWARD:
        if frame.f_code is _CALL or frame.f_code.co_filename.endswith(_CHECKPOINT):
            return True
        frame = frame.f_back
    return False


def _forwards(frame: FrameType | None) -> Iterator[FunctionCtx]:
    """Yield the contexts of the functions whose forward encloses a frame, up to the nearest backward."""
    while frame is not None and frame.f_code is not _BACKWARD and frame.f_code is not _NODE:
        outer = frame.f_back
        if outer is not None and outer.f_code is _APPLY:
            context = _first(frame)
            if isinstance(context, FunctionCtx):
                yield context
        frame = outer


def _backward(frame: FrameType | None) -> FunctionCtx | None:
    """Return the context of the function whose backward encloses a frame; None inside a saved-tensor hook."""
    while frame is not None and frame.f_code is not _BACKWARD:
        if frame.f_code is _NODE:
            context = frame.f_locals.get("self")
            return context if isinstance(context, FunctionCtx) else None
        frame = frame.f_back
    return None


def _first(frame: FrameType) -> Any:
    """Return the first argument of a function; a decorator has all arguments in a tuple."""
    names = frame.f_code.co_varnames
    value = frame.f_locals.get(names[0]) if names else None
    return value[0] if isinstance(value, tuple) and value else value
