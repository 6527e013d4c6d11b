"""Operators that reduce axes, sort elements or accumulate along an axis."""

from typing import Any

import numpy as np

from dumpsim.core.errors import ScriptTypeError, ScriptValueError, UnsupportedError
from dumpsim.frontends.mindspore._capture.dispatch import call
from dumpsim.frontends.mindspore._capture.libfunction import after_tests, calling, parsed_once, tested
from dumpsim.frontends.mindspore._checkparam import check_value_type
from dumpsim.frontends.mindspore.common import dtype as mstype
from dumpsim.frontends.mindspore.common._operandtypes import expect, type_text
from dumpsim.frontends.mindspore.common.tensor import Tensor
from dumpsim.frontends.mindspore.ops.function._single import inner_single, single
from dumpsim.frontends.mindspore.ops.function.arithmetic import (
    cast_to,
    div,
    is_number,
    maximum,
    minimum,
    not_equal,
    pow,
    sub,
)
from dumpsim.frontends.mindspore.ops.function.elementwise import negative, not_cast, unshared_cast
from dumpsim.frontends.mindspore.ops.function.shape import broadcast_to, reshape, select, swapaxes

__all__ = [
    "all",
    "amax",
    "amin",
    "any",
    "argmax",
    "argmin",
    "argsort",
    "cumprod",
    "cumsum",
    "logsumexp",
    "max",
    "mean",
    "min",
    "norm",
    "prod",
    "reduce_all",
    "reduce_any",
    "reduce_max",
    "reduce_mean",
    "reduce_min",
    "reduce_sum",
    "sort",
    "std",
    "sum",
    "topk",
    "unique",
    "var",
]


def _axes(axis: Any) -> Any:
    """Return the axes for an operator, which checks them; no axis stands for all of them."""
    return () if axis is None else axis


def _places(axis: Any) -> tuple[int, ...]:
    """Return None, one axis or several as a tuple."""
    return () if axis is None else tuple(axis) if isinstance(axis, (tuple, list)) else (axis,)


def _keep_dims(keepdims: bool, options: dict[str, Any]) -> bool:
    """Accept ``keep_dims`` as another name of ``keepdims``."""
    keep = options.pop("keep_dims", keepdims)
    if options:
        raise ScriptTypeError(f"unexpected keyword arguments {sorted(options)}", where="reduction")
    return bool(keep)


@parsed_once
def sum(input: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None, **options: Any) -> Tensor:
    """Sum along axes: the composite operator SumExt. [observed 2.10]

    Parameters
    ----------
    input : Tensor
    dim : int or tuple of int, optional
        Axes, all of them if None; ``axis`` is an alias.
    keepdim : bool
        Keep them with extent 1; ``keepdims`` and ``keep_dims`` are aliases.
    dtype : number type, optional
        Type to sum in.

    Examples
    --------
    >>> sum(Tensor([[1.0, 2.0], [3.0, 4.0]]), 1).asnumpy()
    array([3., 7.], dtype=float32)
    """
    axes = options.pop("axis", dim)
    expect("SumExt", input, axes, keepdim, dtype)
    kept = _keep_dims(bool(options.pop("keepdims", keepdim)), options)
    return single("SumExt", [input, axes, kept, dtype])


def mean(x: Tensor, axis: Any = None, keep_dims: bool = False, **options: Any) -> Tensor:
    """Mean along axes."""
    return single("ReduceMean", [x, _axes(axis), options.pop("keepdims", keep_dims)])


def reduced_loss(loss: Tensor, reduction: str, where: str) -> Tensor:
    """Reduce a tensor of losses, in a function of its own. [wheel ops/function/nn_func.py: _get_loss]

    Raises
    ------
    ValueError
        For another reduction than ``none``, ``mean`` and ``sum``.
    """
    if reduction not in ("mean", "sum", "none"):
        raise ScriptValueError(
            f"For '{where}', the 'reduction' must be in ['mean', 'sum', 'none'], but got {reduction}."
        )
    with calling("_get_loss"):
        after_tests(1)  # of the reduction
        given = [loss]
        for name, op_type in (("mean", "ReduceMean"), ("sum", "ReduceSum")):
            if reduction == name:
                with tested(given):
                    given[:] = [
                        single(op_type, [given[0], tuple(range(loss.ndim)), False, *([False] if name == "sum" else [])])
                    ]
        return given[0]


def prod(input: Tensor, axis: Any = None, keep_dims: bool = False, dtype: Any = None) -> Tensor:
    """Return the product along axes; several of them are reduced by ReduceProd. [source 2.10 math_func.py]"""
    if not isinstance(axis, (tuple, list, Tensor)):
        return single("ProdExt", [input, axis, keep_dims, dtype])
    return single("ReduceProd", [input if dtype is None else unshared_cast(input, dtype), axis, keep_dims])


