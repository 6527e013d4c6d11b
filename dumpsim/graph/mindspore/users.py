"""Users of values in a function, for passes that rewrite a graph in place."""

from collections.abc import Iterable

from dumpsim.graph.graph import Graph, Node, Value, topological
from dumpsim.graph.mindspore.funcgraph import FuncGraph

__all__ = ["Body", "Users", "settle"]

Body = Graph | FuncGraph


class Users:
    """Users of the nodes and parameters of a function, updated when edges change.

    A user is in the list of an operand once for each slot, in the order in which the edges were created.
    """

    def __init__(self, graph: Body) -> None:
        self.graph = graph
        self._users: dict[int, list[tuple[Node, int]]] = {}
        self._kept: list[Value] = []  # keeps the ids of the keys valid
        nodes = list(graph.trail)
        if isinstance(graph.output, Node) and all(graph.output is not node for node in nodes):
            nodes.append(graph.output)
        for node in nodes:
            for at, operand in enumerate(node.operands):
                self._of(operand).append((node, at))

    def _of(self, value: Value) -> list[tuple[Node, int]]:
        if id(value) not in self._users:
            self._kept.append(value)
        return self._users.setdefault(id(value), [])

    def of(self, value: Value) -> list[Node]:
        """Return the users of a value."""
        return [node for node, _ in self._of(value)]

    def replace(self, old: Value, new: Value, *, but: Node | None = None) -> None:
        """Replace `old` by `new` in all its users except `but`."""
        moved = [(node, at) for node, at in self._of(old) if node is not but]
        self._users[id(old)] = [(node, at) for node, at in self._of(old) if node is but]
        for node, at in moved:
            node.operands[at] = new
            self._of(new).append((node, at))
        if self.graph.output is old:
            self.graph.output = new

    def add(self, node: Node, operand: Value) -> None:
        """Append an operand to a node."""
        self._of(operand).append((node, len(node.operands)))
        node.operands.append(operand)

    def move(self, node: Node, at: int, new: Value) -> None:
        """Replace operand `at` of a node."""
        old = node.operands[at]
        self._users[id(old)] = [one for one in self._of(old) if not (one[0] is node and one[1] == at)]
        node.operands[at] = new
        self._of(new).append((node, at))

    def drop(self, node: Node, operands: Iterable[Value]) -> None:
        """Remove operands from a node."""
        gone = {id(value) for value in operands}
        for value in {id(value): value for value in node.operands}.values():
            self._users[id(value)] = [one for one in self._of(value) if one[0] is not node]
        node.operands = [value for value in node.operands if id(value) not in gone]
        for at, value in enumerate(node.operands):
            self._of(value).append((node, at))


def settle(graph: Body) -> None:
    """Sort the trail so that operands come before their users, and drop unused Loads and tokens."""
    states = ("Load", "UpdateState", "MakeTuple")
    roots = [node for node in graph.trail if node.op_type not in states]
    order = topological([*roots, graph.output])
    own = {id(node) for node in graph.trail}
    graph.trail = [node for node in order if id(node) in own]
