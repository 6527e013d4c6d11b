"""Functions for the converters' rules that make several nodes for one operator. [spec aten 9.4]"""

import math
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch

from dumpsim.frontends.torchair._ge import Ref, SymbolList
from dumpsim.frontends.torchair._refusals import Refused

if TYPE_CHECKING:
    from dumpsim.frontends.torchair._maker import Maker

_INT32_MAX = 2**31 - 1
_HALVES = (torch.float16, torch.bfloat16)


# ----------------------------------------------------------------------------------------------------------- pointwise
def muls(m: "Maker", left: Any, right: Any) -> Ref:
    """Multiply; the result of Mul has no known type, so that a Cast follows."""
    kind = m.out.dtype
    if isinstance(left, Ref) and isinstance(right, (int, float)) and m.type_of(left) in _HALVES:
        return m.op("Cast", m.op("Muls", left, value=float(right)), dst_type=kind)
    inner = torch.uint8 if kind == torch.bool else kind
    return m.op("Cast", m.op("Mul", m.as_type(left, inner), m.as_type(right, inner)), dst_type=kind)


def minimum(m: "Maker", left: Ref, right: Ref) -> Ref:
    """Take the smaller elements: in int32 for types without a kernel, as a product for booleans."""
    kind = m.out.dtype
    if kind == torch.bool:
        return m.op("Mul", left, right)
    if kind in (torch.uint8, torch.int16):
        wide = [m.as_type(one, torch.int32) for one in (left, right)]
        return m.op("Cast", m.op("Minimum", *wide), dst_type=kind)
    return m.op("Minimum", m.as_out(left), m.as_out(right))


_UNROUNDED = frozenset({torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64})


def rounding(m: "Maker", mode: int) -> Ref:
    """Return the operand that chooses a rounding: 2 floor, 3 ceil, 4 round, 5 trunc, 7 frac."""
    return m.op("Fill", 1, m.op("Cast", mode, dst_type=torch.int8))


def rounded(m: "Maker", values: Sequence[Ref], mode: int) -> list[Ref]:
    """Round the tensors of a list; integers are left as they are."""
    fill = rounding(m, mode)
    others = [one for one in values if m.type_of(one) not in _UNROUNDED]
    made = iter(m.outputs("ForeachRoundOffNumber", max(len(others), 1), *others, fill) if others or mode == 7 else ())
    return [next(made) if one in others else m.op("ZerosLike", one) if mode == 7 else one for one in values]


def added_product(m: "Maker", bias: Ref, left: Ref, right: Ref, beta: float, alpha: float) -> Ref:
    """Add a product to a tensor; a vector of a half-precision type becomes the bias of the product's node."""
    shape, columns = m.shape_of(bias), m.shape_of(right)[1]
    left, right, bias = (m.as_out(one) for one in (left, right, bias))
    times, share = m.as_out(alpha), m.as_out(beta)
    if alpha == 0:
        return m.op("Mul", bias, share)
    attrs: dict[str, Any] = {"offset_x": 0, "transpose_x1": False, "transpose_x2": False}
    row = len(shape) == 1 or (len(shape) == 2 and shape[0] == 1 and shape[1] == columns)
    if row and m.type_of(bias) in _HALVES:
        own = bias if beta == 1 else m.op("Mul", bias, share)
        return m.op("MatMulV2", left if alpha == 1 else m.op("Mul", left, times), right, own, None, **attrs)
    made = m.op("Mul", m.op("MatMulV2", left, right, None, None, **attrs), times)
    if beta == 0:
        return made
    return m.op("Add", made, bias) if beta == 1 else m.op("AxpyV2", made, bias, share)


# ---------------------------------------------------------------------------------------------------------- reductions
def best(m: "Maker", value: Ref, dim: int | None, keepdim: bool, plain: str, keeping: str) -> Ref:
    """Return the indices of the largest or smallest elements; the type `keeping` keeps the dimension."""
    if dim is None:
        return m.op(plain, m.op("Reshape", value, [-1], axis=0, num_axes=-1), 0, dtype=torch.int64)
    if not keepdim:
        return m.op(plain, value, m.const(dim), dtype=torch.int64)
    found = m.as_type(value, torch.float32)
    return m.op("Cast", m.op(keeping, found, dimension=dim, keep_dims=True), dst_type=torch.int64)


