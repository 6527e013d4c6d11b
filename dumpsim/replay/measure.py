"""Compare a dumped output with the recomputed one, and tell rounding errors from wrong values."""

from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np

from dumpsim.replay.kernel import Computed
from dumpsim.replay.unit import largest, rounded, smallest, unit

__all__ = ["Measured", "measure", "whole_numbers"]

Array = np.ndarray[Any, Any]

_BLOCK = 1 << 18  # elements that are treated alike: with or without a bound
_PIECE = 1 << 15  # elements compared at a time, so that their doubles fit into a cache


@dataclass(frozen=True, slots=True)
class Measured:
    """The worst element of an output: the one with the largest ratio of error to explained error.

    Attributes
    ----------
    error, explained : float
    index : int
        Its index in the flat tensor, -1 if there is none.
    outside : int
        Number of elements whose error is larger than explained.
    """

    error: float
    explained: float
    index: int = -1
    outside: int = 0

    @property
    def excess(self) -> float:
        """The error as a multiple of the explained error."""
        return self.error / self.explained if self.explained > 0 else inf if self.error > 0 else 0.0


def measure(dumped: Array, computed: Computed, kind: str, unit_computed: float, *, factor: float = 1.0) -> Measured:
    """Compare an output with its recomputation.

    Parameters
    ----------
    dumped : array
        Has as many elements as ``computed.value``.
    computed : Computed
    kind : str
        Number type of the output on the device.
    unit_computed : float
        Unit roundoff of the type that the device computed in.
    factor : float
        Allowed error, as a multiple of the bound.

    Examples
    --------
    >>> exact = Computed(np.array([1.0, 2.0]), 0.0)
    >>> measure(np.array([1.0, 2.02], np.float32), exact, "float32", 2.0**-24).index
    1
    """
    if "c" in (dumped.dtype.kind, computed.value.dtype.kind):
        return _of_parts(dumped, computed, kind, unit_computed, factor)
    if computed.value.dtype.kind != "f":
        return whole_numbers(dumped, computed.value)
    worst = Measured(0.0, 0.0)
    outside = 0
    flat, value = dumped.reshape(-1), computed.value.reshape(-1)
    bound = np.broadcast_to(np.asarray(computed.bound, np.float64), computed.value.shape).reshape(-1)
    wide = unit(kind) > unit_computed
    for first in range(0, flat.size, _BLOCK):
        last = min(first + _BLOCK, flat.size)
        rounds = wide or not bound[first:last].any()
        for start in range(first, last, _PIECE):
            part = slice(start, min(start + _PIECE, last))
            error, allowed = _errors(flat[part].astype(np.float64), value[part], bound[part], kind, rounds=rounds)
            allowed *= factor
            outside += int(np.count_nonzero((error > 0) & ~(error <= allowed)))  # a NaN bound explains nothing
            with np.errstate(all="ignore"):
                ratio = np.where(error > 0, error / allowed, 0.0)
            at = int(np.argmax(ratio))
            found = Measured(float(error[at]), float(allowed[at]), start + at)
            if worst.index < 0 or found.excess > worst.excess:
                worst = found
    return Measured(worst.error, worst.explained, worst.index, outside)


def _of_parts(dumped: Array, computed: Computed, kind: str, unit_computed: float, factor: float) -> Measured:
    """Measure real and imaginary parts and return the worse one."""
    part = {"complex64": "float32", "complex128": "float64"}.get(kind, kind)
    real, imaginary = (
        measure(own, Computed(value, computed.bound), part, unit_computed, factor=factor)
        for own, value in ((dumped.real, computed.value.real), (dumped.imag, computed.value.imag))
    )
    worst = max(real, imaginary, key=lambda one: one.excess)
    return Measured(worst.error, worst.explained, worst.index, max(real.outside, imaginary.outside))


def _errors(own: Array, value: Array, bound: Array, kind: str, *, rounds: bool) -> tuple[Array, Array]:
    """Return errors and explained errors; with `rounds` the bound excludes the rounding to the output's type."""
    with np.errstate(all="ignore"):
        inexact = (bound > 0) | (rounded(value, kind) != value)
        size = np.abs(value)
        allowed = bound + inexact * smallest(kind)
        if rounds:
            allowed += inexact * (unit(kind) * size)
        error = np.abs(own - value)
        # beyond the largest number a machine returns an infinity or saturates
        high = largest(kind)
        reach = size + allowed
        if not (reach <= high).all():
            allowed = np.where(inexact, allowed, bound)  # 0 * inf is NaN
            beyond = size + allowed > high
            error = np.where(beyond & (np.sign(own) == np.sign(value)) & (np.abs(own) >= high - allowed), 0.0, error)
            error = np.where((own == value) | (np.isnan(own) & np.isnan(value)), 0.0, error)
            # an infinite bound: the operator may divide by zero
            lost = ~np.isfinite(bound)
            error = np.where(np.isnan(error), np.where(lost, 0.0, inf), error)
            return np.where(lost, 0.0, error), np.where(lost, 0.0, allowed)
        # all recomputed values are finite here
        return np.where(np.isnan(error), inf, error), allowed


def whole_numbers(dumped: Array, value: Array) -> Measured:
    """Compare integers and booleans, which are equal or wrong."""
    a, b = dumped.reshape(-1), value.reshape(-1)
    differs = np.flatnonzero(a != b)
    if not differs.size:
        return Measured(0.0, 0.0)
    with np.errstate(all="ignore"):
        error = np.abs(a[differs].astype(np.float64) - b[differs].astype(np.float64))
    at = int(np.argmax(error))
    return Measured(max(float(error[at]), 1.0), 0.0, int(differs[at]), int(differs.size))
