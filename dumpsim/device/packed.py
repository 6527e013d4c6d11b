"""Numbers narrower than a byte: packed in memory, one per byte in kernels.

The shape of an int4 tensor counts pairs, like MindSpore's ``qint4x2``, so a kernel sees its last axis doubled; that of
a uint1 tensor counts numbers.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["PACKED", "pack", "unpack"]

PACKED = frozenset({"int4", "uint1"})


def unpack(memory: npt.NDArray[Any], name: str, shape: Sequence[int]) -> npt.NDArray[Any]:
    """Unpack numbers: int4 to int8, low nibble first, or uint1 to uint8, highest bit first.

    [spec mindspore 3.5]

    Examples
    --------
    >>> unpack(np.array([[0x21, 0xF8]], np.uint8), "int4", (1, 2)).tolist()
    [[1, 2, -8, -1]]
    >>> unpack(np.array([0xA0], np.uint8), "uint1", (3,)).tolist()
    [1, 0, 1]
    """
    from dumpsim.tensor.cast import to_numpy

    dims = tuple(shape)
    if name == "int4":
        dims = (*dims[:-1], 2 * dims[-1]) if dims else (2,)
    return to_numpy(memory.view(np.uint8), name, dims)


def pack(values: npt.NDArray[Any], name: str) -> npt.NDArray[np.uint8]:
    """Pack numbers into a one-dimensional array of bytes.

    Raises
    ------
    BadInputError
        For a number out of range.

    Examples
    --------
    >>> pack(np.array([[1, 2, -8, -1]], np.int8), "int4").tolist()
    [33, 248]
    """
    from dumpsim.tensor.cast import from_numpy

    return from_numpy(values, name)
