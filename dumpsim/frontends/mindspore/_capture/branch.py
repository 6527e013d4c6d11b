"""Branches on tensors: both sides are recorded once, and variables that differ become outputs of an If node."""

from collections.abc import Callable, Sequence
from typing import Any

from dumpsim.core.abstract import TupleType
from dumpsim.core.errors import ScriptTypeError
from dumpsim.frontends.mindspore._capture import numbering, values
from dumpsim.frontends.mindspore._capture.condition import as_bool, truth_of
from dumpsim.frontends.mindspore._capture.continuation import continued_block
from dumpsim.frontends.mindspore._capture.frame import Position
from dumpsim.frontends.mindspore._capture.jump import RESULT
from dumpsim.frontends.mindspore._capture.loop import look_beyond
from dumpsim.frontends.mindspore._capture.origin import origin
from dumpsim.frontends.mindspore._capture.trace import Tracer
from dumpsim.frontends.mindspore._capture.variable import Unbound, bundle, filled, same, tensor_type, tensors_of, zeros
from dumpsim.frontends.mindspore._current import capturing
from dumpsim.graph.graph import Control, Graph, Node, Value

__all__ = ["branch", "choose", "conditional", "either"]


def conditional(position: Position, test: Any, then: Callable[[], Any], other: Callable[[], Any]) -> Any:
    """``then if test else other``."""
    numbering.truth(capturing(), position, test)
    truth = truth_of(test)
    if isinstance(truth, bool):
        return then() if truth else other()
    return choose(position, test, then, other, tuple, lambda _: None, ())


def branch(
    position: Position,
    test: Any,
    then: Callable[[], Any],
    other: Callable[[], Any],
    get: Callable[[], tuple[Any, ...]],
    put: Callable[[tuple[Any, ...]], None],
    names: Sequence[str],
    fixed: bool = False,
    live: Sequence[str] = (),
) -> None:
    """An ``if`` statement; afterwards, the variables have the values of the branch that ran.

    `fixed` means that the condition uses only constants and attributes of the cell; `live` are the variables that are
    read after the statement.
    """
    truth = truth_of(test)
    tracer = capturing()
    numbering.truth(tracer, position, test)
    numbering.control(tracer, position, "if", 2 if isinstance(truth, bool) else 3)
    if isinstance(truth, bool):
        with _InsideBranch(tracer, fixed=fixed, variables=get):
            (then if truth else other)()
        return
    assert tracer is not None
    look_beyond(tracer, position)
    before = get()
    sides = []
    for label, side in (("then", then), ("else", other)):
        with tracer.block(label) as graph:
            side()
            given = zip(names, get(), before, strict=True)
            sides.append((graph, tuple(value if name in live else old for name, value, old in given)))
        put(before)
    (_, left), (_, right) = sides
    differ = any(not _agree(a, b) for a, b in zip(left, right, strict=True))
    put(_merge(tracer, position, truth, sides, names, control=Control(joins=differ, goes_on=not differ)))


def choose(
    position: Position,
    test: Any,
    then: Callable[[], Any],
    other: Callable[[], Any],
    get: Callable[[], tuple[Any, ...]],
    put: Callable[[tuple[Any, ...]], None],
    names: Sequence[str],
) -> Any:
    """An ``if`` of which both branches return; returns their value."""
    truth = truth_of(test)
    tracer = capturing()
    numbering.truth(tracer, position, test)
    numbering.control(tracer, position, "if", 2 if isinstance(truth, bool) else 3)
    if isinstance(truth, bool):
        with _InsideBranch(tracer):
            return then() if truth else other()
    assert tracer is not None
    before = get()
    sides = []
    for label, side in (("then", then), ("else", other)):
        with tracer.block(label) as graph:
            sides.append((graph, (side(),)))
        put(before)
    return _merge(tracer, position, truth, sides, ("return",))[0]


