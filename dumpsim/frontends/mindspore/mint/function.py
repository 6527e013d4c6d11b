"""The functions of ``mindspore.mint`` that are not only renamed functions of ``mindspore.ops``."""

from collections.abc import Sequence
from typing import Any

from dumpsim.core.errors import ScriptTypeError, ScriptValueError, UnsupportedError
from dumpsim.frontends.mindspore import ops
from dumpsim.frontends.mindspore._capture.dispatch import call
from dumpsim.frontends.mindspore.common import dtype as mstype
from dumpsim.frontends.mindspore.common._operandtypes import expect, type_text
from dumpsim.frontends.mindspore.common._overloads import overloaded
from dumpsim.frontends.mindspore.common.tensor import Tensor
from dumpsim.frontends.mindspore.ops._signatures import number_of
from dumpsim.frontends.mindspore.ops.function._single import single
from dumpsim.frontends.mindspore.ops.function.arithmetic import binary, divs, equals, is_number, modulo, muls, promote

__all__ = [
    "add",
    "arctan2",
    "argmax",
    "argmin",
    "argsort",
    "atan2",
    "bmm",
    "clone",
    "div",
    "eq",
    "flatten",
    "full",
    "full_like",
    "ge",
    "greater_equal",
    "isnan",
    "linspace",
    "logaddexp",
    "logaddexp2",
    "max",
    "mean",
    "meshgrid",
    "min",
    "mul",
    "mv",
    "norm",
    "ones_like",
    "outer",
    "pow",
    "rand",
    "randn",
    "remainder",
    "scatter",
    "sort",
    "sub",
    "t",
    "topk",
    "zeros_like",
]


def _sum(tensors: str, numbers: str, input: Any, other: Any, alpha: Any) -> Tensor:
    """Call AddExt or SubExt for tensors, AddScalar or SubScalar for a number as second operand. [observed 2.10]"""
    if is_number(other) and isinstance(input, Tensor):
        return single(numbers, [input, other, alpha])
    return single(tensors, [*promote(tensors, input, other), alpha])


@overloaded("mint.add")
def add(input: Any, other: Any, *, alpha: Any = 1) -> Tensor:
    """``input + alpha * other``.

    Examples
    --------
    >>> add(Tensor([1.0]), Tensor([2.0]), alpha=3).asnumpy()
    array([7.], dtype=float32)
    """
    return _sum("AddExt", "AddScalar", input, other, alpha)


@overloaded("mint.sub")
def sub(input: Any, other: Any, *, alpha: Any = 1) -> Tensor:
    """``input - alpha * other``.

    Examples
    --------
    >>> sub(Tensor([5.0]), Tensor([2.0]), alpha=2).asnumpy()
    array([1.], dtype=float32)
    """
    return _sum("SubExt", "SubScalar", input, other, alpha)


@overloaded("mint.mul")
def mul(input: Any, other: Any) -> Tensor:
    """Product; for a number, the operator is Muls, as for ``*``.

    Examples
    --------
    >>> mul(Tensor([3.0]), 2).asnumpy()
    array([6.], dtype=float32)
    """
    return muls(input, other)


@overloaded("mint.div")
def div(input: Any, other: Any, *, rounding_mode: str | None = None) -> Tensor:
    """Quotient, optionally rounded by "floor" or "trunc"; for a number, the operator is Divs, as for ``/``.

    Examples
    --------
    >>> div(Tensor([3.0]), 2).asnumpy(), div(Tensor([3.0]), Tensor([2.0]), rounding_mode="floor").asnumpy()
    (array([1.5], dtype=float32), array([1.], dtype=float32))
    """
    if rounding_mode not in ("floor", "trunc"):  # other names have no effect [2.10 observed]
        return divs(input, other)
    result: Tensor = ops.div(input, other, rounding_mode=rounding_mode)
    return result


@overloaded("mint.remainder")
def remainder(input: Any, other: Any) -> Tensor:
    """Remainder of a quotient that is rounded down, like ``%``.

    Examples
    --------
    >>> remainder(Tensor([-7.0]), 2).asnumpy()
    array([1.], dtype=float32)
    """
    return modulo(input, other)


def pow(input: Any, exponent: Any) -> Tensor:
    """Power; for a number, the operator is PowTensorScalar or PowScalarTensor. [observed 2.10]

    Examples
    --------
    >>> pow(2, Tensor([3.0])).asnumpy()
    array([8.], dtype=float32)
    """
    if is_number(exponent) == is_number(input):
        return binary("Pow", input, exponent)
    return single("PowTensorScalar" if is_number(exponent) else "PowScalarTensor", [input, exponent])