def empty_sum(m: "Maker", value: Ref, dim: Any, keepdim: bool) -> Ref:
    """Sum a tensor without elements: zeros of the shape of the result."""
    shape = m.op("Shape", value, dtype=torch.int32)
    rank = m.rank(value)
    kept: list[Any] = [m.picked(shape, at) for at in range(rank)]
    if not isinstance(dim, list):
        raise Refused(AssertionError("dim must be a list of integers."))
    for at in sorted((at % rank for at in dim), reverse=True):
        kept[at : at + 1] = [1] if keepdim else []
    size: Any = m.op("Pack", *kept, N=len(kept), axis=0) if kept else []
    return m.op("Fill", size, m.op("Cast", 0.0, dst_type=m.out.dtype))


def deviation(m: "Maker", value: Ref, dim: Any, correction: Any, keepdim: bool) -> Ref:
    """Compute standard deviations from the means; those of no elements are NaN."""
    dims = dim or []
    if isinstance(dims, int):
        raise Refused(TypeError("object of type 'int' has no len()"))
    extents = m.shape_of(value)
    rank = len(extents)
    number = 1 if correction is None else correction
    size = math.prod(extents[at] for at in dims or range(rank))
    if isinstance(size, int):  # no dimension that is reduced is dynamic
        shape = m.op("Shape", value, dtype=torch.int32)
        kept: list[Any] = [m.picked(shape, at) for at in range(rank)]
        for at in sorted((at % rank for at in dims), reverse=True):
            kept[at : at + 1] = [m.const(1)] if keepdim else []
        pack: Any = m.op("Pack", *kept, N=len(kept), axis=0) if kept else []
        if size == 0 or size == 1 <= number:
            return m.op("Fill", pack, m.op("Cast", float("nan"), dst_type=m.out.dtype))
        if number > 1 and size <= number:
            return m.op("Fill", pack, m.op("Cast", math.inf, dst_type=m.out.dtype))
    mean = m.op("ReduceMean", value, m.const(dims, torch.int64), keep_dims=keepdim, noop_with_empty_axes=True)
    for at in sorted(dims) if list(dims) != [-1] and len(dims) != rank and not keepdim else ():
        mean = m.op("Unsqueeze", mean, axes=[at])
    mean = m.op("Expand", mean, m.op("Shape", value, dtype=torch.int32))
    return m.op(
        "ReduceStdWithMean",
        value,
        mean,
        correction=number,
        dim=list(dims),
        epsilon=0.001,
        invert=False,
        keepdim=keepdim,
        unbiased=True,  # whatever the correction is
    )


def sort_last(m: "Maker", value: Ref, dim: int, descending: bool) -> tuple[Ref, Ref]:
    """Sort along a dimension; Sort itself supports only the last one."""
    rank = m.rank(value)
    axis = dim % rank if rank else 0
    last = max(rank - 1, 0)
    attrs: dict[str, Any] = {"axis": last, "descending": descending, "stable": False}
    if axis == last:
        made = m.op("Sort", value, **attrs)
        return made, m.op("Cast", made[1], dst_type=torch.int64)
    order = m.const(m.swapped(rank, axis, last))
    made = m.op("Sort", m.op("Transpose", value, order), **attrs)
    values = m.op("Transpose", made, order)
    return values, m.op("Cast", m.op("Transpose", made[1], order), dst_type=torch.int64)


