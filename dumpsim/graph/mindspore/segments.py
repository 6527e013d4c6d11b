"""Segments: the parts of a function between its control nodes, each of which becomes a kernel graph."""

from dataclasses import dataclass, field

from dumpsim.core.abstract import MonadType, TupleType
from dumpsim.graph.graph import Node, Value, control_of, uses
from dumpsim.graph.sequence import is_kernel, listed

__all__ = ["CONTROL", "Identity", "Segment", "is_ordered", "listed_segments", "segments_of", "uses_in_order", "without"]

CONTROL = frozenset({"If", "While", "Unwind"})


@dataclass(eq=False, slots=True, kw_only=True)
class Segment:
    """The part of a function between two control nodes."""

    nodes: list[Node] = field(default_factory=list)
    nodes_without_kernels: bool = False  # parts of results of calls: a graph all the same


class Identity:
    """A set of nodes by identity."""

    def __init__(self, nodes: list[Node]) -> None:
        self._ids = {id(node) for node in nodes}

    def __contains__(self, node: object) -> bool:
        return id(node) in self._ids


def uses_in_order(node: Node) -> list[Value]:
    """What a node needs, in the order in which the compiler comes to it: of a branch, the condition last."""
    found = uses(node)
    return [*found[1:], found[0]] if node.op_type == "If" else found


def without(nodes: list[Node], control: Node) -> list[Node]:
    """The nodes that need nothing of a control node's outputs, nor a place behind it."""
    after = {id(control)}
    free: list[Node] = []
    for node in nodes:
        ordered = is_ordered(node) and node.op_type != "UpdateState"
        if ordered or node.op_type in CONTROL or any(id(v) in after for v in uses(node)):
            after.add(id(node))
        else:
            free.append(node)
    return free


def segments_of(nodes: list[Node], controls: list[Node], *, in_loop: bool) -> list[Segment]:
    """Nodes by segment: as early as their operands allow, in a loop as the program has them."""
    segments = [Segment() for _ in range(len(controls) + 1)]
    rank: dict[int, int] = {}
    passed = floor = 0
    for node in nodes:
        if node.op_type in CONTROL:
            passed += 1
            rank[id(node)] = passed
            if control_of(node).writes:
                floor = passed
            continue
        if in_loop or (is_kernel(node) and is_ordered(node)):
            at = passed
        else:
            at = max((rank.get(id(v), 0) for v in uses(node)), default=0)
            at = max(at, floor) if is_ordered(node) else at
        if node.op_type == "TupleGetItem" and isinstance(node.operands[0], Node):
            source = node.operands[0]
            if source.op_type in CONTROL:
                rank[id(node)] = rank.get(id(source), 0)
                continue
            at = rank.get(id(source), at)
        rank[id(node)] = at
        segments[at].nodes.append(node)
    return segments


def listed_segments(nodes: list[Node], controls: list[Node], output: Value) -> list[Segment]:
    """Nodes by segment as the compiler lists them, in a network with gradients of branches. [observed 2.10]"""
    own = Identity(nodes)
    root = Node(op_type="Return", operands=[output], abstract=TupleType(items=()))

    def needs(node: Node) -> list[Value]:
        return uses_in_order(node) if node.blocks else node.operands

    order = [node for node in listed(root, needs) if node in own]
    controls[:] = [node for node in order if node.op_type in CONTROL]
    segments = [Segment()]
    calls = Identity(controls)
    places: dict[int, Segment] = {}
    for node in order:
        if node in calls:
            segments.append(Segment())
        elif node.op_type == "TupleGetItem" and node.operands[0] in calls:
            segments[-1].nodes_without_kernels = True
        else:  # parts of a tuple stay with it
            segment = places.get(id(node.operands[0])) if node.op_type == "TupleGetItem" else None
            places[id(node)] = segment or segments[-1]
            places[id(node)].nodes.append(node)
    return segments


def is_ordered(node: Node) -> bool:
    return any(isinstance(operand.abstract, MonadType) for operand in node.operands)
