"""Operators on shapes: reshape, transpose, join, split, repeat, gather."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from dumpsim.core.errors import ScriptTypeError, ScriptValueError
from dumpsim.frontends.mindspore._capture.dispatch import call
from dumpsim.frontends.mindspore._capture.libfunction import parsed_once
from dumpsim.frontends.mindspore._checkparam import INC_BOTH, INC_LEFT, check_int_range, check_is_int, check_value_type
from dumpsim.frontends.mindspore._current import capturing
from dumpsim.frontends.mindspore.common import dtype as mstype
from dumpsim.frontends.mindspore.common._operandtypes import (
    abstract_name,
    check_has_dtype,
    check_has_shape,
    expect,
    takes,
    type_text,
)
from dumpsim.frontends.mindspore.common.tensor import Tensor
from dumpsim.frontends.mindspore.ops.function._single import inner_single, single
from dumpsim.frontends.mindspore.ops.function.arithmetic import cast_to, is_number, promote

__all__ = [
    "broadcast_to",
    "cat",
    "chunk",
    "concat",
    "diag",
    "expand_dims",
    "flatten",
    "flip",
    "gather",
    "gather_d",
    "gather_elements",
    "gather_nd",
    "index_select",
    "masked_fill",
    "movedim",
    "narrow",
    "permute",
    "rank",
    "repeat_elements",
    "reshape",
    "scatter_nd",
    "select",
    "shape",
    "shape_",
    "size",
    "slice",
    "split",
    "squeeze",
    "stack",
    "strided_slice",
    "swapaxes",
    "tensor_scatter_update",
    "tile",
    "transpose",
    "tril",
    "triu",
    "unbind",
    "unsqueeze",
    "unstack",
    "where",
]


def _ints(values: Any) -> tuple[int, ...]:
    """Return a shape or list of axes as a tuple of Python ints."""
    values = _listed(values)
    return (int(values),) if isinstance(values, int) else tuple(int(v) for v in values)


def _listed(values: Any) -> Any:
    """Return a shape or axes of a Tensor as a list of ints, and anything else unchanged for the operator to check."""
    return values.tolist() if isinstance(values, Tensor) else values


def reshape(input: Tensor, shape: Any) -> Tensor:
    """Give the elements another shape; one extent may be -1.

    Examples
    --------
    >>> reshape(Tensor([[1, 2], [3, 4]]), (-1,))
    Tensor(shape=[4], dtype=Int64, value= [1, 2, 3, 4])
    """
    return single("Reshape", [input, _listed(shape)])


@parsed_once
def transpose(input: Tensor, input_perm: Any) -> Tensor:
    """Reorder the axes."""
    return single("Transpose", [input, _listed(input_perm)])


def permute(input: Tensor, axis: Any) -> Tensor:
    """Like `transpose`."""
    return single("Transpose", [input, _listed(axis)])


def swapaxes(input: Tensor, axis0: int, axis1: int) -> Tensor:
    """Exchange two axes."""
    if not isinstance(input, Tensor):
        raise ScriptTypeError(f"For ops.swapaxes, parameter `input` must be Tensor, but got {type_text(input)}")
    for axis in (axis0, axis1):
        if not isinstance(axis, int):
            raise ScriptTypeError(f"For ops.swapaxes, the axis argument must be integer, but got {type_text(axis)}.")
    order = list(range(input.ndim))
    first, second = _axis(axis0, input.ndim), _axis(axis1, input.ndim)
    order[first], order[second] = order[second], order[first]
    return single("Transpose", [input, tuple(order)])


swapdims = swapaxes


def movedim(x: Tensor, source: int, destination: int) -> Tensor:
    """Move one axis to another position."""
    if not isinstance(x, Tensor):
        raise ScriptTypeError("the input x must be Tensor!")
    sources, places = axes_of(source, x.ndim), axes_of(destination, x.ndim)
    if len(sources) != len(places):
        raise ScriptValueError(
            "For `source` and `destination` arguments, the number of elements must be the same, but got 'source': "
            f"{len(sources)} and 'destination': {len(places)}."
        )
    order = [axis for axis in range(x.ndim) if axis not in sources]
    for place, axis in sorted(zip(places, sources, strict=True)):
        order.insert(place, axis)
    return single("Transpose", [x, tuple(order)])


def _axis(axis: int, rank: int) -> int:
    if not isinstance(axis, int):
        raise ScriptTypeError(f"The axes must be integers, but got {type_text(axis)}")
    if not -rank <= axis < max(rank, 1):
        raise ScriptValueError(f"The 'axis' must be in the range of [-{rank}, {rank}), but got {axis}.")
    return axis % max(rank, 1)


def axes_of(axes: Any, rank: int) -> tuple[int, ...]:
    """Return one axis or several as a tuple, counted from 0."""
    return tuple(_axis(axis, rank) for axis in (axes if isinstance(axes, (tuple, list)) else (axes,)))


def flatten(input: Tensor, order: str = "C", *, start_dim: int = 1, end_dim: int = -1) -> Tensor:
    """Join the axes `start_dim` to `end_dim`; the operator Flatten joins all but the first. [observed 2.10]

    Examples
    --------
    >>> flatten(Tensor([[[1, 2], [3, 4]]])).shape
    (1, 4)
    """
    if not isinstance(input, Tensor):
        raise ScriptTypeError("For 'flatten', argument 'input' must be Tensor.")
    if type(start_dim) is not int or type(end_dim) is not int:
        raise ScriptTypeError("For 'flatten', both 'start_dim' and 'end_dim' must be int.")
    if not isinstance(order, str):
        raise ScriptTypeError(f"For Tensor.flatten, the parameter 'order' must be a string, but got {type_text(order)}")
    if order not in ("C", "F"):
        raise ScriptValueError(f"For Tensor.flatten, the parameter 'order' must be 'C' or 'F', but got '{order}'")
    if order == "F":
        input = transpose(input, tuple(reversed(range(input.ndim))))
    if input.ndim == 0:
        return reshape(input, (1,))
    if input.ndim == 1 and (start_dim, end_dim) == (1, -1):
        return input
    if not all(-input.ndim <= axis < input.ndim for axis in (start_dim, end_dim)):
        raise ScriptValueError("'start_dim' or 'end_dim' out of range.")
    first, last = start_dim % input.ndim, end_dim % input.ndim
    if first > last:
        raise ScriptValueError("For 'flatten', 'start_dim' cannot come after 'end_dim'.")
    if input.ndim == 1 or first == last:
        return input
    if first == 1 and last == input.ndim - 1:
        return single("Flatten", [input])
    joined = 1
    for extent in input.shape[first : last + 1]:
        joined *= extent
    return reshape(input, (*input.shape[:first], joined, *input.shape[last + 1 :]))


def squeeze(input: Tensor, axis: Any = None) -> Tensor:
    """Remove axes of extent 1."""
    return inner_single("Squeeze", [input, () if axis is None else _listed(axis)])


def expand_dims(input_x: Tensor, axis: int) -> Tensor:
    """Insert an axis of extent 1."""
    return single("ExpandDims", [input_x, axis])


def unsqueeze(input: Tensor, dim: int) -> Tensor:
    """Like `expand_dims`."""
    return single("ExpandDims", [input, dim])


@takes("Concat")
def concat(tensors: Sequence[Tensor], axis: int = 0) -> Tensor:
    """Join tensors along an axis.

    Examples
    --------
    >>> concat((Tensor([1]), Tensor([2])))
    Tensor(shape=[2], dtype=Int64, value= [1, 2])
    """
    members = tuple(tensors)
    if not members:
        raise ScriptValueError("For primitive[Concat], the elements size must be greater than 0, but got 0.")
    if len({member._dtype.name for member in members}) > 1:
        members = tuple(promote("Concat", *members))
    return inner_single("Concat", [members, axis])


@takes("Concat")
def cat(tensors: Sequence[Tensor], axis: int = 0) -> Tensor:
    """Alias of `concat`."""
    return concat(tensors, axis)


def stack(tensors: Sequence[Tensor], axis: int = 0) -> Tensor:
    """Join tensors of the same shape along a new axis."""
    return single("Stack", [(tensors,) if isinstance(tensors, Tensor) else tuple(tensors)], {"axis": axis})


def unstack(input_x: Tensor, axis: int = 0) -> tuple[Tensor, ...]:
    """Split into the slices along an axis, which is removed."""
    check_value_type("axis", axis, [int], "Unstack")
    if not isinstance(input_x, Tensor):
        raise ScriptTypeError(f"For primitive[Unstack],  the input[0] should be Tensor, but got:{input_x}")
    if not -input_x.ndim <= axis < input_x.ndim:
        raise ScriptValueError(
            f"Dimension out of range (expected to be in range of [-{input_x.ndim}, {input_x.ndim}), but got {axis})"
        )
    pieces: tuple[Tensor, ...] = call(
        "Unstack", [input_x], {"axis": axis, "num": input_x.shape[_axis(axis, input_x.ndim)]}
    )
    return pieces


unbind = unstack


def split(tensor: Tensor, split_size_or_sections: Any, axis: int = 0) -> tuple[Tensor, ...]:
    """Split into pieces of one size, or of given sizes.

    Examples
    --------
    >>> [piece.shape for piece in split(Tensor([1, 2, 3]), [1, 2])]
    [(1,), (2,)]
    """
    if not isinstance(tensor, Tensor):
        raise ScriptTypeError(f"expect `tensor` is a Tensor, but got {type_text(tensor)}")
    if type(axis) is not int:
        raise ScriptTypeError(f"Type of Argument `axis` should be integer but got {type_text(axis)}")
    extent = tensor.shape[_bounded(axis, tensor.ndim)]
    if isinstance(split_size_or_sections, int):
        piece = split_size_or_sections
        if piece <= 0:
            raise ScriptValueError(
                f"For split, the value of 'split_size_or_sections' must be more than zero, but got {piece}."
            )
        return _pieces(tensor, axis, min(piece, extent))
    sizes = list(_ints(split_size_or_sections))
    if sum(sizes) != extent:
        raise ScriptValueError(
            f"The sum of 'split_size_or_sections' should be equal to {extent}, but got {sum(sizes)}."
        )
    return tuple(_cut(tensor, axis, sum(sizes[:n]), sizes[n]) for n in range(len(sizes)))


def _bounded(axis: int, rank: int) -> int:
    """Return an axis, counted from 0; one that does not exist is refused with numpy's words."""
    if not -rank <= axis < rank:
        raise ScriptValueError(f"axis {axis} is out of bounds for array of dimension {rank}")
    return axis % rank


