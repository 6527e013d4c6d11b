"""``mindspore.nn.layer.activation``."""

from types import MappingProxyType
from typing import Any

import numpy as np

from dumpsim.core.errors import ScriptTypeError, ScriptValueError, nearest
from dumpsim.frontends.mindspore import ops
from dumpsim.frontends.mindspore._standin import vendored
from dumpsim.frontends.mindspore.common import dtype as mstype
from dumpsim.frontends.mindspore.common.parameter import Parameter
from dumpsim.frontends.mindspore.common.tensor import Tensor
from dumpsim.frontends.mindspore.nn import _check
from dumpsim.frontends.mindspore.nn.cell import Cell

__all__ = [
    "CELU",
    "ELU",
    "GELU",
    "GLU",
    "FastGelu",
    "HShrink",
    "HSigmoid",
    "HSwish",
    "Hardtanh",
    "LeakyReLU",
    "LogSigmoid",
    "LogSoftmax",
    "Mish",
    "PReLU",
    "ReLU",
    "ReLU6",
    "SeLU",
    "SiLU",
    "Sigmoid",
    "SoftShrink",
    "Softmax",
    "Softmax2d",
    "Softmin",
    "Softsign",
    "Tanh",
    "Tanhshrink",
    "Threshold",
    "get_activation",
]


class ReLU(Cell):
    """Rectified linear unit: the element where it is positive, else 0."""

    def __init__(self) -> None:
        super().__init__()
        self.relu = ops.ReLU()

    def construct(self, input: Any) -> Any:
        return self.relu(input)


class ReLU6(Cell):
    """ReLU, at most 6."""

    def __init__(self) -> None:
        super().__init__()
        self.relu6 = ops.ReLU6()

    def construct(self, x: Any) -> Any:
        return self.relu6(x)


class GELU(Cell):
    """Gaussian error linear unit, approximated by tanh by default."""

    def __init__(self, approximate: bool = True) -> None:
        super().__init__()
        _check.bool_value(approximate, "approximate", self.cls_name)
        self.approximate = "tanh" if approximate else "none"

    def construct(self, x: Any) -> Any:
        return ops.gelu(x, approximate=self.approximate)


class Tanh(Cell):
    """Hyperbolic tangent."""

    def __init__(self) -> None:
        super().__init__()
        self.tanh = ops.Tanh()

    def construct(self, x: Any) -> Any:
        return self.tanh(x)


class Sigmoid(Cell):
    """Logistic function."""

    def __init__(self) -> None:
        super().__init__()
        self.sigmoid = ops.Sigmoid()

    def construct(self, x: Any) -> Any:
        return self.sigmoid(x)


class Softmax(Cell):
    """Exponentials along an axis, divided by their sum."""

    def __init__(self, axis: int = -1) -> None:
        super().__init__()
        self.softmax = ops.Softmax(axis)

    def construct(self, input: Any) -> Any:
        return self.softmax(input)


class LogSoftmax(Cell):
    """Logarithm of Softmax."""

    def __init__(self, axis: int = -1) -> None:
        super().__init__()
        self.log_softmax = ops.LogSoftmax(axis)

    def construct(self, x: Any) -> Any:
        return self.log_softmax(x)


class SiLU(Cell):
    """Product with the sigmoid."""

    def construct(self, x: Any) -> Any:
        return ops.silu(x)


class LeakyReLU(Cell):
    """The element where it is positive, else `alpha` times it."""

    def __init__(self, alpha: float = 0.2) -> None:
        super().__init__()
        self.alpha = alpha

    def construct(self, x: Any) -> Any:
        out = ops.leaky_relu(x, self.alpha)
        return out  # noqa: RET504 - the IR shows the name


class ELU(Cell):
    """The element where it is positive, else ``alpha (exp(x) - 1)``."""

    def __init__(self, alpha: float = 1.0) -> None:
        super().__init__()
        self.elu = ops.Elu(alpha)

    def construct(self, x: Any) -> Any:
        return self.elu(x)


class Mish(Cell):
    """Product with the hyperbolic tangent of softplus."""

    def construct(self, x: Any) -> Any:
        return ops.mish(x)


