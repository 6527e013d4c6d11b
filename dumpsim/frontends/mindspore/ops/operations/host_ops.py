"""Primitives that are computed from types alone, or that control the graph."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from dumpsim.core.errors import ScriptTypeError
from dumpsim.frontends.mindspore._checkparam import check_value_type
from dumpsim.frontends.mindspore._current import capturing
from dumpsim.frontends.mindspore.common import dtype as mstype
from dumpsim.frontends.mindspore.common._operandtypes import takes
from dumpsim.frontends.mindspore.common.tensor import Tensor
from dumpsim.frontends.mindspore.ops.function import create
from dumpsim.frontends.mindspore.ops.function.elementwise import cast_type, unshared_cast
from dumpsim.frontends.mindspore.ops.function.further import dtype as number_type
from dumpsim.frontends.mindspore.ops.function.shape import rank, shape, size, unstack
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


def _checked(op_type: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorate the call of a primitive with one operand that must be a Tensor."""

    def decorated(call: Callable[..., Any]) -> Callable[..., Any]:
        @takes(op_type)
        def operand(input_x: Any) -> Any:
            return input_x

        @wraps(call)
        def checked(self: Any, input_x: Any) -> Any:
            return call(self, operand(input_x))

        return checked

    return decorated


class _Host(Primitive):
    """A primitive without settings."""

    def __init__(self) -> None:
        super().__init__(type(self).__name__)


class Shape(_Host):
    """Extents as Python ints."""

    def __call__(self, input_x: Tensor) -> tuple[int, ...]:
        return shape(input_x)


class TensorShape(_Host):
    """Extents as a Tensor."""

    @_checked("TensorShape")
    def __call__(self, input_x: Tensor) -> Tensor:
        return Tensor(input_x.shape, mstype.int64)


class Rank(_Host):
    """Number of axes."""

    def __call__(self, input_x: Tensor) -> int:
        return rank(input_x)


class Size(_Host):
    """Number of elements."""

    def __call__(self, input_x: Tensor) -> int:
        return size(input_x)


class DType(_Host):
    """Number type."""

    def __call__(self, input_x: Tensor) -> mstype.Number:
        kind: mstype.Number = number_type(input_x)
        return kind


class Cast(_Host):
    """Convert to another number type; for the same type, no operator runs.

    It is not a function of the library, so its operator has the scope of the call. [source learning_rate_schedule]
    """

    def __call__(self, input_x: Any, dtype: Any) -> Tensor:
        kind = cast_type(dtype)
        if self.attrs and isinstance(input_x, Tensor) and input_x._dtype != kind:  # a strategy
            found: Tensor = self._run([input_x, kind])
            return found
        return unshared_cast(input_x, dtype)


class Identity(_Host):
    """Return the operand."""

    @_checked("Identity")
    def __call__(self, x: Tensor) -> Tensor:
        return x


class Fill(_Host):
    """Fill a shape with one value."""

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
    """Convert a number to a 0-d Tensor."""

    def __call__(self, input_x: Any, dtype: Any = mstype.float32) -> Tensor:
        return Tensor(input_x, dtype)


class Unstack(Primitive):
    """Split into the slices along an axis; op by op, `num` and further operands have no effect. [2.10 observed]"""

    def __init__(self, axis: int = 0, num: int | None = None) -> None:
        super().__init__("Unstack")
        check_value_type("axis", axis, [int], "Unstack")
        if num is not None:
            check_value_type("num", num, [int], "Unstack")
        self.axis, self.num = axis, num
        self._given = {"axis": axis, "num": num}

    def __call__(self, input_x: Tensor, *others: Any) -> tuple[Tensor, ...]:
        if capturing() is None:
            return unstack(input_x, self.axis)
        if others:
            raise ScriptTypeError(f"For 'Unstack', the number of operands must be 1, but got {1 + len(others)}.")
        number = self.num if self.num is not None else input_x.shape[self.axis]
        pieces: tuple[Tensor, ...] = self._run([input_x], {"axis": self.axis, "num": number})
        return pieces


class Depend(_Host):
    """Return the first operand after the second is computed."""

    def __call__(self, value: Any, expr: Any) -> Any:
        return depend(value, expr)


class StopGradient(_Host):
    """Return the operand, and block its gradient."""

    def __call__(self, value: Any) -> Any:
        return stop_gradient(value)
