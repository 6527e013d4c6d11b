"""The difference of two arrays, and its texts in the tables."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from dumpsim.analysis.tolerance import Tolerance
from dumpsim.analysis.verdict import Outcome, judge_arrays

__all__ = [
    "ArrayDifference",
    "compare_arrays",
    "mean_max_min",
    "percent",
    "truncated",
]

Array = np.ndarray[Any, Any]

_BLOCK = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrayDifference:
    """The difference of two arrays, as the tables show it.

    Attributes
    ----------
    outcome : Outcome
        Whether they agree.
    ratio : float
        Share of the elements that are close.
    cosine : float
        Cosine of the angle between the arrays as vectors; NaN if one of them is zero.
    mean, max : float
        Of the absolute differences; the mean over the elements that differ.
    same_shape : bool
    """

    outcome: Outcome
    ratio: float
    cosine: float
    mean: float
    max: float
    same_shape: bool = True


def compare_arrays(
    origin: Array, target: Array, tolerance: Tolerance, *, equal_nan: bool = False, exact: bool = False
) -> ArrayDifference:
    """Compare two arrays.

    Parameters
    ----------
    origin, target : ndarray
        Bools and integers count as float64, narrow floats as float32, complex numbers as pairs.
    tolerance : Tolerance
    equal_nan : bool
    exact : bool
        Compute exactly as 1.0.17 does on this machine: sums by numpy's BLAS, narrow floats with their overflow, and
        only real parts.
    """
    if origin.shape != target.shape:
        outcome = judge_arrays(origin, target, tolerance, equal_nan=equal_nan)
        nan = math.nan
        return ArrayDifference(outcome=outcome, ratio=0.0, cosine=nan, mean=nan, max=nan, same_shape=False)
    one, other = (_floats(array, exact=exact) for array in (origin, target))
    if exact:
        outcome = _outcome_of_1_0_17(one, other, tolerance, equal_nan=equal_nan)
    else:
        outcome = judge_arrays(origin, target, tolerance, equal_nan=equal_nan)
    differs = one != other
    if not differs.any():
        return ArrayDifference(outcome=outcome, ratio=1.0, cosine=1.0, mean=0.0, max=0.0)
    with np.errstate(all="ignore"):
        apart = np.abs(one[differs] - other[differs])
        mean = apart.mean()
    return ArrayDifference(
        outcome=outcome,
        ratio=(outcome.count - outcome.outside) / outcome.count,
        cosine=(_blas_cosine if exact else _cosine)(one, other),
        mean=mean,
        max=apart.max(),
    )


def _outcome_of_1_0_17(one: Array, other: Array, tolerance: Tolerance, *, equal_nan: bool) -> Outcome:
    """As `judge_arrays`, in the number type of the arrays."""
    with np.errstate(all="ignore"):
        close = np.isclose(one, other, rtol=tolerance.rtol, atol=tolerance.atol, equal_nan=equal_nan)
    outside = int(close.size - np.count_nonzero(close))
    return Outcome(verdict="differs" if outside else "close", outside=outside, count=close.size, tolerance=tolerance)


def truncated(value: Any) -> str:
    """Truncate a number to five digits, as the tables print it. [spec api_dump 2.3]

    Examples
    --------
    >>> truncated(0.999999), truncated(-0.000019), truncated(float("nan"))
    ('0.99999', '-0.00001', 'nan')
    """
    if not math.isfinite(value):
        return str(float(value))
    with np.errstate(over="ignore"):
        scaled = value * 1e5  # in the number type of the value: a float32 keeps its seven figures
    return f"{int(scaled) / 1e5:.5f}" if math.isfinite(scaled) else f"{float(value):.5f}"


def percent(ratio: float) -> str:
    """Truncate a ratio to a hundredth of a percent."""
    return f"{int(ratio * 10000) / 10000:.2%}"


def mean_max_min(array: Array, *, exact: bool = False) -> tuple[Any, Any, Any]:
    """Return mean, maximum and minimum of an array."""
    values = _floats(array, exact=exact)
    if not values.size:
        return math.nan, math.nan, math.nan
    with np.errstate(all="ignore"):
        return values.mean(), values.max(), values.min()


def _floats(array: Array, *, exact: bool) -> Array:
    """The values as float32 or float64, or as 1.0.17 takes them."""
    if exact:
        return array if array.dtype.kind == "f" else np.real(array).astype(np.float64)
    if array.dtype.kind == "c":
        return array.astype(np.complex128).view(np.float64)
    wide = array.dtype.kind in "iub" or array.dtype == np.float64
    return array.astype(np.float64 if wide else np.float32, copy=False)


def _cosine(one: Array, other: Array) -> Any:
    """Return the cosine of the angle; 1 for two zero vectors, NaN for one."""
    one, other = one.ravel(), other.ravel()
    if one.dtype != other.dtype:
        one, other = one.astype(np.float64), other.astype(np.float64)
    with np.errstate(all="ignore"):
        lengths = np.sqrt(_dot(one, one)), np.sqrt(_dot(other, other))
        if lengths[0] == 0 and lengths[1] == 0:
            return 1.0
        if lengths[0] == 0 or lengths[1] == 0:
            return math.nan
        return _dot(one, other) / (lengths[0] * lengths[1])


def _blas_cosine(one: Array, other: Array) -> float:
    """As `_cosine`, by the calls that 1.0.17 makes; the last digits depend on the kernel that numpy's BLAS picks."""
    one, other = one.flatten(), other.flatten()
    nothing = np.finfo(np.float64).eps
    with np.errstate(all="ignore"):
        product, *lengths = np.dot(one, other), np.linalg.norm(one), np.linalg.norm(other)
        empty = [bool(length <= nothing) for length in lengths]
        if any(empty):
            return 1.0 if all(empty) else math.nan
        return float((product / (lengths[0] * lengths[1])).clip(-1, 1))


def _dot(one: Array, other: Array) -> Any:
    """The sum of products in fixed lanes and what is left of 32 in double, as the BLAS of SSE machines has it.

    numpy's own depends on the processor, and in float32 the fifth digit of a cosine near 1 depends on the order of the
    sums: this order gives the tables of [reference x01] on every machine.
    """
    whole = one.size // _BLOCK * _BLOCK
    products = one * other
    tail = products[whole:].astype(np.float64)
    total = np.add.accumulate(tail)[-1] if tail.size else np.float64(0)
    if whole:
        width = 64 // one.dtype.itemsize  # four registers of 16 bytes
        lanes = np.add.reduce(products[:whole].reshape(-1, width), axis=0).reshape(4, -1)
        row = (lanes[0] + lanes[1]) + (lanes[2] + lanes[3])
        while row.size > 1:
            row = row[0::2] + row[1::2]
        total = total + np.float64(row[0])
    return one.dtype.type(total)
