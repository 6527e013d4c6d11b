"""Functions of one or two operators that look at their arguments first, with the errors of the Python library."""

from typing import Any

from dumpsim.core.errors import ScriptTypeError
from dumpsim.frontends.mindspore._checkparam import check_value_type
from dumpsim.frontends.mindspore.common import dtype as mstype
from dumpsim.frontends.mindspore.common._operandtypes import check_has_dtype, check_is_tensor, expect, type_text
from dumpsim.frontends.mindspore.common.tensor import Tensor
from dumpsim.frontends.mindspore.ops._signatures import number_of
from dumpsim.frontends.mindspore.ops.function._single import single
from dumpsim.frontends.mindspore.ops.function.arithmetic import (
    add,
    binary,
    cast_to,
    greater,
    is_number,
    maximum,
    mul,
    pow,
    sub,
)
from dumpsim.frontends.mindspore.ops.function.shape import select

__all__ = [
    "exp2",
    "frac",
    "hardtanh",
    "log2",
    "log10",
    "logaddexp",
    "logaddexp2",
    "mv",
    "outer",
    "tensor_scatter_elements",
    "threshold",
    "xlogy",
]


def exp2(input: Tensor) -> Tensor:
    """Two to the power of every element."""
    if not isinstance(input, Tensor):
        raise AttributeError(f"'{type(input).__name__}' object has no attribute 'dtype'")
    return single("Exp2", [input])


def frac(x: Tensor) -> Tensor:
    """Fraction of every element, with its sign: the remainder of a division by 1."""
    if is_number(x):
        kind = "Int64" if isinstance(x, int) else "Float32"
        raise ScriptTypeError(
            "The primitive[Mod]'s input arguments[x, y] must be all tensor and those type must be same. But got input "
            f"argument[x]:{kind}"
        )
    if not isinstance(x, Tensor) or x._dtype.kind == "bool":
        return binary("Mod", x, 1)
    return single("Frac", [x])


def log2(input: Tensor) -> Tensor:
    """Logarithm to base 2."""
    check_has_dtype(input)
    return single("Log2", [input])


def log10(input: Tensor) -> Tensor:
    """Logarithm to base 10."""
    check_has_dtype(input)
    return single("Log10", [input])


def _check_floats(name: str, article: str, input: Any, other: Any) -> None:
    for what, value in (("input", input), ("other", other)):
        if not isinstance(value, Tensor):
            raise ScriptTypeError(f"For {name}, {article}{what} must be a Tensor, but got {type_text(value)}.")
    if input._dtype.kind != "float" or other._dtype.kind != "float":
        raise ScriptTypeError(
            f"For {name}, the dtype of 'input' and 'other' must be float,but got {input._dtype} and {other._dtype}."
        )


def logaddexp(input: Tensor, other: Tensor) -> Tensor:
    """Logarithm of the sum of the exponentials of two tensors."""
    _check_floats("logaddexp", "the ", input, other)
    gap = single("Exp", [single("Neg", [single("Abs", [sub(input, other)])])])
    return add(maximum(input, other), single("Log1p", [gap]))


def logaddexp2(input: Tensor, other: Tensor) -> Tensor:
    """`logaddexp` to base 2."""
    _check_floats("logaddexp2", "", input, other)
    gap = pow(2.0, single("Neg", [single("Abs", [sub(input, other)])]))
    return add(maximum(input, other), log2(add(1.0, gap)))


def mv(mat: Tensor, vec: Tensor) -> Tensor:
    """Product of a matrix and a vector."""
    for name, value in (("mat", mat), ("vec", vec)):
        if not isinstance(value, Tensor):
            raise ScriptTypeError(f"The input {name} must be Tensor.")
    return single("Mv", [mat, vec])


def outer(input: Tensor, vec: Tensor) -> Tensor:
    """Products of all elements of `input`, one row each, and the elements of a vector.

    Examples
    --------
    >>> outer(Tensor([[1.0], [2.0]]), Tensor([3.0, 4.0])).asnumpy().tolist()
    [[3.0, 4.0], [6.0, 8.0]]
    """
    for name, value in (("input", input), ("vec2", vec)):
        if not isinstance(value, Tensor):
            raise ScriptTypeError(f"the input {name} must be Tensor!")
    return mul(single("Reshape", [input, (-1, 1)]), vec)


def _check_numbers(owner: str, input: Any, settings: dict[str, Any], kinds: list[type]) -> None:
    check_is_tensor("input", input, owner)
    for name, value in settings.items():
        check_value_type(name, value, kinds, owner)


def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0) -> Tensor:
    """Bound every element.

    Examples
    --------
    >>> hardtanh(Tensor([-2.0, 0.5, 3.0]), max_val=2).asnumpy()
    array([-1. ,  0.5,  2. ], dtype=float32)
    """
    _check_numbers("hardtanh", input, {"min_val": min_val, "max_val": max_val}, [int, float])
    return single("Hardtanh", [input, min_val, max_val])


def threshold(input: Tensor, thr: float, value: float) -> Tensor:
    """Replace the elements that are at most `thr`.

    Examples
    --------
    >>> threshold(Tensor([1, 3]), 1.0, 0.0).asnumpy()
    array([0, 3])
    """
    _check_numbers("threshold", input, {"thr": thr, "value": value}, [float, int])
    if input._dtype.kind != "float":
        return select(greater(input, thr), input, cast_to(value, input._dtype))
    return single("Threshold", [input, thr, value])


def tensor_scatter_elements(
    input_x: Tensor, indices: Tensor, updates: Tensor, axis: int = 0, reduction: str = "none"
) -> Tensor:
    """Replace or, with the reduction "add", increase elements at indices along an axis."""
    number = number_of("TensorScatterElements", "reduce", reduction, ("none", "add"))
    expect("TensorScatterElements", input_x, indices, updates, axis)
    return single("TensorScatterElements", [input_x, indices, updates, axis, number])


def xlogy(input: Tensor, other: Tensor) -> Tensor:
    """``input * log(other)``, 0 where `input` is 0."""
    if is_number(input) != is_number(
        other
    ):  # a number becomes Float32, or has the type of a wider tensor [2.10 observed]
        tensor = other if is_number(input) else input
        kind = mstype.float64 if tensor._dtype == mstype.float64 else mstype.float32
        return single("Xlogy", [cast_to(input, kind), cast_to(other, kind)])
    return binary("Xlogy", input, other)