def either(
    tracer: Tracer, position: Position, condition: Any, then: Callable[[], Any], other: Callable[[], Any]
) -> Any:
    """Choose a value by a condition of the graph; the branches change no variables."""
    sides = []
    for label, side in (("then", then), ("else", other)):
        with tracer.block(label) as graph:
            sides.append((graph, (side(),)))
    return _merge(tracer, position, condition, sides, ("return",))[0]


class _InsideBranch:
    """Counter of the branches around a statement of the current frame."""

    def __init__(
        self, tracer: Tracer | None, *, fixed: bool = True, variables: Callable[[], tuple[Any, ...]] = tuple
    ) -> None:
        self._tracer = tracer
        self._frame = tracer.frame if tracer is not None else None
        self._fixed = fixed
        self._variables = variables
        self._depth = 0

    def __enter__(self) -> None:
        if self._frame is not None and self._tracer is not None:
            self._frame.blocks += 1
            self._depth = self._tracer.calls.enter("branch")

    def __exit__(self, *_: object) -> None:
        if self._frame is not None and self._tracer is not None:
            self._frame.blocks -= 1
            given = [t._symbol for t in values.tensors_in(self._variables()) if t._symbol is not None]
            self._tracer.calls.leave_branch(self._depth, given, fixed=self._fixed)


def _merge(
    tracer: Tracer,
    position: Position,
    condition: Any,
    sides: list[tuple[Graph, tuple[Any, ...]]],
    names: Sequence[str],
    *,
    control: Control | None = None,
) -> tuple[Any, ...]:
    """Return the values of variables after a branch; those that differ between sides become outputs of an If node."""
    (then, left), (other, right) = sides
    result: list[Any] = []
    outputs: tuple[list[Value], list[Value]] = ([], [])
    slots: list[tuple[int, Any, int]] = []  # index in `result`, the structure, number of tensors
    for name, a, b in zip(names, left, right, strict=True):
        if _agree(a, b):
            result.append(a)
            continue
        if name == RESULT:  # it is read only if it was set
            a, b = (zeros(b), b) if isinstance(a, Unbound) else (a, zeros(a) if isinstance(b, Unbound) else b)
        if isinstance(a, Unbound) or isinstance(b, Unbound):
            sides_of = ("true", "false") if isinstance(b, Unbound) else ("false", "true")
            result.append(
                Unbound(
                    name,
                    f"The local variable '{name}' is not defined in {sides_of[1]} branch, but defined in {sides_of[0]} "
                    f"branch.\n\nIn file {position.whole.path}:{position.whole.line}",
                )
            )
            continue
        tensors_a, tensors_b = tensors_of(a), tensors_of(b)
        where = f"{position.whole.path}:{position.whole.line}"
        if len(tensors_a) != len(tensors_b):
            raise ScriptTypeError(f"the branches set {name!r} to values of different structure", where=where)
        for one, two in zip(tensors_a, tensors_b, strict=True):
            if (one._dtype, one._shape) != (two._dtype, two._shape):
                raise ScriptTypeError(
                    f"Cannot join the return values of different branches: {name!r} is {one!r} and {two!r}",
                    where=where,
                )
            outputs[0].append(tracer.value_of(one))
            outputs[1].append(tracer.value_of(two))
        slots.append((len(result), a, len(tensors_a)))
        result.append(None)
    for graph, found in zip((then, other), outputs, strict=True):
        graph.output = tracer.with_formals(bundle(found))
        if control is None or not control.goes_on:
            continued_block(graph)
    control = control or Control()
    if not control.goes_on:
        control.origins = (origin(tracer, position, "then", then), origin(tracer, position, "else", other))
    node = Node(
        op_type="If",
        operands=[tracer.value_of(as_bool(condition))],
        abstract=TupleType(items=tuple(tensor_type(v) for v in outputs[0])),
        blocks=(then, other),
        control=control,
    )
    tracer.append(node)
    fresh = list(tracer.unpack(node, node.abstract))
    for index, structure, count in slots:
        result[index] = filled(structure, fresh[:count])
        del fresh[:count]
        if index < len(names):
            tracer.name_value(names[index], result[index])
    return tuple(result)


def _agree(a: Any, b: Any) -> bool:
    return a is b or same(a, b)
