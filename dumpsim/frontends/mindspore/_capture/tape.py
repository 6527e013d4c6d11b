"""The tape of PYNATIVE: a record of the operators that ran, for gradients."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from dumpsim.frontends.mindspore._capture.values import tensors_in
from dumpsim.ops.opdef import OpDef

__all__ = [
    "CellCall",
    "Entry",
    "Forward",
    "Tape",
    "depending",
    "forward",
    "is_nested",
    "is_recording",
    "is_within_cell",
    "paused",
    "record",
    "recording",
    "take_forward",
    "within",
]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CellCall:
    """A running cell, and the call of the cell that called it."""

    cell: Any
    outer: "CellCall | None"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Entry:
    """One operator that ran, or a whole graph; `within` is the call of the cell that ran it."""

    definition: OpDef
    operands: tuple[Any, ...]
    out: Any
    attrs: Mapping[str, Any]
    within: CellCall | None = None
    is_graph: bool = False


@dataclass(slots=True, kw_only=True)
class Tape:
    """Operators in the order in which they ran."""

    entries: list[Entry] = field(default_factory=list)


@dataclass(slots=True, kw_only=True, eq=False)
class Forward:
    """A call of a cell that was recorded before a gradient was requested."""

    cell: Any
    args: tuple[Any, ...]
    tape: Tape
    value: Any = None


_current: ContextVar[Tape | None] = ContextVar("tape", default=None)
_depth: ContextVar[int] = ContextVar("depth", default=0)
_running: ContextVar[CellCall | None] = ContextVar("running", default=None)
_latest: ContextVar[Forward | None] = ContextVar("forward", default=None)


def record(
    definition: OpDef, operands: Sequence[Any], out: Any, attrs: Mapping[str, Any], *, is_graph: bool = False
) -> None:
    """Record an operator if a gradient is being taken."""
    tape = _current.get()
    if tape is not None:
        entry = Entry(
            definition=definition,
            operands=tuple(operands),
            out=out,
            attrs=attrs,
            within=_running.get(),
            is_graph=is_graph,
        )
        tape.entries.append(entry)


@contextmanager
def within(cell: Any) -> Iterator[None]:
    """Attribute the operators that run in this context to a cell."""
    token = _running.set(CellCall(cell=cell, outer=_running.get()))
    try:
        yield
    finally:
        _running.reset(token)


def is_within_cell() -> bool:
    """Whether a cell is running operator by operator, as its child cells then do too."""
    return _running.get() is not None


def is_recording() -> bool:
    """Whether a gradient is being taken."""
    return _current.get() is not None


@contextmanager
def paused() -> Iterator[None]:
    """Record nothing in this context."""
    token = _current.set(None)
    try:
        yield
    finally:
        _current.reset(token)


def is_nested() -> bool:
    """Whether a gradient of a gradient is being taken."""
    return _depth.get() > 1


@contextmanager
def recording() -> Iterator[Tape]:
    """Record the operators in this context; an outer recording includes them too, for gradients of gradients."""
    tape = Tape()
    token, depth = _current.set(tape), _depth.set(_depth.get() + 1)
    try:
        yield tape
    finally:
        _current.reset(token)
        _depth.reset(depth)
        outer = _current.get()
        if outer is not None:
            outer.entries.extend(tape.entries)


def depending(tape: Tape, wanted: Iterable[Any]) -> set[int]:
    """Return the ids of `wanted`, and of the tensors of a tape that depend on them."""
    found = {id(tensor) for tensor in wanted}
    for entry in tape.entries:
        if any(id(tensor) in found for tensor in tensors_in(entry.operands)):
            found |= {id(tensor) for tensor in tensors_in((entry.out,))}
    return found


@contextmanager
def forward(cell: Any, args: tuple[Any, ...], *, wanted: bool) -> Iterator[Forward | None]:
    """Record a call of a cell whose gradients are `wanted` (``set_grad``), for a later gradient of the same call.

    MindSpore does not run such a cell again. [observed 2.10]
    """
    if not wanted or is_recording():
        yield None
        return
    with recording() as tape:
        call = Forward(cell=cell, args=args, tape=tape)
        yield call
    _latest.set(call)


def take_forward(cell: Any, args: tuple[Any, ...]) -> Forward | None:
    """Return the latest recorded call if it has this cell and these arguments; a call is returned once."""
    call = _latest.get()
    if call is None or call.cell is not cell or len(call.args) != len(args):
        return None
    if any(one is not other for one, other in zip(call.args, args, strict=True)):
        return None
    _latest.set(None)
    return call
