"""``mindspore.nn.layer.pooling``."""

from typing import Any

from dumpsim.core.errors import ScriptValueError, UnsupportedError
from dumpsim.frontends.mindspore import ops
from dumpsim.frontends.mindspore._checkparam import (
    GE,
    check_int,
    check_non_negative_int_sequence,
    check_value_type,
)
from dumpsim.frontends.mindspore._standin import vendored
from dumpsim.frontends.mindspore.context import get_context
from dumpsim.frontends.mindspore.nn import _check
from dumpsim.frontends.mindspore.nn.cell import Cell

__all__ = [
    "AdaptiveAvgPool1d",
    "AdaptiveAvgPool2d",
    "AdaptiveMaxPool1d",
    "AvgPool1d",
    "AvgPool2d",
    "MaxPool1d",
    "MaxPool2d",
]


class _PoolNd(Cell):
    """Base of the pooling layers: checks window, step and padding."""

    def __init__(self, kernel_size: Any, stride: Any, pad_mode: str, data_format: str) -> None:
        super().__init__()
        _check.typed(pad_mode, "pad_mode", [str], self.cls_name)
        self.pad_mode = _check.choice(pad_mode.upper(), ["VALID", "SAME", "PAD"], "pad_mode", self.cls_name)
        self.format = _check.choice(data_format, ["NCHW", "NHWC"], "format", self.cls_name)
        target = get_context("device_target")
        if self.format == "NHWC" and target != "GPU":
            raise ScriptValueError(
                f"For '{self.cls_name}, the 'NHWC' format only support in GPU target, but got device target {target}."
            )
        self.kernel_size = self._window("kernel_size", kernel_size)
        self.stride = self._window("stride", stride)

    def _window(self, name: str, value: Any) -> Any:
        _check.typed(value, name, [int, tuple], self.cls_name)
        for item in (value,) if isinstance(value, int) else value:
            if not isinstance(item, int) or item <= 0:
                raise ScriptValueError(
                    f"For '{self.cls_name}', the '{name}' must be an positive int number or a tuple, but got {value}"
                )
        return value[0] if isinstance(value, tuple) and len(value) == 1 else value

    def extend_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, pad_mode={self.pad_mode}"


def _belongs_to_pad(owner: str, pad_mode: str) -> ScriptValueError:
    """The error for settings that require the pad_mode ``pad``."""
    return ScriptValueError(
        f"For {owner}, the parameter 'padding', 'dilation', 'return_indices', 'ceil_mode' can not be set to "
        f"non-default value when pad_mode is not 'pad', but got pad_mode:{pad_mode}."
    )


def _pads(padding: Any, owner: str, axes: int) -> Any:
    """Return the padding before and after depth, height and width from that of the last axes.

    Examples
    --------
    >>> _pads((1, 2), "AvgPool2d", 2)
    (0, 0, 1, 1, 2, 2)
    """
    check_value_type("padding", padding, (int, tuple, list), owner)
    if isinstance(padding, int):
        return (0, 0) * (3 - axes) + (padding,) * axes * 2
    check_non_negative_int_sequence(padding, "padding", owner)
    if len(padding) not in (1, axes):
        allowed = "one int" if axes == 1 else f"1 or {axes} int"
        raise ScriptValueError(
            f"For {owner}, the padding must be a int or tuple/list contains {allowed}, but got tuple/list with "
            f"length:{len(padding)}."
        )
    numbers = [n for n in (padding if len(padding) == axes else list(padding) * axes) for _ in range(2)]
    return (0, 0) * (3 - axes) + tuple(numbers)


class MaxPool2d(_PoolNd):
    """Largest elements of windows of NCHW images (or of one CHW image).

    Parameters
    ----------
    kernel_size, stride : int or pair of int
    pad_mode : {"valid", "same"}
    """

    def __init__(
        self,
        kernel_size: Any = 1,
        stride: Any = 1,
        pad_mode: str = "valid",
        padding: Any = 0,
        dilation: Any = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
        data_format: str = "NCHW",
    ) -> None:
        super().__init__(kernel_size, stride, pad_mode, data_format)
        if self.pad_mode == "PAD":
            raise UnsupportedError(
                "pad_mode 'pad' is not emulated", where=f"nn.{self.cls_name}", allowed=("valid", "same")
            )
        if padding != 0 or dilation != 1 or return_indices or ceil_mode:
            raise _belongs_to_pad("MaxPool2d", pad_mode)
        self.max_pool = ops.MaxPool(
            kernel_size=self.kernel_size, strides=self.stride, pad_mode=self.pad_mode, data_format=self.format
        )

    def construct(self, x: Any) -> Any:
        expand_batch = False
        if x.ndim == 3:
            x = x.unsqueeze(0)
            expand_batch = True
        out = self.max_pool(x)
        if expand_batch:
            out = out.squeeze(0)
        return out


