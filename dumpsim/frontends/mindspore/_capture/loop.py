"""Loops on tensors: condition and body are recorded once, with the carried variables as arguments."""

from collections.abc import Callable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from dumpsim.core.abstract import TensorType, TupleType
from dumpsim.core.errors import ScriptTypeError
from dumpsim.frontends.mindspore._capture import numbering, values
from dumpsim.frontends.mindspore._capture.condition import as_bool, static, truth_of
from dumpsim.frontends.mindspore._capture.frame import Frame, Position
from dumpsim.frontends.mindspore._capture.jump import RESULT, JumpError
from dumpsim.frontends.mindspore._capture.lookup import look_up
from dumpsim.frontends.mindspore._capture.trace import Tracer
from dumpsim.frontends.mindspore._capture.variable import (
    Unbound,
    bundle,
    filled,
    is_carried,
    same,
    tensor_type,
    tensors_of,
    zeros,
)
from dumpsim.frontends.mindspore._current import capturing
from dumpsim.graph.graph import Constant, Control, Node, control_of, uses

__all__ = ["ending", "look_beyond", "loop", "turn"]


@dataclass(slots=True, kw_only=True)
class _State:
    """The loop whose body is being recorded: its variables, and the indices of those that it carries."""

    get: Callable[[], tuple[Any, ...]]
    put: Callable[[tuple[Any, ...]], None]
    carried: tuple[int, ...]
    frame: Frame
    last: int  # line
    jumps: bool = False

    def tensors(self) -> list[Any]:
        """Return the tensors of the carried variables."""
        now = self.get()
        return [tensor for i in self.carried for tensor in tensors_of(now[i])]

    def fill(self, fresh: list[Any]) -> None:
        """Set the tensors of the carried variables."""
        now = list(self.get())
        for i in self.carried:
            count = len(tensors_of(now[i]))
            now[i] = filled(now[i], fresh[:count])
            del fresh[:count]
        self.put(tuple(now))


_around: ContextVar[_State | None] = ContextVar("around", default=None)


def look_beyond(tracer: Tracer, position: Position) -> None:
    """Look up the names after the enclosing loop, before the sides of a branch or loop are captured.

    The vendor evaluates both sides of a branch in turns: a choice in one side has to wait for the other side.
    [source async_eval_result.cc; observed 2.10: a function that both sides of a loop's header look up]
    """
    state = _around.get()
    if state is not None and state.frame is tracer.frame:
        look_up(tracer, position.whole.line)
        look_up(tracer, state.last + 1)


def ending(
    position: Position,
    test: Any,
    get: Callable[[], tuple[Any, ...]],
    put: Callable[[tuple[Any, ...]], None],
    names: Sequence[str],
    then: Callable[[], Any],
    other: Callable[[], Any],
    rest: Callable[[], Any],
    ends: Sequence[str],
) -> None:
    """A branch at the end of a loop's body, of which one side leaves the loop or starts its next iteration.

    The other side continues with `rest`. Each side returns the variables of the loop at its end.
    """
    tracer, state = capturing(), _around.get()
    truth = truth_of(test)
    path, line = position.whole.path, position.whole.line
    if tracer is None or state is None or isinstance(truth, bool):
        raise JumpError(path, line, flags=True)  # decided at capture, or in a loop that is unrolled
    look_beyond(tracer, position)
    tracer.specialised.truth(position, truth)
    numbering.control(tracer, position, "if", 3)
    if "break" in ends:
        numbering.control(tracer, position, "end", 1)
    state.jumps = True
    tracer.shared.jumps.append((path, line))
    before, outer = get(), state.get()
    graphs, starts = [], []
    for label, side, end in (("then", then, ends[0]), ("else", other, ends[1])):
        with tracer.block(label) as graph:
            side()
            starts.append(len(graph.trail))
            if not end:
                rest()
            graph.output = tracer.with_formals(bundle([tracer.value_of(tensor) for tensor in state.tensors()]))
        graphs.append(graph)
        state.put(outer)
        put(before)
    types_ = [tuple(tensor_type(value) for value in graph.output.operands) for graph in graphs]  # type: ignore[union-attr]
    if types_[0] != types_[1]:
        raise ScriptTypeError("the loop changes the type of a variable", where=f"{path}:{line}")
    node = Node(
        op_type="If",
        operands=[tracer.value_of(as_bool(truth))],
        abstract=TupleType(items=types_[0]),
        blocks=tuple(graphs),
        control=Control(jumps=tuple(ends), starts=tuple(starts)),
    )
    tracer.append(node)
    state.fill(list(tracer.unpack(node, node.abstract)))


