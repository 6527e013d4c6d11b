"""What PYNATIVE remembers of the operators that ran, so that gradients can be taken op by op."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from dumpsim.ops.opdef import OpDef

__all__ = ["Entry", "Tape", "is_recording", "record", "recording"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Entry:
    """One operator that ran."""

    definition: OpDef
    operands: tuple[Any, ...]
    out: Any
    attrs: Mapping[str, Any]


@dataclass(slots=True, kw_only=True)
class Tape:
    """Operators in the order in which they ran."""

    entries: list[Entry] = field(default_factory=list)


_current: ContextVar[Tape | None] = ContextVar("tape", default=None)


def record(definition: OpDef, operands: Sequence[Any], out: Any, attrs: Mapping[str, Any]) -> None:
    """Remember an operator where a gradient is being taken."""
    tape = _current.get()
    if tape is not None:
        tape.entries.append(Entry(definition=definition, operands=tuple(operands), out=out, attrs=attrs))


def is_recording() -> bool:
    """Whether a gradient is being taken."""
    return _current.get() is not None


@contextmanager
def recording() -> Iterator[Tape]:
    """Record what runs inside; a recording around this one holds it too, for gradients of gradients."""
    tape = Tape()
    token = _current.set(tape)
    try:
        yield tape
    finally:
        _current.reset(token)
        outer = _current.get()
        if outer is not None:
            outer.entries.extend(tape.entries)