def indexed_sum(m: "Maker", value: Ref, dim: int, index: Ref, source: Ref, alpha: Any) -> Ref:
    """Add a tensor to the rows that an index names."""
    factor = m.const(alpha, m.type_of(value))
    rank = m.rank(value)
    places = m.op("Unsqueeze", index, axes=[0]) if m.rank(index) == 0 else index
    chosen, shape = (m.op("Shape", one, dtype=torch.int32) for one in (places, value))
    places = m.as_type(places, torch.int32)
    axis = dim % rank
    extents = [m.picked(chosen, 0) if at == axis else m.picked(shape, at) for at in range(rank)]
    wide = m.op("BroadcastTo", source, m.op("Pack", *extents, N=rank, axis=0))
    return m.op("InplaceIndexAdd", m.op("TensorMove", value), places, wide, factor, axis=axis)


# --------------------------------------------------------------------------------------------------- shapes and slices
def permuted(m: "Maker", value: Ref, dims: Sequence[int]) -> Ref:
    """Permute dimensions; if only those of extent 1 move, by Squeeze and Unsqueeze."""
    extents = m.shape_of(value)
    order = [dim % len(extents) for dim in dims]
    wide = [dim for dim in order if extents[dim] != 1]
    if 1 in extents and wide == sorted(wide):
        ones = [at for at, dim in enumerate(order) if extents[dim] == 1]
        return m.op("Unsqueeze", m.op("Squeeze", value, axis=[]), axes=ones)
    return m.op("Transpose", value, list(dims))


def sliced(m: "Maker", value: Ref, dim: int, start: Any, end: Any, step: Any) -> Ref:
    """Slice a tensor along a dimension."""
    begin = 0 if start is None else start
    top = _top(end)
    axis, begin, top, step = (m.as_type(one, torch.int64) for one in (dim, begin, top, step))
    return _slice(m, value, begin, top, axis, step)


def _slice(m: "Maker", value: Ref, begin: Any, end: Any, axis: Any, step: Any) -> Ref:
    masks = ("begin_mask", "ellipsis_mask", "end_mask", "new_axis_mask", "shrink_axis_mask")
    attrs: dict[str, Any] = dict.fromkeys(masks, 0)
    return m.op("StridedSliceV2", value, begin, end, axis, step, **attrs)


def _top(end: Any) -> Any:
    """Return the end of a slice; that of a whole dimension is the largest int32."""
    if isinstance(end, int) and _INT32_MAX < end < sys.maxsize:
        raise Refused(RuntimeError("ge.StridedSliceV2 does not support shapes exceeding the INT32_MAX!"))
    return _INT32_MAX if end is None or (isinstance(end, int) and end > _INT32_MAX) else end


def spliced(m: "Maker", value: Ref, part: Ref, dim: int, start: Any, end: Any, step: Any) -> Ref:
    """Replace a slice of a tensor: by concatenation, or scattered if the step is not 1 or a bound is dynamic."""
    begin = 0 if start is None else start
    stop = sys.maxsize if end is None else end
    if (begin, stop, step) == (0, sys.maxsize, 1):
        return part
    if all(isinstance(one, int) for one in (begin, stop)) and step == 1:
        axis = dim % m.rank(value)
        extent = m.shape_of(value)[axis]
        top = stop % extent if stop < 0 else _top(stop)
        begin = min(begin % extent if begin < 0 else min(begin, _INT32_MAX), top)
        before = _slice(m, value, 0, begin, axis, 1)
        after = _slice(m, value, top, _INT32_MAX, axis, 1)
        return m.op("ConcatV2", before, part, after, axis, N=3)
    shape = m.op("Shape", value, dtype=torch.int32)
    if stop == sys.maxsize:
        stop = m.picked(shape, dim)
    shape, first, limit, delta = (m.as_type(one, torch.int32) for one in (shape, begin, stop, step))
    others = _others(m.rank(part), dim)
    limit = m.op("Minimum", m.picked(shape, dim), limit)
    places = _spread(m, m.op("Range", first, limit, delta), others, part)
    return m.op("ScatterElements", value, places, part, axis=dim, reduction="none")


def _others(rank: int, dim: int) -> list[int]:
    """Return all dimensions but one; as in the real converter, that one must not be negative."""
    if dim not in range(rank):
        raise Refused(ValueError("list.remove(x): x not in list"))
    return [at for at in range(rank) if at != dim]


