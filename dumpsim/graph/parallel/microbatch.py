"""A batch in parts: assigns nodes to parts, and runs one part after another.

The slices of ``GradAccumulationCell`` state the number of parts. The forward pass of a part waits for the end of the
backward pass of the previous part. [source grad_accumulation_utils.cc]
"""

import heapq
from collections.abc import Iterable, Sequence

from dumpsim.core.abstract import TensorType, TupleType
from dumpsim.graph.graph import Constant, Graph, Node, Parameter, text_of, uses
from dumpsim.graph.nodetext import NodeText
from dumpsim.graph.parallel.plan import edges_of, is_cut, source_of

__all__ = ["accumulators", "ends_of", "mark_parts", "parts_of", "run_in_turn"]

_COUNT = "grad_accu_num"
_BEGIN, _END, _PART = "grad_accu_forward_begin", "grad_accu_backward_end", "micro"
_PREFIX = "accu_grads."


def parts_of(nodes: Iterable[Node]) -> dict[int, int]:
    """Return the number of each node's part, by the id of the node; empty if the batch is not split."""
    found: dict[int, int] = {}
    for node in nodes:
        count = _count(node)
        if count:
            source, begin = node.operands[0].abstract, node.operands[1]
            assert isinstance(source, TensorType)
            assert isinstance(begin, Constant)
            found[id(node)] = begin.value[0] * count // source.shape[0]
            continue
        part = next((found[id(value)] for value in node.operands if id(value) in found), None)
        if part is not None:
            found[id(node)] = part
    return found


def _count(node: Node) -> int:
    """Return the number of parts that a slice states, 0 for other nodes."""
    if node.op_type != "StridedSlice" or node.text is None:
        return 0
    count: int = node.text.attrs.get(_COUNT, 0)
    return count


def accumulators(graph: Graph) -> dict[str, Parameter]:
    """Return the Parameters in which gradients are accumulated, by the names of the weights."""
    return {p.name.removeprefix(_PREFIX): p for p in graph.parameters if p.is_weight and p.name.startswith(_PREFIX)}


def ends_of(nodes: Iterable[Node]) -> set[int]:
    """Return the ids of the nodes that sum the results of the parts."""
    return {id(node) for node in nodes if node.text is not None and "forward_end" in node.text.attrs}


def mark_parts(nodes: Sequence[Node], parts: dict[int, int]) -> None:
    """Mark the nodes that begin the forward pass of a part, and those whose gradients end its backward pass.

    The latter are the first operator that takes a weight, and its counterparts in the other parts.
    """
    first: tuple[object, ...] | None = None
    for node in nodes:
        part = parts.get(id(node))
        if part is None:
            continue
        primal = text_of(node).primal
        primal[_PART] = part
        if _count(node):
            primal[_BEGIN] = part
            continue
        weights = tuple(id(root) for root in _weights(node)) if is_cut(node) else ()
        if not weights:
            continue
        kind = (node.op_type, node.scope, weights)
        first = first or kind
        if kind == first:
            primal[_END] = part


def _weights(node: Node) -> Iterable[Parameter]:
    for edge in edges_of(node):
        root, _ = source_of(edge.value)
        if isinstance(root, Parameter) and root.is_weight:
            yield root


def run_in_turn(graph: Graph) -> Graph:
    """Make the forward pass of each part wait for the previous part's backward pass, after gradients are expanded."""
    begins: dict[int, list[Node]] = {}
    ends: dict[int, list[Node]] = {}
    for node in graph.trail:
        primal = node.text.primal if node.text is not None else {}
        if node.scope.startswith("Gradients/"):
            if _END in primal:
                ends.setdefault(primal[_END], []).append(node)
        elif _BEGIN in primal and _count(node):
            begins.setdefault(primal[_BEGIN], []).append(node)
    waits = [part for part in sorted(begins) if part - 1 in ends]
    for part in waits:
        before = ends[part - 1]
        done = Node(
            op_type="MakeTuple",
            operands=list(before),
            abstract=TupleType(items=tuple(node.abstract for node in before)),
            scope="Default",
            text=NodeText(),
        )
        graph.trail.append(done)
        for node in begins[part]:
            source = node.operands[0]
            text = NodeText(attrs={"side_effect_propagate": 1}, node_attrs={"grad_accu_reorder2": part - 1})
            waiting = Node(
                op_type="Depend", operands=[source, done], abstract=source.abstract, scope="Default", text=text
            )
            node.operands[0] = waiting
            graph.trail.append(waiting)
    if waits:
        graph.trail = _sorted(graph.trail)
    return graph


def _sorted(nodes: Sequence[Node]) -> list[Node]:
    """Sort nodes topologically; nodes of earlier parts come first, then the previous order counts."""
    own = {id(node): at for at, node in enumerate(nodes)}
    last = len(nodes)
    parts = [node.text.primal.get(_PART, last) if node.text is not None else last for node in nodes]
    missing = []
    users: list[list[int]] = [[] for _ in nodes]
    for at, node in enumerate(nodes):
        needed = {own[id(value)] for value in uses(node) if id(value) in own}
        missing.append(len(needed))
        for other in needed:
            users[other].append(at)
    ready = [(parts[at], at) for at, count in enumerate(missing) if not count]
    heapq.heapify(ready)
    found = []
    while ready:
        _, at = heapq.heappop(ready)
        found.append(nodes[at])
        for user in users[at]:
            missing[user] -= 1
            if not missing[user]:
                heapq.heappush(ready, (parts[user], user))
    assert len(found) == len(nodes), "a part of the batch waits for itself"
    return found
