"""Functions for the converters' rules that make convolutions and their gradients. [spec aten 9.4]"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch

from dumpsim.frontends.torchair._ge import Ref

if TYPE_CHECKING:
    from dumpsim.frontends.torchair._maker import Maker

__all__ = ["convolution", "convolution_backward"]


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
    """Convolve; a convolution over one dimension is made as one over two."""
    kind = m.out.dtype
    bias = None if bias is None else m.as_type(bias, kind)
    value, weight = m.as_type(value, kind), m.as_type(weight, kind)
    line = m.rank(value) == 3
    if line:
        value, weight = m.op("Unsqueeze", value, axes=[2]), m.op("Unsqueeze", weight, axes=[2])
        stride, padding, dilation, output_padding = [1, *stride], [0, *padding], [1, *dilation], [0, *output_padding]
    if transposed:
        made = _spread(m, value, weight, bias, stride, padding, dilation, output_padding, groups)
    else:
        made = _convolve(m, value, weight, bias, stride, padding, dilation, groups)
    return m.op("Squeeze", made, axis=[2]) if line else made


def _spread(
    m: "Maker",
    value: Ref,
    weight: Ref,
    bias: Any,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    output_padding: Sequence[int],
    groups: int,
) -> Ref:
    """Make a transposed convolution."""
    flat = len(stride) == 2
    size = _transposed_size(m, value, weight, stride, padding, dilation, output_padding, groups) if flat else None
    if size is None:
        size = m.op("Pack", *[m.const(one, torch.int32) for one in m.out.shape], N=len(m.out.shape), axis=0)
    layout = _layout(stride)
    inputs = [f"1:{layout}", f"2:{layout}"]
    return m.op(
        "Conv2DTranspose" if flat else "Conv3DTranspose",
        size,
        value,
        weight,
        bias,
        **_attributes(m, stride, padding, dilation, groups),
        output_padding=[0, 0, *output_padding],
        offset_x=0,
        li=",".join(["0:ND", "3:ND", *inputs] if bias is not None else ["0:ND", *inputs]),
        lo=f"0:{layout}",
    )


def _layout(stride: Sequence[int]) -> str:
    return "NCHW" if len(stride) == 2 else "NCDHW"


def _attributes(
    m: "Maker", stride: Sequence[int], padding: Sequence[int], dilation: Sequence[int], groups: int
) -> dict[str, Any]:
    """Return the attributes that all convolutions have."""
    return {
        "strides": [1, 1, *stride],
        "pads": m.twice(padding),
        "dilations": [1, 1, *dilation],
        "groups": groups,
        "data_format": _layout(stride),
    }


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
    flat = len(stride) == 2
    layout = _layout(stride)
    return m.op(
        "Conv2D" if flat else "Conv3D",
        value,
        weight,
        bias,
        **_attributes(m, stride, padding, dilation, groups),
        offset_x=0,
        li=layout if flat or bias is None else f"2:ND,0:{layout},1:{layout}",
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
    """Make nodes that compute the shape of a transposed convolution's result."""
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
    """Compute the gradients of a convolution with respect to its input, weight and bias."""
    kind = m.type_of(value)
    dy, w, x = m.as_type(grad, kind), m.as_type(weight, kind), value
    line = m.rank(value) == 3
    known = None if line else m.shape_of(value)
    if line:
        x, w, dy = (m.op("Unsqueeze", one, axes=[2]) for one in (x, w, dy))
        stride, padding, dilation = [1, *stride], [0, *padding], [1, *dilation]
    flat = len(stride) == 2
    layout, suffix = _layout(stride), "2D" if flat else "3D"
    attrs = _attributes(m, stride, padding, dilation, groups)
    made: list[Any] = [None, None, None]
    if mask[0] and transposed:
        formats = f"0:{layout},1:{layout}"
        made[0] = m.op(f"Conv{suffix}", dy, w, None, **attrs, offset_x=0, li=formats, lo=layout)
    elif mask[0]:
        fixed = flat and known is not None and all(isinstance(one, int) for one in known)
        size: Any = known if fixed else m.op("Shape", x, dtype=torch.int32)
        formats = f"0:ND,1:{layout},2:{layout}"
        made[0] = m.op(f"Conv{suffix}BackpropInput", size, w, dy, **attrs, li=formats, lo=layout)
    if mask[1]:
        fixed = not flat and transposed and all(isinstance(one, int) for one in m.shape_of(weight))
        size = m.shape_of(weight) if fixed else m.op("Shape", w, dtype=torch.int32)
        source, other = (dy, x) if transposed else (x, dy)
        formats = f"1:ND,0:{layout},2:{layout}"
        made[1] = m.op(f"Conv{suffix}BackpropFilter", source, size, other, **attrs, li=formats, lo=layout)
        if kind != torch.float32:
            made[1] = m.op("Cast", made[1], dst_type=kind)
    if mask[2]:
        whole = m.op("FlattenV2", dy, axis=2 if flat else 3, end_axis=-1)
        made[2] = m.op("ReduceSum", whole, [0, 2] if flat else [0, 2, 3], keep_dims=False)
    if line:
        made[:2] = [None if one is None else m.op("Squeeze", one, axis=[2]) for one in made[:2]]
    return made[0], made[1], made[2]
