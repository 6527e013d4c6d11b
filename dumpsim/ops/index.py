"""Slices and their gradients."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dumpsim.core.abstract import Abstract
from dumpsim.core.errors import ScriptValueError
from dumpsim.ops.gradient import shape_of
from dumpsim.ops.opdef import GradBuilder, OpDef
from dumpsim.ops.rules import constant, ints_of, output, tensor_of, value_of

__all__ = ["OPS", "strided"]

Array = np.ndarray[Any, Any]
Attrs = Mapping[str, Any]

_MASKS = ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask")


def strided(
    rank: int, begin: Sequence[int], end: Sequence[int], strides: Sequence[int], masks: Sequence[int]
) -> tuple[Any, ...]:
    """Return the subscript of a StridedSlice: bit i of a mask applies to entry i of the three lists.

    Examples
    --------
    >>> strided(2, (0, 1), (0, 3), (1, 1), (1, 1, 0, 0, 0))
    (slice(None, None, 1), slice(1, 3, 1))
    """
    if not len(begin) == len(end) == len(strides):
        raise ScriptValueError(
            "For 'StridedSlice', 'begin', 'end' and 'strides' must have the same length, but got length of 'begin': "
            f"{len(begin)}, 'end': {len(end)}, 'strides': {len(strides)}."
        )
    begin_mask, end_mask, ellipsis_mask, new_axis_mask, shrink_mask = masks
    parts: list[Any] = []
    for i, (first, last, step) in enumerate(zip(begin, end, strides, strict=True)):
        bit = 1 << i
        if ellipsis_mask & bit:
            parts.append(Ellipsis)
        elif new_axis_mask & bit:
            parts.append(None)
        elif shrink_mask & bit:
            parts.append(int(first))
        else:
            if step == 0:
                raise ScriptValueError("For 'StridedSlice', 'strides' must not be 0.")
            parts.append(
                slice(None if begin_mask & bit else int(first), None if end_mask & bit else int(last), int(step))
            )
    if sum(part is not None and part is not Ellipsis for part in parts) > rank:
        raise ScriptValueError(f"For 'StridedSlice', {len(parts)} positions do not fit a tensor of rank {rank}.")
    return tuple(parts)


def _sliced_shape(shape: Sequence[int], subscript: Sequence[Any]) -> tuple[int, ...]:
    """Return the shape of the result of a subscript of slices, numbers, None and one Ellipsis."""
    named = sum(part is not None and part is not Ellipsis for part in subscript)
    result: list[int] = []
    axis = 0
    for part in subscript:
        if part is None:
            result.append(1)
        elif part is Ellipsis:
            result.extend(shape[axis : axis + len(shape) - named])
            axis += len(shape) - named
        elif isinstance(part, int):
            if shape[axis] != -1 and not -shape[axis] <= part < shape[axis]:
                raise ScriptValueError(
                    f"For 'StridedSlice', the index {part} is out of range of axis {axis} with size {shape[axis]}."
                )
            axis += 1
        else:
            open_axis = shape[axis] == -1
            result.append(-1 if open_axis else len(range(*part.indices(shape[axis]))))
            axis += 1
    return (*result, *shape[axis:])


def _infer_strided(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
    x = tensor_of("StridedSlice", abstracts[0], "input_x")
    lists = [ints_of("StridedSlice", a, n) for a, n in zip(abstracts[1:4], ("begin", "end", "strides"), strict=True)]
    masks = [value_of("StridedSlice", a, n) for a, n in zip(abstracts[4:], _MASKS, strict=True)]
    begin, end, strides = lists
    return output(x.dtype, _sliced_shape(x.shape, strided(len(x.shape), begin, end, strides, masks)))


def _strided(x: Array, begin: Sequence[int], end: Sequence[int], strides: Sequence[int], *masks: int) -> Any:
    return x[strided(x.ndim, begin, end, strides, masks or (0,) * 5)]


def _grad_strided(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
    lists = [tuple(constant(o)) for o in operands[1:4]]
    masks = dict(zip(_MASKS, (constant(o) for o in operands[4:]), strict=True))
    return b.emit("StridedSliceGrad", dout, shape_of(operands[0]), *lists, **masks), *(None,) * (len(operands) - 1)


def _infer_strided_grad(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
    dout = tensor_of("StridedSliceGrad", abstracts[0], "dy")
    return output(dout.dtype, ints_of("StridedSliceGrad", abstracts[1], "shapex"))


def _strided_grad(dy: Array, shape: Sequence[int], begin: Any, end: Any, strides: Any, **masks: int) -> Array:
    dx = np.zeros(tuple(int(n) for n in shape), dy.dtype)
    dx[strided(dx.ndim, begin, end, strides, [masks[name] for name in _MASKS])] = dy
    return dx


def _grad_strided_grad(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
    lists = [tuple(int(n) for n in constant(o)) for o in operands[2:5]]
    return b.emit("StridedSlice", dout, *lists, *(attrs[name] for name in _MASKS)), None, None, None, None


def _sizes(shape: Sequence[int], begin: Sequence[int], size: Sequence[int]) -> tuple[int, ...]:
    """Return the shape of a Slice; a size of -1 takes the rest."""
    if not len(shape) == len(begin) == len(size):
        raise ScriptValueError(
            f"For 'Slice', 'begin' and 'size' must have the rank of the input: {len(shape)}, but got {len(begin)} and "
            f"{len(size)}."
        )
    sizes = tuple(n - first if want == -1 else want for n, first, want in zip(shape, begin, size, strict=True))
    for i, (n, first, count) in enumerate(zip(shape, begin, sizes, strict=True)):
        if first < 0 or count < 0 or first + count > n:
            raise ScriptValueError(
                f"For Slice, the sum of begin_shape[{i}] and size_shape[{i}] must be no greater than "
                f"input_x_shape[{i}]."
            )
    return sizes


def _infer_slice(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
    x = tensor_of("Slice", abstracts[0], "input")
    return output(
        x.dtype, _sizes(x.shape, ints_of("Slice", abstracts[1], "begin"), ints_of("Slice", abstracts[2], "size"))
    )


def _slice(x: Array, begin: Sequence[int], size: Sequence[int]) -> Array:
    return x[tuple(slice(first, first + n) for first, n in zip(begin, _sizes(x.shape, begin, size), strict=True))]


def _grad_slice(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
    return b.emit("SliceGrad", dout, operands[0], constant(operands[1]), constant(operands[2])), None, None


def _infer_slice_grad(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
    x = tensor_of("SliceGrad", abstracts[1], "x")
    return output(x.dtype, x.shape)


def _slice_grad(dy: Array, x: Array, begin: Sequence[int], size: Sequence[int]) -> Array:
    dx = np.zeros(x.shape, dy.dtype)
    dx[tuple(slice(int(first), int(first) + n) for first, n in zip(begin, dy.shape, strict=True))] = dy
    return dx


OPS = (
    OpDef(
        name="StridedSlice",
        operands=("input_x", "begin", "end", "strides", *_MASKS),
        defaults=(0, 0, 0, 0, 0),
        infer=_infer_strided,
        kernel=_strided,
        grad=_grad_strided,
        prim_func=True,
    ),
    OpDef(
        name="StridedSliceGrad",
        operands=("dy", "shapex", "begin", "end", "strides"),
        infer=_infer_strided_grad,
        kernel=_strided_grad,
        grad=_grad_strided_grad,
        attrs=dict.fromkeys(_MASKS, 0),
        input_names=("dy", "shapex", "begin", "end", "strides"),
        output_names=("output",),
    ),
    OpDef(
        name="Slice",
        operands=("input", "begin", "size"),
        infer=_infer_slice,
        kernel=_slice,
        grad=_grad_slice,
        prim_func=True,
    ),
    OpDef(
        name="SliceGrad",
        operands=("dy", "x", "begin", "size"),
        infer=_infer_slice_grad,
        kernel=_slice_grad,
        input_names=("dy", "x", "begin", "size"),
        output_names=("output",),
    ),
)
