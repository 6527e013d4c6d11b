"""The initializers of parameters.

One number of numpy's global generator seeds the values of one tensor, so that ``np.random.seed`` and
``mindspore.set_seed`` determine them; the values are those of MindSpore's generator (`core.generator`).
"""

import math
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from dumpsim.core import generator
from dumpsim.core.dtype import DType
from dumpsim.core.errors import ScriptRuntimeError, ScriptValueError, nearest
from dumpsim.runtime.unknown import Unknown

__all__ = [
    "Constant",
    "HeNormal",
    "HeUniform",
    "Initializer",
    "Normal",
    "One",
    "TruncatedNormal",
    "Uniform",
    "XavierNormal",
    "XavierUniform",
    "Zero",
    "initializer_of",
]

Array = np.ndarray[Any, Any]


class Initializer:
    """Base of the initializers, which fill an array.

    Parameters
    ----------
    **kwargs
        The settings.
    """

    def __init__(self, **kwargs: Any) -> None:
        self._kwargs = kwargs

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value}' for name, value in self._kwargs.items())})"

    def _initialize(self, arr: Array) -> None:
        raise NotImplementedError("Must be overridden!")

    def __call__(self, arr: Array) -> None:
        self._initialize(arr)

    def array(self, shape: Sequence[int], dtype: DType) -> Any:
        """Return a filled array; on an engine without values, only its type and shape.

        Examples
        --------
        >>> from dumpsim.core.dtype import dtype
        >>> One().array((2,), dtype("float16"))
        array([1., 1.], dtype=float16)
        """
        from dumpsim.runtime.session import Session  # importing Tensor loads no runtime

        if not Session.has_values():
            return Unknown(repr(self), dtype.numpy, tuple(shape))
        wide = np.empty(tuple(shape), np.float64 if dtype.name == "float64" else np.float32)
        if dtype.kind in ("bool", "int", "uint", "complex"):
            wide = np.empty(tuple(shape), dtype.numpy)
        self(wide)
        return wide.astype(dtype.numpy, copy=False)


def _fans(shape: Sequence[int]) -> tuple[int, int]:
    """Return the number of inputs and outputs of one element of the next layer."""
    if len(shape) < 2:
        raise ScriptValueError(
            f"'fan_in' and 'fan_out' can not be computed for tensor with fewer than 2 dimensions, "
            f"but got dimensions {len(shape)}."
        )
    receptive = math.prod(shape[2:])
    return shape[1] * receptive, shape[0] * receptive


def _fan(shape: Sequence[int], mode: str) -> int:
    modes = ["fan_in", "fan_out"]
    if mode not in modes:
        raise ScriptValueError(f"'mode' {mode} not supported, please use one of {modes}")
    return _fans(shape)[modes.index(mode)]


_FIXED_GAINS = MappingProxyType(
    {
        **dict.fromkeys(("linear", "conv1d", "conv2d", "conv3d", "sigmoid"), 1.0),
        **{f"conv{n}d_transpose": 1.0 for n in (1, 2, 3)},
        "tanh": 5.0 / 3.0,
        "relu": math.sqrt(2.0),
    }
)


def _gain(nonlinearity: str, slope: float | None) -> float:
    if nonlinearity in _FIXED_GAINS:
        return _FIXED_GAINS[nonlinearity]
    if nonlinearity == "leaky_relu":
        return math.sqrt(2.0 / (1 + (0.01 if slope is None else slope) ** 2))
    raise ScriptValueError(
        "For 'HeUniform', the argument 'nonlinearity' should be one of ['sigmoid', 'tanh', 'relu' or 'leaky_relu'], "
        f"but got {nonlinearity}.",
        nearest=nearest(nonlinearity, [*_FIXED_GAINS, "leaky_relu"]),
    )


def _seed() -> int:
    """Draw the seed of a tensor's values."""
    return int(np.random.randint(low=1, high=1 << 63, dtype=np.int64))


def _filled(arr: Array, values: Array) -> None:
    """Fill an array with random numbers, which are float32 for every number type."""
    arr[...] = values.astype(np.float32).reshape(arr.shape)


def _uniform(arr: Array, bound: float) -> None:
    _filled(arr, generator.uniform(_seed(), arr.size, -bound, bound))


def _normal(arr: Array, mean: float, sigma: float) -> None:
    if sigma < 0:
        raise ScriptValueError("sigma < 0")
    _filled(arr, generator.normal(_seed(), arr.size, mean, sigma))


class Zero(Initializer):
    """Zeros."""

    def _initialize(self, arr: Array) -> None:
        arr.fill(0)


class One(Initializer):
    """Ones."""

    def _initialize(self, arr: Array) -> None:
        arr.fill(1)