class HSwish(Cell):
    """Product with HSigmoid."""

    def __init__(self) -> None:
        super().__init__()
        self.hswish = ops.HSwish()

    def construct(self, input: Any) -> Any:
        return self.hswish(input)


class HSigmoid(Cell):
    """``relu6(x + 3) / 6``."""

    def __init__(self) -> None:
        super().__init__()
        self.hsigmoid = ops.HSigmoid()

    def construct(self, input: Any) -> Any:
        return self.hsigmoid(input)


class SeLU(Cell):
    """Scaled ELU."""

    def __init__(self) -> None:
        super().__init__()
        self.selu = ops.SeLU()

    def construct(self, input_x: Any) -> Any:
        return self.selu(input_x)


class FastGelu(Cell):
    """GELU approximated by a sigmoid."""

    def __init__(self) -> None:
        super().__init__()
        self.fast_gelu = ops.FastGeLU()

    def construct(self, x: Any) -> Any:
        return self.fast_gelu(x)


class Softsign(Cell):
    """``x / (1 + |x|)``."""

    def __init__(self) -> None:
        super().__init__()
        self.softsign = ops.Softsign()

    def construct(self, x: Any) -> Any:
        return self.softsign(x)


class Softmin(Cell):
    """Softmax of the negated elements."""

    def __init__(self, axis: int = -1) -> None:
        super().__init__()
        self.axis = axis

    def construct(self, x: Any) -> Any:
        return ops.Softmax(self.axis)(-1 * x)


class Softmax2d(Cell):
    """Softmax over the channels of NCHW or CHW."""

    def __init__(self) -> None:
        super().__init__()
        self.softmax = ops.Softmax(axis=-3)
        self.shape = ops.Shape()

    def construct(self, x: Any) -> Any:
        rank = len(self.shape(x))
        if rank not in (3, 4):
            raise ScriptValueError(f"For '{self.cls_name}', the in_shape must have 3 or 4 dims, but got {rank}.")
        return self.softmax(x)


class LogSigmoid(Cell):
    """Logarithm of the sigmoid, by five operators as in MindSpore."""

    def __init__(self) -> None:
        super().__init__()
        self.mul = ops.Mul()
        self.exp = ops.Exp()
        self.add = ops.Add()
        self.rec = ops.Reciprocal()
        self.log = ops.Log()

    def construct(self, input_x: Any) -> Any:
        neg_input = self.mul(input_x, -1)
        exp_neg_input = self.exp(neg_input)
        exp_neg_input_1 = self.add(exp_neg_input, 1)
        rec_exp_neg_input_1 = self.rec(exp_neg_input_1)
        ret = self.log(rec_exp_neg_input_1)
        return ret  # noqa: RET504 - the IR shows the name


class Tanhshrink(Cell):
    """``x - tanh(x)``; integers become Float32."""

    def construct(self, x: Any) -> Any:
        return ops.tanhshrink(x)


class Hardtanh(Cell):
    """The element, clipped to two bounds."""

    def __init__(self, min_val: float = -1.0, max_val: float = 1.0) -> None:
        super().__init__()
        if min_val >= max_val:
            raise ScriptValueError(f"For Hardtanh, min_val should be less than max_val,but got {min_val} and {max_val}")
        self.min_val, self.max_val = min_val, max_val

    def construct(self, x: Any) -> Any:
        kind = x.dtype
        x = ops.maximum(x, self.min_val)
        x = ops.minimum(x, self.max_val)
        return x.astype(kind)


class Threshold(Cell):
    """The element where it is above a threshold, else a value."""

    def __init__(self, threshold: float, value: float) -> None:
        super().__init__()
        self.threshold, self.value = threshold, value

    def construct(self, input_x: Any) -> Any:
        cond = ops.greater(input_x, self.threshold)
        value = ops.fill(input_x.dtype, input_x.shape, self.value)
        return ops.select(cond, input_x, value)


class CELU(Cell):
    """The element where it is positive, else ``alpha * (exp(x / alpha) - 1)``."""

    def __init__(self, alpha: float = 1.0) -> None:
        super().__init__()
        self.celu = ops.CeLU(alpha=alpha)

    def construct(self, x: Any) -> Any:
        return self.celu(x)


