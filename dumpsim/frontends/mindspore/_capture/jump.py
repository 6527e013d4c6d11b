"""``break``, ``continue`` and ``return`` in loops, under conditions on tensors.

A loop body is recorded once, so it cannot be left. If a jump depends on a tensor of the graph, the function is captured
again with rewritten jumps. In a ``while`` with ``continue`` only, the statements after a branch that may jump are moved
into the sides that do not, so that ``continue`` is the end of the body. Otherwise a jump sets a flag, the statements
after it run only if the flag is not set, and the loop's condition tests the flag. A flag that is known at capture adds
nothing to the graph, since Python evaluates its tests. ``return`` stores its value in an extra variable.
"""

import ast
import copy
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

from dumpsim.core.errors import CaptureError

__all__ = ["RESULT", "Ending", "JumpError", "flagged", "flagging", "without_jumps"]

RESULT = "__result__"
_RETURNS = "__returns__"
_Tree = TypeVar("_Tree", bound=ast.AST)
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)

_flagged: ContextVar[frozenset[tuple[str, int]]] = ContextVar("flagged", default=frozenset())


class Ending(ast.If):
    """A branch at the end of a loop's body, with the jumps that end its sides; `rest` follows the side without jump."""

    _fields = (*ast.If._fields, "rest")
    ends: tuple[str, str]
    rest: list[ast.stmt]


class JumpError(CaptureError):
    """A jump depends on a tensor of the graph; the capture restarts with flags in its function."""

    def __init__(self, path: str, line: int, *, flags: bool = False) -> None:
        super().__init__(
            "a condition on a tensor of the graph cannot decide 'break', 'continue' or 'return' in a loop",
            where=f"{path}:{line}",
        )
        self.location = (path, -line if flags else line)


def flagged(path: str, first: int, last: int) -> str:
    """Return how to rewrite the jumps in these lines of a file: "" (not), ``ends`` of sides, or ``flags``."""
    found = [line for where, line in _flagged.get() if where == path and first <= abs(line) <= last]
    return "" if not found else "flags" if min(found) < 0 else "ends"


@contextmanager
def flagging(locations: frozenset[tuple[str, int]]) -> Iterator[None]:
    """Rewrite the jumps of the functions that contain these locations."""
    token = _flagged.set(locations)
    try:
        yield
    finally:
        _flagged.reset(token)


def without_jumps(function: ast.FunctionDef, how: str) -> None:
    """Rewrite the jumps in a function's loops and nested functions; `how` is the result of `flagged`."""
    function.body = _Flags(how).statements(function.body)


