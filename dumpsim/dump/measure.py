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
_SINGLE = 4  # bytes of the smallest numbers that have fast sums of products
_FEW = 64  # elements up to which numpy is faster than the kernel of all statistics
_LARGE = 1 << 23  # bytes from which threads pay
_THREADS = min(4, os.cpu_count() or 1)


@dataclass(frozen=True, slots=True)
class Measured:
    """The cells of a row, and what is known of its elements beside.

    Attributes
    ----------
    cells : tuple of str
    nan, infinite : bool or None
        Whether an element is NaN or infinite; None where nothing was measured.
    """

    cells: tuple[str, ...]
    nan: bool | None
    infinite: bool | None


def host_cells(values: NDArray[Any], names: Sequence[str], hashed: NDArray[Any] | None = None) -> Measured:
    """Cells of statistics and digests, in the order of their names.

    Parameters
    ----------
    values : ndarray
        The tensor in its own number type: bfloat16 is not widened, so that digests are those of the raw bytes.
    names : sequence of str
        Of statistics, or of digests: ``md5``, ``sha1``.
    hashed : ndarray, optional
        What digests are of, where that is not all of `values`.

    Examples
    --------
    >>> host_cells(np.array([[1, 2, 3], [4, 5, 6]], np.float32), ("max", "min", "l2norm", "count"))
    Measured(cells=('6', '1', '9.53939', '6'), nan=False, infinite=False)
    """
    found: Statistics | None = None
    if any(name in NAMES for name in names):
        found = statistics(values, threads=_THREADS if values.nbytes >= _LARGE else 1)
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
    """Cells as the device's kernels give them, ``null`` where a kernel does not take the number type.

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
    """Return whether a tensor has no NaN and no infinity, or no number type of numpy that could have them.

    One pass at the speed of memory, which is small beside writing the tensor: a sum of squares that is finite has no
    other terms.

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
    """Whether no element is infinite or NaN."""
    found = statistics(values, threads=_THREADS if values.nbytes >= _LARGE else 1)
    return not (found.nan or found.positive_inf or found.negative_inf)


def _sliced(values: NDArray[Any]) -> str:
    """SHA1 of the hex digests of consecutive slices. [spec mindspore 4.2]"""
    flat = np.ascontiguousarray(values).reshape(-1)
    slices = [flat[start : start + _SLICE] for start in range(0, flat.size, _SLICE)]
    return hashlib.sha1("".join(digest(slices, "sha1")).encode(), usedforsecurity=False).hexdigest()


def _printed(value: Any) -> str:
    """A numpy scalar as the device's result tensor prints it. [spec mindspore 4.3]"""
    if value is None:
        return number(None)
    if isinstance(value, np.bool_):
        return str(bool(value))
    if isinstance(value, np.integer):
        return str(int(value))
    return number(float(value))
