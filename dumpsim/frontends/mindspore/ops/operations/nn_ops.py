"""Primitives whose constructors convert their settings: windows, padding, normalisation."""

from typing import Any

from dumpsim.core.errors import ScriptTypeError, ScriptValueError
from dumpsim.frontends.mindspore._checkparam import check_non_negative_int, check_value_type
from dumpsim.frontends.mindspore._current import capturing
from dumpsim.frontends.mindspore._standin import vendored
from dumpsim.frontends.mindspore.common import dtype as mstype
from dumpsim.frontends.mindspore.common._operandtypes import abstract_name
from dumpsim.frontends.mindspore.common.tensor import Tensor
from dumpsim.frontends.mindspore.ops._signatures import data_format as _format_number
from dumpsim.frontends.mindspore.ops.operations import _own
from dumpsim.frontends.mindspore.ops.primitive import Primitive
from dumpsim.ops.rules import numbers_of

__all__ = ["AvgPool", "AvgPool3D", "BatchNorm", "Conv2D", "Conv3D", "MaxPool", "MirrorPad", "Pad"]


def _pair(what: str, value: Any, owner: str, least: int = 1) -> tuple[int, int]:
    """Return a pair from one number, two numbers, or the last two of four."""
    if isinstance(value, int) and not isinstance(value, bool):
        pair = (value, value)
    elif isinstance(value, (tuple, list)) and len(value) in (2, 4):
        pair = (value[-2], value[-1])
    else:
        raise ScriptValueError(
            f"For '{owner}' attr '{what}' must be an positive int number or a tuple of two or four positive "
            f"int numbers, but got {value}"
        )
    if any(isinstance(n, bool) or not isinstance(n, int) or n < least for n in pair):
        counts = "two" if what == "kernel_size" else "two or four"
        raise ScriptValueError(
            f"For '{owner}' attr '{what}' must be an positive int number or a tuple of {counts} positive int numbers, "
            f"but got {value}"
        )
    return pair


def _choice(what: str, value: Any, allowed: tuple[str, ...], owner: str) -> str:
    if not isinstance(value, str) or value not in allowed:
        raise ScriptValueError(
            f"For '{owner}', the '{what}' must be str and must be in '{list(allowed)}', but got '{value}'."
        )
    return value


class Conv2D(Primitive):
    """Convolution of NCHW images with OIHW weights.

    Parameters
    ----------
    out_channel, kernel_size, mode, pad_mode, pad, stride, dilation, group, data_format
        As in MindSpore; `pad_mode` is "valid", "same" or "pad".
    """

    def __init__(
        self,
        out_channel: int,
        kernel_size: Any,
        mode: int = 1,
        pad_mode: str = "valid",
        pad: Any = 0,
        stride: Any = 1,
        dilation: Any = 1,
        group: int = 1,
        data_format: str = "NCHW",
    ) -> None:
        super().__init__("Conv2D")
        self.kernel_size = _pair("kernel_size", kernel_size, self.name)
        self.stride = (1, 1, *_pair("stride", stride, self.name))
        self.dilation = (1, 1, *_pair("dilation", dilation, self.name))
        self.pad_mode = _choice("pad_mode", str(pad_mode).lower(), ("valid", "same", "pad"), self.name)
        self.pad = (pad,) * 4 if isinstance(pad, int) else tuple(pad)
        if len(self.pad) != 4:
            raise ScriptValueError(
                f"For '{self.name}', the 'pad size' must be int and must = 4, but got '{len(self.pad)}' with "
                "type 'int'."
            )
        if self.pad_mode != "pad" and any(self.pad):
            raise ScriptValueError(
                f"For '{self.name}', the 'pad' must be zero when 'pad_mode' is not 'pad', "
                f"but got 'pad': {pad} and 'pad_mode': {self.pad_mode}."
            )
        self.format = _choice("format", data_format, ("NCHW", "NHWC", "NCDHW"), self.name)
        self.mode = mode
        self.out_channel = out_channel
        self.group = group
        self._given = {
            "out_channel": out_channel,
            "kernel_size": self.kernel_size,
            "mode": mode,
            "pad_mode": self.pad_mode,
            "pad": self.pad,
            "stride": self.stride,
            "dilation": self.dilation,
            "group": group,
            "format": self.format,
        }

    def __call__(self, x: Any, weight: Any) -> Any:
        return self._run([x, weight], self._given)


def _triple(what: str, value: Any, owner: str) -> tuple[int, int, int]:
    """Return three numbers from one or three."""
    three = (value,) * 3 if isinstance(value, int) else tuple(value)
    if len(three) != 3 or any(isinstance(n, bool) or not isinstance(n, int) or n < 1 for n in three):
        raise ScriptValueError(
            f"For '{owner}', the attr '{what}' should be an positive int number or a tuple of three positive int "
            f"numbers, but got {value}"
        )
    return three[0], three[1], three[2]


