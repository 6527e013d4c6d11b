"""Functions called by rewritten code: Python's control flow and operators, aware of the graph being captured.

If a condition is known at capture, everything happens as in Python. If it is a tensor of the graph, both branches, or
the loop's condition and body, are each recorded once, into separate graphs.
"""

import builtins
import inspect
import operator
import sys
import types
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib import import_module
from types import MappingProxyType
from typing import Any

from dumpsim.core.errors import CaptureError
from dumpsim.frontends.mindspore._capture import (
    numbering,
    resolutions,
    rewrite,
    sharing,
    specialisations,
    trace,
    values,
    vendor,
)
from dumpsim.frontends.mindspore._capture.branch import branch, choose, conditional
from dumpsim.frontends.mindspore._capture.callee import CellBase
from dumpsim.frontends.mindspore._capture.condition import leaving, negation, static
from dumpsim.frontends.mindspore._capture.continuation import continued
from dumpsim.frontends.mindspore._capture.frame import Position
from dumpsim.frontends.mindspore._capture.lookup import is_library, look_up
from dumpsim.frontends.mindspore._capture.loop import ending, loop, turn
from dumpsim.frontends.mindspore._capture.shortcircuit import conjunction, disjunction
from dumpsim.frontends.mindspore._capture.specialised import signature
from dumpsim.frontends.mindspore._capture.trace import Tracer
from dumpsim.frontends.mindspore._capture.variable import Unbound
from dumpsim.frontends.mindspore._current import capturing
from dumpsim.graph.graph import Constant, Graph, Node, control_of, text_of

__all__ = [
    "Unbound",
    "attribute",
    "begin",
    "binary",
    "branch",
    "call",
    "call_cell",
    "called",
    "choose",
    "conditional",
    "conjunction",
    "disjunction",
    "ending",
    "item",
    "iterated",
    "leaving",
    "loop",
    "named",
    "named_all",
    "negation",
    "rewritten",
    "slice",
    "static",
    "turn",
    "unary",
    "unused",
    "with_item",
]

slice = builtins.slice


def _contains(sequence: Any, element: Any) -> bool:
    """``element in sequence``; a value of the graph is not equal to any constant. [observed 2.10]"""
    if values.is_symbolic(element) and isinstance(sequence, (tuple, list)):
        return any(one is element for one in sequence)
    return element in sequence


_OPERATORS: Mapping[str, Callable[[Any, Any], Any]] = MappingProxyType(
    {
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
        "In": lambda element, sequence: _contains(sequence, element),
        "NotIn": lambda element, sequence: not _contains(sequence, element),
    }
)
_AUGMENTED: Mapping[str, Callable[[Any, Any], Any]] = MappingProxyType(
    {
        "Add": operator.iadd,
        "Sub": operator.isub,
        "Mult": operator.imul,
        "Div": operator.itruediv,
        "FloorDiv": operator.ifloordiv,
        "Mod": operator.imod,
    }
)
_UNARY: Mapping[str, Callable[[Any], Any]] = MappingProxyType({"USub": operator.neg, "Invert": operator.invert})


def named(name: str, value: Any) -> Any:
    """``name = value``."""
    tracer = capturing()
    if tracer is not None:
        tracer.name_value(name, value)
    return value


def named_all(names: Sequence[str], value: Any) -> Any:
    """``a, b = value``; in a graph, surplus elements are ignored. [observed 2.10: h_multi]"""
    items = tuple(value)
    tracer = capturing()
    if tracer is not None:
        items = items[: len(names)]
    if tracer is not None and len(items) == len(names):
        for name, element in zip(names, items, strict=True):
            tracer.name_value(name, element, item=True)
    return items


def binary(position: Position, name: str, left: Any, right: Any) -> Any:
    """``left <op> right``."""
    function = _OPERATORS[name]
    if position.form == "augmented":
        function = _AUGMENTED.get(name, function)
    tracer = capturing()
    numbering.operator(tracer, position, name, left, right)
    if tracer is None or not (_is_graph_value(left) or _is_graph_value(right)):
        return function(left, right)
    tracer.at(position, entering=False)
    with tracer.calls.calling(name):  # the vendor's overload for tensors is a function
        result = function(left, right)
    op_type, names = vendor.OPERATOR_ATTRS.get(name, ("", {}))
    attrs = {key: list(value) for key, value in names.items()}  # the IR text distinguishes lists and tuples
    _print(tracer, result, op_type, attrs)
    return result