def _spread(m: "Maker", places: Ref, others: Sequence[int], like: Ref) -> Ref:
    """Repeat places along the other dimensions of a tensor."""
    if not others:
        return places
    wide = m.op("Unsqueeze", places, axes=list(others))
    return m.op("Expand", wide, m.op("Shape", like, dtype=torch.int32))


def sliced_gradient(m: "Maker", grad: Ref, sizes: Any, dim: int, start: Any, end: Any, step: Any) -> Ref:
    """Compute the gradient of a slice: surrounded by zeros, or scattered if the step is not 1."""
    if isinstance(start, int) and isinstance(end, int) and (start, end, step) == (0, sys.maxsize, 1):
        return grad
    if step == 1:
        return _between_zeros(m, grad, sizes, dim, start, end)
    end = min(end, _INT32_MAX) if isinstance(end, int) else end
    if isinstance(end, int) and not isinstance(sizes, SymbolList):
        end = min(end, sizes[dim])
        end += sizes[dim] if end < 0 else 0
    whole = m.as_type(sizes.pack, torch.int32) if isinstance(sizes, SymbolList) else m.const(sizes, torch.int32)
    first, limit, delta = (m.as_type(one, torch.int32) for one in (start, end, step))
    made = m.op("Fill", whole, m.const(0.0, m.type_of(grad)))
    others = _others(m.rank(grad), dim)
    if isinstance(sizes, SymbolList) or isinstance(end, Ref):
        limit = m.op("Minimum", m.picked(whole, dim), limit)
    places = _spread(m, m.op("Range", first, limit, delta), others, grad)
    return m.op("ScatterElements", made, places, grad, axis=dim, reduction="none")


def _between_zeros(m: "Maker", grad: Ref, sizes: Any, dim: int, start: Any, end: Any) -> Ref:
    """Put zeros before and after a tensor, along a dimension."""
    if isinstance(start, int) and isinstance(end, int) and not isinstance(sizes, SymbolList):
        extent = sizes[dim]
        first, last = (extent if one >= extent else one % extent for one in (start, end))
        first = min(first, last)
        before = _zeros(m, [*sizes[:dim], first, *sizes[dim + 1 :]])
        after = _zeros(m, [*sizes[:dim], max(extent - last, 0), *sizes[dim + 1 :]])
        return m.op("ConcatV2", before, grad, after, dim, N=3)
    shape = sizes.pack if isinstance(sizes, SymbolList) else m.const(sizes)
    extent = m.picked(shape, dim)
    ends = []
    for one in (start, end):
        far = m.op("GreaterEqual", one, extent)
        ends.append(m.op("SelectV2", far, extent, m.op("FloorMod", one, extent)))
    parts = []
    for low, high in ((0, m.op("Minimum", *ends)), (ends[1], extent)):
        size = m.op("Maximum", m.op("Sub", high, low), 0)
        found = [size if at == dim else m.picked(shape, at) for at in range(m.rank(grad))]
        parts.append(_zeros(m, m.op("Pack", *found, N=len(found), axis=0)))
    return m.op("ConcatV2", parts[0], grad, parts[1], dim, N=3)


def _zeros(m: "Maker", shape: Any) -> Ref:
    zero = m.op("Cast", 0.0, dst_type=m.out.dtype)
    return m.op("Fill", shape, zero)


def strided(m: "Maker", value: Ref, size: Sequence[int], stride: Sequence[int], offset: int | None) -> Ref:
    """Make a view by strides; fitted: with two equal last strides a Transpose follows (holds on 9 of 9 cases)."""
    made = m.op("AsStrided", value, size, stride, offset or 0)
    if len(stride) > 1 and stride[-1] == stride[-2] != 1:
        return m.op("Transpose", made, m.swap_last(len(stride)))
    return made


