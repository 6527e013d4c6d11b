"""Functions that MindSpore builds from others: moving axes, stacking rows, losses of pairs."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from dumpsim.core.errors import ScriptRuntimeError, ScriptTypeError, ScriptValueError
from dumpsim.frontends.mindspore._capture.dispatch import call
from dumpsim.frontends.mindspore._checkparam import check_positive_int, check_value_type
from dumpsim.frontends.mindspore.common import dtype as mstype
from dumpsim.frontends.mindspore.common._operandtypes import check_is_tensor, expect, takes, type_text
from dumpsim.frontends.mindspore.common.tensor import Tensor
from dumpsim.frontends.mindspore.ops.function._single import inner_single, single
from dumpsim.frontends.mindspore.ops.function.arithmetic import div, mul, muls, sub
from dumpsim.frontends.mindspore.ops.function.elementwise import clamp, unshared_cast
from dumpsim.frontends.mindspore.ops.function.further import interpolate
from dumpsim.frontends.mindspore.ops.function.reduce import reduced_loss
from dumpsim.frontends.mindspore.ops.function.shape import axes_of, slice, strided_slice

__all__ = [
    "cosine_similarity",
    "dstack",
    "fliplr",
    "flipud",
    "hstack",
    "huber_loss",
    "margin_ranking_loss",
    "moveaxis",
    "pixel_unshuffle",
    "ravel",
    "softmin",
    "tanhshrink",
    "tensor_split",
    "trace",
    "upsample",
    "vstack",
]

upsample = interpolate


def ravel(input: Tensor) -> Tensor:
    """Return the elements as a vector."""
    return single("Reshape", [input, (-1,)])


def moveaxis(x: Tensor, source: Any, destination: Any) -> Tensor:
    """Move axes to new positions; the other axes keep their order.

    Raises
    ------
    ValueError
        For axes out of range, or named twice.
    """
    if not isinstance(x, Tensor):
        raise ScriptTypeError("the input x must be Tensor!")
    sources, targets = axes_of(source, x.ndim), axes_of(destination, x.ndim)
    if len(sources) != len(targets):
        raise ScriptValueError(
            "For `source` and `destination` arguments, the number of elements must be the same, but got 'source': "
            f"{len(sources)} and 'destination': {len(targets)}."
        )
    taken = dict(zip(targets, sources, strict=True))
    if len(taken) != len(sources) or len(set(taken.values())) != len(sources):
        raise ScriptValueError(f"For 'moveaxis', an axis of {source} or {destination} is named twice.")
    rest = iter(axis for axis in range(x.ndim) if axis not in taken.values())
    return single("Transpose", [x, tuple(taken[at] if at in taken else next(rest) for at in range(x.ndim))])


def flipud(input: Tensor) -> Tensor:
    """Reverse the order of the rows."""
    return inner_single("ReverseV2", [input, (0,)])


def fliplr(input: Tensor) -> Tensor:
    """Reverse the order of the columns."""
    return inner_single("ReverseV2", [input, (1,)])


def _at_least(tensors: Sequence[Tensor], rank: int) -> list[Tensor]:
    return [t if t.ndim >= rank else single("Reshape", [t, (*(1,) * (rank - t.ndim), *t.shape)]) for t in tensors]


def vstack(inputs: Sequence[Tensor]) -> Tensor:
    """Join tensors vertically; vectors are rows."""
    return single("Concat", [tuple(_at_least(inputs, 2)), 0])


def hstack(tensors: Sequence[Tensor]) -> Tensor:
    """Join tensors horizontally; vectors are joined end to end."""
    if not isinstance(tensors, (tuple, list)):
        raise ScriptTypeError(f"For hstack, the input must be list or tuple, but got {type_text(tensors)}.")
    if not tensors:
        raise ScriptValueError("For hstack, the input must have at least 1 tensor, but got 0.")
    for tensor in tensors:
        if not isinstance(tensor, Tensor):
            raise ScriptTypeError(f"For hstack, the input element must be tensor, but got {type_text(tensor)}.")
    raised = _at_least(tensors, 1)
    return inner_single("Concat", [tuple(raised), 0 if raised[0].ndim == 1 else 1])


@takes("Trace")
def trace(input: Tensor) -> Tensor:
    """Sum of the diagonal of a matrix.

    Raises
    ------
    RuntimeError
        For a tensor that is not a matrix.
    """
    if input.ndim != 2:
        raise ScriptRuntimeError(f"For Primitive[Trace], the rank of the input must be 2, but got {input.ndim}!")
    ones = Tensor(np.eye(input.shape[0], input.shape[1]), input.dtype)
    return single("SumExt", [mul(input, ones), (), False, None])


def softmin(x: Tensor, axis: Any = -1, *, dtype: Any = None) -> Tensor:
    """Return the softmax of the negated elements, converted to `dtype` if it is given."""
    operand = x if dtype is None else unshared_cast(x, dtype)
    expect("Softmax", operand, (axis,) if isinstance(axis, int) else axis)
    return single("Softmax", [muls(operand, -1), axis])


def pixel_unshuffle(input: Tensor, downscale_factor: int) -> Tensor:
    """Turn pixels into channels: ``(..., C, H * r, W * r)`` becomes ``(..., C * r * r, H, W)``."""
    check_positive_int(downscale_factor, "downscale_factor")
    check_is_tensor("input", input, "pixel_unshuffle")
    if input.ndim < 3:
        raise ScriptValueError(
            f"For pixel_unshuffle, the dimension of `input` should be larger than 2, but got {input.ndim}."
        )
    if any(n % downscale_factor for n in input.shape[-2:]):
        raise ScriptValueError(
            "For 'pixel_unshuffle', the length of second to last 2 dimension should be divisible by downscale_factor."
        )
    *batch, channels, height, width = input.shape
    rows, columns, r, count = height // downscale_factor, width // downscale_factor, downscale_factor, len(batch)
    x = single("Reshape", [input, (*batch, channels, rows, r, columns, r)])
    x = single("Transpose", [x, (*range(count), count, count + 2, count + 4, count + 1, count + 3)])
    return single("Reshape", [x, (*batch, channels * r * r, rows, columns)])


def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-08) -> Tensor:
    """Cosine of the angle between two tensors along an axis."""

    def total(product: Tensor) -> Tensor:
        return single("SumExt", [product, (dim,), False, None])

    expect("Mul", x1, x2)
    lengths = mul(total(mul(x1, x1)), total(mul(x2, x2)))
    return div(total(mul(x1, x2)), single("Sqrt", [single("Maximum", [lengths, eps * eps])]))


def huber_loss(input: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0) -> Tensor:
    """Half the square of small differences, the absolute value of large ones.

    Raises
    ------
    ValueError
        For a `delta` that is not positive, or another reduction.
    """
    check_is_tensor("input", input, "huber_loss")
    check_is_tensor("target", target, "huber_loss")
    check_value_type("delta", delta, [int, float], "huber_loss")
    if delta <= 0:
        raise ScriptValueError(f"For 'huber_loss', the argument 'delta' must > 0.0, but got {delta}.")
    size = call("Abs", [call("Sub", [input, target])])
    is_near = call("Less", [size, float(delta)])
    near = call("Mul", [0.5, call("Square", [size])])
    far = call("Mul", [float(delta), call("Sub", [size, 0.5 * delta])])
    return reduced_loss(call("Select", [is_near, near, far]), reduction, "huber_loss")


def margin_ranking_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: str = "mean"
) -> Tensor:
    """``max(0, -target * (input1 - input2) + margin)``."""
    for name, value in (("input1", input1), ("input2", input2), ("target", target)):
        check_is_tensor(name, value, "margin_ranking_loss")
    for name, value, other, owner in (("input1", input1, input2, "input2"), ("target", target, input1, "input1")):
        if value._dtype != other._dtype:
            raise ScriptTypeError(
                f"For margin_ranking_loss, the {name} dtype should be equal to {owner} dtype, but got {name} dtype:"
                f"{value._dtype}, {owner} dtype:{other._dtype}."
            )
    gap = -target * (input1 - input2) + float(margin)
    return reduced_loss(clamp(gap, 0), reduction, "margin_ranking_loss")


def dstack(tensors: Sequence[Tensor]) -> Tensor:
    """Join tensors along their third axis, which is added to those with fewer axes.

    Examples
    --------
    >>> dstack((Tensor([1, 2]), Tensor([3, 4]))).asnumpy().tolist()
    [[[1, 3], [2, 4]]]
    """
    if not isinstance(tensors, (tuple, list)):
        raise ScriptTypeError(f"For 'dstack', 'tensors' must be list or tuple of tensors, but got {type(tensors)}")
    if not tensors:
        raise ScriptTypeError("For 'dstack', 'tensors' can not be empty.")
    deep = []
    for tensor in tensors:
        if not isinstance(tensor, Tensor):
            raise ScriptTypeError(f"For 'dstack', each elements of 'tensors' must be Tensor, but got {type(tensor)}")
        if tensor.ndim == 0:
            tensor = single("Reshape", [tensor, (1, 1, 1)])
        elif tensor.ndim < 3:
            if tensor.ndim == 1:
                tensor = single("ExpandDims", [tensor, 0])
            tensor = single("ExpandDims", [tensor, 2])
        deep.append(tensor)
    return single("Concat", [tuple(deep), 2])


def tanhshrink(input: Tensor) -> Tensor:
    """``input - tanh(input)``; integers become Float32.

    Examples
    --------
    >>> tanhshrink(Tensor([0.0, 20.0])).asnumpy()
    array([ 0., 19.], dtype=float32)
    """
    if not isinstance(input, Tensor):
        raise ScriptTypeError(f"For tanhshrink, the input must be a Tensor, but got {type(input)}.")
    if input._dtype.kind in ("int", "uint"):
        input = unshared_cast(input, mstype.float32)
    return sub(input, single("Tanh", [input]))


def tensor_split(input: Tensor, indices_or_sections: Any, axis: int = 0) -> tuple[Tensor, ...]:
    """Split an axis at the given indices, or into a number of parts, of which the first ones may be longer by one.

    Examples
    --------
    >>> [part.tolist() for part in tensor_split(Tensor([1, 2, 3]), 2)]
    [[1, 2], [3]]
    """
    if not isinstance(input, Tensor):
        raise ScriptTypeError(f"expect `x` is a Tensor, but got {type(input)}")
    if not isinstance(axis, int) or isinstance(axis, bool):
        raise ScriptTypeError(f"Type of Argument `axis` should be integer but got {type(axis)}")
    if not -input.ndim <= axis < input.ndim:
        raise ScriptValueError(f"axis {axis} is out of bounds for array of dimension {input.ndim}")
    axis %= input.ndim
    wanted = indices_or_sections
    if isinstance(wanted, (list, tuple)):
        for item in wanted:
            if not isinstance(item, int) or isinstance(item, bool):
                raise ScriptTypeError(f"Each element in 'indices_or_sections' should be integer, but got {type(item)}.")
        return _split_at(input, wanted, axis)
    if not isinstance(wanted, int) or isinstance(wanted, bool):
        raise ScriptTypeError(
            f"Type of Argument `indices_or_sections` should be integer, tuple(int) or list(int), but got {type(wanted)}"
        )
    if wanted <= 0:
        raise ScriptValueError(
            f"For tensor_split, the value of 'indices_or_sections' must be more than zero but got {wanted}"
        )
    return _split_into(input, wanted, axis)


def _split_at(tensor: Tensor, indices: Sequence[int], axis: int) -> tuple[Tensor, ...]:
    parts = []
    begin, end = [0] * tensor.ndim, list(tensor.shape)
    for start, stop in zip((0, *indices), (*indices, tensor.shape[axis]), strict=True):
        begin[axis], end[axis] = start, stop
        if start == stop:
            shape = (*tensor.shape[:axis], 0, *tensor.shape[axis + 1 :])
            parts.append(Tensor(np.zeros(shape), tensor._dtype))
        else:
            parts.append(strided_slice(tensor, tuple(begin), tuple(end), (1,) * tensor.ndim))
    return tuple(parts)


def _split_into(tensor: Tensor, count: int, axis: int) -> tuple[Tensor, ...]:
    shape, extent = tensor.shape, tensor.shape[axis]
    if count > extent > 0:
        empty = _split_at(tensor, [extent], axis)[1:]
        return (*call("Split", [tensor, axis, extent]), *empty * (count - extent))
    if extent % count == 0:
        parts: tuple[Tensor, ...] = call("Split", [tensor, axis, count])
        return parts
    longer, whole = extent % count, extent // count
    border = longer * (whole + 1)
    left, right = ((*shape[:axis], n, *shape[axis + 1 :]) for n in (border, extent - border))
    start = tuple(border if at == axis else 0 for at in range(tensor.ndim))
    first = call("Split", [slice(tensor, (0,) * tensor.ndim, left), axis, longer])
    return (*first, *call("Split", [slice(tensor, start, right), axis, count - longer]))
