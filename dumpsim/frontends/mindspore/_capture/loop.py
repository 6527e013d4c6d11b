"""Loops on tensors: condition and body are recorded once, with the variables that they carry as arguments."""

from collections.abc import Callable, Sequence
from typing import Any

from dumpsim.core.abstract import TensorType, TupleType
from dumpsim.core.errors import ScriptTypeError
from dumpsim.frontends.mindspore._capture.condition import as_bool, static, truth_of
from dumpsim.frontends.mindspore._capture.frame import Position
from dumpsim.frontends.mindspore._capture.jump import RESULT
from dumpsim.frontends.mindspore._capture.trace import Tracer
from dumpsim.frontends.mindspore._capture.variable import Unbound, bundle, filled, is_carried, same, tensors_of, zeros
from dumpsim.frontends.mindspore._current import capturing
from dumpsim.graph.graph import Constant, Control, Node

__all__ = ["loop", "turn"]


def turn() -> None:
    """A turn of a loop over values that are known, or what follows the loop, begins."""
    tracer = capturing()
    if tracer is not None:
        tracer.calls.turn()
        tracer.frame.blocks += 1  # what follows is inside of the vendor's loop functions to the end of the function


def loop(
    position: Position,
    test: Callable[[], Any],
    body: Callable[[], Any],
    get: Callable[[], tuple[Any, ...]],
    put: Callable[[tuple[Any, ...]], None],
    names: Sequence[str],
) -> None:
    """A ``while`` statement; unrolled where the condition is known at capture."""
    tracer = capturing()
    if tracer is None:
        while test():
            body()
        return
    start = tracer.resolved.mark()
    with tracer.block("probe"):
        first = truth_of(test())
    tracer.resolved.back_to(start)
    if isinstance(first, bool):
        while static(position, test()):
            body()
        return
    before = get()
    lifted: set[int] = set()
    while True:
        tracer.resolved.back_to(start)
        carried = [i for i, v in enumerate(before) if is_carried(v) or i in lifted]
        after, node = _captured_loop(tracer, position, test, body, get, put, names, before, carried)
        unset = [i for i, v in enumerate(before) if isinstance(v, Unbound) and names[i] == RESULT]
        if unset and not isinstance(after[unset[0]], Unbound):
            before = tuple(zeros(after[i]) if i in unset else v for i, v in enumerate(before))
            lifted |= set(unset)
            continue
        changed = {i for i, v in enumerate(after) if i not in carried and not same(before[i], v) and before[i] is not v}
        changed = {i for i in changed if not isinstance(before[i], Unbound)}
        if not changed:
            break
        lifted |= changed
    if any(isinstance(value, Constant) for value in node.operands):
        tracer.resolved.again(start)
    tracer.append(node)
    fresh = list(tracer.unpack(node, node.abstract))
    result = list(before)
    for i, value in enumerate(after):
        if i in carried:
            count = len(tensors_of(before[i]))
            result[i] = filled(before[i], fresh[:count])
            del fresh[:count]
            tracer.name_value(names[i], result[i])
        elif isinstance(before[i], Unbound) and not isinstance(value, Unbound):
            result[i] = Unbound(names[i])
    put(tuple(result))


def _captured_loop(
    tracer: Tracer,
    position: Position,
    test: Callable[[], Any],
    body: Callable[[], Any],
    get: Callable[[], tuple[Any, ...]],
    put: Callable[[tuple[Any, ...]], None],
    names: Sequence[str],
    before: tuple[Any, ...],
    carried: list[int],
) -> tuple[tuple[Any, ...], Node]:
    """Condition and body recorded with the carried variables as arguments; the variables behind the body, the node."""
    initial = [tensor for i in carried for tensor in tensors_of(before[i])]
    graphs = []
    after: tuple[Any, ...] = ()
    for label in ("test", "body"):
        with tracer.block(label) as graph:
            state = list(before)
            for i in carried:
                arguments = []
                for tensor in tensors_of(before[i]):
                    abstract = TensorType(dtype=tensor._dtype, shape=tuple(tensor._shape))
                    arguments.append(tracer.argument(names[i], abstract, debug_name=f"ф{names[i]}"))
                state[i] = filled(before[i], arguments)
            put(tuple(state))
            if label == "test":
                graph.output = bundle([tracer.value_of(as_bool(test()))])
            else:
                body()
                after = get()
                outputs = [tensor for i in carried for tensor in tensors_of(after[i])]
                _check_carried(position, names, carried, before, after)
                graph.output = bundle([tracer.value_of(tensor) for tensor in outputs])
        graphs.append(graph)
    put(before)
    types_ = tuple(TensorType(dtype=t._dtype, shape=tuple(t._shape)) for t in initial)
    node = Node(
        op_type="While",
        operands=[tracer.value_of(tensor) for tensor in initial],
        abstract=TupleType(items=types_),
        blocks=tuple(graphs),
        control=Control(variables=tuple(names[i] for i in carried for _ in tensors_of(before[i]))),
    )
    return after, node


def _check_carried(
    position: Position, names: Sequence[str], carried: list[int], before: tuple[Any, ...], after: tuple[Any, ...]
) -> None:
    for i in carried:
        one, two = tensors_of(before[i]), tensors_of(after[i])
        if [(t._dtype, tuple(t._shape)) for t in one] != [(t._dtype, tuple(t._shape)) for t in two]:
            raise ScriptTypeError(
                f"the loop changes the type of {names[i]!r} from {before[i]!r} to {after[i]!r}",
                where=f"{position.whole.path}:{position.whole.line}",
            )
