"""Operators that select or place elements by index tensors: gather, scatter, segments, one-hot."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import Any

import numpy as np

from dumpsim.core.abstract import Abstract, ScalarType, TensorType
from dumpsim.core.dtype import dtype
from dumpsim.core.errors import ScriptRuntimeError, ScriptTypeError, ScriptValueError, UnsupportedError
from dumpsim.ops.bounds import OutOfRange, along, legal_vectors, rows, vectors
from dumpsim.ops.gradient import is_variable, shape_of
from dumpsim.ops.opdef import GradBuilder, OpDef
from dumpsim.ops.rules import axis_of, constant, ints_of, output, same_dtype, tensor_of, value_of, vector
from dumpsim.ops.scatter import infer_copy

__all__ = ["OPS"]

Array = np.ndarray[Any, Any]
Attrs = Mapping[str, Any]

_INDEX_TYPES = ("int32", "int64")
_SEGMENT_TYPES = ("int16", *_INDEX_TYPES)


def _indices(
    name: str, abstract: Abstract, operand: str = "indices", kinds: Sequence[str] = _INDEX_TYPES
) -> TensorType:
    return tensor_of(name, abstract, operand, kinds)


def _infer_gather(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
    x, index = tensor_of("Gather", abstracts[0], "input_params"), _indices("Gather", abstracts[1], "input_indices")
    axis, rank = value_of("Gather", abstracts[2], "axis"), len(x.shape)
    if not -rank <= axis < rank:
        raise ScriptValueError(f"For primitive[Gather], the axis must be in [{-rank},{rank}], but got {axis}.")
    axis %= rank
    batch = value_of("Gather", abstracts[3], "batch_dims")
    axis_of("Gather", batch, rank, "batch_dims")
    batch += len(index.shape) if batch < 0 else 0
    if axis < batch:
        raise ScriptValueError(
            f"For primitive[Gather], the axis must be greater than or equal to {batch}, but got {axis}."
        )
    for at, (own, theirs) in enumerate(zip(x.shape[:batch], index.shape[:batch], strict=True)):
        if own != theirs and -1 not in (own, theirs):
            raise ScriptRuntimeError(
                f"For 'Gather', params.shape[{at}] should be equal to indices.shape[{at}] but got param.shape: "
                f"{vector(x.shape)}, indices.shape: {vector(index.shape)}"
            )
    return output(x.dtype, (*x.shape[:axis], *index.shape[batch:], *x.shape[axis + 1 :]))


def _gather(x: Array, index: Array, axis: int = 0, batch_dims: int = 0) -> Array:
    """Return rows of `x`; rows that do not exist are zeros."""
    axis %= x.ndim
    if batch_dims < 0:
        batch_dims += index.ndim
    if batch_dims:
        parts = [_gather(x[i], index[i], axis - 1, batch_dims - 1) for i in range(x.shape[0])]
        return np.stack(parts) if parts else np.empty((0, *index.shape[1:], *x.shape[2:]), x.dtype)
    size = x.shape[axis]
    legal = (index >= -size) & (index < size)
    taken = np.take(x, np.where(legal, index, 0), axis)
    if not legal.all():
        taken[(slice(None),) * axis + (~legal,)] = 0
    return taken


def _grad_gather(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
    x, index, axis, batch = operands
    shape, places = shape_of(x), len(shape_of(index))
    place = constant(axis) % len(shape)
    if constant(batch):
        raise ScriptValueError("For 'Gather', the gradient with 'batch_dims' is not emulated.", allowed=(0,))
    if place == 0:
        return b.emit("UnsortedSegmentSum", dout, index, shape[0]), None, None, None
    # move the gathered axes to the front, sum there, and move back
    rank = len(shape) - 1 + places
    order = (*range(place, place + places), *range(place), *range(place + places, rank))
    summed = b.emit("UnsortedSegmentSum", b.emit("Transpose", dout, order), index, shape[place])
    back = (*range(1, place + 1), 0, *range(place + 1, len(shape)))
    return b.emit("Transpose", summed, back), None, None, None


def _infer_gather_sparse(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
    return _infer_gather([*abstracts, ScalarType(dtype=dtype("int64"), value=0)], attrs)


def _infer_lookup(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
    x, index = tensor_of("EmbeddingLookup", abstracts[0], "params"), _indices("EmbeddingLookup", abstracts[1])
    offset = abstracts[2]
    if not 1 <= len(x.shape) <= 2:
        raise ScriptValueError(
            f"For primitive[EmbeddingLookup], the dimension of params must be in [1,2], but got {len(x.shape)}."
        )
    if not index.shape:
        raise ScriptValueError(
            "For primitive[EmbeddingLookup], the dimension of indices  must be greater than 0 , but got 0."
        )
    if isinstance(offset, ScalarType | TensorType) and offset.dtype.name not in _INDEX_TYPES:
        raise ScriptTypeError(
            "For primitive[EmbeddingLookup], the input argument[offset] must be a type of {Int32, Int64}, but got "
            f"{offset.dtype.title}."
        )
    return output(x.dtype, (*index.shape, *x.shape[1:]))


def _lookup(x: Array, index: Array, offset: int) -> Array:
    """Return the rows at ``index - offset``; rows that do not exist, also for negative numbers, are zeros."""
    rows_at = index.astype(np.int64) - int(offset)
    legal = (rows_at >= 0) & (rows_at < x.shape[0])
    taken = np.take(x, np.where(legal, rows_at, 0), 0)
    taken[~legal] = 0
    return taken


def _infer_segments(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
    op = "UnsortedSegmentSum"
    x, index = tensor_of(op, abstracts[0], "input_x"), _indices(op, abstracts[1], "segment_ids type", _SEGMENT_TYPES)
    count = value_of(op, abstracts[2], "num_segments")
    if count <= 0:
        raise ScriptValueError(
            f"For primitive[{op}], the num_segments's value must be greater than 0, but got {count}."
        )
    for at, (own, theirs) in enumerate(zip_longest(x.shape[: len(index.shape)], index.shape)):
        if own != theirs and -1 not in (own, theirs):
            raise ScriptValueError(
                f"For '{op}', the whose shape of 'segment_ids' must equal to the shape of 'input_x', ids[{at}] should "
                f"be = input[{at}]: {own}, but got {theirs}"
            )
    return output(x.dtype, (count, *x.shape[len(index.shape) :]))


def _segments(x: Array, index: Array, count: int) -> Array:
    rest = x.shape[index.ndim :]
    total = np.zeros((int(count), *rest), x.dtype)
    flat = index.reshape(-1)
    legal = (flat >= 0) & (flat < count)
    np.add.at(total, flat[legal], x.reshape(-1, *rest)[legal])
    return total


def _grad_segments(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
    return b.emit("Gather", dout, operands[1], 0, 0), None, None


def _infer_gather_each(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
    x, index = tensor_of("GatherD", abstracts[0], "x"), _indices("GatherD", abstracts[2], "index")
    rank = max(len(x.shape), 1)
    if max(len(index.shape), 1) != rank:
        raise ScriptValueError(
            f"For primitive[GatherD], the x_rank must be equal to {max(len(index.shape), 1)}, but got {rank}."
        )
    dim = value_of("GatherD", abstracts[1], "dim")
    if not -rank <= dim < rank:  # quirk: the text names rank itself [2.10 observed]
        raise ScriptValueError(f"For primitive[GatherD], the dim value must be in [{-rank},{rank}], but got {dim}.")
    for axis, (extent, wanted) in enumerate(zip(x.shape, index.shape, strict=False)):
        if axis != dim % rank and extent < wanted:
            raise ScriptValueError(
                f"For primitive[GatherD], the x shape must be greater than or equal to {wanted}, but got {extent}."
            )
    return output(x.dtype, index.shape)


def _grid(index: Array, dim: int) -> tuple[Any, ...]:
    """Return subscripts of all elements of `index`, with the values of `index` on axis `dim`."""
    places = list(np.ogrid[tuple(slice(n) for n in index.shape)])
    places[dim % index.ndim] = index
    return tuple(places)


def _gather_each(x: Array, dim: int, index: Array) -> Array:
    size = x.shape[dim]
    legal = (index >= -size) & (index < size)
    return np.where(legal, x[_grid(np.where(legal, index, 0), dim)], np.zeros((), x.dtype))


def _legal_grid(x: Array, index: Array, values: Array, dim: int) -> tuple[tuple[Array, ...], Array]:
    """Return the subscripts of the valid indices on axis `dim` of `x`, and their values."""
    size = x.shape[dim]
    legal = (index >= -size) & (index < size)
    grid = np.broadcast_arrays(*_grid(index, dim))
    return tuple(each[legal] for each in grid), np.broadcast_to(values, index.shape)[legal]


def _grad_gather_each(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
    x, dim, index = operands
    return b.emit("GatherDGradV2", x, constant(dim), index, dout), None, None


def _infer_gather_each_grad(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
    x = tensor_of("GatherDGradV2", abstracts[0], "x")
    return output(tensor_of("GatherDGradV2", abstracts[3], "dout").dtype, x.shape)


def _gather_each_grad(x: Array, dim: int, index: Array, dout: Array) -> Array:
    dx = np.zeros(x.shape, dout.dtype)
    places, dout = _legal_grid(x, index, dout, dim)
    np.add.at(dx, places, dout)
    return dx


def _infer_gather_nd(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
    x, index = tensor_of("GatherNd", abstracts[0], "input_x"), _indices("GatherNd", abstracts[1])
    shape = index.shape
    if not shape:
        raise ScriptValueError("For 'GatherNd', 'indices' must have at least one axis.")
    if shape[-1] > len(x.shape):
        raise ScriptValueError(
            "For primitive[GatherNd], the In GatherNd, the input of indices data must be greater than or equal to "
            f"{shape[-1]}, but got {len(x.shape)}."
        )
    return output(x.dtype, (*shape[:-1], *x.shape[shape[-1] :]))


def _gather_nd(x: Array, index: Array) -> Array:
    legal = legal_vectors(index, x.shape)
    taken = x[_places(np.where(legal[..., None], index, 0))]
    if not legal.all():
        taken[~legal] = 0
    return taken


def _places(index: Array) -> tuple[Array, ...]:
    return tuple(np.moveaxis(index, -1, 0))


def _grad_gather_nd(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
    x, index = operands
    if index.abstract.dtype.name != "int64":
        index = b.emit("Cast", index, dtype("int64"))
    return b.emit("ScatterNd", index, dout, shape_of(x)), None


def _infer_scatter_nd(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
    index, updates = _indices("ScatterNd", abstracts[0]), tensor_of("ScatterNd", abstracts[1], "updates")
    shape = ints_of("ScatterNd", abstracts[2], "shape")
    if min(shape, default=1) <= 0:
        raise ScriptValueError(
            "For 'ScatterNd', the input [shape] should be a tuple with all positive item. But got: "
            f"{{ {', '.join(map(str, shape))} }}"
        )
    rank = len(index.shape)
    if rank < 2:
        raise ScriptValueError(
            f"For primitive[ScatterNd], the rank(indices) must be greater than or equal to 2, but got {rank}."
        )
    depth = index.shape[-1]
    if len(updates.shape) != rank - 1 + len(shape) - depth:
        raise ScriptValueError(
            "For 'ScatterNd', if the rank of 'indices' is 'Q', the rank of 'updates' is 'R', the rank of output tensor "
            "is 'P' (length of the 'shape'), and the last dimension of 'indices' is 'N', then 'R' should be equal to "
            f"'Q - 1 + P - N'. but got 'R' = {len(updates.shape)}, 'Q' = {rank}, 'P' = {len(shape)}, 'N' = {depth}"
        )
    if updates.shape != (*index.shape[:-1], *shape[depth:]) and -1 not in (*updates.shape, *index.shape):
        own, theirs, whole = (f"({', '.join(map(str, one))}" for one in (index.shape, updates.shape, shape))
        raise ScriptValueError(
            "For 'ScatterNd', if the last dimension of 'indices' is 'N', the shape of 'updates' should be the "
            f"concatenation of 'indices.shape[:-1]' and 'shape[N:]'. but got 'indices.shape' is ({own}), "
            f"'updates.shape' is ({theirs}), 'shape' is {whole}, )."
        )
    return output(updates.dtype, shape)


def _scatter_nd(index: Array, updates: Array, shape: Sequence[int]) -> Array:
    result = np.zeros(tuple(int(n) for n in shape), updates.dtype)
    legal = legal_vectors(index, result.shape)
    np.add.at(result, _places(index[legal]), updates[legal])
    return result


def _grad_scatter_nd(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
    return None, b.emit("GatherNd", dout, operands[0]), None


_UPDATE = ("input_x", "indices", "updates")


def _infer_update(name: str) -> Any:
    def infer(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
        x, _, _ = (tensor_of(name, each, what) for each, what in zip(abstracts, _UPDATE, strict=False))
        return output(x.dtype, x.shape)

    return infer


def _update(x: Array, index: Array, updates: Array) -> Array:
    result = np.array(x)
    legal = legal_vectors(index, x.shape)
    result[_places(index[legal])] = updates[legal]
    return result


def _grad_update(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
    x, index, updates = operands
    dx = None
    if is_variable(x):
        zeros = np.zeros(shape_of(updates), updates.abstract.dtype.numpy)
        dx = b.emit("TensorScatterUpdate", dout, index, zeros)
    return dx, None, b.emit("GatherNd", dout, index)


def _scatter_elements(data: Array, index: Array, updates: Array, axis: int = 0, reduction: int = 0) -> Array:
    result = np.array(data)
    places, updates = _legal_grid(data, index, updates, axis)
    if reduction == 0:
        result[places] = updates
    else:
        np.add.at(result, places, updates)
    return result


def _elements_out_of_range(
    data: Array, index: Array, updates: Array, axis: int = 0, reduction: int = 0
) -> OutOfRange | None:
    found = along(1, None, "", operand="indices", axis=axis)(data, index)
    return None if found is None else replace(found, text=None, reads=False)  # the CPU skips them [observed 2.10]


def _infer_one_hot(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
    index = _indices("OneHot", abstracts[0])
    depth = value_of("OneHot", abstracts[1], "depth")
    if depth < 0:
        raise ScriptValueError(
            f"For primitive[OneHot], the depth value must be greater than or equal to 0, but got {depth}."
        )
    on, off = tensor_of("OneHot", abstracts[2], "on_value"), tensor_of("OneHot", abstracts[3], "off_value")
    kind = same_dtype("OneHot", {"on_value": on, "off_value": off})
    axis = axis_of("OneHot", value_of("OneHot", abstracts[4], "axis"), len(index.shape), extra=1, is_closed=True)
    return output(kind, (*index.shape[:axis], depth, *index.shape[axis:]))


def _one_hot(index: Array, depth: int, on: Any, off: Any, axis: int = -1) -> Any:
    place = axis % (index.ndim + 1)
    steps = np.arange(depth).reshape(-1, *(1,) * (index.ndim - place))
    return np.where(np.expand_dims(index, place) == steps, on, off).astype(np.asarray(on).dtype)


def _grad_scatter_elements(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
    """The replaced elements have a gradient of zero; the updates get the gradient of their positions."""
    _, indices, updates, axis, reduce = operands
    if constant(reduce) != 0:
        raise UnsupportedError("the gradient of a reduction", where="TensorScatterElements(reduce)")
    zeros = np.zeros(shape_of(updates), updates.abstract.dtype.numpy)
    dx = b.emit("TensorScatterElements", dout, indices, zeros, constant(axis), 0)
    return dx, None, b.emit("GatherD", dout, constant(axis), indices), None, None


OPS = (
    OpDef(
        name="Gather",
        operands=("input_params", "input_indices", "axis", "batch_dims"),
        defaults=(0,),
        infer=_infer_gather,
        kernel=_gather,
        bounds=along(
            1,
            2,
            "For 'Gather', the 'input_indices' should be in the range [0, {size}), but got {wrapped}, error_code[58]",
            operand="input_indices",
        ),
        grad=_grad_gather,
        fixed={"batch_dims": lambda abstracts, out, attrs: value_of("Gather", abstracts[3], "batch_dims")},
        prim_func=True,
    ),
    OpDef(
        name="SparseGatherV2",  # its gradient is a sparse tensor
        operands=("params", "indices", "axis"),
        infer=_infer_gather_sparse,
        kernel=_gather,
        bounds=along(1, 2, "", operand="indices"),
        fixed={"bprop_return_sparse": True},
        input_names=["params", "indices", "axis"],
        output_names=["output"],
        targets=("Ascend", "GPU"),
    ),
    OpDef(
        name="EmbeddingLookup",  # its gradient is a sparse tensor; no index is out of range [observed 2.10]
        operands=("params", "indices", "offset"),
        infer=_infer_lookup,
        kernel=_lookup,
        fixed={"bprop_return_sparse": True},
        input_names=["params", "indices", "offset"],
        output_names=["output"],
    ),
    OpDef(
        name="UnsortedSegmentSum",
        operands=("input_x", "segment_ids", "num_segments"),
        infer=_infer_segments,
        kernel=_segments,
        bounds=rows(1, lambda x, index, count: count, "", operand="segment_ids"),
        grad=_grad_segments,
        prim_func=True,
    ),
    OpDef(
        name="GatherD",
        operands=("x", "dim", "index"),
        infer=_infer_gather_each,
        kernel=_gather_each,
        bounds=along(
            2, 1, "For 'GatherD', the value of 'index' must be in [-{size}, {size}), but got: {value}", operand="index"
        ),
        grad=_grad_gather_each,
        prim_func=True,
    ),
    OpDef(
        name="GatherDGradV2",
        operands=("x", "dim", "index", "dout"),
        infer=_infer_gather_each_grad,
        kernel=_gather_each_grad,
        prim_func=True,
    ),
    OpDef(
        name="GatherNd",
        operands=("input_x", "indices"),
        infer=_infer_gather_nd,
        kernel=_gather_nd,
        bounds=vectors(
            1,
            lambda x, index: x.shape,
            "For 'GatherNd', the indices[{row}]: [const vector]{{{vector}}}, does not index into input_shape: "
            "[const vector]{{{shape}}}.",
            reads=True,
        ),
        grad=_grad_gather_nd,
        prim_func=True,
    ),
    OpDef(
        name="ScatterNd",
        operands=("indices", "updates", "shape"),
        infer=_infer_scatter_nd,
        kernel=_scatter_nd,
        bounds=vectors(
            0,
            lambda index, updates, shape: shape,
            "For 'ScatterNd', each element in 'indices' should be smaller than the value of shape, but got {value} and "
            "got the value of shape {size}",
            negative="For 'ScatterNd', each element in 'indice' must be greater than or equal to 0, but got {value}",
        ),
        grad=_grad_scatter_nd,
        prim_func=True,
    ),
    OpDef(
        name="TensorScatterUpdate",
        operands=("input_x", "indices", "updates"),
        infer=infer_copy("TensorScatterUpdate", "indices type"),
        kernel=_update,
        bounds=vectors(
            1,
            lambda x, index, updates: x.shape,
            "For 'TensorScatterUpdate', indices out of range for input_x. Please check the indices which is "
            "[const vector]{{{vector}}}",
            error=ScriptValueError,
        ),
        grad=_grad_update,
        input_names=["input_x", "indices", "updates"],
        output_names=["y"],
    ),
    OpDef(
        name="TensorScatterElements",
        operands=("data", "indices", "updates", "axis", "reduce"),
        defaults=(0, 0),
        infer=_infer_update("TensorScatterElements"),
        kernel=_scatter_elements,
        bounds=_elements_out_of_range,
        grad=_grad_scatter_elements,
        prim_func=True,
    ),
    OpDef(
        name="OneHot",
        operands=("indices", "depth", "on_value", "off_value", "axis"),
        defaults=(-1,),
        infer=_infer_one_hot,
        kernel=_one_hot,
        prim_func=True,
        stop=True,
    ),
)