def _cut(tensor: Tensor, axis: int, start: int, length: int) -> Tensor:
    at = _axis(axis, tensor.ndim)
    begin = tuple(start if n == at else 0 for n in range(tensor.ndim))
    end = tuple(start + length if n == at else extent for n, extent in enumerate(tensor.shape))
    return strided_slice(tensor, begin, end, (1,) * tensor.ndim)


def chunk(input: Tensor, chunks: int, axis: int = 0) -> tuple[Tensor, ...]:
    """Split into pieces of equal size; the last one may be smaller. [wheel ops/function/array_func.py]

    Examples
    --------
    >>> [piece.shape for piece in chunk(Tensor([1, 2, 3, 4, 5]), 3)]
    [(2,), (2,), (1,)]
    """
    if not isinstance(input, Tensor):
        raise ScriptTypeError(f"For ops.chunk parameter `input` must be Tensor, but got {type_text(input)}")
    if type(axis) is not int:
        raise ScriptTypeError(f"For ops.chunk, the axis should be int, , but got {type_text(axis)}.")
    if type(chunks) is not int:
        raise ScriptTypeError(f"For ops.chunk type of argument `chunks` should be integer, but got {type_text(chunks)}")
    at = _bounded(axis, input.ndim)
    return _pieces(input, at, -(-input.shape[at] // chunks))


def _pieces(tensor: Tensor, axis: int, size: int) -> tuple[Tensor, ...]:
    """Split into pieces of one size; a smaller rest is sliced off and split by itself."""
    at = _axis(axis, tensor.ndim)
    count, rest = divmod(tensor.shape[at], max(size, 1))
    if not tensor.shape[at]:
        return (tensor,)
    if not rest:
        whole: tuple[Tensor, ...] = call("Split", [tensor, axis, count])
        return whole
    first: tuple[Tensor, ...] = call("Split", [narrow(tensor, at, 0, count * size), axis, count])
    last: tuple[Tensor, ...] = call("Split", [narrow(tensor, at, count * size, rest), axis, 1])
    return (*first, *last)


def narrow(input: Tensor, axis: int, start: int, length: int) -> Tensor:
    """Select a range of one axis."""
    check_value_type("input", input, Tensor, "narrow")
    at = _axis(axis, input.ndim)
    if capturing() is None:
        check_int_range(start, 0, input.shape[at], INC_LEFT)
        check_int_range(length, 1, input.shape[at] - start, INC_BOTH)
    begin = tuple(start if n == at else 0 for n in range(input.ndim))
    sizes = tuple(length if n == at else extent for n, extent in enumerate(input.shape))
    return single("Slice", [input, begin, sizes])


@takes("Slice")
def slice(input_x: Tensor, begin: Any, size: Any) -> Tensor:
    """Select a block with the given start and extents."""
    extents = tuple(n if n != -1 else input_x.shape[k] - _ints(begin)[k] for k, n in enumerate(_ints(size)))
    return single("Slice", [input_x, _ints(begin), extents])


@takes("StridedSlice")
def strided_slice(
    input_x: Tensor,
    begin: Any,
    end: Any,
    strides: Any,
    begin_mask: int = 0,
    end_mask: int = 0,
    ellipsis_mask: int = 0,
    new_axis_mask: int = 0,
    shrink_axis_mask: int = 0,
) -> Tensor:
    """Select a block with steps; the masks are those of the operator StridedSlice."""
    masks = [begin_mask, end_mask, ellipsis_mask, new_axis_mask, shrink_axis_mask]
    return single("StridedSlice", [input_x, _ints(begin), _ints(end), _ints(strides), *masks])


@takes("Tile")
def tile(input: Tensor, dims: Any) -> Tensor:
    """The whole tensor repeated along its axes."""
    return single("Tile", [input, _listed(dims)])


def repeat_elements(x: Tensor, rep: int, axis: int = 0) -> Tensor:
    """Repeat every element along an axis."""
    check_has_dtype(x)
    if type(rep) is not int:
        raise ScriptTypeError(f"For 'repeat_elements', the 'rep' must be 'int',  but got '{type(rep).__name__}'.")
    check_is_int(axis, "axis", "repeat_elements")
    if not -x.ndim <= axis < x.ndim:
        raise ScriptValueError(
            f"For 'repeat_elements', the 'axis' must be in range of [-{x.ndim}, {x.ndim}), but got {axis} with type "
            "'int'."
        )
    at = axis % x.ndim
    wide = tile(expand_dims(x, at + 1), (*[1] * (at + 1), rep, *[1] * (x.ndim - at - 1)))
    return reshape(wide, (*x.shape[:at], x.shape[at] * rep, *x.shape[at + 1 :]))


def broadcast_to(input: Tensor, shape: Any) -> Tensor:
    """Broadcast to a shape."""
    return inner_single("BroadcastTo", [input, _listed(shape)])


def flip(input: Tensor, dims: Any) -> Tensor:
    """Reverse axes."""
    return inner_single("ReverseV2", [input, _listed(dims)])


def gather(input_params: Tensor, input_indices: Tensor, axis: int, batch_dims: int = 0) -> Tensor:
    """Slices of an axis at the given indices."""
    return single("Gather", [input_params, input_indices, axis, batch_dims])


def index_select(input: Tensor, axis: int, index: Tensor) -> Tensor:
    """Like `gather`, with a vector of indices."""
    if not isinstance(input, Tensor) or not isinstance(index, Tensor):
        raise ScriptTypeError("For 'index_select', `input` and `index` must be all tensors.")
    if index.ndim != 1:
        raise ScriptValueError(f"For 'index_select', the dimension of `index` must be 1, but got {index.ndim}")
    axis = _axis(axis, input.ndim)
    return gather(input, index, axis)


def gather_d(x: Tensor, dim: int, index: Tensor) -> Tensor:
    """Elements of an axis, with one index for every element of the result."""
    return single("GatherD", [x, dim, index])


gather_elements = gather_d


def gather_nd(input_x: Tensor, indices: Tensor) -> Tensor:
    """Slices at the positions given by index vectors; a number is a vector of one index. [2.10 observed]"""
    if isinstance(indices, Tensor) and not indices.ndim:
        indices = reshape(indices, (1,))
    return single("GatherNd", [input_x, indices])


def scatter_nd(indices: Tensor, updates: Tensor, shape: Any) -> Tensor:
    """Zeros of a shape, with slices added at the given positions."""
    return single("ScatterNd", [indices, updates, _listed(shape)])


def tensor_scatter_update(input_x: Tensor, indices: Tensor, updates: Tensor) -> Tensor:
    """A copy with slices replaced at the given positions."""
    return single("TensorScatterUpdate", [input_x, indices, updates])


def select(condition: Tensor, input: Any, other: Any) -> Tensor:
    """Elements of `input` where the condition holds, of `other` elsewhere.

    Examples
    --------
    >>> select(Tensor([True, False]), Tensor([1.0, 2.0]), 0.0).asnumpy()
    array([1., 0.], dtype=float32)
    """
    if is_number(input) and is_number(other):
        raise ScriptTypeError("For 'select', at least one of 'input' and 'other' must be a Tensor.")
    expect("Select", condition, input, other)
    x, y = promote("Select", input, other)
    return single("Select", [condition, x, y])


def nonzero(input: Tensor, *, as_tuple: bool = False) -> Any:
    """Indices of the nonzero elements, one row each; with `as_tuple`, one vector per axis.

    Examples
    --------
    >>> nonzero(Tensor([[0, 3], [5, 0]])).asnumpy().tolist()
    [[0, 1], [1, 0]]
    """
    if not isinstance(as_tuple, bool):
        raise ScriptTypeError(f"For array function 'nonzero', 'as_tuple' must be bool, but got {type_text(as_tuple)}.")
    indices = single("NonZero", [input])
    return tuple(indices[:, axis] for axis in range(input.ndim)) if as_tuple else indices


def masked_select(input: Tensor, mask: Tensor) -> Tensor:
    """The elements where the mask holds, as a vector.

    Examples
    --------
    >>> masked_select(Tensor([1, 2, 3]), Tensor([True, False, True])).asnumpy().tolist()
    [1, 3]
    """
    return single("MaskedSelect", [input, mask])


@takes("Diagonal")
def diagonal(input: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """Diagonal of two axes, as the last axis of the result.

    Examples
    --------
    >>> diagonal(Tensor([[1, 2], [3, 4]])).asnumpy().tolist()
    [1, 4]
    """
    first, second = _axis(dim1, input.ndim), _axis(dim2, input.ndim)
    rest = [axis for axis in range(input.ndim) if axis not in (first, second)]
    rows, columns = input.shape[first], input.shape[second]
    count = max(min(rows + min(offset, 0), columns - max(offset, 0)), 0)
    start = offset if offset >= 0 else -offset * columns
    flat = reshape(transpose(input, (*rest, first, second)), (*(input.shape[axis] for axis in rest), rows * columns))
    return gather(flat, Tensor(start + np.arange(count, dtype=np.int64) * (columns + 1)), -1)


def where(condition: Tensor, input: Any, other: Any) -> Any:
    """Like `select`, with a condition of any number type."""
    if condition._dtype != mstype.bool_:
        condition = cast_to(condition, mstype.bool_)
    return select(condition, input, other)


def masked_fill(input_x: Tensor, mask: Tensor, value: Any) -> Tensor:
    """A copy with `value` where the mask holds."""
    expect("MaskedFill", input_x, mask, value)
    return single("MaskedFill", [input_x, mask, cast_to(value, input_x._dtype)])


def tril(input: Tensor, diagonal: int = 0) -> Tensor:
    """The lower triangle of every matrix."""
    return single("Tril", [input], {"diagonal": diagonal})


def triu(input: Tensor, diagonal: int = 0) -> Tensor:
    """The upper triangle of every matrix."""
    return inner_single("Triu", [input, diagonal])


def diag(input: Tensor) -> Tensor:
    """A matrix with the elements on its diagonal."""
    return single("Diag", [input])


def shape(input_x: Tensor) -> tuple[int, ...]:
    """Extents as Python ints, which are constants of a graph."""
    check_has_shape(input_x)
    return input_x.shape


shape_ = shape


def rank(input_x: Tensor) -> int:
    """Number of axes."""
    if not isinstance(input_x, Tensor):
        raise ScriptTypeError("the input x must be Tensor!")
    return input_x.ndim


def size(input_x: Tensor) -> int:
    """Number of elements."""
    if not isinstance(input_x, Tensor):
        raise ScriptTypeError(f"For 'Size', input must be a Tensor, but got: {abstract_name(input_x)}.")
    return int(input_x.size)
