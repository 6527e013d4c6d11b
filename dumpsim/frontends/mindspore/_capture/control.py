"""What rewritten functions call: the control flow and operators of Python, aware of the graph being captured.

Where a condition is known at capture, everything happens as Python does it. Where it is a tensor of the graph, both
branches, or the loop's condition and body, are recorded once into graphs of their own.
"""

import builtins
import inspect
import operator
import sys
import types
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dumpsim.core.abstract import TensorType, TupleType
from dumpsim.core.dtype import from_numpy
from dumpsim.core.errors import CaptureError, ScriptTypeError
from dumpsim.frontends.mindspore._capture import rewrite, trace, values, vendor
from dumpsim.frontends.mindspore._capture.frame import Position
from dumpsim.frontends.mindspore._capture.trace import Tracer
from dumpsim.graph.graph import Graph, Node, Value

__all__ = [
    "Unbound",
    "binary",
    "branch",
    "call",
    "called",
    "choose",
    "conditional",
    "conjunction",
    "disjunction",
    "item",
    "loop",
    "named",
    "named_all",
    "negation",
    "slice",
    "static",
    "unary",
]

slice = builtins.slice

_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "Add": operator.add,
    "Sub": operator.sub,
    "Mult": operator.mul,
    "Div": operator.truediv,
    "FloorDiv": operator.floordiv,
    "Mod": operator.mod,
    "Pow": operator.pow,
    "MatMult": operator.matmul,
    "BitAnd": operator.and_,
    "BitOr": operator.or_,
    "BitXor": operator.xor,
    "LShift": operator.lshift,
    "RShift": operator.rshift,
    "Lt": operator.lt,
    "LtE": operator.le,
    "Gt": operator.gt,
    "GtE": operator.ge,
    "Eq": operator.eq,
    "NotEq": operator.ne,
}
_UNARY: dict[str, Callable[[Any], Any]] = {"USub": operator.neg, "Invert": operator.invert}
_PACKAGE = str(Path(__file__).resolve().parents[3])


class Unbound:
    """A variable that has no value yet."""

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        object.__setattr__(self, "_name", name)

    def __getattr__(self, attribute: str) -> Any:
        raise UnboundLocalError(f"cannot access local variable {self._name!r} where it is not associated with a value")

    def _fail(self, *_: Any) -> Any:
        return self.__getattr__("")

    __bool__ = __len__ = __iter__ = __getitem__ = __call__ = _fail
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _fail


# -- expressions


def named(name: str, value: Any) -> Any:
    """``name = value``."""
    tracer = trace.current()
    if tracer is not None:
        tracer.name_value(name, value)
    return value


def named_all(names: Sequence[str], value: Any) -> Any:
    """``a, b = value``."""
    items = tuple(value)
    tracer = trace.current()
    if tracer is not None and len(items) == len(names):
        for name, element in zip(names, items, strict=True):
            tracer.name_value(name, element, item=True)
    return items


def binary(position: Position, name: str, left: Any, right: Any) -> Any:
    """``left <op> right``."""
    function = _OPERATORS[name]
    tracer = trace.current()
    if tracer is None or not (_is_graph_value(left) or _is_graph_value(right)):
        return function(left, right)
    tracer.at(position, entering=False)
    with tracer.calls.calling(name):  # the vendor's overload for tensors is a function
        if name in vendor.THROUGH_FUNCTION:
            with tracer.entering(scope=tracer.scope_of_function(function), name=name):
                return function(left, right)
        result = function(left, right)
    op_type, attrs = vendor.OPERATOR_ATTRS.get(name, ("", {}))
    _print(tracer, result, op_type, attrs)
    return result


def unary(position: Position, name: str, operand: Any) -> Any:
    """``<op> operand``."""
    function = _UNARY[name]
    tracer = trace.current()
    if tracer is None or not _is_graph_value(operand):
        return function(operand)
    tracer.at(position, entering=False)
    with tracer.calls.calling(name), tracer.entering(scope=tracer.scope_of_function(function), name=name):
        return function(operand)


def _print(tracer: Tracer, result: Any, op_type: str, attrs: Mapping[str, Any]) -> None:
    """Add printed attributes to the node that the present statement has just made."""
    node = result._symbol if values.is_tensor(result) else None
    if isinstance(node, Node) and node.op_type == op_type and tracer.made_here(node):
        node.printed_attrs.update(attrs)


