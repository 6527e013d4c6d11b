"""Words of the rules that make several nodes, by the operator that they stand for. [spec aten 9.4]"""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch

from dumpsim.frontends.torchair._ge import Ref
from dumpsim.frontends.torchair._refusals import Refused

if TYPE_CHECKING:
    from dumpsim.frontends.torchair._maker import Maker

_INT32_MAX = 2**31 - 1
_HALVES = (torch.float16, torch.bfloat16)


# ----------------------------------------------------------------------------------------------------------- pointwise
def muls(m: "Maker", left: Any, right: Any) -> Ref:
    """A product; the type of what Mul gives is not known, so that a Cast follows."""
    kind = m.out.dtype
    if isinstance(left, Ref) and isinstance(right, (int, float)) and m.type_of(left) in _HALVES:
        return m.op("Cast", m.op("Muls", left, value=float(right)), dst_type=kind)
    inner = torch.uint8 if kind == torch.bool else kind
    return m.op("Cast", m.op("Mul", m.as_type(left, inner), m.as_type(right, inner)), dst_type=kind)


def minimum(m: "Maker", left: Ref, right: Ref) -> Ref:
    """The smaller numbers; types without a kernel go through int32, booleans through a product."""
    kind = m.out.dtype
    if kind == torch.bool:
        return m.op("Mul", left, right)
    if kind in (torch.uint8, torch.int16):
        wide = [m.as_type(one, torch.int32) for one in (left, right)]
        return m.op("Cast", m.op("Minimum", *wide), dst_type=kind)
    return m.op("Minimum", m.as_out(left), m.as_out(right))


def rounded(m: "Maker", values: Sequence[Ref], mode: int) -> list[Ref]:
    """Tensors of a list rounded: floor 2, ceil 3, round 4, trunc 5, what trunc takes away 7; whole numbers stay."""
    fill = m.op("Fill", 1, m.op("Cast", mode, dst_type=torch.int8))
    floats = [one for one in values if m.type_of(one).is_floating_point]
    made = iter(m.outputs("ForeachRoundOffNumber", max(len(floats), 1), *floats, fill) if floats or mode == 7 else ())
    return [next(made) if one in floats else m.op("ZerosLike", one) if mode == 7 else one for one in values]


# ---------------------------------------------------------------------------------------------------------- reductions
def best(m: "Maker", value: Ref, dim: int | None, keepdim: bool, plain: str, kept: str) -> Ref:
    """Indices of the largest or smallest numbers."""
    if dim is None:
        return m.op(plain, m.op("Reshape", value, [-1], axis=0, num_axes=-1), 0, dtype=torch.int64)
    if not keepdim:
        return m.op(plain, value, m.const(dim), dtype=torch.int64)
    found = m.as_type(value, torch.float32)
    return m.op("Cast", m.op(kept, found, dimension=dim, keep_dims=True), dst_type=torch.int64)


def deviation(m: "Maker", value: Ref, dim: Any, correction: Any, keepdim: bool) -> Ref:
    """Standard deviations, by their means; of no numbers they are NaN."""
    dims = dim or []
    if isinstance(dims, int):
        raise Refused(TypeError("object of type 'int' has no len()"))
    extents = m.shape_of(value)
    shape = m.op("Shape", value, dtype=torch.int32)
    found = [m.picked(shape, at) for at in range(len(extents))]
    kept: list[Any] = [one for at, one in enumerate(found) if at not in dims]
    if keepdim:
        kept = [m.const(1) if at in dims else one for at, one in enumerate(found)]
    pack = m.op("Pack", *kept, N=len(kept), axis=0) if kept else None
    number = 1 if correction is None else correction
    if dims and math.prod(extents[at] for at in dims) <= number:
        return m.op("Fill", pack, m.op("Cast", float("nan"), dst_type=m.out.dtype))
    mean = m.op("ReduceMean", value, m.const(dims, torch.int64), keep_dims=keepdim, noop_with_empty_axes=True)
    for at in sorted(dims) if len(dims) < len(extents) and not keepdim else ():
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
    """A sort; Sort itself knows the last dimension only."""
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


