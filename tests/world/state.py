"""Finds module-level state of the process, which belongs in a rank context.

What may stand at the level of a module or class is constant, all the way down: numbers, strings, functions, classes,
tuples, frozensets, `MappingProxyType`, compiled patterns, frozen dataclasses, read-only arrays. Everything unknown is
refused. Two kinds of objects change and are still no state of a rank:

* a `ContextVar`: it holds what is true during a call (the capture under way, the cell that runs), is bound by `with`
  and reset at its end, and every thread and every greenlet has values of its own;
* a cache of a function whose result depends on its arguments alone: `reads_rank` refuses a cached function that asks
  for the rank, the session, the script's context or the environment.

A `MultitypeFuncGraph` is a table of overloads that the script's language fills by decorators, as the vendor's does. It
counts as constant where all of its functions are of the module that made it, since a function body that registered more
would be found (`mutations`).
"""

import ast
import datetime
import enum
import functools
import inspect
import logging
import re
import struct
import types
import typing
from collections.abc import Iterator
from contextvars import Context, ContextVar
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

__all__ = ["findings"]

_PLAIN = (
    *(type(None), bool, int, float, complex, str, bytes, range, slice, type(...)),
    *(types.ModuleType, types.FunctionType, types.BuiltinFunctionType, types.CodeType, types.GenericAlias),
    *(types.UnionType, types.MemberDescriptorType, types.GetSetDescriptorType, types.WrapperDescriptorType),
    *(types.MethodDescriptorType, property, staticmethod, classmethod, functools.cached_property),
    *(re.Pattern, struct.Struct, datetime.timezone, enum.Enum, np.dtype, np.generic, inspect.Signature),
    *(typing.TypeVar, typing.ParamSpec, logging.Logger),
)
_OTHERS = frozenset([("_collections", "_tuplegetter"), ("torch", "dtype")])  # fields of a NamedTuple
_CHANGES = frozenset(
    [
        *("add", "append", "appendleft", "clear", "discard", "extend", "insert", "pop", "popitem", "popleft", "put"),
        *("register", "remove", "reverse", "setdefault", "sort", "update"),
    ]
)
_OF_RANK = frozenset(["current", "root", "Session", "environ", "getenv", "get_context", "current_session", "_state"])


def findings(module: types.ModuleType, source: str) -> list[str]:
    """Return the state of a module, one line each."""
    tree = ast.parse(source)
    found = [*mutations(tree), *reads_rank(tree)]
    for path, owner in _owners(tree, module):
        places = dict(_assigned(path))
        names = places if owner is not module else set(vars(module)) - _imported(tree)
        for name in sorted(name for name in names if not _is_dunder(name) and not _is_config(name, owner)):
            reason = _refused(vars(owner).get(name), module.__name__)
            if reason:
                found.append(f"line {places.get(name, 1)}: {name} holds {reason}")
    return found


# ------------------------------------------------------------------- values
def _owners(tree: ast.Module, module: types.ModuleType) -> Iterator[tuple[list[ast.stmt], Any]]:
    """Yield the bodies of the module and of its classes, with their objects."""
    yield tree.body, module
    pending = [(statement, module) for statement in _statements(tree.body)]
    while pending:
        statement, owner = pending.pop()
        if isinstance(statement, ast.ClassDef):
            made = vars(owner).get(statement.name)
            if isinstance(made, type):
                yield statement.body, made
                pending += [(inner, made) for inner in _statements(statement.body)]


def _is_config(name: str, owner: Any) -> bool:
    """Whether it is the config of a pydantic model, which pydantic reads when it creates the class."""
    return name == "model_config" and hasattr(owner, "model_fields")


def _statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements that run with a body, including those under `if`, `try`, `for` and `with`."""
    for statement in body:
        yield statement
        if not isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            for part in ("body", "orelse", "finalbody"):
                yield from _statements(getattr(statement, part, []))
            for handler in getattr(statement, "handlers", []):
                yield from _statements(handler.body)


def _assigned(body: list[ast.stmt]) -> Iterator[tuple[str, int]]:
    for statement in _statements(body):
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            continue
        for node in ast.walk(statement):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                yield node.id, node.lineno


def _imported(tree: ast.Module) -> set[str]:
    imports = (node for node in _statements(tree.body) if isinstance(node, (ast.Import, ast.ImportFrom)))
    return {alias.asname or alias.name.split(".")[0] for node in imports for alias in node.names}


def _is_dunder(name: str) -> bool:
    """Whether a name is Python's, or one of those that torch puts into modules whose functions it traces."""
    return name.startswith("__") and (name.endswith("__") or name.startswith("__builtins_dict__"))


