"""Access to an array of any strides and byte order by short contiguous arrays, without a copy of the whole."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["raw", "slabs"]


def raw(array: NDArray[Any]) -> NDArray[np.uint8]:
    """Return the bytes of a C-contiguous array without a copy.

    Parameters
    ----------
    array : ndarray
        An array of any data type.

    Returns
    -------
    ndarray
        A one-dimensional array of uint8.

    Examples
    --------
    >>> raw(np.array([[1, 2]], "<u2")).tolist()
    [1, 0, 2, 0]
    """
    return array.reshape(-1).view(np.uint8)


def slabs(array: NDArray[Any], dtype: np.dtype[Any], size: int, start: int, stop: int) -> Iterator[NDArray[Any]]:
    """Iterate over elements of an array in C order by contiguous arrays of one dimension.

    Parameters
    ----------
    array : ndarray
        An array of any strides and byte order.
    dtype : dtype
        Data type of the slabs.
    size : int
        Number of elements of a slab; the last one may have fewer.
    start, stop : int
        Range of elements, counted in C order.

    Yields
    ------
    ndarray
        All share one buffer: each is valid until the next one is made.

    Examples
    --------
    >>> across = np.arange(6, dtype=">i2").reshape(2, 3).T
    >>> [slab.tolist() for slab in slabs(across, np.dtype(np.int16), 2, 1, 6)]
    [[3, 1], [4, 2], [5]]
    """
    buffer = np.empty(min(size, stop - start), dtype)
    pieces: Any = np.nditer(  # numpy's stub has no setter of iterrange
        [array],
        flags=["external_loop", "buffered", "ranged", "zerosize_ok"],
        op_flags=[["readonly"]],
        order="C",
        buffersize=16_384,
    )
    for begin in range(start, stop, size):
        end = min(begin + size, stop)
        pieces.iterrange = (begin, end)
        filled = 0
        for piece in pieces:
            buffer[filled : filled + piece.size] = piece
            filled += piece.size
        yield buffer[:filled]
