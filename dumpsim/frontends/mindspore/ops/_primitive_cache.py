"""``mindspore.ops._primitive_cache``: the vendor's cache of primitives."""

from typing import Any

from dumpsim.frontends.mindspore._standin import vendored
from dumpsim.frontends.mindspore.ops.primitive import Primitive

__all__ = ["_get_cache_prim"]


def _get_cache_prim(cls: type[Primitive]) -> type[Primitive]:
    """Return the factory of a primitive: the class itself, since creating a primitive is cheap here.

    Examples
    --------
    >>> from dumpsim.frontends.mindspore import ops
    >>> _get_cache_prim(ops.ReduceSum)(True)
    Prim[ReduceSum]<keep_dims=True, skip_mode=False>
    """
    return cls


def __getattr__(name: str) -> Any:
    return vendored("mindspore.ops._primitive_cache", name)