class HShrink(Cell):
    """The element where its absolute value is greater than `lambd`, else 0."""

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.hshrink = ops.HShrink(lambd)

    def construct(self, input: Any) -> Any:
        return self.hshrink(input)


class SoftShrink(Cell):
    """The element moved towards 0 by `lambd`; 0 where its absolute value is at most `lambd`."""

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.softshrink = ops.SoftShrink(lambd)

    def construct(self, input: Any) -> Any:
        return self.softshrink(input)


class GLU(Cell):
    """The first half of the axis times the sigmoid of the second."""

    def __init__(self, axis: int = -1) -> None:
        super().__init__()
        self.dim = axis
        self.spilt = ops.Split(axis=axis, output_num=2)
        self.sigmoid = ops.Sigmoid()

    def construct(self, x: Any) -> Any:
        x1, x2 = self.spilt(x)
        x2 = self.sigmoid(x2)
        return x1 * x2


class PReLU(Cell):
    """The element where it is positive, else the element times a trained slope.

    Parameters
    ----------
    channel : int
        Number of slopes: 1 or the number of channels.
    w : float, list of float or Tensor
        The initial slopes.

    Examples
    --------
    >>> PReLU(3).w.shape
    (3,)
    """

    def __init__(self, channel: int = 1, w: Any = 0.25) -> None:
        super().__init__()
        _check.positive_int(channel, "channel", self.cls_name)
        if isinstance(w, (float, np.float32)):
            slopes = Tensor(np.full((channel,), w, np.float32))
        elif isinstance(w, list):
            if len(w) != channel:
                raise ScriptValueError(
                    f"For '{self.cls_name}', the length of 'w' must be equal to the 'channel' when the 'w' is a list, "
                    f"but got the length of 'w': {len(w)}, the 'channel': {channel}."
                )
            slopes = Tensor(w, mstype.float32)
        elif isinstance(w, Tensor):
            if tuple(w.shape) != (channel,):
                raise ScriptValueError(
                    f"For '{self.cls_name}', the dimension of 'w' must be 1, and the elements number should be equal "
                    f"to the 'channel' when the 'w' is a tensor, but got 'w' shape {w.shape}, the 'channel' {channel}."
                )
            slopes = w
        else:
            raise ScriptTypeError(
                f"For '{self.cls_name}', the 'w' only supported float, list and tensor, but got {type(w).__name__}."
            )
        self.w = Parameter(slopes, name="a")
        self.prelu = ops.PReLU()

    def construct(self, x: Any) -> Any:
        return self.prelu(x, ops.cast(self.w, x.dtype))


_BY_NAME = MappingProxyType(
    {
        "softmin": Softmin,
        "softmax2d": Softmax2d,
        "fast_gelu": FastGelu,
        "hswish": HSwish,
        "hsigmoid": HSigmoid,
        "logsigmoid": LogSigmoid,
        "mish": Mish,
        "prelu": PReLU,
        "softsign": Softsign,
        "tanhshrink": Tanhshrink,
        "threshold": Threshold,
        "hardtanh": Hardtanh,
        "softmax": Softmax,
        "logsoftmax": LogSoftmax,
        "relu": ReLU,
        "silu": SiLU,
        "relu6": ReLU6,
        "tanh": Tanh,
        "gelu": GELU,
        "elu": ELU,
        "sigmoid": Sigmoid,
        "leakyrelu": LeakyReLU,
    }
)


class _UnknownActivationError(ScriptValueError, KeyError):
    """The KeyError for an unknown name of an activation."""

    __str__ = ScriptValueError.__str__


def get_activation(name: str | None, prim_name: str | None = None) -> Cell | None:
    """Create the activation with the given name.

    Examples
    --------
    >>> get_activation("relu")
    ReLU()
    """
    if name is None:
        return None
    if name not in _BY_NAME:
        raise _UnknownActivationError(
            f"The 'name' must be in {list(_BY_NAME)}, but got {name}.", nearest=nearest(name, _BY_NAME)
        )
    found: Cell = _BY_NAME[name]()
    return found


def __getattr__(name: str) -> Any:
    return vendored("mindspore.nn.layer.activation", name)
