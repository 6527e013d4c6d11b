"""Operators on two tensors, or on a tensor and a number.

Numbers become constant tensors of the common type, and tensors of another type are cast to it, as in MindSpore.
"""

from typing import Any

import numpy as np

from dumpsim.core.errors import ScriptTypeError, ScriptValueError
from dumpsim.frontends.mindspore._capture.dispatch import call
from dumpsim.frontends.mindspore._capture.libfunction import parsed_once
from dumpsim.frontends.mindspore._capture.values import abstract_of
from dumpsim.frontends.mindspore._current import capturing
from dumpsim.frontends.mindspore.common._operandtypes import check, check_implicit, expect
from dumpsim.frontends.mindspore.common._overloads import overloaded
from dumpsim.frontends.mindspore.common.tensor import Tensor
from dumpsim.frontends.mindspore.ops.function._single import single
from dumpsim.ops.promotion import operand_type
from dumpsim.ops.table import find

__all__ = [
    "add",
    "bitwise_and",
    "bitwise_or",
    "bitwise_xor",
    "div",
    "eq",
    "equal",
    "floor_div",
    "floor_mod",
    "greater",
    "greater_equal",
    "less",
    "less_equal",
    "matmul",
    "maximum",
    "minimum",
    "mul",
    "not_equal",
    "pow",
    "remainder",
    "sub",
    "true_divide",
]


_MIXED = ("Mul", "Div", "Equal", "Less", "RemainderTensorTensor")  # accept operands of different number types


def is_number(value: Any) -> bool:
    """Whether `value` is a host number."""
    return isinstance(value, (bool, int, float, complex, np.number, np.bool_))


def cast_to(value: Any, kind: Any) -> Tensor:
    """Return the value as a Tensor of a type: numbers become constants, tensors of another type are cast."""
    if isinstance(value, Tensor):
        return value if value._dtype == kind else call("Cast", [value, kind])
    return Tensor._around(np.asarray(value, dtype=kind.numpy))


def _check_operands(op_type: str, *values: Any) -> None:
    if all(isinstance(value, Tensor) for value in values):
        return
    if capturing() is None and len(values) == len(find(op_type).operands):
        check(find(op_type), [Tensor(value) if isinstance(value, np.ndarray) else value for value in values], {})
    if capturing() is None:
        check_implicit(op_type, dict.fromkeys(range(len(values)), "var"), values)
    for value in values:
        if not isinstance(value, Tensor) and not is_number(value) and not isinstance(value, np.ndarray):
            raise ScriptTypeError(
                f"an operand has the type {type(value).__name__}", where=op_type, allowed=("Tensor", "number", "bool")
            )


def promote(op_type: str, *values: Any) -> list[Tensor]:
    """Convert the values to tensors of their common type.

    Raises
    ------
    ScriptTypeError
        For a value that is neither a tensor nor a number.
    """
    _check_operands(op_type, *values)
    kind = operand_type([abstract_of(value) for value in values])
    return [cast_to(value, kind) for value in values]


def binary(op_type: str, x: Any, y: Any) -> Tensor:
    """Call an operator on two operands, which are promoted if it requires one type."""
    if op_type in _MIXED:
        _check_operands(op_type, x, y)
        return single(op_type, [x, y])
    return single(op_type, promote(op_type, x, y))


def _with_number(composite: str, x: Any, number: Any) -> Tensor:
    """Call a composite operator on a tensor and a host number."""
    return single(composite, [x, number])


@parsed_once
def add(input: Any, other: Any) -> Tensor:
    """Sum.

    Examples
    --------
    >>> add(Tensor([1, 2]), 1.5)
    Tensor(shape=[2], dtype=Float32, value= [ 2.50000000e+00,  3.50000000e+00])
    """
    return binary("Add", input, other)


def sub(input: Any, other: Any) -> Tensor:
    """Difference."""
    return binary("Sub", input, other)


def mul(input: Any, other: Any) -> Tensor:
    """Product."""
    return binary("Mul", input, other)


def muls(input: Any, other: Any) -> Tensor:
    """``*``: for a number, the composite operator Muls. [observed 2.10]"""
    if is_number(other) and isinstance(input, Tensor):
        return _muls(input, other)
    if is_number(input):
        return _muls(other, input)
    return binary("Mul", input, other)


@parsed_once
def _muls(input: Tensor, other: Any) -> Tensor:
    return _with_number("Muls", input, other)


def div(input: Any, other: Any, *, rounding_mode: str | None = None) -> Tensor:
    """Quotient; a `rounding_mode` "floor" or "trunc" uses the composite operator DivMod. [observed 2.10]"""
    if rounding_mode in ("floor", "trunc"):
        expect("DivMod", input, other)
        return single("DivMod", [*promote("DivMod", input, other), 2 if rounding_mode == "floor" else 1])
    if rounding_mode is not None:
        raise ScriptValueError("For ops.div, rounding_mode value should be None, 'floor' or 'trunc'.")
    return binary("Div", input, other)


