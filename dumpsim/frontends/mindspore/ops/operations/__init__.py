"""``mindspore.ops.operations``: the primitives, made from the table of operators."""

from typing import Any

from dumpsim.core.errors import UnsupportedError
from dumpsim.frontends.mindspore._absent import absent
from dumpsim.frontends.mindspore.ops.operations import comm_ops, debug_ops, host_ops, nn_ops
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
    for module in (nn_ops, host_ops, debug_ops, comm_ops):
        if name in module.__all__:
            found: type[Primitive] = getattr(module, name)
            return found
    if name == "GetNext":  # its queues are those of data sets
        from dumpsim.frontends.mindspore.dataset.queue import GetNext

        return GetNext
    return primitive_class(name)


def __getattr__(name: str) -> Any:
    try:
        if name[:1].isupper():
            return primitive(name)
    except UnsupportedError:
        pass
    raise absent("mindspore.ops.operations", name)
