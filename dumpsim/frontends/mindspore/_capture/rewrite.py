"""Rewriting of functions from their source, so that control flow on tensors can be captured.

Statements and operators that may involve a tensor of a graph become calls of `control`: ``if``, ``while``, ``and``,
``or``, ``not``, ``a if c else b``, comparisons, arithmetic, subscripts and calls. Branches and loop bodies become local
functions that share the variables of the enclosing function; the rest of the function moves into the other side of a
branch that returns. Names, lines and columns remain those of the source.
"""

import ast
import copy
import inspect
import linecache
import textwrap
import types
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any, TypeVar

from dumpsim.core.errors import CaptureError
from dumpsim.core.irdoc import SourceLine
from dumpsim.frontends.mindspore._capture import jump
from dumpsim.frontends.mindspore._capture.frame import Member, Mentions, Position, Source
from dumpsim.frontends.mindspore._capture.liveness import in_order, note_live
from dumpsim.frontends.mindspore._capture.names import LookUp, looked_up
from dumpsim.frontends.mindspore._capture.resolutions import PROPERTIES

__all__ = ["Rewritten", "is_rewritten", "rewritten"]

_CONTROL, _POSITIONS, _VALUES = "__dumpsim__", "__positions__", "__values__"
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_LOOPS = (ast.For, ast.While)
_CONTROL_FLOW = (*_LOOPS, ast.If, ast.With, ast.Try)
_Tree = TypeVar("_Tree", bound=ast.AST)
_NAMED = ("self", "ops", "mint")  # what attributes of these are called by name
_COMPARED = (ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq, ast.In, ast.NotIn)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewritten:
    """A function that calls `control`, its definition, and the names in its source, see `names.looked_up`.

    `is_straight` says that it has no branches and loops, `names_all` that every function it calls is called by name.
    """

    function: Callable[..., Any]
    definition: SourceLine
    mentions: tuple[Mentions, ...] = ()
    is_straight: bool = False
    names_all: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class _Template:
    """The rewritten code of a function, before it is bound to globals and closure."""

    factory: types.CodeType
    positions: tuple[Position, ...]
    definition: SourceLine
    names: tuple[tuple[int, tuple[LookUp, ...]], ...]
    is_straight: bool
    names_all: bool


def is_rewritten(function: types.FunctionType) -> bool:
    """Whether a function was defined within a rewritten one, and so is itself rewritten."""
    return _CONTROL in function.__code__.co_freevars


def rewritten(function: Callable[..., Any], control: types.ModuleType, *, name: str = "") -> Rewritten:
    """Rewrite a Python function to call `control`, with the same globals, closure and defaults.

    Raises
    ------
    CaptureError
        The source is missing, or contains ``yield``, ``await`` or ``class``; the message names the function.
    """
    target = inspect.unwrap(function)
    if not isinstance(target, types.FunctionType):
        raise CaptureError(f"{name or function!r} is not a Python function and cannot be captured")
    code = target.__code__
    last = max((line for _, _, line in code.co_lines() if line is not None), default=code.co_firstlineno)
    jumps = jump.flagged(inspect.getsourcefile(code) or code.co_filename, code.co_firstlineno, last)
    template = _template(code, code.co_filename, name or target.__qualname__, jumps)
    factory = types.FunctionType(template.factory, target.__globals__)
    cells = [cell.cell_contents for cell in target.__closure__ or ()]
    bound = factory(control, template.positions, *cells)
    bound.__defaults__, bound.__kwdefaults__ = target.__defaults__, target.__kwdefaults__
    known = {**target.__globals__, **dict(zip(code.co_freevars, cells, strict=True))}
    return Rewritten(
        function=bound,
        definition=template.definition,
        mentions=tuple((line, tuple(_mentioned(names, known))) for line, names in template.names),
        is_straight=template.is_straight,
        names_all=template.names_all,
    )


