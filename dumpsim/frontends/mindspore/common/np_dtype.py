"""``mindspore.common.np_dtype``: the number types that numpy itself does not have."""

from typing import Any

from ml_dtypes import bfloat16

from dumpsim.frontends.mindspore._standin import vendored

__all__ = ["bfloat16", "np_dtype_valid"]


def np_dtype_valid(needs_numpy_2: bool = False) -> bool:
    """Return whether numpy knows the type: the emulation brings its own.

    Examples
    --------
    >>> np_dtype_valid(True)
    True
    """
    return True


def __getattr__(name: str) -> Any:
    return vendored("mindspore.common.np_dtype", name)
