"""The order in which the vendor numbers the operators of a network, on whose names those of inserted nodes depend."""

from collections.abc import Iterator, Sequence

from dumpsim.graph.gradient_control import everything
from dumpsim.graph.graph import Graph, Node, Value

__all__ = ["naming_order"]


def naming_order(graph: Graph, forward: Sequence[Node]) -> list[Node]:
    """Return the nodes of the forward pass in the order of their numbers.

    That is the order of the program. In networks with branches or loops, it is the order of a search from the result:
    a node comes before its operands, and a function before its arguments. [observed 2.10]
    """
    if not any(node.blocks for node in forward):
        return list(forward)
    own = {id(node): node for node in everything(forward)}
    roots: list[Value | None] = [graph.output]
    roots += [value for node in graph.trail if id(node) not in own for value in node.operands if id(value) in own]
    found: dict[int, Node] = {}
    for root in [*roots, *reversed(forward)]:
        for node in _search(root, found):
            found[id(node)] = node
    return [node for node in found.values() if id(node) in own]


def _search(root: Value | None, found: dict[int, Node]) -> Iterator[Node]:
    pending = [root]
    while pending:
        node = pending.pop()
        if not isinstance(node, Node) or id(node) in found:
            continue
        yield node
        outputs = [block.output for block in node.blocks]
        pending += (
            [*reversed(node.operands), *reversed(outputs)]
            if node.op_type != "If"
            else [*reversed(outputs), *node.operands]
        )