class AvgPool2d(_PoolNd):
    """Means of windows of NCHW images (or of one CHW image)."""

    def __init__(
        self,
        kernel_size: Any = 1,
        stride: Any = 1,
        pad_mode: str = "valid",
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
        data_format: str = "NCHW",
    ) -> None:
        super().__init__(kernel_size, stride, pad_mode, data_format)
        if (
            pad_mode.upper() == "PAD"
            or padding != 0
            or ceil_mode
            or not count_include_pad
            or divisor_override is not None
        ):
            self.is_expand = True
            if divisor_override is not None and divisor_override <= 0:
                raise ScriptValueError(
                    f"For '{self.cls_name}', the 'divisor_override' must be > 0, but got {divisor_override}."
                )
            pads = _pads(padding, self.cls_name, 2)
            self.avg_pool: Any = ops.AvgPool3D(
                kernel_size=(1, *self._pair("kernel_size", self.kernel_size)),
                strides=(1, *self._pair("stride", self.stride)),
                pad_mode=pad_mode,
                pad=pads,
                ceil_mode=ceil_mode,
                count_include_pad=count_include_pad,
                divisor_override=0 if divisor_override is None else divisor_override,
            )
        else:
            self.is_expand = False
            self.avg_pool = ops.AvgPool(
                kernel_size=self.kernel_size, strides=self.stride, pad_mode=self.pad_mode, data_format=self.format
            )

    def _pair(self, name: str, value: Any) -> tuple[int, ...]:
        if isinstance(value, tuple) and len(value) != 2:
            raise ScriptValueError(
                f"For {self.cls_name}, the length of {name} must be equal to 2, but got {len(value)}."
            )
        return value if isinstance(value, tuple) else (value, value)

    def construct(self, x: Any) -> Any:
        expand_batch = False
        if x.ndim == 3:
            x = x.unsqueeze(0)
            expand_batch = True
        if self.is_expand:
            x = x.unsqueeze(2)
            out = self.avg_pool(x)
            res = out.squeeze(2)
        else:
            res = self.avg_pool(x)
        if expand_batch:
            res = res.squeeze(0)
        return res


