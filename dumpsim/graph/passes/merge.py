"""Equal computations are done once."""

from collections.abc import Callable
from typing import Any

import numpy as np

from dumpsim.graph.graph import Constant, Graph, Node, Value
from dumpsim.graph.passes.monads import STRUCTURAL, has_effect
from dumpsim.ops.opdef import OpDef

__all__ = ["merge_equal"]


def merge_equal(graph: Graph, find: Callable[[str], OpDef]) -> Graph:
    """Replace each node that repeats an earlier one; effects and random numbers are never merged."""
    replaced: dict[int, Node] = {}
    _merge(graph, find, {}, replaced, [])
    return graph


def _merge(
    graph: Graph, find: Callable[[str], OpDef], known: dict[Any, Node], replaced: dict[int, Node], dropped: list[Node]
) -> None:
    known = dict(known)
    kept: list[Node] = []
    for node in graph.trail:
        node.operands = [_new(operand, replaced) for operand in node.operands]
        for block in node.blocks:
            _merge(block, find, known, replaced, dropped)
        key = _key(node) if _is_pure(node, find) else None
        if key is not None and key in known:
            replaced[id(node)] = known[key]
            dropped.append(node)  # its identity is a key of `replaced` and must not be given to another node
            continue
        if key is not None:
            known[key] = node
        kept.append(node)
    graph.trail = kept
    output = graph.output
    if isinstance(output, Node) and all(output is not node for node in kept) and id(output) not in replaced:
        output.operands = [_new(operand, replaced) for operand in output.operands]
    elif output is not None:
        graph.output = _new(output, replaced)


def _new(value: Value, replaced: dict[int, Node]) -> Value:
    return replaced.get(id(value), value)


def _is_pure(node: Node, find: Callable[[str], OpDef]) -> bool:
    if node.blocks or has_effect(node, find):
        return False
    if node.op_type in STRUCTURAL:
        return node.op_type in ("TupleGetItem", "MakeTuple")
    return not find(node.op_type).random


def _key(node: Node) -> Any:
    operands = tuple(_value_key(operand) for operand in node.operands)
    attrs = tuple((name, repr(value)) for name, value in sorted(node.attrs.items()))
    return (node.op_type, operands, attrs, str(sorted(node.printed_attrs.items())))


def _value_key(value: Value) -> Any:
    if not isinstance(value, Constant):
        return id(value)
    if isinstance(value.value, np.ndarray):
        return (str(value.abstract), value.value.tobytes())
    return (str(value.abstract), repr(value.value))
