"""Composite operators give way to operators that have kernels."""

from collections.abc import Callable

from dumpsim.graph.builder import NodeMaker
from dumpsim.graph.graph import Graph, Node, Value
from dumpsim.ops.expand import expand
from dumpsim.ops.opdef import OpDef

__all__ = ["expand_composites"]

_STRUCTURAL = frozenset(
    {"MakeTuple", "TupleGetItem", "Load", "UpdateState", "Depend", "If", "While", "Unwind", "StopGradient"}
)


def expand_composites(graph: Graph, find: Callable[[str], OpDef]) -> Graph:
    """Replace composite nodes by their expansions, in scopes ``Expand/_<Composite>``."""
    replaced: dict[int, Value] = {}
    while _round(graph, find, replaced):
        pass
    return graph


def _round(graph: Graph, find: Callable[[str], OpDef], replaced: dict[int, Value]) -> bool:
    """One pass over the nodes; True where an expansion may hold composites itself."""
    again = False
    trail: list[Node] = []
    for node in graph.trail:
        for block in node.blocks:
            again = _round(block, find, replaced) or again
        node.operands = [_new(operand, replaced) for operand in node.operands]
        if node.op_type in _STRUCTURAL or not find(node.op_type).composite:
            trail.append(node)
            continue
        again = True
        made: list[Node] = []
        replaced[id(node)] = _expansion(node, find, made)
        node.flags["expanded"] = node  # kept alive: its identity is the key
        trail += made
    graph.trail = trail
    output = graph.output
    if isinstance(output, Node) and all(output is not node for node in trail) and id(output) not in replaced:
        output.operands = [_new(operand, replaced) for operand in output.operands]
    elif output is not None:
        graph.output = _new(output, replaced)
    return again


def _new(value: Value, replaced: dict[int, Value]) -> Value:
    while id(value) in replaced:
        value = replaced[id(value)]
    return value


def _expansion(node: Node, find: Callable[[str], OpDef], made: list[Node]) -> Value:
    scope = f"Expand/_{node.op_type}"

    def place(new: Node) -> None:
        new.scope = scope
        new.call_scope, new.block_scope, new.call_name = node.call_scope, node.block_scope, node.call_name
        new.sources, new.candidate = node.sources, "code"
        new.flags["backend"] = True
        made.append(new)

    maker = NodeMaker(find, place)
    return maker.value(expand(maker, node.op_type, node.operands, node.abstract))