def _mentioned(looked_up: Iterable[LookUp], known: Mapping[str, Any]) -> Iterator[tuple[Any, bool]]:
    """Yield the objects of names such as ``helper`` and ``ops.relu``, and a `Member` for ``self.dense``."""
    library = import_module("dumpsim.frontends.mindspore")
    for (first, *rest), is_called in looked_up:
        if not first and rest:  # called by an operator, or a method of a tensor
            yield getattr(library.ops if rest[0] else library.Tensor, rest[-1], None), is_called
            continue
        if first == "self" and first not in known:
            yield Member(tuple(rest)), is_called
            continue
        value = known.get(first)
        for attribute in rest:
            value = getattr(value, attribute, None) if isinstance(value, types.ModuleType) else None
        yield value, is_called


@cache
def _template(code: types.CodeType, file: str, name: str, jumps: str) -> _Template:
    """Rewrite a function; functions of two files may have equal code."""
    try:
        lines, first = inspect.getsourcelines(code)
        path = inspect.getsourcefile(code) or file
    except (OSError, TypeError) as problem:
        raise CaptureError(
            f"the source of {name} is missing, so it cannot be compiled to a graph", where=file
        ) from problem
    text = "".join(lines)
    shift = len(text) - len(text.lstrip(" \t"))
    tree = ast.parse(textwrap.dedent(text))
    definition = tree.body[0]
    if not isinstance(definition, ast.FunctionDef):
        raise CaptureError(f"{name} is not defined by 'def' and cannot be captured", where=f"{path}:{first}")
    ast.increment_lineno(tree, first - 1)
    for node in ast.walk(tree):
        if hasattr(node, "lineno"):
            node.col_offset += shift  # type: ignore[attr-defined]
            node.end_col_offset += shift  # type: ignore[attr-defined]
        if isinstance(node, (ast.Yield, ast.YieldFrom, ast.Await)):
            raise CaptureError(
                f"{name} has a 'yield' or 'await', which graphs do not support", where=f"{path}:{node.lineno}"
            )
        if isinstance(node, ast.ClassDef):  # [observed 2.10: "Unsupported statement 'ClassDef'"]
            raise CaptureError(f"{name} defines a class, which graphs do not support", where=f"{path}:{node.lineno}")
    if jumps:
        jump.without_jumps(definition, jumps)
    names = looked_up(definition)
    is_straight = not any(isinstance(node, _CONTROL_FLOW) for node in ast.walk(definition))
    methods = [node.func for node in ast.walk(definition) if isinstance(node, ast.Call)]
    names_all = is_straight and not any(_is_implicit(node) and node not in methods for node in ast.walk(definition))
    source = Source(path=path, lines=tuple(linecache.getlines(path)) or tuple(lines))
    rewriter = _Rewriter(source)
    line = source.line(definition)
    body = rewriter.function(definition)
    body.decorator_list, body.returns = [], None
    for argument in ast.walk(body.args):
        if isinstance(argument, ast.arg):
            argument.annotation = None
    # the real defaults are set on the function; these only mark which arguments are optional
    body.args.defaults = [ast.Constant(value=None) for _ in body.args.defaults]
    body.args.kw_defaults = [default and ast.Constant(value=None) for default in body.args.kw_defaults]
    parameters = [_CONTROL, _POSITIONS, *code.co_freevars]
    made_function = ast.Return(value=ast.Name(id=body.name, ctx=ast.Load()))
    factory = _definition("factory", parameters, [body, made_function])
    module = ast.fix_missing_locations(ast.Module(body=[factory], type_ignores=[]))
    compiled = compile(module, path, "exec")
    made = next(c for c in compiled.co_consts if isinstance(c, types.CodeType))
    positions = tuple(rewriter.positions)
    return _Template(
        factory=made, positions=positions, definition=line, names=names, is_straight=is_straight, names_all=names_all
    )


