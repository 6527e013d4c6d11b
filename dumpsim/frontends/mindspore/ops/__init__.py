"""``mindspore.ops``: functions, primitives and gradients."""

from functools import cache
from typing import Any

from dumpsim.frontends.mindspore import _api
from dumpsim.frontends.mindspore._capture.dispatch import call
from dumpsim.frontends.mindspore._listener import observed
from dumpsim.frontends.mindspore._standin import vendored
from dumpsim.frontends.mindspore.ops import function
from dumpsim.frontends.mindspore.ops.primitive import (
    Primitive,
    PrimitiveWithInfer,
    constexpr,
    prim_attr_register,
)

__all__ = ["Primitive", "PrimitiveWithInfer", "constexpr", "prim_attr_register"]

_SUBMODULES = ("auto_generate", "composite", "function", "functional", "operations", "primitive")
_COMPOSITE = ("GradOperation", "HyperMap", "Map", "MultitypeFuncGraph", "grad", "value_and_grad", "vjp")


def _of_operator(op_type: str, name: str) -> Any:
    """Make a function that runs one operator, for a row of the table without a module."""

    def function(*operands: Any) -> Any:
        return call(op_type, list(operands))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"The operator {op_type}."
    return function


def _own(name: str) -> Any:
    from importlib import import_module

    if name in _SUBMODULES:
        return import_module(f"{__name__}.{name}")
    if name in _COMPOSITE:
        return getattr(import_module(f"{__name__}.composite"), name)
    if name.startswith("__"):
        raise AttributeError(name)
    if name[:1].isupper():
        return import_module(f"{__name__}.operations")._own(name)
    value = _function(name)
    if value is None:
        raise AttributeError(name)
    return value


def __getattr__(name: str) -> Any:
    return vendored("mindspore.ops", name, _own)


@cache
def _function(name: str) -> Any:
    """Return a function as scripts see it, or None if it does not exist."""
    row = _api.function(name)
    if row is None:
        return None
    return observed("function", name, function.find(name) if row.module else _of_operator(row.operator, name))
