"""Maximum and average over windows, and their gradients."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dumpsim.core.abstract import Abstract, TensorType
from dumpsim.core.errors import ScriptRuntimeError, ScriptValueError
from dumpsim.ops.gradient import part_or_zeros, shape_of
from dumpsim.ops.opdef import GradBuilder, OpDef
from dumpsim.ops.rules import constant, output, tensor_of, tuple_of, value_of, vector
from dumpsim.ops.window import Window

__all__ = ["OPS", "max_window"]

Array = np.ndarray[Any, Any]
Attrs = Mapping[str, Any]

_PAD_MODES = {0: "pad", 1: "same", 2: "valid"}  # AvgPool's operand pad_mode


def _four(name: str, abstract: Abstract, operand: str) -> TensorType:
    x = tensor_of(name, abstract, operand)
    if len(x.shape) != 4:
        raise ScriptValueError(
            f"For primitive[{name}], the length of input must be equal to 4 , but got {len(x.shape)}."
            if name == "MaxPool"
            else f"For primitive[{name}], the x_rank must be equal to 4, but got {len(x.shape)}."
        )
    return x


def max_window(shape: Sequence[int], attrs: Attrs) -> Window:
    """Return the window of MaxPool and its gradient for an input of a shape."""
    return Window.of(shape[2:], attrs["kernel_size"], attrs["strides"], 1, attrs["pad_mode"])


def _infer_max(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
    x = _four("MaxPool", abstracts[0], "x")
    window = max_window(x.shape, attrs)
    shape = (*x.shape[:2], *window.out)
    if min(window.out) < 1:
        kernel, strides = (1, 1, *window.kernel), (1, 1, *window.stride)
        raise ScriptValueError(
            "For 'MaxPool', the each element of the output shape must be larger than 0, but got output shape: "
            f"{vector(shape)}. The input shape: {vector(x.shape)}, kernel size: {vector(kernel)}, strides: "
            f"{vector(strides)}. "
            "Please check the official api documents for more information about the output."
        )
    return output(x.dtype, shape)


def _lowest(kind: np.dtype[Any]) -> Any:
    return -np.inf if kind.kind == "f" else np.iinfo(kind).min


def _max_pool(x: Array, **attrs: Any) -> Array:
    window = max_window(x.shape, attrs)
    best: Array | None = None
    for tap in window.taps(window.pad(x, _lowest(x.dtype))):
        if best is None:
            best = tap.copy()
        else:
            np.maximum(best, tap, out=best)
    assert best is not None
    return best


def _max_pool_grad(x: Array, out: Array, dout: Array, **attrs: Any) -> Array:
    """The gradient of a window goes to its first maximum."""
    window = max_window(x.shape, attrs)
    wide = window.pad(x, _lowest(x.dtype))
    slopes = np.zeros_like(wide, dout.dtype)
    free = np.ones(out.shape, np.bool_)
    for tap, target in zip(window.taps(wide), window.taps(slopes), strict=True):
        hit = (tap == out) & free
        target += np.where(hit, dout, 0)
        free &= ~hit
    return window.crop(slopes)


def _grad_max(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
    return (b.emit("MaxPoolGrad", operands[0], out, dout, **attrs),)


def _infer_max_grad(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
    x = _four("MaxPoolGrad", abstracts[0], "x_origin")
    return output(x.dtype, x.shape)


def _average_window(shape: Sequence[int], kernel: Any, strides: Any, pad_mode: int) -> Window:
    return Window.of(shape[2:], kernel, strides, 1, _PAD_MODES[pad_mode])


def _infer_average(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
    x = _four("AvgPool", abstracts[0], "x")
    kernel, strides, pad_mode = (
        value_of("AvgPool", a, n) for a, n in zip(abstracts[1:4], ("kernel_size", "strides", "pad_mode"), strict=True)
    )
    window = _average_window(x.shape, kernel, strides, pad_mode)
    if min(window.out) < 1:
        raise ScriptRuntimeError(
            f"For 'AvgPool' op, H_out/W_out must be positive, but H_out/W_out is {min(window.out)}, please check "
            "input and parameters of op"
        )
    return output(x.dtype, (*x.shape[:2], *window.out))


def _counts(window: Window, kind: Any) -> Array:
    """Return the number of elements of the input, without padding, in every window."""
    counts = np.zeros(window.out, kind)
    for tap in window.taps(window.pad(np.ones(window.size, kind))):
        counts += tap
    return counts


@np.errstate(all="ignore")
def _average(x: Array, kernel_size: Any, strides: Any, pad_mode: int = 2, data_format: int = 0) -> Array:
    window = _average_window(x.shape, kernel_size, strides, pad_mode)
    total = np.zeros((*x.shape[:2], *window.out), x.dtype)
    for tap in window.taps(window.pad(x)):
        total += tap
    return total / _counts(window, x.dtype)


@np.errstate(all="ignore")
def _average_grad(
    x: Array, out: Array, dout: Array, kernel_size: Any, strides: Any, pad_mode: int = 2, data_format: int = 0
) -> Array:
    window = _average_window(x.shape, kernel_size, strides, pad_mode)
    wide = np.zeros((*x.shape[:2], *window.padded), dout.dtype)
    share = dout / _counts(window, dout.dtype)
    for tap in window.taps(wide):
        tap += share
    return window.crop(wide)


def _grad_average(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
    x, *settings = operands
    return b.emit("AvgPoolGrad", x, out, dout, *(constant(s) for s in settings)), None, None, None, None


def _infer_average_grad(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
    x = _four("AvgPoolGrad", abstracts[0], "x_origin")
    return output(x.dtype, x.shape)


def _bins(size: int, count: int) -> list[slice]:
    """Return the ranges of an adaptive pooling; neighbours overlap if `count` does not divide the size."""
    return [slice(i * size // count, -(-(i + 1) * size // count)) for i in range(count)]


def _target(attrs: Attrs, shape: Sequence[int]) -> tuple[int, int]:
    wanted = attrs["output_size"]
    sizes = (wanted, wanted) if wanted is None or isinstance(wanted, int) else wanted
    height, width = (int(n) if want in (None, -1) else int(want) for want, n in zip(sizes, shape[-2:], strict=True))
    return height, width


def _infer_adaptive(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
    x = tensor_of("AdaptiveAvgPool2D", abstracts[0], "x")
    if len(x.shape) not in (3, 4):
        raise ScriptValueError(
            f"For primitive[AdaptiveAvgPool2D], the dim of x must be in [3,4], but got {len(x.shape)}."
        )
    return output(x.dtype, (*x.shape[:-2], *_target(attrs, x.shape)))


def _adaptive(x: Array, **attrs: Any) -> Array:
    height, width = _target(attrs, x.shape)
    y = np.empty((*x.shape[:-2], height, width), x.dtype)
    for i, rows in enumerate(_bins(x.shape[-2], height)):
        for j, columns in enumerate(_bins(x.shape[-1], width)):
            y[..., i, j] = x[..., rows, columns].mean(axis=(-2, -1), dtype=x.dtype)
    return y


def _adaptive_grad(dout: Array, shape: Sequence[int]) -> Array:
    dx = np.zeros(tuple(int(n) for n in shape), dout.dtype)
    for i, rows in enumerate(_bins(dx.shape[-2], dout.shape[-2])):
        for j, columns in enumerate(_bins(dx.shape[-1], dout.shape[-1])):
            share = (rows.stop - rows.start) * (columns.stop - columns.start)
            dx[..., rows, columns] += dout[..., i : i + 1, j : j + 1] / share
    return dx


def _grad_adaptive(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
    return (b.emit("AdaptiveAvgPool2DGrad", dout, shape_of(operands[0])),)


def _infer_adaptive_grad(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
    dout = tensor_of("AdaptiveAvgPool2DGrad", abstracts[0], "input_grad")
    return output(dout.dtype, value_of("AdaptiveAvgPool2DGrad", abstracts[1], "orig_input_shape"))


def _placed_window(shape: Sequence[int], attrs: Attrs) -> Window:
    """Return the window of the variant with indices: pads (1, 1, height, width), output size rounded down or up."""
    top, left = (int(n) for n in attrs["pads"][-2:])
    exact = Window.of(
        shape[2:], attrs["kernel_size"], attrs["strides"], attrs["dilation"], "pad", (top, top, left, left)
    )
    if not attrs["ceil_mode"]:
        return exact
    more = [
        (-(wide - (kernel - 1) * dilation - 1)) % stride
        for wide, kernel, dilation, stride in zip(exact.padded, exact.kernel, exact.dilation, exact.stride, strict=True)
    ]
    for at, start in enumerate((top, left)):
        if exact.out[at] * exact.stride[at] >= shape[2 + at] + start:
            more[at] = 0  # the further window would lie in the padding after the input [2.10 observed]
    return Window.of(
        shape[2:],
        attrs["kernel_size"],
        attrs["strides"],
        attrs["dilation"],
        "pad",
        (top, top + more[0], left, left + more[1]),
    )


def _infer_placed(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
    x = _four("MaxPoolWithArgmaxV2", abstracts[0], "x")
    window = _placed_window(x.shape, attrs)
    if min(window.out) < 1:
        raise ScriptValueError(
            f"For 'MaxPoolWithArgmaxV2', the kernel {window.kernel} does not fit the input {vector(x.shape)}."
        )
    shape = (*x.shape[:2], *window.out)
    return tuple_of(output(x.dtype, shape), output("int64" if attrs["argmax_type"] == _INT64 else "int32", shape))


_INT64 = 4  # value of the attribute argmax_type for int64


def _placed(x: Array, **attrs: Any) -> tuple[Array, Array]:
    window = _placed_window(x.shape, attrs)
    places = np.arange(window.size[0] * window.size[1]).reshape(1, 1, *window.size)
    best: Array | None = None
    where = np.zeros((*x.shape[:2], *window.out), np.int64)
    for tap, place in zip(window.taps(window.pad(x, _lowest(x.dtype))), window.taps(window.pad(places)), strict=True):
        better = np.ones(tap.shape, np.bool_) if best is None else tap > best
        best = tap.copy() if best is None else np.where(better, tap, best)
        where = np.where(better, place, where)
    assert best is not None
    return best, where.astype(np.int64 if attrs["argmax_type"] == _INT64 else np.int32)


def _grad_placed(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
    slope = part_or_zeros(b, dout, 0, out)
    return (b.emit("MaxPoolGradWithArgmaxV2", operands[0], slope, b.item(out, 1), **attrs),)


def _infer_placed_grad(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
    x = _four("MaxPoolGradWithArgmaxV2", abstracts[0], "x")
    return output(x.dtype, x.shape)


def _placed_grad(x: Array, dout: Array, where: Array, **attrs: Any) -> Any:
    rows = x.shape[0] * x.shape[1]
    flat = np.zeros((rows, x.shape[2] * x.shape[3]), dout.dtype)
    np.add.at(flat, (np.arange(rows)[:, None], where.reshape(rows, -1)), dout.reshape(rows, -1))
    return flat.reshape(x.shape)


_MAX_ATTRS: dict[str, Any] = {
    "kernel_size": (1, 1, 1, 1),
    "strides": (1, 1, 1, 1),
    "pad_mode": "VALID",
    "format": "NCHW",
}
_PLACED_ATTRS: dict[str, Any] = {
    "kernel_size": (1, 1, 1, 1),
    "strides": (1, 1, 1, 1),
    "pads": (1, 1, 0, 0),
    "dilation": (1, 1, 1, 1),
    "ceil_mode": False,
    "argmax_type": _INT64,
}
_FIVE_HD = {"in": {0: "NC1HWC0"}, "out": {0: "NC1HWC0"}}  # [decisions: 910A]

OPS = (
    OpDef(
        name="MaxPool",
        operands=("x",),
        infer=_infer_max,
        kernel=_max_pool,
        grad=_grad_max,
        attrs=_MAX_ATTRS,
        input_names=["x"],
        output_names=["output"],
        formats=_FIVE_HD,
    ),
    OpDef(
        name="MaxPoolGrad",
        operands=("x_origin", "out_origin", "grad"),
        infer=_infer_max_grad,
        kernel=_max_pool_grad,
        attrs=_MAX_ATTRS,
        fixed={"data_format": "NCHW"},
        input_names=("x_origin", "out_origin", "grad"),
        output_names=("output",),
        formats={"in": {0: "NC1HWC0", 1: "NC1HWC0", 2: "NC1HWC0"}, "out": {0: "NC1HWC0"}},
    ),
    OpDef(
        name="AvgPool",
        operands=("x", "kernel_size", "strides", "pad_mode", "data_format"),
        defaults=(2, 0),
        infer=_infer_average,
        kernel=_average,
        grad=_grad_average,
        prim_func=True,
        formats=_FIVE_HD,
    ),
    OpDef(
        name="AvgPoolGrad",
        operands=("x", "out", "dout", "kernel_size", "strides", "pad_mode", "data_format"),
        defaults=(2, 0),
        infer=_infer_average_grad,
        kernel=_average_grad,
        prim_func=True,
        formats={"in": {0: "NC1HWC0", 1: "NC1HWC0", 2: "NC1HWC0"}, "out": {0: "NC1HWC0"}},
    ),
    OpDef(
        name="AdaptiveAvgPool2D",
        operands=("x",),
        infer=_infer_adaptive,
        kernel=_adaptive,
        grad=_grad_adaptive,
        attrs={"output_size": (1, 1)},
        input_names=["x"],
        output_names=["y"],
    ),
    OpDef(
        name="AdaptiveAvgPool2DGrad",
        operands=("input_grad", "orig_input_shape"),
        infer=_infer_adaptive_grad,
        kernel=_adaptive_grad,
        input_names=("input_grad", "orig_input_shape"),
        output_names=("output_grad",),
    ),
    OpDef(
        name="MaxPoolWithArgmaxV2",
        operands=("x",),
        infer=_infer_placed,
        kernel=_placed,
        grad=_grad_placed,
        attrs=_PLACED_ATTRS,
        input_names=["x"],
        output_names=["output", "argmax"],
    ),
    OpDef(
        name="MaxPoolGradWithArgmaxV2",
        operands=("x", "grad", "argmax"),
        infer=_infer_placed_grad,
        kernel=_placed_grad,
        attrs=_PLACED_ATTRS,
        input_names=("x", "grad", "argmax"),
        output_names=("y",),
    ),
)
