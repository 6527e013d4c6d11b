"""The order in which the vendor's compiler looks up the names of a function.

It starts at the result: first the function of a call, then the arguments, then the call itself, and with it the body of
the called function. So a function that is applied last is looked up before the cells within its argument.
[spec vendor 3.1; observed 2.10: helpers called in the root and in cells] Unused values come before that, since the
result waits for them: first those of variables that are set again, then the variables in the order of a hash table.
[source function_block.cc WriteVariable, FindIsolatedNodes, AttachIsolatedNodesBeforeReturn; observed 2.10]
"""

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from dumpsim.core.hashorder import hash_order

__all__ = ["LookUp", "looked_up"]

# The parts of a name, and whether it is called now instead of looked up. The library's functions that operators and
# methods call have an empty part before their name, methods of tensors a second one.
LookUp = tuple[tuple[str, ...], bool]

# operators whose code calls a function of ops [source ops/composite/multitype_ops of the wheel]
_OPERATORS = MappingProxyType(
    {
        "Add": "add",
        "BitAnd": "bitwise_and",
        "BitOr": "bitwise_or",
        "BitXor": "bitwise_xor",
        "Eq": "equal",
        "Gt": "greater",
        "NotEq": "not_equal",
    }
)
_CONVERSIONS = ("bool", "float", "int", "len", "range", "str", "tuple")
_NUMBERS = ("dtype", "itemsize", "nbytes", "ndim", "shape", "size")  # properties of tensors that are no tensors


@dataclass(eq=False, slots=True)
class _Variable:
    """The values of a variable, each with the meaning of the names in it at that point."""

    values: "list[tuple[ast.expr, Mapping[str, _Variable | None]]]"
    before: "tuple[_Variable | None, ...]" = ()  # possible variables after a branch or loop
    is_known: bool = False


_Names = dict[str, _Variable | None]


