"""Conversion between the Python values of a script and the values of a graph."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from dumpsim.core.abstract import (
    Abstract,
    NoneType,
    ScalarType,
    StringType,
    TensorType,
    TupleType,
    TypeType,
)
from dumpsim.core.dtype import DType, dtype, from_numpy
from dumpsim.core.errors import CaptureError
from dumpsim.frontends.mindspore.common.parameter import Parameter
from dumpsim.frontends.mindspore.common.tensor import Tensor
from dumpsim.graph.graph import Constant, Value
from dumpsim.ops.rules import numbers_of

__all__ = [
    "abstract_of",
    "constant_of",
    "is_parameter",
    "is_symbolic",
    "is_tensor",
    "rebuild",
    "tensor_of_array",
    "tensor_of_symbol",
    "tensors_in",
]

_INT64, _FLOAT32, _BOOL = dtype("int64"), dtype("float32"), dtype("bool")


def is_tensor(value: Any) -> bool:
    """Whether a Python value is a Tensor (or Parameter) of the front end."""
    return isinstance(value, Tensor)


def is_parameter(value: Any) -> bool:
    """Whether a Python value is a Parameter of the front end."""
    return isinstance(value, Parameter)


def is_symbolic(value: Any) -> bool:
    """Whether a Python value is a Tensor without data, or a tuple that contains one."""
    if isinstance(value, (tuple, list)):
        return any(is_symbolic(v) for v in value)
    return is_tensor(value) and value._symbol is not None


def tensor_of_array(array: np.ndarray[Any, Any], kind: DType) -> Tensor:
    """Create a Tensor from an array, without a copy."""
    tensor = Tensor.__new__(Tensor)
    tensor._array, tensor._symbol, tensor._dtype, tensor._shape = array, None, kind, tuple(array.shape)
    return tensor


def tensor_of_symbol(value: Value | None, abstract: TensorType) -> Tensor:
    """Create a Tensor for a value of the graph being captured."""
    tensor = Tensor.__new__(Tensor)
    tensor._array, tensor._symbol, tensor._dtype, tensor._shape = None, value, abstract.dtype, abstract.shape
    return tensor


def abstract_of(value: Any) -> Abstract:
    """Return the graph type of a Python value; the type of a constant includes its value."""
    if is_tensor(value):
        if value._symbol is not None:
            abstract: Abstract = value._symbol.abstract
            return abstract
        return TensorType(dtype=value._dtype, shape=tuple(value._shape))
    if value is None:
        return NoneType()
    if isinstance(value, (bool, np.bool_)):
        return ScalarType(dtype=_BOOL, value=bool(value))
    if isinstance(value, (int, np.integer)):
        return ScalarType(dtype=_INT64, value=int(value))
    if isinstance(value, (float, np.floating)):
        return ScalarType(dtype=_FLOAT32, value=float(value))
    if isinstance(value, str):
        return StringType(value=value)
    if isinstance(value, DType):
        return TypeType(value=value)
    if isinstance(value, (tuple, list)):
        items = tuple(abstract_of(v) for v in value)
        return TupleType(items=items, value=None if any(True for _ in tensors_in(value)) else tuple(value))
    if isinstance(value, np.ndarray):
        return TensorType(dtype=from_numpy(value.dtype), shape=value.shape)
    raise CaptureError(f"a value of type {type(value).__name__} cannot be an operand of an operator")


def constant_of(value: Any) -> Constant:
    """Return a graph constant for a Python value; tensors become constant tensors with their array."""
    if is_tensor(value):
        numbers = numbers_of(value._array)
        abstract = TensorType(dtype=value._dtype, shape=tuple(value._shape), constant=True, value=numbers)
        return Constant(value=value._array, abstract=abstract)
    return Constant(value=tuple(value) if isinstance(value, list) else value, abstract=abstract_of(value))


def tensors_in(value: Any, *, parameters: bool = True) -> Iterator[Tensor]:
    """Yield the Tensors of a nested Python value in order, optionally without Parameters."""
    if is_tensor(value):
        if parameters or not is_parameter(value):
            yield value
    elif isinstance(value, (tuple, list)):
        for item in value:
            yield from tensors_in(item, parameters=parameters)
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from tensors_in(item, parameters=parameters)


def rebuild(value: Any, tensors: Iterator[Tensor], *, parameters: bool = True) -> Any:
    """Replace the Tensors of a nested value, in the order of `tensors_in`."""
    if is_tensor(value):
        return next(tensors) if parameters or not is_parameter(value) else value
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(rebuild(v, tensors, parameters=parameters) for v in value))
    if isinstance(value, (tuple, list)):
        return type(value)(rebuild(v, tensors, parameters=parameters) for v in value)
    if isinstance(value, Mapping):
        return {k: rebuild(v, tensors, parameters=parameters) for k, v in value.items()}
    return value
