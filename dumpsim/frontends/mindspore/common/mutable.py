"""``mindspore.mutable``: constants that become inputs of a graph."""

from typing import Any

from dumpsim.core.errors import ScriptTypeError, UnsupportedError
from dumpsim.frontends.mindspore._standin import vendored
from dumpsim.frontends.mindspore.common.tensor import Tensor

__all__ = ["mutable"]


class _Tuple(tuple[Any, ...]):
    """A tuple whose tensors are inputs of a graph."""

    __slots__ = ()
    __ms_mutable__ = True


class _List(list[Any]):
    """A list whose tensors are inputs of a graph."""

    __slots__ = ()
    __ms_mutable__ = True


def mutable(input_data: Any, dynamic_len: bool = False) -> Any:
    """Mark data as an input of graphs instead of a constant.

    A Tensor is always an input, unless it is in a tuple, list or dict; numbers become 0-d Tensors.

    Raises
    ------
    UnsupportedError
        For `dynamic_len`, and for dicts.

    Examples
    --------
    >>> mutable((Tensor(1), 2))[1]
    Tensor(shape=[], dtype=Int64, value= 2)
    """
    if dynamic_len:
        raise UnsupportedError("sequences of variable length are not emulated", where="mutable(dynamic_len=True)")
    if isinstance(input_data, Tensor):
        return input_data
    if isinstance(input_data, (int, float)):
        return Tensor(input_data)
    if isinstance(input_data, (tuple, list)):
        kind = _Tuple if isinstance(input_data, tuple) else _List
        return kind(mutable(item) for item in input_data)
    raise ScriptTypeError(
        "For 'mutable', the 'input_data' should be one of (bool, int, float, Tensor, tuple, list, dict) or their "
        f"nested structures with no self-reference, but got {type(input_data).__name__}: {input_data}."
    )


def __getattr__(name: str) -> Any:
    return vendored("mindspore.common.mutable", name)
