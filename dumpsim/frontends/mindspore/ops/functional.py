"""``mindspore.ops.functional``: names used by optimizers and older scripts."""

from functools import partial as _partial
from types import MappingProxyType
from typing import Any

from dumpsim.frontends.mindspore import ops as _ops
from dumpsim.frontends.mindspore._standin import vendored
from dumpsim.frontends.mindspore.common.tensor import Tensor

__all__ = ["make_tuple", "partial", "tuple_len", "typeof"]


def partial(function: Any, *args: Any) -> Any:
    """Bind the first arguments of a function.

    Examples
    --------
    >>> partial(max, 3)(2)
    3
    """
    return _partial(function, *args)


def make_tuple(*items: Any) -> tuple[Any, ...]:
    """Return the items as a tuple."""
    return items


def tuple_len(items: Any) -> int:
    """Return the number of items."""
    return len(items)


def typeof(value: Any) -> Any:
    """Return the number type of a tensor, or the Python type of anything else."""
    return value.dtype if isinstance(value, Tensor) else type(value)


# names of older releases that 2.10 still has
_OLDER = MappingProxyType(
    {"tensor_add": "add", "tensor_sub": "sub", "tensor_mul": "mul", "tensor_div": "div", "tensor_pow": "pow"}
)


def _own(name: str) -> Any:
    return _ops._own(_OLDER.get(name, name))


def __getattr__(name: str) -> Any:
    return vendored("mindspore.ops.functional", name, _own)
