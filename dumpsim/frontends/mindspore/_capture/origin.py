"""Which sides of branches are one function of the vendor's, although the capture records them more than once.

A turn of an unrolled loop, or code that two paths lead to, is recorded each time. The vendor has one function of each
side of a branch in the source. It specialises and inlines it anew only with the function whose values the side uses:
a side that uses nothing of the turn stays one function for all turns. [source func_graph_cloner.cc AddChildGraphs,
program_specialize.cc]
"""

from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

import numpy as np

from dumpsim.frontends.mindspore._capture.frame import Position
from dumpsim.graph.graph import Constant, Graph, Node, Origin, Value

if TYPE_CHECKING:
    from dumpsim.frontends.mindspore._capture.trace import Tracer

__all__ = ["origin"]


def origin(tracer: "Tracer", position: Position, label: str, graph: Graph) -> Origin:
    """Where a side of a branch comes from, what it computes, and from which values of others."""
    shape = _Shape()
    key = (id(tracer.frame), position.whole, label, shape.of(graph))
    return Origin(key=key, values=tuple(shape.others.values()), keeps=tracer.frame)


class _Shape:
    """What graphs compute, by the places of their nodes."""

    def __init__(self) -> None:
        self.others: dict[int, Value] = {}
        self._places: dict[int, int] = {}

    def of(self, graph: Graph) -> Hashable:
        """What a graph computes."""
        for parameter in graph.parameters:
            self._places[id(parameter)] = len(self._places)
        nodes = tuple(map(self._node, graph.trail))
        return (nodes, self._value(graph.output) if graph.output is not None else None)

    def _node(self, node: Node) -> Hashable:
        blocks = tuple(map(self.of, node.blocks))
        operands = tuple(map(self._value, node.operands))
        self._places[id(node)] = len(self._places)
        attrs = tuple((name, repr(value)) for name, value in sorted(node.attrs.items()))
        jumps = node.control.jumps if node.control is not None else ()
        return (node.op_type, node.scope, operands, attrs, str(node.abstract), jumps, blocks)

    def _value(self, value: Value) -> Hashable:
        if isinstance(value, Constant):
            return ("constant", str(value.abstract), _plain(value.value))
        if id(value) in self._places:
            return ("own", self._places[id(value)])
        if isinstance(value, Node) and value.op_type == "MakeTuple":  # it may be no part of the program
            return ("tuple", tuple(map(self._value, value.operands)))
        known = list(self.others)
        self.others.setdefault(id(value), value)
        return ("other", known.index(id(value)) if id(value) in known else len(known))


def _plain(value: Any) -> Hashable:
    return value.tobytes() if isinstance(value, np.ndarray) else repr(value)
