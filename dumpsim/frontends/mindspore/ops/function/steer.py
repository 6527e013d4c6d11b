"""Functions that control a graph instead of computing: order, gradients, writing parameters."""

from functools import partial as _partial
from typing import Any

from dumpsim.frontends.mindspore._current import capturing
from dumpsim.frontends.mindspore.common._operandtypes import takes
from dumpsim.frontends.mindspore.common.dtype import float32
from dumpsim.frontends.mindspore.common.tensor import Tensor, is_tensor
from dumpsim.frontends.mindspore.ops.function._single import single
from dumpsim.frontends.mindspore.ops.function.arithmetic import cast_to

__all__ = [
    "assign",
    "assign_add",
    "assign_sub",
    "depend",
    "identity",
    "is_tensor",
    "partial",
    "scalar_to_tensor",
    "stop_gradient",
]


@takes("Assign")
def assign(variable: Tensor, value: Any) -> Tensor:
    """Write a parameter."""
    return single("Assign", [variable, cast_to(value, variable._dtype)])


@takes("AssignAdd")
def assign_add(variable: Tensor, value: Any) -> Tensor:
    """Add to a parameter."""
    return single("AssignAdd", [variable, cast_to(value, variable._dtype)])


@takes("AssignSub")
def assign_sub(variable: Tensor, value: Any) -> Tensor:
    """Subtract from a parameter."""
    return single("AssignSub", [variable, cast_to(value, variable._dtype)])


def identity(input_x: Tensor) -> Tensor:
    """Return the operand."""
    return input_x


def partial(func: Any, *args: Any) -> Any:
    """Bind the first arguments of a function.

    Examples
    --------
    >>> partial(max, 3)(2)
    3
    """
    return _partial(func, *args)


def scalar_to_tensor(input_x: Any, dtype: Any = None) -> Tensor:
    """Convert a number to a tensor, of Float32 by default.

    Examples
    --------
    >>> scalar_to_tensor(3)
    Tensor(shape=[], dtype=Float32, value= 3)
    """
    return Tensor(input_x, dtype or float32)


def depend(value: Any, expr: Any) -> Any:
    """Return `value` after `expr` is computed: an edge of the graph, without effect outside graphs.

    Examples
    --------
    >>> depend(Tensor(1), Tensor(2))
    Tensor(shape=[], dtype=Int64, value= 1)
    """
    tracer = capturing()
    return value if tracer is None else tracer.depend(value, expr)


def stop_gradient(value: Any) -> Any:
    """Return `value`, and block its gradient."""
    if not isinstance(value, Tensor):
        return value
    return single("StopGradient", [value])
