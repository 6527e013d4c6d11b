"""``mindspore.nn.layer.conv``."""

import math
from typing import Any

from dumpsim.core.dtype import DType
from dumpsim.core.errors import ScriptTypeError, ScriptValueError
from dumpsim.frontends.mindspore import ops
from dumpsim.frontends.mindspore._capture.dispatch import call
from dumpsim.frontends.mindspore._checkparam import GE, check_int, check_positive_int
from dumpsim.frontends.mindspore._standin import vendored
from dumpsim.frontends.mindspore.common import dtype as mstype
from dumpsim.frontends.mindspore.common.initializer import HeUniform, Uniform, initializer
from dumpsim.frontends.mindspore.common.parameter import Parameter
from dumpsim.frontends.mindspore.common.tensor import Tensor
from dumpsim.frontends.mindspore.context import get_context
from dumpsim.frontends.mindspore.nn import _check
from dumpsim.frontends.mindspore.nn.cell import Cell
from dumpsim.frontends.mindspore.ops.operations.nn_ops import Conv2D

__all__ = ["Conv1d", "Conv2d", "Conv2dTranspose"]


class _Conv(Cell):
    """Base of the convolutions: settings, weight and bias."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any,
        pad_mode: str,
        padding: Any,
        dilation: Any,
        group: int,
        has_bias: bool,
        weight_init: Any,
        bias_init: Any,
        data_format: str,
        dtype: DType,
        *,
        transposed: bool = False,
    ) -> None:
        super().__init__()
        owner = self.cls_name
        self.in_channels = _check.positive_int(in_channels, "in_channels", owner)
        self.out_channels = _check.positive_int(out_channels, "out_channels", owner)
        self.group = check_positive_int(group) if transposed else _check.positive_int(group, "group", owner)
        self.kernel_size = _check.positive_pair(kernel_size, "kernel_size", owner)
        self.stride = _check.positive_pair(stride, "stride", owner)
        self.dilation = _check.positive_pair(dilation, "dilation", owner)
        of_modes = "Conv2D" if owner == "Conv2d" else owner  # there the primitive is the first to look
        self.pad_mode = _check.choice(pad_mode, ["valid", "same", "pad"], "pad_mode", of_modes)
        self.data_format = _check.choice(data_format, ["NCHW", "NHWC", "NCDHW"], "format", owner)
        target = get_context("device_target")
        if self.data_format == "NHWC" and target != "GPU":
            raise ScriptValueError(
                f"For '{owner}', the \"NHWC\" format only support in GPU target, but got the 'format' is NHWC and "
                f"the platform is {target}."
            )
        self.padding = _padding(padding, owner)
        if transposed:
            _divisible(in_channels, "in_channels", "attr ", group, owner)
            _divisible(out_channels, "out_channels", "", group, owner)
        elif in_channels % group or out_channels % group:
            raise ScriptValueError(
                "The argument 'group' should be divisible by 'in_channels' and 'out_channels', "
                f"but got group:{group}, in_channels:{in_channels}, out_channels:{out_channels}."
            )
        shape = [out_channels, in_channels // group, *self.kernel_size]
        if transposed:
            shape = [in_channels, out_channels // group, *self.kernel_size]
        elif self.data_format == "NHWC":
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

    @property
    def _settings(self) -> dict[str, Any]:
        """The arguments of the primitive, except for its channels."""
        return {
            "kernel_size": self.kernel_size,
            "mode": 1,
            "pad_mode": self.pad_mode,
            "pad": self.padding,
            "stride": self.stride,
            "dilation": self.dilation,
            "group": self.group,
        }

    def extend_repr(self) -> str:
        return (
            f"input_channels={self.in_channels}, output_channels={self.out_channels}, kernel_size={self.kernel_size}, "
            f"stride={self.stride}, pad_mode={self.pad_mode}, padding={self.padding}, dilation={self.dilation}, "
            f"group={self.group}, has_bias={self.has_bias}, weight_init={self.weight_init}, "
            f"bias_init={self.bias_init}, "
            f"format={self.data_format}"
        )


class Conv2d(_Conv):
    """Convolution of NCHW images.

    Parameters
    ----------
    in_channels, out_channels : int
    kernel_size, stride, dilation : int or pair of int
    pad_mode : {"same", "valid", "pad"}
    padding : int or tuple of four int
        Only with `pad_mode` "pad".
    group : int
    has_bias : bool
    weight_init, bias_init : Tensor, str, Initializer or number, optional
        HeUniform and Uniform if None.
    data_format : {"NCHW", "NHWC"}
        NHWC is supported on GPU only.
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
        super().__init__(
            in_channels, out_channels, kernel_size, stride, pad_mode, padding, dilation, group, has_bias,
            weight_init, bias_init, data_format, dtype,
        )  # fmt: skip
        self.conv2d = ops.Conv2D(self.out_channels, data_format=self.data_format, **self._settings)
        self.bias_add = ops.BiasAdd(data_format=self.data_format)

    def construct(self, x: Any) -> Any:
        output = self.conv2d(x, self.weight)
        if self.has_bias:
            output = self.bias_add(output, self.bias)
        return output


