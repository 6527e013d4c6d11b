"""Custom-gradient nodes: values whose gradient the script writes itself.

`graph.gradient` follows their rules; programs do not hold them any longer.
"""

from collections.abc import Sequence
from typing import Any

from dumpsim.core.abstract import Abstract, TupleType
from dumpsim.graph.gradient_builder import ControlBuilder
from dumpsim.graph.graph import Constant, Graph, Node, Value
from dumpsim.graph.replacement import Replacements
from dumpsim.ops.opdef import OpDef

__all__ = ["CUSTOM_GRADIENT", "custom_gradient", "drop_custom_gradients", "gradients_of", "unrun"]

CUSTOM_GRADIENT = "CustomGradient"  # the type of these nodes, which no kernel has


def custom_gradient(outputs: Sequence[Value], inputs: Sequence[Value], rule: Graph | None = None) -> Node:
    """A node that gives out `outputs` as they are, and whose gradient goes to `inputs` by a rule.

    Parameters
    ----------
    outputs, inputs : sequence of Value
    rule : Graph, optional
        Takes the gradients by the outputs and gives, as a ``MakeTuple``, one by each of the inputs (a constant None for
        an input without one); it may use values of the graph that holds the node. None until somebody takes a gradient.
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
    """The definition of nodes that a program does not hold, for texts of captured graphs."""
    return OpDef(name=name, operands=(), infer=_refuse, kernel=_refuse)


def _refuse(*_: Any, **__: Any) -> Abstract:
    raise AssertionError("no program holds such a node")


def gradients_of(node: Node, dout: Any, builder: ControlBuilder) -> list[Any]:
    """Gradients by the operands of a custom-gradient node; its outputs have none."""
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
