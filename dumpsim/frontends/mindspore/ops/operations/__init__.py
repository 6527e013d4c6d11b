"""``mindspore.ops.operations``: the primitives, made from the table of operators."""

from importlib import import_module
from typing import Any

from dumpsim.core.errors import UnsupportedError
from dumpsim.frontends.mindspore._absent import absent
from dumpsim.frontends.mindspore.ops.primitive import Primitive, primitive_class

__all__ = ["Primitive", "primitive"]

# module -> primitives that have a class of their own; the table of operators makes the others
_PLACES = {
    "ops.operations.comm_ops": "AllGather AllReduce Broadcast ReduceOp ReduceScatter",
    "ops.operations.debug_ops": "Print TensorDump",
    "ops.operations.host_ops": (
        "Cast DType Depend Fill Identity Ones OnesLike Rank ScalarToTensor Shape Size StopGradient TensorShape Unstack "
        "Zeros ZerosLike"
    ),
    "ops.operations.nn_ops": "AvgPool BatchNorm Conv2D Conv3D MaxPool",
    "dataset.queue": "GetNext",  # its queues are those of data sets
}


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
    for place, listed in _PLACES.items():
        if name in listed.split():
            found: type[Primitive] = getattr(import_module(f"dumpsim.frontends.mindspore.{place}"), name)
            return found
    return primitive_class(name)


def __getattr__(name: str) -> Any:
    try:
        if name[:1].isupper():
            return primitive(name)
    except UnsupportedError:
        pass
    raise absent("mindspore.ops.operations", name)
