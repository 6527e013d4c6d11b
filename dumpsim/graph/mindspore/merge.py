"""Merges equal computations (common subexpressions)."""

from collections.abc import Callable
from typing import Any

import numpy as np

from dumpsim.graph.effects import STRUCTURAL, has_effect, written_weights
from dumpsim.graph.graph import Constant, Graph, Node, Parameter, Value, text_of, topological
from dumpsim.graph.mindspore.funcform import FuncForm
from dumpsim.graph.mindspore.unused import Effects
from dumpsim.graph.replacement import Replacements
from dumpsim.ops.opdef import OpDef

__all__ = ["merge_equal", "merge_readers"]


def merge_equal(graph: Graph, find: Callable[[str], OpDef]) -> Graph:
    """Replace each node that repeats an earlier one; effects and random numbers are never merged.

    Reads of a weight before and after a write are different, and so are those before and after a call with effects. The
    gradient of a node reads what the node has read. A branch or loop is a separate function: its nodes are not merged
    with those of the surrounding code. [observed 2.10; source auto_monad_eliminate.cc]
    """
    _Merger(find, Effects(graph, find)).merge(graph)
    return graph


def merge_readers(form: FuncForm, find: Callable[[str], OpDef]) -> None:
    """Merge nodes that are equal since the Loads that they read are merged, function by function.

    Loads before and after a call are merged if the call does not lie between them in the vendor's order.
    """
    if len(form.functions) > 1:
        _Merger(find).merge_functions(form)


class _Merger:
    def __init__(self, find: Callable[[str], OpDef], effects: Effects | None = None) -> None:
        self.find = find
        self.effects = effects
        self.replaced = Replacements()
        self.versions: dict[int, int] = {}  # of weights: times written so far
        self.calls = 0  # calls with effects so far
        self.read: dict[int, int] = {}  # the same number at a node, by id

    def merge(self, graph: Graph) -> None:
        known: dict[Any, Node] = {}
        kept: list[Node] = []
        places = _places(graph.output)
        for node in graph.trail:
            node.operands = self.replaced.operands(node)
            written = written_weights(node, self.find)
            self._write(written)  # a loop's body also runs after its own writes
            self._note(node)
            for block in node.blocks:
                self.merge(block)
            if node.blocks:
                self._write(written)
                self.calls += self.effects is not None and self.effects.is_busy(node)
            if node.op_type == "While":  # the code after a loop is a separate function
                known.clear()
            if not self._is_repeated(node, known, places):
                kept.append(node)
        self.replaced.finish(graph, kept)

    def merge_functions(self, form: FuncForm) -> None:
        for function in form.functions:
            known: dict[Any, Node] = {}
            kept: list[Node] = []
            places = _places(function.result)
            for node in function.trail:
                node.operands = self.replaced.operands(node)
                if not self._is_repeated(node, known, places):
                    kept.append(node)
            function.trail = kept
        for function in form.functions:
            for node in (*function.trail, function.result):
                node.operands = self.replaced.operands(node)

    def _is_repeated(self, node: Node, known: dict[Any, Node], places: dict[int, int]) -> bool:
        """Replace a node by an equal one that is `known`, or add it to these."""
        key = self._key(node) if self._is_pure(node) else None
        other = known.setdefault(key, node) if key is not None else node
        if other is node:
            return False
        if places.get(id(node), len(places)) < places.get(id(other), len(places)):
            _take_name(other, node)
            places[id(other)] = places[id(node)]
        self.replaced.put(node, other)
        return True

    def _note(self, node: Node) -> None:
        """Record the calls before a node, or before the node whose gradient it belongs to."""
        forward = node.text.forward if node.text is not None else None
        if forward is not None:
            forward = text_of(node).forward = self.replaced.of(forward)
        self.read[id(node)] = self.read.get(id(forward), self.calls)

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
        operands = tuple(self._value_key(operand, node) for operand in node.operands)
        attrs = tuple((name, repr(value)) for name, value in sorted(node.attrs.items()))
        return (node.op_type, operands, attrs, str(sorted(text_of(node).attrs.items())))

    def _value_key(self, value: Value, user: Node) -> Any:
        if isinstance(value, Parameter) and value.is_weight:
            return (id(value), self.versions.get(id(value), 0), self.read.get(id(user), 0))
        if not isinstance(value, Constant):
            return (id(value), self.versions.get(id(value), 0))
        if isinstance(value.value, np.ndarray):
            return (str(value.abstract), value.value.tobytes())
        return (str(value.abstract), repr(value.value))


def _places(output: Value | None) -> dict[int, int]:
    """Return the places of nodes in the vendor's search from a result, by id."""
    return {id(node): at for at, node in enumerate(topological([output]))}


def _take_name(node: Node, other: Node) -> None:
    """Give a node the name of an equal one, which the vendor's search from the result meets first and keeps.

    [source cse.cc BuildOrderGroupForOneGraph; observed 2.10: r88_057]
    """
    node.scope, node.text, node.dump_mark = other.scope, other.text, other.dump_mark
