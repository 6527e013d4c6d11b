"""Custom-gradient nodes: values whose gradient the script defines.

`graph.gradient` applies their rules; programs do not contain them.
"""

from collections.abc import Sequence
from typing import Any

from dumpsim.core.abstract import Abstract, TupleType
from dumpsim.graph.gradient_builder import ControlBuilder
from dumpsim.graph.graph import Constant, Graph, Node, Value
from dumpsim.graph.replacement import Replacements
from dumpsim.ops.opdef import OpDef

__all__ = ["CUSTOM_GRADIENT", "custom_gradient", "drop_custom_gradients", "gradients_of", "unrun"]

CUSTOM_GRADIENT = "CustomGradient"  # the type of these nodes, which have no kernel


def custom_gradient(outputs: Sequence[Value], inputs: Sequence[Value], rule: Graph | None = None) -> Node:
    """Create a node that returns `outputs` unchanged, with a rule for the gradients of `inputs`.

    Parameters
    ----------
    outputs, inputs : sequence of Value
    rule : Graph, optional
        Takes the gradients of the outputs and returns, as a ``MakeTuple``, one for each of the inputs (a constant None
        for an input without a gradient); it may use values of the node's graph. None until a gradient is taken.
    """
    kind = TupleType(items=tuple(value.abstract for value in outputs))
    return Node(
        op_type=CUSTOM_GRADIENT,
        operands=[*outputs, *inputs],
        abstract=kind,
        attrs={"rule": rule},
        definition=unrun(CUSTOM_GRADIENT),
    )


def unrun(name: str) -> OpDef:
    """Return a definition for nodes that programs do not contain, for texts of captured graphs."""
    return OpDef(name=name, operands=(), infer=_refuse, kernel=_refuse)


def _refuse(*_: Any, **__: Any) -> Abstract:
    raise AssertionError("programs do not contain such nodes")


def gradients_of(node: Node, dout: Any, builder: ControlBuilder) -> list[Any]:
    """Return the gradients of a custom-gradient node's operands; None for its outputs."""
    assert isinstance(node.abstract, TupleType)
    kinds = node.abstract.items
    arguments = [builder.zeros(kind) if part is None else part for kind, part in zip(kinds, dout.items, strict=True)]
    found = builder.inline(node.attrs["rule"], arguments)
    return [*[None] * len(kinds), *(None if _is_none(gradient) else gradient for gradient in found)]


def _is_none(value: Value) -> bool:
    return isinstance(value, Constant) and value.value is None


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
