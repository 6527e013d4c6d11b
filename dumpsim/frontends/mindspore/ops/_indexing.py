"""The operators of ``tensor[index]``, and ``tensor[index] = value`` outside graphs. [observed 2.10]

Numbers, slices, None and ... become ExpandDims and StridedSlice; index tensors become Gather or GatherNd.
"""

from typing import Any

import numpy as np

from dumpsim.core.errors import DumpsimError, ScriptTypeError, ScriptValueError, UnsupportedError
from dumpsim.frontends.mindspore._capture.dispatch import call
from dumpsim.frontends.mindspore._current import capturing
from dumpsim.frontends.mindspore.common import dtype as mstype
from dumpsim.frontends.mindspore.common.tensor import Tensor
from dumpsim.frontends.mindspore.ops.function._single import single

__all__ = ["get_item", "set_item"]


class _OutOfRangeError(DumpsimError, IndexError):
    """The IndexError that ends a ``for`` over a tensor."""


class _IndexTypeError(DumpsimError, IndexError):
    """The IndexError for an index of another type. [2.10 observed]"""


def get_item(tensor: Tensor, index: Any) -> Tensor:
    """Return the part of a tensor that an index selects.

    Raises
    ------
    IndexError
        For a number outside its axis, or more indices than axes.
    UnsupportedError
        For None or a mask among other indices.
    """
    items = index if isinstance(index, tuple) else (index,)
    items = tuple(_as_tensor(item) if isinstance(item, (list, np.ndarray)) else item for item in items)
    tensors = [item for item in items if isinstance(item, Tensor)]
    if tensors and (len(tensors) == len(items) or not all(map(_is_scalar, tensors))):
        return _by_tensors(tensor, items)
    items = tuple(int(item) if isinstance(item, Tensor) else item for item in items)
    if len(items) == 1 and (items[0] is None or items[0] is True):
        return single("ExpandDims", [tensor, 0])
    if items == (Ellipsis,):
        return tensor
    if len(items) == 1 and isinstance(items[0], (int, np.integer)):
        return _by_number(tensor, int(items[0]))
    return _by_slices(tensor, items)


def _is_scalar(item: Tensor) -> bool:
    """Whether slices and numbers take an index tensor as a number. [observed 2.10]"""
    return item.ndim == 0 and item._symbol is None and item._dtype.kind in ("int", "uint")


def _is_mask(item: Any) -> bool:
    return isinstance(item, Tensor) and item._dtype.kind == "bool"


def _as_tensor(item: Any) -> Tensor:
    array = np.asarray(item)
    if array.dtype.kind not in "biu":
        raise ScriptTypeError(f"an index of type {array.dtype}", where="Tensor index", allowed=("int", "bool"))
    return Tensor(array)


def _unknown_index(item: Any) -> _IndexTypeError:
    if isinstance(item, float):
        return _IndexTypeError(
            "Only support integers, slices(`:`), ellipsis(`...`), None, bool, tensor, int, list and tuple as index, "
            f"but got {item} with type {type(item)}"
        )
    return _IndexTypeError(
        f"Unsupported Python object type received: {type(item)}. Supported types for tensor indexing are: list, int, "
        f"float, tuple, slice, ellipsis, None, array, bool, or Tensor. Received value: {item!r}"
    )


def _check_index(position: int, extent: int, axis: int) -> None:
    if not -extent <= position < extent:
        raise _OutOfRangeError(f"index {position} is out of bounds for dimension with size {extent} (axis {axis})")


def _by_number(tensor: Tensor, position: int) -> Tensor:
    if not tensor.ndim:
        raise ScriptTypeError("Cannot iterate over a scalar tensor.")
    _check_index(position, tensor.shape[0], 0)
    mask = sum(1 << axis for axis in range(2, 8))  # the vendor masks the axes that are not sliced
    return single("StridedSlice", [tensor, (position,), (position + 1,), (1,), mask, mask, 0, 0, 1])


