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
from dumpsim.frontends.mindspore._capture import sharing, values
from dumpsim.frontends.mindspore._capture.variable import bundle
from dumpsim.graph.custom_gradient import CUSTOM_GRADIENT
from dumpsim.graph.effects import has_effect
from dumpsim.graph.gradient_control import everything
from dumpsim.graph.graph import Constant, Graph, Node, Parameter, Value, control_of, copied, reachable
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
        if not _stays(branch, rest) or not outputs or not sharing.continues():
            trail[at + 1 :] = rest
            return later
        shared = Graph(name="↓", trail=rest, output=bundle(later))
        control_of(branch).tails = True
        return _ended(branch, trail, at, [_called(shared) for _ in branch.blocks])
    copies = []
    for side in branch.blocks:
        copy = Graph(trail=rest, output=bundle(list(outputs)))
        copies.append(copy if side is branch.blocks[-1] else copied(copy, {}))
    return _ended(branch, trail, at, copies)


def _ended(branch: Node, trail: list[Node], at: int, copies: Sequence[Graph]) -> list[Value]:
    """Let each side of a branch at a place go on with a copy of what follows; gives the outputs anew."""
    for side, copy in zip(branch.blocks, copies, strict=True):
        assert isinstance(copy.output, Node)
        side.trail += copy.trail
        side.output = bundle(_placed(side.trail, copy.output.operands))
    assert isinstance(branch.blocks[0].output, Node)
    branch.abstract = TupleType(items=tuple(_plain(value) for value in branch.blocks[0].output.operands))
    items = [_item(branch, place) for place in range(len(branch.abstract.items))]
    trail[at + 1 :] = items
    return list(items)


def _called(shared: Graph) -> Graph:
    """A call of a function without arguments, and the parts of its result."""
    assert isinstance(shared.output, Node)
    kind = TupleType(items=tuple(_plain(value) for value in shared.output.operands))
    call = Node(op_type="Invoke", operands=[], abstract=kind, blocks=(shared,))
    items = [_item(call, place) for place in range(len(kind.items))]
    return Graph(trail=[call, *items], output=bundle(list(items)))


def _stays(branch: Node, rest: Sequence[Node]) -> bool:
    """Whether the sides of a branch differ once they only call what follows: one has effects, or code before a call
    with effects. Unused code is there until effects have their tokens."""
    sides = [node for side in branch.blocks for node in side.trail]
    return bool(sides) and any(map(_is_effect, everything([*sides, *rest])))


def _is_effect(node: Node) -> bool:
    reads = any(isinstance(value, Parameter) and value.is_weight for value in node.operands)
    return reads or (not node.blocks and has_effect(node, find))


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
