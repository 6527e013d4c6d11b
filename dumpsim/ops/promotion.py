"""Number types that operands of different types are converted to before an operator runs.

The vendor inserts these conversions as nodes of the graph (``Cast``), and represents host numbers as constant tensors
of the common type.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dumpsim.core.abstract import Abstract, ScalarType, TensorType
from dumpsim.core.dtype import DType, dtype, from_numpy
from dumpsim.core.errors import ScriptTypeError

__all__ = ["common_type", "number_type", "operand_type", "with_common_type"]

_LEVEL = {"bool": 0, "int": 1, "uint": 1, "float": 2, "complex": 3}


def common_type(first: DType, second: DType) -> DType:
    """Return the common number type of two tensors.

    Raises
    ------
    ScriptTypeError
        The vendor has no rule: uint16, uint32 and uint64 with anything but bool.

    Examples
    --------
    >>> common_type(dtype("uint8"), dtype("int8")).name
    'int16'
    >>> common_type(dtype("float16"), dtype("int64")).name
    'float16'
    """
    if first == second:
        return first
    for unsigned, other in ((first, second), (second, first)):
        if unsigned.name in ("uint16", "uint32", "uint64") and other.kind != "bool":
            raise ScriptTypeError(
                f"Type implicit conversion between {other.title} and {unsigned.title} is not supported."
            )
    low, high = sorted((first, second), key=lambda t: (_LEVEL[t.kind], t.bits, t.name))
    if low.kind == "bool":
        return high
    if _LEVEL[low.kind] < _LEVEL[high.kind]:
        if high.kind == "complex" and low.name == "float64":
            return dtype("complex128")
        return high
    if high.kind in ("float", "complex"):
        return dtype("float32") if {low.name, high.name} == {"float16", "bfloat16"} else high
    if {low.name, high.name} == {"int8", "uint8"}:
        return dtype("int16")
    return high


def _with_number(tensor: DType, number: DType) -> DType:
    """Return the type of a tensor and a Python number: only a number of a higher kind changes the tensor's type."""
    if tensor.name in ("uint16", "uint32", "uint64"):
        raise ScriptTypeError(
            f"Type implicit conversion between Tensor[{number.title}] and {tensor.title} is not supported."
        )
    if _LEVEL[number.kind] <= _LEVEL[tensor.kind]:
        return tensor
    return {"int": dtype("int64"), "float": dtype("float32"), "complex": dtype("complex64")}[number.kind]


def operand_type(operands: Sequence[Abstract]) -> DType:
    """Return the number type that tensors and host numbers are converted to.

    Examples
    --------
    >>> operand_type([TensorType(dtype=dtype("int32"), shape=(2,)), ScalarType(dtype=dtype("float32"), value=1.5)]).name
    'float32'
    """
    result: DType | None = None
    for operand in operands:
        if isinstance(operand, TensorType):
            result = operand.dtype if result is None else common_type(result, operand.dtype)
    for operand in operands:
        if isinstance(operand, ScalarType):
            result = operand.dtype if result is None else _with_number(result, operand.dtype)
    if result is None:
        raise ScriptTypeError("no operand has a number type")
    return result


def number_type(tensor: DType, number: DType) -> DType | None:
    """Return the type of the constant tensor that a host number becomes next to a tensor that is not converted.

    Returns
    -------
    DType or None
        None if the result would not have the common type of the tensor and the number. [observed 2.10]

    Examples
    --------
    >>> number_type(dtype("uint8"), dtype("int64")).name, number_type(dtype("float32"), dtype("float32")).name
    ('int32', 'float32')
    """
    kind = {"int": dtype("int32"), "float": dtype("float32"), "bool": dtype("bool")}.get(number.kind)
    return None if kind is None or (tensor.kind == "float" == number.kind and tensor.bits != 32) else kind


def with_common_type(kernel: Callable[..., Any]) -> Callable[..., Any]:
    """Return a kernel of two operands that converts them to their common type itself."""

    def run(x: Any, y: Any) -> Any:
        x, y = np.asanyarray(x), np.asanyarray(y)
        if x.dtype != y.dtype:
            kind = common_type(from_numpy(x.dtype), from_numpy(y.dtype)).numpy
            x, y = x.astype(kind), y.astype(kind)
        return kernel(x, y)

    return run