class MaxPool1d(_PoolNd):
    """Largest elements of windows of ``(N, C, L)`` or ``(C, L)``.

    Parameters
    ----------
    kernel_size, stride : int
    pad_mode : {"valid", "same"}
    """

    def __init__(
        self,
        kernel_size: int = 1,
        stride: int = 1,
        pad_mode: str = "valid",
        padding: Any = 0,
        dilation: Any = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__(kernel_size, stride, pad_mode, "NCHW")
        if self.pad_mode == "PAD":
            raise UnsupportedError(
                "pad_mode 'pad' is not emulated", where=f"nn.{self.cls_name}", allowed=("valid", "same")
            )
        if padding != 0 or dilation != 1 or return_indices or ceil_mode:
            raise _belongs_to_pad("MaxPool1d", pad_mode)
        self.kernel_size, self.stride = (1, kernel_size), (1, stride)
        self.max_pool = ops.MaxPool(kernel_size=self.kernel_size, strides=self.stride, pad_mode=self.pad_mode)
        self.expand = ops.ExpandDims()
        self.squeeze = ops.Squeeze(2)

    def construct(self, x: Any) -> Any:
        expand_batch = False
        if x.ndim == 2:
            x = x.unsqueeze(0)
            expand_batch = True
        x = self.expand(x, 2)
        output = self.max_pool(x)
        output = self.squeeze(output)
        if expand_batch:
            output = output.squeeze(0)
        return output


class AvgPool1d(_PoolNd):
    """Means of windows of ``(N, C, L)`` or ``(C, L)``.

    Parameters
    ----------
    kernel_size, stride : int
    pad_mode : {"valid", "same"}
    """

    def __init__(
        self,
        kernel_size: int = 1,
        stride: int = 1,
        pad_mode: str = "valid",
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:
        super().__init__(kernel_size, stride, pad_mode, "NCHW")
        check_int(self.kernel_size, 1, GE, "kernel_size", self.cls_name)
        check_int(self.stride, 1, GE, "stride", self.cls_name)
        self.is_expand_3d = pad_mode.upper() == "PAD" or padding != 0 or ceil_mode or not count_include_pad
        if self.is_expand_3d:
            self.avg_pool: Any = ops.AvgPool3D(
                kernel_size=(1, 1, self.kernel_size),
                strides=(1, 1, self.stride),
                pad_mode=pad_mode,
                pad=_pads(padding, self.cls_name, 1),
                ceil_mode=ceil_mode,
                count_include_pad=count_include_pad,
            )
            return
        self.kernel_size, self.stride = (1, self.kernel_size), (1, self.stride)
        self.avg_pool = ops.AvgPool(kernel_size=self.kernel_size, strides=self.stride, pad_mode=self.pad_mode)
        self.shape = ops.shape
        self.reduce_mean = ops.ReduceMean(keep_dims=True)
        self.slice = ops.Slice()
        self.expand = ops.ExpandDims()
        self.squeeze = ops.Squeeze(2)

    def construct(self, x: Any) -> Any:
        expand_batch = False
        if x.ndim == 2:
            x = x.unsqueeze(0)
            expand_batch = True
        if self.is_expand_3d:
            x = x.unsqueeze(2).unsqueeze(3)
            x = self.avg_pool(x)
            x = x.squeeze(3).squeeze(2)
        else:
            batch, channel, width = self.shape(x)
            if width == self.kernel_size[1]:
                x = self.reduce_mean(x, 2)
            elif width - self.kernel_size[1] < self.stride[1]:  # one window: the rest is cut off
                x = self.slice(x, (0, 0, 0), (batch, channel, self.kernel_size[1]))
                x = self.reduce_mean(x, 2)
            else:
                x = self.expand(x, 2)
                x = self.avg_pool(x)
                x = self.squeeze(x)
        if expand_batch:
            x = x.squeeze(0)
        return x


class AdaptiveAvgPool2d(Cell):
    """Means of windows, for an output of a given size.

    Parameters
    ----------
    output_size : int, None or pair of them
        Rows and columns of the output; None keeps the input's number.
    """

    def __init__(self, output_size: Any) -> None:
        super().__init__()
        self.adaptive_avgpool2d = ops.AdaptiveAvgPool2D(output_size)

    def construct(self, input: Any) -> Any:
        return self.adaptive_avgpool2d(input)


class _AdaptivePool1d(Cell):
    """Base of the layers that choose windows of one size for a given number of outputs."""

    def __init__(self, output_size: int) -> None:
        super().__init__()
        self.output_size = check_int(output_size, 1, GE, "output_size", self.cls_name)
        self.shape = ops.shape
        self.expand = ops.ExpandDims()
        self.squeeze = ops.Squeeze(2)

    def _windows(self, shape: tuple[int, ...]) -> tuple[tuple[int, int], tuple[int, int]]:
        """Return window and step."""
        if len(shape) != 3:
            raise ScriptValueError(f"For {self.cls_name}, the input must has 3 dim, but got {len(shape)}.")
        if self.output_size > shape[2]:
            raise ScriptValueError(
                f"For {self.cls_name}, the input's last dimension must be greater or equal to output size "
                f"{self.output_size}, but got {shape[2]}."
            )
        if shape[2] % self.output_size:
            raise ScriptValueError(
                f"For {self.cls_name}, the input's last dimension must be divisible by output size "
                f"{self.output_size}, but got {shape[2]}."
            )
        step = shape[2] // self.output_size
        return (1, shape[2] - (self.output_size - 1) * step), (1, step)


class AdaptiveAvgPool1d(_AdaptivePool1d):
    """Means of windows of ``(N, C, L)``, for a given number of outputs."""

    def construct(self, input: Any) -> Any:
        kernel_size, stride = self._windows(self.shape(input))
        input = self.expand(input, 2)
        avg_pool = ops.AvgPool(kernel_size=kernel_size, strides=stride)
        input = avg_pool(input)
        input = self.squeeze(input)
        return input  # noqa: RET504 - the IR shows the name


class AdaptiveMaxPool1d(_AdaptivePool1d):
    """Largest elements of windows of ``(N, C, L)``, for a given number of outputs."""

    def construct(self, x: Any) -> Any:
        kernel_size, stride = self._windows(self.shape(x))
        max_pool = ops.MaxPool(kernel_size=kernel_size, strides=stride)
        x = self.expand(x, 2)
        x = max_pool(x)
        x = self.squeeze(x)
        return x  # noqa: RET504 - the IR shows the name


def __getattr__(name: str) -> Any:
    return vendored("mindspore.nn.layer.pooling", name)
