"""``mindspore.ops``: functions, primitives and gradients."""

import re
from functools import cache
from typing import Any

from dumpsim.core.errors import UnsupportedError
from dumpsim.frontends.mindspore._absent import absent
from dumpsim.frontends.mindspore._capture.dispatch import call
from dumpsim.frontends.mindspore._listener import heard
from dumpsim.frontends.mindspore.ops.primitive import (
    Primitive,
    PrimitiveWithInfer,
    constexpr,
    prim_attr_register,
)

__all__ = ["Primitive", "PrimitiveWithInfer", "constexpr", "prim_attr_register"]

_SUBMODULES = ("auto_generate", "composite", "function", "functional", "operations", "primitive")
_COMPOSITE = ("GradOperation", "HyperMap", "Map", "MultitypeFuncGraph", "grad", "value_and_grad", "vjp")


@cache
def _by_table(name: str) -> Any:
    """A function for an operator of the table that has no function of its own: ``ops.hsigmoid`` of HSigmoid."""
    from dumpsim.frontends.mindspore.ops._signatures import signature_of
    from dumpsim.ops.table import names

    flat = name.replace("_", "")
    op_type = next((op for op in names() if op.lower() == flat and re.fullmatch(r"[a-z0-9_]+", name)), None)
    if op_type is None or signature_of(op_type).init.parameters:
        return None

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
    from dumpsim.frontends.mindspore.ops.function import find

    value = find(name) or _by_table(name)
    return heard("function", name, value) if value is not None else None
