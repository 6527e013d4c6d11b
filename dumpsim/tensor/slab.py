"""An array of any strides and byte order as short contiguous arrays, without ever copying all of it."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["raw", "slabs"]


def raw(array: NDArray[Any]) -> NDArray[np.uint8]:
    """The bytes of a C-contiguous array, not copied."""
    return array.reshape(-1).view(np.uint8)


def slabs(array: NDArray[Any], dtype: np.dtype[Any], size: int, start: int, stop: int) -> Iterator[NDArray[Any]]:
    """Elements `start` to `stop` in C order as contiguous arrays of `size` elements of `dtype`, the last maybe shorter.

    All share one buffer: each is valid until the next is asked for.
    """
    buffer = np.empty(min(size, stop - start), dtype)
    pieces: Any = np.nditer(  # numpy's stub has no setter of iterrange
        [array],
        flags=["external_loop", "buffered", "ranged", "zerosize_ok"],
        op_flags=[["readonly"]],
        order="C",
        buffersize=1 << 14,
    )
    for begin in range(start, stop, size):
        end = min(begin + size, stop)
        pieces.iterrange = (begin, end)
        filled = 0
        for piece in pieces:
            buffer[filled : filled + piece.size] = piece
            filled += piece.size
        yield buffer[:filled]
