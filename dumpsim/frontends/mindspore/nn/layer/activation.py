"""``mindspore.nn.layer.activation``."""

from typing import Any

from dumpsim.core.errors import ScriptValueError, nearest
from dumpsim.frontends.mindspore import ops
from dumpsim.frontends.mindspore.nn import _check
from dumpsim.frontends.mindspore.nn.cell import Cell

__all__ = [
    "ELU",
    "GELU",
    "LeakyReLU",
    "LogSoftmax",
    "Mish",
    "ReLU",
    "ReLU6",
    "SiLU",
    "Sigmoid",
    "Softmax",
    "Softplus",
    "Tanh",
    "get_activation",
]


class ReLU(Cell):
    """The element where it is positive, else 0."""

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
    """Gaussian error linear unit, by tanh unless told otherwise."""

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


class Softplus(Cell):
    """Smooth ReLU."""

    def construct(self, x: Any) -> Any:
        return ops.softplus(x)


class Mish(Cell):
    """Product with the hyperbolic tangent of softplus."""

    def construct(self, x: Any) -> Any:
        return ops.mish(x)


_BY_NAME = {
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


def get_activation(name: str | None, prim_name: str | None = None) -> Cell | None:
    """The cell of an activation's name.

    Examples
    --------
    >>> get_activation("relu")
    ReLU()
    """
    if name is None:
        return None
    if name not in _BY_NAME:
        raise ScriptValueError(
            f"the activation {name!r} is not known", where="get_activation", allowed=_BY_NAME,
            nearest=nearest(name, _BY_NAME),
        )  # fmt: skip
    found: Cell = _BY_NAME[name]()
    return found