@overloaded("mint.eq")
def eq(input: Any, other: Any) -> Tensor:
    """Whether elements are equal, like ``==``.

    Examples
    --------
    >>> eq(Tensor([1.0, 2.0]), 2).asnumpy()
    array([False,  True])
    """
    return equals(input, other)


@overloaded("mint.greater_equal")
def greater_equal(input: Any, other: Any) -> Tensor:
    """Whether elements are greater or equal; for a number, the operator is GreaterEqualScalar. [observed 2.10]

    Examples
    --------
    >>> greater_equal(Tensor([1.0, 2.0]), 2).asnumpy()
    array([False,  True])
    """
    if is_number(other) and isinstance(input, Tensor):
        return single("GreaterEqualScalar", [input, other])
    return binary("GreaterEqual", input, other)


ge = greater_equal


def bmm(input: Tensor, mat2: Tensor) -> Tensor:
    """Products of two stacks of matrices.

    Examples
    --------
    >>> bmm(Tensor([[[2.0]]]), Tensor([[[3.0]]])).asnumpy()
    array([[[6.]]], dtype=float32)
    """
    return single("BatchMatMulExt", [input, mat2])


def flatten(input: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """Join adjacent axes.

    Examples
    --------
    >>> flatten(Tensor([[[1.0], [2.0]]]), 1).shape
    (1, 2)
    """
    return single("FlattenExt", [input, start_dim, end_dim])


def full(size: Any, fill_value: Any, *, dtype: Any = None) -> Tensor:
    """Fill a shape with one value, whose type is used if `dtype` is None.

    Examples
    --------
    >>> full((2,), 3.0).asnumpy()
    array([3., 3.], dtype=float32)
    """
    value = fill_value.item() if isinstance(fill_value, Tensor) else fill_value
    return single("FillScalar", [(size,) if isinstance(size, int) else tuple(size), value, dtype])


def zeros_like(input: Tensor, *, dtype: Any = None) -> Tensor:
    """Zeros in the shape of a tensor.

    Examples
    --------
    >>> zeros_like(Tensor([1.0, 2.0])).asnumpy()
    array([0., 0.], dtype=float32)
    """
    return single("ZerosLikeExt", [input, dtype])


def ones_like(input: Tensor, *, dtype: Any = None) -> Tensor:
    """Ones in the shape of a tensor.

    Examples
    --------
    >>> ones_like(Tensor([1.0, 2.0])).asnumpy()
    array([1., 1.], dtype=float32)
    """
    return single("OnesLikeExt", [input, dtype])


def logaddexp(input: Tensor, other: Tensor) -> Tensor:
    """Logarithm of the sum of the exponentials of two tensors.

    Examples
    --------
    >>> logaddexp(Tensor([0.0]), Tensor([0.0])).asnumpy().round(4)
    array([0.6931], dtype=float32)
    """
    return single("LogAddExp", [input, other])


def logaddexp2(input: Tensor, other: Tensor) -> Tensor:
    """`logaddexp` to base 2.

    Examples
    --------
    >>> logaddexp2(Tensor([0.0]), Tensor([0.0])).asnumpy()
    array([1.], dtype=float32)
    """
    return single("LogAddExp2", [input, other])


def mv(input: Tensor, vec: Tensor) -> Tensor:
    """Product of a matrix and a vector.

    Examples
    --------
    >>> mv(Tensor([[1.0, 2.0]]), Tensor([3.0, 4.0])).asnumpy()
    array([11.], dtype=float32)
    """
    return single("Mv", [input, vec])


def isnan(input: Any) -> Tensor:
    """Whether elements differ from themselves.

    Examples
    --------
    >>> isnan(Tensor([1.0, float("nan")])).asnumpy()
    array([False,  True])
    """
    if is_number(input):
        return Tensor(input != input)
    expect("NotEqual", input, input)
    return single("IsNan", [input])


def outer(input: Tensor, vec2: Tensor) -> Tensor:
    """Products of the elements of two vectors.

    Examples
    --------
    >>> outer(Tensor([1.0, 2.0]), Tensor([3.0])).asnumpy().tolist()
    [[3.0], [6.0]]
    """
    return single("Outer", [input, vec2])


def atan2(input: Tensor, other: Tensor) -> Tensor:
    """Angle of the point (other, input).

    Examples
    --------
    >>> atan2(Tensor([1.0]), Tensor([0.0])).asnumpy().round(4)
    array([1.5708], dtype=float32)
    """
    result: Tensor = ops.atan2(input, other)
    return result


arctan2 = atan2


def mean(input: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """Mean along axes.

    Examples
    --------
    >>> mean(Tensor([[1.0, 3.0]]), dim=1, keepdim=True).asnumpy()
    array([[2.]], dtype=float32)
    """
    return single("MeanExt", [input, dim, keepdim, dtype])


def _extreme(name: str, input: Tensor, dim: Any, keepdim: bool) -> Any:
    if isinstance(dim, (Tensor, float)):
        return (ops.maximum if name == "Max" else ops.minimum)(input, dim)
    return call(name, [input]) if dim is None else call(f"{name}Dim", [input, dim, keepdim])


@overloaded("mint.max")
def max(input: Tensor, dim: Any = None, keepdim: bool = False) -> Any:
    """Largest element; for an axis, the largest elements along it and their indices; for a tensor, elementwise.

    Examples
    --------
    >>> max(Tensor([[1.0, 5.0]])).item(), max(Tensor([[1.0, 5.0]]), 1)[1].item()
    (5.0, 1)
    """
    return _extreme("Max", input, dim, keepdim)


@overloaded("mint.min")
def min(input: Tensor, dim: Any = None, keepdim: bool = False) -> Any:
    """Like `max`, for the smallest element.

    Examples
    --------
    >>> min(Tensor([[1.0, 5.0]])).item(), min(Tensor([[1.0, 5.0]]), 1)[1].item()
    (1.0, 0)
    """
    return _extreme("Min", input, dim, keepdim)


def argmax(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
    """Index of the largest element along an axis, or in the flattened tensor if it is None.

    Examples
    --------
    >>> argmax(Tensor([3.0, 1.0])).item()
    0
    """
    return single("ArgMaxExt", [input, dim, keepdim])


def argmin(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
    """Index of the smallest element along an axis, or in the flattened tensor if it is None.

    Examples
    --------
    >>> argmin(Tensor([3.0, 1.0])).item()
    1
    """
    result: Tensor = ops.cast(ops.argmin(input, dim, keepdim), mstype.int64)
    return result


def sort(input: Tensor, *, dim: int = -1, descending: bool = False, stable: bool = False) -> tuple[Tensor, Tensor]:
    """Sort elements along an axis; also return their original indices. The sort is stable.

    Examples
    --------
    >>> sort(Tensor([3.0, 1.0]))[1]
    Tensor(shape=[2], dtype=Int64, value= [1, 0])
    """
    values, indices = ops.sort(input, dim, descending)
    return values, ops.cast(indices, mstype.int64)


def argsort(input: Tensor, dim: int = -1, descending: bool = False, stable: bool = False) -> Tensor:
    """Indices that sort the elements along an axis.

    Examples
    --------
    >>> argsort(Tensor([3.0, 1.0, 2.0]), descending=True).asnumpy()
    array([0, 2, 1])
    """
    return sort(input, dim=dim, descending=descending)[1]


def topk(input: Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> tuple[Tensor, Tensor]:
    """The `k` largest or smallest elements along an axis, and their indices.

    Examples
    --------
    >>> topk(Tensor([1.0, 3.0, 2.0]), 2, largest=False)[0].asnumpy()
    array([1., 2.], dtype=float32)
    """
    last = input.ndim - 1
    swapped = dim % input.ndim != last
    x = ops.swapaxes(input, dim, last) if swapped else input
    values, indices = ops.topk(x if largest else ops.neg(x), k, sorted=sorted)
    values = values if largest else ops.neg(values)
    if swapped:
        values, indices = ops.swapaxes(values, dim, last), ops.swapaxes(indices, dim, last)
    return values, ops.cast(indices, mstype.int64)


def norm(input: Tensor, p: Any = "fro", dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """Norm of the vectors along axes, or of all elements, with exponent `p`; "fro" is the Euclidean one.

    Examples
    --------
    >>> norm(Tensor([3.0, 4.0])).item(), norm(Tensor([3.0, 4.0]), 1).item()
    (5.0, 7.0)
    """
    if not isinstance(input, Tensor):
        raise ScriptTypeError(f"For `norm_ext`, the `input` must be Tensor!, but get {type_text(input)}.")
    if isinstance(p, str) and p not in ("fro", "nuc"):
        raise ScriptValueError(
            f"For `norm_ext`, the value of `p` must be one of [int, float, inf, -inf, 'fro', 'nuc',] but got `{p}`."
        )
    expect("LinalgVectorNorm", input, 2.0 if p == "fro" else p, dim, keepdim, dtype)
    x = input if dtype is None else ops.cast(input, dtype)
    if p == 1:
        total: Tensor = ops.sum(ops.abs(x), dim, keepdim)
        return total
    if isinstance(p, str) or isinstance(dim, int):
        result: Tensor = ops.norm(x, None if p == "fro" else p, dim, keepdim)
        return result
    if dim is not None and len(dim) not in (1, input.ndim):
        raise UnsupportedError(f"the norm {p!r} of {len(dim)} axes is not emulated", where="mint.norm")
    if dim is not None and len(dim) == 1:
        return norm(x, p, dim[0], keepdim)
    whole: Tensor = ops.norm(ops.reshape(x, (-1,)), p, 0)
    return ops.reshape(whole, (1,) * input.ndim) if keepdim else whole


def full_like(input: Tensor, fill_value: Any, *, dtype: Any = None) -> Tensor:
    """Fill the shape of a tensor with one value.

    Examples
    --------
    >>> full_like(Tensor([1.0, 2.0]), 7).asnumpy()
    array([7., 7.], dtype=float32)
    """
    result: Tensor = ops.full(input.shape, fill_value, dtype=input.dtype if dtype is None else dtype)
    return result


def linspace(start: Any, end: Any, steps: int, *, dtype: Any = None) -> Tensor:
    """Evenly spaced numbers, float32 by default.

    Examples
    --------
    >>> linspace(0, 1, 3).asnumpy()
    array([0. , 0.5, 1. ], dtype=float32)
    """
    result: Tensor = ops.cast(ops.linspace(float(start), float(end), steps), dtype or mstype.float32)
    return result


def meshgrid(*tensors: Any, indexing: str = "ij") -> tuple[Tensor, ...]:
    """Coordinates of a grid; the first operand varies along the first axis, unless `indexing` is "xy".

    Examples
    --------
    >>> [grid.asnumpy().tolist() for grid in meshgrid(Tensor([1, 2]), Tensor([3, 4]))]
    [[[1, 1], [2, 2]], [[3, 4], [3, 4]]]
    """
    number_of("meshgrid", "indexing", indexing, ("ij", "xy"))
    listed = tensors[0] if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)) else tensors
    result: tuple[Tensor, ...] = ops.meshgrid(*listed, indexing=indexing)
    return result


def clone(input: Tensor) -> Tensor:
    """Copy a tensor.

    Examples
    --------
    >>> x = Tensor([1.0])
    >>> clone(x) is x, clone(x).asnumpy()
    (False, array([1.], dtype=float32))
    """
    result: Tensor = ops.deepcopy(input)
    return result


def t(input: Tensor) -> Tensor:
    """Exchange the first two axes; return a vector unchanged.

    Examples
    --------
    >>> t(Tensor([[1.0, 2.0]])).shape
    (2, 1)
    """
    result: Tensor = ops.swapaxes(input, 0, 1) if input.ndim > 1 else input
    return result


def scatter(input: Tensor, dim: int, index: Tensor, src: Any) -> Tensor:
    """Replace elements at indices along an axis.

    Examples
    --------
    >>> scatter(Tensor([1.0, 2.0]), 0, Tensor([1]), Tensor([9.0])).asnumpy()
    array([1., 9.], dtype=float32)
    """
    return single("Scatter" if isinstance(src, Tensor) else "ScatterValue", [input, dim, index, src, 0])


def _size(size: Sequence[Any]) -> tuple[int, ...]:
    return tuple(size[0]) if len(size) == 1 and isinstance(size[0], (tuple, list)) else tuple(size)


def rand(*size: Any, generator: Any = None, dtype: Any = None) -> Tensor:
    """Uniform random numbers from 0 to 1.

    Examples
    --------
    >>> rand(2, 3).shape
    (2, 3)
    """
    _no_generator(generator)
    result: Tensor = ops.rand(*_size(size), dtype=dtype)
    return result


def randn(*size: Any, generator: Any = None, dtype: Any = None) -> Tensor:
    """Normal random numbers.

    Examples
    --------
    >>> randn(2, 3, dtype=mstype.float16).dtype
    mindspore.float16
    """
    _no_generator(generator)
    result: Tensor = ops.randn(*_size(size), dtype=dtype)
    return result


def _no_generator(generator: Any) -> None:
    if generator is not None:
        raise UnsupportedError("a separate random generator is not emulated", where="mindspore.mint(generator)")
