"""Properties of captured branches and loops that decide the functions that they become."""

from collections.abc import Sequence

from dumpsim.core.abstract import ScalarType, TupleType
from dumpsim.graph.graph import Constant, Graph, Node, Parameter, Value, control_of, topological, uses

__all__ = [
    "CONTROL",
    "by_first_use",
    "given_to_gradient",
    "is_differentiated",
    "is_part",
    "is_trivial",
    "order_outputs",
    "place_of",
    "whole_call",
]

CONTROL = frozenset({"If", "While", "Unwind", "Invoke"})


def by_first_use(head: Graph, body: Graph) -> list[int]:
    """Return the variables of a loop in the order of their first use in its header and body. [observed 2.10]"""
    places = {id(p): at for graph in (head, body) for at, p in enumerate(graph.parameters)}
    used = [id(value) for graph in (head, body) for node in graph.trail for value in uses(node)]
    found = [places[identity] for identity in used if identity in places]
    return list(dict.fromkeys([*found, *range(len(body.parameters))]))


def whole_call(output: Value) -> Node | None:
    """Return the call or the returned branch whose results a bundle consists of, in order; None if there is none."""
    if not isinstance(output, Node) or output.op_type != "MakeTuple" or len(output.operands) < 2:
        return None
    first = output.operands[0]
    call = first.operands[0] if isinstance(first, Node) and first.op_type == "TupleGetItem" else None
    if not isinstance(call, Node) or not (call.op_type == "Invoke" or _is_returned(call)):
        return None
    places = [place_of(each) for each in output.operands if isinstance(each, Node) and is_part(each, call)]
    assert isinstance(call.abstract, TupleType)
    return call if places == list(range(len(call.abstract.items))) and len(places) == len(output.operands) else None


def _is_returned(node: Node) -> bool:
    return node.op_type == "If" and control_of(node).returns and not is_differentiated(node)


def is_part(node: Node, control: Node) -> bool:
    return node.op_type == "TupleGetItem" and node.operands[0] is control


def place_of(part: Node) -> int:
    place = part.operands[1]
    assert isinstance(place, Constant)
    return int(place.value)


def is_trivial(nodes: Sequence[Node], output: Value) -> bool:
    """Whether the code after a branch is only the call of a header. [source inline.h IsTrivial]"""
    first = next((node for node in nodes if node.op_type != "TupleGetItem"), None)
    if first is not None:
        return first.op_type == "While"
    assert isinstance(output, Node)
    dropped = output.control.dropped if output.control is not None else []  # dropped only after inlining
    given = [value for value in [*output.operands, *dropped] if isinstance(value, Node)]
    return not any(
        isinstance(value, Parameter) and value.is_weight for node in topological(given) for value in node.operands
    )


def is_differentiated(node: Node) -> bool:
    """Whether a branch has a gradient, which depends on the order of its outputs, or is a gradient itself."""
    backward = node.control is not None and node.control.backward is not None
    return backward or len(node.operands) > 1 or any(block.results is not None for block in node.blocks)


def order_outputs(node: Node, rest: Sequence[Node], output: Value) -> None:
    """Sort the outputs of a branch in the order in which the code after it reads them. [source parse.cc]

    That code is a function, whose parameters are created when it reads variables. If it calls the function of an
    unrolled loop, it reads the variables in the order of that function's parameters.
    """
    assert isinstance(node.abstract, TupleType)
    parts = {id(part): part for part in rest if is_part(part, node)}
    bundle = list(output.operands) if isinstance(output, Node) else []
    read = [value for later in rest for value in uses(later)] + [*bundle, output]
    places = [place_of(part) for value in read if (part := parts.get(id(value))) is not None]
    passed = node.control.passed if node.control is not None else []
    order = list(dict.fromkeys([*passed, *places, *range(len(node.abstract.items))]))
    if order == sorted(order):
        return
    node.abstract = TupleType(items=tuple(node.abstract.items[at] for at in order))
    if node.control is not None:
        node.control.kept = {order.index(at) for at in node.control.kept}
        node.control.passed = [order.index(at) for at in node.control.passed]
    for block in node.blocks:
        assert isinstance(block.output, Node)
        block.output.operands = [block.output.operands[at] for at in order]
        block.output.abstract = node.abstract
    for part in rest:
        if is_part(part, node):
            at = order.index(place_of(part))
            kind = part.operands[1].abstract
            assert isinstance(kind, ScalarType)
            part.operands[1] = Constant(value=at, abstract=ScalarType(dtype=kind.dtype, value=at))


def given_to_gradient(block: Graph) -> list[Value]:
    """Return the values that a branch passes to its gradient; nothing if it creates no function of them."""
    bundle = block.output
    if not isinstance(bundle, Node) or block.results is None or any(node.op_type in CONTROL for node in block.trail):
        return []
    return [value for value in bundle.operands[block.results :] if not isinstance(value, Constant)]
