"""Identification of sides of branches that are one function in the vendor's compiler but are recorded several times.

An iteration of an unrolled loop, or code on two paths, is recorded every time. The vendor has one function for each
side of a branch in the source. It clones this function only together with the function whose values the side uses: a
side that uses no values of the iteration remains one function for all iterations.
[source func_graph_cloner.cc AddChildGraphs, program_specialize.cc]
"""

from collections.abc import Hashable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from dumpsim.frontends.mindspore._capture.frame import Position
from dumpsim.graph.graph import Constant, Graph, Node, Origin, Value
from dumpsim.graph.mindspore.gradient_node import Differentiated

if TYPE_CHECKING:
    from dumpsim.frontends.mindspore._capture.trace import Tracer

__all__ = ["origin"]


def origin(tracer: "Tracer", position: Position, label: str, graph: Graph) -> Origin:
    """Return the origin of a side of a branch: its source, its computation, and the outer values that it uses."""
    shape = _Shape()
    key = (id(tracer.frame), position.whole, label, shape.of(graph))
    return Origin(key=key, values=tuple(shape.others.values()), keeps=tracer.frame)


class _Shape:
    """The computation of graphs, with nodes identified by their order."""

    def __init__(self) -> None:
        self.others: dict[int, Value] = {}
        self._order: dict[int, int] = {}

    def of(self, graph: Graph) -> Hashable:
        """Return a hashable description of a graph's computation."""
        for parameter in graph.parameters:
            self._order[id(parameter)] = len(self._order)
        nodes = tuple(map(self._node, graph.trail))
        return (nodes, self._value(graph.output) if graph.output is not None else None)

    def _node(self, node: Node) -> Hashable:
        blocks = tuple(map(self.of, node.blocks))
        operands = tuple(map(self._value, node.operands))
        self._order[id(node)] = len(self._order)
        attrs = tuple((name, _attribute(value)) for name, value in sorted(node.attrs.items()))
        jumps = node.control.jumps if node.control is not None else ()
        return (node.op_type, node.scope, operands, attrs, str(node.abstract), jumps, blocks)

    def _value(self, value: Value) -> Hashable:
        if isinstance(value, Constant):
            return ("constant", str(value.abstract), _plain(value.value))
        if id(value) in self._order:
            return ("own", self._order[id(value)])
        if isinstance(value, Node) and value.op_type == "MakeTuple":  # it may not be a part of the program
            return ("tuple", tuple(map(self._value, value.operands)))
        known = list(self.others)
        self.others.setdefault(id(value), value)
        return ("other", known.index(id(value)) if id(value) in known else len(known))


def _attribute(value: Any) -> str:
    if isinstance(value, Differentiated):  # its operands say what; the calls around it refer to all nodes
        value = replace(value, function=None, around=None, nodes=None)
    return repr(value)


def _plain(value: Any) -> Hashable:
    return value.tobytes() if isinstance(value, np.ndarray) else repr(value)
