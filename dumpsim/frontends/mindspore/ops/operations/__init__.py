"""``mindspore.ops.operations``: the primitives, created from the table of operators."""

from importlib import import_module
from typing import Any

from dumpsim.frontends.mindspore._api import primitive_module
from dumpsim.frontends.mindspore._standin import vendored
from dumpsim.frontends.mindspore.ops.primitive import Primitive, primitive_class
from dumpsim.ops.table import is_known

__all__ = ["Primitive", "primitive"]


def primitive(name: str) -> type[Primitive]:
    """Return the class of a primitive.

    Raises
    ------
    UnsupportedError
        For an operator that is not emulated.

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


def _own(name: str) -> Any:
    name = {"TensorAdd": "Add"}.get(name, name)  # the name of old releases
    if primitive_module(name) is None and not is_known(name):
        raise AttributeError(name)
    return primitive(name)


def __getattr__(name: str) -> Any:
    return vendored("mindspore.ops.operations", name, _own)
