"""``mindspore.amp``: fixed loss scaling; automatic mixed precision is not emulated."""

from typing import Any

from dumpsim.core.errors import ScriptTypeError, ScriptValueError
from dumpsim.frontends.mindspore import ops
from dumpsim.frontends.mindspore._absent import absent
from dumpsim.frontends.mindspore.common.tensor import Tensor

__all__ = ["FixedLossScaleManager", "LossScaleManager", "StaticLossScaler", "all_finite", "build_train_network"]


class LossScaleManager:
    """Base of the managers of the scale of the loss."""

    def get_loss_scale(self) -> float:
        """The scale."""
        raise NotImplementedError

    def update_loss_scale(self, overflow: bool) -> None:
        """React to an overflow."""


class FixedLossScaleManager(LossScaleManager):
    """A scale that stays.

    Examples
    --------
    >>> FixedLossScaleManager(1024.0).get_loss_scale()
    1024.0
    """

    def __init__(self, loss_scale: float = 128.0, drop_overflow_update: bool = True) -> None:
        if loss_scale < 1:
            raise ScriptValueError(
                f"The argument 'loss_scale' must be >= 1, but got {loss_scale}", where="FixedLossScaleManager"
            )
        self._loss_scale = loss_scale
        self._drop = drop_overflow_update

    def get_loss_scale(self) -> float:
        """The scale."""
        return self._loss_scale

    @property
    def drops_updates(self) -> bool:
        """Whether steps with an overflow are dropped."""
        return self._drop

    def get_drop_overflow_update(self) -> bool:
        """Whether steps with an overflow are dropped."""
        return self._drop


class StaticLossScaler:
    """Multiplies losses and divides gradients by a fixed scale.

    Examples
    --------
    >>> StaticLossScaler(4.0).scale(Tensor(2.0)).item()
    8.0
    """

    def __init__(self, scale_value: float) -> None:
        if scale_value <= 0:
            raise ScriptValueError(f"the scale {scale_value} is not above 0", where="StaticLossScaler")
        self.scale_value = float(scale_value)

    def scale(self, inputs: Any) -> Any:
        """The loss, or a tuple of losses, times the scale."""
        return _each(lambda t: ops.mul(t, Tensor(self.scale_value, t.dtype)), inputs)

    def unscale(self, inputs: Any) -> Any:
        """The gradients without the scale."""
        return _each(lambda t: ops.mul(t, Tensor(1.0 / self.scale_value, t.dtype)), inputs)

    def adjust(self, grads_finite: Any) -> bool:
        """A fixed scale is never adjusted."""
        return False


def _each(function: Any, inputs: Any) -> Any:
    if isinstance(inputs, Tensor):
        return function(inputs)
    if not isinstance(inputs, (tuple, list)):
        raise ScriptTypeError(f"a value of type {type(inputs).__name__}", where="StaticLossScaler", allowed=("Tensor",))
    return tuple(function(tensor) for tensor in inputs)


def all_finite(inputs: Any) -> Tensor:
    """Whether no element of any tensor is infinite or NaN.

    Examples
    --------
    >>> bool(all_finite([Tensor([1.0, float("inf")])]))
    False
    """
    finite = [ops.reduce_all(ops.isfinite(tensor)) for tensor in inputs]
    result: Tensor = finite[0]
    for other in finite[1:]:
        result = ops.logical_and(result, other)
    return result


def build_train_network(
    network: Any,
    optimizer: Any,
    loss_fn: Any = None,
    level: str = "O0",
    boost_level: str = "O0",
    **kwargs: Any,
) -> Any:
    """The cell that trains a network in steps, without mixed precision.

    Raises
    ------
    UnsupportedError
        For another level than "O0", and for a manager that drops steps on overflow.
    """
    from dumpsim.frontends.mindspore.train.model import Model

    model = Model(network, loss_fn, optimizer, amp_level=level, boost_level=boost_level, **kwargs)
    return model.train_network.set_train()


def __getattr__(name: str) -> Any:
    raise absent("mindspore.amp", name)
