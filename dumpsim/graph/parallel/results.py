"""The results of a network in evaluation: the operands that are results, and their cuts. [spec parallel 2.4]"""

from dumpsim.graph.graph import Graph, Node, Value
from dumpsim.graph.parallel.plan import Edge
from dumpsim.graph.parallel.settings import Settings

__all__ = ["block_outputs", "output_cuts", "output_edges"]


def output_edges(graph: Graph) -> list[Edge | None]:
    """Return the operands that are results, of the nodes that bundle or order them; None for the output itself."""
    pending: list[Edge | None] = [None]
    found: list[Edge | None] = []
    while pending:
        edge = pending.pop(0)
        value = edge.value if edge is not None else graph.output
        if isinstance(value, Node) and value.op_type == "Depend":
            pending.append(Edge(value, 0))
        elif isinstance(value, Node) and value.op_type == "MakeTuple":
            pending += [Edge(value, at) for at in range(len(value.operands))]
        else:
            found.append(edge)
    return found


def output_cuts(settings: Settings, shape: tuple[int, ...]) -> tuple[int, ...] | None:
    """Return the cuts of a result of an evaluation; None if it keeps its operator's layout. [observed 2.10]"""
    if settings.dataset_strategy == "full_batch":
        return (1,) * len(shape)
    if isinstance(settings.dataset_strategy, tuple) or shape[0] % settings.device_num:
        return None
    return (settings.device_num, *(1 for _ in shape[1:]))


def block_outputs(block: Graph) -> list[Value]:
    """Return the results of a block of a control node."""
    output = block.output
    if isinstance(output, Node) and output.op_type == "MakeTuple" and all(output is not node for node in block.trail):
        return list(output.operands)
    return [] if output is None else [output]
