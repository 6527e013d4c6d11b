"""``mindspore.ops._primitive_cache``: primitives that the vendor's functions make once and keep."""

from typing import Any

from dumpsim.frontends.mindspore._standin import vendored
from dumpsim.frontends.mindspore.ops.primitive import Primitive

__all__ = ["_get_cache_prim"]


def _get_cache_prim(cls: type[Primitive]) -> type[Primitive]:
    """Return what makes a primitive of a class; the emulation makes a new one for each call, which costs little.

    Examples
    --------
    >>> from dumpsim.frontends.mindspore import ops
    >>> _get_cache_prim(ops.ReduceSum)(True)
    Prim[ReduceSum]<keep_dims=True, skip_mode=False>
    """
    return cls


def __getattr__(name: str) -> Any:
    return vendored("mindspore.ops._primitive_cache", name)
