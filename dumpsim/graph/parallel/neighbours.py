"""Users of a value, in the vendor's order, and the layout that the users of a Reshape want.

The vendor registers the users of a node while it walks over the graph breadth-first from the result.
A user nearer to the result is therefore found before others. [vendor FuncGraphManager::AcquireNodes]
[observed 2.10: networks that use both items of an ArgMaxWithValue]
"""

from collections import deque
from collections.abc import Callable, Iterable, Mapping

from dumpsim.core.tensorlayout import TensorLayout
from dumpsim.graph.graph import Constant, Node, Value
from dumpsim.graph.parallel.plan import Edge

__all__ = ["Users", "next_layout", "users_of"]

Users = Mapping[int, list[Edge]]
_ORDERING = frozenset({"Depend", "UpdateState"})  # their later operands only order side effects
_OBSERVERS = frozenset({"Print", "TensorDump"})


def users_of(roots: Iterable[Value | None], nodes: Iterable[Node]) -> dict[int, list[Edge]]:
    """Return the uses of each value, by the id of the value.

    Parameters
    ----------
    roots : iterable of Value
        The results.
    nodes : iterable of Node
        All nodes; those that no result depends on come last.

    Examples
    --------
    >>> from dumpsim.core.abstract import TensorType
    >>> from dumpsim.core.dtype import dtype
    >>> kind = TensorType(dtype=dtype("float32"), shape=())
    >>> x = Node(op_type="Reshape", operands=[], abstract=kind)
    >>> relu = Node(op_type="ReLU", operands=[x], abstract=kind)
    >>> total = Node(op_type="Add", operands=[x, relu], abstract=kind)
    >>> [edge.node.op_type for edge in users_of([total], [x, relu, total])[id(x)]]
    ['Add', 'ReLU']
    """
    found: dict[int, list[Edge]] = {}
    seen: set[int] = set()
    first: list[Value] = [root for root in roots if root is not None]
    for start in (first, [*nodes][::-1]):
        pending: deque[Value] = deque(start)
        while pending:
            node = pending.popleft()
            if not isinstance(node, Node) or id(node) in seen:
                continue
            seen.add(id(node))
            for at, value in enumerate(node.operands):
                found.setdefault(id(value), []).append(Edge(node, at))
                pending.append(value)
    return found


def next_layout(
    node: Node,
    users: Users,
    wanted: Callable[[Edge], TensorLayout | None],
    before: TensorLayout | None,
) -> tuple[TensorLayout | None, bool]:
    """Return the layout that the first user of a Reshape wants, and whether another Reshape uses it.

    Parameters
    ----------
    node : Node
    users : mapping
    wanted : callable
        Returns the layout of an operand of a split operator; None for other nodes.
    before : TensorLayout or None
        The layout before the Reshape; it is used if the value is printed or dumped first.
    """
    visited: set[int] = set()
    leads_on = False

    def search(value: Value, part: int | None) -> TensorLayout | None:
        """Search the users of a value; `part` is the item of a tuple that contains the Reshape."""
        nonlocal leads_on
        for edge in users.get(id(value), ()):
            user = edge.node
            if id(user) in visited:
                continue
            visited.add(id(user))
            if user.op_type in _OBSERVERS:
                return before
            if user.op_type == "TupleGetItem" and not _takes(user, part):
                continue
            if user.op_type == "Reshape":
                leads_on = True
                continue
            if user.op_type in _ORDERING and edge.at != 0:
                continue
            found = wanted(edge)
            if found is None:
                found = search(user, edge.at if user.op_type == "MakeTuple" else None)
            if found is not None:
                leads_on = False
                return found
        return None

    return search(node, None), leads_on


def _takes(node: Node, part: int | None) -> bool:
    """Whether a node takes this item of a tuple."""
    place = node.operands[1]
    return part is None or not isinstance(place, Constant) or place.value == part