def _extreme(kind: str, input: Tensor, axis: Any, keepdims: bool, initial: Any, where: Any) -> tuple[Tensor, Tensor]:
    if not input.shape:
        return input, Tensor(0, mstype.int64)
    if axis is None:
        value = single(kind, [input])
        return value, Tensor(0, mstype.int64)
    if initial is not None and not is_number(initial):
        raise ScriptTypeError(f"For '{kind.lower()}', 'initial' must be a scalar, but got {type_text(initial)}")
    if not isinstance(axis, int):
        raise ScriptTypeError(f"For '{kind.lower()}', 'axis' must be int, but got {type_text(axis)}")
    input = _chosen(input, initial, where, maximum if kind == "Max" else minimum)
    indices, values = call(f"Arg{kind}WithValue", [input, axis, keepdims])
    return values, indices


def max(
    input: Tensor, axis: int | None = None, keepdims: bool = False, *, initial: Any = None, where: Any = None
) -> tuple[Tensor, Tensor]:
    """Return the largest elements and their indices along an axis.

    Examples
    --------
    >>> max(Tensor([[1.0, 5.0]]), 1)[0].asnumpy()
    array([5.], dtype=float32)
    """
    return _extreme("Max", input, axis, keepdims, initial, where)


def min(
    input: Tensor, axis: int | None = None, keepdims: bool = False, *, initial: Any = None, where: Any = None
) -> tuple[Tensor, Tensor]:
    """Return the smallest elements and their indices along an axis."""
    return _extreme("Min", input, axis, keepdims, initial, where)


def reduce_sum(x: Tensor, axis: Any = (), keep_dims: bool = False, skip_mode: bool = False) -> Tensor:
    """Sum along axes, by the operator ReduceSum."""
    return single("ReduceSum", [x, _axes(axis), keep_dims, skip_mode])


def reduce_mean(x: Tensor, axis: Any = (), keep_dims: bool = False) -> Tensor:
    """Like `mean`."""
    return single("ReduceMean", [x, _axes(axis), keep_dims])


def reduce_max(x: Tensor, axis: Any = (), keep_dims: bool = False) -> Tensor:
    """Largest elements along axes."""
    return single("ReduceMax", [x, axis, keep_dims])


def reduce_min(x: Tensor, axis: Any = (), keep_dims: bool = False) -> Tensor:
    """Smallest elements along axes."""
    return single("ReduceMin", [x, axis, keep_dims])


def amax(input: Tensor, axis: Any = None, keepdims: bool = False, *, initial: Any = None, where: Any = None) -> Tensor:
    """Return the largest elements along axes; `initial` replaces elements that `where` excludes.

    Examples
    --------
    >>> amax(Tensor([1.0, 5.0]), initial=2.0, where=Tensor([True, False])).item()
    2.0
    """
    return single("ReduceMax", [_chosen(input, initial, where, maximum), _axes(axis), keepdims])


def amin(input: Tensor, axis: Any = None, keepdims: bool = False, *, initial: Any = None, where: Any = None) -> Tensor:
    """Return the smallest elements along axes; `initial` replaces elements that `where` excludes."""
    return single("ReduceMin", [_chosen(input, initial, where, minimum), _axes(axis), keepdims])


def _chosen(input: Tensor, initial: Any, where: Any, extreme: Any) -> Tensor:
    """Return the elements to reduce: `initial` replaces those that the mask excludes, and bounds the others."""
    if initial is not None:
        if not is_number(initial):
            raise not_cast(initial)
        initial = Tensor(np.full(input.shape, initial), input._dtype)
        input = extreme(input, initial)
    if isinstance(where, Tensor) or where is False:
        if initial is None:
            raise ScriptValueError("initial value must be provided for where masks")
        mask = where if isinstance(where, Tensor) else Tensor(where)
        input = select(broadcast_to(mask, input.shape), input, initial)
    return input


def reduce_all(input: Tensor, axis: Any = None, keep_dims: bool = False) -> Tensor:
    """Whether all elements along axes are true."""
    expect("ReduceAll", input, axis, keep_dims)
    return inner_single("ReduceAll", [input, _axes(axis), keep_dims])


def reduce_any(x: Tensor, axis: Any = None, keep_dims: bool = False) -> Tensor:
    """Whether any element along axes is true."""
    return single("ReduceAny", [x, _axes(axis), keep_dims])


all, any = reduce_all, reduce_any


def argmax(input: Tensor, dim: int | None = None, keepdim: bool = False, **options: Any) -> Tensor:
    """Index of the largest element along an axis, or in the flattened tensor if the axis is None."""
    return _index_of("Argmax", mstype.int64, input, options.pop("axis", dim), _keep_dims(keepdim, options))


