"""Reductions over axes."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from dumpsim.core.abstract import Abstract, NoneType
from dumpsim.core.dtype import DType, dtype
from dumpsim.core.errors import ScriptRuntimeError, ScriptTypeError
from dumpsim.ops.gradient import number, part_or_zeros, shape_of
from dumpsim.ops.opdef import Grad, GradBuilder, Infer, OpDef
from dumpsim.ops.rules import (
    axis_of,
    constant,
    ints_of,
    kept_shape,
    output,
    size_of,
    tensor_of,
    tuple_of,
    type_of,
    value_of,
)

__all__ = ["OPS", "argument", "axes_of", "product_gradient", "reduction", "spread", "with_value"]

Array = np.ndarray[Any, Any]
Attrs = Mapping[str, Any]


def axes_of(name: str, axis: Any, rank: int) -> tuple[int, ...]:
    """Return the axes, counted from 0, of an axis operand (a number, a tuple, None); if it is empty, all axes."""
    named = (axis,) if isinstance(axis, int) else tuple(axis or ())
    axes = tuple(axis_of(name, a, rank) for a in named) if rank else ()
    for a in axes:
        if axes.count(a) > 1:
            raise ScriptRuntimeError(f"dim={a} appears multiple times in the list of dims")
    return axes or tuple(range(rank))


def _reduced(shape: Sequence[int], axes: Sequence[int], keep: bool) -> tuple[int, ...]:
    return kept_shape(shape, axes) if keep else tuple(n for i, n in enumerate(shape) if i not in axes)


def _infer(name: str, kind: DType | None = None, kinds: Sequence[str] = ()) -> Infer:
    def infer(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
        x = tensor_of(name, abstracts[0], "x", kinds)
        axes = axes_of(name, ints_of(name, abstracts[1], "axis"), len(x.shape))
        keep = bool(value_of(name, abstracts[2], "keep_dims"))
        return output(kind or x.dtype, _reduced(x.shape, axes, keep))

    return infer


def reduction(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the kernel of a reduction by ``function(x, axis, keepdims)``."""

    @np.errstate(all="ignore")
    def run(x: Array, axis: Any = (), keep_dims: bool = False, skip_mode: bool = False) -> Any:
        if skip_mode and not isinstance(axis, int) and not axis:
            return x
        axes = axes_of(name, axis, np.ndim(x))
        return function(x, axis=axes, keepdims=keep_dims) if axes else np.asanyarray(x)

    return run


def _sum(x: Array, axis: Any, keepdims: bool) -> Any:
    if x.dtype == np.bool_:
        return x.any(axis=axis, keepdims=keepdims)
    return x.sum(axis=axis, keepdims=keepdims, dtype=x.dtype)


def _mean(x: Array, axis: Any, keepdims: bool) -> Any:
    if x.dtype.kind in "iu":
        count = size_of(x.shape[a] for a in axis)
        total = x.sum(axis=axis, keepdims=keepdims)
        quotient = total // count  # integers round towards zero [2.10 observed]
        return (quotient + ((total < 0) & (total % count != 0))).astype(x.dtype)
    return x.mean(axis=axis, keepdims=keepdims, dtype=x.dtype)


def _product(x: Array, axis: Any, keepdims: bool) -> Any:
    return x.prod(axis=axis, keepdims=keepdims, dtype=x.dtype)


def spread(b: GradBuilder, dout: Any, shape: Sequence[int], axes: Sequence[int]) -> Any:
    """Expand a reduced gradient to the full shape: Reshape, then Tile. [2.10 observed]"""
    kept = kept_shape(shape, axes)
    if kept != shape_of(dout):
        dout = b.emit("Reshape", dout, kept)
    multiples = tuple(n if i in axes else 1 for i, n in enumerate(shape))
    return dout if all(m == 1 for m in multiples) else b.emit("Tile", dout, multiples)


