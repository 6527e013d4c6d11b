"""``mindspore.common.np_dtype``: number types that numpy does not define."""

from typing import Any

from ml_dtypes import bfloat16

from dumpsim.frontends.mindspore._standin import vendored

__all__ = ["bfloat16", "np_dtype_valid"]


def np_dtype_valid(needs_numpy_2: bool = False) -> bool:
    """Return whether numpy supports bfloat16, which the emulation provides.

    Examples
    --------
    >>> np_dtype_valid(True)
    True
    """
    return True


def __getattr__(name: str) -> Any:
    return vendored("mindspore.common.np_dtype", name)