# --------------------------------------------------------------------------------------------------- shapes and slices
def permuted(m: "Maker", value: Ref, dims: Sequence[int]) -> Ref:
    """A permutation; where only dimensions of extent 1 move, Squeeze and Unsqueeze."""
    extents = m.shape_of(value)
    order = [dim % len(extents) for dim in dims]
    wide = [dim for dim in order if extents[dim] != 1]
    if 1 in extents and wide == sorted(wide):
        ones = [at for at, dim in enumerate(order) if extents[dim] == 1]
        return m.op("Unsqueeze", m.op("Squeeze", value, axis=[]), axes=ones)
    return m.op("Transpose", value, list(dims))


def sliced(m: "Maker", value: Ref, dim: int, start: Any, end: Any, step: Any) -> Ref:
    """A slice; the whole tensor is itself."""
    extent = m.shape_of(value)[dim]
    begin = 0 if start is None else start
    top = _top(end)
    numbers = isinstance(begin, int) and isinstance(top, int) and isinstance(step, int)
    if numbers and begin == 0 and step == 1 and (top == _INT32_MAX or (isinstance(extent, int) and top >= extent)):
        return value
    axis = m.const(dim)
    return _slice(m, value, begin, top, axis, step)


def _slice(m: "Maker", value: Ref, begin: Any, end: Any, axis: Any, step: Any) -> Ref:
    masks = ("begin_mask", "ellipsis_mask", "end_mask", "new_axis_mask", "shrink_axis_mask")
    attrs: dict[str, Any] = dict.fromkeys(masks, 0)
    return m.op("StridedSliceV2", value, begin, end, axis, step, **attrs)


def _top(end: Any) -> Any:
    return _INT32_MAX if end is None or (isinstance(end, int) and end > _INT32_MAX) else end


def spliced(m: "Maker", value: Ref, part: Ref, dim: int, start: Any, end: Any, step: int) -> Ref:
    """A tensor with a slice of it taken from another: what is before, the part, what is behind."""
    extent = m.shape_of(value)[dim]
    begin = 0 if start is None else start
    if begin == 0 and _top(end) == _INT32_MAX and step == 1:
        return part
    if isinstance(begin, int) and begin < 0:
        begin += extent
    top = _top(end)
    if isinstance(top, int) and top < 0:
        top += extent
    before = _slice(m, value, 0, begin, dim, 1)
    behind = _slice(m, value, top, _INT32_MAX, dim, 1)
    return m.op("ConcatV2", before, part, behind, dim, N=3)


def strided(m: "Maker", value: Ref, size: Sequence[int], stride: Sequence[int], offset: int | None) -> Ref:
    """A view by strides; fitted: with two equal last strides a Transpose follows (holds on 9 of 9 cases)."""
    made = m.op("AsStrided", value, size, stride, offset or 0)
    if len(stride) > 1 and stride[-1] == stride[-2] != 1:
        return m.op("Transpose", made, m.swap_last(len(stride)))
    return made


def ranged(m: "Maker", start: Any, end: Any, step: Any, form: str) -> Ref:
    """Numbers of a range; the three overloads give their ends different types."""
    kind = m.out.dtype
    if form == "typed":
        ends = [m.const(one, kind) for one in (start, end, step)]
        return m.op("Cast", m.op("Range", *ends), dst_type=kind)
    first = m.const(start, torch.int32) if form == "short" else start
    delta = m.const(step, torch.int32)
    return m.op("Cast", m.op("Range", first, end, delta), dst_type=kind)


