"""The torch APIs that are recorded, and their names, by function object as the interception sees them."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from types import CellType, FunctionType, MappingProxyType, ModuleType
from typing import Any

import torch
from torch import nn

__all__ = ["Api", "Catalogue", "listed_names"]


@dataclass(frozen=True, slots=True)
class Api:
    """A recorded API: its kind and name.

    Attributes
    ----------
    base : str
        Prefix of the names of its calls.
    path : str
        Name in the keys of the stack file, ``torch.nn.functional.pad``. [spec api_dump 1.5]
    """

    kind: str
    name: str
    base: str = field(init=False, repr=False, compare=False)
    path: str = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "base", f"{self.kind}_{self.name}")
        object.__setattr__(self, "path", f"{_PATHS[self.kind]}.{self.name}")

    def key(self, number: int) -> str:
        """Return the key of a call in the stack file; keys of ``_VF`` have a style of their own. [spec api_dump 1.5]"""
        if self.kind == "VF":
            return f"{self.base}_{number}_forward_stack_info"
        return f"{self.path}({number}) forward"


_PATHS = MappingProxyType(
    {
        "NN": "torch.nn",
        "Functional": "torch.nn.functional",
        "Tensor": "torch.Tensor",
        "Torch": "torch",
        "VF": "torch._VF",
    }
)
# Tensor's operators, by the function that torch's dispatch passes for them
OPERATORS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "add": ("__add__", "__radd__"),
        "add_": ("__iadd__",),
        "sub": ("__sub__",),
        "sub_": ("__isub__",),
        "mul": ("__mul__", "__rmul__"),
        "mul_": ("__imul__",),
        "div": ("__truediv__", "__div__"),
        "div_": ("__itruediv__", "__idiv__"),
        "matmul": ("__matmul__",),
        "remainder": ("__mod__",),
        "remainder_": ("__imod__",),
        "floor_divide_": ("__ifloordiv__",),
        "pow_": ("__ipow__",),
        "eq": ("__eq__",),
        "ne": ("__ne__",),
        "lt": ("__lt__",),
        "le": ("__le__",),
        "gt": ("__gt__",),
        "ge": ("__ge__",),
        "neg": ("__neg__",),
        "positive": ("__pos__",),
        "bitwise_not": ("__invert__",),
        "bitwise_and": ("__rand__",),
        "bitwise_or": ("__ror__",),
        "bitwise_xor": ("__rxor__",),
        "abs": ("__abs__",),
        "is_nonzero": ("__bool__",),
    }
)


def listed_names() -> dict[str, frozenset[str]]:
    """Return the names that troubleshooter 1.0.17 hooks, by kind. [recorded by fixtures/apidump/record.py]"""
    table = json.loads(files("dumpsim.frontends.apidump.pytorch").joinpath("names.json").read_text("utf-8"))
    return {kind: frozenset(table[kind]) for kind in _PATHS}


def _spaces() -> dict[str, Any]:
    from torch import _VF

    return {"Functional": nn.functional, "Tensor": torch.Tensor, "Torch": torch, "VF": _VF}


class Catalogue:
    """Function objects and module classes by API.

    Parameters
    ----------
    full : bool
        Include what the real tool does not list: further functions of torch, torch.nn.functional, Tensor,
        torch.linalg, torch.fft and torch.special; every class of torch.nn.
    """

    def __init__(self, *, full: bool) -> None:
        self.full = full
        names = listed_names()
        self.names = names
        found: dict[Any, list[Api]] = {}
        for kind, space in _spaces().items():
            for name in sorted(names[kind]):
                # unbound descriptors, since `getattr` of a property would compute it
                function = getattr(space, name, None)
                if callable(function):
                    found.setdefault(function, []).append(Api(kind, name))
        # listed functions that do not dispatch to overrides, by id of their code, which is slow to hash
        self.silent: dict[int, Api] = {
            id(function.__code__): apis[0] for function, apis in found.items() if _is_silent(function)
        }
        if full:
            self._extend(found)
        self._found: dict[Any, tuple[Api, ...]] = {function: tuple(apis) for function, apis in found.items()}
        self._classes: dict[type, Api | None] = {}
        self._listed_classes = {getattr(nn, name): Api("NN", name) for name in sorted(names["NN"]) if hasattr(nn, name)}
        self.classes = frozenset(self._listed_classes)

    def __contains__(self, function: Any) -> bool:
        return function in self._found

    def functions(self) -> list[Callable[..., Any]]:
        """Return the function objects of listed names, without Tensor's methods."""
        spaces = _spaces()
        return [
            function
            for kind in ("Functional", "Torch", "VF")
            for name in sorted(self.names[kind])
            if (function := getattr(spaces[kind], name, None)) is not None
        ]

    def aliases(self, function: Callable[..., Any], api: Api) -> list[Callable[..., Any]]:
        """Return the objects that a program may have called: the function, or one that forwards to it."""
        name = getattr(_spaces()[api.kind], api.name, None) if api.kind != "NN" else None
        return [function] if name is None or name is function else [function, name]

    def candidates(self, function: Any) -> tuple[Api, ...]:
        """Return the APIs that a function object may have been called as."""
        return self._found.get(function, ())

    def operator(self, name: str) -> Api | None:
        """Return the API of a Tensor operator such as ``__add__``."""
        return Api("Tensor", name) if self.full or name in self.names["Tensor"] else None

    def module(self, cls: type) -> Api | None:
        """Return the API of a module class: its nearest listed base class, or itself. [spec api_dump 1.3]"""
        if cls not in self._classes:
            api = next((self._listed_classes[base] for base in cls.__mro__ if base in self._listed_classes), None)
            if api is None and self.full and cls.__module__.startswith("torch.nn.modules."):
                hidden = (nn.Sequential, nn.ModuleList, nn.ModuleDict)
                api = None if issubclass(cls, hidden) else Api("NN", cls.__name__)
            self._classes[cls] = api
        return self._classes[cls]

    def _extend(self, found: dict[Any, list[Api]]) -> None:
        """Add the APIs of ``coverage="full"``."""
        spaces: list[tuple[str, str, Any]] = [
            ("Functional", "", nn.functional),
            ("Torch", "linalg_", torch.linalg),
            ("Torch", "fft_", torch.fft),
            ("Torch", "special_", torch.special),
            ("Torch", "", torch),
            ("Tensor", "", torch.Tensor),
        ]
        overridable = {
            f
            for functions in torch.overrides.get_overridable_functions().values()
            for f in functions
            if not isinstance(f, type)
        }
        for kind, prefix, space in spaces:
            for name in sorted(vars(space)) if not isinstance(space, type) else sorted(dir(space)):
                if name.startswith("__") and name not in _UNLISTED_OPERATORS:
                    continue
                if name.startswith("_") and not name.startswith("__"):
                    continue
                function = getattr(space, name, None)
                if name in _SILENT or not callable(function) or isinstance(function, ModuleType | type):
                    continue
                if function in overridable and function not in found:
                    found[function] = [Api(kind, prefix + name)]


