"""``mindspore.nn.layer.pooling``."""

from typing import Any

from dumpsim.core.errors import ScriptValueError, UnsupportedError
from dumpsim.frontends.mindspore import ops
from dumpsim.frontends.mindspore.context import get_context
from dumpsim.frontends.mindspore.nn import _check
from dumpsim.frontends.mindspore.nn.cell import Cell

__all__ = ["AvgPool2d", "MaxPool2d"]


class _PoolNd(Cell):
    """Window, step and padding, checked."""

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
        if self.pad_mode == "PAD":
            raise UnsupportedError("pad_mode 'pad'", where=f"nn.{self.cls_name}", allowed=("valid", "same"))
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
        if padding != 0 or dilation != 1 or return_indices or ceil_mode:
            raise ScriptValueError(
                "For MaxPool2d, the parameter 'padding', 'dilation', 'return_indices', 'ceil_mode' can not be set to "
                f"non-default value when pad_mode is not 'pad', but got pad_mode:{pad_mode}."
            )
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
        if padding != 0 or ceil_mode or not count_include_pad or divisor_override is not None:
            raise UnsupportedError("padding, ceil_mode or another divisor", where="nn.AvgPool2d")
        self.avg_pool = ops.AvgPool(
            kernel_size=self.kernel_size, strides=self.stride, pad_mode=self.pad_mode, data_format=self.format
        )

    def construct(self, x: Any) -> Any:
        expand_batch = False
        if x.ndim == 3:
            x = x.unsqueeze(0)
            expand_batch = True
        res = self.avg_pool(x)
        if expand_batch:
            res = res.squeeze(0)
        return res
