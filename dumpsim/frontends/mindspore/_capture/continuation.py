"""The code after a branch that changes no variable read later: it becomes a part of both sides.

In the vendor's parser, both sides of a branch call the code after it. If the sides set variables differently that are
read later, the parser changes this to a call of the branch, which returns them and is followed by the rest of the
function. Otherwise each side keeps its call, and the code after the branch is inlined into both, unless it contains
control flow itself.
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
    """Move the code after branches into their sides, for a function whose nodes begin at `start`; return its result.

    Parameters
    ----------
    graph : Graph
        The graph that is being recorded; it is modified.
    start : int
        Index of the function's first node.
    result : object
        The result of the function.
    """
    if not any(_goes_on(node) for node in graph.trail[start:]):
        return result
    tensors = [t for t in values.tensors_in(result) if t._symbol is not None]
    trail = graph.trail[start:]
    outputs = _moved(trail, [t._symbol for t in tensors])
    graph.trail[start:] = trail
    by_tensor = {
        id(tensor): values.tensor_of_symbol(value, value.abstract)
        for tensor, value in zip(tensors, outputs, strict=True)
        if isinstance(value.abstract, TensorType)
    }
    fresh = [by_tensor.get(id(tensor), tensor) for tensor in values.tensors_in(result)]
    return values.rebuild(result, iter(fresh))


def continued_block(graph: Graph) -> None:
    """Move the code after branches into their sides, within a side of a branch whose outputs are a bundle."""
    if any(_goes_on(node) for node in graph.trail):
        assert isinstance(graph.output, Node)
        graph.output = bundle(_moved(graph.trail, graph.output.operands))


def _goes_on(node: Node) -> bool:
    return node.op_type == "If" and control_of(node).goes_on


def _moved(trail: list[Node], outputs: Sequence[Value]) -> list[Value]:
    """Move the code after the first such branch into its sides, and so on recursively; return the new outputs."""
    at = next((i for i, node in enumerate(trail) if _goes_on(node)), None)
    if at is None:
        return list(outputs)
    branch, rest = trail[at], trail[at + 1 :]
    control_of(branch).goes_on = False
    if not _is_cloned(rest, outputs):
        later = _moved(rest, outputs)
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
    """Append a copy of the code after the branch at index `at` to each of its sides; return the new outputs."""
    control_of(branch).returns = True
    for side, copy in zip(branch.blocks, copies, strict=True):
        assert isinstance(copy.output, Node)
        side.trail += copy.trail
        side.output = bundle(_moved(side.trail, copy.output.operands))
    assert isinstance(branch.blocks[0].output, Node)
    branch.abstract = TupleType(items=tuple(_plain(value) for value in branch.blocks[0].output.operands))
    items = [_item(branch, i) for i in range(len(branch.abstract.items))]
    trail[at + 1 :] = items
    return list(items)


def _called(shared: Graph) -> Graph:
    """Return a call of a function without arguments, and the items of its result."""
    assert isinstance(shared.output, Node)
    kind = TupleType(items=tuple(_plain(value) for value in shared.output.operands))
    call = Node(op_type="Invoke", operands=[], abstract=kind, blocks=(shared,))
    items = [_item(call, i) for i in range(len(kind.items))]
    return Graph(trail=[call, *items], output=bundle(list(items)))


def _stays(branch: Node, rest: Sequence[Node]) -> bool:
    """Whether the sides of a branch still differ when both end with a call of the code after it.

    They do if a side has effects, or code before a call with effects; unused code is removed only after the effects are
    ordered.
    """
    sides = [node for side in branch.blocks for node in side.trail]
    return bool(sides) and any(map(_is_effect, everything([*sides, *rest])))


def _is_effect(node: Node) -> bool:
    reads = any(isinstance(value, Parameter) and value.is_weight for value in node.operands)
    return reads or (not node.blocks and has_effect(node, find))


def _is_cloned(rest: Sequence[Node], outputs: Sequence[Value]) -> bool:
    """Whether the nodes after a branch have no control flow; the vendor keeps a function that has control flow."""
    roots = [n for n in rest if n.op_type == "While" or _goes_on(n) or has_effect(n, find)]
    live = reachable([*outputs, *roots])
    return not any(n.op_type == CUSTOM_GRADIENT or (n.blocks and id(n) in live) for n in rest)


def _plain(value: Value) -> TensorType:
    kind = value.abstract
    assert isinstance(kind, TensorType)
    return replace(kind, ref_key=None, constant=False, value=None)


def _item(branch: Node, number: int) -> Node:
    assert isinstance(branch.abstract, TupleType)
    index = Constant(value=number, abstract=ScalarType(dtype=dtype("int64"), value=number))
    return Node(
        op_type="TupleGetItem",
        operands=[branch, index],
        abstract=branch.abstract.items[number],
        scope=branch.scope,
        text=replace(branch.text) if branch.text is not None else NodeText(),
    )
