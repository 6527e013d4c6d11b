"""Histogram of a tensor of any size, chunk by chunk."""

from typing import Any

import numpy as np

__all__ = ["histogram"]

_CHUNK = 1 << 20


def histogram(array: "np.ndarray[Any, Any]", bins: int = 16) -> "tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]":
    """Return edges and counts of the finite values, in equal steps from the smallest to the largest.

    Parameters
    ----------
    array : ndarray
        Any real number type; memory-mapped arrays are read once per pass and never copied whole.
    bins : int

    Returns
    -------
    edges : ndarray of float64, shape (bins + 1,)
    counts : ndarray of int64, shape (bins,)

    Examples
    --------
    >>> edges, counts = histogram(np.array([0.0, 1.0, 2.0, np.nan, np.inf]), 2)
    >>> edges.tolist(), counts.tolist()
    ([0.0, 1.0, 2.0], [1, 2])
    """
    flat = array.reshape(-1)
    low, high = np.inf, -np.inf
    for start in range(0, flat.size, _CHUNK):
        finite = _finite(flat[start : start + _CHUNK])
        if finite.size:
            low, high = min(low, float(finite.min())), max(high, float(finite.max()))
    if low > high:
        return np.linspace(0.0, 1.0, bins + 1), np.zeros(bins, np.int64)
    if low == high:
        low, high = low - 0.5, high + 0.5
    edges = np.linspace(low, high, bins + 1)
    counts = np.zeros(bins, np.int64)
    for start in range(0, flat.size, _CHUNK):
        counts += np.histogram(_finite(flat[start : start + _CHUNK]), edges)[0]
    return edges, counts


def _finite(chunk: "np.ndarray[Any, Any]") -> "np.ndarray[Any, Any]":
    values = np.asarray(chunk, np.float64)
    return values[np.isfinite(values)]
