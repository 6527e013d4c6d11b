"""What follows a branch that changes no variable that is read after it: both sides go on with it.

The vendor's parser lets the sides of a branch call what follows it. Where variables that are read after the branch
differ between the sides, it turns this into a call of the branch that returns them, and the function goes on; else each
side keeps its call, and what follows is inlined into both, unless it holds control flow itself.
[source parse.cc TransformParallelCall; inline.h GraphHasBranch]
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from dumpsim.core.abstract import ScalarType, TensorType, TupleType
from dumpsim.core.dtype import dtype
from dumpsim.frontends.mindspore._capture import values
from dumpsim.frontends.mindspore._capture.variable import bundle
from dumpsim.graph.custom_gradient import CUSTOM_GRADIENT
from dumpsim.graph.effects import has_effect
from dumpsim.graph.graph import Constant, Graph, Node, Value, control_of, copied, reachable
from dumpsim.graph.nodetext import NodeText
from dumpsim.ops.table import find

__all__ = ["continued", "continued_block"]


def continued(graph: Graph, start: int, result: Any) -> Any:
    """The result of a function whose nodes are those of a graph from `start` on, with what follows branches in place.

    Parameters
    ----------
    graph : Graph
        The graph that is being recorded; it is changed.
    start : int
        Place of the function's first node.
    result : object
        What the function returns.
    """
    if not any(_goes_on(node) for node in graph.trail[start:]):
        return result
    tensors = [t for t in values.tensors_in(result) if t._symbol is not None]
    trail = graph.trail[start:]
    outputs = _placed(trail, [t._symbol for t in tensors])
    graph.trail[start:] = trail
    by_tensor = {
        id(tensor): values.tensor_of_symbol(value, value.abstract)
        for tensor, value in zip(tensors, outputs, strict=True)
        if isinstance(value.abstract, TensorType)
    }
    fresh = [by_tensor.get(id(tensor), tensor) for tensor in values.tensors_in(result)]
    return values.rebuild(result, iter(fresh))


def continued_block(graph: Graph) -> None:
    """Put in place what follows branches in a side of a branch, whose outputs are a bundle."""
    if any(_goes_on(node) for node in graph.trail):
        assert isinstance(graph.output, Node)
        graph.output = bundle(_placed(graph.trail, graph.output.operands))


def _goes_on(node: Node) -> bool:
    return node.op_type == "If" and control_of(node).goes_on


def _placed(trail: list[Node], outputs: Sequence[Value]) -> list[Value]:
    """Put what follows the first branch of a kind into its sides, and so on; gives the outputs anew."""
    at = next((place for place, node in enumerate(trail) if _goes_on(node)), None)
    if at is None:
        return list(outputs)
    branch, rest = trail[at], trail[at + 1 :]
    control_of(branch).goes_on = False
    if not _is_cloned(rest, outputs):
        later = _placed(rest, outputs)
        trail[at + 1 :] = rest
        return later
    for side in branch.blocks:
        copy = Graph(trail=rest, output=bundle(list(outputs)))
        if side is not branch.blocks[-1]:
            copy = copied(copy, {})
        assert isinstance(copy.output, Node)
        side.trail += copy.trail
        side.output = bundle(_placed(side.trail, copy.output.operands))
    branch.abstract = TupleType(items=tuple(_plain(value) for value in outputs))
    items = [_item(branch, place) for place in range(len(outputs))]
    trail[at + 1 :] = items
    return list(items)


def _is_cloned(rest: Sequence[Node], outputs: Sequence[Value]) -> bool:
    """Whether nodes that follow a branch have no control flow; the vendor leaves a function that has."""
    roots = [n for n in rest if n.op_type == "While" or _goes_on(n) or has_effect(n, find)]
    live = reachable([*outputs, *roots])
    return not any(n.op_type == CUSTOM_GRADIENT or (n.blocks and id(n) in live) for n in rest)


def _plain(value: Value) -> TensorType:
    kind = value.abstract
    assert isinstance(kind, TensorType)
    return replace(kind, ref_key=None, constant=False, value=None)


def _item(branch: Node, place: int) -> Node:
    assert isinstance(branch.abstract, TupleType)
    index = Constant(value=place, abstract=ScalarType(dtype=dtype("int64"), value=place))
    return Node(
        op_type="TupleGetItem",
        operands=[branch, index],
        abstract=branch.abstract.items[place],
        scope=branch.scope,
        text=replace(branch.text) if branch.text is not None else NodeText(),
    )