def _is_implicit(node: ast.AST) -> bool:
    """Return whether an expression may call a library function that `names` does not know: ``-x``, ``x.T``."""
    if isinstance(node, (ast.UnaryOp, ast.AugAssign)):
        return True
    return isinstance(node, ast.Attribute) and not (isinstance(node.value, ast.Name) and node.value.id in _NAMED)


def _within(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the node and its descendants, without nested functions and comprehensions."""
    yield node
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, (*_FUNCTIONS, *_COMPREHENSIONS)):
            yield from _within(child)
        elif isinstance(child, ast.FunctionDef):
            yield child


def _stored(nodes: list[ast.stmt]) -> list[str]:
    """Return the variables that statements assign, in order of first assignment."""
    names: dict[str, None] = {}
    for statement in nodes:
        for node in _within(statement):
            if isinstance(node, ast.Name) and isinstance(node.ctx, (ast.Store, ast.Del)):
                names.setdefault(node.id)
            elif isinstance(node, ast.FunctionDef):
                names.setdefault(node.name)
    return list(names)


def _holds(node: ast.AST, *kinds: type[ast.AST]) -> bool:
    return any(isinstance(found, kinds) for found in _within(node))


def _is_fixed(test: ast.expr) -> bool:
    """Whether a condition uses only constants and attributes of ``self``."""
    return all(name.id == "self" for name in ast.walk(test) if isinstance(name, ast.Name)) and not any(
        isinstance(part, ast.Call) for part in ast.walk(test)
    )


def _jumps(statement: ast.stmt) -> bool:
    """Whether a statement leaves the loop around it."""
    if isinstance(statement, ast.Return):
        return True
    if isinstance(statement, (ast.Break, ast.Continue)):
        return True
    if isinstance(statement, _LOOPS):
        return _holds(statement, ast.Return)
    return any(_jumps(child) for child in ast.iter_child_nodes(statement) if isinstance(child, ast.stmt))


def _falls_through(body: list[ast.stmt]) -> bool:
    if not body:
        return True
    last = body[-1]
    if isinstance(last, (ast.Return, ast.Raise)):
        return False
    if isinstance(last, ast.If):
        return _falls_through(last.body) or _falls_through(last.orelse)
    return True


def _close(body: list[ast.stmt]) -> list[ast.stmt]:
    """Move the statements after every branch that may return into it, so that both of its sides return."""
    for i, statement in enumerate(body):
        if isinstance(statement, ast.If) and _holds(statement, ast.Return):
            rest = body[i + 1 :]
            sides = []
            for side in (statement.body, statement.orelse):
                whole = [*side, *copy.deepcopy(rest)] if _falls_through(side) else side
                closed = _close(whole)
                if _falls_through(closed):
                    closed = [*closed, ast.copy_location(ast.Return(value=ast.Constant(value=None)), statement)]
                sides.append(closed)
            closing = ast.copy_location(ast.If(test=statement.test, body=sides[0], orelse=sides[1]), statement)
            closing.returns = True  # type: ignore[attr-defined]
            return [*body[:i], closing]
    return body


class _Subscripted(ast.NodeTransformer):
    """Rewrite ``x[i] = v`` as an assignment to the local variable, since tensors in a graph are immutable values."""

    def __init__(self, names: set[str]) -> None:
        self._names = names

    def visit_body(self, function: ast.FunctionDef) -> None:
        """Rewrite the statements of a function, except those of nested functions."""
        function.body = [self.visit(statement) for statement in function.body]

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return node

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        target = node.targets[0]
        return self._item_assignment(node, target, node.value) if len(node.targets) == 1 else node

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:
        if not isinstance(node.target, ast.Subscript):
            return node
        old = copy.deepcopy(node.target)
        old.ctx = ast.Load()
        return self._item_assignment(node, node.target, _at(ast.BinOp(left=old, op=node.op, right=node.value), node))

    def _item_assignment(self, node: ast.stmt, target: ast.expr, value: ast.expr) -> ast.stmt:
        if not isinstance(target, ast.Subscript) or not isinstance(target.value, ast.Name):
            return node
        name = target.value.id
        if name not in self._names:
            return node
        parts = ast.Tuple(elts=[target.value, target.slice, value], ctx=ast.Load())
        made = _at(ast.Assign(targets=[ast.Name(id=name, ctx=ast.Store())], value=parts), node)
        made.sets_item = True  # type: ignore[attr-defined]
        return made


class _Rewriter(ast.NodeTransformer):
    """Rewriter of one function; nested functions are rewritten separately."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.positions: list[Position] = []
        self._count = 0
        self._jumping = False  # within a loop that has a break, continue or return
        self._first = ""  # first argument of the outermost function
        self._form = ""  # the `form` of new positions

    # -- helpers

    def _name(self, kind: str) -> str:
        self._count += 1
        return f"__{kind}_{self._count}"

    def _position(self, node: ast.stmt | ast.expr, called: ast.expr | None = None) -> ast.expr:
        whole = self.source.line(node)
        name = self.source.line(called) if called is not None else whole
        self.positions.append(Position(whole=whole, called=name, form=self._form))
        return ast.Subscript(
            value=ast.Name(id=_POSITIONS, ctx=ast.Load()),
            slice=ast.Constant(value=len(self.positions) - 1),
            ctx=ast.Load(),
        )

    def _control(self, function: str, *args: ast.expr, keywords: Any = (), at: ast.AST) -> ast.Call:
        attribute = ast.Attribute(value=ast.Name(id=_CONTROL, ctx=ast.Load()), attr=function, ctx=ast.Load())
        return _at(ast.Call(func=attribute, args=list(args), keywords=list(keywords)), at)

    def _lambda(self, body: ast.expr) -> ast.expr:
        empty = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
        return _at(ast.Lambda(args=empty, body=body), body)

    def _local(self, name: str, body: list[ast.stmt], names: list[str], at: ast.AST, *args: str) -> ast.stmt:
        shared: list[ast.stmt] = [ast.Nonlocal(names=names)] if names else []
        return _at(_definition(name, args, [*shared, *body] or [ast.Pass()]), at)

    def _state(self, names: list[str], at: ast.AST) -> tuple[list[ast.stmt], list[ast.expr]]:
        """Return functions that read and write the variables of a branch or loop, and the operands for them."""
        get, put = self._name("get"), self._name("set")
        read = ast.Tuple(elts=[ast.Name(id=n, ctx=ast.Load()) for n in names], ctx=ast.Load())
        write = ast.Tuple(elts=[ast.Name(id=n, ctx=ast.Store()) for n in names], ctx=ast.Store())
        body: list[ast.stmt] = [ast.Assign(targets=[write], value=ast.Name(id=_VALUES, ctx=ast.Load()))]
        functions = [
            self._local(get, [ast.Return(value=read)], [], at),
            self._local(put, body if names else [ast.Pass()], names, at, _VALUES),
        ]
        operands: list[ast.expr] = [
            ast.Name(id=get, ctx=ast.Load()),
            ast.Name(id=put, ctx=ast.Load()),
            _constant(tuple(names)),
        ]
        return functions, operands

    # -- functions

    def function(self, node: ast.FunctionDef) -> ast.FunctionDef:
        """Rewrite the body of a function; all its variables are initialized as unbound."""
        jumping, self._jumping = self._jumping, False
        if not self._first and node.args.args:
            self._first = node.args.args[0].arg
        own = {a.arg for a in ast.walk(node.args) if isinstance(a, ast.arg)}
        _Subscripted({*own, *_stored(node.body)}).visit_body(node)
        declared = {n for s in ast.walk(node) if isinstance(s, (ast.Global, ast.Nonlocal)) for n in s.names}
        names = [n for n in _stored(node.body) if n not in own and n not in declared]
        closed = _close(node.body)
        note_live(_definition(node.name, (), closed))
        body = self._statements(closed)
        unbound: list[ast.stmt] = [
            _at(
                ast.Assign(
                    targets=[ast.Name(id=n, ctx=ast.Store())],
                    value=self._control("Unbound", ast.Constant(value=n), at=node),
                ),
                node,
            )
            for n in names
        ]
        node.body = [*unbound, *body]
        self._jumping = jumping
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return self.function(node)

    def _statements(self, body: list[ast.stmt]) -> list[ast.stmt]:
        out: list[ast.stmt] = []
        for statement in body:
            result = self.visit(statement)
            out.extend(result if isinstance(result, list) else [result])
        return out

    # -- statements

    def visit_If(self, node: ast.If) -> Any:
        if getattr(node, "plain", False):
            return node
        returns = getattr(node, "returns", False)
        fixed = _is_fixed(node.test)
        self._form = "fixed" if fixed and not _holds(node.test, ast.In, ast.NotIn) else ""
        position = self._position(node)
        test = self.visit(node.test)
        self._form = ""
        if not returns and ((self._jumping and _jumps(node)) or _holds(node, ast.Return)):
            test = self._control("leaving", position, test, at=node.test)
            body = self._statements(node.body) or [ast.Pass()]
            return _at(ast.If(test=test, body=body, orelse=self._statements(node.orelse)), node)
        names = _stored([*node.body, *node.orelse])
        then, other = self._name("then"), self._name("else")
        state, operands = self._state(names, node)
        choice = self._control(
            "choose" if returns else "branch",
            position,
            test,
            ast.Name(id=then, ctx=ast.Load()),
            ast.Name(id=other, ctx=ast.Load()),
            *operands,
            *([] if returns else [ast.Constant(value=fixed), _constant(tuple(sorted(getattr(node, "live", ()))))]),
            at=node,
        )
        end: ast.stmt = ast.Return(value=choice) if returns else ast.Expr(value=choice)
        return [
            self._local(then, self._statements(node.body), names, node),
            self._local(other, self._statements(node.orelse) or [ast.Pass()], names, node),
            *state,
            _at(end, node),
        ]

    def visit_Ending(self, node: jump.Ending) -> Any:
        position, test = self._position(node), self.visit(node.test)
        names = _stored([*node.body, *node.orelse, *node.rest])
        functions, operands = self._state(names, node)
        for body in (node.body, node.orelse, node.rest):
            functions.append(self._local(self._name("side"), self._statements(body) or [ast.Pass()], names, node))
            operands.append(ast.Name(id=functions[-1].name, ctx=ast.Load()))  # type: ignore[attr-defined]
        call = self._control("ending", position, test, *operands, _constant(node.ends), at=node)
        return [*functions, _at(ast.Expr(value=call), node)]

    def visit_While(self, node: ast.While) -> Any:
        position = self._position(node)
        if any(_jumps(s) for s in node.body) or node.orelse:
            jumping, self._jumping = self._jumping, True
            test = self._control("leaving", position, self.visit(node.test), at=node.test)
            loop = ast.While(test=test, body=self._statements(node.body), orelse=self._statements(node.orelse))
            self._jumping = jumping
            return _at(loop, node)
        names = _stored(node.body)
        condition, body = self._name("test"), self._name("body")
        state, operands = self._state(names, node)
        call = self._control(
            "loop",
            position,
            ast.Name(id=condition, ctx=ast.Load()),
            ast.Name(id=body, ctx=ast.Load()),
            *operands,
            _constant(tuple(sorted(getattr(node, "live", names)))),
            at=node,
        )
        return [
            self._local(condition, [ast.Return(value=self.visit(node.test))], [], node),
            self._local(body, self._statements(node.body), names, node),
            *state,
            _at(ast.Expr(value=call), node),
        ]

    def visit_For(self, node: ast.For) -> Any:
        jumping, self._jumping = self._jumping, any(_jumps(s) for s in node.body)
        names = in_order(getattr(node, "live", ()), node.body)
        carried = ast.Tuple(elts=[_read(name) for name in names], ctx=ast.Load())
        node.iter = self._control("iterated", self._position(node), self.visit(node.iter), carried, at=node.iter)
        node.body = [self._turn(node, carried, is_last=False), *self._statements(node.body)]
        self._jumping = jumping
        node.orelse = self._statements(node.orelse)
        return [node, self._turn(node, carried, is_last=True)]

    def _turn(self, loop: ast.For, carried: ast.expr, *, is_last: bool) -> ast.stmt:
        """Return the call that marks the start of an iteration, or the end of a loop."""
        call = self._control("turn", copy.deepcopy(carried), ast.Constant(value=is_last), at=loop)
        return _at(ast.Expr(value=call), loop)

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        if getattr(node, "sets_item", False):  # ``x[i] = v``, rewritten by _Subscripted
            parts = [self.visit(part) for part in node.value.elts]  # type: ignore[attr-defined]
            name, index, new = parts
            node.value = self._control("with_item", self._position(node), name, _index(index), new, at=node)
            return node
        value = self.visit(node.value)
        if len(node.targets) == 1:
            target = node.targets[0]
            if isinstance(target, ast.Name):
                value = self._control("named", ast.Constant(value=target.id), value, at=node)
            elif isinstance(target, (ast.Tuple, ast.List)) and all(isinstance(e, ast.Name) for e in target.elts):
                names = tuple(e.id for e in target.elts if isinstance(e, ast.Name))
                value = self._control("named_all", _constant(names), value, at=node)
        node.value = value
        node.targets = [self._target(target) for target in node.targets]
        return node

    def _target(self, target: ast.expr) -> ast.expr:
        """Rewrite the subscripts and attributes within an assignment target."""
        if isinstance(target, ast.Subscript):
            target.value, target.slice = self.visit(target.value), self.visit(target.slice)
        elif isinstance(target, ast.Attribute):
            target.value = self.visit(target.value)
        return target

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:
        if not isinstance(node.target, ast.Name):
            node.value = self.visit(node.value)
            return node
        left = _at(ast.Name(id=node.target.id, ctx=ast.Load()), node)
        whole = _at(ast.BinOp(left=left, op=node.op, right=node.value), node)
        whole.augmented = True  # type: ignore[attr-defined]
        return self.visit_Assign(_at(ast.Assign(targets=[node.target], value=whole), node))

    def visit_Expr(self, node: ast.Expr) -> ast.AST:
        is_call = isinstance(node.value, ast.Call)
        node.value = self.visit(node.value)
        if is_call:
            node.value = self._control("unused", node.value, at=node)
        return node

    def visit_Assert(self, node: ast.Assert) -> ast.AST:
        node.test = self._control("static", self._position(node), self.visit(node.test), at=node)
        return node

    # -- expressions

    def visit_Call(self, node: ast.Call) -> ast.AST:
        if isinstance(node.func, ast.Name) and node.func.id == "super" and not node.args and self._first:
            # a branch is a separate function, in which super() without arguments does not find the cell
            return _at(
                ast.Call(
                    func=node.func,
                    args=[ast.Name(id=n, ctx=ast.Load()) for n in ("__class__", self._first)],
                    keywords=[],
                ),
                node,
            )
        position = self._position(node, node.func)
        function = self.visit(node.func)
        args = [self.visit(a) for a in node.args]
        keywords = [ast.keyword(arg=k.arg, value=self.visit(k.value)) for k in node.keywords]
        return self._control("call", position, function, *args, keywords=keywords, at=node)

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        operator = ast.Constant(value=type(node.op).__name__)
        form, self._form = self._form, "augmented" if getattr(node, "augmented", False) else self._form
        position = self._position(node)
        self._form = form
        return self._control("binary", position, operator, self.visit(node.left), self.visit(node.right), at=node)

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        if len(node.ops) > 1:
            operands = [node.left, *node.comparators]
            pairs: list[ast.expr] = [
                _at(ast.Compare(left=copy.deepcopy(left), ops=[operator], comparators=[right]), node)
                for left, operator, right in zip(operands, node.ops, operands[1:], strict=False)
            ]
            return self.visit_BoolOp(_at(ast.BoolOp(op=ast.And(), values=pairs), node))
        if len(node.ops) != 1 or not isinstance(node.ops[0], _COMPARED):
            self.generic_visit(node)
            return node
        operator = ast.Constant(value=type(node.ops[0]).__name__)
        left, right = self.visit(node.left), self.visit(node.comparators[0])
        return self._control("binary", self._position(node), operator, left, right, at=node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        if isinstance(node.op, ast.Not):
            return self._control("negation", self._position(node), self.visit(node.operand), at=node)
        if isinstance(node.op, ast.USub | ast.Invert):
            operator = ast.Constant(value=type(node.op).__name__)
            return self._control("unary", self._position(node), operator, self.visit(node.operand), at=node)
        self.generic_visit(node)
        return node

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        function = "conjunction" if isinstance(node.op, ast.And) else "disjunction"
        operands = [self._lambda(self.visit(value)) for value in node.values]
        return self._control(function, self._position(node), *operands, at=node)

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        sides = (self._lambda(self.visit(node.body)), self._lambda(self.visit(node.orelse)))
        return self._control("conditional", self._position(node), self.visit(node.test), *sides, at=node)

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        if not isinstance(node.ctx, ast.Load):
            self.generic_visit(node)
            return node
        index = self.visit(node.slice)
        if isinstance(index, (ast.Slice, ast.Tuple)):
            return self._control("item", self._position(node), self.visit(node.value), _index(index), at=node)
        return self._control("item", self._position(node), self.visit(node.value), index, at=node)

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        if not isinstance(node.ctx, ast.Load) or node.attr not in PROPERTIES:
            self.generic_visit(node)
            return node
        position = self._position(node)
        return self._control("attribute", position, self.visit(node.value), ast.Constant(value=node.attr), at=node)

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        node.body = self.visit(node.body)
        return node


def _read(name: str) -> ast.expr:
    return ast.Name(id=name, ctx=ast.Load())


def _index(node: ast.expr) -> ast.expr:
    """Convert an index to an ordinary expression: ``a:b`` becomes ``slice(a, b)``."""
    if isinstance(node, ast.Tuple):
        return _at(ast.Tuple(elts=[_index(e) for e in node.elts], ctx=ast.Load()), node)
    if isinstance(node, ast.Slice):
        parts = [part if part is not None else ast.Constant(value=None) for part in (node.lower, node.upper, node.step)]
        maker = ast.Attribute(value=ast.Name(id=_CONTROL, ctx=ast.Load()), attr="slice", ctx=ast.Load())
        return _at(ast.Call(func=maker, args=list(parts), keywords=[]), node)
    return node


def _definition(name: str, arguments: Iterable[str], body: list[ast.stmt]) -> ast.FunctionDef:
    """Return ``def name(arguments): body``."""
    args = ast.arguments(
        posonlyargs=[], args=[ast.arg(arg=a) for a in arguments], kwonlyargs=[], kw_defaults=[], defaults=[]
    )
    made = ast.FunctionDef(name=name, args=args, body=body, decorator_list=[])
    if "type_params" in made._fields:  # since Python 3.12
        made.type_params = []  # type: ignore[attr-defined]
    return made


def _constant(value: tuple[str, ...]) -> ast.expr:
    """Return a tuple of names as a constant, which the compiler accepts although no source code can produce it."""
    return ast.Constant(value=value)  # type: ignore[arg-type]


def _at(node: _Tree, source: ast.AST) -> _Tree:
    return ast.fix_missing_locations(ast.copy_location(node, source))
