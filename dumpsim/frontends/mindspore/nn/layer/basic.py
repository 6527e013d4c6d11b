"""``mindspore.nn.layer.basic``: dense layers, dropout, flatten, padding."""

import math
from typing import Any

import numpy as np

from dumpsim.core.dtype import DType
from dumpsim.core.errors import ScriptTypeError, ScriptValueError
from dumpsim.frontends.mindspore import log as logger
from dumpsim.frontends.mindspore import ops
from dumpsim.frontends.mindspore._listener import neutral
from dumpsim.frontends.mindspore._standin import vendored
from dumpsim.frontends.mindspore.common import dtype as mstype
from dumpsim.frontends.mindspore.common.initializer import HeUniform, Uniform, initializer
from dumpsim.frontends.mindspore.common.parameter import Parameter
from dumpsim.frontends.mindspore.common.seed import _get_graph_seed
from dumpsim.frontends.mindspore.common.tensor import Tensor
from dumpsim.frontends.mindspore.nn import _check
from dumpsim.frontends.mindspore.nn.cell import Cell
from dumpsim.frontends.mindspore.nn.layer.activation import get_activation
from dumpsim.frontends.mindspore.ops.primitive import Primitive

__all__ = ["Dense", "Dropout", "Flatten", "Identity", "OneHot", "Pad"]


class Dense(Cell):
    """``x @ weight.T + bias``.

    Parameters
    ----------
    in_channels, out_channels : int
    weight_init, bias_init : Tensor, str, Initializer or number, optional
        HeUniform and Uniform if None.
    has_bias : bool
    activation : str, Cell or Primitive, optional
    dtype : number type

    Examples
    --------
    >>> Dense(3, 2).weight.shape
    (2, 3)
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        weight_init: Any = None,
        bias_init: Any = None,
        has_bias: bool = True,
        activation: Any = None,
        dtype: DType = mstype.float32,
    ) -> None:
        super().__init__()
        self.in_channels = _check.positive_int(in_channels, "in_channels", self.cls_name)
        self.out_channels = _check.positive_int(out_channels, "out_channels", self.cls_name)
        self.has_bias = _check.bool_value(has_bias, "has_bias", self.cls_name)
        self.reshape = ops.Reshape()
        self.shape_op = ops.Shape()
        shape = [out_channels, in_channels]
        _check_shape("weight_init", weight_init, shape, self.cls_name)
        weight = HeUniform(math.sqrt(5)) if weight_init is None else weight_init
        self.weight = Parameter(initializer(weight, shape, dtype=dtype), name="weight")
        self.bias: Any = None
        if self.has_bias:
            _check_shape("bias_init", bias_init, [out_channels], self.cls_name)
            bias = Uniform(1 / math.sqrt(in_channels)) if bias_init is None else bias_init
            self.bias = Parameter(initializer(bias, [out_channels], dtype=dtype), name="bias")
            self.bias_add = ops.BiasAdd()
        self.matmul = ops.MatMul(transpose_b=True)
        self.activation: Any = get_activation(activation) if isinstance(activation, str) else activation
        if activation is not None and not isinstance(self.activation, (Cell, Primitive)):
            raise ScriptTypeError(
                f"For '{self.cls_name}', the 'activation' must be str or Cell or Primitive, "
                f"but got {type(activation).__name__}."
            )
        self.activation_flag = self.activation is not None

    def construct(self, x: Any) -> Any:
        x_shape = self.shape_op(x)
        if len(x_shape) != 2:
            x = self.reshape(x, (-1, x_shape[-1]))
        x = self.matmul(x, self.weight)
        if self.has_bias:
            x = self.bias_add(x, self.bias)
        if self.activation_flag:
            x = self.activation(x)
        if len(x_shape) != 2:
            out_shape = (*x_shape[:-1], ops.shape(x)[-1])
            x = self.reshape(x, out_shape)
        return x

    def extend_repr(self) -> str:
        text = f"input_channels={self.in_channels}, output_channels={self.out_channels}"
        if self.has_bias:
            text += f", has_bias={self.has_bias}"
        return f"{text}, activation={self.activation}" if self.activation_flag else text


_CHANNELS = ("out_channels", "in_channels")


def _check_shape(name: str, init: Any, shape: list[int], owner: str) -> None:
    if isinstance(init, Tensor) and list(init.shape) != shape:
        dims = zip(("first", "second"), _CHANNELS[: len(shape)], strict=False)
        wanted = "".join(f", and the {nth} dim must be equal to '{channels}'" for nth, channels in dims)
        got = ", ".join(f"'{channels}': {extent}" for channels, extent in zip(_CHANNELS, shape, strict=False))
        raise ScriptValueError(
            f"For '{owner}', {name.replace('_', ' ')} shape error. The ndim of '{name}' must be equal to {len(shape)}"
            f"{wanted}. But got '{name}': {init}, {got}."
        )


class Dropout(Cell):
    """Set elements to 0 at random in training, and scale the others.

    Parameters
    ----------
    keep_prob : float
        Probability to keep; deprecated.
    p : float, optional
        Probability to set to 0.
    dtype : number type
        Deprecated.
    """

    def __init__(self, keep_prob: float = 0.5, p: float | None = None, dtype: DType = mstype.float32) -> None:
        super().__init__()
        if dtype != mstype.float32:
            logger.warning("This parameter `dtype` will be deleted or invisible in the future. Please don't use it.")
        if p is None:
            logger.warning("For Dropout, this parameter `keep_prob` will be deprecated, please use `p` instead.")
            _check.typed(keep_prob, "keep_prob", [float], self.cls_name)
            if not 0 < keep_prob <= 1:
                raise ScriptValueError(
                    f"For '{self.cls_name}', the 'keep_prob' must be a number in range (0, 1], but got {keep_prob}."
                )
            keep = keep_prob
        else:
            _check.typed(p, "p", [float, int], self.cls_name)
            if not 0 <= p < 1:
                raise ScriptValueError(f"For '{self.cls_name}', the 'p' must be a number in range [0, 1), but got {p}.")
            keep = 1.0 - p
        self.dropout = ops.Dropout(keep, *_get_graph_seed(0, "dropout"))
        self.p = p
        self.keep_prob = keep_prob

    def construct(self, x: Any) -> Any:
        if neutral() or not self.training or self.keep_prob == 1 or self.p == 0:
            return x
        out, _ = self.dropout(x)
        return out

    def extend_repr(self) -> str:
        return f"keep_prob={self.keep_prob}" if self.p is None else f"p={self.p}"


class Flatten(Cell):
    """Join the axes `start_dim` to `end_dim`."""

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim = start_dim
        self.end_dim = end_dim

    def construct(self, x: Any) -> Any:
        if x.ndim == 1 and self.start_dim == 1:  # ops.flatten accepts it [2.10 observed]
            raise ScriptValueError("'start_dim' or 'end_dim' out of range.")
        return ops.flatten(x, start_dim=self.start_dim, end_dim=self.end_dim)


class Identity(Cell):
    """Return the operand."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def construct(self, input: Any) -> Any:
        return input


