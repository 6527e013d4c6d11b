"""The position of a capture in the script: frames, scopes and source positions."""

import ast
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any

from dumpsim.core.irdoc import SourceLine
from dumpsim.graph.graph import Node
from dumpsim.graph.mindspore.calls import Call

__all__ = ["Frame", "Member", "Mentions", "Position", "Source"]

# the line of the preceding loop, then the objects of the names and whether they are called; see `names.looked_up`
Mentions = tuple[int, tuple[tuple[Any, bool], ...]]


@dataclass(frozen=True, slots=True)
class Member:
    """The parts after ``self`` of a name such as ``self.block.dense``."""

    parts: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """Position of a call in its function: the whole expression and, for calls of functions, the called name.

    `form` is ``augmented`` for ``x += y``, and ``fixed`` within a condition on attributes of the cell only.
    """

    whole: SourceLine
    called: SourceLine
    form: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """The text of a script file, for source lines."""

    path: str
    lines: tuple[str, ...]

    def line(self, node: ast.stmt | ast.expr) -> SourceLine:
        """Return the source line of a syntax node; its code is the node's first line."""
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return SourceLine(
            path=self.path,
            line=node.lineno,
            end_line=node.end_lineno,
            column=node.col_offset,
            end_column=node.end_col_offset,
            code=self.lines[node.lineno - 1].rstrip("\n") if node.lineno <= len(self.lines) else "",
        )


@dataclass(slots=True, kw_only=True, eq=False)
class Frame:
    """One function that is being captured.

    `scope` is the scope of its cell, `call_scope` the scope of the call that entered it. `own_scope` is the scope of
    the operators that the function itself applies, outside branches and Python operators, if it differs. `call` is the
    call of the function; `blocks` counts the branches of the function around the current statement. `is_in_loop` holds
    from the first loop on, because the rest of the function is nested in the vendor's loop functions.
    """

    scope: str
    call_scope: str
    own_scope: str = ""
    definition: SourceLine | None = None
    position: SourceLine | None = None
    blocks: int = 0
    is_in_loop: bool = False
    call: Call | None = None
    cell: Any = None
    function: Any = None
    name: str = ""
    mentions: list[Mentions] = field(default_factory=list)  # names still to be looked up
    is_straight: bool = False  # the function has no branches and loops
    loops: object = field(default_factory=object)  # identifies the unrolled loops of the function
    formals: dict[Node, object] = field(default_factory=dict)  # values that are formal parameters now, with their loops
    instance: Hashable = None  # the function and the types of its arguments
    turns: int = 0  # number of unrolled iterations so far
    is_turning: bool = False  # an unrolled iteration is being captured
    made: set[int] = field(default_factory=set)  # ids of the nodes created by this frame's statements

    def lines(self) -> tuple[SourceLine, ...]:
        """Return the definition and the current expression."""
        return tuple(line for line in (self.definition, self.position) if line is not None)
