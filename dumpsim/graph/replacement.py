"""Replacements of nodes in a pass."""

from collections.abc import Sequence

from dumpsim.graph.graph import Graph, Node, Value

__all__ = ["Replacements"]


class Replacements:
    """Replaced nodes, and the values that replace them.

    Ids are the keys, so the nodes are kept alive: a new node could get the id of a deleted one.

    Examples
    --------
    >>> from dumpsim.core.abstract import NoneType
    >>> a, b, c = (Node(op_type=name, operands=[], abstract=NoneType()) for name in "ABC")
    >>> replaced = Replacements()
    >>> replaced.put(b, a)
    >>> replaced.put(c, b)
    >>> replaced.of(c) is a, a in replaced
    (True, False)
    """

    def __init__(self) -> None:
        self._pairs: dict[int, tuple[Node, Value]] = {}

    def put(self, node: Node, value: Value) -> None:
        """Replace a node by a value."""
        self._pairs[id(node)] = node, value

    def of(self, value: Value) -> Value:
        """Return the replacement of a value, or the value itself if it is not replaced."""
        while (pair := self._pairs.get(id(value))) is not None:
            value = pair[1]
        return value

    def __contains__(self, value: Value) -> bool:
        """Whether a value is replaced."""
        return id(value) in self._pairs

    def operands(self, node: Node) -> list[Value]:
        """Return the operands of a node with their replacements."""
        return [self.of(operand) for operand in node.operands]

    def finish(self, graph: Graph, trail: Sequence[Node]) -> None:
        """Set the remaining nodes of a graph; a bundle that is not a part of the program stays its output."""
        graph.trail = list(trail)
        output = graph.output
        if isinstance(output, Node) and output not in self and all(output is not node for node in trail):
            output.operands = self.operands(output)
        elif output is not None:
            graph.output = self.of(output)