def ranged(m: "Maker", start: Any, end: Any, step: Any, form: str) -> Ref:
    """Make the numbers of a range; the three overloads of arange have different types of their bounds."""
    kind = m.out.dtype
    if form == "typed":
        ends = [m.const(one, kind) for one in (start, end, step)]
        return m.op("Cast", m.op("Range", *ends), dst_type=kind)
    first = m.const(start, torch.int32) if form == "short" else start
    delta = m.const(step, torch.int32)
    return m.op("Cast", m.op("Range", first, end, delta), dst_type=kind)


# ------------------------------------------------------------------------------------------------------ random numbers
def drawn(m: "Maker", kind: str, shape: Ref | None, size: Any, dtype: torch.dtype | None = None) -> Ref:
    """Draw random numbers, of a shape that a node gives or of given sizes."""
    seed, offset = m.seeds
    wide = torch.uint64
    key = m.op("Unsqueeze", m.op("Cast", seed, dst_type=wide), axes=[0])
    counter = m.op("Cast", m.op("ConcatV2", 0, offset, 0, N=2), dst_type=wide)
    algorithm = m.op("Cast", 1, dst_type=torch.int32)
    return m.op(kind, size if shape is None else shape, key, counter, algorithm, dtype=dtype or m.out.dtype)


def uniform(m: "Maker", shape: Ref, low: float, high: float) -> Ref:
    """Draw random numbers between two bounds."""
    made = drawn(m, "StatelessRandomUniformV2", shape, None)
    if (low, high) == (0, 1):
        return made
    first, second = m.as_out(low), m.as_out(high)
    lower = m.op("Sub", m.op("Mul", made, first), first)
    return m.op("Sub", m.op("Mul", made, second), lower)


def dropped(m: "Maker", value: Ref, share: float) -> tuple[Ref, Ref]:
    """Apply dropout: make a bit mask, and set the elements that it does not keep to zero."""
    keep = m.const(1.0 - share, m.type_of(value))
    shape = m.op("Shape", value, dtype=torch.int32)
    seed, offset = m.seeds
    zero = m.const(0)
    counter = m.op("ConcatV2", 0, offset, 0, N=2)
    mask = m.op("StatelessDropOutGenMask", shape, keep, seed, zero, counter)
    return m.op("DropOutDoMask", value, mask, keep), mask


# ------------------------------------------------------------------------------------------------------- normalisation
def _image(m: "Maker", value: Ref) -> str:
    return "NCDHW" if m.rank(value) >= 5 else "NCHW"


def _raised(m: "Maker", value: Ref, shape: Ref) -> Ref:
    """Bring a tensor to 4 dimensions if it has fewer, to 5 if it has more."""
    rank = m.rank(value)
    if rank > 5:
        return _flattened(m, shape, value, keep=4)[0]
    return m.op("Unsqueeze", value, axes=list(range(rank, 4))) if rank < 4 else value


def _flattened(m: "Maker", shape: Ref, *values: Ref, keep: int) -> list[Ref]:
    """Merge the dimensions from `keep` on."""
    extents = [m.picked(shape, at) for at in range(keep)]
    pack = m.op("Pack", *extents, -1, N=keep + 1, axis=0)
    return [m.op("Reshape", one, pack, axis=0, num_axes=-1) for one in values]


def _lowered(m: "Maker", value: Ref, like: Ref, shape: Ref) -> Ref:
    """Bring a result back to the dimensions of a tensor."""
    rank = m.rank(like)
    if rank > 5:
        return m.op("Reshape", value, shape, axis=0, num_axes=-1, li="ND", lo="ND")
    return m.op("Squeeze", value, axis=list(range(3, rank - 1, -1))) if rank < 4 else value


def _per_channel(m: "Maker", shape: Ref, number: float, like: Ref) -> Ref:
    return m.op("Fill", m.picked(shape, 1), m.op("Cast", number, dst_type=m.type_of(like)))