class Conv1d(_Conv):
    """Convolution of ``(N, C, L)``, computed as a convolution of images of height 1.

    Parameters
    ----------
    in_channels, out_channels, kernel_size, stride, padding, dilation, group : int
    pad_mode : {"same", "valid", "pad"}
    has_bias : bool
    weight_init, bias_init : Tensor, str, Initializer or number, optional
        A Tensor for the weight must have the shape ``(out_channels, in_channels / group, kernel_size)``.
    dtype : number type

    Examples
    --------
    >>> Conv1d(3, 8, 5).weight.shape
    (8, 3, 1, 5)
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int,
        stride: int = 1,
        pad_mode: str = "same",
        padding: int = 0,
        dilation: int = 1,
        group: int = 1,
        has_bias: bool = False,
        weight_init: Any = None,
        bias_init: Any = None,
        dtype: DType = mstype.float32,
    ) -> None:
        owner = type(self).__name__
        for name, value in (("kernel_size", kernel_size), ("stride", stride), ("dilation", dilation)):
            check_int(_check.typed(value, name, [int], owner), 1, GE, name, owner)
        _check.typed(padding, "padding", [int], owner)
        super().__init__(
            in_channels, out_channels, (1, kernel_size), (1, stride), pad_mode, padding, (1, dilation), group, has_bias,
            _of_height_1(weight_init, owner), bias_init, "NCHW", dtype,
        )  # fmt: skip
        self.padding = (0, 0, padding, padding)
        self.conv2d = ops.Conv2D(self.out_channels, **self._settings)
        self.bias_add = ops.BiasAdd()
        self.expand_dims = ops.ExpandDims()
        self.squeeze = ops.Squeeze(2)

    def construct(self, x: Any) -> Any:
        x = self.expand_dims(x, 2)
        output = self.conv2d(x, self.weight)
        if self.has_bias:
            output = self.bias_add(output, self.bias)
        output = self.squeeze(output)
        return output  # noqa: RET504 - the IR shows the name


class _Conv2DTranspose(Conv2D):
    """The primitive, whose operator is the gradient of Conv2D for its input. [observed 2.10]"""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.name = "Conv2DBackpropInput"

    def __call__(self, x: Any, weight: Any, sizes: tuple[int, ...]) -> Any:  # type: ignore[override]
        return call(
            self.name,
            [x, weight, sizes],
            self._given,
            instance_name=self.instance_name or None,
            printed=self.attrs or None,
            primitive="Conv2DTranspose",
        )


class Conv2dTranspose(_Conv):
    """Transposed convolution: the gradient of a convolution, which enlarges images by the stride.

    Parameters
    ----------
    in_channels, out_channels : int
    kernel_size, stride, dilation : int or pair of int
    pad_mode : {"same", "valid", "pad"}
    padding : int or tuple of four int
    output_padding : int or pair of int
        Zeros after the last row and column, with `pad_mode` "pad".
    group : int
    has_bias : bool
    weight_init, bias_init : Tensor, str, Initializer or number, optional
    dtype : number type

    Examples
    --------
    >>> Conv2dTranspose(3, 8, 5, stride=2).weight.shape
    (3, 8, 5, 5)
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        pad_mode: str = "same",
        padding: Any = 0,
        output_padding: Any = 0,
        dilation: Any = 1,
        group: int = 1,
        has_bias: bool = False,
        weight_init: Any = None,
        bias_init: Any = None,
        dtype: DType = mstype.float32,
    ) -> None:
        owner = type(self).__name__
        for name, value, count in (("padding", padding, 4), ("output_padding", output_padding, 2)):
            _check.typed(value, name, [int, tuple], owner)
            if isinstance(value, tuple) and len(value) != count:
                raise ScriptValueError(
                    f"For '{owner}', the '{name} size' must be int and must = {count}, but got '{len(value)}' with "
                    "type 'int'."
                )
        super().__init__(
            in_channels, out_channels, kernel_size, stride, pad_mode, padding, dilation, group, has_bias,
            weight_init, bias_init, "NCHW", dtype, transposed=True,
        )  # fmt: skip
        if self.pad_mode != "pad" and padding not in (0, (0, 0, 0, 0)):
            raise ScriptValueError(
                f"For 'Conv2DTranspose', the 'pad' must be zero or (0, 0, 0, 0) when 'pad_mode' is not \"pad\", "
                f"but got 'pad' is {padding} and 'pad_mode' is {pad_mode}."
            )
        self.output_padding = output_padding
        trailing = _check.pair(output_padding)
        self.shape = ops.Shape()
        self.conv2d_transpose = _Conv2DTranspose(out_channel=in_channels, **self._settings)
        self.bias_add = ops.BiasAdd()
        self.pad = ops.Pad(paddings=((0, 0), (0, 0), (0, trailing[0]), (0, trailing[1])))

    def _extent(self, size: int, axis: int) -> int:
        """Return the number of rows or columns of the output."""
        kernel, step, spread = self.kernel_size[axis], self.stride[axis], self.dilation[axis]
        if self.pad_mode == "same":
            return size * step
        grown = (size - 1) * step + (kernel - 1) * spread + 1
        if self.pad_mode == "valid":
            return max(grown, size * step)
        if isinstance(self.padding, int):
            return grown - 2 * self.padding
        before, after = self.padding[2 * axis :][:2]
        return int(grown - before - after)

    def construct(self, x: Any) -> Any:
        n, _, h, w = self.shape(x)
        conv2d_trans_ret = self.conv2d_transpose(
            x, self.weight, (n, self.out_channels, self._extent(h, 0), self._extent(w, 1))
        )
        if self.has_bias:
            conv2d_trans_ret = self.bias_add(conv2d_trans_ret, self.bias)
        if isinstance(self.output_padding, int) and self.output_padding == 0:
            return conv2d_trans_ret
        self._check_output_padding()
        return self.pad(conv2d_trans_ret)

    def _check_output_padding(self) -> None:
        """Refuse more zeros than a stride or dilation skips, when the layer is called. [source nn.layer 2.10]"""
        several = isinstance(self.output_padding, tuple)
        for at, amount in enumerate(_check.pair(self.output_padding)):
            if not 0 <= amount < max(self.stride[at], self.dilation[at]):
                name, axis = f"output_padding[{at}]" if several else "output_padding", "hw"[at]
                raise ScriptValueError(f"{name} must be in range of [0, max(stride_{axis}, dilation_{axis})).")
        if any(_check.pair(self.output_padding)) and self.pad_mode != "pad":
            raise ScriptValueError("when output_padding is not zero, pad_mode must be 'pad'")