def item(position: Position, value: Any, index: Any) -> Any:
    """``value[index]``."""
    tracer = trace.current()
    if tracer is None:
        return value[index]
    tracer.at(position, entering=False)
    result = value[index]
    if isinstance(index, tuple) and values.is_tensor(value):
        _print(tracer, result, "StridedSlice", vendor.SLICE_ATTRS)
    return result


def call(position: Position, function: Any, /, *args: Any, **kwargs: Any) -> Any:
    """``function(*args, **kwargs)``: cells and functions of the script are captured too."""
    tracer = trace.current()
    if tracer is None:
        return function(*args, **kwargs)
    target = getattr(function, "__func__", function)
    tracer.at(position, entering=isinstance(target, types.FunctionType) or _is_cell(function))
    return called(function, *args, **kwargs)


def called(function: Any, /, *args: Any, **kwargs: Any) -> Any:
    """A call that the capture makes, at the present position: for `call`, and for functions that take functions."""
    tracer = trace.current()
    target = getattr(function, "__func__", function)
    if tracer is None or _is_cell(function) or not isinstance(target, types.FunctionType):
        return function(*args, **kwargs)
    plain = inspect.unwrap(target)
    scope = None if target is not function and _is_cell(function.__self__) else tracer.scope_of_function(plain)
    with tracer.entering(scope=scope, name=getattr(plain, "__qualname__", "")) as frame:
        if _is_library(plain):
            result = function(*args, **kwargs)
            inner = vendor.INNER_NAMES.get(plain.__name__)
            return result if inner is None else named_all(inner, result)
        if plain.__name__ == "<lambda>":
            return function(*args, **kwargs)
        new = rewrite.rewritten(plain)
        frame.definition = new.definition
        if target is not function:
            return new.function(function.__self__, *args, **kwargs)
        return new.function(*args, **kwargs)


def _is_cell(value: Any) -> bool:
    from dumpsim.frontends.mindspore.nn.cell import Cell

    return isinstance(value, Cell)


def _is_library(function: Callable[..., Any]) -> bool:
    """Whether a function belongs to the front end, to Python or to an installed package, and is only traced."""
    path = function.__code__.co_filename
    if path.startswith(_PACKAGE) and "examples" not in path:
        return True
    module = str(getattr(function, "__module__", "")).partition(".")[0]
    return (module in sys.stdlib_module_names and module != "__main__") or module == "numpy"


def _is_graph_value(value: Any) -> bool:
    return values.is_tensor(value)


# -- conditions


def _truth(condition: Any) -> Any:
    """The condition as a bool, or as the tensor of the graph that decides it."""
    if values.is_tensor(condition) and condition._symbol is not None:
        return condition
    if values.is_parameter(condition) and trace.current() is not None:
        return condition
    return bool(condition)


def static(position: Position, condition: Any) -> bool:
    """A condition that has to be known at capture."""
    truth = _truth(condition)
    if not isinstance(truth, bool):
        raise CaptureError(
            "a condition on a tensor of the graph cannot decide 'assert', nor 'break', 'continue' or 'return' "
            "in a loop",
            where=f"{position.whole.path}:{position.whole.line}",
        )
    return truth


def negation(position: Position, value: Any) -> Any:
    """``not value``."""
    truth = _truth(value)
    if isinstance(truth, bool):
        return not truth
    return _operator(position, "LogicalNot", [_boolean(truth)])


def conjunction(position: Position, *operands: Callable[[], Any]) -> Any:
    """``a and b``; tensors of the graph are joined by an operator."""
    return _join(position, "LogicalAnd", operands, stops=False)


def disjunction(position: Position, *operands: Callable[[], Any]) -> Any:
    """``a or b``; tensors of the graph are joined by an operator."""
    return _join(position, "LogicalOr", operands, stops=True)


def _join(position: Position, op_type: str, operands: Sequence[Callable[[], Any]], *, stops: bool) -> Any:
    result = operands[0]()
    for operand in operands[1:]:
        truth = _truth(result)
        if isinstance(truth, bool):
            if truth is stops:
                return result
            result = operand()
            continue
        other = operand()
        decided = _truth(other)
        if isinstance(decided, bool):
            if decided is stops:
                return other
        else:
            result = _operator(position, op_type, [_boolean(truth), _boolean(decided)])
    return result


def _operator(position: Position, op_type: str, operands: list[Any]) -> Any:
    from dumpsim.frontends.mindspore._capture.dispatch import call as run

    tracer = trace.current()
    if tracer is not None:
        tracer.at(position, entering=False)
    return run(op_type, operands)