class Conv3D(Primitive):
    """Convolution of NCDHW volumes with OIDHW weights.

    Parameters
    ----------
    out_channel, kernel_size, mode, pad_mode, pad, stride, dilation, group, data_format
        As in MindSpore; `pad_mode` is "valid", "same" or "pad".
    """

    def __init__(
        self,
        out_channel: int,
        kernel_size: Any,
        mode: int = 1,
        pad_mode: str = "valid",
        pad: Any = 0,
        stride: Any = 1,
        dilation: Any = 1,
        group: int = 1,
        data_format: str = "NCDHW",
    ) -> None:
        super().__init__("Conv3D")
        self.kernel_size = _triple("kernel_size", kernel_size, self.name)
        self.strides = (1, 1, *_triple("stride", stride, self.name))
        self.dilations = (1, 1, *_triple("dilation", dilation, self.name))
        self.pad_mode = _choice("pad_mode", str(pad_mode).lower(), ("valid", "same", "pad"), self.name)
        self.pad = (pad,) * 6 if isinstance(pad, int) else tuple(pad)
        if len(self.pad) != 6:
            raise ScriptValueError(
                f"For '{self.name}', attr 'pad' must be an positive int number or a tuple of six positive int "
                f"numbers, but got {pad}."
            )
        if self.pad_mode != "pad" and any(self.pad):
            raise ScriptValueError(
                f"For '{self.name}', the 'pad' must be zero or (0, 0, 0, 0, 0, 0) when 'pad_mode' is not \"pad\", but "
                f"got 'pad' is {self.pad} and 'pad_mode' is {self.pad_mode}."
            )
        self.format = _choice("format", data_format, ("NCDHW",), self.name)
        if out_channel % group:
            raise ScriptValueError("The argument 'group' should be divisible by 'out_channel'")
        self.mode, self.out_channel, self.group = mode, out_channel, group
        self._given = {
            "out_channel": out_channel,
            "kernel_size": self.kernel_size,
            "mode": mode,
            "pad_mode": self.pad_mode,
            "pad": self.pad,
            "strides": self.strides,
            "dilations": self.dilations,
            "groups": group,
            "format": self.format,
        }

    def __call__(self, x: Any, w: Any) -> Any:
        return self._run([x, w], self._given)


class _Pool(Primitive):
    """Base of the pooling primitives."""

    def __init__(self, name: str, kernel_size: Any, strides: Any, pad_mode: str, data_format: str) -> None:
        super().__init__(name)
        if not isinstance(pad_mode, str):
            raise ScriptTypeError(
                f"For '{name}', the type of 'pad_mode' should be 'str', but got type '{type(pad_mode).__name__}'."
            )
        self.pad_mode = _choice("pad_mode", pad_mode.upper(), ("VALID", "SAME"), name)
        self.format = _choice("format", data_format, ("NCHW", "NHWC"), name)
        self.kernel_size = _pair("kernel_size", kernel_size, name)
        self.strides = _pair("strides", strides, name)


class MaxPool(_Pool):
    """Largest elements of windows."""

    def __init__(
        self, kernel_size: Any = 1, strides: Any = 1, pad_mode: str = "valid", data_format: str = "NCHW"
    ) -> None:
        super().__init__("MaxPool", kernel_size, strides, pad_mode, data_format)
        self._given = {
            "kernel_size": (1, 1, *self.kernel_size),
            "strides": (1, 1, *self.strides),
            "pad_mode": self.pad_mode,
            "format": self.format,
        }

    def __call__(self, input: Any) -> Any:
        return self._run([input], self._given)


class AvgPool(_Pool):
    """Means of windows."""

    def __init__(
        self, kernel_size: Any = 1, strides: Any = 1, pad_mode: str = "VALID", data_format: str = "NCHW"
    ) -> None:
        super().__init__("AvgPool", kernel_size, strides, pad_mode, data_format)
        self._given = {
            "kernel_size": self.kernel_size,
            "strides": self.strides,
            "pad_mode": self.pad_mode,
            "data_format": self.format,
        }

    def __call__(self, x: Any) -> Any:
        # the IR prints the numbers of the enums: PAD 0, SAME 1, VALID 2 [observed 2.10]
        padding = {"SAME": 1, "VALID": 2}[self.pad_mode]
        return self._run([x, self.kernel_size, self.strides, padding, _format_number(self.format)])


def _five(what: str, value: Any, owner: str) -> tuple[int, ...]:
    """Return (1, 1, depth, height, width) from one number, or from three or five."""
    check_value_type(what, value, (int, tuple), owner)
    five = (1, 1, *((value,) * 3 if isinstance(value, int) else value[-3:]))
    given = len(value) if isinstance(value, tuple) else 3
    if given not in (3, 5) or any(not isinstance(n, int) or isinstance(n, bool) or n < 1 for n in five):
        raise ScriptValueError(
            f"For '{owner}', the parameter '{what}' must be an positive integer or a tuple of three positive integer, "
            f"but got {five if given in (3, 5) else value}"
        )
    return five