true_divide = divide = div


def divs(input: Any, other: Any) -> Tensor:
    """``/``: the composite Divs for a number as divisor, Reciprocal and Muls for one as dividend. [observed 2.10]"""
    if is_number(other):
        return _with_number("Divs", input, other)
    if is_number(input):
        return muls(call("Reciprocal", [other]), input)
    return binary("Div", input, other)


def floor_div(input: Any, other: Any) -> Tensor:
    """Quotient, rounded down."""
    return binary("FloorDiv", input, other)


floor_divide = floor_div


def floor_mod(x: Any, y: Any) -> Tensor:
    """Remainder of `floor_div`."""
    return binary("FloorMod", x, y)


def remainder(input: Any, other: Any) -> Tensor:
    """Remainder of a quotient that is rounded down, by FloorDiv, a product and Sub. [observed 2.10]"""
    return sub(input, muls(floor_div(input, other), other))


def modulo(input: Any, other: Any) -> Tensor:
    """``%``: a composite operator around FloorMod. [observed 2.10]"""
    if is_number(other):
        return _with_number("RemainderTensorScalar", input, other)
    if is_number(input):
        return _with_number("RemainderScalarTensor", input, other)
    return binary("RemainderTensorTensor", input, other)


def pow(input: Any, exponent: Any) -> Tensor:
    """Power."""
    return binary("Pow", input, exponent)


def maximum(input: Any, other: Any) -> Tensor:
    """The larger of two, element by element."""
    return binary("Maximum", input, other)


def minimum(input: Any, other: Any) -> Tensor:
    """The smaller of two, element by element."""
    return binary("Minimum", input, other)


@parsed_once
def equal(input: Any, other: Any) -> Tensor:
    """Whether elements are equal."""
    return binary("Equal", input, other)


@parsed_once
def not_equal(input: Any, other: Any) -> Tensor:
    """Whether elements differ."""
    return binary("NotEqual", input, other)


eq = equal


def equals(input: Any, other: Any) -> Tensor:
    """``==``: for a number, the composite operator EqScalar. [observed 2.10]"""
    return _with_number("EqScalar", input, other) if is_number(other) else equal(input, other)


ne = not_equal


@parsed_once
def greater(input: Any, other: Any) -> Tensor:
    """Whether elements of `input` are larger."""
    return binary("Greater", input, other)


gt = greater


def greater_equal(input: Any, other: Any) -> Tensor:
    """Whether elements of `input` are larger or equal."""
    return binary("GreaterEqual", input, other)


ge = greater_equal


@overloaded("mint.less")
def less(input: Any, other: Any) -> Tensor:
    """Whether elements of `input` are smaller; for a number, the composite operator LessScalar. [observed 2.10]"""
    return _with_number("LessScalar", input, other) if is_number(other) else binary("Less", input, other)


lt = less


def less_equal(input: Any, other: Any) -> Tensor:
    """Whether elements of `input` are smaller or equal."""
    return binary("LessEqual", input, other)


le = less_equal


def _bitwise(name: str, input: Any, other: Any) -> Tensor:
    x, y = promote(name, input, other)
    if x._dtype.kind not in ("bool", "int", "uint"):
        names = ("Bool", "Int16", "Int32", "Int64", "Int8", "UInt16", "UInt32", "UInt64", "UInt8")
        allowed = ", ".join(f"Tensor[{one}]" for one in names)
        raise ScriptTypeError(
            f"For primitive[{name}], the input argument[x] must be a type of {{{allowed}}}, but got Tensor[{x._dtype}]."
        )
    return single(name, [x, y])


@parsed_once
def bitwise_and(input: Any, other: Any) -> Tensor:
    """Bitwise and."""
    return _bitwise("BitwiseAnd", input, other)


@parsed_once
def bitwise_or(input: Any, other: Any) -> Tensor:
    """Bitwise or."""
    return _bitwise("BitwiseOr", input, other)


@parsed_once
def bitwise_xor(input: Any, other: Any) -> Tensor:
    """Bitwise exclusive or."""
    return _bitwise("BitwiseXor", input, other)


def invert(input: Tensor) -> Tensor:
    """Invert every bit of integers; the operator ``~`` is LogicalNot, even for numbers. [2.10 observed]"""
    return single("Invert", [input])


def matmul(input: Tensor, other: Tensor) -> Tensor:
    """Product of matrices or stacks of matrices: a composite operator around MatMul or BatchMatMul. [observed 2.10]

    Examples
    --------
    >>> matmul(Tensor([[1.0, 2.0]]), Tensor([[3.0], [4.0]])).asnumpy()
    array([[11.]], dtype=float32)
    """
    return binary("MatMulExt", input, other)
