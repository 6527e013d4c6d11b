"""Partition: each function is cut at its calls, and the segments between them become kernel graphs."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from dumpsim.graph.graph import Node, Value
from dumpsim.graph.mindspore.funcgraph import FuncGraph, function_of, functions_of

__all__ = ["Segment", "function_order", "listed_nodes", "segments"]

_CUTS = frozenset({"Call", "Return", "Partial", "Switch", "SwitchLayer", "bprop_cut"})


@dataclass(eq=False, slots=True, kw_only=True)
class Segment:
    """Nodes between two cuts, or a node at which the function is cut (`cut`)."""

    cut: Node | None = None
    nodes: list[Node] = field(default_factory=list)


def function_order(root: FuncGraph) -> list[FuncGraph]:
    """Return the functions in the order of their kernel graphs: the root, then the others by name. [spec vendor 2.2]"""
    others = [function for function in functions_of(root) if function is not root]
    return [root, *sorted(others, key=lambda function: function.name.encode())]


def segments(function: FuncGraph) -> list[Segment]:
    """Return the segments of a function between the nodes that cut it. [spec vendor 2.4]

    Such a segment becomes a kernel graph, even if none of its nodes is a kernel. [spec vendor 2.1]
    """
    found: list[Segment] = []
    gathered: list[Node] = []
    for node in listed_nodes(function):
        if _is_cut(node):
            if gathered:
                found.append(Segment(nodes=gathered))
                gathered = []
            found.append(Segment(cut=node))
        else:
            gathered.append(node)
    assert not gathered
    return found


def _is_cut(node: Node) -> bool:
    if node.op_type == "MakeTuple":
        first = node.operands[0] if node.operands else None
        return first is not None and (
            function_of(first) is not None or (isinstance(first, Node) and first.op_type == "Partial")
        )
    return node.op_type in _CUTS


def listed_nodes(function: FuncGraph) -> list[Node]:
    """Return the nodes of a function in the order of the vendor's partition. [spec vendor 2.3]"""
    order = _walked(function.result)
    return _moved_after(_moved_after(order, "TupleGetItem"), "Depend")


def _walked(result: Node) -> list[Node]:
    """Return nodes in reverse order of a depth-first walk from the result that visits a node after all its users."""
    users: dict[int, int] = {}
    pending = [result]
    while pending:
        for operand in pending.pop().operands:
            if isinstance(operand, Node):
                if id(operand) not in users:
                    pending.append(operand)
                users[id(operand)] = users.get(id(operand), 0) + 1
    order: list[Node] = []
    stack = [result]
    while stack:
        node = stack.pop()
        order.append(node)
        following: list[Value] = []
        if node.op_type == "Switch":  # a Partial without other users follows its Switch
            for operand in node.operands:
                if isinstance(operand, Node) and operand.op_type == "Partial" and users[id(operand)] == 1:
                    order.append(operand)
                    following += reversed(operand.operands)
                else:
                    following.append(operand)
        else:
            following = node.operands[::-1]
        for operand in following:
            if isinstance(operand, Node):
                users[id(operand)] -= 1
                if users[id(operand)] == 0:
                    stack.append(operand)
    return order[::-1]


def _moved_after(order: Sequence[Node], op_type: str) -> list[Node]:
    """Move the nodes of a type to the position right after the node that they wait for."""
    kept: list[Node] = []
    present = {id(node) for node in order}
    placed: set[int] = set()
    waiting: dict[int, list[Node]] = {}
    for node in order:
        owner = _owner(node) if node.op_type == op_type else None
        if owner is not None and id(owner) in placed and id(owner) in present:
            waiting.setdefault(id(owner), []).append(node)
        else:
            kept.append(node)
            placed.add(id(node))
    return [each for node in kept for each in (node, *waiting.get(id(node), ()))]


def _owner(node: Node) -> Node | None:
    """Return the node that an item of a tuple, or a Depend on a constant or parameter, must follow."""
    first = node.operands[0]
    if node.op_type == "TupleGetItem":
        return first if isinstance(first, Node) else None
    second = node.operands[1] if len(node.operands) == 2 else None
    return second if not isinstance(first, Node) and isinstance(second, Node) else None
