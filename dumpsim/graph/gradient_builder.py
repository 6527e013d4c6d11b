"""What gradients are built with: the interface of their builders, and the gradient of a value with several tensors."""

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
    """The gradient of a value with several tensors; None for a part that nobody used."""

    abstract: TupleType
    items: tuple[Any, ...]


class Builder(GradBuilder, Protocol):
    """What `gradient.reverse` needs of a builder beyond what the rules need."""

    def backward_of(self, node: Node) -> AbstractContextManager[None]:
        """Emit inside as the gradient of `node`."""
        ...

    def definition(self, op_type: str) -> OpDef:
        """The table row of an operator."""
        ...

    def total(self, gradients: Sequence[Any], value: Value) -> Any:
        """The sum of several gradients of `value`."""
        ...

    def zeros(self, abstract: Abstract) -> Any:
        """A tensor of zeros."""
        ...


@runtime_checkable
class ControlBuilder(Builder, Protocol):
    """What gradients of control flow need besides: graph nodes, and graphs for blocks."""

    def value(self, operand: Any) -> Value:
        """The graph value of an operand."""
        ...

    def block(self, name: str) -> AbstractContextManager[Graph]:
        """A graph that takes the nodes that are emitted inside."""
        ...

    def formal(self, values: Sequence[Value]) -> AbstractContextManager[None]:
        """Sum inside the gradients of values that are parameters of the function whose gradient is made."""
        ...

    def inline(self, graph: Graph, arguments: Sequence[Any]) -> list[Value]:
        """The nodes of a graph once more; its outputs."""
        ...

    def add(self, node: Node) -> Node:
        """Place a node that was made elsewhere."""
        ...

    def insert(self, node: Node, *, behind: Node) -> None:
        """Place a node into the graph that holds another, after it."""
        ...

    def late_zeros(self, abstract: Abstract, *, summed: bool = False) -> Any:
        """Zeros of which a compiler learns too late to fold what is computed from them.

        Sums keep them if they are `summed`, since it learns of them even later.
        """
        ...