# ------------------------------------------------------------------------------------------------------ random numbers
def drawn(m: "Maker", kind: str, shape: Ref | None, size: Any, dtype: torch.dtype | None = None) -> Ref:
    """Random numbers of a shape, or of sizes."""
    seed, offset = m.seeds
    wide = torch.uint64
    key = m.op("Unsqueeze", m.op("Cast", seed, dst_type=wide), axes=[0])
    counter = m.op("Cast", m.op("ConcatV2", 0, offset, 0, N=2), dst_type=wide)
    algorithm = m.op("Cast", 1, dst_type=torch.int32)
    return m.op(kind, size if shape is None else shape, key, counter, algorithm, dtype=dtype or m.out.dtype)


def uniform(m: "Maker", shape: Ref, low: float, high: float) -> Ref:
    """Random numbers between two ends."""
    made = drawn(m, "StatelessRandomUniformV2", shape, None)
    if (low, high) == (0, 1):
        return made
    first, second = m.as_out(low), m.as_out(high)
    lower = m.op("Sub", m.op("Mul", made, first), first)
    return m.op("Sub", m.op("Mul", made, second), lower)


def dropped(m: "Maker", value: Ref, share: float, zero: Ref, shape: Ref) -> tuple[Ref, Ref]:
    """Dropout: a mask of bits, and the numbers that it keeps."""
    seed, offset = m.seeds
    keep = m.as_out(1.0 - share)
    counter = m.op("ConcatV2", 0, offset, 0, N=2)
    mask = m.op("StatelessDropOutGenMask", shape, keep, seed, zero, counter)
    return m.op("DropOutDoMask", value, mask, keep), mask


# ------------------------------------------------------------------------------------------------------- normalisation
def _image(m: "Maker", value: Ref) -> str:
    return "NCDHW" if m.rank(value) == 5 else "NCHW"


def _raised(m: "Maker", value: Ref) -> Ref:
    """A tensor of 2 or 3 dimensions with 4."""
    missing = {2: [2, 3], 3: [3]}.get(m.rank(value))
    return value if missing is None else m.op("Unsqueeze", value, axes=missing)


def _lowered(m: "Maker", value: Ref, like: Ref) -> Ref:
    added = {2: [3, 2], 3: [3]}.get(m.rank(like))
    return value if added is None else m.op("Squeeze", value, axis=added)


def _per_channel(m: "Maker", shape: Ref, number: float) -> Ref:
    return m.op("Fill", m.picked(shape, 1), m.op("Cast", number, dst_type=torch.float32))


def batch_norm(
    m: "Maker", value: Ref, weight: Any, bias: Any, mean: Ref, variance: Ref, momentum: float, eps: float
) -> list[Ref]:
    """Batch normalisation in training; the running statistics are results."""
    shape = m.op("Shape", value, dtype=torch.int32)
    scale = _per_channel(m, shape, 1.0) if weight is None else weight
    offset = _per_channel(m, shape, 0.0) if bias is None else bias
    moved = m.op("TensorMove", mean), m.op("TensorMove", variance)
    layout = f"0:{_image(m, value)}"
    attrs: dict[str, Any] = {"epsilon": eps, "is_training": True, "momentum": momentum}
    made = m.op("BatchNormV3", _raised(m, value), scale, offset, *moved, li=layout, lo=layout, **attrs)
    return [_lowered(m, made, value), made[1], made[2], made[3], made[4]] if m.rank(value) < 4 else m.parts(made)


