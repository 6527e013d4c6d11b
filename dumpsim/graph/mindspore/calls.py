"""The calls of a capture: which function created which nodes, in what order.

A captured graph is flat; the vendor's compiler starts with one graph for each function and inlines them. Results that
depend on the order of inlining (`gradient_scope`) need the functions.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from dumpsim.graph.graph import Node, Value

__all__ = ["Call", "CallStack"]


@dataclass(eq=False, slots=True, kw_only=True)
class Call:
    """A call of a function (or a branch, or the code after a branch), with its operators and calls in order.

    Attributes
    ----------
    name : str
    entries : list of Node and Call
    values : list of Value
        The values that a branch assigns to variables.
    is_rest : bool
        Whether it is the code after a branch: the last entry of its function, whose result is that of the function.
    is_held : bool
        Whether the result waits in a ``Depend`` for an otherwise unused value: the counter of an unrolled loop, or a
        statement that is a call without a tensor as its result. [source function_block.cc; observed 2.10]
    """

    name: str = ""
    entries: "list[Node | Call]" = field(default_factory=list)
    values: list[Value] = field(default_factory=list)
    is_rest: bool = False
    is_held: bool = False

    @property
    def tail(self) -> "Call | None":
        """The call whose result is that of this one: the code after a branch, or a branch that continues with it."""
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
    """The stack of open calls.

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
        """Add a node to the innermost call."""
        self._open[-1].entries.append(node)

    def latest(self) -> Call | None:
        """Return the last call made by the innermost open one."""
        for entry in reversed(self._open[-1].entries):
            if isinstance(entry, Call):
                return entry
        return None

    @contextmanager
    def calling(self, name: str) -> Iterator[None]:
        """Record nodes inside as those of a call."""
        depth = self.enter(name)
        try:
            yield
        finally:
            self.leave(depth)

    def enter(self, name: str) -> int:
        """Begin a call; return the argument for `leave`."""
        self._enter(self._open[-1], name)
        return len(self._open) - 1

    def _enter(self, parent: Call, name: str) -> None:
        call = Call(name=name)
        parent.entries.append(call)
        self._open.append(call)

    def leave(self, depth: int) -> None:
        """End a call, with the branches that are open in it."""
        del self._open[depth:]

    def turn(self, *, is_last: bool) -> None:
        """Begin a round of an unrolled loop: the test, and in it the rest, are separate graphs. [observed 2.10]"""
        for _ in range(2):
            self._enter(self._open[-1], "rest")
            self._open[-1].is_rest = True
        self._open[-1].is_held = not is_last

    def leave_branch(self, depth: int, values: list[Value], *, fixed: bool) -> None:
        """End a branch that assigns `values` to variables: the code after it in its function is a separate graph.

        The branch itself continues with that code if its condition is `fixed` for the parser; otherwise the function
        calls the code after the branch. [observed 2.10]
        """
        branch, parent = self._open[depth], self._open[depth - 1]
        branch.values = values
        del self._open[depth:]
        self._enter(branch if fixed else parent, "rest")
        self._open[-1].is_rest = True