def batch_norm(
    m: "Maker", value: Ref, weight: Any, bias: Any, mean: Ref, variance: Ref, momentum: float, eps: float
) -> list[Ref]:
    """Normalise a batch in training; the running statistics are results, too."""
    shape = m.op("Shape", value, dtype=torch.int32)
    scale = _per_channel(m, shape, 1.0, value) if weight is None else weight
    offset = _per_channel(m, shape, 0.0, value) if bias is None else bias
    x = _raised(m, value, shape) if m.rank(value) > 5 else value
    moved = m.op("TensorMove", mean), m.op("TensorMove", variance)
    x = _raised(m, value, shape) if m.rank(value) < 4 else x
    layout = f"0:{_image(m, value)}"
    attrs: dict[str, Any] = {"epsilon": eps, "is_training": True, "momentum": momentum}
    made = m.op("BatchNormV3", x, scale, offset, *moved, li=layout, lo=layout, **attrs)
    return [_lowered(m, made, value, shape), made[1], made[2], made[3], made[4]]


def batch_norm_infer(
    m: "Maker", value: Ref, weight: Any, bias: Any, mean: Ref, variance: Ref, eps: float
) -> tuple[Ref, Ref, Ref]:
    """Normalise a batch by the running statistics; the statistics of the batch are empty."""
    rank = m.rank(value)
    shape = m.op("Shape", value, dtype=torch.int32)
    scale = _per_channel(m, shape, 1.0, value) if weight is None else weight
    offset = _per_channel(m, shape, 0.0, value) if bias is None else bias
    empty = m.op("Fill", [0], m.op("Cast", 0.0, dst_type=m.type_of(value)))
    if rank > 4:
        (flat,) = _flattened(m, shape, value, keep=3)
        made = m.op("BNInfer", flat, scale, offset, mean, variance, epsilon=eps, li="NCHW", lo="NCHW")
        return m.op("Reshape", made, shape, axis=0, num_axes=-1, li="ND", lo="ND"), empty, empty
    x = _raised(m, value, shape)
    made = m.op("BNInfer", x, scale, offset, mean, variance, epsilon=eps, li="NCHW", lo="NCHW")
    return _lowered(m, made, value, shape), empty, empty


def batch_norm_backward(
    m: "Maker",
    grad: Ref,
    value: Ref,
    weight: Any,
    running_mean: Any,
    running_variance: Any,
    mean: Any,
    inverse: Any,
    train: bool,
    eps: float,
    wanted: Sequence[bool],
) -> tuple[Ref, Ref | None, Ref | None]:
    """Compute the gradient of batch normalisation, by the nodes that GE's library has for its parts."""
    shape = m.op("Shape", value, dtype=torch.int32)
    scale = _per_channel(m, shape, 1.0, value) if weight is None else weight
    layout = _image(m, value)
    kind = "BN3DTrainingUpdateGrad" if layout == "NCDHW" else "BNTrainingUpdateGrad"
    if m.rank(value) > 5:
        dy, x = _flattened(m, shape, grad, value, keep=4)
    else:
        x, dy = _raised(m, value, shape), _raised(m, grad, shape)
    statistics = (mean, inverse) if train else (running_mean, running_variance)
    update = m.op(kind, dy, x, *statistics, epsilon=eps, li=layout, lo=layout)
    if train:
        operands = (dy, x, update, update[1], scale, *statistics)
        made = m.op("BNTrainingReduceGrad", *operands, epsilon=eps, li=layout, lo=layout)
    else:
        made = m.op("BNInferGrad", dy, scale, running_variance, epsilon=eps, li=layout, lo=layout)
    return _lowered(m, made, value, shape), update if wanted[1] else None, update[1] if wanted[2] else None


def batch_norm_backward_elemt(
    m: "Maker",
    grad: Ref,
    value: Ref,
    mean: Ref,
    inverse: Ref,
    weight: Ref,
    sum_grad: Ref,
    sum_product: Ref,
    count: Ref,
) -> Ref:
    """Compute the gradient of batch normalisation from sums over all ranks."""
    m.four_dims(grad)
    total = m.op("ReduceSum", count, list(range(m.rank(count))), keep_dims=False)
    means = [m.op("RealDiv", one, total) for one in (sum_grad, sum_product)]
    shape = m.op("Shape", value, dtype=torch.int32)
    wide = []
    for one in (mean, inverse, weight, *means):
        raised = m.op("Unsqueeze", m.op("Unsqueeze", one, axes=[0]), axes=[2, 3])
        wide.append(m.op("BroadcastTo", raised, shape))
    return m.op("SyncBatchNormBackwardElemt", grad, value, *wide, li="NCHW", lo="NCHW")