def _is_silent(function: Any) -> bool:
    """Whether a function of torch forwards to another API without dispatching to overrides itself."""
    if not isinstance(function, FunctionType) or hasattr(function, "__wrapped__"):
        return False
    code = function.__code__
    return code.co_name == function.__name__ and not any("has_torch_function" in name for name in code.co_names)


# operators that call nothing listed [spec api_dump 1.9, 13]
_UNLISTED_OPERATORS = ("__getitem__", "__setitem__", "__invert__", "__pow__", "__ipow__", "__rsub__")
# queries of a tensor and its printing, which process no data
_SILENT = frozenset(
    [
        "dim",
        "size",
        "stride",
        "numel",
        "nelement",
        "element_size",
        "storage_offset",
        "data_ptr",
        "is_contiguous",
        "is_floating_point",
        "is_complex",
        "is_signed",
        "get_device",
        "type",
        "requires_grad_",
        "retain_grad",
        "register_hook",
        "backward",
        "is_inference",
        "is_conj",
        "is_neg",
        "is_same_size",
        "ndimension",
        "has_names",
        "is_shared",
        "is_pinned",
        "storage",
        "untyped_storage",
        "is_distributed",
        "numpy",
        "tolist",
        "item",
        "dim_order",
        "register_post_accumulate_grad_hook",
        "result_type",
        "can_cast",
        "is_tensor",
        "is_storage",
        "is_coalesced",
        "has_torch_function",
        "record_stream",
        "share_memory_",
        "pin_memory",
        "module_load",
        "typename",
    ]
)


@cache
def _blind_globals(module: str) -> dict[str, Any]:
    """Return a copy of the globals of a module of torch in which no check finds overrides."""
    import sys

    names = dict(vars(sys.modules[module]))

    def never(*_: Any) -> bool:
        return False

    for name in ("has_torch_function", "has_torch_function_unary", "has_torch_function_variadic"):
        if name in names:
            names[name] = never
    return names


@cache
def transparent(function: Callable[..., Any]) -> Callable[..., Any] | None:
    """Return a copy of a Python function of torch without its check for overrides, so that its calls can be seen.

    None for anything else. The function itself is not changed.
    """
    if not isinstance(function, FunctionType) or not function.__module__.startswith("torch"):
        return None
    space = function.__globals__.get("__name__")
    closure = function.__closure__
    inner = getattr(function, "__wrapped__", None)
    if inner is not None and "has_torch_function" in function.__code__.co_names:
        # the wrapper only checks; the wrapped function may be in C
        if not isinstance(inner, FunctionType):
            return None
        body = transparent(inner) or inner
        closure = tuple(CellType(body) if cell.cell_contents is inner else cell for cell in closure or ())
    elif space not in _SEE_THROUGH:
        return None
    copy = FunctionType(function.__code__, _blind_globals(space), function.__name__, function.__defaults__, closure)
    copy.__kwdefaults__ = function.__kwdefaults__
    return copy


_SEE_THROUGH = frozenset({"torch.functional", "torch.nn.functional", "torch._tensor", "torch.autograd"})