class _Flags:
    """Rewriter of the loops of one function."""

    def __init__(self, how: str) -> None:
        self._how = how
        self._count = 0

    def statements(self, body: list[ast.stmt]) -> list[ast.stmt]:
        """Rewrite statements outside loops."""
        return [new for statement in body for new in self._outside(statement)]

    def _outside(self, statement: ast.stmt) -> list[ast.stmt]:
        if isinstance(statement, ast.FunctionDef):
            without_jumps(statement, self._how)
        elif isinstance(statement, ast.If | ast.With | ast.Try):
            for name in ("body", "orelse", "finalbody"):
                if getattr(statement, name, None):
                    setattr(statement, name, self.statements(getattr(statement, name)))
        elif isinstance(statement, ast.For | ast.While) and _can_rewrite(statement):
            returns = any(_holds(s, ast.Return) for s in statement.body)
            new = self._loop(statement)
            if not returns:
                return new
            result = ast.Return(value=_name(RESULT, statement))
            leave = ast.If(test=_name(_RETURNS, statement), body=[_at(result, statement)], orelse=[])
            return [_assign(_RETURNS, False, statement), *new, _at(leave, statement)]
        elif isinstance(statement, ast.For | ast.While):
            statement.body = self.statements(statement.body)  # nested loops may have jumps
        return [statement]

    def _loop(self, loop: ast.For | ast.While) -> list[ast.stmt]:
        """Return the statements that set the flags of a loop, and the loop without jumps."""
        if self._how == "ends" and isinstance(loop, ast.While) and _ends_sides(loop):
            loop.body = self._with_ends(loop.body)
            return [loop]
        if _is_only_continued(loop):
            loop.body = _closed(self.statements(loop.body))
            return [loop]
        self._count += 1
        stop, skip = f"__break_{self._count}__", f"__continue_{self._count}__"
        leaving = [name for name, used in ((stop, _jumps(loop, ast.Break)), (_RETURNS, _returns(loop))) if used]
        continues = _jumps(loop, ast.Continue)
        body = self._guarded(loop.body, stop, skip)
        if continues:
            body = [_assign(skip, False, loop), *body]
        before: list[ast.stmt] = [_assign(stop, False, loop)] if stop in leaving else []
        if isinstance(loop, ast.While):
            if leaving:
                test = ast.BoolOp(op=ast.And(), values=[*(_not(name, loop) for name in leaving), loop.test])
                loop.test = _at(test, loop.test)
            loop.body = body
        elif leaving:
            guard = _at(ast.If(test=_none_of(leaving, loop), body=body, orelse=[]), loop)
            loop.body = [guard, *(_leave_if_known(name, loop) for name in leaving)]
        else:
            loop.body = body
        return [*before, loop]

    def _with_ends(self, body: list[ast.stmt]) -> list[ast.stmt]:
        """Return a loop's body that ends at the first branch that may jump, with the code after it as `rest`."""
        for i, statement in enumerate(body):
            if isinstance(statement, ast.If) and _jumps_at_all(statement):
                sides = [
                    self.statements([s for s in side if not isinstance(s, ast.Break | ast.Continue)])
                    for side in (statement.body, statement.orelse)
                ]
                rest = self._with_ends(body[i + 1 :])
                branch = Ending(test=statement.test, body=sides[0], orelse=sides[1])
                branch.rest = rest
                branch.ends = _end_of(statement.body), _end_of(statement.orelse)
                return [*self.statements(body[:i]), ast.copy_location(branch, statement)]
        return self.statements(body)

    def _guarded(self, body: list[ast.stmt], stop: str, skip: str) -> list[ast.stmt]:
        """Return the statements of a loop's body; those after a jump run only if its flag is not set."""
        out: list[ast.stmt] = []
        for i, statement in enumerate(body):
            flags = _flags_of(statement, stop, skip)
            out += self._inside(statement, stop, skip)
            if flags:
                rest = self._guarded(body[i + 1 :], stop, skip)
                if rest:
                    out.append(_at(ast.If(test=_none_of(flags, statement), body=rest, orelse=[]), statement))
                break
        return out

    def _inside(self, statement: ast.stmt, stop: str, skip: str) -> list[ast.stmt]:
        if isinstance(statement, ast.Break):
            return [_assign(stop, True, statement)]
        if isinstance(statement, ast.Continue):
            return [_assign(skip, True, statement)]
        if isinstance(statement, ast.Return):
            value = statement.value or _at(ast.Constant(value=None), statement)
            keep = _at(ast.Assign(targets=[_name(RESULT, statement, ast.Store())], value=value), statement)
            return [keep, _assign(_RETURNS, True, statement)]
        if isinstance(statement, ast.If):
            statement.body = self._guarded(statement.body, stop, skip)
            statement.orelse = self._guarded(statement.orelse, stop, skip)
        elif isinstance(statement, ast.For | ast.While) and _can_rewrite(statement):
            return self._loop(statement)
        elif isinstance(statement, ast.For | ast.While):
            statement.body = self.statements(statement.body)
        elif isinstance(statement, ast.FunctionDef):
            without_jumps(statement, self._how)
        return [statement]


def _ends_sides(loop: ast.While) -> bool:
    """Whether each jump of a loop ends one side of a branch in its body, and the other side does not jump."""
    branches = [s for s in loop.body if isinstance(s, ast.If) and _jumps_at_all(s)]
    others = [s for s in loop.body if s not in branches]
    if _returns(loop) or any(map(_jumps_at_all, others)):
        return False
    return all(
        not any(_jumps_at_all(inner) for side in (s.body, s.orelse) for inner in side[: -1 if _end_of(side) else None])
        and bool(_end_of(s.body)) != bool(_end_of(s.orelse))
        for s in branches
    )


def _end_of(side: list[ast.stmt]) -> str:
    last = side[-1] if side else None
    return "break" if isinstance(last, ast.Break) else "continue" if isinstance(last, ast.Continue) else ""


