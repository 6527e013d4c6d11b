"""Convolution in three dimensions and its two gradients, as sums over the elements of the kernel."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np

from dumpsim.core.abstract import Abstract
from dumpsim.core.errors import ScriptValueError
from dumpsim.ops.gradient import shape_of
from dumpsim.ops.opdef import GradBuilder, OpDef
from dumpsim.ops.rules import ints_of, output, same_dtype, tensor_of, vector

__all__ = ["OPS"]

Array = np.ndarray[Any, Any]
Attrs = Mapping[str, Any]
Index = tuple[Any, ...]

_ATTRS: dict[str, Any] = {
    "out_channel": None,
    "kernel_size": (1, 1, 1),
    "mode": 1,
    "pad_mode": "valid",
    "pad": (0, 0, 0, 0, 0, 0),
    "strides": (1, 1, 1, 1, 1),
    "dilations": (1, 1, 1, 1, 1),
    "groups": 1,
    "format": "NCDHW",
}
_FORMATS = {"in": {0: "NDC1HWC0", 1: "FRACTAL_Z_3D"}, "out": {0: "NDC1HWC0"}}


def _geometry(sizes: Sequence[int], attrs: Attrs) -> list[tuple[int, int, int, int, int, int]]:
    """Return extent, kernel, stride, dilation, padding before and output size, for depth, height and width."""
    found = []
    for at, (extent, kernel) in enumerate(zip(sizes, attrs["kernel_size"], strict=True)):
        stride, dilation = attrs["strides"][at + 2], attrs["dilations"][at + 2]
        reach = (kernel - 1) * dilation + 1
        if attrs["pad_mode"] == "same":
            results = -(-extent // stride)
            before = max((results - 1) * stride + reach - extent, 0) // 2
        else:
            before, after = attrs["pad"][2 * at], attrs["pad"][2 * at + 1]
            results = (extent + before + after - reach) // stride + 1
        found.append((extent, kernel, stride, dilation, before, results))
    return found


def _pads(abstracts: Sequence[Abstract], out: Any, attrs: Attrs) -> tuple[int, ...]:
    """Return the padding before and after each dimension."""
    found: list[int] = []
    geometry = _geometry(tensor_of("Conv3D", abstracts[0], "x").shape[2:], attrs)
    for at, (extent, kernel, stride, dilation, before, results) in enumerate(geometry):
        reach = (results - 1) * stride + (kernel - 1) * dilation + 1
        same = attrs["pad_mode"] == "same"
        found += (before, max(reach - extent - before, 0) if same else attrs["pad"][2 * at + 1])
    return tuple(found)


def _places(
    geometry: Sequence[tuple[int, int, int, int, int, int]],
) -> Iterator[tuple[Index, Index, Index]]:
    """Yield three subscripts for each kernel element: the element, its input pixels, the outputs that they affect."""
    for place in product(*(range(kernel) for _, kernel, *_ in geometry)):
        pixels, results = [], []
        for at, (extent, _, stride, dilation, before, count) in zip(place, geometry, strict=True):
            shift = at * dilation - before
            first = max(0, -(shift // stride))
            last = min(count, (extent - 1 - shift) // stride + 1)
            if last <= first:
                break
            pixels.append(slice(first * stride + shift, (last - 1) * stride + shift + 1, stride))
            results.append(slice(first, last))
        else:
            yield (..., *place), (..., *pixels), (..., *results)


def _grouped(x: Array, groups: int) -> Array:
    return x.reshape(x.shape[0], groups, -1, *x.shape[2:])


def _infer(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
    x, w = tensor_of("Conv3D", abstracts[0], "x"), tensor_of("Conv3D", abstracts[1], "w")
    kind = same_dtype("Conv3D", {"x": x, "w": w})
    wanted = (attrs["out_channel"], x.shape[1] // attrs["groups"] if len(x.shape) == 5 else -1, *attrs["kernel_size"])
    if len(x.shape) != 5 or w.shape != wanted:
        raise ScriptValueError(
            f"For 'Conv3D', 'x' must have 5 dimensions and 'w' the shape {vector(wanted)}, but got {vector(x.shape)} "
            f"and {vector(w.shape)}."
        )
    geometry = _geometry(x.shape[2:], attrs)
    if min(results for *_, results in geometry) < 1:
        raise ScriptValueError(f"For 'Conv3D', the kernel is larger than 'x' {vector(x.shape)}.")
    return output(kind, (x.shape[0], w.shape[0], *(results for *_, results in geometry)))


def _conv(x: Array, w: Array, **attrs: Any) -> Array:
    geometry, groups = _geometry(x.shape[2:], attrs), attrs["groups"]
    result = np.zeros((x.shape[0], groups, w.shape[0] // groups, *(g[5] for g in geometry)), x.dtype)
    images, weights = _grouped(x, groups), w.reshape(groups, -1, *w.shape[1:])
    for place, pixels, results in _places(geometry):
        part = np.einsum("ngcdhw,goc->ngodhw", images[pixels], weights[place], optimize=True)
        result[results] += part
    return result.reshape(x.shape[0], w.shape[0], *result.shape[3:])


def _grad(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
    x, w = operands
    settings = {name: attrs[name] for name in _ATTRS}
    dx = b.emit("Conv3DBackpropInput", w, dout, shape_of(x), **settings)
    return dx, b.emit("Conv3DBackpropFilter", x, dout, shape_of(w), **settings)


def _infer_input(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
    dout = tensor_of("Conv3DBackpropInput", abstracts[1], "out_backprop")
    return output(dout.dtype, ints_of("Conv3DBackpropInput", abstracts[2], "input_size"))


def _input_slope(w: Array, dout: Array, input_size: Sequence[int], **attrs: Any) -> Array:
    geometry, groups = _geometry(input_size[2:], attrs), attrs["groups"]
    result = np.zeros((input_size[0], groups, input_size[1] // groups, *input_size[2:]), dout.dtype)
    slopes, weights = _grouped(dout, groups), w.reshape(groups, -1, *w.shape[1:])
    for place, pixels, results in _places(geometry):
        part = np.einsum("ngodhw,goc->ngcdhw", slopes[results], weights[place], optimize=True)
        result[pixels] += part
    return result.reshape(tuple(input_size))


def _infer_filter(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
    dout = tensor_of("Conv3DBackpropFilter", abstracts[1], "out_backprop")
    return output(dout.dtype, ints_of("Conv3DBackpropFilter", abstracts[2], "filter_size"))


def _filter_slope(x: Array, dout: Array, filter_size: Sequence[int], **attrs: Any) -> Array:
    geometry, groups = _geometry(x.shape[2:], attrs), attrs["groups"]
    result = np.zeros((groups, filter_size[0] // groups, *filter_size[1:]), dout.dtype)
    images, slopes = _grouped(x, groups), _grouped(dout, groups)
    for place, pixels, results in _places(geometry):
        part = np.einsum("ngcdhw,ngodhw->goc", images[pixels], slopes[results], optimize=True)
        result[place] = part
    return result.reshape(tuple(filter_size))


OPS = (
    OpDef(
        name="Conv3D",
        operands=("x", "w"),
        infer=_infer,
        kernel=_conv,
        grad=_grad,
        attrs=_ATTRS,
        fixed={"offset_x": 0, "group": lambda abstracts, out, attrs: attrs["groups"], "pad_list": _pads},
        input_names=["x", "w"],
        output_names=["output"],
        formats=_FORMATS,
    ),
    OpDef(
        name="Conv3DBackpropInput",
        operands=("filter", "out_backprop", "input_size"),
        infer=_infer_input,
        kernel=_input_slope,
        attrs=_ATTRS,
        input_names=("filter", "out_backprop", "input_size"),
        output_names=("y",),
        formats={"in": {0: "FRACTAL_Z_3D", 1: "NDC1HWC0"}, "out": {0: "NDC1HWC0"}},
    ),
    OpDef(
        name="Conv3DBackpropFilter",
        operands=("x", "out_backprop", "filter_size"),
        infer=_infer_filter,
        kernel=_filter_slope,
        attrs=_ATTRS,
        input_names=("x", "out_backprop", "filter_size"),
        output_names=("y",),
        formats={"in": {0: "NDC1HWC0", 1: "NDC1HWC0"}, "out": {0: "FRACTAL_Z_3D"}},
    ),
)
