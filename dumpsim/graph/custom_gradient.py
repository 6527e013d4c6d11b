"""Custom-gradient nodes: values whose gradient the script writes itself.

`graph.gradient` follows their rules; programs do not hold them any longer.
"""

from collections.abc import Sequence
from typing import Any

from dumpsim.core.abstract import TupleType
from dumpsim.graph.graph import Constant, Graph, Node, Value
from dumpsim.graph.replacement import Replacements

__all__ = ["CUSTOM_GRADIENT", "custom_gradient", "drop_custom_gradients", "gradients_of"]

CUSTOM_GRADIENT = "CustomGradient"  # the type of these nodes, which no kernel has


def custom_gradient(outputs: Sequence[Value], inputs: Sequence[Value], rule: Any) -> Node:
    """A node that gives out `outputs` as they are, and whose gradient goes to `inputs` by a rule.

    Parameters
    ----------
    outputs, inputs : sequence of Value
    rule : callable
        ``rule(builder, node, dout)`` gives a gradient (or None) for each of the inputs.
    """
    kind = TupleType(items=tuple(value.abstract for value in outputs))
    return Node(op_type=CUSTOM_GRADIENT, operands=[*outputs, *inputs], abstract=kind, attrs={"rule": rule})


def gradients_of(node: Node, dout: Any, builder: Any) -> list[Any]:
    """Gradients by the operands of a custom-gradient node; its outputs have none."""
    assert isinstance(node.abstract, TupleType)
    return [*[None] * len(node.abstract.items), *node.attrs["rule"](builder, node, dout)]


def drop_custom_gradients(graph: Graph) -> Graph:
    """Replace the parts of custom-gradient nodes by their outputs, in the graph and in its blocks."""
    _drop(graph, Replacements())
    return graph


def _drop(graph: Graph, replaced: Replacements) -> None:
    kept: list[Node] = []
    for node in graph.trail:
        node.operands = replaced.operands(node)
        for block in node.blocks:
            _drop(block, replaced)
        source = node.operands[0] if node.op_type == "TupleGetItem" else None
        if isinstance(source, Node) and source.op_type == CUSTOM_GRADIENT:
            place = node.operands[1]
            assert isinstance(place, Constant)
            replaced.put(node, source.operands[place.value])
        elif node.op_type != CUSTOM_GRADIENT:
            kept.append(node)
    replaced.finish(graph, kept)
