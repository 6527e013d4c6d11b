"""Operators that rearrange or select elements: roll, partial reversal, space to depth, masks, rows, repetition."""

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from dumpsim.core.abstract import Abstract
from dumpsim.core.errors import ScriptValueError
from dumpsim.ops.bounds import rows
from dumpsim.ops.gradient import shape_of, unbroadcast
from dumpsim.ops.opdef import GradBuilder, Infer, OpDef
from dumpsim.ops.rules import axis_of, broadcast, constant, ints_of, output, tensor_of, value_of, vector

__all__ = ["OPS"]

Array = np.ndarray[Any, Any]
Attrs = Mapping[str, Any]


def _infer_roll(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
    x = tensor_of("Roll", abstracts[0], "input")
    shifts, dims = ints_of("Roll", abstracts[1], "shifts"), ints_of("Roll", abstracts[2], "dims")
    if dims and len(dims) != len(shifts):
        raise ScriptValueError(f"For 'Roll', 'shifts' {shifts} and 'dims' {dims} must be of equal length.")
    for dim in dims:
        axis_of("Roll", dim, len(x.shape), "dims")
    return output(x.dtype, x.shape)


def _roll(x: Array, shifts: Any, dims: Any = None) -> Array:
    return np.roll(x, shifts, None if dims in (None, ()) else dims)


def _grad_roll(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
    shifts, dims = constant(operands[1]), constant(operands[2])
    back = -shifts if isinstance(shifts, int) else tuple(-shift for shift in shifts)
    return b.emit("Roll", dout, back, dims), None, None


def _infer_reverse(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
    x = tensor_of("ReverseSequence", abstracts[0], "x")
    lengths = tensor_of("ReverseSequence", abstracts[1], "seq_lengths", ("int32", "int64"))
    batch = axis_of("ReverseSequence", attrs["batch_dim"], len(x.shape), "batch_dim")
    axis = axis_of("ReverseSequence", attrs["seq_dim"], len(x.shape), "seq_dim")
    if batch == axis or lengths.shape != (x.shape[batch],):
        raise ScriptValueError(
            f"For 'ReverseSequence', 'seq_lengths' must have shape ({x.shape[batch]},) and 'seq_dim' differ from "
            f"'batch_dim', but got {vector(lengths.shape)}, {axis} and {batch}."
        )
    return output(x.dtype, x.shape)


def _reverse(x: Array, seq_lengths: Array, *, seq_dim: int, batch_dim: int = 0) -> Array:
    result = np.array(x)
    rows = np.moveaxis(result, (batch_dim, seq_dim), (0, 1))
    source = np.moveaxis(x, (batch_dim, seq_dim), (0, 1))
    for row, length in enumerate(seq_lengths):
        rows[row, :length] = source[row, :length][::-1]
    return result


def _grad_reverse(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
    settings = {name: attrs[name] for name in ("seq_dim", "batch_dim")}
    return b.emit("ReverseSequence", dout, operands[1], **settings), None


def _infer_depth(op: str, *, to_space: bool) -> Infer:
    def infer(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
        x = tensor_of(op, abstracts[0], "x")
        block = attrs["block_size"]
        if len(x.shape) != 4 or block < 2:
            raise ScriptValueError(
                f"For '{op}', 'x' must have 4 dimensions and 'block_size' be 2 or more, but got {vector(x.shape)} and "
                f"{block}."
            )
        batch, channels, height, width = x.shape
        if channels % (block * block) if to_space else height % block or width % block:
            raise ScriptValueError(f"For '{op}', 'block_size' {block} does not divide 'x' {vector(x.shape)}.")
        if to_space:
            return output(x.dtype, (batch, channels // (block * block), height * block, width * block))
        return output(x.dtype, (batch, channels * block * block, height // block, width // block))

    return infer


def _to_space(x: Array, *, block_size: int) -> Array:
    batch, channels, height, width = x.shape
    rest = channels // (block_size * block_size)
    blocks = x.reshape(batch, block_size, block_size, rest, height, width).transpose(0, 3, 4, 1, 5, 2)
    return blocks.reshape(batch, rest, height * block_size, width * block_size)


def _to_depth(x: Array, *, block_size: int) -> Array:
    batch, channels, height, width = x.shape
    rows, columns = height // block_size, width // block_size
    blocks = x.reshape(batch, channels, rows, block_size, columns, block_size).transpose(0, 3, 5, 1, 2, 4)
    return blocks.reshape(batch, channels * block_size * block_size, rows, columns)


def _grad_as(op_type: str) -> Any:
    def grad(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
        return (b.emit(op_type, dout, block_size=attrs["block_size"]),)

    return grad


def _infer_masked(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
    x = tensor_of("MaskedSelect", abstracts[0], "input")
    mask = tensor_of("MaskedSelect", abstracts[1], "mask", ("bool",))
    broadcast("MaskedSelect", x.shape, mask.shape)
    return output(x.dtype, (-1,))


def _masked(x: Array, mask: Array) -> Array:
    x, mask = np.broadcast_arrays(x, mask)
    return np.asarray(x[mask])


def _grad_masked(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
    x, mask = operands
    dx = b.emit("MaskedSelectGrad", x, mask, dout)
    return unbroadcast(b, dx, shape_of(x), broadcast("MaskedSelect", shape_of(x), shape_of(mask))), None


def _infer_masked_grad(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
    op = "MaskedSelectGrad"
    x, mask = tensor_of(op, abstracts[0], "input"), tensor_of(op, abstracts[1], "mask", ("bool",))
    return output(x.dtype, broadcast(op, x.shape, mask.shape))


def _masked_grad(x: Array, mask: Array, grad: Array) -> Array:
    mask = np.broadcast_to(mask, np.broadcast_shapes(x.shape, mask.shape))
    result = np.zeros(mask.shape, grad.dtype)
    result[mask] = grad
    return result


def _infer_select(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
    x = tensor_of("IndexSelect", abstracts[0], "input")
    axis = axis_of("IndexSelect", value_of("IndexSelect", abstracts[1], "dim"), len(x.shape), "dim")
    index = tensor_of("IndexSelect", abstracts[2], "index", ("int32", "int64"))
    if len(index.shape) != 1:
        raise ScriptValueError(f"For 'IndexSelect', 'index' must have 1 dimension, but got {vector(index.shape)}.")
    return output(x.dtype, (*x.shape[:axis], *index.shape, *x.shape[axis + 1 :]))


def _select(x: Array, dim: int, index: Array) -> Array:
    legal = (index >= 0) & (index < x.shape[dim])
    taken = np.take(x, np.where(legal, index, 0), axis=dim)
    if not legal.all():
        np.moveaxis(taken, dim, 0)[~legal] = 0
    return taken


def _grad_select(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
    x, dim, index = operands
    shape = shape_of(x)
    axis = constant(dim) % len(shape)
    order = (axis, *(i for i in range(len(shape)) if i != axis))
    back = tuple(sorted(range(len(order)), key=order.__getitem__))
    front = b.emit("Transpose", dout, order) if axis else dout
    summed = b.emit("UnsortedSegmentSum", front, index, shape[axis])
    return b.emit("Transpose", summed, back) if axis else summed, None, None


def _infer_repeat(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
    op = "RepeatInterleaveInt"
    x, repeats = tensor_of(op, abstracts[0], "input"), value_of(op, abstracts[1], "repeats")
    dim = value_of(op, abstracts[2], "dim")
    if repeats < 0:
        raise ScriptValueError(f"For '{op}', 'repeats' must not be negative, but got {repeats}.")
    if dim is None:
        return output(x.dtype, (x.size * repeats,))
    axis = axis_of(op, dim, len(x.shape), "dim")
    return output(x.dtype, (*x.shape[:axis], x.shape[axis] * repeats, *x.shape[axis + 1 :]))


def _repeat(x: Array, repeats: int, dim: Any = None, output_size: Any = None) -> Array:
    return np.repeat(x, repeats, dim)


def _grad_repeat(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
    shape, repeats, dim = shape_of(operands[0]), constant(operands[1]), constant(operands[2])
    axis = len(shape) - 1 if dim is None else dim % len(shape)
    split = (*shape[: axis + 1], repeats, *shape[axis + 1 :])
    return b.emit("SumExt", b.emit("Reshape", dout, split), (axis + 1,), False, None), None, None, None


OPS = (
    OpDef(
        name="Roll",
        operands=("input", "shifts", "dims"),
        defaults=(None,),
        infer=_infer_roll,
        kernel=_roll,
        grad=_grad_roll,
        prim_func=True,
    ),
    OpDef(
        name="ReverseSequence",
        operands=("x", "seq_lengths"),
        infer=_infer_reverse,
        kernel=_reverse,
        grad=_grad_reverse,
        attrs={"seq_dim": 0, "batch_dim": 0},
        input_names=["x", "seq_lengths"],
        output_names=["y"],
    ),
    *(
        OpDef(
            name=name,
            operands=("x",),
            infer=_infer_depth(name, to_space=name == "DepthToSpace"),
            kernel=kernel,
            grad=_grad_as(back),
            attrs={"block_size": 2},
            fixed={"data_format": "NCHW", "format": "NCHW"},
            input_names=["x"],
            output_names=["y"],
        )
        for name, kernel, back in (
            ("DepthToSpace", _to_space, "SpaceToDepth"),
            ("SpaceToDepth", _to_depth, "DepthToSpace"),
        )
    ),
    OpDef(
        name="MaskedSelect",
        operands=("input", "mask"),
        infer=_infer_masked,
        kernel=_masked,
        grad=_grad_masked,
        fixed={"output_is_dynamic_shape": True},
        largest=lambda shapes: (prod(np.broadcast_shapes(*shapes)),),
        prim_func=True,
    ),
    OpDef(
        name="MaskedSelectGrad",
        operands=("input", "mask", "grad"),
        infer=_infer_masked_grad,
        kernel=_masked_grad,
        prim_func=True,
    ),
    OpDef(
        name="IndexSelect",
        operands=("input", "dim", "index"),
        infer=_infer_select,
        kernel=_select,
        bounds=rows(2, lambda x, dim, index: x.shape[dim], "", operand="index", reads=True),
        grad=_grad_select,
        prim_func=True,
    ),
    OpDef(
        name="RepeatInterleaveInt",
        operands=("input", "repeats", "dim", "output_size"),
        defaults=(None, None),
        infer=_infer_repeat,
        kernel=_repeat,
        grad=_grad_repeat,
        prim_func=True,
    ),
)
