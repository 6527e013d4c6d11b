"""The results and parameters that an operator reads, according to its graph."""

from collections.abc import Iterator
from dataclasses import dataclass

from dumpsim.analysis.entry import Entry
from dumpsim.archive.naming import escape
from dumpsim.core.irdoc import ConstRef, IrNode, NodeRef, Operand, ParamRef

__all__ = ["Reads", "reads_of"]

_FIRST = ("Load", "Depend")  # nodes that pass their first operand on, and have no files
_THROUGH = (*_FIRST, "MakeTuple", "TupleGetItem")  # nodes that pass their operands on
_MONADS = ("UpdateState",)  # they only order nodes


@dataclass(frozen=True, slots=True, kw_only=True)
class Reads:
    """The node of an operator in its graph."""

    node: IrNode
    nodes: dict[int | None, IrNode]
    names: tuple[str, ...]  # of the graph's parameters

    @property
    def producers(self) -> list[str]:
        """Return the names, as in file names, of the operators whose results the operator reads."""
        names: list[str] = []
        waiting, seen = [self.node], {self.node.index}
        while waiting:
            for operand in waiting.pop().operands:
                producer = self.nodes.get(operand.index) if isinstance(operand, NodeRef) else None
                if producer is None or producer.index in seen or producer.op_type in _MONADS:
                    continue
                seen.add(producer.index)
                if producer.op_type in _THROUGH:
                    waiting.append(producer)
                else:
                    names.append(escape(producer.full_name))
        return names

    @property
    def parameters(self) -> Iterator[str]:
        """Return the names of the parameters that the operator reads."""
        return filter(None, map(self.parameter, range(len(self.node.operands))))

    def parameter(self, slot: int) -> str:
        """Return the parameter in a slot, empty for anything else."""
        operand = self._origin(slot)
        return self.names[operand.index] if isinstance(operand, ParamRef) and operand.index < len(self.names) else ""

    def given(self, slot: int) -> str:
        """Return the name of a parameter, or "a constant", in a slot that no operator fills."""
        return "a constant" if isinstance(self._origin(slot), ConstRef) else self.parameter(slot)

    def _origin(self, slot: int) -> Operand | None:
        """Return the operand that a chain of nodes passes on."""
        operand = self.node.operands[slot] if slot < len(self.node.operands) else None
        seen: set[int] = set()
        while isinstance(operand, NodeRef) and operand.index not in seen:
            seen.add(operand.index)
            node = self.nodes.get(operand.index)
            operand = node.operands[0] if node is not None and node.op_type in _FIRST and node.operands else None
        return operand


def reads_of(entry: Entry, cache: dict[int, dict[int | None, IrNode]]) -> Reads | None:
    """Return what a tensor's operator reads, None without a graph; `cache` keeps the nodes of graphs by their id."""
    graph = entry.graph_id
    doc = entry.graphs.documents.get(graph) if graph is not None else None
    node = entry.graphs.node(entry.name.op_name, graph)
    if graph is None or doc is None or node is None:
        return None
    nodes = cache.setdefault(graph, {one.index: one for one in doc.nodes})
    return Reads(node=node, nodes=nodes, names=tuple(param.name for param in doc.params))