def unused(value: Any) -> Any:
    """A statement that is a call, whose value nothing uses.

    The result of the function waits for this value. If it is not a tensor, it exists until the functions are inlined.
    [source function_block.cc AttachIsolatedNodesBeforeReturn; observed 2.10: the checks of the losses]
    """
    tracer = capturing()
    if tracer is not None and not any(True for _ in values.tensors_in(value)):
        tracer.calls.open.is_held = True
    return value


def unary(position: Position, name: str, operand: Any) -> Any:
    """``<op> operand``."""
    function = _UNARY[name]
    tracer = capturing()
    numbering.operator(tracer, position, name, operand)
    if tracer is None or not _is_graph_value(operand):
        return function(operand)
    tracer.at(position, entering=False)
    function_of = getattr(import_module("dumpsim.frontends.mindspore.ops"), vendor.UNARY[name])
    with tracer.calls.calling(name), tracer.entering_operator(inspect.unwrap(function_of), name=name):
        return function(operand)


def _print(tracer: Tracer, result: Any, op_type: str, attrs: Mapping[str, Any]) -> None:
    """Add printed attributes to the node that the current statement has just created."""
    node = result._symbol if values.is_tensor(result) else None
    if isinstance(node, Node) and node.op_type == op_type and tracer.made_here(node):
        text_of(node).attrs.update(attrs)


def item(position: Position, value: Any, index: Any) -> Any:
    """``value[index]``."""
    tracer = capturing()
    if tracer is None:
        return value[index]
    numbering.subscript(tracer, position, value, index)
    tracer.at(position, entering=False)
    result = value[index]
    if isinstance(index, tuple) and values.is_tensor(value):
        _print(tracer, result, "StridedSlice", vendor.SLICE_ATTRS)
    return result


def with_item(position: Position, value: Any, index: Any, new: Any) -> Any:
    """``value[index] = new``; returns the new value of the variable."""
    tracer = capturing()
    if tracer is None or not (values.is_tensor(value) and not values.is_parameter(value)):
        value[index] = new
        return value
    tracer.at(position, entering=False)
    return value._with_item(index, new)


def attribute(position: Position, value: Any, name: str) -> Any:
    """``value.name``, for properties that the vendor computes."""
    numbering.attribute(capturing(), position, value, name)
    return getattr(value, name)


def iterated(position: Position, value: Any, carried: tuple[Any, ...]) -> Any:
    """The iterable of a ``for``; `carried` are the variables that are passed between iterations.

    A loop is a function with these parameters, so a branch keeps the outputs that define them. [observed 2.10: r1_187]
    """
    numbering.iteration(capturing(), position)
    for tensor in values.tensors_in(carried):
        symbol = tensor._symbol
        if isinstance(symbol, Node) and symbol.op_type == "TupleGetItem" and isinstance(symbol.operands[0], Node):
            index = symbol.operands[1]
            assert isinstance(index, Constant)
            control_of(symbol.operands[0]).kept.add(index.value)
    return value


def call(position: Position, function: Any, /, *args: Any, **kwargs: Any) -> Any:
    """``function(*args, **kwargs)``: cells and functions of the script are captured too."""
    tracer = capturing()
    if tracer is None:
        return function(*args, **kwargs)
    look_up(tracer, position.whole.line, rewritten)
    numbering.function(tracer, position, function, args, kwargs)
    target = getattr(function, "__func__", function)
    is_function = isinstance(target, types.FunctionType) and not _is_operator(function)
    tracer.at(position, entering=is_function or _is_cell(function))
    return called(function, *args, **kwargs)


def called(function: Any, /, *args: Any, **kwargs: Any) -> Any:
    """Call a function at the current position: for `call`, and for functions that take functions."""
    tracer = capturing()
    if tracer is not None:
        function = _entry(function)
    target = getattr(function, "__func__", function)
    if tracer is None or _is_cell(function) or not isinstance(target, types.FunctionType) or _is_operator(function):
        return function(*args, **kwargs)
    if is_library(inspect.unwrap(target)) or target.__name__ == "<lambda>" or rewrite.is_rewritten(target):
        return _entered(tracer, function, *args, **kwargs)
    return sharing.through(tracer, function, args, kwargs, partial(_entered, tracer, function))