def _settings(operands: Sequence[Any]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the shape of the input and the reduced axes."""
    shape = shape_of(operands[0])
    return shape, axes_of("gradient", constant(operands[1]), len(shape))


def _grad_sum(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
    shape, axes = _settings(operands)
    return spread(b, dout, shape, axes), *(None for _ in operands[1:])


def _grad_mean(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
    shape, axes = _settings(operands)
    count = size_of(shape[a] for a in axes)
    return b.emit("RealDiv", spread(b, dout, shape, axes), number(count, dout)), None, None


def _grad_extreme(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
    """The elements that equal the result share its gradient."""
    x = operands[0]
    shape, axes = _settings(operands)
    kept = kept_shape(shape, axes)
    if kept != shape_of(out):
        dout, out = b.emit("Reshape", dout, kept), b.emit("Reshape", out, kept)
    equal = b.emit("Cast", b.emit("Equal", out, x), x.abstract.dtype)
    share = b.emit("Div", dout, b.emit("SumExt", equal, axes, True, None))
    return b.emit("Mul", share, equal), None, None


def product_gradient(b: GradBuilder, x: Any, axes: Sequence[int], dout: Any) -> Any:
    """Multiply the products of all elements before and after each one, which is exact also for zeros."""
    shape = shape_of(x)
    if not shape:
        return dout
    others = tuple(i for i in range(len(shape)) if i not in axes)
    order = (*axes, *others)
    turned = b.emit("Transpose", x, order) if order != tuple(range(len(shape))) else x
    moved = tuple(shape[i] for i in order)
    flat = (size_of(shape[i] for i in axes), size_of(shape[i] for i in others))
    table = b.emit("Reshape", turned, flat) if moved != flat else turned
    before = b.emit("CumProd", table, 0, True, False)
    rest = b.emit("Mul", before, b.emit("CumProd", table, 0, True, True))
    rest = b.emit("Reshape", rest, moved) if moved != flat else rest
    back = tuple(order.index(i) for i in range(len(shape)))
    rest = b.emit("Transpose", rest, back) if back != tuple(range(len(shape))) else rest
    return b.emit("Mul", rest, spread(b, dout, shape, axes))


def _grad_product(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
    _, axes = _settings(operands)
    return product_gradient(b, operands[0], axes, dout), None, None


def _reduction(
    name: str,
    function: Callable[..., Any],
    grad: Grad | None,
    *,
    skip: bool = False,
    stop: bool = False,
    kind: DType | None = None,
) -> OpDef:
    return OpDef(
        name=name,
        operands=("x", "axis", "keep_dims", "skip_mode") if skip else ("x", "axis", "keep_dims"),
        defaults=((), False, False) if skip else ((), False),
        infer=_infer(name, kind),
        kernel=reduction(name, function),
        grad=grad,
        prim_func=True,
        stop=stop,
    )


def _infer_arg(name: str, default: str) -> Infer:
    def infer(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
        x = tensor_of(name, abstracts[0], "input")
        axis = axis_of(name, value_of(name, abstracts[1], "axis"), len(x.shape), "axis")
        kind = dtype(default) if isinstance(abstracts[2], NoneType) else value_of(name, abstracts[2], "output_type")
        kind = type_of(kind) if isinstance(kind, int) else kind  # the vendor's number of the type
        if not isinstance(kind, DType) or kind.name not in ("int32", "int64"):
            raise ScriptTypeError(f"For '{name}', 'output_type' must be int32 or int64, but got {kind}.")
        return output(kind, _reduced(x.shape, (axis,), False) if x.shape else ())

    return infer


def argument(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a kernel for the index of an extreme, which ``function(x, axis)`` finds."""

    def run(x: Array, axis: int = -1, output_type: Any = None) -> Any:
        return function(x, axis=axis).astype(np.int32 if output_type is None else type_of(output_type).numpy)

    return run


def _infer_with_value(name: str) -> Infer:
    def infer(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
        x = tensor_of(name, abstracts[0], "input")
        axis = axis_of(name, value_of(name, abstracts[1], "axis"), len(x.shape), "axis")
        shape = _reduced(x.shape, (axis,), bool(value_of(name, abstracts[2], "keep_dims"))) if x.shape else ()
        return tuple_of(output("int64", shape), output(x.dtype, shape))

    return infer


def with_value(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a kernel for the index of an extreme, which ``function(x, axis)`` finds, and the extreme itself."""

    def run(x: Array, axis: int = 0, keep_dims: bool = False) -> tuple[Array, Array]:
        if not x.shape:
            return np.zeros((), np.int64), x
        index = np.expand_dims(function(x, axis=axis), axis)
        value = np.take_along_axis(x, index, axis)
        index = index.astype(np.int64)
        return (index, value) if keep_dims else (index.squeeze(axis), value.squeeze(axis))

    return run


def _grad_with_value(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
    x, axis, keep = operands[0], constant(operands[1]), bool(constant(operands[2]))
    zeros = b.emit("Zeros", shape_of(x), x.abstract.dtype)
    index, slope = b.item(out, 0), part_or_zeros(b, dout, 1, out)
    if not keep:
        index, slope = b.emit("ExpandDims", index, axis), b.emit("ExpandDims", slope, axis)
    return b.emit("InplaceScatterSrc", zeros, axis, index, slope), None, None


def _extreme_with_value(name: str, function: Callable[..., Any]) -> OpDef:
    return OpDef(
        name=name,
        operands=("input", "axis", "keep_dims"),
        defaults=(0, False),
        infer=_infer_with_value(name),
        kernel=with_value(function),
        grad=_grad_with_value,
        prim_func=True,
    )


_BOOL = dtype("bool")

OPS = (
    _reduction("ReduceSum", _sum, _grad_sum, skip=True),
    _reduction("ReduceMean", _mean, _grad_mean),
    _reduction("ReduceMax", lambda x, axis, keepdims: x.max(axis=axis, keepdims=keepdims), _grad_extreme),
    _reduction("ReduceMin", lambda x, axis, keepdims: x.min(axis=axis, keepdims=keepdims), _grad_extreme),
    _reduction("ReduceProd", _product, _grad_product),
    _reduction(
        "ReduceAll", lambda x, axis, keepdims: np.all(x, axis=axis, keepdims=keepdims), None, stop=True, kind=_BOOL
    ),
    _reduction(
        "ReduceAny", lambda x, axis, keepdims: np.any(x, axis=axis, keepdims=keepdims), None, stop=True, kind=_BOOL
    ),
    OpDef(
        name="Argmax",
        operands=("input", "axis", "output_type"),
        defaults=(-1, None),
        infer=_infer_arg("Argmax", "int32"),
        kernel=argument(np.argmax),
        prim_func=True,
        stop=True,
    ),
    OpDef(
        name="Argmin",
        operands=("input", "axis", "output_type"),
        defaults=(-1, None),
        infer=_infer_arg("Argmin", "int32"),
        kernel=argument(np.argmin),
        prim_func=True,
        stop=True,
    ),
    _extreme_with_value("ArgMaxWithValue", np.argmax),
    _extreme_with_value("ArgMinWithValue", np.argmin),
)