def _boolean(tensor: Any) -> Any:
    """A condition tensor as Bool."""
    if tensor._dtype.name == "bool":
        return tensor
    from dumpsim.frontends.mindspore._capture.dispatch import call as run

    return run("NotEqual", [tensor, 0])


def conditional(position: Position, test: Any, then: Callable[[], Any], other: Callable[[], Any]) -> Any:
    """``then if test else other``."""
    truth = _truth(test)
    if isinstance(truth, bool):
        return then() if truth else other()
    return choose(position, test, then, other, tuple, lambda _: None, ())


# -- branches


def branch(
    position: Position,
    test: Any,
    then: Callable[[], Any],
    other: Callable[[], Any],
    get: Callable[[], tuple[Any, ...]],
    put: Callable[[tuple[Any, ...]], None],
    names: Sequence[str],
    fixed: bool = False,
) -> None:
    """An ``if`` statement; afterwards the variables hold what the branch that ran gave them.

    `fixed` says that the condition has nothing but constants and attributes of the cell.
    """
    truth = _truth(test)
    tracer = trace.current()
    if isinstance(truth, bool):
        with _InsideBranch(tracer, fixed=fixed, variables=get):
            (then if truth else other)()
        return
    assert tracer is not None
    before = get()
    sides = []
    for label, side in (("then", then), ("else", other)):
        with tracer.block(label) as graph:
            side()
            sides.append((graph, get()))
        put(before)
    put(_merge(tracer, position, truth, sides, names))


def choose(
    position: Position,
    test: Any,
    then: Callable[[], Any],
    other: Callable[[], Any],
    get: Callable[[], tuple[Any, ...]],
    put: Callable[[tuple[Any, ...]], None],
    names: Sequence[str],
) -> Any:
    """An ``if`` both of whose branches return; gives what they return."""
    truth = _truth(test)
    tracer = trace.current()
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


class _InsideBranch:
    """Counts the branches around a statement of the present frame."""

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
) -> tuple[Any, ...]:
    """The values of variables behind a branch: those that the sides make different become outputs of an If node."""
    (then, left), (other, right) = sides
    result: list[Any] = []
    outputs: tuple[list[Value], list[Value]] = ([], [])
    slots: list[tuple[int, Any, int]] = []  # place in `result`, the structure, number of tensors
    for name, a, b in zip(names, left, right, strict=True):
        if a is b or _same(a, b):
            result.append(a)
            continue
        if isinstance(a, Unbound) or isinstance(b, Unbound):
            result.append(Unbound(name))
            continue
        tensors_a, tensors_b = _tensors(a), _tensors(b)
        where = f"{position.whole.path}:{position.whole.line}"
        if len(tensors_a) != len(tensors_b):
            raise ScriptTypeError(f"the branches give {name!r} values of different structure", where=where)
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
        graph.output = _tuple(found)
    node = Node(
        op_type="If",
        operands=[tracer.value_of(_boolean(condition))],
        abstract=TupleType(items=tuple(_tensor_type(v) for v in outputs[0])),
        blocks=(then, other),
    )
    tracer.append(node)
    fresh = list(tracer.unpack(node, node.abstract))
    for place, structure, count in slots:
        result[place] = _filled(structure, fresh[:count])
        del fresh[:count]
        if place < len(names):
            named(names[place], result[place])
    return tuple(result)


def _tensor_type(value: Value) -> TensorType:
    abstract = value.abstract
    assert isinstance(abstract, TensorType)
    return TensorType(dtype=abstract.dtype, shape=abstract.shape)


def _tuple(items: list[Value]) -> Node:
    return Node(op_type="MakeTuple", operands=items, abstract=TupleType(items=tuple(v.abstract for v in items)))


def _same(a: Any, b: Any) -> bool:
    """Whether two values are the same constant."""
    if values.is_tensor(a) or values.is_tensor(b):
        return values.is_tensor(a) and values.is_tensor(b) and a._symbol is not None and a._symbol is b._symbol
    if isinstance(a, (tuple, list)) and isinstance(b, (tuple, list)):
        return type(a) is type(b) and len(a) == len(b) and all(map(_same, a, b))
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return False
    return type(a) is type(b) and bool(a == b)


