"""Functions of the top level that create tensors."""

from typing import Any

from dumpsim.core.dtype import DType
from dumpsim.frontends.mindspore.common.tensor import Tensor

__all__ = ["from_numpy", "tensor"]


def tensor(
    input_data: Any = None, dtype: DType | None = None, shape: Any = None, init: Any = None, const_arg: bool = False
) -> Tensor:
    """Create a Tensor.

    Examples
    --------
    >>> tensor([1, 2])
    Tensor(shape=[2], dtype=Int64, value= [1, 2])
    """
    return Tensor(input_data, dtype, shape, init, const_arg)


def from_numpy(array: Any) -> Tensor:
    """Create a Tensor that shares an array's memory."""
    return Tensor.from_numpy(array)
