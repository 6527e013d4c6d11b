"""Average of windows in three dimensions, and its gradient."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any

import numpy as np

from dumpsim.core.abstract import Abstract
from dumpsim.core.errors import ScriptRuntimeError, ScriptValueError
from dumpsim.ops.gradient import shape_of
from dumpsim.ops.opdef import GradBuilder, OpDef
from dumpsim.ops.rules import ints_of, output, tensor_of, vector

__all__ = ["OPS", "Windows"]

Array = np.ndarray[Any, Any]
Attrs = Mapping[str, Any]
Index = tuple[Any, ...]

_FLOATS = ("float16", "float32", "float64")


@dataclass(frozen=True, slots=True, kw_only=True)
class Windows:
    """Windows along depth, height and width.

    Attributes
    ----------
    size, kernel, stride, out : extents of the input, a window, a step and the output
    pads : padding before and after each dimension
    more : further extent after the padding, in which the last windows may end (`ceil_mode`)
    """

    size: tuple[int, ...]
    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    pads: tuple[tuple[int, int], ...]
    more: tuple[int, ...]
    out: tuple[int, ...]

    @classmethod
    def of(cls, size: Sequence[int], attrs: Attrs) -> "Windows":
        """Return the windows of an input of three extents.

        Examples
        --------
        >>> settings = {"kernel_size": (1, 1, 1, 1, 2), "strides": (1, 1, 1, 1, 2), "pad_list": (0,) * 6}
        >>> Windows.of((1, 1, 5), settings | {"pad_mode": "VALID", "ceil_mode": True}).out
        (1, 1, 3)
        """
        kernel, stride = tuple(attrs["kernel_size"][-3:]), tuple(attrs["strides"][-3:])
        pads, more, out = [], [], []
        for at, (n, window, step) in enumerate(zip(size, kernel, stride, strict=True)):
            before, after = attrs["pad_list"][2 * at : 2 * at + 2]
            if attrs["pad_mode"] == "SAME":
                count = -(-n // step)
                total = max((count - 1) * step + window - n, 0)
                before, after = total // 2, total - total // 2
            else:
                room = n + before + after - window
                count = (-(-room // step) if attrs["ceil_mode"] else room // step) + 1
                if attrs["ceil_mode"] and (count - 1) * step >= n + before:
                    count -= 1  # the last window would start in the padding after the input [2.10 observed]
            pads.append((before, after))
            more.append(max((count - 1) * step + window - n - before - after, 0))
            out.append(count)
        return cls(size=tuple(size), kernel=kernel, stride=stride, pads=tuple(pads), more=tuple(more), out=tuple(out))

    @property
    def fitting(self) -> tuple[int, ...]:
        """Number of windows that end inside the padding, for each dimension."""
        return tuple(
            (n + sum(pads) - window) // step + 1
            for n, pads, window, step in zip(self.size, self.pads, self.kernel, self.stride, strict=True)
        )

    def pad(self, x: Array, fill: float = 0) -> Array:
        """Pad the last three axes of `x`; what lies after the padding is 0."""
        before = [(0, 0)] * (x.ndim - 3)
        padded = np.pad(x, before + list(self.pads), constant_values=fill)
        return np.pad(padded, before + [(0, n) for n in self.more])

    def crop(self, wide: Array) -> Array:
        """Remove the padding of an array."""
        inner: Index = tuple(slice(pads[0], pads[0] + n) for pads, n in zip(self.pads, self.size, strict=True))
        return wide[(..., *inner)]

    def taps(self, wide: Array) -> Iterator[Array]:
        """Yield the view of a padded array that each element of the window sees."""
        for place in product(*map(range, self.kernel)):
            view: Index = tuple(
                slice(start, start + (count - 1) * step + 1, step)
                for start, count, step in zip(place, self.out, self.stride, strict=True)
            )
            yield wide[(..., *view)]

    def counts(self, include_pad: bool) -> Array:
        """Return the number of elements in each window, with the padding or without."""
        total = np.zeros(self.out)
        for tap in self.taps(self.pad(np.ones(self.size), 1 if include_pad else 0)):
            total += tap
        return total


def _infer(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
    """Return the type of the means; the texts are MindSpore's. [2.10 observed]"""
    x = tensor_of("AvgPool3D", abstracts[0], "x", _FLOATS)
    if len(x.shape) != 5:
        raise ScriptValueError(f"For primitive[AvgPool3D], the x_rank must be equal to 5, but got {len(x.shape)}.")
    kernel, pads = attrs["kernel_size"][-3:], attrs["pad_list"]
    if any(pads[2 * at] + pads[2 * at + 1] > n for at, n in enumerate(kernel)):
        raise ScriptValueError(
            "For 'AvgPool3D the sum of the pads in the two directions should be less than or equal to the "
            f"corresponding kernel size, but got pads: ({','.join(map(str, pads))}) and kernel: "
            f"({', '.join(map(str, kernel))})"
        )
    windows = Windows.of(x.shape[2:], attrs)
    shape = (*x.shape[:2], *windows.out)
    if min(windows.out) < 1 and attrs["ceil_mode"]:
        raise ScriptRuntimeError(
            f"For 'AvgPool3D', output shape's all elements must be positive, but got shape: {vector(shape)}."
            "Please check input parameter!"
        )
    if min(windows.out) < 1:
        wide = [n + sum(pad) for n, pad in zip(windows.size, windows.pads, strict=True)]
        raise ScriptRuntimeError(
            f"For 'AvgPool3D, size of input with the padding is (D:{wide[0]}, H:{wide[1]}, W:{wide[2]}) smaller than "
            f"kernel size [const initializer_list]{{{', '.join(map(str, kernel))}}}"
        )
    return output(x.dtype, shape)


