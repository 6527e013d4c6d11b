"""Where in the script a capture is: frames, scopes and source positions."""

import ast
from dataclasses import dataclass, field
from typing import Any

from dumpsim.core.irdoc import SourceLine
from dumpsim.graph.graph import Node
from dumpsim.graph.mindspore.calls import Call

__all__ = ["Frame", "Mentions", "Position", "Source"]

# the line of the loop before, then what the names stand for, and whether it is called; see `names.looked_up`
Mentions = tuple[int, tuple[tuple[Any, bool], ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """Place of a call in its function: the whole expression and, for calls of functions, the called name.

    `form` is ``augmented`` for ``x += y``, ``fixed`` inside of a condition that the attributes of the cell decide.
    """

    whole: SourceLine
    called: SourceLine
    form: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Text of a script file, for source lines."""

    path: str
    lines: tuple[str, ...]

    def line(self, node: ast.AST, *, until: ast.AST | None = None) -> SourceLine:
        """The source line of a syntax node; its code is the first line as written."""
        last = until if until is not None else node
        first = int(getattr(node, "lineno", 1))
        code = self.lines[first - 1].rstrip("\n") if first <= len(self.lines) else ""
        return SourceLine(
            path=self.path,
            line=first,
            end_line=int(getattr(last, "end_lineno", None) or first),
            column=int(getattr(node, "col_offset", -1)),
            end_column=int(getattr(last, "end_col_offset", -1) or -1),
            code=code,
        )


@dataclass(slots=True, kw_only=True, eq=False)
class Frame:
    """One function that is being captured.

    `scope` is that of the cell it belongs to, `call_scope` that of the call that entered it; `own_scope` is that of the
    operators that are the function's own, in no branch and not of a Python operator, where it is another; `call` is its
    own call; `blocks` counts the branches of the function that
    enclose the present statement.
    """

    scope: str
    call_scope: str
    own_scope: str = ""
    definition: SourceLine | None = None
    position: SourceLine | None = None
    blocks: int = 0
    call: Call | None = None
    cell: Any = None
    function: Any = None
    name: str = ""
    mentions: list[Mentions] = field(default_factory=list)  # what is still to be looked up
    loops: object = field(default_factory=object)  # stands for the unrolled loops of the function
    formals: dict[Node, object] = field(default_factory=dict)  # what functions of which loops take as parameters now
    made: set[int] = field(default_factory=set)  # ids of the nodes that this frame's own statements made

    def lines(self) -> tuple[SourceLine, ...]:
        """The definition and the present expression."""
        return tuple(line for line in (self.definition, self.position) if line is not None)
