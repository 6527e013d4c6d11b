"""Reductions of the whole tensor and products, in the forms that the compiler expands (`dumpsim.ops.expand`)."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from dumpsim.core.abstract import Abstract, NoneType
from dumpsim.core.dtype import DType, dtype
from dumpsim.core.errors import ScriptValueError
from dumpsim.ops.gradient import part_or_zeros, shape_of
from dumpsim.ops.opdef import GradBuilder, Infer, OpDef
from dumpsim.ops.reduce import axes_of, product_gradient
from dumpsim.ops.rules import axis_of, constant, ints_of, kept_shape, output, tensor_of, tuple_of, value_of

__all__ = ["OPS"]

Array = np.ndarray[Any, Any]
Attrs = Mapping[str, Any]


def _infer_whole(name: str) -> Infer:
    def infer(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
        return output(tensor_of(name, abstracts[0], "input").dtype, ())

    return infer


def _grad_whole(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
    """The elements that equal the result share its gradient; if it is NaN, the elements that are NaN.

    The vendor selects the mask by control flow. [source grad_math_ops.cc ReduceExtOpGetMask]
    """
    x = operands[0]
    mask = b.choose(b.emit("NotEqual", out, out), lambda: b.emit("NotEqual", x, x), lambda: b.emit("Equal", x, out))
    zeros = b.emit("Zeros", shape_of(x), x.abstract.dtype)
    count = b.emit("Cast", b.emit("SumExt", mask, None, False, None), x.abstract.dtype)
    return (b.emit("InplaceMaskedFillTensor", zeros, mask, b.emit("Div", dout, count)),)


def _whole(name: str, kernel: Callable[..., Any]) -> OpDef:
    return OpDef(
        name=name,
        operands=("input",),
        infer=_infer_whole(name),
        kernel=kernel,
        grad=_grad_whole,
        branches=True,
        prim_func=True,
        composite=True,
    )


def _infer_filled(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
    x = tensor_of("InplaceMaskedFillTensor", abstracts[0], "input")
    return output(x.dtype, x.shape)


def _product_type(kind: DType, wanted: Abstract) -> DType:
    if not isinstance(wanted, NoneType):
        named: DType = value_of("ProdExt", wanted, "dtype")
        return named
    return dtype("int64") if kind.kind in ("bool", "int", "uint") else kind


def _infer_product(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
    x = tensor_of("ProdExt", abstracts[0], "input")
    axes = axes_of("ProdExt", ints_of("ProdExt", abstracts[1], "dim"), len(x.shape))
    keep = value_of("ProdExt", abstracts[2], "keepdim")
    shape = kept_shape(x.shape, axes) if keep else tuple(n for i, n in enumerate(x.shape) if i not in axes)
    return output(_product_type(x.dtype, abstracts[3]), shape)


@np.errstate(all="ignore")
def _product(x: Array, dim: Any = None, keepdim: bool = False, kind: DType | None = None) -> Any:
    numpy = kind.numpy if kind is not None else np.dtype(np.int64) if x.dtype.kind in "iub" else x.dtype
    axes = axes_of("ProdExt", dim, x.ndim)
    return x.prod(axis=axes, keepdims=keepdim, dtype=numpy) if axes else x.astype(numpy)


def _grad_product(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
    x, dim, *_ = operands
    axes = axes_of("ProdExt", constant(dim), len(shape_of(x)))
    return product_gradient(b, x, axes, dout), None, None, None


def _infer_std(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
    x = tensor_of("ReduceStd", abstracts[0], "x")
    axes = axes_of("ReduceStd", ints_of("ReduceStd", abstracts[1], "axis"), len(x.shape))
    keep = value_of("ReduceStd", abstracts[3], "keep_dims")
    shape = kept_shape(x.shape, axes) if keep else tuple(n for i, n in enumerate(x.shape) if i not in axes)
    return tuple_of(output(x.dtype, shape), output(x.dtype, shape))


@np.errstate(all="ignore")
def _std(x: Array, axis: Any = (), unbiased: bool = True, keep_dims: bool = False) -> tuple[Any, Any]:
    axes = axes_of("ReduceStd", axis, x.ndim)
    mean = x.mean(axis=axes, keepdims=True)
    count = math.prod(x.shape[at] for at in axes) - bool(unbiased)
    squares = ((x - mean) ** 2).sum(axis=axes, keepdims=keep_dims)
    root = np.sqrt(squares / np.asarray(count, x.dtype))
    return np.asanyarray(root, x.dtype), mean if keep_dims else mean.reshape(np.shape(squares))


def _grad_std(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
    """As in the vendor's rule, both outputs have a gradient, even if it is zero. [observed 2.10]"""
    x, axis, unbiased, keep = operands
    shape = shape_of(x)
    axes = axes_of("ReduceStd", constant(axis), len(shape))
    kept = kept_shape(shape, axes)
    count = math.prod(shape[at] for at in axes)
    std, mean = b.item(out, 0), b.item(out, 1)
    dstd, dmean = part_or_zeros(b, dout, 0, out), part_or_zeros(b, dout, 1, out)
    if not constant(keep):
        dstd, dmean, std, mean = (b.emit("Reshape", value, kept) for value in (dstd, dmean, std, mean))
    slope = b.emit("Div", b.emit("Mul", b.emit("Sub", x, mean), dstd), std)
    dx = b.emit("Div", slope, np.asarray([count - bool(constant(unbiased))], x.abstract.dtype.numpy))
    rest = b.emit("Div", dmean, np.asarray([count], x.abstract.dtype.numpy))
    return b.emit("Add", dx, rest), None, None, None