def batch_norm_infer(
    m: "Maker", value: Ref, weight: Any, bias: Any, mean: Ref, variance: Ref, eps: float
) -> tuple[Ref, Ref, Ref]:
    """Batch normalisation by running statistics; those of the batch are empty."""
    rank = m.rank(value)
    shape = m.op("Shape", value, dtype=torch.int32)
    scale = _per_channel(m, shape, 1.0) if weight is None else weight
    offset = _per_channel(m, shape, 0.0) if bias is None else bias
    empty = m.op("Fill", [0], m.op("Cast", 0.0, dst_type=torch.float32))
    if rank > 4:
        extents = [m.picked(shape, at) for at in range(3)]
        flat = m.op("Reshape", value, m.op("Pack", *extents, -1, N=4, axis=0), axis=0, num_axes=-1)
        made = m.op("BNInfer", flat, scale, offset, mean, variance, epsilon=eps, li="NCHW", lo="NCHW")
        return m.op("Reshape", made, shape, axis=0, num_axes=-1, li="ND", lo="ND"), empty, empty
    made = m.op("BNInfer", _raised(m, value), scale, offset, mean, variance, epsilon=eps, li="NCHW", lo="NCHW")
    return _lowered(m, made, value), empty, empty


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
) -> tuple[Ref, Ref, Ref]:
    """The gradient of batch normalisation, in the parts that GE's library has."""
    shape = m.op("Shape", value, dtype=torch.int32)
    scale = _per_channel(m, shape, 1.0) if weight is None else weight
    layout = _image(m, value)
    kind = "BN3DTrainingUpdateGrad" if layout == "NCDHW" else "BNTrainingUpdateGrad"
    x, dy = _raised(m, value), _raised(m, grad)
    statistics = (mean, inverse) if train else (running_mean, running_variance)
    update = m.op(kind, dy, x, *statistics, epsilon=eps, li=layout, lo=layout)
    if train:
        operands = (dy, x, update, update[1], scale, *statistics)
        made = m.op("BNTrainingReduceGrad", *operands, epsilon=eps, li=layout, lo=layout)
    else:
        made = m.op("BNInferGrad", dy, scale, running_variance, epsilon=eps, li=layout, lo=layout)
    return _lowered(m, made, value), update, update[1]


def group_norm_backward(
    m: "Maker", grad: Ref, value: Ref, mean: Ref, rstd: Ref, weight: Ref, n: int, c: int, area: int, group: int
) -> tuple[Ref, Ref, Ref]:
    """The gradient of group normalisation, by that of batch normalisation over groups."""

    def pack(*items: Any) -> Ref:
        return m.op("Pack", *items, N=len(items), axis=0)

    def shaped(what: Ref, shape: Ref) -> Ref:
        return m.op("Reshape", what, shape, axis=0, num_axes=-1)

    dy, x = grad, value
    if m.rank(value) != 3:
        flat = pack(n, c, area)
        dy, x = shaped(grad, flat), shaped(value, flat)
    slope = m.op("Mul", dy, shaped(weight, pack(1, c, 1)))
    rows = m.op("Mul", n, group)
    wide, narrow = pack(1, rows, -1 if n else 1), pack(rows)
    x1, dy1, mean1 = shaped(x, wide), shaped(slope, wide), shaped(mean, narrow)
    spread = m.op("Sub", m.op("Reciprocal", m.op("Mul", rstd, rstd)), 1e-05)
    spread = shaped(spread, narrow)
    ones = m.op("Fill", narrow, 1.0)
    x2, dy2 = m.op("Unsqueeze", x1, axes=[3]), m.op("Unsqueeze", dy1, axes=[3])
    layout: dict[str, Any] = {"epsilon": 1e-05, "li": "NCHW", "lo": "NCHW"}
    update = m.op("BNTrainingUpdateGrad", dy2, x2, mean1, spread, **layout)
    made = m.op("BNTrainingReduceGrad", dy2, x2, update, update[1], ones, mean1, spread, **layout)
    dx = shaped(m.op("Squeeze", made, axis=[3]), m.op("Shape", value, dtype=torch.int32))
    if not n:
        zeros = [m.op("Fill", [c], m.op("Cast", 0.0, dst_type=m.type_of(weight))) for _ in range(2)]
        return dx, zeros[0], zeros[1]
    means, inverses = m.op("Unsqueeze", mean, axes=[2]), m.op("Unsqueeze", rstd, axes=[2])
    per_group, per_channel = pack(n, group, m.op("RealDiv", c, group)), pack(n, c, 1)
    means = shaped(m.op("BroadcastTo", means, per_group), per_channel)
    inverses = shaped(m.op("BroadcastTo", inverses, per_group), per_channel)
    normal = m.op("Mul", m.op("Sub", x, means), inverses)
    dscale = m.op("ReduceSum", m.op("Mul", dy, normal), [0, 2], keep_dims=False)
    return dx, dscale, m.op("ReduceSum", dy, [0, 2], keep_dims=False)


