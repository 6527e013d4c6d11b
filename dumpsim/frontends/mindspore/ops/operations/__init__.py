"""``mindspore.ops.operations``: the primitives, made from the table of operators."""

from importlib import import_module
from typing import Any

from dumpsim.core.errors import UnsupportedError
from dumpsim.frontends.mindspore._absent import absent
from dumpsim.frontends.mindspore._api import primitive_module
from dumpsim.frontends.mindspore.ops.primitive import Primitive, primitive_class

__all__ = ["Primitive", "primitive"]


def primitive(name: str) -> type[Primitive]:
    """The class of a primitive.

    Raises
    ------
    UnsupportedError
        For an operator that the emulation does not have.

    Examples
    --------
    >>> primitive("ReLU")()
    Prim[ReLU]
    """
    module = primitive_module(name)
    if module is not None:
        found: type[Primitive] = getattr(import_module(f"dumpsim.frontends.mindspore.{module}"), name)
        return found
    return primitive_class(name)


def __getattr__(name: str) -> Any:
    try:
        if name[:1].isupper():
            return primitive(name)
    except UnsupportedError:
        pass
    raise absent("mindspore.ops.operations", name)
