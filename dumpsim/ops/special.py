"""The error function, which numpy lacks: piecewise polynomials in float64, relative error below 2e-13."""

from collections.abc import Callable
from math import pi, sqrt
from typing import Any

import numpy as np

__all__ = ["erf", "erfc"]

Array = np.ndarray[Any, Any]

# erf(x) / x as a polynomial in x**2 on |x| <= 1, and log(erfc(x) exp(x**2) / t) with t = 2 / (2 + x) as a Chebyshev
# series on 1/14 <= t <= 2/3; both interpolate the C library's functions at Chebyshev points
_SMALL = (
    1.1283791670955112, -0.3761263890319338, 0.11283791671839973, -0.026866170838092094,
    0.005223979597772021, -0.0008548442074743133, 0.0001205952942630214, -1.5025786130692857e-05,
    1.8051360020441976e-06, -3.300002246130304e-07, 1.2511480093102757e-07, -4.32127518121026e-08,
    7.069572587470213e-09,
)  # fmt: skip
_TAIL = (
    -0.8307835598888228, 0.37557607265256954, 0.012888420496944284, -0.0015887210944039052,
    -0.00025159508829524266, 1.3824621795409898e-05, 5.446649669565798e-06, -1.636043118839672e-07,
    -1.333175573961585e-07, 3.4359606442136123e-09, 3.540384416661643e-09, -1.4142191475351195e-10,
    -9.680209395264198e-11, 7.045289389933033e-12, 2.5301926477742517e-12, -3.216567771135046e-13,
    -6.091431683055672e-14, 1.6265987326118228e-14, -1.5554774291313902e-16, -1.017151154924137e-15,
    1.912038585153466e-15,
)  # fmt: skip
_LOW, _HIGH = 1 / 14, 2 / 3


def _series(x: Array) -> Array:
    """Return erf for |x| <= 1."""
    square = x * x
    total = np.full_like(x, _SMALL[-1])
    for coefficient in _SMALL[-2::-1]:
        total = total * square + coefficient
    return x * total


def _tail(x: Array) -> Array:
    """Return erfc for x >= 1."""
    x = np.minimum(x, 26.0)
    t = 2.0 / (2.0 + x)
    u = (2.0 * t - _LOW - _HIGH) / (_HIGH - _LOW)
    ahead = np.zeros_like(x)
    here = np.zeros_like(x)
    for coefficient in _TAIL[:0:-1]:
        ahead, here = here, 2.0 * u * here - ahead + coefficient
    return t * np.exp(-x * x + u * here - ahead + _TAIL[0])


def _own(x: Array, function: Callable[[Array], Array]) -> Array:
    """Apply a function by the `apply` method of an array type, which takes the derivative too."""
    found: Array = x.apply(function, _bell)  # type: ignore[attr-defined]
    return found


def _bell(x: Array) -> Array:
    """Return the absolute derivative of erf and erfc."""
    slope: Array = 2 / sqrt(pi) * np.exp(-x * x)
    return slope


def erf(x: Array) -> Array:
    """Return the error function in the number type of `x`; array types with a method `apply` are supported.

    Examples
    --------
    >>> float(erf(np.array(0.5)).round(12))
    0.520499877813
    """
    if hasattr(x, "apply"):
        return _own(x, erf)
    x = np.asarray(x)
    wide = x.astype(np.float64)
    size = np.abs(wide)
    far = np.copysign(1.0 - _tail(np.maximum(size, 1.0)), wide)
    return np.asarray(np.where(size <= 1.0, _series(np.clip(wide, -1.0, 1.0)), far), x.dtype)


def erfc(x: Array) -> Array:
    """Return the complementary error function in the number type of `x`; see `erf`."""
    if hasattr(x, "apply"):
        return _own(x, erfc)
    x = np.asarray(x)
    wide = x.astype(np.float64)
    size = np.abs(wide)
    tail = _tail(np.maximum(size, 1.0))
    far = np.where(np.signbit(wide), 2.0 - tail, tail)
    return np.asarray(np.where(size <= 1.0, 1.0 - _series(np.clip(wide, -1.0, 1.0)), far), x.dtype)