# ------------------------------------------------------------------------------------------------- convolution, pooling
def convolution(
    m: "Maker",
    value: Ref,
    weight: Ref,
    bias: Any,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
) -> Ref:
    """A convolution, over one dimension as over two."""
    if m.rank(value) == 3:
        x, w = m.op("Unsqueeze", value, axes=[2]), m.op("Unsqueeze", weight, axes=[2])
        made = _convolve(m, x, w, bias, [1, *stride], [0, *padding], [1, *dilation], groups)
        return m.op("Squeeze", made, axis=[2])
    if not transposed:
        return _convolve(m, value, weight, bias, stride, padding, dilation, groups)
    flat = len(stride) == 2
    size = _transposed_size(m, value, weight, stride, padding, dilation, output_padding, groups) if flat else None
    if size is None:
        size = m.op("Pack", *[m.const(one, torch.int32) for one in m.out.shape], N=len(m.out.shape), axis=0)
    layout = "NCHW" if flat else "NCDHW"
    inputs = [f"1:{layout}", f"2:{layout}"]
    return m.op(
        "Conv2DTranspose" if flat else "Conv3DTranspose",
        size,
        value,
        weight,
        bias,
        strides=[1, 1, *stride],
        pads=m.twice(padding),
        dilations=[1, 1, *dilation],
        groups=groups,
        data_format=layout,
        output_padding=[0, 0, *output_padding],
        offset_x=0,
        li=",".join(["0:ND", "3:ND", *inputs] if bias is not None else ["0:ND", *inputs]),
        lo=f"0:{layout}",
    )


def _convolve(
    m: "Maker",
    value: Ref,
    weight: Ref,
    bias: Any,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    groups: int,
) -> Ref:
    layout = "NCHW" if len(stride) == 2 else "NCDHW"
    return m.op(
        "Conv2D" if layout == "NCHW" else "Conv3D",
        value,
        weight,
        bias,
        strides=[1, 1, *stride],
        pads=m.twice(padding),
        dilations=[1, 1, *dilation],
        groups=groups,
        data_format=layout,
        offset_x=0,
        li=layout,
        lo=layout,
    )


def _transposed_size(
    m: "Maker",
    value: Ref,
    weight: Ref,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    output_padding: Sequence[int],
    groups: int,
) -> Ref:
    """The shape of a transposed convolution's result, found by nodes."""
    shape = m.op("Shape", value, dtype=torch.int32)
    batch, *extents = (m.picked(shape, at) for at in (0, 2, 3))
    kernel = m.op("Shape", weight, dtype=torch.int32)
    channels = m.op("Mul", m.picked(kernel, 1), groups)
    sizes = [m.picked(kernel, at) for at in (2, 3)]
    found = [batch, channels]
    for at, extent in enumerate(extents):
        steps = m.op("Mul", m.op("Sub", extent, 1), stride[at])
        reach = m.op("Mul", dilation[at], m.op("Sub", sizes[at], 1))
        found.append(m.op("Add", m.op("Add", steps, reach), output_padding[at] + 1 - 2 * padding[at]))
    return m.op("Pack", *[m.op("Cast", one, dst_type=torch.int32) for one in found], N=4, axis=0)


