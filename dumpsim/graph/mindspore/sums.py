"""Merges nested sums."""

from collections import Counter

from dumpsim.core.abstract import TupleType
from dumpsim.graph.graph import Graph, Node, Value

__all__ = ["merge_sums"]


def merge_sums(graph: Graph) -> Graph:
    """Merge an AddN into another one, if it is the first or last summand of that and has no other users.

    The outer sum keeps its scope. [spec vendor 3.6; source optimizer/irpass/merge_addn.h]
    """
    uses: Counter[int] = Counter()
    _count(graph, uses)
    _merge(graph, uses)
    return graph


def _count(graph: Graph, uses: Counter[int]) -> None:
    for node in graph.trail:
        uses.update(id(operand) for operand in node.operands)
        for block in node.blocks:
            _count(block, uses)
    output = graph.output
    uses[id(output)] += 1
    if isinstance(output, Node) and all(output is not node for node in graph.trail):  # not a part of the program
        uses.update(id(operand) for operand in output.operands)


def _merge(graph: Graph, uses: Counter[int]) -> None:
    gone: set[int] = set()
    for node in graph.trail:
        for block in node.blocks:
            _merge(block, uses)
        bundle = _summands(node)
        while bundle is not None and uses[id(bundle)] == 1:
            place = next((at for at in (0, -1) if _is_merged(bundle.operands[at], uses)), None)
            if place is None:
                break
            inner = bundle.operands[place]
            within = _summands(inner)
            assert within is not None
            gone |= {id(inner), id(within)} if uses[id(within)] == 1 else {id(inner)}
            items = within.operands
            bundle.operands = [*items, *bundle.operands[1:]] if place == 0 else [*bundle.operands[:-1], *items]
            bundle.abstract = TupleType(items=tuple(item.abstract for item in bundle.operands))
    graph.trail = [node for node in graph.trail if id(node) not in gone]


def _is_merged(value: Value, uses: Counter[int]) -> bool:
    return _summands(value) is not None and uses[id(value)] == 1


def _summands(value: Value) -> Node | None:
    """Return the tuple that an AddN sums."""
    if not isinstance(value, Node) or value.op_type != "AddN":
        return None
    bundle = value.operands[0]
    return bundle if isinstance(bundle, Node) and bundle.op_type == "MakeTuple" and bundle.operands else None
