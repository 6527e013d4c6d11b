"""Reverse-mode gradients of captured graphs.

`reverse` walks backwards over the nodes that an output depends on, and calls every operator's rule (`OpDef.grad`) for
the gradients of its operands. The rules emit operators to a builder: `graph.mindspore.gradient_nodes.NodeBuilder`
creates graph nodes, the front end's eager builder runs the operators immediately. Both share the walk, so PYNATIVE and
graph gradients cannot differ.

The order is the vendor's: gradients of a value are collected in the order of its users, and several are summed by one
AddN in the scope of the value. [2.10 observed]
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from dumpsim.core.abstract import Abstract, TensorType, TupleType, tensors_of
from dumpsim.core.errors import UnsupportedError
from dumpsim.graph.custom_gradient import CUSTOM_GRADIENT, gradients_of
from dumpsim.graph.gradient_builder import Builder, ControlBuilder, Parts
from dumpsim.graph.gradient_control import below, control_gradients
from dumpsim.graph.gradient_loop import first_loop, loop_gradients
from dumpsim.graph.graph import Constant, Node, Value, uses

__all__ = ["needing", "reverse"]


def reverse(
    output: Value,
    sens: Any,
    wanted: Sequence[Value],
    builder: Builder,
    *,
    nodes: Sequence[Node] | None = None,
    tell: Callable[[Value, Any], None] | None = None,
) -> list[Any]:
    """Return the gradients of `output` with respect to the `wanted` values.

    Parameters
    ----------
    output : Value
        A tensor, or a tuple of tensors.
    sens : symbol or Parts
        The incoming gradient, with respect to `output`.
    wanted : sequence of Value
        Parameters or nodes.
    builder : Builder
        Receives the operators that the rules emit.
    nodes : sequence of Node, optional
        The nodes of the forward pass in topological order; by default those that `output` depends on.
    tell : callable, optional
        Called at each node of the walk, with the node and its complete gradient (symbol or Parts).

    Returns
    -------
    list
        One symbol for each wanted value; None if `output` does not depend on it.

    Raises
    ------
    UnsupportedError
        If an operator on the way has no gradient rule.
    """
    order = below([output]) if nodes is None else list(nodes)
    needed = needing(order, wanted)
    collected: dict[int, list[Any]] = {}
    at = first_loop(order) if isinstance(builder, ControlBuilder) else None
    if at is None:
        _collect(collected, output, sens)
    else:  # the code after the loop is a separate function
        assert isinstance(builder, ControlBuilder)
        inside = partial(_inside, builder)
        for value, gradient in reversed(
            loop_gradients(order[at], order[at + 1 :], output, sens, needed, builder, inside)
        ):
            _collect(collected, value, gradient)
        order = order[:at]
    # gradients of a value have the order of its users; the walk meets these backwards, so each gradient is put first
    for node in reversed(order):
        if id(node) not in needed or id(node) not in collected:
            continue
        dout = _summed(collected, node, builder)
        if tell is not None:
            tell(node, dout)
        if node.blocks:
            for value, gradient in reversed(_of_control(node, dout, needed, builder)):
                _collect(collected, value, gradient)
            continue
        for operand, gradient in reversed(list(zip(node.operands, _gradients(node, dout, builder), strict=True))):
            if gradient is not None and id(operand) in needed:
                _collect(collected, operand, gradient)
    return [_summed(collected, value, builder) if id(value) in collected else None for value in wanted]


def needing(order: Iterable[Node], wanted: Sequence[Value]) -> set[int]:
    """Return the ids of the wanted values and of the nodes that depend on one of them; `order` is topological."""
    needed = {id(value) for value in wanted}
    for node in order:
        if any(id(value) in needed for value in (uses(node) if node.blocks else node.operands)):
            needed.add(id(node))
    return needed


def _of_control(node: Node, dout: Parts, needed: set[int], builder: Builder) -> list[tuple[Value, Any]]:
    """Return the gradients of the values that a control node uses; the nodes of its blocks are walked recursively."""
    assert isinstance(builder, ControlBuilder)
    return control_gradients(node, dout.items, needed, builder, partial(_inside, builder))


def _inside(builder: Builder, output: Value, sens: Any, wanted: Sequence[Value], nodes: Sequence[Node]) -> list[Any]:
    return reverse(output, sens, wanted, builder, nodes=nodes)


def _collect(collected: dict[int, list[Any]], value: Value, gradient: Any) -> None:
    if not isinstance(value, Constant):
        collected.setdefault(id(value), []).insert(0, gradient)


def _summed(collected: Mapping[int, list[Any]], value: Value, builder: Builder) -> Any:
    """Return the gradient of a value: the sum of all collected ones."""
    return _total(collected[id(value)], value.abstract, value, builder)


def _total(gradients: Sequence[Any], abstract: Abstract, value: Value, builder: Builder) -> Any:
    if not isinstance(abstract, TupleType):
        return gradients[0] if len(gradients) == 1 else builder.total(gradients, value)
    items: list[Any] = []
    for index, item in enumerate(abstract.items):
        found = [part for part in (_part(gradient, index, builder) for gradient in gradients) if part is not None]
        items.append(_total(found, item, value, builder) if found else None)
    return Parts(abstract=abstract, items=tuple(items))


def _part(gradient: Any, index: int, builder: Builder) -> Any:
    if isinstance(gradient, Parts):
        return gradient.items[index]
    if isinstance(gradient, tuple | list):
        return gradient[index]
    return builder.item(gradient, index)


def _gradients(node: Node, dout: Any, builder: Builder) -> Sequence[Any]:
    """Return one gradient (or None) for every operand of a node."""
    structural = _STRUCTURE.get(node.op_type)
    if structural is not None:
        return structural(node, dout)
    if node.op_type == CUSTOM_GRADIENT:
        assert isinstance(builder, ControlBuilder)
        with builder.backward_of(node):
            return gradients_of(node, dout, builder)
    definition = builder.definition(node.op_type)
    if definition.stop:
        if isinstance(builder, ControlBuilder) and _is_truth(node.abstract):  # it computes a branch's condition
            live = [_has_gradient(v) for v in node.operands]
            return [builder.late_zeros(v.abstract) if f else None for v, f in zip(node.operands, live, strict=True)]
        return [_stopped(operand, builder) for operand in node.operands]
    if definition.grad is None:
        if not _has_fractions(node.abstract):
            return [None] * len(node.operands)
        raise UnsupportedError(f"operator {node.op_type!r} has no gradient", code="DS-GRD-001")
    with builder.backward_of(node):
        if definition.branches and isinstance(builder, ControlBuilder):
            return builder.called(node, dout)
        return list(definition.grad(builder, _symbols(node.operands), node, dout, node.attrs))


def _has_gradient(value: Value) -> bool:
    if isinstance(value, Node):
        return bool(tensors_of(value.abstract))
    return not isinstance(value, Constant) and bool(tensors_of(value.abstract)) and not _has_fractions(value.abstract)


def _is_truth(abstract: Abstract) -> bool:
    return isinstance(abstract, TensorType) and abstract.dtype.kind == "bool"


def _stopped(operand: Value, builder: Builder) -> Any:
    """Return the gradient of an operand of an operator without one: zeros in graphs. [source grad_math_ops.cc]

    PYNATIVE has no such zeros, nor do we for open shapes.
    """
    kind = operand.abstract
    if not isinstance(builder, ControlBuilder) or not isinstance(kind, TensorType):
        return None
    return builder.late_zeros(kind) if kind.dtype.kind == "float" and -1 not in kind.shape else None


def _symbols(operands: Sequence[Value]) -> list[Any]:
    """Return operands for the rules: a tuple of tensors becomes a Python tuple."""
    return [tuple(v.operands) if isinstance(v, Node) and v.op_type == "MakeTuple" else v for v in operands]


def _has_fractions(abstract: Abstract) -> bool:
    """Whether a result has floating-point or complex numbers; rules are applied to gradients of integers, too."""
    return any(tensor.dtype.kind in ("float", "complex") for tensor in tensors_of(abstract))


def _make_tuple(node: Node, dout: Any) -> Sequence[Any]:
    items = dout.items if isinstance(dout, Parts) else dout
    return list(items)


def _tuple_get_item(node: Node, dout: Any) -> Sequence[Any]:
    source, place = node.operands
    assert isinstance(source.abstract, TupleType)
    assert isinstance(place, Constant)
    items = tuple(dout if i == place.value else None for i in range(len(source.abstract.items)))
    return [Parts(abstract=source.abstract, items=items), None]


def _first(node: Node, dout: Any) -> Sequence[Any]:
    return [dout, *[None] * (len(node.operands) - 1)]


def _none(node: Node, dout: Any) -> Sequence[Any]:
    return [None] * len(node.operands)


# nodes without a kernel: gradients pass through them
_STRUCTURE = {
    "MakeTuple": _make_tuple,
    "TupleGetItem": _tuple_get_item,
    "Depend": _first,
    "Load": _first,
    "StopGradient": _none,
}