def turn(carried: tuple[Any, ...], is_last: bool) -> None:
    """Start an iteration of an unrolled loop, or the code after the loop (`is_last`).

    The variables passed between iterations (`carried`) are formal parameters of the vendor's function for it.
    [source function_block.cc]
    """
    tracer = capturing()
    if tracer is not None:
        symbols = [tensor._symbol for tensor in values.tensors_in(carried)]
        _pass_on(tracer.graph.trail, symbols)
        frame = tracer.frame
        frame.formals.update((symbol, frame.loops) for symbol in symbols if isinstance(symbol, Node))
        tracer.calls.turn(is_last=is_last)
        frame.turns += 1
        frame.is_turning = not is_last
        if frame.instance is not None:
            tracer.specialised.add(("turn", frame.instance, frame.turns), 2)
        frame.is_in_loop = True


def _pass_on(trail: Sequence[Node], symbols: Sequence[Any]) -> None:
    """Mark outputs of branches that an iteration passes to the next one, or to the code after the loop.

    Outputs that the iteration reads after the branch come first.
    """
    parts = [s for s in symbols if isinstance(s, Node) and s.op_type == "TupleGetItem" and s.operands[0] in trail]
    for part in parts:
        branch = part.operands[0]
        assert isinstance(branch, Node)
        mine = {id(node): node for node in trail if node.op_type == "TupleGetItem" and node.operands[0] is branch}
        read = [mine[id(v)] for n in trail[trail.index(branch) + 1 :] for v in uses(n) if id(v) in mine]
        passed = control_of(branch).passed
        for one in [*read, *(other for other in parts if other.operands[0] is branch)]:
            index = one.operands[1]
            assert isinstance(index, Constant)
            passed += [index.value] if index.value not in passed else []


def loop(
    position: Position,
    test: Callable[[], Any],
    body: Callable[[], Any],
    get: Callable[[], tuple[Any, ...]],
    put: Callable[[tuple[Any, ...]], None],
    names: Sequence[str],
    live: Sequence[str],
) -> None:
    """A ``while`` statement, which is unrolled if the condition is known at capture.

    It carries the variables that are read in its head, in its body or after it before they are set (`live`).
    """
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
        tracer.specialised.give_up("while")
        while static(position, test()):
            body()
        return
    look_beyond(tracer, position)
    numbering.control(tracer, position, "while", 3)
    before = get()
    lifted: set[int] = set()
    while True:
        tracer.resolved.back_to(start)
        carried = [i for i, v in enumerate(before) if (is_carried(v) and names[i] in live) or i in lifted]
        after, node = _captured_loop(tracer, position, test, body, get, put, names, before, carried)
        unset = [i for i, v in enumerate(before) if isinstance(v, Unbound) and names[i] == RESULT]
        if unset and not isinstance(after[unset[0]], Unbound):
            before = tuple(zeros(after[i]) if i in unset else v for i, v in enumerate(before))
            lifted |= set(unset)
            continue
        changed = {i for i, v in enumerate(after) if i not in carried and not same(before[i], v) and before[i] is not v}
        changed = {i for i in changed if names[i] in live and not isinstance(before[i], Unbound)}
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
    """Record condition and body with the carried variables as arguments; return the variables and the While node."""
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
                last = position.whole.end_line
                state_of_loop = _State(get=get, put=put, carried=tuple(carried), frame=tracer.frame, last=last)
                token = _around.set(state_of_loop)
                try:
                    body()
                finally:
                    _around.reset(token)
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
        control=Control(
            variables=tuple(names[i] for i in carried for _ in tensors_of(before[i])),
            jumps=("break",) if state_of_loop.jumps else (),
        ),
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
