"""Sorting, searching and cumulative operators along an axis."""

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from dumpsim.core.abstract import Abstract, TensorType
from dumpsim.core.errors import ScriptValueError
from dumpsim.ops.gradient import part_or_zeros, shape_of
from dumpsim.ops.opdef import Grad, GradBuilder, Infer, OpDef
from dumpsim.ops.rules import axis_of, constant, output, size_of, tensor_of, tuple_of, value_of

__all__ = ["OPS", "unique"]

Array = np.ndarray[Any, Any]
Attrs = Mapping[str, Any]


def _descending(x: Array, axis: int) -> Any:
    """Return indices from the largest element to the smallest; equal ones stay in order."""
    turned = np.flip(x, axis)
    order = np.flip(np.argsort(turned, axis=axis, kind="stable"), axis)
    return x.shape[axis] - 1 - order


def _infer_top(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
    x = tensor_of("TopK", abstracts[0], "input_x")
    if not x.shape:
        raise ScriptValueError("For 'TopK', the rank of 'input_x' must be at least 1, but got 0.")
    if isinstance(abstracts[1], TensorType):  # the compiler made the number a tensor, which is known only at run time
        shape = (*x.shape[:-1], -1)
    else:
        k = value_of("TopK", abstracts[1], "k")
        if k <= 0 or x.shape[-1] < k:
            raise ScriptValueError(f"For primitive[TopK], the k must be in (0,{x.shape[-1]}], but got {k}.")
        shape = (*x.shape[:-1], k)
    return tuple_of(output(x.dtype, shape), output("int32", shape))


def _top(x: Array, k: Any, *, sorted: bool = True) -> tuple[Array, Array]:
    index = _descending(x, -1)[..., : int(np.asarray(k).reshape(()))]
    return np.take_along_axis(x, index, -1), index.astype(np.int32)


def _grad_top(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
    """Scatter the gradient back to the selected elements, by indices into the flat input."""
    shape = shape_of(operands[0])
    rows = size_of(shape[:-1])
    slope = part_or_zeros(b, dout, 0, out)
    index = b.item(out, 1)
    taken = shape_of(index)[-1]
    starts = (np.arange(rows, dtype=np.int32) * shape[-1]).reshape(rows, 1)
    flat = (
        b.emit("Add", b.emit("Reshape", index, (rows, taken)), starts)
        if len(shape) != 2
        else b.emit("Add", index, starts)
    )
    places = b.emit("Reshape", flat, (-1, 1))
    spread = b.emit("ScatterNd", places, b.emit("Reshape", slope, (-1,)), (rows * shape[-1],))
    return b.emit("Reshape", spread, shape), None


def _infer_sort(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
    x = tensor_of("Sort", abstracts[0], "x")
    axis_of("Sort", attrs["axis"], len(x.shape), "axis", is_closed=True)
    return tuple_of(output(x.dtype, x.shape), output("int32", x.shape))


def _sort(x: Array, *, axis: int = -1, descending: bool = False) -> tuple[Array, Array]:
    index = _descending(x, axis) if descending else np.argsort(x, axis=axis, kind="stable")
    return np.take_along_axis(x, index, axis), index.astype(np.int32)


def _grad_sort(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
    x = operands[0]
    zeros = b.emit("ZerosLikeExt", x, None)
    slope = part_or_zeros(b, dout, 0, out)
    return (b.emit("TensorScatterElements", zeros, b.item(out, 1), slope, attrs["axis"], 0),)


def _infer_unique(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
    x = tensor_of("Unique", abstracts[0], "x")
    index = "int64" if x.dtype.name == "int64" else "int32"
    return tuple_of(output(x.dtype, (-1,)), output(index, (x.size,)))


def unique(x: Array, *, equal_nan: bool = True) -> tuple[Array, Array]:
    """Return distinct values in order of appearance and, for every element, the index of its value. [2.10 observed]"""
    values, first, index = np.unique(x.reshape(-1), return_index=True, return_inverse=True, equal_nan=equal_nan)
    order = np.argsort(first)
    places = np.empty_like(order)
    places[order] = np.arange(order.size)
    return values[order], places[index.reshape(-1)].astype(np.int64 if x.dtype == np.int64 else np.int32)


def _infer_running(name: str) -> Infer:
    def infer(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
        x = tensor_of(name, abstracts[0], "x")
        axis_of(name, value_of(name, abstracts[1], "axis"), len(x.shape), "axis")
        return output(x.dtype, x.shape)

    return infer


def _running(accumulate: Callable[..., Array], start: int) -> Callable[..., Array]:
    @np.errstate(all="ignore")
    def run(x: Array, axis: int, exclusive: bool = False, reverse: bool = False) -> Array:
        y = accumulate(np.flip(x, axis) if reverse else x, axis=axis, dtype=x.dtype)
        if exclusive:
            moved = np.full_like(y, start)
            into, source = [slice(None)] * y.ndim, [slice(None)] * y.ndim
            into[axis], source[axis] = slice(1, None), slice(None, -1)
            moved[tuple(into)] = y[tuple(source)]
            y = moved
        return np.flip(y, axis) if reverse else y

    return run


def _settings(operands: Sequence[Any]) -> tuple[int, bool, bool]:
    axis, exclusive, reverse = (constant(o) for o in operands[1:])
    return axis, bool(exclusive), bool(reverse)


def _grad_running_sum(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
    axis, exclusive, reverse = _settings(operands)
    return b.emit("CumSum", dout, axis, exclusive, not reverse), None, None, None


def _grad_running_product(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
    """The vendor's rule, which is undefined if an element is 0."""
    x = operands[0]
    axis, exclusive, reverse = _settings(operands)
    product = b.emit("CumProd", x, axis, exclusive, reverse)
    total = b.emit("CumSum", b.emit("Mul", product, dout), axis, exclusive, not reverse)
    return b.emit("RealDiv", total, x), None, None, None


def _total(name: str, accumulate: Callable[..., Array], start: int, grad: Grad) -> OpDef:
    return OpDef(
        name=name,
        operands=("x", "axis", "exclusive", "reverse"),
        defaults=(False, False),
        infer=_infer_running(name),
        kernel=_running(accumulate, start),
        grad=grad,
        prim_func=True,
    )


OPS = (
    OpDef(
        name="TopK",
        operands=("input", "k"),
        infer=_infer_top,
        kernel=_top,
        grad=_grad_top,
        attrs={"sorted": True},
        input_names=["input", "k"],
        output_names=["values", "indices"],
    ),
    OpDef(
        name="Sort",
        operands=("x",),
        infer=_infer_sort,
        kernel=_sort,
        grad=_grad_sort,
        attrs={"descending": False, "axis": -1},
        input_names=["x"],
        output_names=["y1", "y2"],
    ),
    OpDef(
        name="Unique",
        operands=("x",),
        infer=_infer_unique,
        kernel=unique,
        fixed={"output_is_dynamic_shape": True},
        largest=lambda shapes: (prod(shapes[0]),),
        stop=True,
        input_names=["x"],
        output_names=["output"],
    ),
    _total("CumSum", np.cumsum, 0, _grad_running_sum),
    _total("CumProd", np.cumprod, 1, _grad_running_product),
)
