"""Functions that MindSpore composes of others, whose operators appear in dumps. [observed 2.10]"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from dumpsim.core.errors import ScriptRuntimeError, ScriptTypeError, ScriptValueError
from dumpsim.frontends.mindspore.common import dtype as mstype
from dumpsim.frontends.mindspore.common._operandtypes import check_has_dtype, expect, type_text
from dumpsim.frontends.mindspore.common.tensor import Tensor
from dumpsim.frontends.mindspore.ops.function._single import inner_single, single
from dumpsim.frontends.mindspore.ops.function.arithmetic import binary, div
from dumpsim.frontends.mindspore.ops.function.create import ones, zeros

__all__ = [
    "addcdiv",
    "addcmul",
    "batch_norm",
    "copysign",
    "count_nonzero",
    "deg2rad",
    "fmod",
    "group_norm",
    "kron",
    "multiply",
    "positive",
    "rad2deg",
    "rot90",
    "subtract",
]


def multiply(input: Any, other: Any) -> Tensor:
    """Product, like `mul`."""
    return binary("Mul", input, other)


def subtract(input: Any, other: Any, *, alpha: float = 1) -> Tensor:
    """``input - alpha * other``."""
    return binary("Sub", input, alpha * other)


def positive(input: Tensor) -> Tensor:
    """Return the tensor itself."""
    if not isinstance(input, Tensor):
        raise ScriptTypeError(f"For positive, input must be a Tensor, but got {type_text(input)}.")
    return input


def addcmul(input: Tensor, tensor1: Tensor, tensor2: Tensor, value: Any = 1) -> Tensor:
    """``input + value * tensor1 * tensor2``."""
    return single("Addcmul", [input, tensor1, tensor2, _tensor(value)])


def addcdiv(input: Tensor, tensor1: Tensor, tensor2: Tensor, value: Any = 1) -> Tensor:
    """``input + value * tensor1 / tensor2``."""
    return single("Addcdiv", [input, tensor1, tensor2, _tensor(value)])


def _tensor(value: Any) -> Tensor:
    """Return a number as a tensor of type int64 or float32."""
    return value if isinstance(value, Tensor) else Tensor(value)


def fmod(input: Any, other: Any) -> Tensor:
    """Remainder of the quotient rounded towards zero, with the sign of `input`."""
    if not isinstance(input, Tensor) and not isinstance(other, Tensor):
        raise ScriptTypeError(
            "At least one of the types of inputs must be tensor, but the type of 'input' got is "
            f"{type(input)}, and the type of 'other' is {type(other)}."
        )
    return binary("Sub", input, div(input, other, rounding_mode="trunc") * other)


def deg2rad(x: Tensor) -> Tensor:
    """Convert angles from degrees to radians."""
    return _angle(x, math.pi, 180.0)


def rad2deg(x: Tensor) -> Tensor:
    """Convert angles from radians to degrees."""
    return _angle(x, 180.0, math.pi)


def _angle(x: Tensor, times: float, by: float) -> Tensor:
    if not isinstance(x, Tensor):
        raise ScriptTypeError("The input x must be tensor")
    if x._dtype.kind != "float":
        raise ScriptTypeError(
            "The 'x' should be one of [mindspore.float16, mindspore.float32, mindspore.float64], but got "
            f"'mindspore.{x._dtype.name}'."
        )
    if x._dtype.name == "float16":
        half: Tensor = x * Tensor._around(np.asarray(times / by, np.float16))
        return half
    result: Tensor = x * times / by
    return result


def copysign(x: Tensor, other: Any) -> Tensor:
    """Absolute value of `x` with the sign of `other`; a negative zero counts as positive."""
    if not isinstance(x, Tensor):
        raise ScriptTypeError(f"Tensor is expected, but got {type(x)}")
    size = single("Abs", [x])
    negative = _tensor(other) < 0
    return single("Select", [negative, single("Neg", [size]), size])


def rot90(input: Tensor, k: int, dims: Sequence[int]) -> Tensor:
    """Rotate by `k` times 90 degrees from the first of two axes towards the second.

    Raises
    ------
    ValueError
        If `dims` are not two axes of `input`.
    RuntimeError
        If both are the same axis.
    """
    if not isinstance(input, Tensor):
        raise ScriptTypeError(f"For `rot90`, the `input` must be Tensor!, but get {type_text(input)}.")
    if type(k) is not int:
        raise ScriptTypeError(f"For `rot90`, the `k` must be int!, but get {type_text(k)}.")
    if not isinstance(dims, (tuple, list)):
        raise ScriptTypeError(f"For `rot90`, the `dims` must be list or tuple!, but get {type_text(dims)}.")
    rank = input.ndim
    if len(dims) != 2:
        raise ScriptValueError(f"For `rot90`, total rotation dims must be 2, but get {len(dims)}.")
    if abs(dims[0] - dims[1]) in (0, rank):  # before their range [observed 2.10]
        raise ScriptRuntimeError(
            f"For `rot90`, rotation dims must be different, but get dim0={dims[0]}, dim1={dims[1]}."
        )
    for at, axis in enumerate(dims):
        if not -rank <= axis < rank:
            raise ScriptValueError(f"For `rot90`, rotation dim{at} is out of range, dim{at}={axis}.")
    order = list(range(rank))
    order[dims[0]], order[dims[1]] = order[dims[1]], order[dims[0]]
    quarters = k % 4
    if not quarters:
        return input
    if quarters == 2:
        return _reversed(_reversed(input, dims[0]), dims[1])
    if quarters == 1:
        return single("Transpose", [_reversed(input, dims[1]), tuple(order)])
    return _reversed(single("Transpose", [input, tuple(order)]), dims[1])


def _reversed(x: Tensor, axis: int) -> Tensor:
    return inner_single("ReverseV2", [x, (axis,)])


def kron(input: Tensor, other: Tensor) -> Tensor:
    """Kronecker product."""
    for name, value in (("input", input), ("other", other)):
        if not isinstance(value, Tensor):
            raise ScriptTypeError(f"the {name} must be Tensor!")
    if not input.ndim or not other.ndim:
        return binary("Mul", input, other)
    rank = max(input.ndim, other.ndim)
    left = (*(1,) * (rank - input.ndim), *input.shape)
    right = (*(1,) * (rank - other.ndim), *other.shape)
    one = single("Reshape", [input, tuple(n for pair in zip(left, (1,) * rank, strict=True) for n in pair)])
    two = single("Reshape", [other, tuple(n for pair in zip((1,) * rank, right, strict=True) for n in pair)])
    shape = tuple(a * b for a, b in zip(left, right, strict=True))
    return single("Reshape", [binary("Mul", one, two), shape])


def count_nonzero(x: Tensor, axis: Any = (), keep_dims: bool = False, dtype: Any = None) -> Tensor:
    """Number of nonzero elements, as int32 unless `dtype` is given."""
    check_has_dtype(x)
    there = binary("NotEqual", x, zeros(x.shape, x.dtype))
    total = single("ReduceSum", [single("Cast", [there, mstype.float32]), axis, keep_dims, False])
    return single("Cast", [total, mstype.int32 if dtype is None else dtype])


def group_norm(input: Tensor, num_groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-5) -> Tensor:
    """Normalise the channels by groups, with a scale and a shift for each channel."""
    channels = (input.shape[1],)
    if weight is None:
        weight = ones(channels, input.dtype)
    if bias is None:
        bias = zeros(channels, input.dtype)
    expect("GroupNorm", input, num_groups, weight, bias, eps)
    result: Tensor = single("GroupNorm", [input, num_groups, weight, bias, eps])[0]
    return result


def batch_norm(
    input_x: Tensor,
    running_mean: Tensor,
    running_var: Tensor,
    weight: Tensor,
    bias: Tensor,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Normalise each channel by its mean and variance; if `training`, by those of the batch."""
    from dumpsim.frontends.mindspore.ops import operations

    made = operations.BatchNorm(is_training=training, epsilon=eps, momentum=momentum)
    result: Tensor = made(input_x, weight, bias, running_mean, running_var)[0]
    return result
