"""The nodes of a split network as a dictionary by graph, which a compiled phase reports. [observed 2.10]"""

from collections import Counter
from typing import Any

import numpy as np

from dumpsim.core.abstract import MonadType, TensorType
from dumpsim.graph.compilation import Find
from dumpsim.graph.custom_gradient import drop_custom_gradients
from dumpsim.graph.graph import Constant, Graph, Node, Parameter, Value, copied, topological
from dumpsim.graph.mindspore.gradient_node import GRADIENT, outputs_of
from dumpsim.graph.parallel.stagetext import primitive_attributes, with_monads

__all__ = ["node_dictionary"]

Info = dict[str, dict[str, Any]]
_SHOWN_AS = {"_VirtualDataset": "MakeTuple"}  # a later pass replaces it before the script can ask [observed 2.10]


def node_dictionary(graph: Graph, find: Find) -> dict[str, Info]:
    """Return ``{"@graph_0": {"MatMul-0": {"inputs": [...], "attrs": {...}}}}``, with nodes in the order of the text.

    Parameters
    ----------
    graph : Graph
        After sharding, without monads.
    find : callable
        The definition of an operator type.

    Returns
    -------
    dict
        The forward pass is ``@graph_0``. A network that takes its gradient comes first, as ``@graph_1``.
    """
    own = copied(graph)
    gradients = [node for node in own.nodes() if node.op_type == GRADIENT]
    if not gradients:
        return {"@graph_0": _described(own, find)}
    last = outputs_of(gradients[0])
    forward = topological(outputs_of(node) for node in gradients)
    inner = {id(node) for node in forward}
    outer = [node for node in topological([own.output]) if id(node) not in inner]
    main = _Graph(find, {id(node): "@graph_0" for node in forward}).described(outer, own.output)
    part = Graph(parameters=own.parameters, output=last, trail=[n for n in own.trail if id(n) in inner])
    return {"@graph_1": main, "@graph_0": _described(part, find)}


def _described(graph: Graph, find: Find) -> Info:
    """Return the nodes of a graph without gradients."""
    shown = with_monads(drop_custom_gradients(graph), find)
    return _Graph(find).described(topological([shown.output]), shown.output)


class _Graph:
    """Names the nodes of one function graph by type and number."""

    def __init__(self, find: Find, outer: dict[int, str] | None = None) -> None:
        self._find = find
        self._names: dict[int, str] = dict(outer or {})
        self._counts: Counter[str] = Counter()

    def described(self, nodes: list[Node], output: Value | None) -> Info:
        """Return the nodes, followed by the Return."""
        found: Info = {}
        for node in nodes:
            kind = "J" if node.op_type == GRADIENT else _SHOWN_AS.get(node.op_type, node.op_type)
            name = self._names[id(node)] = f"{kind}-{self._counts[kind]}"
            self._counts[kind] += 1
            found[name] = {
                "inputs": ["@graph_0"] if kind == "J" else [self._input(value) for value in node.operands],
                "attrs": {} if kind == "MakeTuple" else self._attributes(node),
            }
        found["Return-0"] = {"inputs": [self._input(output)] if output is not None else [], "attrs": {}}
        return found

    def _input(self, value: Value) -> Any:
        if isinstance(value, Node):
            return self._names.get(id(value), value.op_type)
        if isinstance(value, Parameter):
            return value.name
        return _constant(value)

    def _attributes(self, node: Node) -> dict[str, Any]:
        if node.op_type == GRADIENT:
            return {"side_effect_propagate": 1}
        found = primitive_attributes(node, self._find)
        return {name: str(value) if isinstance(value, (tuple, list)) else value for name, value in found.items()}


def _constant(value: Constant) -> Any:
    """Return a constant: numbers, bools and strings unchanged, everything else as text."""
    kind = value.abstract
    if isinstance(kind, MonadType):
        return kind.kind
    if isinstance(kind, TensorType):
        array = np.asarray(value.value)
        return f"Tensor(shape={list(array.shape)}, dtype={kind.dtype.title}, value={array})"
    if isinstance(value.value, (bool, int, float, str)):
        return value.value
    return str(value.value)