def _jumps_at_all(statement: ast.stmt) -> bool:
    return _jumps_in(statement, ast.Break) or _jumps_in(statement, ast.Continue)


def _is_only_continued(loop: ast.For | ast.While) -> bool:
    """Whether all jumps of a loop are ``continue`` in branches."""
    if not isinstance(loop, ast.While) or _returns(loop) or _jumps(loop, ast.Break):
        return False
    return all(_continues_in_branches(statement) for statement in loop.body)


def _continues_in_branches(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.If):
        return all(_continues_in_branches(inner) for inner in (*statement.body, *statement.orelse))
    return isinstance(statement, ast.Continue) or not _jumps_in(statement, ast.Continue)


def _closed(body: list[ast.stmt]) -> list[ast.stmt]:
    """Return a loop's body without ``continue``: code after a branch that may jump moves into the other sides."""
    for i, statement in enumerate(body):
        if isinstance(statement, ast.Continue):
            return body[:i]
        if isinstance(statement, ast.If) and _jumps_in(statement, ast.Continue):
            rest = body[i + 1 :]
            sides = [_closed([*side, *copy.deepcopy(rest)]) for side in (statement.body, statement.orelse)]
            then = sides[0] or [_at(ast.Pass(), statement)]
            return [*body[:i], _at(ast.If(test=statement.test, body=then, orelse=sides[1]), statement)]
    return body


def _can_rewrite(loop: ast.For | ast.While) -> bool:
    return not loop.orelse and (_jumps(loop, ast.Break) or _jumps(loop, ast.Continue) or _returns(loop))


def _holds(node: ast.AST, *kinds: type[ast.AST]) -> bool:
    """Whether a statement contains a node of the given kinds, outside nested functions."""
    if isinstance(node, _SCOPES):
        return False
    return isinstance(node, kinds) or any(_holds(child, *kinds) for child in ast.iter_child_nodes(node))


def _returns(loop: ast.For | ast.While) -> bool:
    return any(_holds(statement, ast.Return) for statement in loop.body)


def _jumps(loop: ast.For | ast.While, kind: type[ast.stmt]) -> bool:
    """Whether the loop has such a jump, not counting jumps of nested loops."""
    return any(_jumps_in(statement, kind) for statement in loop.body)


def _jumps_in(node: ast.AST, kind: type[ast.stmt]) -> bool:
    if isinstance(node, (*_SCOPES, ast.For, ast.While)):
        return False
    return isinstance(node, kind) or any(_jumps_in(child, kind) for child in ast.iter_child_nodes(node))


def _flags_of(statement: ast.stmt, stop: str, skip: str) -> list[str]:
    """Return the flags that a statement may set."""
    found = [(stop, _jumps_in(statement, ast.Break)), (skip, _jumps_in(statement, ast.Continue))]
    return [name for name, used in (*found, (_RETURNS, _holds(statement, ast.Return))) if used]


def _name(name: str, at: ast.AST, context: ast.expr_context | None = None) -> ast.expr:
    return _at(ast.Name(id=name, ctx=context or ast.Load()), at)


def _assign(name: str, value: bool, at: ast.AST) -> ast.stmt:
    return _at(ast.Assign(targets=[_name(name, at, ast.Store())], value=ast.Constant(value=value)), at)


def _not(name: str, at: ast.AST) -> ast.expr:
    return _at(ast.UnaryOp(op=ast.Not(), operand=_name(name, at)), at)


def _none_of(names: list[str], at: ast.AST) -> ast.expr:
    tests = [_not(name, at) for name in names]
    return tests[0] if len(tests) == 1 else _at(ast.BoolOp(op=ast.And(), values=tests), at)


def _leave_if_known(name: str, at: ast.AST) -> ast.stmt:
    """Return a statement that leaves an unrolled loop when its flag is known to be set."""
    test = ast.Compare(left=_name(name, at), ops=[ast.Is()], comparators=[ast.Constant(value=True)])
    leave = _at(ast.If(test=test, body=[ast.Break()], orelse=[]), at)
    leave.plain = True  # type: ignore[attr-defined]
    return leave


def _at(node: _Tree, source: ast.AST) -> _Tree:
    return ast.fix_missing_locations(ast.copy_location(node, source))