class Constant(Initializer):
    """One value everywhere."""

    def __init__(self, value: Any) -> None:
        super().__init__(value=value)
        self.value = value

    def _initialize(self, arr: Array) -> None:
        arr.fill(self.value)


class Uniform(Initializer):
    """Uniform distribution in [-scale, scale)."""

    def __init__(self, scale: float = 0.07) -> None:
        super().__init__(scale=scale)
        self.scale = scale

    def _initialize(self, arr: Array) -> None:
        _uniform(arr, self.scale)


class Normal(Initializer):
    """Normal distribution with the given mean and standard deviation."""

    def __init__(self, sigma: float = 0.01, mean: float = 0.0) -> None:
        super().__init__(sigma=sigma, mean=mean)
        self.sigma, self.mean = sigma, mean

    def _initialize(self, arr: Array) -> None:
        _normal(arr, self.mean, self.sigma)


class TruncatedNormal(Initializer):
    """Normal distribution truncated to the bounds `a` and `b`, by the inverse of the distribution function."""

    def __init__(self, sigma: float = 0.01, mean: float = 0.0, a: float = -2.0, b: float = 2.0) -> None:
        super().__init__(sigma=sigma, mean=mean, a=a, b=b)
        self.sigma, self.mean, self.a, self.b = sigma, mean, a, b

    def _initialize(self, arr: Array) -> None:
        if self.a >= self.b:
            raise ScriptValueError(f"the interval [{self.a}, {self.b}] is empty", where="TruncatedNormal")
        if self.sigma < 0:
            raise ScriptValueError("sigma < 0")
        if not self.sigma:
            raise ScriptRuntimeError("TruncatedNormal: invalid sigma 0.")  # [observed 2.10]
        _filled(arr, generator.truncated_normal(_seed(), arr.size, self.a, self.b, self.mean, self.sigma))


class XavierUniform(Initializer):
    """Uniform distribution bounded by ``gain * sqrt(6 / (fan_in + fan_out))``."""

    def __init__(self, gain: float = 1) -> None:
        super().__init__(gain=gain)
        self.gain = gain

    def _initialize(self, arr: Array) -> None:
        _uniform(arr, self.gain * math.sqrt(6.0 / sum(_fans(arr.shape))))


class XavierNormal(Initializer):
    """Normal distribution with standard deviation ``gain * sqrt(2 / (fan_in + fan_out))``."""

    def __init__(self, gain: float = 1) -> None:
        super().__init__(gain=gain)
        self.gain = gain

    def _initialize(self, arr: Array) -> None:
        _normal(arr, 0.0, self.gain * math.sqrt(2.0 / sum(_fans(arr.shape))))


class _He(Initializer):
    """Base of HeUniform and HeNormal: computes the standard deviation."""

    def __init__(self, negative_slope: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu") -> None:
        super().__init__(negative_slope=negative_slope, mode=mode, nonlinearity=nonlinearity)
        self.negative_slope, self.mode, self.nonlinearity = negative_slope, mode, nonlinearity

    def _deviation(self, arr: Array) -> float:
        return _gain(self.nonlinearity, self.negative_slope) / math.sqrt(_fan(arr.shape, self.mode))


class HeUniform(_He):
    """Uniform distribution bounded by ``sqrt(3) * gain / sqrt(fan)``."""

    def _initialize(self, arr: Array) -> None:
        _uniform(arr, math.sqrt(3.0) * self._deviation(arr))


class HeNormal(_He):
    """Normal distribution with standard deviation ``gain / sqrt(fan)``."""

    def _initialize(self, arr: Array) -> None:
        _normal(arr, 0.0, self._deviation(arr))


_ALIASES: Mapping[str, Callable[[], Initializer]] = MappingProxyType(
    {
        "zeros": Zero,
        "zero": Zero,
        "ones": One,
        "one": One,
        "normal": Normal,
        "uniform": Uniform,
        "truncated_normal": TruncatedNormal,
        "truncatednormal": TruncatedNormal,
        "xavier_uniform": XavierUniform,
        "xavieruniform": XavierUniform,
        "xavier_normal": XavierNormal,
        "xaviernormal": XavierNormal,
        "he_uniform": HeUniform,
        "heuniform": HeUniform,
        "he_normal": HeNormal,
        "henormal": HeNormal,
    }
)


def initializer_of(init: Any) -> Initializer:
    """Return the initializer for an Initializer, a name or a number.

    Raises
    ------
    ScriptValueError
        For an unknown name.
    """
    if isinstance(init, Initializer):
        return init
    if isinstance(init, str):
        if init.lower() not in _ALIASES:
            raise ScriptValueError(
                f"For 'initializer', the class corresponding to '{init}' was not found.",
                allowed=_ALIASES,
                nearest=nearest(init, _ALIASES),
            )
        return _ALIASES[init.lower()]()
    return Constant(init)
