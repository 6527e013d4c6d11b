"""The cells of a statistics row. [spec mindspore 4.2-4.4]"""

import hashlib
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dumpsim.codecs.statcsv import number
from dumpsim.core.statistic import NAMES
from dumpsim.tensor.device_stats import device_statistics
from dumpsim.tensor.digest import digest
from dumpsim.tensor.stats import Statistics, statistics

__all__ = ["Measured", "device_cells", "finite", "host_cells", "is_finite"]

_SLICE = 20480  # elements that 2.10 hashes at a time [spec mindspore 4.2]
_SINGLE = 4  # bytes of the smallest type with a fast dot product
_FEW = 64  # largest number of elements for which numpy is faster than the statistics kernel
_LARGE = 1 << 23  # smallest size in bytes for which threads are faster
_THREADS = min(4, os.cpu_count() or 1)


@dataclass(frozen=True, slots=True)
class Measured:
    """The cells of a row, and whether the tensor is finite.

    Attributes
    ----------
    cells : tuple of str
    nan, infinite : bool or None
        Whether an element is NaN or infinite; None if it was not computed.
    """

    cells: tuple[str, ...]
    nan: bool | None
    infinite: bool | None


def host_cells(values: NDArray[Any], names: Sequence[str], hashed: NDArray[Any] | None = None) -> Measured:
    """Compute the cells of statistics and digests, in the order of their names.

    Parameters
    ----------
    values : ndarray
        The tensor in its own data type: bfloat16 is not widened, so that digests are those of the raw bytes.
    names : sequence of str
        Names of statistics, or of digests (``md5``, ``sha1``).
    hashed : ndarray, optional
        The array for digests, by default `values`.

    Examples
    --------
    >>> host_cells(np.array([[1, 2, 3], [4, 5, 6]], np.float32), ("max", "min", "l2norm", "count"))
    Measured(cells=('6', '1', '9.53939', '6'), nan=False, infinite=False)
    """
    found: Statistics | None = None
    if any(name in NAMES for name in names):
        found = statistics(values, threads=_threads(values))
    hashed = values if hashed is None else hashed
    digests: dict[str, str] = {}
    cells: list[str] = []
    for name in names:
        if name in NAMES:
            cells.append(number(getattr(found, name)))
            continue
        if name not in digests:
            digests[name] = digest([hashed], name)[0] if name == "md5" or hashed.size <= _SLICE else _sliced(hashed)
        cells.append(digests[name])
    if found is None:
        return Measured(tuple(cells), None, None)
    return Measured(tuple(cells), found.nan > 0, found.positive_inf + found.negative_inf > 0)


def device_cells(values: NDArray[Any], names: Sequence[str], precision: str) -> Measured:
    """Compute the cells as the device's kernels do; ``null`` if a kernel does not support the data type.

    Examples
    --------
    >>> device_cells(np.array([True, False]), ("max", "l2norm"), "high").cells
    ('True', 'null')
    """
    found = device_statistics(values, precision)
    extrema = [float(value) for value in (found.max, found.min) if value is not None]  # NaN if any element is
    return Measured(
        tuple(_printed(getattr(found, name)) for name in names),
        any(map(math.isnan, extrema)) if extrema else None,
        any(map(math.isinf, extrema)) if extrema else None,
    )


def finite(values: NDArray[Any]) -> bool:
    """Return whether a tensor has no NaN and no infinity, or has no floating-point type of numpy.

    It takes one pass at the speed of memory, which is fast compared with writing the tensor: if the sum of squares is
    finite, so are all elements.

    Examples
    --------
    >>> finite(np.array([1, np.nan])), finite(np.full(1000, np.inf)), finite(np.ones(1000)), finite(np.arange(3))
    (False, False, True, True)
    >>> finite(np.full(1000, 1e30, np.float32))
    True
    """
    if values.dtype.kind != "f":
        return True
    if values.itemsize >= _SINGLE and values.flags.c_contiguous:
        flat = values.reshape(-1)
        with np.errstate(all="ignore"):
            if math.isfinite(flat.dot(flat)):
                return True
    return bool(np.isfinite(values).all()) if values.size <= _FEW else is_finite(values)


def is_finite(values: NDArray[Any]) -> bool:
    """Return whether no element is infinite or NaN."""
    found = statistics(values, threads=_threads(values))
    return not (found.nan or found.positive_inf or found.negative_inf)


def _threads(values: NDArray[Any]) -> int:
    return _THREADS if values.nbytes >= _LARGE else 1


def _sliced(values: NDArray[Any]) -> str:
    """Compute the SHA1 of the hex digests of consecutive slices. [spec mindspore 4.2]"""
    flat = np.ascontiguousarray(values).reshape(-1)
    slices = [flat[start : start + _SLICE] for start in range(0, flat.size, _SLICE)]
    return hashlib.sha1("".join(digest(slices, "sha1")).encode(), usedforsecurity=False).hexdigest()


def _printed(value: Any) -> str:
    """Format a numpy scalar as the device's result tensor is printed. [spec mindspore 4.3]"""
    if value is None:
        return number(None)
    if isinstance(value, np.bool_):
        return str(bool(value))
    if isinstance(value, np.integer):
        return str(int(value))
    return number(float(value))