class AvgPool3D(Primitive):
    """Means of windows of NCDHW volumes.

    Parameters
    ----------
    kernel_size, strides : int or tuple of three
    pad_mode : {"valid", "same", "pad"}
    pad : int or tuple of six
        Zeros before and after depth, height and width.
    ceil_mode : bool
        Round the size of the output up.
    count_include_pad : bool
        Count the zeros of the padding.
    divisor_override : int
        Divisor in place of the number of elements, if not 0.
    """

    def __init__(
        self,
        kernel_size: Any = 1,
        strides: Any = 1,
        pad_mode: str = "valid",
        pad: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int = 0,
        data_format: str = "NCDHW",
    ) -> None:
        super().__init__("AvgPool3D")
        self.kernel_size = _five("kernel_size", kernel_size, self.name)
        self.strides = _five("strides", strides, self.name)
        check_value_type("pad", pad, (int, tuple, list), self.name)
        self.pad = pad
        self.pad_list = (pad,) * 6 if isinstance(pad, int) else tuple(pad)
        if len(self.pad_list) != 6:
            raise ScriptValueError(
                f"For '{self.name}', attr 'pad' must be an positive int number or a tuple of six positive int "
                f"numbers, but got {pad}."
            )
        check_value_type("pad_mode", pad_mode, [str], self.name)
        self.pad_mode = _choice("pad_mode", pad_mode.upper(), ("VALID", "SAME", "PAD"), self.name)
        if self.pad_mode != "PAD" and self.pad_list != (0,) * 6:
            raise ScriptValueError(
                f"For '{self.name}', the 'pad' must be zero or (0, 0, 0, 0, 0, 0) when 'pad_mode' is not \"PAD\", but "
                f"got 'pad' is {pad} and 'pad_mode' is {pad_mode}."
            )
        for item in self.pad_list:
            check_non_negative_int(item, "pad or item of pad", self.name)
        self.ceil_mode = check_value_type("ceil_mode", ceil_mode, bool, self.name)
        self.count_include_pad = check_value_type("count_include_pad", count_include_pad, bool, self.name)
        self.divisor_override = check_non_negative_int(divisor_override, "divisor_override", self.name)
        self.format = _choice("format", data_format, ("NCDHW",), self.name)
        self._given = {
            "kernel_size": self.kernel_size,
            "strides": self.strides,
            "pad_mode": self.pad_mode,
            "pad_list": self.pad_list,
            "ceil_mode": ceil_mode,
            "count_include_pad": count_include_pad,
            "divisor_override": divisor_override,
            "format": data_format,
        }

    def __call__(self, input: Any) -> Any:
        return self._run([input], self._given)


class Pad(Primitive):
    """Pad a tensor with zeros.

    Parameters
    ----------
    paddings : tuple
        Number of zeros before and after each axis.
    """

    def __init__(self, paddings: tuple[tuple[int, int], ...]) -> None:
        super().__init__("Pad")
        if not isinstance(paddings, tuple):
            raise ScriptTypeError(
                f"For 'Pad', the type of 'paddings' should be 'tuple', but got type '{type(paddings).__name__}'."
            )
        self.paddings = paddings
        self._given = {"paddings": paddings}

    def __call__(self, x: Any) -> Any:
        return self._run([x], self._given)


class MirrorPad(Primitive):
    """Pad a tensor with mirror images of itself.

    Parameters
    ----------
    mode : str
        ``REFLECT``, which does not repeat the outermost element, or ``SYMMETRIC``.
    """

    def __init__(self, mode: str = "REFLECT") -> None:
        super().__init__("MirrorPad")
        self.mode = _choice("mode", mode, ("REFLECT", "SYMMETRIC"), self.name)
        self._given = {"mode": mode}

    def __call__(self, input_x: Any, paddings: Any) -> Any:
        for name, value in (("input_x", input_x), ("paddings", paddings)):
            if not isinstance(value, Tensor):
                raise ScriptTypeError(
                    f"For Primitive[MirrorPad], the type of input argument[{name}] must be Tensor but got "
                    f"{abstract_name(value)}."
                )
        if paddings._array is not None and paddings.dtype in (mstype.int32, mstype.int64) and capturing() is None:
            paddings = numbers_of(paddings._array)  # they determine the shape of the result
        return self._run([input_x, paddings], self._given)


class BatchNorm(Primitive):
    """Normalisation over batch and image; training updates the moving statistics in place."""

    def __init__(
        self, is_training: bool = False, epsilon: float = 1e-5, momentum: float = 0.1, data_format: str = "NCHW"
    ) -> None:
        super().__init__("BatchNorm")
        self.is_training, self.epsilon, self.momentum = is_training, float(epsilon), float(momentum)
        self.data_format = _choice("data_format", data_format, ("NCHW", "NHWC"), self.name)
        self._given = {
            "is_training": is_training,
            "epsilon": self.epsilon,
            "momentum": self.momentum,
            "data_format": data_format,
        }

    def __call__(self, input_x: Any, scale: Any, bias: Any, mean: Any, variance: Any) -> Any:
        settings = [self.is_training, self.epsilon, self.momentum, _format_number(self.data_format)]
        return self._run([input_x, scale, bias, mean, variance, *settings])


def __getattr__(name: str) -> Any:
    return vendored("mindspore.ops.operations.nn_ops", name, _own)
