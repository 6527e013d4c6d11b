"""What branches and loops need of the maker of functions, and how a function ends."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from dumpsim.graph.graph import Node, Step, Value
from dumpsim.graph.mindspore.funcgraph import FuncGraph

__all__ = ["Closure", "End", "Leave", "Maker"]


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """The end of a function that calls a header instead of returning a value.

    Attributes
    ----------
    header : FuncGraph
    order : list of int
        The variables of the loop in the order of the header's parameters.
    leave : Leave, optional
        How ``break`` leaves the loop.
    hands_out : bool
        Whether a round returns its gradient as a closure; otherwise it returns the values that its gradient needs.
    """

    header: FuncGraph
    order: list[int]
    hands_out: bool = False
    leave: "Leave | None" = None


@dataclass(slots=True, kw_only=True, eq=False)
class Leave:
    """The end of a side of a branch that leaves a loop.

    Attributes
    ----------
    places : list of int
        The variables of the loop that the code after it takes from the point where the loop was left.
    end : FuncGraph or None
        The function of the code after the loop, if that has control flow: all sides that leave the loop call it.
    copies : list of (list of Node, Value, dict of int to int, Step or None)
        Otherwise copies of the code after the loop, one for each such side: nodes, output, the variables by id of their
        nodes, and the gradient.
    after : End or None
        The end of the code after the loop.
    """

    places: list[int]
    end: FuncGraph | None = None
    copies: list[tuple[list[Node], Value, dict[int, int], Step | None]] = field(default_factory=list)
    after: "End | None" = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Closure:
    """The gradient that a function returns in addition to its output, and the values that the gradient takes."""

    gradient: FuncGraph
    taken: list[Value]


class Maker(Protocol):
    """Creates functions."""

    def new_function(self, kind: str, label: str, output: Value, end: End | None = None) -> FuncGraph:
        """Create an empty function, for captured nodes with this output."""
        ...

    def function(
        self,
        kind: str,
        label: str,
        nodes: Sequence[Node],
        output: Value,
        *,
        end: End | None = None,
        into: FuncGraph | None = None,
        closure: Closure | None = None,
        steps: Sequence[Step] = (),
        of: Node | None = None,
    ) -> FuncGraph:
        """Create the function of captured nodes."""
        ...

    def fill(
        self,
        function: FuncGraph,
        nodes: Sequence[Node],
        output: Value,
        *,
        end: End | None = None,
        closure: Closure | None = None,
        step: Step | None = None,
    ) -> None:
        """Move captured nodes into a function."""
        ...
