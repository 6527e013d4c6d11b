"""Counting of the node numbers that the vendor's front end uses while it compiles.

One counter of the process numbers everything that the vendor names (`CNode_N`). The front end names, at first use, each
operator that it resolves by the types of its operands (once in a process), each function of its Python library that it
evaluates (once per compile), and some calls (every time). The table `resolutions` lists the names for each construct of
a script; constructs that are not in the table use no numbers. [observed 2.10]
"""

import inspect
import types
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dumpsim.frontends.mindspore._capture import resolutions, values
from dumpsim.frontends.mindspore._capture.callee import PrimitiveBase
from dumpsim.frontends.mindspore._capture.frame import Position

if TYPE_CHECKING:
    from dumpsim.frontends.mindspore._capture.trace import Tracer

__all__ = ["Mark", "Resolved", "attribute", "cell", "function", "iteration", "operator", "subscript", "truth"]

_PACKAGE = str(Path(__file__).resolve().parents[3])
_FRAMEWORK = "dumpsim.frontends."
_OVERLOAD = "unpack_call@"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """A state of the count of calls."""

    calls: int
    called: frozenset[tuple[str, Any]]
    overloads: frozenset[tuple[Any, ...]]


class Resolved:
    """The names that one compile has resolved so far.

    Examples
    --------
    >>> resolved = Resolved()
    >>> resolved.note("add bool_")
    >>> resolved.note("add tuple_func@ unpack_call!", constants=(2, 4))
    >>> known = set()
    >>> resolved.taken(known), sorted(known)
    (4, ['add'])
    >>> resolved.taken(known)  # an operator is named once in a process
    3
    """

    def __init__(self) -> None:
        self._operators: set[str] = set()
        self._uses: set[tuple[Any, ...]] = set()
        self._called: set[tuple[str, Any]] = set()
        self._calls = 0

    def note(self, names: str, *, constants: Any = ()) -> None:
        """Record the names that a construct resolves, from `resolutions`, and the constants among its operands."""
        for i, name in enumerate(names.split()):
            if name == "ints@":
                self._integers(constants)
            elif name.endswith("@"):
                self._uses.add((name, i, constants))
            elif name.endswith("!"):
                self._calls += 1
            elif resolutions.is_function(name):
                self._uses.add((name,))
            else:
                self._operators.add(name)

    def _integers(self, constants: tuple[Any, ...]) -> None:
        """Record the operators of the loop that normalizes a sequence of integers, which a second sequence repeats."""
        sequences = [c for c in constants if isinstance(c, tuple)] or [tuple(constants)]
        for sequence in sequences:
            others = [use[1] for use in self._uses if use[0] == "ints@" and use[1] != sequence]
            if others:
                self._operators.add("add")
            if any(len(other) == len(sequence) for other in others):
                self._operators.add("less")
            self._uses.add(("ints@", sequence))

    def call(self, name: str, key: Any) -> None:
        """Record a call of a script's function, which is named when it is called again with equal types."""
        if (name, key) in self._called:
            self._uses.add((name,))
        self._called.add((name, key))

    def mark(self) -> Mark:
        """Return the state of the count, for statements that are captured more than once."""
        return Mark(calls=self._calls, called=frozenset(self._called), overloads=self._overloads())

    def back_to(self, mark: Mark) -> None:
        """Drop the calls since `mark`, because the same statements are captured again."""
        self._calls, self._called = mark.calls, set(mark.called)

    def again(self, mark: Mark) -> None:
        """Count the calls since `mark` twice: a loop is evaluated again if a variable's initial value is constant."""
        self._calls += self._calls - mark.calls + len(self._overloads() - mark.overloads)

    def _overloads(self) -> frozenset[tuple[Any, ...]]:
        return frozenset(use for use in self._uses if use[0] == _OVERLOAD)

    def taken(self, known: set[str]) -> int:
        """Return how many numbers were used; operators named for the first time in the process are added to `known`."""
        fresh = self._operators - known
        known |= fresh
        return len(fresh) + len(self._uses) + self._calls


def operator(tracer: "Tracer | None", position: Position, name: str, *operands: Any) -> None:
    """Count a Python operator (``Add``, ``NotEq``, ``In``, ``USub``, ``Not``); `position` marks an augmented one."""
    if tracer is None or not _counts(position):
        return
    tracer.specialised.operator(position, name, operands)
    kinds = [_kind(operand) for operand in operands]
    kind = "tensor" if "tensor" in kinds else kinds[0]
    label = "Aug" + name if position.form == "augmented" else name
    table = resolutions.OPERATORS
    tracer.resolved.note(table.get((label, kind), table.get((label, ""), "")), constants=_signature(operands))


def truth(tracer: "Tracer | None", position: Position, condition: Any) -> None:
    """Count a condition that Python evaluates."""
    if tracer is not None and _counts(position):
        tracer.specialised.truth(position, condition)
        tracer.resolved.note(resolutions.TRUTH["tensor" if _is_symbolic(condition) else ""])


def control(tracer: "Tracer | None", position: Position, kind: str, count: int) -> None:
    """Count the functions of a branch or loop."""
    if tracer is not None and _counts(position):
        tracer.specialised.control(position, kind, count)


