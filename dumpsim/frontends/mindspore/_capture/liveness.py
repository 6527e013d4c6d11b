"""The variables that a function reads after its branches and loops."""

import ast
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from dumpsim.frontends.mindspore._capture.jump import Ending

__all__ = ["in_order", "note_live"]

_Names = frozenset[str]
_NONE: _Names = frozenset()
_FUNCTIONS = (ast.FunctionDef, ast.Lambda)  # they may run later


@dataclass(frozen=True, slots=True, kw_only=True)
class _Loop:
    """The variables read by the next iteration of the loop around a statement, and after the loop."""

    again: _Names
    after: _Names


def note_live(function: ast.FunctionDef) -> None:
    """Set the attribute `live` on the branches and loops of a function.

    For an ``if``, these are the variables that are read after it before they are set; for a loop, those that its body
    sets and that are read at its head. In the vendor's parser they are the parameters of the code after a branch and of
    a loop's header, including dead code. [source function_block.cc]

    Examples
    --------
    >>> function = ast.parse('''
    ... def f(x, y, n):
    ...     if n:
    ...         x = y = n
    ...     y = 1
    ...     return x + y
    ... ''').body[0]
    >>> note_live(function)
    >>> sorted(function.body[0].live)
    ['x']
    """
    inner = [node for node in ast.walk(function) if isinstance(node, _FUNCTIONS) and node is not function]
    always = _loaded(inner)
    _before(function.body, _NONE, None)
    for node in ast.walk(function) if always else ():
        if isinstance(node, ast.If | ast.While) and hasattr(node, "live"):  # not in a function inside
            node.live |= always


def _before(body: Sequence[ast.stmt], live: _Names, loop: _Loop | None) -> _Names:
    """Return the variables that are live before statements, given those that are `live` after them."""
    for statement in reversed(body):
        live = _reads(statement, live, loop)
    return live


def _reads(node: ast.stmt, live: _Names, loop: _Loop | None) -> _Names:
    if isinstance(node, ast.Return):
        return _loaded([node])
    if isinstance(node, Ending) and loop is not None:
        follows = {"": _before(node.rest, loop.again, loop), "break": loop.after, "continue": loop.again}
        sides = zip((node.body, node.orelse), node.ends, strict=True)
        return _loaded([node.test]).union(*(_before(body, follows[end], loop) for body, end in sides))
    if isinstance(node, ast.If):
        node.live = live  # type: ignore[attr-defined]
        return _loaded([node.test]) | _before(node.body, live, loop) | _before(node.orelse, live, loop)
    if isinstance(node, ast.While | ast.For):
        return _of_loop(node, live, loop)
    if isinstance(node, ast.Break | ast.Continue) and loop is not None:
        return loop.after if isinstance(node, ast.Break) else loop.again
    if isinstance(node, ast.With | ast.Try):
        for part in ("body", "orelse", "finalbody"):
            live = live | _before(getattr(node, part, None) or [], live, loop)
        return live | _loaded([node])
    augmented = node.target.id if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name) else None
    return (live - _stored(node)) | _loaded([node]) | (frozenset([augmented]) if augmented else _NONE)


def _of_loop(node: ast.While | ast.For, live: _Names, loop: _Loop | None) -> _Names:
    source = node.test if isinstance(node, ast.While) else node.iter
    set_here = _stored(node.target) if isinstance(node, ast.For) else _NONE
    after = _before(node.orelse, live, loop)
    again = after | _loaded([source])
    while True:
        around = _Loop(again=again, after=live)
        found = again | (_before(node.body, again, around) - set_here)
        if found == again:
            node.live = again & _stored_in(node.body)  # type: ignore[union-attr]
            return again
        again = found


def _loaded(nodes: Iterable[ast.AST]) -> _Names:
    return frozenset(
        name.id
        for node in nodes
        for name in ast.walk(node)
        if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Load)
    )


def _stored_in(body: Iterable[ast.stmt]) -> _Names:
    return frozenset(name for statement in body for name in _stored(statement))


def _stored(node: ast.AST) -> _Names:
    if isinstance(node, ast.FunctionDef):
        return frozenset([node.name])
    return frozenset(
        name.id for name in ast.walk(node) if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store | ast.Del)
    )


def in_order(names: Iterable[str], body: Iterable[ast.stmt]) -> list[str]:
    """Return variables in the order in which statements first read them; the others come last.

    Examples
    --------
    >>> in_order(["x", "y", "z"], ast.parse("z = f(y) + g(x)").body)
    ['y', 'x', 'z']
    """
    read = [name for statement in body for name in _read_in(statement)]
    return sorted(names, key=lambda name: (read.index(name) if name in read else len(read), name))


def _read_in(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
        yield node.id
    for child in ast.iter_child_nodes(node):
        yield from _read_in(child)
