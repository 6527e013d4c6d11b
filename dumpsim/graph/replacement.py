"""Which values took the places of nodes in a pass."""

from collections.abc import Sequence

from dumpsim.graph.graph import Graph, Node, Value

__all__ = ["Replacements"]


class Replacements:
    """Nodes that gave way, and what stands in their places.

    Identities are the keys, so the nodes are held: the identity of one that is gone could come back as another's.

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
        """Let a value stand in the place of a node."""
        self._pairs[id(node)] = node, value

    def of(self, value: Value) -> Value:
        """What stands in the place of a value, itself if nothing does."""
        while (pair := self._pairs.get(id(value))) is not None:
            value = pair[1]
        return value

    def __contains__(self, value: Value) -> bool:
        """Whether something else stands in the place of a value."""
        return id(value) in self._pairs

    def operands(self, node: Node) -> list[Value]:
        """The operands of a node, replaced."""
        return [self.of(operand) for operand in node.operands]

    def finish(self, graph: Graph, trail: Sequence[Node]) -> None:
        """Give a graph the nodes that are left; a bundle that is not a part of the program stays its output."""
        graph.trail = list(trail)
        output = graph.output
        if isinstance(output, Node) and output not in self and all(output is not node for node in trail):
            output.operands = self.operands(output)
        elif output is not None:
            graph.output = self.of(output)