def _by_slices(tensor: Tensor, items: tuple[Any, ...]) -> Tensor:
    named = sum(item is not None and item is not Ellipsis for item in items)
    if named > tensor.ndim:
        raise _OutOfRangeError(f"too many indices for tensor of dimension{tensor.ndim}")
    if items.count(Ellipsis) > 1:
        raise _OutOfRangeError("An index can only have a single ellipsis('...')")
    if Ellipsis in items:
        dots = items.index(Ellipsis)
        trailing = sum(item is not None for item in items[dots + 1 :])
        before = sum(item is not None for item in items[:dots])
        filler = (slice(None),) * (tensor.ndim - trailing - before)
        items = (*items[:dots], *filler, *items[dots + 1 :])
        whole = True
    else:
        whole = False
    added = [axis for axis, item in enumerate(items) if item is None]
    for axis in added:
        tensor = call("ExpandDims", [tensor, axis])
    plain = [slice(0, 1) if item is None else item for item in items]
    return _strided(tensor, plain, whole)


def _strided(tensor: Tensor, items: list[Any], whole: bool) -> Tensor:
    begin, end, strides = [], [], []
    begin_mask = end_mask = shrink_mask = 0
    for axis, item in enumerate(items):
        extent = tensor.shape[axis]
        if isinstance(item, slice):
            step = 1 if item.step is None else int(item.step)
            if step == 0:
                raise ScriptValueError("For 'StridedSlice', 'strides' cannot contain 0")
            if item.start is None:
                begin_mask |= 1 << axis
            if item.stop is None:
                end_mask |= 1 << axis
            begin.append(0 if item.start is None else int(item.start))
            end.append((extent if whole else 0) if item.stop is None else int(item.stop))
            strides.append(step)
        elif isinstance(item, (int, np.integer)) and not isinstance(item, bool):
            position = int(item)
            _check_index(position, extent, axis)
            shrink_mask |= 1 << axis
            position = position % extent if extent else position
            begin.append(position)
            end.append(position + 1)
            strides.append(1)
        else:
            raise _unknown_index(item)
    if whole:
        begin_mask = end_mask = sum(
            1 << axis for axis, item in enumerate(items) if isinstance(item, slice) and item == slice(None)
        )
    masks = [begin_mask, end_mask, 0, 0, shrink_mask]
    return single("StridedSlice", [tensor, tuple(begin), tuple(end), tuple(strides), *masks])


def _by_tensors(tensor: Tensor, items: tuple[Any, ...]) -> Tensor:
    """Select by index tensors for the first axes."""
    depth = sum(item.ndim if _is_mask(item) else 1 for item in items if item is not None and item is not Ellipsis)
    if depth > tensor.ndim:
        raise _OutOfRangeError(
            f"The dim of index cannot be greater than indexed data, but got dim of index:{depth}, "
            f"dim of data:{tensor.ndim}"
            if any(map(_is_mask, items))
            else f"too many indices for tensor of dimension{tensor.ndim}"
        )
    while items and isinstance(items[-1], slice) and items[-1] == slice(None):
        items = items[:-1]
    if len(items) == 1 and _is_mask(items[0]):
        return single("GatherNd", [tensor, call("NonZero", [items[0]])])
    if not all(isinstance(item, Tensor) and item._dtype.kind in ("int", "uint") for item in items):
        return _mixed(tensor, items)
    if len(items) == 1:
        indices = _wrapped(items[0], tensor.shape[0])
        return single("Gather", [tensor, indices, 0, 0])
    shape = np.broadcast_shapes(*(item.shape for item in items))
    columns = [_wrapped(item, tensor.shape[axis]) for axis, item in enumerate(items)]
    if len({column._dtype for column in columns}) > 1:
        columns = [call("Cast", [column, mstype.int64]) for column in columns]
    columns = [column if column.shape == shape else call("BroadcastTo", [column, shape]) for column in columns]
    return single("GatherNd", [tensor, call("Stack", [tuple(columns)], {"axis": -1})])