class _Unused:
    """The values of variables that nobody has read so far.

    Parameters
    ----------
    names : iterable of str
        The function's arguments, or the variables before a loop.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self._unread: dict[str, _Variable | None] = dict.fromkeys(names)
        self._hidden: list[_Variable | None] = []  # of variables that were set again

    def read(self, *statements: ast.stmt) -> None:
        """Note the variables that statements read."""
        for node in (node for statement in statements for node in ast.walk(statement)):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in self._unread:
                self._unread[node.id] = None

    def write(self, name: str, variable: _Variable | None) -> None:
        """Note the new value of a variable; None if nobody needs to evaluate it."""
        self._hidden.append(self._unread.get(name))
        self._unread[name] = None if name == "_" else variable

    def values(self) -> Iterator[_Variable]:
        """Yield the unused values in the order in which the result waits for them."""
        ordered = [self._unread[name] for name in hash_order(self._unread)]
        yield from (variable for variable in (*self._hidden, *ordered) if variable is not None)


def looked_up(function: ast.FunctionDef) -> tuple[tuple[int, tuple[LookUp, ...]], ...]:
    """Return the global names of a function in the order in which they are looked up and called.

    Branches are treated as straight-line code. The names after a loop are looked up when the loop is done, so there is
    one group of names for each segment: the last line of the preceding loop, and the names. After a return within a
    branch, a function has no further names.

    Examples
    --------
    >>> (tree,) = ast.parse("def f(self, x): return ops.relu(self.cell(ops.exp(x)))").body
    >>> [".".join(name) for name, is_called in looked_up(tree)[0][1] if not is_called]
    ['ops.relu', 'ops.exp']

    Unused variables come first:

    >>> (tree,) = ast.parse("def f(x):\\n    y = ops.tanh(x)\\n    z = ops.exp(x)\\n    return ops.relu(y)").body
    >>> [".".join(name) for name, is_called in looked_up(tree)[0][1] if not is_called]
    ['ops.exp', 'ops.relu', 'ops.tanh']
    """
    arguments = function.args
    given = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
    names: _Names = {argument.arg: None for argument in given if argument is not None}
    found: list[tuple[int, tuple[LookUp, ...]]] = []
    unused = _Unused(names)
    line = 0
    for statement in function.body:
        if isinstance(statement, ast.Return):
            unused.read(statement)
            before = [name for variable in unused.values() for name in _follow(variable)]
            result = _walk(statement.value, names) if statement.value is not None else ()
            found.append((line, (*before, *result)))
            break
        if isinstance(statement, (ast.For, ast.While)):
            begin = statement.iter if isinstance(statement, ast.For) else statement.test
            unused.read(*function.body[function.body.index(statement) :])
            before = [name for variable in unused.values() for name in _follow(variable)]
            before += [*_walk(begin, names), *(name for value in names.values() for name in _follow(value))]
            found.append((line, tuple(before)))
            line = statement.end_lineno or statement.lineno
            names = dict.fromkeys([*names, *_stored(statement)])
            unused = _Unused(names)
        elif not _assign(statement, names):
            break
        else:
            unused.read(statement)
            if isinstance(statement, ast.Assign):
                is_call = not isinstance(statement.value, (ast.Tuple, ast.List, ast.Dict, ast.Constant, ast.Name))
                for each in (each for target in statement.targets for each in _targets(target)):
                    unused.write(each.id, names[each.id] if is_call else None)
    return tuple(found)


def _stored(statement: ast.stmt) -> Iterator[str]:
    """Yield the variables that a statement sets."""
    for node in ast.walk(statement):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id


def _assign(statement: ast.stmt, names: _Names) -> bool:
    """Record the assignments of a statement; return whether the statement is supported."""
    if isinstance(statement, ast.Assign):
        variable = _Variable([(statement.value, dict(names))])
        names.update((each.id, variable) for target in statement.targets for each in _targets(target))
    elif isinstance(statement, ast.AugAssign):
        variable = _Variable([(statement.target, dict(names)), (statement.value, dict(names))])
        names.update((each.id, variable) for each in _targets(statement.target))
    elif isinstance(statement, ast.If):
        sides = [dict(names), dict(names)]
        for body, side in zip((statement.body, statement.orelse), sides, strict=True):
            if not all(_assign(each, side) for each in body):
                return False
        for name in dict.fromkeys([*sides[0], *sides[1]]):
            found = tuple(side[name] for side in sides if name in side)
            if any(each is not names.get(name) for each in found):
                names[name] = _Variable([], found)
    else:
        return isinstance(statement, (ast.Expr, ast.Pass))
    return True


def _targets(target: ast.expr) -> Iterator[ast.Name]:
    if isinstance(target, ast.Name):
        yield target
    elif isinstance(target, (ast.Tuple, ast.List)):
        for each in target.elts:
            yield from _targets(each)


def _walk(node: ast.expr, names: Mapping[str, _Variable | None]) -> Iterator[LookUp]:
    parts = _dotted(node)
    if parts and parts[0] not in names:
        yield parts, False
    elif parts:
        yield from _follow(names[parts[0]])
    elif isinstance(node, ast.Call):
        for part in (node.func, *node.args, *(keyword.value for keyword in node.keywords)):
            yield from _walk(part, names)
        called = _dotted(node.func)
        if called and (called[0] not in names or (called[0] == "self" and names["self"] is None)):
            yield called, True
        elif not _is_method_of_tensor(node.func):
            yield ("",), True
        else:
            assert isinstance(node.func, ast.Attribute)
            yield ("", "", node.func.attr), False
    elif isinstance(node, ast.Attribute):
        yield from _walk(node.value, names)
    elif isinstance(node, (ast.BinOp, ast.UnaryOp, ast.Compare, ast.Subscript, ast.Tuple, ast.List, ast.Starred)):
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                yield from _walk(child, names)
        yield from _called_by_operators(node, names)
    elif not isinstance(node, ast.Constant):
        yield ("",), True  # a separate function


def _called_by_operators(node: ast.expr, names: Mapping[str, _Variable | None]) -> Iterator[LookUp]:
    """Yield the functions that operators call for tensors."""
    operators: list[ast.AST] = []
    if isinstance(node, ast.BinOp) and any(_may_be_tensor(one, names) for one in (node.left, node.right)):
        operators = [node.op]
    elif isinstance(node, ast.Compare) and any(_may_be_tensor(one, names) for one in (node.left, *node.comparators)):
        operators = list(node.ops)
    for operator in operators:
        name = _OPERATORS.get(type(operator).__name__)
        if name is not None:
            yield ("", name), False


def _may_be_tensor(node: ast.expr, names: Mapping[str, _Variable | None]) -> bool:
    """Whether an expression may be a tensor; members of a cell are taken for numbers."""
    if isinstance(node, ast.Name):
        variable = names.get(node.id)
        return node.id in names and (variable is None or any(_may_be_tensor(one, at) for one, at in variable.values))
    if isinstance(node, ast.Attribute):
        return node.attr not in _NUMBERS and _dotted(node)[:1] != ("self",) and _may_be_tensor(node.value, names)
    if isinstance(node, ast.Subscript):
        return _may_be_tensor(node.value, names)
    if isinstance(node, ast.BinOp):
        return _may_be_tensor(node.left, names) or _may_be_tensor(node.right, names)
    if isinstance(node, ast.UnaryOp):
        return _may_be_tensor(node.operand, names)
    if isinstance(node, ast.Compare):
        return any(_may_be_tensor(one, names) for one in (node.left, *node.comparators))
    return isinstance(node, ast.Call) and (not isinstance(node.func, ast.Name) or node.func.id not in _CONVERSIONS)


def _is_method_of_tensor(called: ast.expr) -> bool:
    """Whether a method of a variable or of a result is called, which is taken for a tensor's method."""
    if not isinstance(called, ast.Attribute):
        return False
    value: ast.expr = called
    while isinstance(value, ast.Attribute):
        value = value.value
    return not isinstance(value, ast.Name) or value.id != "self"


def _follow(variable: _Variable | None) -> Iterator[LookUp]:
    if variable is None or variable.is_known:
        return
    variable.is_known = True
    for value, around in variable.values:
        yield from _walk(value, around)
    for each in variable.before:
        yield from _follow(each)


def _dotted(node: ast.expr) -> tuple[str, ...]:
    """Return the parts of ``a.b.c``, or an empty tuple for other expressions."""
    if isinstance(node, ast.Attribute):
        before = _dotted(node.value)
        return (*before, node.attr) if before else ()
    return (node.id,) if isinstance(node, ast.Name) else ()
