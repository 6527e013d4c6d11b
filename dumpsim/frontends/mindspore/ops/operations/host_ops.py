"""Primitives that answer from the types alone, or that steer the graph."""

from typing import Any

from dumpsim.frontends.mindspore.common import dtype as mstype
from dumpsim.frontends.mindspore.common.tensor import Tensor
from dumpsim.frontends.mindspore.ops.function import create
from dumpsim.frontends.mindspore.ops.function.elementwise import unshared_cast
from dumpsim.frontends.mindspore.ops.function.steer import depend, stop_gradient
from dumpsim.frontends.mindspore.ops.primitive import Primitive

__all__ = [
    "Cast",
    "DType",
    "Depend",
    "Fill",
    "Identity",
    "Ones",
    "OnesLike",
    "Rank",
    "ScalarToTensor",
    "Shape",
    "Size",
    "StopGradient",
    "TensorShape",
    "Unstack",
    "Zeros",
    "ZerosLike",
]


class _Host(Primitive):
    """A primitive without settings."""

    def __init__(self) -> None:
        super().__init__(type(self).__name__)


class Shape(_Host):
    """Extents as Python ints."""

    def __call__(self, input_x: Tensor) -> tuple[int, ...]:
        return input_x.shape


class TensorShape(_Host):
    """Extents as a Tensor."""

    def __call__(self, input_x: Tensor) -> Tensor:
        return Tensor(input_x.shape, mstype.int64)


class Rank(_Host):
    """Number of axes."""

    def __call__(self, input_x: Tensor) -> int:
        return input_x.ndim


class Size(_Host):
    """Number of elements."""

    def __call__(self, input_x: Tensor) -> int:
        return input_x.size


class DType(_Host):
    """Number type."""

    def __call__(self, input_x: Tensor) -> mstype.Number:
        return input_x.dtype


class Cast(_Host):
    """Another number type; nothing runs where it is the same.

    It is no function of the library, so that its operator has the scope of the call. [source learning_rate_schedule]
    """

    def __call__(self, input_x: Any, dtype: Any) -> Tensor:
        kind = mstype.type_of(dtype, "ops.cast")
        if self.attrs and isinstance(input_x, Tensor) and input_x._dtype != kind:  # a strategy
            found: Tensor = self._run([input_x, kind])
            return found
        return unshared_cast(input_x, dtype)


class Identity(_Host):
    """The operand."""

    def __call__(self, x: Tensor) -> Tensor:
        return x


class Fill(_Host):
    """One value everywhere."""

    def __call__(self, type: Any, shape: Any, value: Any) -> Tensor:
        return create.fill(type, shape, value)


class Ones(_Host):
    """Ones."""

    def __call__(self, shape: Any, dtype: Any = None) -> Tensor:
        return create.ones(shape, dtype)


class Zeros(_Host):
    """Zeros."""

    def __call__(self, shape: Any, dtype: Any = None) -> Tensor:
        return create.zeros(shape, dtype)


class OnesLike(_Host):
    """Ones in the shape of a tensor."""

    def __call__(self, x: Tensor) -> Tensor:
        return create.ones_like(x)


class ZerosLike(_Host):
    """Zeros in the shape of a tensor."""

    def __call__(self, x: Tensor) -> Tensor:
        return create.zeros_like(x)


class ScalarToTensor(_Host):
    """A number as a 0-d Tensor."""

    def __call__(self, input_x: Any, dtype: Any = mstype.float32) -> Tensor:
        return Tensor(input_x, dtype)


class Unstack(Primitive):
    """The slices along an axis; their number is that of the axis."""

    def __init__(self, axis: int = 0, num: int | None = None) -> None:
        super().__init__("Unstack")
        self.axis, self.num = axis, num
        self._given = {"axis": axis, "num": num}

    def __call__(self, input_x: Tensor) -> tuple[Tensor, ...]:
        number = self.num if self.num is not None else input_x.shape[self.axis]
        pieces: tuple[Tensor, ...] = self._run([input_x], {"axis": self.axis, "num": number})
        return pieces


class Depend(_Host):
    """The first operand, once the second is done."""

    def __call__(self, value: Any, expr: Any) -> Any:
        return depend(value, expr)


class StopGradient(_Host):
    """The operand, through which no gradient passes."""

    def __call__(self, value: Any) -> Any:
        return stop_gradient(value)
