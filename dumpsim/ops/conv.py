"""Convolution in two dimensions and its two gradients, by columns and matrix products."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from dumpsim.core.abstract import Abstract, TensorType
from dumpsim.core.errors import ScriptRuntimeError, ScriptTypeError, ScriptValueError
from dumpsim.ops.gradient import is_variable, shape_of
from dumpsim.ops.opdef import GradBuilder, OpDef
from dumpsim.ops.rules import ints_of, output, pair_of, same_dtype, size_of, tensor_of
from dumpsim.ops.window import Window

__all__ = ["OPS"]

Array = np.ndarray[Any, Any]
Attrs = Mapping[str, Any]

# one chunk of columns is at most the larger of this and the largest tensor of the call
_CHUNK_BYTES = 16 << 20


def _window(size: Sequence[int], attrs: Attrs) -> Window:
    kernel = attrs["kernel_size"]
    return Window.of(size, kernel, attrs["stride"], attrs["dilation"], attrs["pad_mode"], attrs["pad"])


def _nchw(name: str, abstract: Abstract, operand: str) -> TensorType:
    tensor = tensor_of(name, abstract, operand)
    if len(tensor.shape) != 4:
        raise ScriptValueError(
            f"For primitive[{name}], the {operand} shape size must be equal to 4, but got {len(tensor.shape)}."
        )
    return tensor


def _infer_conv(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
    x, w = _nchw("Conv2D", abstracts[0], "x"), _nchw("Conv2D", abstracts[1], "w")
    if attrs["format"] != "NCHW":
        raise ScriptValueError(f"For 'Conv2D', the 'format' {attrs['format']!r} is not supported.", allowed=("NCHW",))
    kind = same_dtype("Conv2D", {"x": x, "w": w})
    group = attrs["group"]
    if x.shape[1] != w.shape[1] * group:
        raise ScriptRuntimeError(
            "For 'Conv2D', 'C_in' of input 'x' shape divide by parameter 'group' must be equal to 'C_in' of input "
            "'weight' shape: "
            f"{w.shape[1]}, but got 'C_in' of input 'x' shape: {x.shape[1]}, and 'group': {group}."
        )
    if w.shape[0] != attrs["out_channel"]:
        raise ScriptRuntimeError(
            f"For 'Conv2D', 'w_shape[0]' must be equal to 'out_channel', but got 'w_shape[0]': {w.shape[0]}, "
            "'out_channel': "
            f"{attrs['out_channel']}."
        )
    window = _window(x.shape[2:], attrs)
    if window.kernel != w.shape[2:]:
        raise ScriptValueError(
            f"For 'Conv2D', the height and width of the weight must equal 'kernel_size' {window.kernel}, but got "
            f"{w.shape[2:]}."
        )
    if min(window.out) < 1:
        raise ScriptValueError(
            "For 'Conv2d', input shape's h and w after padding must be greater than or equal to kernel_size's h and "
            "w respectively."
        )
    return output(kind, (x.shape[0], w.shape[0], *window.out))


def _row_chunks(window: Window, depth: int, itemsize: int, largest: int) -> Iterator[slice]:
    """Yield ranges of output rows whose columns fit into a chunk."""
    bytes_a_row = max(depth * window.out[1] * itemsize, 1)
    rows = max(1, min(window.out[0], max(_CHUNK_BYTES, largest) // bytes_a_row))
    for first in range(0, window.out[0], rows):
        yield slice(first, min(first + rows, window.out[0]))


@np.errstate(all="ignore")
def _conv(x: Array, w: Array, **attrs: Any) -> Array:
    window, group = _window(x.shape[2:], attrs), attrs["group"]
    outputs, depth = w.shape[0] // group, size_of(w.shape[1:])
    filters = w.reshape(group, outputs, depth)
    y = np.empty((x.shape[0], w.shape[0], *window.out), x.dtype)
    largest = max(x.nbytes, y.nbytes, w.nbytes)
    for n in range(x.shape[0]):
        wide = window.pad(x[n])
        for g in range(group):
            part = wide[g * w.shape[1] : (g + 1) * w.shape[1]]
            for rows in _row_chunks(window, depth, x.itemsize, largest):
                columns = window.columns(part, rows).reshape(depth, -1)
                target = y[n, g * outputs : (g + 1) * outputs, rows]
                target[...] = (filters[g] @ columns).reshape(target.shape)
    return y


@np.errstate(all="ignore")
def _conv_input_grad(dout: Array, w: Array, input_sizes: Sequence[int], **attrs: Any) -> Array:
    batch, channels, *size = (int(n) for n in input_sizes)
    window, group = _window(size, attrs), attrs["group"]
    outputs, depth = w.shape[0] // group, size_of(w.shape[1:])
    filters = w.reshape(group, outputs, depth)
    dx = np.empty((batch, channels, *size), dout.dtype)
    largest = max(dx.nbytes, dout.nbytes, w.nbytes)
    for n in range(batch):
        wide = np.zeros((channels, *window.padded), dout.dtype)
        for g in range(group):
            part = wide[g * w.shape[1] : (g + 1) * w.shape[1]]
            for rows in _row_chunks(window, depth, dout.itemsize, largest):
                slopes = dout[n, g * outputs : (g + 1) * outputs, rows].reshape(outputs, -1)
                columns = (filters[g].T @ slopes).reshape(w.shape[1], -1, rows.stop - rows.start, window.out[1])
                for index, tap in enumerate(window.taps(part, rows)):
                    tap += columns[:, index]
        dx[n] = window.crop(wide)
    return dx


@np.errstate(all="ignore")
def _conv_filter_grad(dout: Array, x: Array, filter_sizes: Sequence[int], **attrs: Any) -> Array:
    shape = tuple(int(n) for n in filter_sizes)
    window, group = _window(x.shape[2:], attrs), attrs["group"]
    outputs, depth = shape[0] // group, size_of(shape[1:])
    dw = np.zeros((group, outputs, depth), dout.dtype)
    largest = max(x.nbytes, dout.nbytes, dw.nbytes)
    for n in range(x.shape[0]):
        wide = window.pad(x[n])
        for g in range(group):
            part = wide[g * shape[1] : (g + 1) * shape[1]]
            for rows in _row_chunks(window, depth, x.itemsize, largest):
                columns = window.columns(part, rows).reshape(depth, -1)
                dw[g] += dout[n, g * outputs : (g + 1) * outputs, rows].reshape(outputs, -1) @ columns.T
    return dw.reshape(shape)


def _grad_conv(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
    x, w = operands
    same = dict(attrs) | {"pad_mode": attrs["pad_mode"].upper()}
    dx = b.emit("Conv2DBackpropInput", dout, w, shape_of(x), **same) if is_variable(x) else None
    dw = b.emit("Conv2DBackpropFilter", dout, x, shape_of(w), **same) if is_variable(w) else None
    return dx, dw


def _sizes(name: str, abstract: Abstract, operand: str) -> tuple[int, ...]:
    if isinstance(abstract, TensorType):
        raise ScriptTypeError(f"For '{name}', the value of '{operand}' must be known when the graph is compiled.")
    return ints_of(name, abstract, operand)


def _infer_input_grad(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
    dout = _nchw("Conv2DBackpropInput", abstracts[0], "out_backprop")
    _nchw("Conv2DBackpropInput", abstracts[1], "filter")
    return output(dout.dtype, _sizes("Conv2DBackpropInput", abstracts[2], "input_sizes"))


def _infer_filter_grad(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
    dout = _nchw("Conv2DBackpropFilter", abstracts[0], "out_backprop")
    _nchw("Conv2DBackpropFilter", abstracts[1], "input")
    return output(dout.dtype, _sizes("Conv2DBackpropFilter", abstracts[2], "filter_sizes"))


def _grad_input_grad(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
    slopes, w, _ = operands
    return b.emit("Conv2D", dout, w, **attrs), b.emit("Conv2DBackpropFilter", slopes, dout, shape_of(w), **attrs), None


def _grad_filter_grad(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
    slopes, x, _ = operands
    return b.emit("Conv2D", x, dout, **attrs), b.emit("Conv2DBackpropInput", slopes, dout, shape_of(x), **attrs), None


def _tensor(abstract: Any) -> TensorType:
    assert isinstance(abstract, TensorType)
    return abstract


def _pads(abstracts: Sequence[Abstract], out: Any, attrs: Attrs) -> tuple[int, ...]:
    return _window(_tensor(abstracts[0]).shape[2:], attrs).pads


def _pads_of_sizes(abstracts: Sequence[Abstract], out: Any, attrs: Attrs) -> tuple[int, ...]:
    return _window(_tensor(out).shape[2:], attrs).pads


def _pads_of_input(abstracts: Sequence[Abstract], out: Any, attrs: Attrs) -> tuple[int, ...]:
    return _window(_tensor(abstracts[1]).shape[2:], attrs).pads


def _groups(abstracts: Sequence[Abstract], out: Any, attrs: Attrs) -> int:
    return int(attrs["group"])


def _flops(abstracts: Sequence[Abstract], attrs: Attrs) -> int:
    x, w = _tensor(abstracts[0]), _tensor(abstracts[1])
    return 2 * x.shape[0] * size_of(w.shape) * size_of(_window(x.shape[2:], attrs).out)


def _input_grad_flops(abstracts: Sequence[Abstract], attrs: Attrs) -> int:
    dout, w = _tensor(abstracts[0]), _tensor(abstracts[1])
    return 2 * size_of(dout.shape) * size_of(w.shape[1:])


def _filter_grad_flops(abstracts: Sequence[Abstract], attrs: Attrs) -> int:
    dout, x = _tensor(abstracts[0]), _tensor(abstracts[1])
    return 2 * size_of(dout.shape) * size_of(pair_of(attrs["kernel_size"])) * x.shape[1] // int(attrs["group"])


_ATTRS: dict[str, Any] = {
    "out_channel": None,
    "kernel_size": (1, 1),
    "mode": 1,
    "pad_mode": "valid",
    "pad": (0, 0, 0, 0),
    "stride": (1, 1, 1, 1),
    "dilation": (1, 1, 1, 1),
    "group": 1,
    "format": "NCHW",
}

# private formats of the 910A [decisions]
OPS = (
    OpDef(
        name="Conv2D",
        operands=("x", "w"),
        infer=_infer_conv,
        kernel=_conv,
        grad=_grad_conv,
        attrs=_ATTRS,
        fixed={"pad_list": _pads, "groups": _groups},
        input_names=["x", "w"],
        output_names=["output"],
        formats={"in": {0: "NC1HWC0", 1: "FRACTAL_Z"}, "out": {0: "NC1HWC0"}},
        flops=_flops,
    ),
    OpDef(
        name="Conv2DBackpropInput",
        operands=("out_backprop", "filter", "input_sizes"),
        infer=_infer_input_grad,
        kernel=_conv_input_grad,
        grad=_grad_input_grad,
        attrs=_ATTRS,
        fixed={"pad_list": _pads_of_sizes, "groups": _groups, "data_format": "NCHW"},
        input_names=("out_backprop", "filter", "input_sizes"),
        output_names=("output",),
        formats={"in": {0: "NC1HWC0", 1: "FRACTAL_Z"}, "out": {0: "NC1HWC0"}},
        flops=_input_grad_flops,
    ),
    OpDef(
        name="Conv2DBackpropFilter",
        operands=("out_backprop", "input", "filter_sizes"),
        infer=_infer_filter_grad,
        kernel=_conv_filter_grad,
        grad=_grad_filter_grad,
        attrs=_ATTRS,
        fixed={"pad_list": _pads_of_input, "groups": _groups, "data_format": "NCHW"},
        input_names=("out_backprop", "input", "filter_sizes"),
        output_names=("output",),
        formats={"in": {0: "NC1HWC0", 1: "NC1HWC0"}, "out": {0: "FRACTAL_Z"}},
        flops=_filter_grad_flops,
    ),
)