def _infer_place(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
    x = tensor_of("ArgMaxExt", abstracts[0], "input")
    if isinstance(abstracts[1], NoneType):
        return output("int64", ())
    axis = axis_of("ArgMaxExt", value_of("ArgMaxExt", abstracts[1], "dim"), len(x.shape), "dim")
    keep = value_of("ArgMaxExt", abstracts[2], "keepdim")
    return output("int64", kept_shape(x.shape, (axis,)) if keep else (*x.shape[:axis], *x.shape[axis + 1 :]))


def _place(x: Array, dim: int | None = None, keepdim: bool = False) -> Any:
    return np.asanyarray(np.argmax(x, axis=dim, keepdims=keepdim and dim is not None), np.int64)


def _infer_new(name: str) -> Infer:
    def infer(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
        x = tensor_of(name, abstracts[0], "input")
        kind = x.dtype if isinstance(abstracts[2], NoneType) else value_of(name, abstracts[2], "dtype")
        return output(kind, ints_of(name, abstracts[1], "size"))

    return infer


def _new(name: str, value: int) -> OpDef:
    def kernel(x: Array, size: Any, kind: DType | None = None) -> Array:
        return np.full(tuple(size) if isinstance(size, Sequence) else (size,), value, kind.numpy if kind else x.dtype)

    return OpDef(
        name=name,
        operands=("input", "size", "dtype"),
        defaults=(None,),
        infer=_infer_new(name),
        kernel=kernel,
        prim_func=True,
        composite=True,
        stop=True,
    )


def _grad_mask(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
    return b.emit("MaskedFillScalar", dout, operands[1], 0.0), None, None


def _infer_view(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
    x, other = tensor_of("ViewAs", abstracts[0], "input"), tensor_of("ViewAs", abstracts[1], "other")
    if x.size != other.size:
        raise ScriptValueError(f"For 'ViewAs', a tensor of shape {x.shape} cannot have the shape {other.shape}.")
    return output(x.dtype, other.shape)


def _grad_view(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
    return b.emit("Reshape", dout, shape_of(operands[0])), None


OPS = (
    OpDef(
        name="ReduceStd",
        operands=("x", "axis", "unbiased", "keep_dims"),
        defaults=((), True, False),
        infer=_infer_std,
        kernel=_std,
        grad=_grad_std,
        prim_func=True,
    ),
    OpDef(
        name="MaskedFillScalar",
        operands=("input", "mask", "value"),
        infer=_infer_filled,
        kernel=lambda x, mask, value: np.where(mask, np.asarray(value, np.asanyarray(x).dtype), x),
        grad=_grad_mask,
        prim_func=True,
        composite=True,
    ),
    OpDef(
        name="ArgMaxExt",
        operands=("input", "dim", "keepdim"),
        defaults=(None, False),
        infer=_infer_place,
        kernel=_place,
        prim_func=True,
        composite=True,
        stop=True,
    ),
    _new("NewZeros", 0),
    _new("NewOnes", 1),
    OpDef(
        name="ViewAs",
        operands=("input", "other"),
        infer=_infer_view,
        kernel=lambda x, other: np.reshape(x, np.shape(other)),
        grad=_grad_view,
        prim_func=True,
        composite=True,
    ),
    _whole("Max", lambda x: x.max()),
    _whole("Min", lambda x: x.min()),
    OpDef(
        name="InplaceMaskedFillTensor",
        operands=("input", "mask", "value"),
        infer=_infer_filled,
        kernel=lambda x, mask, value: np.asanyarray(np.where(mask, value, x), x.dtype),
        prim_func=True,
        composite=True,
    ),
    OpDef(
        name="ProdExt",
        operands=("input", "dim", "keepdim", "dtype"),
        defaults=(None, False, None),
        infer=_infer_product,
        kernel=_product,
        grad=_grad_product,
        prim_func=True,
        composite=True,
    ),
)
