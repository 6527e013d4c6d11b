"""Replaces composite operators by operators that have kernels."""

from collections.abc import Callable

from dumpsim.graph.builder import NodeMaker
from dumpsim.graph.effects import STRUCTURAL
from dumpsim.graph.graph import Graph, Node, Value, definition_of, text_of
from dumpsim.graph.replacement import Replacements
from dumpsim.ops.expand import expand
from dumpsim.ops.opdef import OpDef

__all__ = ["expand_composites"]


def expand_composites(graph: Graph, find: Callable[[str], OpDef]) -> Graph:
    """Replace composite nodes by their expansions, in scopes ``Expand/_<Composite>``.

    Kernel graphs have no control flow, and expansions contain no composites.
    """
    replaced = Replacements()
    trail: list[Node] = []
    for node in graph.trail:
        node.operands = replaced.operands(node)
        if node.op_type in STRUCTURAL or not definition_of(node, find).composite:
            trail.append(node)
            continue
        made: list[Node] = []
        replaced.put(node, _expansion(node, find, made))
        trail += made
    replaced.finish(graph, trail)
    return graph


def _expansion(node: Node, find: Callable[[str], OpDef], made: list[Node]) -> Value:
    scope = f"Expand/_{node.op_type}"
    old = text_of(node)

    def place(new: Node) -> None:
        new.scope = scope
        text = text_of(new)
        text.call_scope, text.block_scope, text.call_variable = old.call_scope, old.block_scope, old.call_variable
        text.sources, text.candidate = old.sources, "code"
        text.is_backend = True
        made.append(new)

    maker = NodeMaker(find, place)
    return maker.value(expand(maker, node.op_type, node.operands, node.abstract))
