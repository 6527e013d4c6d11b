"""``mindspore.dataset.transforms``: functions for `Dataset.map`."""

from typing import Any

import numpy as np

from dumpsim.core.dtype import DType
from dumpsim.core.errors import ScriptRuntimeError, ScriptTypeError, ScriptValueError
from dumpsim.frontends.mindspore._standin import vendored
from dumpsim.frontends.mindspore.common import dtype as mstype
from dumpsim.frontends.mindspore.common.tensor import Tensor

__all__ = ["Compose", "Concatenate", "Fill", "OneHot", "TypeCast"]


class TypeCast:
    """Convert values to another number type.

    Examples
    --------
    >>> import numpy as np
    >>> TypeCast(mstype.int32)(np.array([1.5])).dtype
    dtype('int32')
    """

    def __init__(self, output_type: DType | type) -> None:
        self.kind = mstype.type_of(output_type, "TypeCast")

    def __call__(self, value: Any) -> Any:
        return (value.asnumpy() if isinstance(value, Tensor) else np.asarray(value)).astype(self.kind.numpy)


class Compose:
    """Apply functions one after the other."""

    def __init__(self, transforms: Any) -> None:
        self.transforms = list(transforms)

    def __call__(self, *values: Any) -> Any:
        for transform in self.transforms:
            made = transform(*values)
            values = made if isinstance(made, tuple) else (made,)
        return values if len(values) > 1 else values[0]


class OneHot:
    """Convert class numbers to one-hot vectors.

    Parameters
    ----------
    num_classes : int
    smoothing_rate : float
        Share that is distributed evenly over all classes.

    Examples
    --------
    >>> OneHot(3)(np.array(1))
    array([0, 1, 0])
    """

    def __init__(self, num_classes: int, smoothing_rate: float = 0.0) -> None:
        if isinstance(num_classes, bool) or not isinstance(num_classes, int):
            raise ScriptTypeError(f"num_classes is {num_classes!r}", where="OneHot", allowed=("int",))
        if num_classes < 1 or not 0 <= smoothing_rate <= 1:
            raise ScriptValueError(
                f"num_classes is {num_classes} and smoothing_rate {smoothing_rate}", where="OneHot",
                allowed=("num_classes from 1", "smoothing_rate from 0 to 1"),
            )  # fmt: skip
        self.num_classes, self.smoothing_rate = num_classes, smoothing_rate

    def __call__(self, value: Any) -> Any:
        numbers = np.asarray(value)
        if numbers.dtype.kind not in "iu":
            raise ScriptRuntimeError(f"OneHot: OneHot only supports input of int type, but got:{numbers.dtype}")
        if numbers.size and (numbers.min() < 0 or numbers.max() >= self.num_classes):
            raise ScriptRuntimeError(
                f"OneHot: index values should not bigger than num classes: {self.num_classes}, but got: {numbers.max()}"
            )
        if not self.smoothing_rate:
            return np.eye(self.num_classes, dtype=numbers.dtype)[numbers]
        share = self.smoothing_rate / self.num_classes
        return np.eye(self.num_classes)[numbers] * (1 - self.smoothing_rate) + share


class Fill:
    """Replace all elements by one value.

    Examples
    --------
    >>> Fill(3)(np.zeros(2, np.int32))
    array([3, 3], dtype=int32)
    """

    def __init__(self, fill_value: Any) -> None:
        self.fill_value = fill_value

    def __call__(self, value: Any) -> Any:
        return np.full_like(np.asarray(value), self.fill_value)


class Concatenate:
    """Concatenate values along the first axis.

    Examples
    --------
    >>> Concatenate(append=np.array([9]))(np.array([1, 2]))
    array([1, 2, 9])
    """

    def __init__(self, axis: int = 0, prepend: Any = None, append: Any = None) -> None:
        if axis not in (0, -1):
            raise ScriptValueError("only 1D concatenation supported.")
        self.prepend, self.append = prepend, append

    def __call__(self, *values: Any) -> Any:
        parts = [self.prepend, *values, self.append]
        return np.concatenate([np.asarray(part) for part in parts if part is not None], axis=0)


__path__ = ()  # the vendor's module has submodules


def __getattr__(name: str) -> Any:
    return vendored("mindspore.dataset.transforms", name)
