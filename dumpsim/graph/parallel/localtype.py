"""Types of the values of one rank, inferred from the slices of arguments and weights."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from dumpsim.core.abstract import Abstract, MonadType, TensorType, TupleType
from dumpsim.core.tensorlayout import TensorLayout
from dumpsim.graph.builder import constant
from dumpsim.graph.compilation import Find
from dumpsim.graph.custom_gradient import CUSTOM_GRADIENT
from dumpsim.graph.gradient_control import everything
from dumpsim.graph.graph import Constant, Graph, Node, Parameter, Value, definition_of
from dumpsim.graph.mindspore.gradient_node import GRADIENT, wanted_of
from dumpsim.graph.parallel.weights import Weights

__all__ = ["fit_constants", "infer_local", "infer_slices", "local_type"]

_FIRST = frozenset({"Load", "Depend", "StopGradient"})


def infer_slices(
    graph: Graph,
    forward: Iterable[Node],
    arguments: Mapping[Parameter, TensorLayout],
    weights: Weights,
    find: Find,
) -> dict[str, TensorLayout]:
    """Infer the types of all values of one rank, and return the layouts of its weights by name.

    Parameters
    ----------
    graph : Graph
    forward : iterable of Node
        The nodes of the forward pass, whose constants have been cut already.
    arguments : mapping
        The layouts of the arguments.
    weights : Weights
    find : callable
        The definition of an operator type.
    """
    known = {id(node) for node in everything(forward)}
    values: list[Value] = [*graph.parameters, *everything(graph.trail)]
    before = {id(value): value.abstract for value in values}
    found: dict[str, TensorLayout] = {}
    for parameter in graph.parameters:
        if not isinstance(parameter.abstract, TensorType):
            continue
        layout = arguments.get(parameter)
        if parameter.is_weight:
            layout = weights.layout_of(parameter.name)
            if layout is not None and layout.shape != parameter.abstract.shape:
                layout = None
            if layout is not None:
                found[parameter.name] = layout
        if layout is not None:
            parameter.abstract = local_type(parameter, layout.slice_shape)

    def infer(nodes: Iterable[Node]) -> None:
        for node in nodes:
            if id(node) not in known:
                fit_constants(node, before)
            if node.blocks:
                infer_control(node)
            elif not isinstance(node.abstract, MonadType):
                node.abstract = infer_local(node, find)

    def infer_control(node: Node) -> None:
        for block in node.blocks:
            if node.op_type != "If":
                for parameter, value in zip(block.parameters, node.operands, strict=True):
                    if isinstance(value.abstract, TensorType):
                        parameter.abstract = local_type(parameter, value.abstract.shape)
            infer(block.trail)
            output = block.output
            if isinstance(output, Node) and output.op_type == "MakeTuple":
                output.abstract = infer_local(output, find)
        assert isinstance(node.abstract, TupleType)
        given = node.operands
        first = node.blocks[0].output
        if node.op_type == "If":
            given = first.operands if isinstance(first, Node) else []
        node.abstract = TupleType(items=tuple(_as_result(value.abstract) for value in given))

    infer(graph.trail)
    output = graph.output
    if isinstance(output, Node) and output.op_type == "MakeTuple":
        output.abstract = infer_local(output, find)
    return found


def _as_result(abstract: Abstract) -> Abstract:
    """Return the type of a result of control flow."""
    if isinstance(abstract, TensorType):
        return replace(abstract, ref_key=None, constant=False, value=None)
    return abstract


def infer_local(node: Node, find: Find) -> Abstract:
    """Return the type of a node whose operands have their local types."""
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
    return definition.output_type([v.abstract for v in operands if not isinstance(v.abstract, MonadType)], attrs)


def _infer_rule(node: Node, find: Find) -> Abstract:
    """Return the type of a custom-gradient node; infer the types of its rule, too."""
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


def fit_constants(node: Node, before: Mapping[int, Abstract]) -> None:
    """Give uniform constants the local shape of the other operands, since the vendor creates them after sharding.

    Parameters
    ----------
    node : Node
    before : mapping
        The types before sharding, by the ids of the values.
    """
    shapes: dict[tuple[int, ...], tuple[int, ...]] = {}
    for value in node.operands:
        old, new = before.get(id(value)), value.abstract
        if isinstance(old, TensorType) and isinstance(new, TensorType) and old.shape != new.shape:
            shapes[old.shape] = new.shape
    for at, value in enumerate(node.operands):
        if not isinstance(value, Constant) or not isinstance(value.abstract, TensorType):
            continue
        shape, array = shapes.get(value.abstract.shape), np.asarray(value.value)
        if shape is not None and array.size and (array == array.flat[0]).all():
            node.operands[at] = constant(np.full(shape, array.flat[0], array.dtype))


def local_type(value: Value, shape: tuple[int, ...]) -> TensorType:
    """Return the type of a tensor with another shape."""
    assert isinstance(value.abstract, TensorType)
    return replace(value.abstract, shape=shape)


def _plain(abstract: Abstract) -> Abstract:
    if isinstance(abstract, TensorType) and abstract.ref_key is not None:
        return TensorType(dtype=abstract.dtype, shape=abstract.shape)
    return abstract