def _of_height_1(weight: Any, owner: str) -> Any:
    """Insert an axis for the height into a weight of three axes."""
    if not isinstance(weight, Tensor):
        return weight
    if weight.ndim != 3:
        raise ScriptValueError(
            f"For '{owner}', the 'weight_init_shape' must be int and must = 3, but got '{weight.ndim}' with type 'int'."
        )
    return Tensor(weight.asnumpy()[:, :, None, :])


def _divisible(channels: int, name: str, word: str, group: int, owner: str) -> None:
    if channels % group:
        raise ScriptValueError(
            f"For '{owner}', the {word}'{name}' must be divisible by attr 'group', but got '{name}': {channels} and "
            f"'group': {group}."
        )


def _padding(padding: Any, owner: str) -> Any:
    """Check one amount or a tuple of amounts, which must be at least 0."""
    if not isinstance(padding, (int, tuple)) or isinstance(padding, bool):
        raise ScriptTypeError(
            f"For '{owner}', the type of 'padding' must be int or tuple(int), but got {type(padding).__name__}."
        )
    name = "padding" if isinstance(padding, int) else "padding item"
    for amount in (padding,) if isinstance(padding, int) else padding:
        if not isinstance(amount, int) or amount < 0:
            raise ScriptValueError(
                f"For '{owner}', the '{name}' must be int and must >= 0, but got '{amount}' with type "
                f"'{type(amount).__name__}'."
            )
    return padding


def __getattr__(name: str) -> Any:
    return vendored("mindspore.nn.layer.conv", name)
