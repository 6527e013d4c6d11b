"""Drops nodes that change nothing, and reshapes that are followed by another one."""

from collections.abc import Container
from typing import Any

import numpy as np

from dumpsim.core.abstract import TensorType, TupleType
from dumpsim.graph.graph import Constant, Graph, Node, Value
from dumpsim.graph.mindspore.monads import is_gradient
from dumpsim.graph.mindspore.sums import merge_sums
from dumpsim.graph.replacement import Replacements

__all__ = ["is_filled", "product_with_ones", "simplify"]


def simplify(graph: Graph) -> Graph:
    """Drop reshapes to the same shape, products with ones and sums with zeros; merge two reshapes, and sums.

    The second reshape stays, with its scope. [observed 2.10: Dense after ops.reshape, weights of MSELoss, h_zeros]
    """
    _simplify(graph, Replacements())
    return merge_sums(graph)


def _simplify(graph: Graph, replaced: Replacements) -> None:
    kept: list[Node] = []
    for node in graph.trail:
        node.operands = replaced.operands(node)
        for block in node.blocks:
            _simplify(block, replaced)
        source = _source(node)
        if source is None:
            kept.append(node)
        else:
            replaced.put(node, source)
    replaced.finish(graph, kept)


def _source(node: Node) -> Value | None:
    """Return the value that may replace a node; None if the node stays."""
    if node.op_type == "Depend":
        node.operands[1:] = [_whole(operand) for operand in node.operands[1:]]
    if node.op_type == "Mul":
        return product_with_ones(*node.operands)
    if node.op_type == "Add" and not is_gradient(node):  # zeros in gradients are computed, and known later
        return _sum_with_zeros(*node.operands)
    if node.op_type != "Reshape":
        return None
    source = node.operands[0]
    if isinstance(source, Node) and source.op_type == "Reshape":
        node.operands[0] = source = source.operands[0]
    same = isinstance(source.abstract, TensorType) and source.abstract.shape == _shape(node)
    return source if same and -1 not in _shape(node) else None


def _whole(bundle: Value) -> Value:
    """Return the node whose outputs a tuple consists of, in order; otherwise the tuple. [observed 2.10]"""
    if not isinstance(bundle, Node) or bundle.op_type != "MakeTuple" or not bundle.operands:
        return bundle
    first = bundle.operands[0]
    if not isinstance(first, Node) or first.op_type != "TupleGetItem":
        return bundle
    whole = first.operands[0]
    if not isinstance(whole.abstract, TupleType) or len(whole.abstract.items) != len(bundle.operands):
        return bundle
    for at, item in enumerate(bundle.operands):
        if not isinstance(item, Node) or item.op_type != "TupleGetItem" or item.operands[0] is not whole:
            return bundle
        if not isinstance(item.operands[1], Constant) or item.operands[1].value != at:
            return bundle
    return whole


def product_with_ones(x: Value, y: Value) -> Value | None:
    """Return the other factor if one of two is a constant of ones that does not broadcast it; None otherwise."""
    for factor, other in ((x, y), (y, x)):
        if is_filled(factor, 1) and _covers(other, factor):
            return other
    return None


def _sum_with_zeros(x: Value, y: Value) -> Value | None:
    """Return the other term if one of two is a constant of zeros that does not broadcast it; None otherwise."""
    for term, other in ((x, y), (y, x)):
        if isinstance(term, Constant) and isinstance(term.abstract, TensorType) and _covers(other, term):
            return None if np.any(np.asarray(term.value)) else other
    return None


def is_filled(value: Any, number: float, kinds: Container[str] = ("float",)) -> bool:
    """Whether a value is a constant tensor of floats, or of other kinds of numbers, whose elements all equal `number`.

    Examples
    --------
    >>> from dumpsim.graph.builder import constant
    >>> is_filled(constant(np.ones(3, np.float32)), 1), is_filled(constant(1.0), 1)
    (True, False)
    """
    return (
        isinstance(value, Constant)
        and isinstance(value.abstract, TensorType)
        and value.abstract.dtype.kind in kinds
        and bool(np.all(np.asarray(value.value) == number))
    )


def _covers(value: Value, other: Value) -> bool:
    """Whether `value` has the shape and number type of its product with `other`."""
    mine, theirs = value.abstract, other.abstract
    if not isinstance(mine, TensorType) or not isinstance(theirs, TensorType) or mine.dtype != theirs.dtype:
        return False
    return -1 not in mine.shape and np.broadcast_shapes(mine.shape, theirs.shape) == mine.shape


def _shape(value: Value) -> tuple[int, ...]:
    assert isinstance(value.abstract, TensorType)
    return value.abstract.shape
