"""Which number type operands of different types are converted to before an operator runs.

The vendor inserts these conversions as nodes of the graph (``Cast``) and writes host numbers as constant tensors of
the common type.
"""

from collections.abc import Sequence

from dumpsim.core.abstract import Abstract, ScalarType, TensorType
from dumpsim.core.dtype import DType, dtype
from dumpsim.core.errors import ScriptTypeError

__all__ = ["common_type", "operand_type"]

_LEVEL = {"bool": 0, "int": 1, "uint": 1, "float": 2, "complex": 3}


def common_type(first: DType, second: DType) -> DType:
    """The number type of two tensors in one operation.

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
    """The type of a tensor and a Python number: the number only lifts to the next kind."""
    if tensor.name in ("uint16", "uint32", "uint64"):
        raise ScriptTypeError(
            f"Type implicit conversion between Tensor[{number.title}] and {tensor.title} is not supported."
        )
    if _LEVEL[number.kind] <= _LEVEL[tensor.kind]:
        return tensor
    return {"int": dtype("int64"), "float": dtype("float32"), "complex": dtype("complex64")}[number.kind]


def operand_type(operands: Sequence[Abstract]) -> DType:
    """The number type that tensors and host numbers are brought to.

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
