"""``mindspore.common.initializer``: the initializers, and Tensors to be filled by them."""

from typing import Any

import numpy as np

from dumpsim.core.dtype import DType
from dumpsim.core.errors import ScriptTypeError, ScriptValueError, UnsupportedError
from dumpsim.frontends.mindspore._standin import vendored
from dumpsim.frontends.mindspore.common import dtype as mstype
from dumpsim.frontends.mindspore.common._initializers import (
    Constant,
    HeNormal,
    HeUniform,
    Initializer,
    Normal,
    One,
    TruncatedNormal,
    Uniform,
    XavierNormal,
    XavierUniform,
    Zero,
    initializer_of,
)
from dumpsim.frontends.mindspore.common.tensor import Tensor

__all__ = [
    "Constant",
    "HeNormal",
    "HeUniform",
    "Initializer",
    "Normal",
    "One",
    "TruncatedNormal",
    "Uniform",
    "XavierNormal",
    "XavierUniform",
    "Zero",
    "initializer",
]


def initializer(init: Any, shape: Any = None, dtype: DType = mstype.float32) -> Tensor:
    """Create a Tensor to be filled by an initializer.

    Parameters
    ----------
    init : Tensor, str, Initializer or number
        A Tensor is returned unchanged if it has the given shape.
    shape : tuple, list or int
        Extents, all of them positive.
    dtype : number type

    Raises
    ------
    ScriptTypeError, ScriptValueError
        As in MindSpore, with its messages.

    Examples
    --------
    >>> initializer("ones", [2], mstype.int32).init_data().asnumpy()
    array([1, 1], dtype=int32)
    """
    if not isinstance(init, (Tensor, int, float, str, Initializer, np.number)):
        raise ScriptTypeError(
            "For 'initializer', the type of the 'init' argument should be 'Tensor', 'number', 'string' "
            f"or 'initializer', but got {type(init)}."
        )
    if isinstance(init, Tensor):
        wanted = list(shape) if isinstance(shape, (tuple, list)) else [shape]
        if shape is not None and list(init.shape) != wanted:
            raise ScriptValueError(
                "For 'initializer', the shape of the 'init' argument should be same as the argument 'shape', "
                f"but got the 'init' shape {list(init.shape)} and the 'shape' {shape}."
            )
        return init
    if shape is None:
        raise UnsupportedError("initializer() without a shape is not emulated", where="shape")
    extents = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
    if any(not isinstance(extent, int) or extent <= 0 for extent in extents):
        raise ScriptValueError(
            "For 'initializer', the argument 'shape' is invalid, the value of 'shape' must be positive integer, "
            f"but got {shape if isinstance(shape, str) else extents}"
        )
    filler = initializer_of(init)
    tensor = Tensor(dtype=dtype, shape=extents, init=filler)
    if isinstance(init, (int, float, np.number)):
        tensor._take(filler.array(tensor._shape, tensor._dtype))  # a number is there at once [2.10 observed]
    return tensor


def __getattr__(name: str) -> Any:
    return vendored("mindspore.common.initializer", name)
