"""Interfaces of the builders of gradients, and the gradient of a value with several tensors."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from dumpsim.core.abstract import Abstract, TupleType
from dumpsim.graph.graph import Graph, Node, Value
from dumpsim.ops.opdef import GradBuilder, OpDef

__all__ = ["Builder", "ControlBuilder", "Parts"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Parts:
    """The gradient of a value with several tensors; None for an unused part."""

    abstract: TupleType
    items: tuple[Any, ...]


class Builder(GradBuilder, Protocol):
    """The interface that `gradient.reverse` needs in addition to that of the rules."""

    def backward_of(self, node: Node) -> AbstractContextManager[None]:
        """Mark operators that are emitted inside as the gradient of `node`."""
        ...

    def definition(self, op_type: str) -> OpDef:
        """Return the definition of an operator."""
        ...

    def total(self, gradients: Sequence[Any], value: Value) -> Any:
        """Return the sum of several gradients of `value`."""
        ...

    def zeros(self, abstract: Abstract) -> Any:
        """Return a tensor of zeros."""
        ...


@runtime_checkable
class ControlBuilder(Builder, Protocol):
    """The interface that gradients of control flow need in addition: graph nodes, and graphs for blocks."""

    def value(self, operand: Any) -> Value:
        """Return the graph value of an operand."""
        ...

    def block(self, name: str, *, calls: int = 1) -> AbstractContextManager[Graph]:
        """Collect nodes that are emitted inside in a new graph; it is a function that `calls` calls lead to."""
        ...

    def drops_unused(self) -> bool:
        """Whether unused results of a function that is called from here are dropped."""
        ...

    def formal(self, values: Sequence[Value]) -> AbstractContextManager[None]:
        """Sum gradients of these values inside: they are parameters of the function that is differentiated."""
        ...

    def inline(self, graph: Graph, arguments: Sequence[Any]) -> list[Value]:
        """Copy the nodes of a graph, and return its outputs."""
        ...

    def called(self, node: Node, dout: Any) -> list[Any]:
        """Return the gradients of the operands of a node whose rule has a branch, by a call of the rule."""
        ...

    def add(self, node: Node) -> Node:
        """Place a node that was created elsewhere."""
        ...

    def insert(self, node: Node, *, after: Node) -> None:
        """Place a node after another one, in the graph of that one."""
        ...

    def late_zeros(self, abstract: Abstract, *, summed: bool = False) -> Any:
        """Return zeros that the compiler recognises too late to fold operators on them.

        If they are `summed`, it recognises them even later, and sums with them stay, too.
        """
        ...
