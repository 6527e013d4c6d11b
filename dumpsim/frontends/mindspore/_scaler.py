"""``StaticLossScaler`` and ``DynamicLossScaler`` of ``mindspore.amp``: scales of the loss for hand-written steps."""

from typing import Any

from dumpsim.core.errors import ScriptTypeError, ScriptValueError
from dumpsim.frontends.mindspore import ops
from dumpsim.frontends.mindspore._checkparam import check_positive_int, check_value_type
from dumpsim.frontends.mindspore.common import dtype as mstype
from dumpsim.frontends.mindspore.common.parameter import Parameter
from dumpsim.frontends.mindspore.common.tensor import Tensor

__all__ = ["DynamicLossScaler", "StaticLossScaler"]


def _each(inputs: Any, scale: Any) -> Any:
    """Multiply every tensor of a loss or of gradients by the scale."""
    if isinstance(inputs, (tuple, list)):
        return type(inputs)(_each(item, scale) for item in inputs)
    if not isinstance(inputs, Tensor):
        raise ScriptTypeError(f"a value of type {type(inputs).__name__}", where="scale", allowed=("Tensor",))
    return ops.mul(inputs, ops.cast(scale, inputs.dtype))


def _scale(value: Any) -> Parameter:
    """Return the scale of a loss; other values are refused with MindSpore's texts."""
    check_value_type("scale_value", value, [float, int])
    if value < 1.0:
        raise ScriptValueError(f"The argument 'scale_value' must be > 1, but got {value}")
    return Parameter(Tensor(float(value), mstype.float32), name="scale_value")


class StaticLossScaler:
    """A constant scale, by which losses are multiplied and gradients divided.

    Parameters
    ----------
    scale_value : float or int
        At least 1.

    Examples
    --------
    >>> StaticLossScaler(4.0).scale(Tensor(2.0)).item()
    8.0
    """

    def __init__(self, scale_value: float) -> None:
        self.scale_value = _scale(scale_value)

    def scale(self, inputs: Any) -> Any:
        """Multiply the loss, or a tuple or list of losses, by the scale."""
        return _each(inputs, self.scale_value)

    def unscale(self, inputs: Any) -> Any:
        """Divide the loss or the gradients by the scale."""
        return _each(inputs, ops.div(1.0, self.scale_value))

    def adjust(self, grads_finite: Any) -> bool:
        """Return False: a constant scale is never adjusted."""
        return False


class DynamicLossScaler(StaticLossScaler):
    """A scale that shrinks at every overflow and grows after `scale_window` steps without one.

    Parameters
    ----------
    scale_value : float or int
        At least 1.
    scale_factor : int
        Above 0.
    scale_window : int
        Steps without overflow before the scale grows, above 0.

    Examples
    --------
    >>> scaler = DynamicLossScaler(scale_value=8, scale_factor=2, scale_window=1)
    >>> scaler.scale(Tensor(2.0)).item(), scaler.unscale((Tensor(16.0),))[0].item()
    (16.0, 2.0)
    >>> scaler.adjust(Tensor(False)), scaler.scale_value.item()
    (True, 4.0)
    """

    def __init__(self, scale_value: float, scale_factor: int, scale_window: int) -> None:
        super().__init__(scale_value)
        for name, value in (("scale_window", scale_window), ("scale_factor", scale_factor)):
            check_positive_int(value, name)
        self.counter = Parameter(Tensor(0, mstype.int32), name="counter")
        self.scale_window, self.scale_factor = scale_window, scale_factor

    def adjust(self, grads_finite: Any) -> bool:
        """Adjust the scale after a step; `grads_finite` is the result of `amp.all_finite` for its gradients."""
        grown = ops.mul(self.scale_value, float(self.scale_factor))
        due = ops.logical_and(ops.equal(self.counter, self.scale_window - 1), ops.isfinite(grown))
        shrunk = ops.maximum(ops.div(self.scale_value, float(self.scale_factor)), 1.0)
        scale = ops.select(grads_finite, ops.select(due, grown, self.scale_value), shrunk)
        counted = ops.mul(
            ops.floor_mod(ops.add(self.counter, 1), self.scale_window), ops.cast(grads_finite, mstype.int32)
        )
        ops.assign(self.scale_value, scale)
        ops.assign(self.counter, counted)
        return True
