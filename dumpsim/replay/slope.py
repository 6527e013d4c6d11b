"""How functions propagate the errors of their operands, and their own rounding errors."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np

from dumpsim.replay.unit import gamma

__all__ = ["MACHINES", "ROUGH", "Machine", "Slope"]

Values = Sequence[Any]
Rule = Callable[[Values, Values, Any, float], Any]

_DIVIDE = 4.0  # unit roundoffs of division and square root: within two units in the last place
_FUNCTION = 8.0  # unit roundoffs of other functions: within four units in the last place


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """A machine: its precision, and the accuracy of its functions.

    Attributes
    ----------
    unit : float
        Unit roundoff of the type that it computes in.
    slopes : mapping of str to Slope
        The rules of numpy's functions by name.
    rough : mapping of str to (float, float)
        Operators that the machine computes in another way than the operator table: additional unit roundoffs, absolute
        and relative to the result.
    """

    unit: float
    slopes: Mapping[str, "Slope"]
    rough: Mapping[str, tuple[float, float]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Slope:
    """The rule of one function.

    Attributes
    ----------
    propagate : callable
        ``propagate(values, bounds, result, unit)`` returns the error of the result due to errors of the operands.
    units : float
        The function's own error in unit roundoffs, relative to the result.
    """

    propagate: Rule
    units: float


def _none(values: Values, bounds: Values, result: Any, unit: float) -> Any:
    return 0.0


def _sum(values: Values, bounds: Values, result: Any, unit: float) -> Any:
    return bounds[0] + bounds[1]


def _same(values: Values, bounds: Values, result: Any, unit: float) -> Any:
    return np.array(bounds[0])  # a copy, since results may be written


def _larger(values: Values, bounds: Values, result: Any, unit: float) -> Any:
    return np.maximum(bounds[0], bounds[1])


def _product(values: Values, bounds: Values, result: Any, unit: float) -> Any:
    a, b = values
    return _times(np.abs(a), bounds[1]) + _times(np.abs(b), bounds[0]) + bounds[0] * bounds[1]


def _times(size: Any, bound: Any) -> Any:
    """Multiply, but return zero for an error of zero, even if the value is infinite."""
    return 0.0 if np.ndim(bound) == 0 and bound == 0 else np.where(bound == 0, 0.0, size * bound)


def _quotient(values: Values, bounds: Values, result: Any, unit: float) -> Any:
    passed = bounds[0] + _times(np.abs(result), bounds[1])
    return np.where(passed == 0, 0.0, passed / np.maximum(np.abs(values[1]) - bounds[1], 0.0))


def _root(values: Values, bounds: Values, result: Any, unit: float) -> Any:
    return np.where(bounds[0] == 0, 0.0, np.minimum(bounds[0] / result, np.sqrt(bounds[0])))


def _exponential(values: Values, bounds: Values, result: Any, unit: float) -> Any:
    # the argument is reduced in the same type: one rounding of it is a relative error of its size
    passed = np.abs(result) * (np.expm1(bounds[0]) + unit * np.abs(values[0]))
    return np.where(np.isfinite(values[0]), passed, 0.0)


def _by(slope: Callable[[Any, Any], Any]) -> Rule:
    """Return the rule of a function of one operand with the derivative ``slope(value, result)``."""

    def rule(values: Values, bounds: Values, result: Any, unit: float) -> Any:
        return np.where(bounds[0] == 0, 0.0, np.abs(slope(values[0], result)) * bounds[0])

    return rule


def _by_both(left: Callable[..., Any], right: Callable[..., Any]) -> Rule:
    """Return the rule of a function of two operands from its partial derivatives."""

    def rule(values: Values, bounds: Values, result: Any, unit: float) -> Any:
        return _times(np.abs(left(*values, result)), bounds[0]) + _times(np.abs(right(*values, result)), bounds[1])

    return rule


def _power(values: Values, bounds: Values, result: Any, unit: float) -> Any:
    base, exponent = values
    size = np.abs(np.where(base == 0, 0.0, exponent * np.log(np.abs(base))))
    passed = _times(np.abs(exponent * np.power(base, exponent - 1)), bounds[0])
    passed = passed + _times(np.abs(result * np.log(np.abs(base))), bounds[1])
    return passed + np.abs(result) * unit * np.where(np.isfinite(size), size, 0.0)


def _step(function: Callable[[Any], Any]) -> Rule:
    """Return the rule of rounding to integers: an error at an edge changes the result by one."""

    def rule(values: Values, bounds: Values, result: Any, unit: float) -> Any:
        return np.abs(function(values[0] + bounds[0]) - function(values[0] - bounds[0]))

    return rule


def _whole_quotient(values: Values, bounds: Values, result: Any, unit: float) -> Any:
    """A quotient near an integer may be rounded to it before it is truncated."""
    return np.where(_near(values, bounds, unit), 1.0, 0.0)


def _remainder(values: Values, bounds: Values, result: Any, unit: float) -> Any:
    quotient = np.abs(values[0] / values[1])
    passed = bounds[0] + _times(quotient + 1, bounds[1]) + unit * np.abs(values[0])
    return np.where(_near(values, bounds, unit), np.abs(values[1]), 0.0) + np.where(np.isfinite(passed), passed, 0.0)


def _near(values: Values, bounds: Values, unit: float) -> Any:
    quotient = values[0] / values[1]
    slack = 4 * unit * np.abs(quotient) + (bounds[0] + _times(np.abs(quotient), bounds[1])) / np.abs(values[1])
    return np.abs(quotient - np.rint(quotient)) <= slack


def _contraction(values: Values, bounds: Values, result: Any, unit: float) -> Any:
    a, b = (np.abs(one) for one in values)
    error = gamma(a.shape[-1], unit) * np.matmul(a, b)
    if np.ndim(bounds[0]) and np.any(bounds[0]):
        error = error + np.matmul(bounds[0], b)
    if np.ndim(bounds[1]) and np.any(bounds[1]):
        error = error + np.matmul(a, bounds[1])
    return error


_SLOPES: Mapping[str, Slope] = MappingProxyType(
    {
        "add": Slope(_sum, 1),
        "subtract": Slope(_sum, 1),
        "multiply": Slope(_product, 1),
        "divide": Slope(_quotient, _DIVIDE),
        "true_divide": Slope(_quotient, _DIVIDE),
        "square": Slope(lambda v, b, r, u: b[0] * (2 * np.abs(v[0]) + b[0]), 1),
        "sqrt": Slope(_root, _DIVIDE),
        "reciprocal": Slope(lambda v, b, r, u: _quotient((r, v[0]), (0.0, b[0]), r, u), _DIVIDE),
        "matmul": Slope(_contraction, 0),
        "negative": Slope(_same, 0),
        "positive": Slope(_same, 0),
        "absolute": Slope(_same, 0),
        "fabs": Slope(_same, 0),
        "copysign": Slope(_same, 0),
        "maximum": Slope(_larger, 0),
        "minimum": Slope(_larger, 0),
        "fmax": Slope(_larger, 0),
        "fmin": Slope(_larger, 0),
        "sign": Slope(_step(np.sign), 0),
        "floor": Slope(_step(np.floor), 0),
        "ceil": Slope(_step(np.ceil), 0),
        "trunc": Slope(_step(np.trunc), 0),
        "rint": Slope(_step(np.rint), 0),
        "heaviside": Slope(_none, 0),
        "floor_divide": Slope(_whole_quotient, 0),
        "remainder": Slope(_remainder, 1),
        "fmod": Slope(_remainder, 1),
        "power": Slope(_power, _FUNCTION),
        "exp": Slope(_exponential, _FUNCTION),
        "exp2": Slope(_exponential, _FUNCTION),
        "expm1": Slope(_by(lambda x, y: y + 1), _FUNCTION),
        "log": Slope(_by(lambda x, y: 1 / x), _FUNCTION),
        "log2": Slope(_by(lambda x, y: 1.5 / x), _FUNCTION),
        "log10": Slope(_by(lambda x, y: 0.5 / x), _FUNCTION),
        "log1p": Slope(_by(lambda x, y: 1 / (1 + x)), _FUNCTION),
        "logaddexp": Slope(_larger, _FUNCTION),
        "logaddexp2": Slope(_larger, _FUNCTION),
        "tanh": Slope(_by(lambda x, y: 1 - y * y), _FUNCTION),
        "sinh": Slope(_by(lambda x, y: np.cosh(x)), _FUNCTION),
        "cosh": Slope(_by(lambda x, y: np.sinh(x)), _FUNCTION),
        "sin": Slope(_by(lambda x, y: np.cos(x)), _FUNCTION),
        "cos": Slope(_by(lambda x, y: np.sin(x)), _FUNCTION),
        "tan": Slope(_by(lambda x, y: 1 + y * y), _FUNCTION),
        "arcsin": Slope(_by(lambda x, y: 1 / np.sqrt(1 - x * x)), _FUNCTION),
        "arccos": Slope(_by(lambda x, y: 1 / np.sqrt(1 - x * x)), _FUNCTION),
        "arctan": Slope(_by(lambda x, y: 1 / (1 + x * x)), _FUNCTION),
        "arcsinh": Slope(_by(lambda x, y: 1 / np.sqrt(1 + x * x)), _FUNCTION),
        "arccosh": Slope(_by(lambda x, y: 1 / np.sqrt(x * x - 1)), _FUNCTION),
        "arctanh": Slope(_by(lambda x, y: 1 / (1 - x * x)), _FUNCTION),
        "hypot": Slope(_sum, _FUNCTION),
        "arctan2": Slope(_by_both(lambda a, b, r: b / (a * a + b * b), lambda a, b, r: a / (a * a + b * b)), _FUNCTION),
    }
)


def _rough(rule: Slope, units: float, constant: float = 0.0, argument: float = 0.0) -> Slope:
    """Return the rule of a less accurate function: `units` of the result, plus `constant` and `argument` times |x|."""

    def propagate(values: Values, bounds: Values, result: Any, unit: float) -> Any:
        more = np.abs(values[0] * result) * argument if argument else 0.0
        return rule.propagate(values, bounds, result, unit) + unit * (constant + np.where(np.isfinite(more), more, 0.0))

    return Slope(propagate, units)


def _rational_tanh(values: Values, bounds: Values, result: Any, unit: float) -> Any:
    size = np.abs(values[0]) + bounds[0]
    lost = np.where(size < _CLIP, _TANH * (size / _CLIP) ** 9, 1 - np.abs(result))
    return _SLOPES["tanh"].propagate(values, bounds, result, unit) + lost


_CLIP = 5.0  # MindSpore's tanh on a CPU is a quotient of polynomials below 5, and 1 from there on [2.10 observed]
_TANH = 1.1e-4  # its error just below 5; it grows with the ninth power

# MindSpore 2.10's own vector functions on a CPU, measured on [-80, 80]: exp within 5 units times the argument, in other
# kernels (elu, sigmoid) within 60; log within 14 and, near 1, 3 absolute; expm1 and log1p are exp - 1 and log(1 + x)
_CPU: Mapping[str, Slope] = MappingProxyType(
    {
        **_SLOPES,
        "exp": _rough(_SLOPES["exp"], 64, argument=8),
        "expm1": _rough(_SLOPES["expm1"], 64, constant=64, argument=8),
        "log": _rough(_SLOPES["log"], 16, constant=4),
        "log1p": _rough(_SLOPES["log1p"], 16, constant=16),
        "logaddexp": _rough(_SLOPES["logaddexp"], 64, constant=64),
        "tanh": Slope(_rational_tanh, 64),
    }
)

# "device" must be as accurate as CUDA documents for its functions: within 4 units in the last place
MACHINES: Mapping[str, Mapping[str, Slope]] = MappingProxyType({"device": _SLOPES, "cpu": _CPU})

# Softplus on a CPU is log(1 + exp(x)) with imprecise functions: within 60 units up to 24, 128 at 30; Adagrad's step
# is off by up to one unit in the last place [2.10 observed]
ROUGH: Mapping[str, Mapping[str, tuple[float, float]]] = MappingProxyType(
    {"device": MappingProxyType({}), "cpu": MappingProxyType({"Softplus": (64.0, 4.0), "ApplyAdagrad": (0.0, 2.0)})}
)