def argmax_of(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
    """Like `argmax`, by the composite operator ArgMaxExt: the overload of the method with ``dim``. [observed 2.10]"""
    return single("ArgMaxExt", [input, dim, keepdim])


def argmin(input: Tensor, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Index of the smallest element along an axis, or in the flattened tensor if the axis is None."""
    return _index_of("Argmin", mstype.int32, input, axis, keepdims)


def _index_of(op_type: str, output: mstype.Number, input: Tensor, axis: int | None, keepdims: bool) -> Tensor:
    if axis is None:
        input = reshape(input, (-1,))
        axis, keepdims = 0, False
    out = single(op_type, [input, axis, output])
    if keepdims:
        out = single("ExpandDims", [out, axis])
    return out


def cumsum(x: Tensor, axis: int, dtype: Any = None) -> Tensor:
    """Running sum along an axis."""
    return single("CumSum", [cast_to(x, dtype) if dtype is not None else x, axis, False, False])


def cumprod(input: Tensor, dim: int, dtype: Any = None) -> Tensor:
    """Running product along an axis."""
    return single("CumProd", [cast_to(input, dtype) if dtype is not None else input, dim, False, False])


def topk(
    input: Tensor, k: int, dim: int | None = None, largest: bool = True, sorted: bool = True
) -> tuple[Tensor, Tensor]:
    """The `k` largest elements of the last axis, and their indices.

    Examples
    --------
    >>> topk(Tensor([1.0, 3.0, 2.0]), 2)[1]
    Tensor(shape=[2], dtype=Int32, value= [1, 2])
    """
    check_value_type("largest", largest, [bool], "topk")
    if not largest:
        input = negative(input)
    if dim is None or dim == input.ndim - 1:
        values, indices = call("TopK", [input, k], {"sorted": sorted})
    else:
        last = input.ndim - 1
        found = call("TopK", [swapaxes(input, dim, last), k], {"sorted": sorted})
        values, indices = (swapaxes(one, dim, last) for one in found)
    return values if largest else negative(values), indices


def sort(input_x: Tensor, axis: int = -1, descending: bool = False) -> tuple[Tensor, Tensor]:
    """Sort elements along an axis; also return their original indices."""
    values, indices = call("Sort", [input_x], {"axis": axis, "descending": descending})
    return values, indices


def argsort(input: Tensor, axis: int = -1, descending: bool = False) -> Tensor:
    """Indices that sort the elements along an axis."""
    return sort(input, axis, descending)[1]


def unique(input: Tensor) -> tuple[Tensor, Tensor]:
    """Distinct elements in the order of their first occurrence, and for each element its index among them."""
    extents = input.shape
    if input.ndim > 1:
        input = reshape(input, (-1,))
    y, idx = call("Unique", [input])
    if len(extents) != 1:
        idx = reshape(idx, extents)
    return y, idx


def var(input: Tensor, axis: Any = None, ddof: int = 0, keepdims: bool = False) -> Tensor:
    """Variance along axes, the square of `std`. [observed 2.10]"""
    return pow(std(input, axis, ddof, keepdims), 2)


def std(input: Tensor, axis: Any = None, ddof: int = 0, keepdims: bool = False) -> Tensor:
    """Standard deviation along axes, with `ddof` subtracted from the count: the first output of ReduceStd."""
    if ddof not in (0, 1):
        return std_by_sums(input, axis, ddof, keepdims)
    expect("ReduceStd", input, () if axis is None else axis if isinstance(axis, (tuple, list)) else (axis,))
    output: Tensor = call("ReduceStd", [input, _axes(axis), bool(ddof), bool(keepdims)])[0]
    return output


def var_by_sums(input: Tensor, axis: Any, ddof: int, keepdims: bool) -> Tensor:
    """Variance as computed by the method of Tensor. [observed 2.10]"""
    axes = _places(axis)
    count = 1
    for axis in axes or range(input.ndim):
        count *= input.shape[axis]
    centre = call("ReduceMean", [input, axes, True])
    squares = pow(sub(input, centre), 2)
    total = call("ReduceSum", [squares, axes, keepdims, False])
    return div(total, count - int(ddof))


def std_by_sums(input: Tensor, axis: Any, ddof: int, keepdims: bool) -> Tensor:
    """Square root of `var_by_sums`, as computed by the method of Tensor."""
    return pow(var_by_sums(input, axis, ddof, keepdims), 0.5)


def norm(
    A: Tensor,  # noqa: N803 - vendor's name
    ord: Any = None,
    dim: Any = None,
    keepdim: bool = False,
    *,
    dtype: Any = None,
) -> Tensor:
    """Norm of vectors along one axis, of matrices along two, or of all elements.

    Examples
    --------
    >>> norm(Tensor([[1.0, -2.0], [3.0, -4.0]]), float("inf")).item(), norm(Tensor([3.0, 4.0])).item()
    (7.0, 5.0)
    """
    axes = _norm_axes(A, dim)
    whole = dim is None and (ord is None or (ord == "fro" and A.ndim == 2) or (ord == 2 and A.ndim == 1))
    _check_order(ord, axes)
    if dtype is not None:
        A = unshared_cast(A, dtype)  # noqa: N806
    if whole:
        total = single("Sqrt", [call("ReduceSum", [call("Square", [A]), axes, False, False])])
        return reshape(total, (1,) * A.ndim) if keepdim else total
    if len(axes) == 2:
        return _matrix_norm(A, ord, axes, keepdim)
    if len(axes) != 1:
        raise UnsupportedError(f"the norm {ord!r} of {len(axes)} axes is not emulated", where="ops.norm")
    return _vector_norm(A, ord, axes, keepdim)


def _norm_axes(tensor: Tensor, dim: Any) -> tuple[int, ...]:
    if dim is None:
        return tuple(range(tensor.ndim))
    if isinstance(dim, tuple):
        if len(dim) > 2:
            raise ScriptValueError("For norm, the dimensions is out of range.")
        return dim
    if not isinstance(dim, int):
        raise ScriptTypeError(f"For norm, the dim should be int or tuple of int, but got {type(dim)}")
    return (dim,)


_ORDERS = (2, -2, 1, -1, float("inf"), -float("inf"), "fro", "nuc", None)


def _check_order(order: Any, axes: tuple[int, ...]) -> None:
    if len(axes) == 1 and isinstance(order, str):
        raise ScriptTypeError(f"For norm, ord mode can not be str for vectors, but got {order}.")
    if len(axes) == 2 and order not in _ORDERS:
        raise ScriptValueError(
            "For norm, the ord mode must be in [2, -2, 1, -1, float('inf'), -float('inf'), 'fro', 'nuc', None] "
            f"for matrices, but got {order}."
        )


def _matrix_norm(tensor: Tensor, order: Any, axes: tuple[int, ...], keepdim: bool) -> Tensor:
    row, column = (axis % tensor.ndim for axis in axes)
    if row == column:
        raise ScriptValueError("For norm, the elements of dim can not be duplicate.")
    if order in (2, -2, "nuc"):
        raise UnsupportedError(
            f"the norm {order!r} of a matrix is not emulated",
            where="ops.norm(ord)",
            allowed=("None", "'fro'", "1", "inf"),
        )
    if order in (None, "fro"):
        result = single("Sqrt", [call("ReduceSum", [call("Square", [tensor]), axes, False, False])])
    elif isinstance(order, int):
        sums = sum(call("Abs", [tensor]), row)
        extreme = max if order == 1 else min
        result = extreme(sums, column - (column > row))[0]
    else:
        sums = call("ReduceSum", [call("Abs", [tensor]), (column,), False, False])
        extreme = max if order > 0 else min
        result = extreme(sums, row - (row > column))[0]
    kept = tuple(1 if at in (row, column) else n for at, n in enumerate(tensor.shape))
    return reshape(result, kept) if keepdim else result


def _vector_norm(tensor: Tensor, order: Any, axes: tuple[int, ...], keepdim: bool) -> Tensor:
    if isinstance(order, int) and order > 0:
        return single("LpNorm", [tensor], {"axis": axes, "p": int(order), "keep_dims": keepdim})
    if order is None:
        return single("Sqrt", [call("ReduceSum", [call("Square", [tensor]), axes, keepdim, False])])
    if order in (float("inf"), -float("inf")):
        extreme = max if order > 0 else min
        return extreme(call("Abs", [tensor]), axes[0], keepdim)[0]
    if order == 0:
        return sum(unshared_cast(not_equal(tensor, 0), tensor.dtype), axes, keepdim)
    powers = pow(call("Abs", [tensor]), order)
    if isinstance(order, int):
        return pow(sum(powers, axes, keepdim), 1.0 / order)
    return pow(call("ReduceSum", [powers, axes, keepdim, False]), 1 / order)


def logsumexp(input: Tensor, dim: Any, keepdim: bool = False) -> Tensor:
    """Return the logarithm of the sum of exponentials, without overflow."""
    largest = call("ReduceMax", [input, dim, True])
    total = call("SumExt", [call("Exp", [sub(input, largest)]), dim, keepdim, None])
    shift = largest if keepdim else call("Squeeze", [largest, _places(dim)])
    return single("Add", [call("Log", [total]), shift])
