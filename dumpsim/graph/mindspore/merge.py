"""Merges equal computations (common subexpressions)."""

from collections.abc import Callable
from typing import Any

import numpy as np

from dumpsim.graph.effects import STRUCTURAL, has_effect, written_weights
from dumpsim.graph.graph import Constant, Graph, Node, Parameter, Value, text_of
from dumpsim.graph.replacement import Replacements
from dumpsim.ops.opdef import OpDef

__all__ = ["merge_equal"]


def merge_equal(graph: Graph, find: Callable[[str], OpDef]) -> Graph:
    """Replace each node that repeats an earlier one; effects and random numbers are never merged.

    Reads of a weight before and after a write are different. A branch or loop is a separate function: its nodes are not
    merged with those of the surrounding code. [observed 2.10]
    """
    _Merger(find).merge(graph)
    return graph


class _Merger:
    def __init__(self, find: Callable[[str], OpDef]) -> None:
        self.find = find
        self.replaced = Replacements()
        self.versions: dict[int, int] = {}  # of weights: times written so far

    def merge(self, graph: Graph) -> None:
        known: dict[Any, Node] = {}
        kept: list[Node] = []
        for node in graph.trail:
            node.operands = self.replaced.operands(node)
            written = written_weights(node, self.find)
            self._write(written)  # a loop's body also runs after its own writes
            for block in node.blocks:
                self.merge(block)
            if node.blocks:
                self._write(written)
            if node.op_type == "While":  # the code after a loop is a separate function
                known.clear()
            key = self._key(node) if self._is_pure(node) else None
            if key is not None and key in known:
                self.replaced.put(node, known[key])
                continue
            if key is not None:
                known[key] = node
            kept.append(node)
        self.replaced.finish(graph, kept)

    def _write(self, weights: list[Parameter]) -> None:
        for weight in weights:
            self.versions[id(weight)] = self.versions.get(id(weight), 0) + 1

    def _is_pure(self, node: Node) -> bool:
        if node.blocks or has_effect(node, self.find):
            return False
        if node.op_type in STRUCTURAL:
            return node.op_type in ("TupleGetItem", "MakeTuple")
        definition = self.find(node.op_type)
        return not definition.random and definition.engine != "hccl"  # all ranks of a group must call as often

    def _key(self, node: Node) -> Any:
        operands = tuple(self._value_key(operand) for operand in node.operands)
        attrs = tuple((name, repr(value)) for name, value in sorted(node.attrs.items()))
        return (node.op_type, operands, attrs, str(sorted(text_of(node).attrs.items())))

    def _value_key(self, value: Value) -> Any:
        if not isinstance(value, Constant):
            return (id(value), self.versions.get(id(value), 0))
        if isinstance(value.value, np.ndarray):
            return (str(value.abstract), value.value.tobytes())
        return (str(value.abstract), repr(value.value))
