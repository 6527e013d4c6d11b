"""``tensor[index] = value`` inside a graph: operators that compute the changed tensor. [observed 2.10]

Numbers and slices become constant indices of a TensorScatterUpdate, a mask of bools a Select, and an index tensor a
TensorScatterUpdate that counts negative indices from the end.
"""

from typing import Any

import numpy as np

from dumpsim.core.errors import UnsupportedError
from dumpsim.frontends.mindspore._capture.dispatch import call
from dumpsim.frontends.mindspore.common import dtype as mstype
from dumpsim.frontends.mindspore.common.tensor import Tensor
from dumpsim.frontends.mindspore.ops.function._single import single
from dumpsim.frontends.mindspore.ops.function.arithmetic import cast_to, less

__all__ = ["with_item"]


def with_item(tensor: Tensor, index: Any, value: Any) -> Tensor:
    """Return the tensor with the part that an index selects replaced by a value.

    Raises
    ------
    IndexError
        For a number outside its axis, or more indices than axes.
    UnsupportedError
        For a mixture of index tensors and slices.
    """
    if isinstance(index, (list, np.ndarray)):
        index = Tensor(np.asarray(index))
    if isinstance(index, Tensor) and index._dtype.kind == "bool":
        mask = call("BroadcastTo", [index, tensor.shape])
        return single("Select", [mask, _fitted(value, tensor, tensor.shape), tensor])
    if isinstance(index, Tensor):
        return _by_tensor(tensor, index, value)
    items = index if isinstance(index, tuple) else (index,)
    if any(isinstance(item, (Tensor, list, np.ndarray)) for item in items):
        raise UnsupportedError(
            "index tensors mixed with slices or numbers are not emulated", where="Tensor.__setitem__",
            nearest="ops.tensor_scatter_update",
        )  # fmt: skip
    if items in ((Ellipsis,), (None,), (slice(None),)):
        return _fitted(value, tensor, tensor.shape)
    indices = _element_indices(tensor, _without_dots(items, tensor.ndim))
    shape = (*indices[0].shape, *tensor.shape[len(indices) :])
    if isinstance(index, tuple):
        columns = tuple(single("ExpandDims", [Tensor(column), -1]) for column in indices)
        rows: Any = columns[0] if len(columns) == 1 else call("Concat", [columns, -1])
    else:
        rows = Tensor(indices[0][:, None])
    return single("TensorScatterUpdate", [tensor, rows, _fitted(value, tensor, shape)])


def _by_tensor(tensor: Tensor, indices: Tensor, value: Any) -> Tensor:
    extent = Tensor(np.array(tensor.shape[0], indices._dtype.numpy))
    wrapped = single("Select", [less(indices, 0), single("Add", [indices, extent]), indices])
    rows = single("ExpandDims", [wrapped, -1])
    return single("TensorScatterUpdate", [tensor, rows, _fitted(value, tensor, (*indices.shape, *tensor.shape[1:]))])


def _fitted(value: Any, tensor: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Convert the new elements to the tensor's number type and the shape of the part."""
    if isinstance(value, Tensor):
        return single("BroadcastTo", [cast_to(value, tensor._dtype), shape])
    if not isinstance(value, (int, float, bool, list, tuple, np.ndarray, np.generic)):
        raise _unusable(value)
    array = np.asarray(value).astype(mstype.number(tensor._dtype).numpy)
    return Tensor(np.ascontiguousarray(np.broadcast_to(array, shape)))


def _unusable(item: Any) -> IndexError:
    return IndexError(
        f"Unsupported Python object type received: {type(item)}. Supported types for tensor indexing are: list, int, "
        f"float, tuple, slice, ellipsis, None, array, bool, or Tensor. Received value: {item!r}"
    )


def _without_dots(items: tuple[Any, ...], rank: int) -> tuple[Any, ...]:
    """Replace ``...`` in the items by full slices."""
    for i, item in enumerate(items):
        if item is Ellipsis:
            return (*items[:i], *(slice(None),) * (rank - len(items) + 1), *items[i + 1 :])
    return items


def _element_indices(tensor: Tensor, items: tuple[Any, ...]) -> list["np.ndarray[Any, Any]"]:
    """Return the indices of the part's elements along each indexed axis, in one common shape."""
    if len(items) > tensor.ndim:
        raise IndexError(f"too many indices for tensor of dimension{tensor.ndim}")
    sliced = sum(isinstance(item, slice) for item in items)
    columns, seen = [], 0
    for axis, item in enumerate(items):
        extent = tensor.shape[axis]
        if isinstance(item, slice):
            seen += 1
            column = np.arange(extent, dtype=np.int64)[item].reshape((-1,) + (1,) * (sliced - seen))
        elif isinstance(item, (int, np.integer)) and not isinstance(item, bool):
            if not -extent <= item < extent:
                raise IndexError(f"index {item} is out of bounds for dimension with size {extent} (axis {axis})")
            column = np.array([item % extent], np.int64)
        else:
            raise _unusable(item)
        columns.append(column)
    return [np.ascontiguousarray(column) for column in np.broadcast_arrays(*columns)]
