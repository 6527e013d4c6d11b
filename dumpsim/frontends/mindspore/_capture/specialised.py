"""The count of the functions that type inference specialises; see `specialisations`."""

import inspect
from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

from dumpsim.frontends.mindspore._capture import specialisations, values
from dumpsim.frontends.mindspore._capture.callee import CellBase, PrimitiveBase
from dumpsim.frontends.mindspore._capture.frame import Position

if TYPE_CHECKING:
    from dumpsim.frontends.mindspore._capture.trace import Tracer

__all__ = ["Specialised"]

_FRAMEWORK = "dumpsim.frontends."
_ROOT = 2  # the network's own function, and the one around it that holds its weights


class Specialised:
    """What type inference specialises of one network.

    Attributes
    ----------
    unknown : str
        A construct that no table holds, if the script has one: the count is not known then.
    """

    def __init__(self, tracer: "Tracer") -> None:
        self._tracer = tracer
        self._found: dict[Hashable, int] = {}
        self.unknown = ""

    @property
    def count(self) -> int | None:
        """How many functions, None if that is not known."""
        return None if self.unknown else _ROOT + sum(self._found.values())

    # -- constructs of the script

    def operator(self, position: Position, name: str, operands: tuple[Any, ...]) -> None:
        """``x + y``, ``-x``, ``x < y``."""
        if not any(map(values.is_tensor, operands)):
            return
        label = "Aug" + name if position.form == "augmented" and values.is_parameter(operands[0]) else name
        key = (label, *map(_kind, operands))
        ordered = sorted(operands, key=lambda o: not values.is_tensor(o)) if name == "Mult" else operands
        self._note(position, specialisations.OPERATORS.get(key), " ".join(key), signature(tuple(ordered)))

    def truth(self, position: Position, condition: Any) -> None:
        """A condition."""
        if values.is_tensor(condition):
            self._note(position, specialisations.TRUTH, "truth", signature(condition))

    def subscript(self, position: Position, value: Any, index: Any) -> None:
        """``value[index]``."""
        kind = type(index).__name__ if values.is_tensor(value) else "sequence"
        self._note(position, specialisations.SUBSCRIPTS.get(kind), f"[{kind}]", signature((value, index)))
        if kind == "tuple":
            self.add(("has_next", len(index)), 1)

    def attribute(self, position: Position, value: Any, name: str) -> None:
        """``x.T``."""
        self._note(position, specialisations.PROPERTIES.get(name), f".{name}", signature(value))
        if name == "T":
            self.add(("transpose", signature((value, tuple(range(value.ndim))[::-1]))), 1)

    def call(self, position: Position, called: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """A call of a function of the framework, as opposed to an operator, a cell or a function of the script."""
        if isinstance(called, (CellBase, PrimitiveBase)):
            return
        plain = inspect.unwrap(getattr(called, "__func__", called))
        owner = getattr(called, "__self__", None)
        name = _written_name(position) or getattr(plain, "__name__", "")
        key = signature((*args, *sorted(kwargs.items())))
        if values.is_tensor(owner):
            name, key = f"Tensor.{name}", (signature(owner), key)
        elif not str(getattr(plain, "__module__", "")).startswith(_FRAMEWORK):
            if plain is not range and not hasattr(plain, "__code__"):
                self.give_up(name)
            return
        elif isinstance(plain, type):
            return
        table = specialisations.CALLS
        form = f"{name}()" if len(args) + len(kwargs) == 1 else name
        self._note(position, table.get(form, table.get(name)), name, key)

    def cell(self, called: Any, args: tuple[Any, ...]) -> None:
        """A call of a cell of the framework."""
        key = (id(called), signature(args))
        if not type(called).__module__.startswith(_FRAMEWORK):
            return
        name = type(called).__name__
        if name == "SequentialCell":
            self.add(("cell", *key), 1 + 2 * len(called) + 2 + 2)
            return
        text = specialisations.CELLS.get(name)
        if text is None:
            self.give_up(name)
        for item in (text or "").split():
            if item.isdecimal():
                self.add(("cell", *key), int(item))
            else:
                shared, number = item.split(":")
                sizes = tuple(called.gamma._shape) if name == "LayerNorm" else signature(args)
                self.add((shared, sizes, name if name == "GELU" else ""), int(number))

    def function(self, key: Hashable) -> None:
        """A function or cell of the script."""
        self.add(("function", key), 1)

    def control(self, position: Position, kind: str, count: int) -> None:
        """Functions of a branch or loop."""
        self.add((kind, self._place(position)), count)
        frame = self._tracer.frame
        if frame.is_turning:  # what the next turn takes is evaluated in a function of its own
            self.add(("next", frame.instance, frame.turns), 1)

    def assignment(self, target: Any, value: Any) -> None:
        """``self.weight = value``."""
        self.add(("assign", id(target), signature(value)), 1)

    def augmented(self) -> None:
        """What ``self.weight += value`` computes."""
        frame = self._tracer.frame
        self.add(("augmented", frame.instance, frame.turns, frame.position), 1)

    def give_up(self, construct: str) -> None:
        """Record that the script has a construct whose functions are not known."""
        self.unknown = self.unknown or construct

    def add(self, key: Hashable, count: int) -> None:
        """Count functions once."""
        self._found[key] = count

    def _note(self, position: Position, text: str | None, name: str, key: Hashable) -> None:
        if text is None:
            self.give_up(name)
        for item in (text or "").split():
            if item.isdecimal():
                self.add((name, self._place(position)), int(item))
            else:
                shared, number = item.split(":")
                self.add((shared, key), int(number))

    def _place(self, position: Position) -> Hashable:
        frame, line = self._tracer.frame, position.whole
        return (frame.instance, frame.turns, line.line, line.column, line.end_line, line.end_column)


def _written_name(position: Position) -> str:
    """The name by which the script calls a function: several names of `ops` can be one function here."""
    line = position.called
    return line.code[line.column : line.end_column].rpartition(".")[2] if line.line == line.end_line else ""


def _kind(value: Any) -> str:
    if values.is_tensor(value):
        return "tensor"
    return "sequence" if isinstance(value, (tuple, list)) else "scalar"


def signature(value: Any) -> Hashable:
    """What of a value decides a specialisation: type and shape of tensors, anything else as it prints."""
    if values.is_parameter(value):
        return (value._dtype.name, tuple(value._shape), value.name)
    if values.is_tensor(value):
        return (value._dtype.name, tuple(value._shape))
    if isinstance(value, (tuple, list)):
        return tuple(map(signature, value))
    return repr(value) if isinstance(value, (int, float, str, slice, type(None))) else str(value)
