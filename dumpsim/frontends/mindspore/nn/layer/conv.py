"""``mindspore.nn.layer.conv``."""

import math
from typing import Any

from dumpsim.core.dtype import DType
from dumpsim.core.errors import ScriptTypeError, ScriptValueError
from dumpsim.frontends.mindspore import ops
from dumpsim.frontends.mindspore.common import dtype as mstype
from dumpsim.frontends.mindspore.common.initializer import HeUniform, Uniform, initializer
from dumpsim.frontends.mindspore.common.parameter import Parameter
from dumpsim.frontends.mindspore.context import get_context
from dumpsim.frontends.mindspore.nn import _check
from dumpsim.frontends.mindspore.nn.cell import Cell

__all__ = ["Conv2d"]


class Conv2d(Cell):
    """Convolution of NCHW images.

    Parameters
    ----------
    in_channels, out_channels : int
    kernel_size, stride, dilation : int or pair of int
    pad_mode : {"same", "valid", "pad"}
    padding : int or four of them
        Only with `pad_mode` "pad".
    group : int
    has_bias : bool
    weight_init, bias_init : Tensor, str, Initializer or number, optional
        HeUniform and Uniform where None.
    data_format : {"NCHW", "NHWC"}
        NHWC is for GPU only.
    dtype : number type

    Examples
    --------
    >>> Conv2d(3, 8, 5, pad_mode="valid").weight.shape
    (8, 3, 5, 5)
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        pad_mode: str = "same",
        padding: Any = 0,
        dilation: Any = 1,
        group: int = 1,
        has_bias: bool = False,
        weight_init: Any = None,
        bias_init: Any = None,
        data_format: str = "NCHW",
        dtype: DType = mstype.float32,
    ) -> None:
        super().__init__()
        owner = self.cls_name
        self.in_channels = _check.positive_int(in_channels, "in_channels", owner)
        self.out_channels = _check.positive_int(out_channels, "out_channels", owner)
        self.kernel_size = _check.positive_pair(kernel_size, "kernel_size", owner)
        self.stride = _check.positive_pair(stride, "stride", owner)
        self.pad_mode = pad_mode
        self.dilation = _check.positive_pair(dilation, "dilation", owner)
        self.group = _check.positive_int(group, "group", owner)
        self.data_format = _check.choice(data_format, ["NCHW", "NHWC", "NCDHW"], "format", owner)
        target = get_context("device_target")
        if self.data_format == "NHWC" and target != "GPU":
            raise ScriptValueError(
                f"For '{owner}', the \"NHWC\" format only support in GPU target, but got the 'format' is NHWC and "
                f"the platform is {target}."
            )
        self.padding = _padding(padding, owner)
        if in_channels % group or out_channels % group:
            raise ScriptValueError(
                "The argument 'group' should be divisible by 'in_channels' and 'out_channels', "
                f"but got group:{group}, in_channels:{in_channels}, out_channels:{out_channels}."
            )
        shape = [out_channels, in_channels // group, *self.kernel_size]
        if self.data_format == "NHWC":
            shape = [out_channels, *self.kernel_size, in_channels // group]
        self.weight_init = HeUniform(math.sqrt(5)) if weight_init is None else weight_init
        self.weight = Parameter(initializer(self.weight_init, shape, dtype=dtype), name="weight")
        self.has_bias = _check.bool_value(has_bias, "has_bias", owner)
        self.bias_init = bias_init
        self.bias: Any = None
        if has_bias:
            if bias_init is None:
                self.bias_init = Uniform(1 / math.sqrt(math.prod(shape[1:])))
            self.bias = Parameter(initializer(self.bias_init, [out_channels], dtype=dtype), name="bias")
        self.conv2d = ops.Conv2D(
            out_channel=self.out_channels,
            kernel_size=self.kernel_size,
            mode=1,
            pad_mode=self.pad_mode,
            pad=self.padding,
            stride=self.stride,
            dilation=self.dilation,
            group=self.group,
            data_format=self.data_format,
        )
        self.bias_add = ops.BiasAdd(data_format=self.data_format)

    def construct(self, x: Any) -> Any:
        output = self.conv2d(x, self.weight)
        if self.has_bias:
            output = self.bias_add(output, self.bias)
        return output

    def extend_repr(self) -> str:
        return (
            f"input_channels={self.in_channels}, output_channels={self.out_channels}, kernel_size={self.kernel_size}, "
            f"stride={self.stride}, pad_mode={self.pad_mode}, padding={self.padding}, dilation={self.dilation}, "
            f"group={self.group}, has_bias={self.has_bias}, weight_init={self.weight_init}, "
            f"bias_init={self.bias_init}, "
            f"format={self.data_format}"
        )


def _padding(padding: Any, owner: str) -> Any:
    """One amount or four of them, none below 0."""
    if not isinstance(padding, (int, tuple)) or isinstance(padding, bool):
        raise ScriptTypeError(
            f"For '{owner}', the type of 'padding' must be int or tuple(int), but got {type(padding).__name__}."
        )
    for amount in (padding,) if isinstance(padding, int) else padding:
        if not isinstance(amount, int) or amount < 0:
            raise ScriptValueError(f"For '{owner}', the 'padding item' must be int and must >= 0, but got '{amount}'.")
    return padding