def convolution_backward(
    m: "Maker",
    grad: Ref,
    value: Ref,
    weight: Ref,
    bias_sizes: Any,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    groups: int,
    mask: Sequence[bool],
) -> tuple[Any, Any, Any]:
    """The gradients of a convolution by its input, its weight and its bias."""
    line = m.rank(value) == 3
    x, w, dy = (m.op("Unsqueeze", one, axes=[2]) for one in (value, weight, grad)) if line else (value, weight, grad)
    rank = 4 if line else m.rank(value)
    layout = "NCHW" if rank == 4 else "NCDHW"
    suffix = "2D" if rank == 4 else "3D"
    attrs: dict[str, Any] = {
        "strides": [1, 1, *([1] if line else []), *stride],
        "pads": m.twice([*([0] if line else []), *padding]),
        "dilations": [1, 1, *([1] if line else []), *dilation],
        "groups": groups,
        "data_format": layout,
    }
    made: list[Any] = [None, None, None]
    if mask[0]:
        size = m.op("Shape", x, dtype=torch.int32) if line else m.const(m.shape_of(value))
        formats = f"0:ND,1:{layout},2:{layout}"
        made[0] = m.op(f"Conv{suffix}BackpropInput", size, w, dy, **attrs, li=formats, lo=layout)
    if mask[1]:
        formats = f"1:ND,0:{layout},2:{layout}"
        size = m.op("Shape", w, dtype=torch.int32)
        made[1] = m.op(f"Conv{suffix}BackpropFilter", x, size, dy, **attrs, li=formats, lo=layout)
    if mask[2]:
        flat = m.op("FlattenV2", dy, axis=2, end_axis=-1)
        made[2] = m.op("ReduceSum", flat, [0, 2], keep_dims=False)
    if line:
        made[:2] = [None if one is None else m.op("Squeeze", one, axis=[2]) for one in made[:2]]
    return made[0], made[1], made[2]


def pooled(m: "Maker", kernel: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool) -> dict[str, Any]:
    """The attributes of a pooling with indices."""
    return {
        "ksize": [1, *m.pair(kernel), 1],
        "strides": [1, *m.pair(stride or kernel), 1],
        "pads": [1, *m.pair(padding), 1],
        "dtype": torch.int32,
        "dilation": [1, *m.pair(dilation), 1],
        "ceil_mode": ceil_mode,
    }


def max_pool(m: "Maker", value: Ref, kernel: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool) -> Ref:
    """The largest numbers of windows, and where they are."""
    attrs = pooled(m, kernel, stride, padding, dilation, ceil_mode)
    return m.op("MaxPoolWithArgmaxV1", value, **attrs, li="NCHW", lo="NCHW")


def bagged(
    m: "Maker", mode: int, scaled: bool, sparse: bool, include_last_offset: bool, padding_idx: int
) -> dict[str, Any]:
    """The attributes of an embedding bag."""
    return {
        "mode": ("sum", "mean", "max")[mode],
        "scale_grad_by_freq": scaled,
        "sparse": sparse,
        "include_last_offset": include_last_offset,
        "padding_idx": padding_idx,
    }


# ------------------------------------------------------------------------------------------------------------- complex
def fourier(m: "Maker", value: Ref, dims: Sequence[int]) -> Ref:
    """A complex Fourier transformation, without a scale."""
    number, single = torch.complex64, torch.float32

    def turned(what: Ref) -> tuple[Ref, Ref]:
        pair = m.op("Pack", m.op("Real", what, Tout=single), m.op("Imag", what, Tout=single), N=2, axis=-1)
        order = list(range(m.rank(value)))
        last = m.op("Permute", pair, order=order)
        real, imaginary = m.outputs("SplitV", 2, last, [1, -1], -1, num_split=2)
        parts = [m.op("Squeeze", one, axis=[-1]) for one in (real, imaginary)]
        casts = [m.op("Cast", one, dst_type=single) for one in parts]
        return casts[0], casts[1]

    made = m.op("FFT", m.op("Complex", *turned(value), Tout=number))
    extent = m.picked(m.op("Shape", made, dtype=torch.int32), dims[0])
    m.op("Cast", m.op("Mul", extent, 1), dst_type=number)
    return m.op("Complex", *turned(made), Tout=number)
