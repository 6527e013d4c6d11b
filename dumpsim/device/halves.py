"""Conversion between float32 and the 16-bit floats; the compiled casts return the same bits as numpy's."""

from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["HALVES", "floating", "to_half", "to_single"]

HALVES = frozenset({"float16", "bfloat16"})

_WORTH_IT = 4096  # number of elements above which the compiled casts are faster than numpy's


def floating(values: npt.NDArray[Any]) -> bool:
    """Whether the numbers are floats, including those of ml_dtypes, but not pairs of int4.

    Examples
    --------
    >>> floating(np.zeros(1, np.float16)), floating(np.zeros(1, np.int8))
    (True, False)
    """
    return values.dtype.kind == "f" or (values.dtype.kind == "V" and not values.dtype.names)


def to_single(values: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
    """Return a float16 or bfloat16 array as float32.

    Examples
    --------
    >>> to_single(np.array([1.5], np.float16))
    array([1.5], dtype=float32)
    """
    if values.size < _WORTH_IT:
        return values.astype(np.float32)
    from dumpsim._ext import cast
    from dumpsim.tensor.simd import level_number

    codes = np.ascontiguousarray(values).reshape(-1).view(np.uint16)
    single = np.empty(values.shape, np.float32)
    cast.to_float(single.reshape(-1), codes.view(np.uint8), codes.size, cast.KINDS[values.dtype.name], level_number())
    return single


def to_half(values: npt.NDArray[Any], kind: np.dtype[Any]) -> npt.NDArray[Any]:
    """Round a float array to float16 or bfloat16, to nearest with ties to even; too large values become inf.

    Examples
    --------
    >>> to_half(np.array([1e6, 0.1], np.float32), np.dtype(np.float16)).tolist()
    [inf, 0.0999755859375]
    """
    if values.size < _WORTH_IT or values.dtype != np.float32:
        with np.errstate(all="ignore"):
            return values.astype(kind)
    from dumpsim.tensor.cast import from_numpy

    return from_numpy(values, kind.name)
