"""``mindspore.ops``: functions, primitives and gradients."""

from functools import cache
from typing import Any

from dumpsim.core.errors import UnsupportedError
from dumpsim.frontends.mindspore import _api
from dumpsim.frontends.mindspore._absent import absent
from dumpsim.frontends.mindspore._capture.dispatch import call
from dumpsim.frontends.mindspore._listener import observed
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
    """A function that runs one operator: for a row of the table without a module."""

    def function(*operands: Any) -> Any:
        return call(op_type, list(operands))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"The operator {op_type}."
    return function


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name in _SUBMODULES:
        return import_module(f"{__name__}.{name}")
    if name in _COMPOSITE:
        return getattr(import_module(f"{__name__}.composite"), name)
    if name.startswith("__"):
        raise absent("mindspore.ops", name)
    if name[:1].isupper():
        from dumpsim.frontends.mindspore.ops.operations import primitive

        try:
            return primitive(name)
        except UnsupportedError:
            raise absent("mindspore.ops", name) from None
    value = _function(name)
    if value is None:
        raise absent("mindspore.ops", name)
    return value


@cache
def _function(name: str) -> Any:
    """A function as scripts get it, None where there is none."""
    row = _api.function(name)
    if row is None:
        return None
    return observed("function", name, function.find(name) if row.module else _of_operator(row.operator, name))
