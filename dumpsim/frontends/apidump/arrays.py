"""The record of a numpy array or a number: the fields of its info line and the bytes of its npy file."""

import math
from typing import Any, NamedTuple

import numpy as np

from dumpsim.frontends.apidump.output import npy_header
from dumpsim.tensor.cast import widen
from dumpsim.tensor.stats import CODES, WIDER, statistics

__all__ = ["ArrayValues", "described", "npy_parts"]


class ArrayValues(NamedTuple):
    """Max, min and mean as the info line prints them; NaN if there are none."""

    max: Any
    min: Any
    mean: Any


_NONE = ArrayValues(math.nan, math.nan, math.nan)


def described(value: Any, *, exact: bool = False) -> ArrayValues:
    """Return the statistics of an array, or of a number, which is its own maximum.

    Parameters
    ----------
    value : ndarray, bool, int or float
    exact : bool
        Use numpy's reductions in the array's own type, as 1.0.17 does; otherwise sum in double in one pass. Both
        results are rounded to float32. [spec api_dump 1.4]

    Examples
    --------
    >>> described(np.array([1.0, 2.0, 6.0], np.float32))
    ArrayValues(max=6.0, min=1.0, mean=3.0)
    >>> described(2)
    ArrayValues(max=2, min=2, mean=2)
    """
    if not isinstance(value, np.ndarray):
        return ArrayValues(value, value, value)
    if value.size == 0 or value.dtype == np.bool_:
        # what MindSpore's side of 1.0.17 prints of bool and empty tensors [spec api_dump 1.4]
        return ArrayValues([], [], []) if exact else _NONE
    if exact:
        mean = value.mean() if value.dtype.kind == "f" else value.astype(np.float32).mean()
        return ArrayValues(*(np.float32(part).item() for part in (value.max(), value.min(), mean)))
    if value.dtype not in CODES and value.dtype not in WIDER:
        if value.dtype.kind == "c":
            return _NONE
        value = value.astype(np.float32)
    found = statistics(value)
    with np.errstate(over="ignore"):
        return ArrayValues(*(np.float32(part).item() for part in (found.max, found.min, found.avg)))


def npy_parts(value: Any) -> "tuple[bytes | memoryview, ...]":
    """Return the npy file of an array or a number, with a copy of its data, since the network may overwrite the array.

    Types that numpy does not have are widened exactly: bfloat16 and float8 to float32, int4 to int8; the info line
    contains the original type.

    Raises
    ------
    OverflowError
        For an integer beyond 64 bits.

    Examples
    --------
    >>> [len(part) for part in npy_parts(np.ones(3, np.float32))]
    [128, 12]
    """
    array = np.array(value, order="C")
    if array.dtype.isbuiltin != 1:
        array = widen(array, array.dtype.name)
    if array.dtype.kind not in "biufc":
        raise OverflowError(f"{value} has more than 64 bits")
    return npy_header(array.dtype.str, array.shape), array.reshape(-1).view(np.uint8).data
