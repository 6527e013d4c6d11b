"""Unit roundoffs of number types, and the types that machines compute in."""

from collections.abc import Mapping
from math import sqrt
from types import MappingProxyType
from typing import Any

import numpy as np

from dumpsim.core.errors import BadInputError, nearest

__all__ = ["COMPUTE", "gamma", "largest", "rounded", "smallest", "unit"]

Array = np.ndarray[Any, Any]

# type -> bits of the significand with the hidden one; hifloat8 has 4 near 1 and 2 at the ends of its range
_BITS: Mapping[str, int] = MappingProxyType(
    {
        "float64": 53, "float32": 24, "float16": 11, "bfloat16": 8, "tf32": 11, "hf32": 12, "float8_e4m3fn": 4,
        "float8_e5m2": 3, "hifloat8": 2,
    }
)  # fmt: skip
COMPUTE = ("float32", "tf32", "hf32", "float16", "bfloat16", "float64")
_LARGEST = {"float16": 65504.0, "bfloat16": 3.3895313892515355e38, "float32": 3.4028234663852886e38,
            "float8_e4m3fn": 448.0, "float8_e5m2": 57344.0, "hifloat8": 32768.0}  # fmt: skip
# below these numbers results lose digits, or are zero on devices that flush subnormal numbers
_SMALLEST = {"float16": 2.0**-24, "bfloat16": 2.0**-126, "float32": 2.0**-126, "float64": 2.0**-1022,
             "float8_e4m3fn": 2.0**-9, "float8_e5m2": 2.0**-16, "hifloat8": 2.0**-22}  # fmt: skip
_LAMBDA = 8.0  # see `gamma`


def unit(name: str) -> float:
    """Return the largest relative error of rounding to a type.

    Raises
    ------
    BadInputError
        If the type is not a known float type.

    Examples
    --------
    >>> unit("float32") == 2.0**-24, unit("bfloat16") == 2.0**-8
    (True, True)
    """
    if name not in _BITS:
        raise BadInputError(f"unknown floating-point type {name!r}", allowed=tuple(_BITS), nearest=nearest(name, _BITS))
    return 2.0 ** -_BITS[name]


def gamma(terms: float, unit: float) -> float:
    """Return the error of a sum of `terms` terms, relative to the sum of their absolute values.

    ``terms * unit`` holds for every order of summation. Beyond 64 terms ``8 * sqrt(terms) * unit``, which is smaller,
    holds with a probability of at least ``1 - 2 * terms * exp(-32)`` if rounding errors are independent and have a mean
    of zero (Higham and Mary 2019, A New Approach to Probabilistic Rounding Error Analysis, theorem 2.4).

    Examples
    --------
    >>> gamma(16, 1.0), gamma(10_000, 1.0)
    (16.0, 800.0)
    """
    return min(terms, _LAMBDA * sqrt(terms)) * unit


def largest(name: str) -> float:
    """Return the largest finite number of a type."""
    return _LARGEST.get(name, float(np.finfo(np.float64).max))


def smallest(name: str) -> float:
    """Return the size below which a result of the type may be lost."""
    return _SMALLEST.get(name, 0.0)


def rounded(value: Array, name: str) -> Array:
    """Return the values rounded to the type, in float64."""
    if name in ("float16", "float32"):
        with np.errstate(all="ignore"):
            return value.astype(name).astype(np.float64)
    if name in ("bfloat16", "float8_e4m3fn", "float8_e5m2"):
        import ml_dtypes

        with np.errstate(all="ignore"):
            return value.astype(getattr(ml_dtypes, name)).astype(np.float64)
    return value
