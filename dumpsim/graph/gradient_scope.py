"""Which scope the gradient of a node belongs to.

The vendor makes one backward graph for all primitives that are equal, attributes included, in the scope of the one that
it meets first; the backward nodes of the others are named after that one too. [observed 2.10]
"""

from collections import deque
from collections.abc import Iterable, Mapping
from typing import Any

from dumpsim.graph.graph import Node, Value

__all__ = ["shared_scopes"]


def shared_scopes(output: Value, nodes: Iterable[Node]) -> dict[int, str]:
    """For every node (by id) the scope of the first primitive that equals its own.

    Parameters
    ----------
    output : Value
        What is differentiated.
    nodes : iterable of Node
        The nodes of the forward pass.
    """
    places = {id(node): place for place, node in enumerate(_breadth_first(output))}
    first: dict[Any, tuple[tuple[int, int], str]] = {}
    keys: dict[int, Any] = {}
    for node in nodes:
        key = keys[id(node)] = _primitive(node)
        order = (node.scope.count("/"), places.get(id(node), len(places)))
        if key not in first or order < first[key][0]:
            first[key] = (order, node.scope)
    return {identity: first[key][1] for identity, key in keys.items()}


def _primitive(node: Node) -> Any:
    return (node.op_type, _frozen(node.attrs))


def _frozen(value: Any) -> Any:
    if isinstance(value, Mapping):
        return tuple(sorted((str(k), _frozen(v)) for k, v in value.items()))
    if isinstance(value, (tuple, list)):
        return tuple(_frozen(item) for item in value)
    return repr(value)


def _breadth_first(output: Value) -> list[Node]:
    order: list[Node] = []
    seen = {id(output)}
    queue = deque([output])
    while queue:
        value = queue.popleft()
        if not isinstance(value, Node):
            continue
        order.append(value)
        for operand in value.operands:
            if id(operand) not in seen:
                seen.add(id(operand))
                queue.append(operand)
    return order
