"""Recording the names that functions look up, in the vendor's order; see `names`."""

import inspect
import sys
import types
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dumpsim.frontends.mindspore._capture.callee import CellBase, PrimitiveBase
from dumpsim.frontends.mindspore._capture.frame import Member

if TYPE_CHECKING:
    from dumpsim.frontends.mindspore._capture.rewrite import Rewritten
    from dumpsim.frontends.mindspore._capture.trace import Tracer

__all__ = ["is_library", "look_up"]

_PACKAGE = str(Path(__file__).resolve().parents[3])


def look_up(tracer: "Tracer", line: int, rewritten: "Callable[..., Rewritten] | None" = None) -> None:
    """Record the names of the current function's segment that contains a line.

    Calls are followed only in functions without control flow; `rewritten` gives the names of the called function.
    """
    frame = tracer.frame
    while frame.mentions and frame.mentions[0][0] < line:
        _, names = frame.mentions.pop(0)
        is_straight = frame.is_straight and rewritten is not None
        _Walk(tracer, rewritten).follow(names, frame.scope, frame.cell, is_straight=is_straight)


class _Walk:
    """Follows the calls of a function before it is captured.

    The vendor evaluates the body of a called function at the call, once for each function. [spec vendor 3.1;
    observed 2.10: a helper that a dead call of a cell reaches first]
    """

    def __init__(self, tracer: "Tracer", rewritten: "Callable[..., Rewritten] | None") -> None:
        self._tracer = tracer
        self._rewritten = rewritten
        self._entered: set[int] = set()

    def follow(self, names: Iterable[tuple[Any, bool]], scope: str, cell: Any, *, is_straight: bool) -> bool:
        """Record names up to the first call that cannot be followed; return whether all were recorded."""
        for named, is_called in names:
            value = _member(cell, named) if isinstance(named, Member) else named
            target = inspect.unwrap(value) if isinstance(value, types.FunctionType) else None
            if not is_called:
                if target is not None:
                    self._tracer.mention(target, scope)
                continue
            is_done = target is not None and is_library(target)
            if not (is_done or (is_straight and self._enter(value, scope, cell))):
                return False
        return True

    def _enter(self, called: Any, scope: str, cell: Any) -> bool:
        """Follow the body of a callable; return whether all of its names were recorded."""
        if id(called) in self._entered:
            return True
        self._entered.add(id(called))
        if isinstance(called, CellBase):
            inner = called.__dict__.get("_scope")
            return self._enter_cell(called, inner if isinstance(inner, str) else scope)
        if isinstance(called, PrimitiveBase):
            return True
        if isinstance(called, types.MethodType):
            if isinstance(called.__self__, CellBase):
                return called.__self__ is cell and self._body(called.__func__, scope, cell)
            return is_library(called.__func__)  # of a weight
        if isinstance(called, types.FunctionType) and called.__name__ != "<lambda>":
            return self._body(called, self._tracer.mention(inspect.unwrap(called), scope), cell)
        return False

    def _enter_cell(self, cell: Any, scope: str) -> bool:
        construct = type(cell).construct
        if not is_library(construct):
            return self._body(construct, scope, cell)
        if type(cell).__name__ == "SequentialCell":
            return all(self._enter(child, scope, cell) for child in cell.name_cells().values())
        assert self._rewritten is not None
        for _, names in self._rewritten(construct).mentions:  # the library's cells use few functions, in any order
            for value, _ in names:
                if isinstance(value, types.FunctionType):
                    self._tracer.mention(inspect.unwrap(value), scope)
        return True

    def _body(self, function: Callable[..., Any], scope: str, cell: Any) -> bool:
        assert self._rewritten is not None
        new = self._rewritten(function)
        is_known = new.is_straight and all(
            self.follow(names, scope, cell, is_straight=True) for _, names in new.mentions
        )
        return is_known and new.names_all  # operators call functions, too, which only the capture knows


def _member(cell: Any, member: Member) -> Any:
    value = cell
    for part in member.parts:
        value = getattr(value, part, None)
    return value


def is_library(function: Callable[..., Any]) -> bool:
    """Whether a function belongs to the front end, to Python or to an installed package, and is only traced."""
    path = function.__code__.co_filename
    if path.startswith(_PACKAGE) and "examples" not in path:
        return True
    module = str(getattr(function, "__module__", "")).partition(".")[0]
    return (module in sys.stdlib_module_names and module != "__main__") or module == "numpy"