def _tensors(value: Any) -> list[Any]:
    """The tensors of a variable's value; numbers become constant tensors."""
    if isinstance(value, (bool, int, float)):
        return [_lifted(value)]
    if isinstance(value, (tuple, list)):
        return [t for element in value for t in _tensors(element)]
    if values.is_tensor(value):
        return [value]
    if value is None or isinstance(value, str):
        return []
    raise CaptureError(f"a variable of type {type(value).__name__} cannot change under a condition on a tensor")


def _lifted(value: Any) -> Any:
    kind = np.bool_ if isinstance(value, bool) else np.int64 if isinstance(value, int) else np.float32
    array = np.array(value, kind)
    return values.tensor_of_array(array, from_numpy(array.dtype))


def _filled(structure: Any, fresh: list[Any]) -> Any:
    """A structure with its tensors and numbers replaced, in the order of `_tensors`."""
    if isinstance(structure, (tuple, list)):
        parts, rest = [], list(fresh)
        for element in structure:
            count = len(_tensors(element))
            parts.append(_filled(element, rest[:count]))
            del rest[:count]
        return type(structure)(parts)
    return fresh[0] if fresh else structure


# -- loops


def loop(
    position: Position,
    test: Callable[[], Any],
    body: Callable[[], Any],
    get: Callable[[], tuple[Any, ...]],
    put: Callable[[tuple[Any, ...]], None],
    names: Sequence[str],
) -> None:
    """A ``while`` statement; unrolled where the condition is known at capture."""
    tracer = trace.current()
    if tracer is None:
        while test():
            body()
        return
    with tracer.block("probe"):
        first = _truth(test())
    if isinstance(first, bool):
        while static(position, test()):
            body()
        return
    before = get()
    lifted: set[int] = set()
    while True:
        carried = [i for i, v in enumerate(before) if _is_carried(v) or i in lifted]
        after, node = _captured_loop(tracer, position, test, body, get, put, names, before, carried)
        changed = {
            i for i, v in enumerate(after) if i not in carried and not _same(before[i], v) and before[i] is not v
        }
        changed = {i for i in changed if not isinstance(before[i], Unbound)}
        if not changed:
            break
        lifted |= changed
    tracer.append(node)
    fresh = list(tracer.unpack(node, node.abstract))
    result = list(before)
    for i, value in enumerate(after):
        if i in carried:
            count = len(_tensors(before[i]))
            result[i] = _filled(before[i], fresh[:count])
            del fresh[:count]
            named(names[i], result[i])
        elif isinstance(before[i], Unbound) and not isinstance(value, Unbound):
            result[i] = Unbound(names[i])
    put(tuple(result))


def _is_carried(value: Any) -> bool:
    return any(True for _ in values.tensors_in(value))


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
    initial = [tensor for i in carried for tensor in _tensors(before[i])]
    graphs = []
    after: tuple[Any, ...] = ()
    for label in ("test", "body"):
        with tracer.block(label) as graph:
            state = list(before)
            for i in carried:
                arguments = []
                for tensor in _tensors(before[i]):
                    abstract = TensorType(dtype=tensor._dtype, shape=tuple(tensor._shape))
                    arguments.append(tracer.argument(names[i], abstract, debug_name=f"ф{names[i]}"))
                state[i] = _filled(before[i], arguments)
            put(tuple(state))
            if label == "test":
                graph.output = _tuple([tracer.value_of(_boolean(test()))])
            else:
                body()
                after = get()
                outputs = [tensor for i in carried for tensor in _tensors(after[i])]
                _check_carried(position, names, carried, before, after)
                graph.output = _tuple([tracer.value_of(tensor) for tensor in outputs])
        graphs.append(graph)
    put(before)
    types_ = tuple(TensorType(dtype=t._dtype, shape=tuple(t._shape)) for t in initial)
    node = Node(
        op_type="While",
        operands=[tracer.value_of(tensor) for tensor in initial],
        abstract=TupleType(items=types_),
        blocks=tuple(graphs),
        flags={"names": [names[i] for i in carried for _ in _tensors(before[i])]},
    )
    return after, node


def _check_carried(
    position: Position, names: Sequence[str], carried: list[int], before: tuple[Any, ...], after: tuple[Any, ...]
) -> None:
    for i in carried:
        one, two = _tensors(before[i]), _tensors(after[i])
        if [(t._dtype, tuple(t._shape)) for t in one] != [(t._dtype, tuple(t._shape)) for t in two]:
            raise ScriptTypeError(
                f"the loop changes the type of {names[i]!r} from {before[i]!r} to {after[i]!r}",
                where=f"{position.whole.path}:{position.whole.line}",
            )
