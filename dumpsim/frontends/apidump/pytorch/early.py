"""Functions that a program took from torch before init: 1.0.17 replaces names, so that it does not see these calls."""

import functools
import sys
from collections.abc import Callable, Iterable, Mapping
from types import (
    CellType,
    FrameType,
    FunctionType,
    GetSetDescriptorType,
    MemberDescriptorType,
    MethodDescriptorType,
    MethodType,
    ModuleType,
    NoneType,
    WrapperDescriptorType,
)
from typing import Any

from torch import nn

from dumpsim.frontends.apidump.pytorch.callsite import CallSite, Load, evaluate

__all__ = ["Early"]

_DEPTH = 6
# the last two are what torch imports, and refer to nothing of it
_FOREIGN = ("torch", "dumpsim", "numpy", "pytest", "_pytest", "sympy", "mpmath")
# types of most values in modules, which cannot contain a function
_EMPTY = frozenset({str, bytes, int, float, bool, complex, NoneType, GetSetDescriptorType, MemberDescriptorType,
                    MethodDescriptorType, WrapperDescriptorType})  # fmt: skip
_LISTED_SPACES = frozenset({"torch", "torch.nn.functional", "torch._VF"})


class Early:
    """Names and containers that referred to a function of torch at init. [spec api_dump 1.9, 12]

    Parameters
    ----------
    functions : iterable of callable
        The listed functions.
    net : nn.Module
    frame : FrameType or None
        The caller of init; local variables from there outwards are searched too.
    """

    def __init__(self, functions: Iterable[Callable[..., Any]], net: nn.Module, frame: FrameType | None) -> None:
        self._functions = {id(function) for function in functions}
        self._names: set[tuple[int, str]] = set()  # (id of a namespace, name in it)
        self._loose: set[int] = set()  # functions referred to by anything else
        self._spaces: list[Any] = []  # keeps the ids
        self._seen: set[int] = set()
        for name, module in list(sys.modules.items()):
            if isinstance(module, ModuleType) and name.partition(".")[0] != "dumpsim":
                self._namespace(vars(module), _DEPTH if _is_foreign(name) else 0)
        self._walk(net, 1)
        while frame is not None:
            if frame.f_locals is not frame.f_globals and not _is_foreign(frame.f_globals.get("__name__", "")):
                self._items(frame, frame.f_locals.values(), 1)
            frame = frame.f_back
        del self._seen  # of the search alone

    def holds(self, function: Callable[..., Any], site: CallSite, frame: FrameType) -> bool:
        """Whether the caller at `site` got the function from a reference made before init."""
        if id(function) not in self._functions or site.operator:
            return False
        load = site.callee
        if load is not None:
            known, base = _base(load, frame)
            if known:
                if isinstance(base, ModuleType) and base.__name__ in _LISTED_SPACES:
                    return False
                space = base if isinstance(base, dict) else _attributes(base)
                if space is not None and site.name in space:
                    return (id(space), site.name) in self._names
            elif load.attributes and load.attributes[-1] == getattr(function, "__name__", ""):
                return False  # a method of a tensor, whatever expression gave it
        return id(function) in self._loose

    def _namespace(self, space: Mapping[str, Any], depth: int) -> None:
        if id(space) in self._seen:
            return
        self._seen.add(id(space))
        found = False
        for name, value in list(space.items()):
            if id(value) in self._functions:
                self._names.add((id(space), name))
                found = True
            elif depth < _DEPTH and type(value) not in _EMPTY:
                self._walk(value, depth + 1)
        if found:
            self._spaces.append(space)

    def _walk(self, value: Any, depth: int) -> None:
        if id(value) in self._seen:
            return
        kind = type(value)
        if kind is dict:
            self._items(value, value.values(), depth)
        elif kind in (list, tuple, set, frozenset):
            self._items(value, value, depth)
        elif kind is functools.partial:
            self._items(value, (value.func, *value.args, *value.keywords.values()), depth)
        elif kind is FunctionType:
            values = (*(value.__defaults__ or ()), *(value.__kwdefaults__ or {}).values(), *(value.__closure__ or ()))
            self._items(value, values, depth)
        elif kind is MethodType:
            self._walk(value.__func__, depth)
        elif kind is CellType:
            try:
                self._items(value, (value.cell_contents,), depth)
            except ValueError:  # an empty cell
                return
        elif issubclass(kind, type):  # isinstance() could run code of the value's class
            if not _is_foreign(vars(value).get("__module__")):
                self._items(value, [getattr(member, "__func__", member) for member in vars(value).values()], depth)
        elif issubclass(kind, nn.Module):
            for module in value.modules():
                self._namespace(vars(module), depth)
        elif not _is_foreign(kind.__module__):
            space = _attributes(value)
            if space is not None:
                self._namespace(space, depth)

    def _items(self, holder: Any, values: Iterable[Any], depth: int) -> None:
        self._seen.add(id(holder))
        for value in values:
            if id(value) in self._functions:
                self._loose.add(id(value))
            elif depth < _DEPTH and type(value) not in _EMPTY:
                self._walk(value, depth + 1)


def _attributes(value: object) -> dict[str, Any] | None:
    """Return the attributes of an object without running code of its class such as ``__getattr__``."""
    try:
        space = object.__getattribute__(value, "__dict__")
    except Exception:
        return None
    return space if isinstance(space, dict) else None


def _is_foreign(module: object) -> bool:
    """Whether a module is not the user's."""
    first = str(module).partition(".")[0]
    return first in _FOREIGN or (first in sys.stdlib_module_names and first != "__main__")


def _base(load: Load, frame: FrameType) -> tuple[bool, Any]:
    """Return the object that the last word of a callee is looked up in: a module, an object, or the globals."""
    if load.attributes:
        return evaluate(Load(load.op, load.root, load.attributes[:-1]), frame)
    if load.op in ("LOAD_GLOBAL", "LOAD_NAME") and load.root in frame.f_globals:
        return True, frame.f_globals
    return False, None
