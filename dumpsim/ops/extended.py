"""Reductions of the whole tensor and products, in the forms that the compiler expands (`dumpsim.ops.expand`)."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from dumpsim.core.abstract import Abstract, NoneType
from dumpsim.core.dtype import DType, dtype
from dumpsim.ops.gradient import shape_of
from dumpsim.ops.opdef import GradBuilder, Infer, OpDef
from dumpsim.ops.reduce import axes_of, product_gradient
from dumpsim.ops.rules import constant, ints_of, kept_shape, output, tensor_of, value_of

__all__ = ["OPS"]

Array = np.ndarray[Any, Any]
Attrs = Mapping[str, Any]


def _infer_whole(name: str) -> Infer:
    def infer(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
        return output(tensor_of(name, abstracts[0], "input").dtype, ())

    return infer


def _grad_whole(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
    """The elements that equal the result share its gradient.

    The vendor chooses between this and a mask of NaN by control flow; a tensor with NaN gets no gradient here.
    """
    x = operands[0]
    equal = b.emit("Equal", x, out)
    zeros = b.emit("Zeros", shape_of(x), x.abstract.dtype)
    count = b.emit("Cast", b.emit("SumExt", equal, None, False, None), x.abstract.dtype)
    return (b.emit("InplaceMaskedFillTensor", zeros, equal, b.emit("Div", dout, count)),)


def _whole(name: str, kernel: Callable[..., Any]) -> OpDef:
    return OpDef(
        name=name,
        operands=("input",),
        infer=_infer_whole(name),
        kernel=kernel,
        grad=_grad_whole,
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
    x, dim, keep, _ = operands
    axes = axes_of("ProdExt", constant(dim), len(shape_of(x)))
    return product_gradient(b, x, axes, bool(constant(keep)), dout), None, None, None


OPS = (
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