class OneHot(Cell):
    """Add an axis with `on_value` at the index and `off_value` elsewhere."""

    def __init__(
        self,
        axis: int = -1,
        depth: int = 1,
        on_value: float = 1.0,
        off_value: float = 0.0,
        dtype: DType = mstype.float32,
    ) -> None:
        super().__init__()
        self.onehot = ops.OneHot(axis)
        self.depth = depth
        self.on_value = Tensor(on_value, dtype)
        self.off_value = Tensor(off_value, dtype)

    def construct(self, indices: Any) -> Any:
        return self.onehot(indices, self.depth, self.on_value, self.off_value)


class Pad(Cell):
    """Pad a tensor with zeros or mirror images.

    Parameters
    ----------
    paddings : tuple
        Number of elements before and after each axis; at most four axes.
    mode : str
        ``CONSTANT``, or a mode of `ops.MirrorPad`.
    """

    def __init__(self, paddings: tuple[tuple[int, int], ...], mode: str = "CONSTANT") -> None:
        super().__init__()
        if mode not in ("CONSTANT", "REFLECT", "SYMMETRIC"):
            allowed = ["CONSTANT", "REFLECT", "SYMMETRIC"]
            raise ScriptValueError(f"For 'Pad', the 'mode' must be str and must be in '{allowed}', but got '{mode}'.")
        if not isinstance(paddings, tuple):
            raise ScriptTypeError(
                f"For 'Pad', the type of 'paddings' must be tuple, but got {type(paddings).__name__}."
            )
        if any(len(pair) != 2 for pair in paddings):
            raise ScriptValueError(f"For 'Pad', the dimension of 'paddings' must be (n, 2), but got {paddings}.")
        if len(paddings) > 4:
            raise ScriptValueError(f"For 'Pad', only 'paddings' up to 4 dims is supported, but got {len(paddings)}.")
        self.mode = mode
        constant = mode == "CONSTANT"
        self.paddings = paddings if constant else Tensor(np.array(paddings), mstype.int64)
        self.pad = ops.Pad(paddings) if constant else ops.MirrorPad(mode=mode)

    def construct(self, x: Any) -> Any:
        return self.pad(x) if self.mode == "CONSTANT" else self.pad(x, self.paddings)


def __getattr__(name: str) -> Any:
    return vendored("mindspore.nn.layer.basic", name)