def _divisors(windows: Windows, attrs: Attrs, kind: Any) -> Any:
    if attrs["divisor_override"]:
        return np.asarray(attrs["divisor_override"], kind)
    return windows.counts(attrs["count_include_pad"]).astype(kind)


@np.errstate(all="ignore")
def _average(x: Array, **attrs: Any) -> Array:
    windows = Windows.of(x.shape[2:], attrs)
    total = np.zeros((*x.shape[:2], *windows.out), x.dtype)
    for tap in windows.taps(windows.pad(x)):
        total += tap
    means: Array = total / _divisors(windows, attrs, x.dtype)
    return means


def _grad(b: GradBuilder, operands: Sequence[Any], out: Any, dout: Any, attrs: Attrs) -> Sequence[Any]:
    settings = {name: attrs[name] for name in _SLOPE_ATTRS}
    return (b.emit("AvgPool3DGrad", shape_of(operands[0]), dout, **settings),)


def _infer_slope(abstracts: Sequence[Abstract], attrs: Attrs) -> Abstract:
    dout = tensor_of("AvgPool3DGrad", abstracts[1], "grad", _FLOATS)
    return output(dout.dtype, ints_of("AvgPool3DGrad", abstracts[0], "origin_input_size"))


@np.errstate(all="ignore")
def _slope(origin_input_size: Sequence[int], grad: Array, **attrs: Any) -> Array:
    size = tuple(int(n) for n in origin_input_size)
    windows = Windows.of(size[2:], attrs)
    share = grad / _divisors(windows, attrs, grad.dtype)
    wide = windows.pad(np.zeros(size, grad.dtype))
    for tap in windows.taps(wide):
        tap += share
    return windows.crop(wide)


@np.errstate(all="ignore")
def cpu_slope(origin_input_size: Sequence[int], grad: Array, **attrs: Any) -> Array:
    """Return the gradient as the kernel of the target CPU computes it.

    Raises
    ------
    ScriptRuntimeError
        If windows end after an input without padding, or are fewer than fit into the padding, or the padding does not
        count and is as wide as a window. [2.10 observed]
    """
    windows = Windows.of([int(n) for n in origin_input_size[2:]], attrs)
    inside, mode = attrs["count_include_pad"], attrs["pad_mode"]
    missing = any(n < fit for n, fit in zip(windows.out, windows.fitting, strict=True))
    wide = any(max(pads) >= n for pads, n in zip(windows.pads, windows.kernel, strict=True))
    if (mode == "VALID" and any(windows.more)) or (mode == "PAD" and (missing or (wide and not inside))):
        raise ScriptRuntimeError("Unknown Error!")
    if attrs["divisor_override"] and not inside:
        # the divisor replaces the size of a window, and each window is divided by its elements all the same
        # [2.10 observed]
        grad = grad * grad.dtype.type(prod(windows.kernel) / attrs["divisor_override"])
        attrs["divisor_override"] = 0
    return _slope(origin_input_size, grad, **attrs)


_SLOPE_ATTRS: dict[str, Any] = {
    "kernel_size": (1, 1, 1, 1, 1),
    "strides": (1, 1, 1, 1, 1),
    "pad_mode": "VALID",
    "pad_list": (0, 0, 0, 0, 0, 0),
    "ceil_mode": False,
    "count_include_pad": True,
    "divisor_override": 0,
    "format": "NCDHW",
}

OPS = (
    OpDef(
        name="AvgPool3D",
        operands=("x",),
        infer=_infer,
        kernel=_average,
        grad=_grad,
        attrs=_SLOPE_ATTRS,
        fixed={"pad": lambda abstracts, out, attrs: attrs["pad_list"]},
        input_names=["input"],
        output_names=["output"],
        formats={"in": {0: "NDC1HWC0"}, "out": {0: "NDC1HWC0"}},
    ),
    OpDef(
        name="AvgPool3DGrad",
        operands=("origin_input_size", "grad"),
        infer=_infer_slope,
        kernel=_slope,
        attrs=_SLOPE_ATTRS,
        input_names=("origin_input_size", "grad"),
        output_names=("output",),
        formats={"in": {1: "NDC1HWC0"}, "out": {0: "NDC1HWC0"}},
    ),
)