def _entered(tracer: Tracer, function: Any, /, *args: Any, **kwargs: Any) -> Any:
    """Record a function in a new frame."""
    target = getattr(function, "__func__", function)
    plain = inspect.unwrap(target)
    name = getattr(plain, "__qualname__", "")
    if target is not function and _is_cell(function.__self__):
        entered = tracer.entering(name=name)
    elif name in vendor.OVERLOADED and is_library(plain):
        entered = tracer.entering(scope="Default", name=name)
    else:
        entered = tracer.entering_function(plain, name=name, is_nested=resolutions.has_branch(plain.__name__))
    with entered as frame:
        if is_library(plain):
            result = function(*args, **kwargs)
            inner = vendor.INNER_NAMES.get(plain.__name__)
            return result if inner is None else named_all(inner, result)
        start = tracer.mark()
        if plain.__name__ == "<lambda>" or rewrite.is_rewritten(plain):
            return continued(*start, function(*args, **kwargs))
        new = rewritten(plain)
        frame.instance = (id(plain), id(getattr(function, "__self__", None)), signature((*args, *kwargs.items())))
        tracer.specialised.function(frame.instance)
        frame.definition = new.definition
        begin(tracer, new)
        if target is not function:
            args = (function.__self__, *args)
        result = continued(*start, new.function(*args, **kwargs))
        _note_arguments(start, result, (args, kwargs))
        return result


def _note_arguments(start: tuple[Graph, int], result: Any, arguments: Any) -> None:
    """Note which nodes a function has got, on those that it has made and returns."""
    graph, first = start
    made = set(map(id, graph.trail[first:]))
    passed = tuple(t._symbol for t in values.tensors_in(arguments) if isinstance(t._symbol, Node))
    for tensor in values.tensors_in(result):
        node = tensor._symbol
        if isinstance(node, Node) and id(node) in made:
            text_of(node).passed = passed


def rewritten(function: Callable[..., Any], *, name: str = "") -> rewrite.Rewritten:
    """Return the function, rewritten to call this module; see `rewrite.rewritten`."""
    return rewrite.rewritten(function, sys.modules[__name__], name=name)


def begin(tracer: Tracer, function: rewrite.Rewritten) -> None:
    """Record the names that a function looks up before its first call whose body looks up other names."""
    tracer.frame.mentions, tracer.frame.is_straight = list(function.mentions), function.is_straight
    look_up(tracer, 1, rewritten)


def call_cell(cell: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """Call a cell during a capture: enter its scope and call its rewritten construct."""
    tracer = capturing()
    if tracer is None:
        raise CaptureError("no graph is being captured", where=type(cell).__name__)
    construct = rewritten(type(cell).construct, name=f"{type(cell).__name__}.construct")
    numbering.cell(tracer, cell, args)

    def run(*args: Any, **kwargs: Any) -> Any:
        with tracer.entering(scope=trace.scope_of(cell), cell=cell, name=f"{type(cell).__name__}.construct") as frame:
            frame.definition = construct.definition
            if not is_library(type(cell).construct):
                frame.instance = (id(cell), signature((*args, *kwargs.items())))
                tracer.specialised.function(frame.instance)
            begin(tracer, construct)
            start = tracer.mark()
            return continued(*start, cell._run_construct(partial(construct.function, cell), args, kwargs))

    result = sharing.through(tracer, cell, args, kwargs, run)
    if not kwargs:
        tracer.keep_result(cell, args, result)
    return result


def _entry(function: Any) -> Any:
    """Return the ``__call__`` of an object of a script's class, and any other function unchanged."""
    method = inspect.getattr_static(type(function), "__call__", None)
    own = isinstance(method, types.FunctionType) and not _is_cell(function) and not is_library(method)
    return types.MethodType(method, function) if own and method is not None else function


def _is_operator(function: Any) -> bool:
    """Whether a method of a tensor is an operator to the vendor, not a function that has one. [observed 2.10]"""
    name = getattr(function, "__name__", "")
    return specialisations.CALLS.get(f"Tensor.{name}") == "" and values.is_tensor(getattr(function, "__self__", None))


def _is_cell(value: Any) -> bool:
    return isinstance(value, CellBase)


def _is_graph_value(value: Any) -> bool:
    return values.is_tensor(value)