def group_norm_backward(
    m: "Maker",
    grad: Ref,
    value: Ref,
    mean: Ref,
    rstd: Ref,
    weight: Any,
    n: int,
    c: int,
    area: int,
    group: int,
    wanted: Sequence[bool],
) -> tuple[Ref, Ref | None, Ref | None]:
    """Compute the gradient of group normalisation, by the one of batch normalisation over groups."""

    def pack(*items: Any) -> Ref:
        return m.op("Pack", *items, N=len(items), axis=0)

    def shaped(what: Ref, shape: Ref) -> Ref:
        return m.op("Reshape", what, shape, axis=0, num_axes=-1)

    dy, x = grad, value
    if m.rank(value) != 3:
        flat = pack(n, c, area)
        dy, x = shaped(grad, flat), shaped(value, flat)
    slope = dy if weight is None else m.op("Mul", dy, shaped(weight, pack(1, c, 1)))
    rows = m.op("Mul", n, group)
    wide, narrow = pack(1, rows, -1 if n else 1), pack(rows)
    x1, dy1, mean1 = shaped(x, wide), shaped(slope, wide), shaped(mean, narrow)
    spread = m.op("Sub", m.op("Reciprocal", m.op("Mul", rstd, rstd)), 1e-05)
    spread = shaped(spread, narrow)
    ones = m.op("Fill", narrow, m.const(1, m.type_of(value)))
    x2, dy2 = m.op("Unsqueeze", x1, axes=[3]), m.op("Unsqueeze", dy1, axes=[3])
    layout: dict[str, Any] = {"epsilon": 1e-05, "li": "NCHW", "lo": "NCHW"}
    update = m.op("BNTrainingUpdateGrad", dy2, x2, mean1, spread, **layout)
    made = m.op("BNTrainingReduceGrad", dy2, x2, update, update[1], ones, mean1, spread, **layout)
    dx = shaped(m.op("Squeeze", made, axis=[3]), m.op("Shape", value, dtype=torch.int32))
    if 0 in m.shape_of(value):
        zeros = [
            m.op("Fill", [c], m.op("Cast", 0.0, dst_type=m.type_of(one))) if is_wanted else None
            for one, is_wanted in zip((mean, rstd), wanted[1:], strict=True)
        ]
        return dx, zeros[0], zeros[1]
    scale = None
    if wanted[1]:
        if m.rank(mean) == 1:
            rows = pack(n, group)
            mean, rstd = shaped(mean, rows), shaped(rstd, rows)
        means, inverses = m.op("Unsqueeze", mean, axes=[2]), m.op("Unsqueeze", rstd, axes=[2])
        per_group, per_channel = pack(n, group, m.op("RealDiv", c, group)), pack(n, c, 1)
        means = shaped(m.op("BroadcastTo", means, per_group), per_channel)
        inverses = shaped(m.op("BroadcastTo", inverses, per_group), per_channel)
        normal = m.op("Mul", m.op("Sub", x, means), inverses)
        scale = m.op("ReduceSum", m.op("Mul", dy, normal), [0, 2], keep_dims=False)
    return dx, scale, m.op("ReduceSum", dy, [0, 2], keep_dims=False) if wanted[2] else None


# ------------------------------------------------------------------------------------------------------------- pooling
def pooled(m: "Maker", kernel: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool) -> dict[str, Any]:
    """Return the attributes of a pooling that also returns indices."""
    return {
        "ksize": [1, *m.pair(kernel), 1],
        "strides": [1, *m.pair(stride or kernel), 1],
        "pads": [1, *m.pair(padding), 1],
        "dtype": torch.int32,
        "dilation": [1, *m.pair(dilation), 1],
        "ceil_mode": ceil_mode,
    }