def subscript(tracer: "Tracer", position: Position, value: Any, index: Any) -> None:
    """Count ``value[index]``."""
    if not _counts(position):
        return
    tracer.specialised.subscript(position, value, index)
    if not values.is_tensor(value):
        kind = "part" if isinstance(index, slice) else "sequence"
    elif values.is_tensor(index):
        kind = "mask" if index._dtype.name == "bool" else "tensor"
    else:
        kind = type(index).__name__
    tracer.resolved.note(resolutions.SUBSCRIPTS.get(kind, "getitem"), constants=("index", _signature(index)))


def iteration(tracer: "Tracer | None", position: Position) -> None:
    """Count a ``for``."""
    if tracer is not None and _counts(position):
        tracer.specialised.control(position, "for", 2)
        tracer.resolved.note(resolutions.ITERATION)


def attribute(tracer: "Tracer | None", position: Position, value: Any, name: str) -> None:
    """Count a computed property of a tensor."""
    if tracer is not None and _counts(position) and values.is_tensor(value):
        tracer.specialised.attribute(position, value, name)
        tracer.resolved.note(resolutions.PROPERTIES[name], constants=(name, value.ndim))


def function(tracer: "Tracer", position: Position, called: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Count a call in the script: of a function of the framework, of Python, or of the script."""
    if not _counts(position):
        return
    tracer.specialised.call(position, called, args, kwargs)
    plain = inspect.unwrap(getattr(called, "__func__", called))
    name = getattr(plain, "__name__", "")
    owner = getattr(called, "__self__", None)
    count = len(args) + len(kwargs)
    if values.is_tensor(owner):
        _framework(tracer, f"Tensor.{name}", count > 0, args)
    elif isinstance(plain, (types.BuiltinFunctionType, type)):
        if plain is len:
            tracer.resolved.call("ms_len", _signature(args))
        _framework(tracer, f"{type(owner).__name__}.{name}" if isinstance(owner, (list, dict)) else name, False, args)
    elif isinstance(called, PrimitiveBase):
        axes = args[1] if len(args) > 1 else ()
        form = "(axis)" if isinstance(axes, int) else "(axes)" if isinstance(axes, tuple) and axes else ""
        table = resolutions.PRIMITIVES
        names = table.get(called.name + form, table.get(called.name, ""))
        tracer.resolved.note(names, constants=_constants(args))
    elif isinstance(plain, types.FunctionType):
        if plain.__code__.co_filename.startswith(_PACKAGE):
            _framework(tracer, name, count > 1, args[1:] if args and values.is_tensor(args[0]) else args)
        else:
            key = (_signature(args), _signature(tuple(kwargs.items())))
            tracer.resolved.call(f"{plain.__module__}.{plain.__qualname__}", key)


def cell(tracer: "Tracer", called: Any, args: tuple[Any, ...]) -> None:
    """Count a call of a cell of the framework."""
    tracer.specialised.cell(called, args)
    if type(called).__module__.startswith(_FRAMEWORK):
        name = type(called).__name__
        table = resolutions.CELLS
        wide = bool(args) and values.is_tensor(args[0]) and args[0].ndim > 2
        form = "(train)" if called.training else "(wide)" if wide else ""
        shapes: tuple[tuple[str, ...], ...] = ()
        if name == "Dense" and wide:  # it reshapes to two dimensions and back
            shapes = (("-1", repr(args[0].shape[-1])), tuple(map(repr, (*args[0].shape[:-1], called.out_channels))))
        tracer.resolved.note(table.get(name + form, table.get(name, "")), constants=shapes)


def _framework(tracer: "Tracer", name: str, given: bool, args: tuple[Any, ...]) -> None:
    table = resolutions.CALLS
    names = table.get(f"{name}(axis)") if given else None
    tracer.resolved.note(names if names is not None else table.get(name, ""), constants=_constants(args))


def _constants(args: tuple[Any, ...] | list[Any]) -> tuple[Any, ...]:
    """Return the arguments that are not tensors, with sequences as tuples."""
    found: list[Any] = []
    for value in args:
        if isinstance(value, (tuple, list)):
            found.append(_constants(value))
        elif not values.is_tensor(value):
            found.append(repr(value) if isinstance(value, (int, float, str, type(None))) else type(value).__name__)
    return tuple(found)


def _counts(position: Position) -> bool:
    """Whether the position is in the script; the tables include the framework's own code."""
    return position.form != "fixed" and not position.whole.path.startswith(_PACKAGE)


def _is_symbolic(value: Any) -> bool:
    return values.is_tensor(value) and (value._symbol is not None or values.is_parameter(value))


def _kind(value: Any) -> str:
    if values.is_tensor(value):
        return "tensor"
    return "sequence" if isinstance(value, (tuple, list)) else "scalar"


def _signature(value: Any) -> Any:
    """Return the key of a value for an evaluation: type and shape of tensors, the repr of anything else."""
    if values.is_tensor(value):
        return (value._dtype.name, tuple(value._shape))
    if isinstance(value, (tuple, list)):
        return tuple(_signature(element) for element in value)
    return repr(value) if isinstance(value, (int, float, str, slice, type(None))) else type(value).__name__
