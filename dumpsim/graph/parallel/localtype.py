"""Types of the values of one rank: inferred anew from the slices of arguments and weights."""

from dataclasses import replace
from typing import Any

from dumpsim.core.abstract import Abstract, MonadType, TensorType, TupleType
from dumpsim.graph.compilation import Find
from dumpsim.graph.custom_gradient import CUSTOM_GRADIENT
from dumpsim.graph.graph import Constant, Node, Value, definition_of
from dumpsim.graph.mindspore.gradient_node import GRADIENT, wanted_of

__all__ = ["infer_local"]

_FIRST = frozenset({"Load", "Depend", "StopGradient"})


def infer_local(node: Node, find: Find) -> Abstract:
    """The type of a node whose operands have their local types."""
    operands = node.operands
    if isinstance(node.abstract, MonadType):
        return node.abstract
    if node.op_type in _FIRST:
        return _plain(operands[0].abstract)
    if node.op_type == "MakeTuple":
        return TupleType(items=tuple(value.abstract for value in operands))
    if node.op_type == "TupleGetItem":
        whole, place = operands[0].abstract, operands[1]
        assert isinstance(whole, TupleType)
        assert isinstance(place, Constant)
        item: Abstract = whole.items[place.value]
        return item
    if node.op_type == GRADIENT:
        return TupleType(items=tuple(_plain(value.abstract) for value in wanted_of(node)))
    if node.op_type == CUSTOM_GRADIENT:
        return _infer_rule(node, find)
    definition = definition_of(node, find)
    attrs: dict[str, Any] = {**definition.attrs, **node.attrs}
    return definition.infer([v.abstract for v in operands if not isinstance(v.abstract, MonadType)], attrs)


def _infer_rule(node: Node, find: Find) -> Abstract:
    """The type of a custom-gradient node; the values of its rule are inferred anew, too."""
    assert isinstance(node.abstract, TupleType)
    kinds = tuple(_plain(value.abstract) for value in node.operands[: len(node.abstract.items)])
    rule = node.attrs["rule"]
    for parameter, kind in zip(rule.parameters if rule is not None else (), kinds, strict=rule is not None):
        parameter.abstract = kind
    for inner in rule.trail if rule is not None else ():
        inner.abstract = infer_local(inner, find)
    if rule is not None and rule.output is not None:
        rule.output.abstract = infer_local(rule.output, find)
    return TupleType(items=kinds)


def local_type(value: Value, shape: tuple[int, ...]) -> TensorType:
    """The type of a tensor with another shape."""
    assert isinstance(value.abstract, TensorType)
    return replace(value.abstract, shape=shape)


def _plain(abstract: Abstract) -> Abstract:
    if isinstance(abstract, TensorType) and abstract.ref_key is not None:
        return TensorType(dtype=abstract.dtype, shape=abstract.shape)
    return abstract
