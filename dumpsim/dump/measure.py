"""The cells of a statistics row. [spec mindspore 4.2-4.4]"""

import hashlib
import os
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dumpsim.codecs.statcsv import number
from dumpsim.core.statistic import NAMES
from dumpsim.tensor.device_stats import device_statistics
from dumpsim.tensor.digest import digest
from dumpsim.tensor.stats import Statistics, statistics

__all__ = ["device_cells", "host_cells", "is_finite"]

_SLICE = 20480  # elements that 2.10 hashes at a time [spec mindspore 4.2]
_LARGE = 1 << 23  # bytes from which threads pay
_THREADS = min(4, os.cpu_count() or 1)


def host_cells(values: NDArray[Any], names: Sequence[str], hashed: NDArray[Any] | None = None) -> tuple[str, ...]:
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
    ('6', '1', '9.53939', '6')
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
    return tuple(cells)


def device_cells(values: NDArray[Any], names: Sequence[str], precision: str) -> tuple[str, ...]:
    """Cells as the device's kernels give them, ``null`` where a kernel does not take the number type.

    Examples
    --------
    >>> device_cells(np.array([True, False]), ("max", "l2norm"), "high")
    ('True', 'null')
    """
    found = device_statistics(values, precision)
    return tuple(_printed(getattr(found, name)) for name in names)


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
