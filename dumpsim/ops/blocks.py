"""Elementwise kernels of several steps, block by block, so that what lies between the steps stays in the cache."""

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

__all__ = ["in_blocks"]

Kernel = Callable[..., Any]

# elements per block: a handful of temporaries of float32 fit into a level-2 cache, and numpy's cost per call is small
_BLOCK = 1 << 14


def in_blocks(kernel: Kernel) -> Kernel:
    """Return an elementwise kernel that computes large arrays block by block.

    Parameters
    ----------
    kernel : callable
        Takes arrays of one shape, and scalars, and returns an array of that shape. The elements of the result depend
        on the elements at the same place.

    Returns
    -------
    callable
        It has the same results. Operands of several shapes, or that are not C-contiguous, go to `kernel` as they are.

    Examples
    --------
    >>> kernel = in_blocks(lambda x, y: x * y + 1)
    >>> x = np.arange(40000.0).reshape(2, 20000)
    >>> bool((kernel(x, 3.0) == x * 3 + 1).all())
    True
    """

    @wraps(kernel)
    def blocked(*operands: Any, **attrs: Any) -> Any:
        arrays = [one for one in operands if isinstance(one, np.ndarray) and one.ndim]
        if not arrays or arrays[0].size <= _BLOCK:
            return kernel(*operands, **attrs)
        shape, size = arrays[0].shape, arrays[0].size
        if any(one.shape != shape or not one.flags.c_contiguous for one in arrays):
            return kernel(*operands, **attrs)
        flat = [one.reshape(-1) if isinstance(one, np.ndarray) and one.ndim else one for one in operands]
        first = kernel(*_part(flat, 0), **attrs)
        result = np.empty(size, first.dtype)
        result[:_BLOCK] = first
        for start in range(_BLOCK, size, _BLOCK):
            result[start : start + _BLOCK] = kernel(*_part(flat, start), **attrs)
        return result.reshape(shape)

    return blocked


def _part(operands: list[Any], start: int) -> list[Any]:
    """Return the operands of one block."""
    return [one[start : start + _BLOCK] if isinstance(one, np.ndarray) and one.ndim else one for one in operands]
