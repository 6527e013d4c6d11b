"""The counters of a process: graph ids, operator numbers, CNode numbers."""

from dataclasses import dataclass, field
from typing import Any

__all__ = ["Ids"]


@dataclass(slots=True)
class Ids:
    """Counters that all networks of a process share. [spec parallel 1.5; spec observed 1.6]

    Examples
    --------
    >>> ids = Ids()
    >>> ids.graph(), ids.graph()
    (0, 1)
    >>> ids.op("Default/fc1-Dense", "MatMul"), ids.op("Default/fc1-Dense", "MatMul"), ids.op("Default", "MatMul")
    (0, 1, 0)
    """

    next_graph: int = 0
    next_cnode: int = 1
    resolved: set[str] = field(default_factory=set)  # operators that have taken a number
    next_model: int = 1
    texts: dict[tuple[str, str], int] = field(default_factory=dict)  # of IR text, in the latest compile
    specialised: int | None = 0  # functions that type inference has specialised; None if unknown
    awaited: int | None = None  # how many it specialises in the network compiled next
    _ops: dict[tuple[str, str], int] = field(default_factory=dict)

    def graph(self) -> int:
        """The next graph id."""
        self.next_graph += 1
        return self.next_graph - 1

    def model(self) -> int:
        """The next number of a model: a graph that is loaded onto the device as a whole."""
        self.next_model += 1
        return self.next_model - 1

    def op(self, scope: str, op_type: str) -> int:
        """The next number of an operator type in a scope: the N of ``-opN``."""
        number = self._ops.get((scope, op_type), 0)
        self._ops[scope, op_type] = number + 1
        return number

    def full_name(self, scope: str, op_type: str) -> str:
        """``scope/op_type-opN`` with the next number."""
        return f"{scope}/{op_type}-op{self.op(scope, op_type)}"

    def take(self, count: int) -> None:
        """Skip numbers of nodes that no dump shows."""
        self.next_cnode += count

    def cnode(self) -> int:
        """The next number of a node that is named by being printed."""
        self.next_cnode += 1
        return self.next_cnode - 1

    def functions(self, count: int) -> int | None:
        """Return the number of the first of `count` functions of the compiled network, None if it is unknown.

        Type inference numbered every function that the network calls; those that remain are specialised once more.
        [source program_specialize.cc; observed 2.10: all compiles of 198 networks without gradients]

        Examples
        --------
        >>> ids = Ids(awaited=94)
        >>> ids.functions(9), ids.specialised
        (95, 103)
        >>> ids.functions(1), ids.specialised  # the functions of the second network were not counted
        (None, None)
        """
        if self.specialised is None or self.awaited is None:
            self.specialised = self.awaited = None
            return None
        first = self.specialised + self.awaited + 1
        self.specialised, self.awaited = first + count - 1, None
        return first

    def state(self) -> tuple[Any, ...]:
        """Return the counters that the compilation of a graph reads and changes, as a hashable value.

        Examples
        --------
        >>> one, other = Ids(), Ids()
        >>> _ = one.graph(), one.op("Default", "MatMul")
        >>> other.assume(one.state())
        >>> other.graph(), other.op("Default", "MatMul"), other.state() == one.state()
        (1, 1, False)
        """
        counts = frozenset(self._ops.items()), frozenset(self.texts.items())
        return self.next_graph, self.next_cnode, self.next_model, self.specialised, self.awaited, *counts

    def assume(self, state: tuple[Any, ...]) -> None:
        """Adopt a state."""
        self.next_graph, self.next_cnode, self.next_model, self.specialised, self.awaited, ops, texts = state
        self._ops, self.texts = dict(ops), dict(texts)
