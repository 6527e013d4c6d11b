"""Statistics in the form in which the device computes them (`stat_calc_mode: device`). [spec mindspore 4.4]"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dumpsim.core.errors import BadInputError, nearest
from dumpsim.core.statistic import STATISTICS
from dumpsim.tensor.stats import Statistics, statistics

__all__ = ["DeviceStatistics", "device_statistics"]

PRECISIONS = ("high", "low")


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceStatistics:
    """Four cells of a row in device mode: numpy scalars of the result's type; None is written as ``null``.

    Examples
    --------
    >>> device_statistics(np.array([1, 2], np.int8))
    DeviceStatistics(max=np.int8(2), min=np.int8(1), avg=np.float32(1.5), l2norm=None)
    """

    max: Any
    min: Any
    avg: Any
    l2norm: Any


def device_statistics(array: ArrayLike, precision: str = "high") -> DeviceStatistics:
    """Compute max, min, avg and l2norm with the types of the device's kernels.

    Parameters
    ----------
    array : array_like
        A tensor of any type; a statistic whose kernel does not support the type is None.
    precision : {"high", "low"}
        ``device_stat_precision_mode``. High: avg and l2norm are float32. Low: they have the input's type. The kernel of
        the average adds 16-bit floats in float32; that of the norm does not, so that its sum of squares overflows to
        inf in float16. Averages of integers are truncated.

    Returns
    -------
    DeviceStatistics
        max and min have the input's type. If any element is NaN, all four are NaN. For an empty tensor, which has no
        row, all are None.

    Raises
    ------
    BadInputError
        For an unknown precision.

    Notes
    -----
    Supported types and result types are the vendor's table [spec mindspore 4.4]. The order in which the device adds is
    not documented; sums are those of `statistics`, rounded once to the result's type.

    Examples
    --------
    >>> x = np.array([300.0, 400.0], np.float16)
    >>> high, low = device_statistics(x, "high").l2norm, device_statistics(x, "low").l2norm
    >>> high.dtype.name, float(high), low.dtype.name, float(low)
    ('float32', 500.0, 'float16', inf)
    >>> device_statistics(np.array([True, False]), "low").max is None
    True
    """
    if precision not in PRECISIONS:
        raise BadInputError(
            f"{precision!r} is not a precision",
            where="precision",
            allowed=PRECISIONS,
            nearest=nearest(precision, PRECISIONS),
            code="DS-STA-001",
        )
    values = np.asarray(array)
    dtype = values.dtype.newbyteorder("=")
    has = {row.name for row in STATISTICS if dtype.name in row.device.get(precision, ())}
    if not has or not values.size:
        return DeviceStatistics(max=None, min=None, avg=None, l2norm=None)
    host = statistics(values)
    kind = np.dtype(np.float32) if precision == "high" else dtype
    return DeviceStatistics(
        max=_extremum(values, host.max, dtype, "max") if "max" in has else None,
        min=_extremum(values, host.min, dtype, "min") if "min" in has else None,
        avg=_average(host, kind, precision) if "avg" in has else None,
        l2norm=_norm(host, kind, precision) if "l2norm" in has else None,
    )


def _extremum(values: NDArray[Any], found: float, dtype: np.dtype[Any], name: str) -> Any:
    if dtype == np.int64:  # double does not have the low bits of large numbers
        return dtype.type(values.max() if name == "max" else values.min())
    return dtype.type(found)


def _average(host: Statistics, kind: np.dtype[Any], precision: str) -> Any:
    if kind.kind in "iu":
        return kind.type(min(math.trunc(host.avg), np.iinfo(kind).max))  # 2**63 - 1 was rounded up
    if precision == "high":
        return _round(host.avg, kind)
    # the kernel adds 16-bit floats in float32 [reviewed: float16 [40000]*3 gives 40000]
    wider = np.dtype(np.float32) if kind.itemsize == 2 else kind
    return _round(float(_round(host.sum, wider)) / host.count, kind)


def _norm(host: Statistics, kind: np.dtype[Any], precision: str) -> Any:
    if precision == "high":
        return _round(host.l2norm, kind)
    return _round(math.sqrt(float(_round(host.sumsq, kind))), kind)


def _round(value: float, dtype: np.dtype[Any]) -> Any:
    """Round a value to a float type; values that are too large become inf."""
    with np.errstate(over="ignore"):
        return np.asarray(value, np.float64).astype(dtype)[()]