def max_pool(m: "Maker", value: Ref, kernel: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool) -> Ref:
    """Take the largest elements of windows, and their indices."""
    attrs = pooled(m, kernel, stride, padding, dilation, ceil_mode)
    return m.op("MaxPoolWithArgmaxV1", value, **attrs, li="NCHW", lo="NCHW")


def bagged(
    m: "Maker", mode: int, scaled: bool, sparse: bool, include_last_offset: bool, padding_idx: int
) -> dict[str, Any]:
    """Return the attributes of an EmbeddingBag node."""
    return {
        "mode": ("sum", "mean", "max")[mode],
        "scale_grad_by_freq": scaled,
        "sparse": sparse,
        "include_last_offset": include_last_offset,
        "padding_idx": padding_idx,
    }


# -------------------------------------------------------------------------------------------------------- quantisation
def quantized(m: "Maker", value: Ref, scales: Ref, offsets: Ref | None, dtype: int, axis: int, divides: bool) -> Ref:
    """Quantise a tensor to integers: divide by scales along an axis, or multiply by them."""
    if not divides:
        attrs = {"axis": min(axis, -1), "dst_type": m.out.dtype, "round_mode": "round", "sqrt_mode": False}
        return m.op("AscendQuantV2", value, scales, offsets, **attrs)
    rank = m.rank(value)
    axis = axis + rank if axis < 0 else axis
    others = m.other_dims(rank, axis)
    wide = None if offsets is None else m.op("Unsqueeze", offsets, axes=others)
    kind = {torch.int8: "torch.qint8", torch.uint8: "torch.quint8", torch.int32: "torch.qint32"}[m.out.dtype]
    return m.op("Quantize", value, m.op("Unsqueeze", scales, axes=others), wide, axis=axis, dtype=kind)


# ------------------------------------------------------------------------------------------------------------- complex
def fourier(m: "Maker", value: Ref, dims: Sequence[int], normalization: int) -> Ref:
    """Apply a complex Fourier transform to one or two dimensions, which a Permute brings to the end."""
    number, single = torch.complex64, torch.float32
    rank = m.rank(value)
    if any(dim < 0 for dim in dims):
        text = f"torch.ops.aten._fft_c2c.default the dim {list(dims)} is out of range of {rank}."
        raise Refused(AssertionError(text))
    if len(dims) > 2:
        text = "torch.ops.aten._fft_c2c.default ge_converter is not implemented, when len(dim)>2"
        raise Refused(NotImplementedError(text))
    if len(dims) == 1:
        order = back = m.swapped(rank, -1, dims[0])
    else:
        order = [at for at in range(rank) if at not in dims] + sorted(dims)
        back = [order.index(at) for at in range(rank)]

    def turned(what: Ref, order: Sequence[int]) -> tuple[Ref, Ref]:
        pair = m.op("Pack", m.op("Real", what, Tout=single), m.op("Imag", what, Tout=single), N=2, axis=-1)
        last = m.op("Permute", pair, order=order)
        real, imaginary = m.outputs("SplitV", 2, last, [1, -1], -1, num_split=2)
        parts = [m.op("Squeeze", one, axis=[-1]) for one in (real, imaginary)]
        casts = [m.op("Cast", one, dst_type=single) for one in parts]
        return casts[0], casts[1]

    made = m.op("FFT" if len(dims) == 1 else "FFT2D", m.op("Complex", *turned(value, order), Tout=number))
    shape = m.op("Shape", made, dtype=torch.int32)
    count: Any = 1
    for at in range(len(dims)):
        count = m.op("Mul", m.picked(shape, rank - 1 - at), count)
    count = m.op("Cast", count, dst_type=number)
    if normalization == 1:
        made = m.op("RealDiv", made, m.op("Sqrt", count))
    elif normalization == 2:
        made = m.op("RealDiv", made, count)
    return m.op("Complex", *turned(made, back), Tout=number)