def _refused(value: Any, module: str, depth: int = 0) -> str:
    """Return why a value is not a constant; "" if it is one."""
    if isinstance(value, (type, *_PLAIN)) or type(value).__module__ == "typing" or type(value) is object:
        return ""
    if isinstance(value, ContextVar):
        return _refused(_default(value), module, depth + 1) and "a ContextVar with a mutable default"
    if isinstance(value, (tuple, frozenset)):
        return _first(value, module, depth)
    if isinstance(value, types.MappingProxyType):
        return _first([*value.keys(), *value.values()], module, depth)
    if isinstance(value, functools.partial):
        return _first([value.func, *value.args, *value.keywords.values()], module, depth)
    if isinstance(value, np.ndarray):
        return "an array that can be written" if value.flags.writeable else ""
    if (type(value).__module__, type(value).__name__) in _OTHERS:
        return ""
    if hasattr(value, "cache_info"):  # a cached function; see `reads_rank`
        return ""
    if is_dataclass(value):
        if not value.__dataclass_params__.frozen:  # type: ignore[attr-defined]
            return f"a {type(value).__name__}, a dataclass that is not frozen"
        return _first([getattr(value, field.name) for field in fields(value)], module, depth)
    if type(value).__name__ == "MultitypeFuncGraph":
        foreign = {function.__module__ for _, function in value._entries} - {module}
        return f"a MultitypeFuncGraph with functions of {sorted(foreign)}" if foreign else ""
    if not hasattr(value, "__dict__") and not _slots(value):
        return "" if type(value).__module__.startswith("dumpsim") else f"a {type(value).__name__}"
    return f"a {type(value).__name__}"


def _default(variable: ContextVar[Any]) -> Any:
    try:
        return Context().run(variable.get)
    except LookupError:
        return None


def _slots(value: Any) -> list[str]:
    return [name for kind in type(value).__mro__ for name in getattr(kind, "__slots__", ())]


def _first(values: Any, module: str, depth: int) -> str:
    return next((f"{reason} inside" for reason in (_refused(v, module, depth + 1) for v in values) if reason), "")


# -------------------------------------------------------------------- source
def mutations(tree: ast.Module) -> Iterator[str]:
    """Statements in functions that change a name, class or function of the module, or their own class."""
    names = {name for name, _ in _assigned(tree.body)}
    names |= {s.name for s in _statements(tree.body) if isinstance(s, (ast.FunctionDef, ast.ClassDef))}
    for function in ast.walk(tree):
        if not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            continue
        own = _local(function)
        shared = (names - own) | ({"cls"} if _is_class_method(function) else set())
        for node in _inside(function):
            if isinstance(node, ast.Global):
                yield f"line {node.lineno}: global {', '.join(node.names)}"
            elif isinstance(node, (ast.Attribute, ast.Subscript)) and isinstance(node.ctx, (ast.Store, ast.Del)):
                if _base(node.value) in shared or _is_own_class(node.value):
                    yield f"line {node.lineno}: {ast.unparse(node)} is changed"
            elif isinstance(node, ast.Call):
                yield from _calls(node, shared)


def _calls(node: ast.Call, shared: set[str]) -> Iterator[str]:
    if isinstance(node.func, ast.Attribute) and node.func.attr in _CHANGES and _base(node.func.value) in shared:
        yield f"line {node.lineno}: {ast.unparse(node.func)}() changes it"
    if isinstance(node.func, ast.Name) and node.func.id in ("setattr", "delattr") and node.args:
        target = node.args[0]
        if _base(target) in shared or _is_own_class(target):
            yield f"line {node.lineno}: {ast.unparse(node)} changes it"


def reads_rank(tree: ast.Module) -> Iterator[str]:
    """Cached functions that depend on the rank that runs."""
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef) and any("cache" in ast.unparse(d) for d in function.decorator_list):
            used = {n.id if isinstance(n, ast.Name) else n.attr for n in ast.walk(function) if _is_use(n)}
            if used & _OF_RANK:
                yield f"line {function.lineno}: cached {function.name} reads {', '.join(sorted(used & _OF_RANK))}"


def _is_use(node: ast.AST) -> bool:
    return isinstance(node, (ast.Name, ast.Attribute))


def _inside(function: Any) -> Iterator[ast.AST]:
    """The nodes of a function without those of functions inside of it, which are visited on their own."""
    pending = list(function.body) if isinstance(function.body, list) else [function.body]
    while pending:
        node = pending.pop()
        yield node
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            pending += ast.iter_child_nodes(node)


def _local(function: Any) -> set[str]:
    """Names that a function binds itself."""
    arguments = function.args
    given = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
    own = {argument.arg for argument in given if argument is not None}
    for node in _inside(function):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            own.add(node.id)
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            own.add(node.name)
    return own


def _is_class_method(function: Any) -> bool:
    return any(ast.unparse(decorator) == "classmethod" for decorator in getattr(function, "decorator_list", []))


def _is_own_class(node: ast.AST) -> bool:
    """``type(self)`` or ``self.__class__``, or a part of it."""
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        if isinstance(node, ast.Attribute) and node.attr == "__class__":
            return True
        node = node.value
    return isinstance(node, ast.Call) and ast.unparse(node.func) == "type" and len(node.args) == 1


def _base(node: ast.AST) -> str | None:
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None
