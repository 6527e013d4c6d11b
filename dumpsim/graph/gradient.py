"""Reverse-mode gradients of captured graphs.

`reverse` walks the nodes below one output backwards and asks every operator's rule (`OpDef.grad`) for the gradients of
its operands. What the rules emit goes to a builder: `graph.gradient_nodes.NodeBuilder` makes graph nodes, the front
end's eager builder runs operators at once. The walk is the same for both, so that PYNATIVE and graph gradients cannot
differ.

The order is the vendor's: gradients of a value are collected in the order of its users, and several of them are summed
by one AddN in the scope of the value. [2.10 observed]
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
    """Gradients of `output` with respect to the `wanted` values.

    Parameters
    ----------
    output : Value
        A tensor, or a tuple of tensors.
    sens : symbol or Parts
        The gradient of what follows with respect to `output`.
    wanted : sequence of Value
        Parameters or nodes.
    builder : Builder
        Takes what the rules emit.
    nodes : sequence of Node, optional
        The nodes of the forward pass in topological order; those below `output` by default.
    tell : callable, optional
        Called with a node and the whole gradient by it (symbol or Parts), at each node that the walk comes to.

    Returns
    -------
    list
        One symbol for each wanted value; None where `output` does not depend on it.

    Raises
    ------
    UnsupportedError
        An operator on the way has no gradient rule.
    """
    order = below([output]) if nodes is None else list(nodes)
    needed = needing(order, wanted)
    collected: dict[int, list[Any]] = {}
    at = first_loop(order) if isinstance(builder, ControlBuilder) else None
    if at is None:
        _collect(collected, output, sens)
    else:  # what follows the loop is a function of its own
        assert isinstance(builder, ControlBuilder)
        inside = partial(_inside, builder)
        for value, gradient in reversed(
            loop_gradients(order[at], order[at + 1 :], output, sens, needed, builder, inside)
        ):
            _collect(collected, value, gradient)
        order = order[:at]
    # gradients of a value come in the order of its users, which the walk meets backwards: each is put in front
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
    """Ids of the wanted values and of the nodes (in topological order) that depend on one of them."""
    needed = {id(value) for value in wanted}
    for node in order:
        if any(id(value) in needed for value in (uses(node) if node.blocks else node.operands)):
            needed.add(id(node))
    return needed


def _of_control(node: Node, dout: Parts, needed: set[int], builder: Builder) -> list[tuple[Value, Any]]:
    """Gradients of what a control node uses; the nodes of its blocks are walked as those of the graph are."""

    assert isinstance(builder, ControlBuilder)
    return control_gradients(node, dout.items, needed, builder, partial(_inside, builder))


def _inside(builder: Builder, output: Value, sens: Any, wanted: Sequence[Value], nodes: Sequence[Node]) -> list[Any]:
    return reverse(output, sens, wanted, builder, nodes=nodes)


def _collect(collected: dict[int, list[Any]], value: Value, gradient: Any) -> None:
    if not isinstance(value, Constant):
        collected.setdefault(id(value), []).insert(0, gradient)


def _summed(collected: Mapping[int, list[Any]], value: Value, builder: Builder) -> Any:
    """The gradient of a value out of all that was collected for it."""
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
    """One gradient (or None) for every operand of a node."""
    structural = _STRUCTURE.get(node.op_type)
    if structural is not None:
        return structural(node, dout)
    if node.op_type == CUSTOM_GRADIENT:
        assert isinstance(builder, ControlBuilder)
        with builder.backward_of(node):
            return gradients_of(node, dout, builder)
    definition = builder.definition(node.op_type)
    if definition.stop:
        if isinstance(builder, ControlBuilder) and _is_truth(node.abstract):  # what a branch's condition is computed by
            live = [isinstance(v, Node) and _has_fractions(v.abstract) for v in node.operands]
            return [builder.late_zeros(v.abstract) if f else None for v, f in zip(node.operands, live, strict=True)]
        return [_stopped(operand, builder) for operand in node.operands]
    if definition.grad is None:
        if not _has_fractions(node.abstract):
            return [None] * len(node.operands)
        raise UnsupportedError(f"operator {node.op_type!r} has no gradient", code="DS-GRD-001")
    with builder.backward_of(node):
        return list(definition.grad(builder, _symbols(node.operands), node, dout, node.attrs))


def _is_truth(abstract: Abstract) -> bool:
    return isinstance(abstract, TensorType) and abstract.dtype.kind == "bool"


def _stopped(operand: Value, builder: Builder) -> Any:
    """The gradient beyond an operator that has none: zeros, with which graphs compute on. [source grad_math_ops.cc]

    PYNATIVE leaves them out, and so do we where the shape is open.
    """
    kind = operand.abstract
    if not isinstance(builder, ControlBuilder) or not isinstance(kind, TensorType):
        return None
    return builder.zeros(kind) if kind.dtype.kind == "float" and -1 not in kind.shape else None


def _symbols(operands: Sequence[Value]) -> list[Any]:
    """Operands as rules take them: a tuple of tensors is a Python tuple."""
    return [tuple(v.operands) if isinstance(v, Node) and v.op_type == "MakeTuple" else v for v in operands]


def _has_fractions(abstract: Abstract) -> bool:
    """Whether a result has numbers that are not integers; the gradients of integers follow their rules all the same."""
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