def _mixed(tensor: Tensor, items: tuple[Any, ...]) -> Tensor:
    """Select by index tensors mixed with slices and numbers, with numpy's order of axes. [observed 2.10]"""
    if Ellipsis in items:
        dots = items.index(Ellipsis)
        items = (*items[:dots], *(slice(None),) * (tensor.ndim - len(items) + 1), *items[dots + 1 :])
    for item in items:
        if item is None or (isinstance(item, Tensor) and item._dtype.kind not in ("int", "uint")):
            raise UnsupportedError(
                "None or a mask among other indices is not emulated", where="Tensor index", nearest="ops.gather_nd"
            )
    named = [axis for axis, item in enumerate(items) if not isinstance(item, slice)]
    common = np.broadcast_shapes(*(item.shape for item in items if isinstance(item, Tensor)))
    together = named == list(range(named[0], named[-1] + 1))
    start = named[0] if together else 0  # where the axes of the index tensors go
    ranges = {
        axis: np.arange(tensor.shape[axis], dtype=np.int64)[item]
        for axis, item in enumerate(items)
        if isinstance(item, slice)
    }
    lengths = [len(column) for column in ranges.values()]
    shape = (*lengths[:start], *common, *lengths[start:])
    columns = []
    for axis, item in enumerate(items):
        if axis in ranges:
            rank = list(ranges).index(axis)
            own = rank if rank < start else rank + len(common)
            column: Any = ranges[axis].reshape([-1 if position == own else 1 for position in range(len(shape))])
        elif isinstance(item, Tensor):
            column = _expanded(_wrapped(item, tensor.shape[axis]), common, start, shape)
        else:
            _check_index(int(item), tensor.shape[axis], axis)
            column = np.array(int(item) % tensor.shape[axis], np.int64)
        if isinstance(column, np.ndarray):
            column = Tensor(np.ascontiguousarray(np.broadcast_to(column, shape)))
        columns.append(single("ExpandDims", [column, -1]))
    return single("GatherNd", [tensor, call("Concat", [tuple(columns), -1])])


def _expanded(indices: Tensor, common: tuple[int, ...], start: int, shape: tuple[int, ...]) -> Any:
    """Broadcast an index tensor to the shape of the result's indexed axes."""
    if indices._array is not None:
        array = np.broadcast_to(indices._array.astype(np.int64), common)
        return array.reshape(*(1,) * start, *common, *(1,) * (len(shape) - start - len(common)))
    indices = single("BroadcastTo", [indices, common])
    if len(shape) != len(common):
        trailing = (1,) * (len(shape) - start - len(common))
        indices = single("Reshape", [indices, (*(1,) * start, *common, *trailing)])
    return single("BroadcastTo", [indices, shape])


def _wrapped(indices: Tensor, extent: int) -> Tensor:
    """Count negative indices from the end, if the values are known."""
    if indices._array is not None and (indices._array < 0).any():
        return Tensor(np.where(indices._array < 0, indices._array + extent, indices._array), indices.dtype)
    return indices


def set_item(tensor: Tensor, index: Any, value: Any) -> None:
    """Replace the part of a tensor that an index selects.

    Outside graphs, the tensor's memory is written. Inside a graph a Tensor is a value without memory, so this raises.

    Raises
    ------
    UnsupportedError
        While a graph is captured.
    """
    if capturing() is not None:
        raise UnsupportedError(
            "writing a part of a tensor inside a graph is not emulated",
            where="Tensor.__setitem__",
            nearest="ops.tensor_scatter_update",
        )
    array = tensor._values("__setitem__")
    position = _plain(index)
    if isinstance(value, Tensor):
        value = value._values("__setitem__")
    elif not isinstance(value, (int, float, bool, list, tuple, np.ndarray, np.generic)):
        raise ScriptTypeError(f"a value of type {type(value).__name__}", where="Tensor.__setitem__")
    if not array.flags.writeable:
        array = array.copy()
    try:
        array[position] = np.asarray(value).astype(mstype.number(tensor._dtype).numpy)
    except IndexError as error:
        text = str(error)
        raise _OutOfRangeError(text[:1].upper() + text[1:]) from error
    tensor._take(array)


def _plain(index: Any) -> Any:
    if isinstance(index, tuple):
        return tuple(_plain(item) for item in index)
    return index._values("__setitem__") if isinstance(index, Tensor) else index
