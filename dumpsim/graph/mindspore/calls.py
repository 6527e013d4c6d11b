"""The calls of a capture: which function made which nodes, in what order.

A captured graph is flat; the vendor's compiler starts from one graph a function and inlines them. What depends on the
order of its inlining (`gradient_scope`) needs the functions.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from dumpsim.graph.graph import Node, Value

__all__ = ["Call", "CallStack"]


@dataclass(eq=False, slots=True, kw_only=True)
class Call:
    """A function (or a branch of one, or what follows a branch) and what it did: operators and calls in their order.

    Attributes
    ----------
    name : str
    entries : list of Node and Call
    values : list of Value
        What a branch gives to the variables that it sets.
    is_rest : bool
        What follows a branch in its function: its last entry, whose result is the result of the function.
    is_held : bool
        The result waits in a ``Depend`` for what nothing else uses: the counter of an unrolled loop, or a statement
        that is a call and gives no tensor. [source function_block.cc; observed 2.10]
    """

    name: str = ""
    entries: "list[Node | Call]" = field(default_factory=list)
    values: list[Value] = field(default_factory=list)
    is_rest: bool = False
    is_held: bool = False

    @property
    def tail(self) -> "Call | None":
        """The call whose result is that of this one: what follows a branch, or a branch that goes on with it."""
        last = self.entries[-1] if self.entries else None
        if isinstance(last, Call) and (
            last.is_rest or (last.tail is not None and last.tail.is_rest and last.is_branch)
        ):
            return last
        return None

    @property
    def is_branch(self) -> bool:
        """Whether this is a branch of a function."""
        return self.name == "branch"


class CallStack:
    """The calls under way.

    Examples
    --------
    >>> stack = CallStack("root")
    >>> depth = stack.enter("f")
    >>> stack.leave(depth)
    >>> [call.name for call in stack.root.entries]
    ['f']
    """

    def __init__(self, name: str) -> None:
        self.root = Call(name=name)
        self._open: list[Call] = [self.root]

    @property
    def open(self) -> Call:
        """The innermost call."""
        return self._open[-1]

    def record(self, node: Node) -> None:
        """A node of the innermost call."""
        self._open[-1].entries.append(node)

    def latest(self) -> Call | None:
        """The call that the innermost open one made last."""
        for entry in reversed(self._open[-1].entries):
            if isinstance(entry, Call):
                return entry
        return None

    @contextmanager
    def calling(self, name: str) -> Iterator[None]:
        """A call inside of which nodes are recorded."""
        depth = self.enter(name)
        try:
            yield
        finally:
            self.leave(depth)

    def enter(self, name: str) -> int:
        """A call begins; what is returned goes to `leave`."""
        self._enter(self._open[-1], name)
        return len(self._open) - 1

    def _enter(self, parent: Call, name: str) -> None:
        call = Call(name=name)
        parent.entries.append(call)
        self._open.append(call)

    def leave(self, depth: int) -> None:
        """The call ends, with the branches that are open in it."""
        del self._open[depth:]

    def turn(self, *, is_last: bool) -> None:
        """An unrolled loop goes on: the test, and in it what follows, are graphs of their own. [observed 2.10]"""
        for _ in range(2):
            self._enter(self._open[-1], "rest")
            self._open[-1].is_rest = True
        self._open[-1].is_held = not is_last

    def leave_branch(self, depth: int, values: list[Value], *, fixed: bool) -> None:
        """A branch ends that gave `values` to variables: what follows in its function is a graph of its own.

        The branch itself goes on with it where its condition is `fixed` for the parser; else the function calls it
        after the branch. [observed 2.10]
        """
        branch, parent = self._open[depth], self._open[depth - 1]
        branch.values = values
        del self._open[depth:]
        self._enter(branch if fixed else parent, "rest")
        self._open[-1].is_rest = True
