"""``mindspore.nn.learning_rate_schedule``: learning rates that depend on the step."""

import math
from typing import Any

from dumpsim.core.errors import ScriptTypeError, ScriptValueError
from dumpsim.frontends.mindspore import ops
from dumpsim.frontends.mindspore._checkparam import check_positive_float
from dumpsim.frontends.mindspore._standin import vendored
from dumpsim.frontends.mindspore.common import dtype as mstype
from dumpsim.frontends.mindspore.common._operandtypes import type_text
from dumpsim.frontends.mindspore.common.parameter import Parameter
from dumpsim.frontends.mindspore.common.tensor import Tensor
from dumpsim.frontends.mindspore.nn._check import positive_int, typed
from dumpsim.frontends.mindspore.nn.cell import Cell

__all__ = [
    "CosineDecayLR",
    "ExponentialDecayLR",
    "InverseDecayLR",
    "LearningRateSchedule",
    "NaturalExpDecayLR",
    "PolynomialDecayLR",
    "WarmUpLR",
]


class LearningRateSchedule(Cell):
    """Base of the schedules: `construct` takes the step and returns the rate."""

    def construct(self, global_step: Any) -> Any:
        raise NotImplementedError(
            "The `LearningRateSchedule` is an abstract class, please implement `construct` of the subclass."
        )


class _IteratorLearningRate(LearningRateSchedule):
    """One rate for each step."""

    def __init__(self, learning_rate: Tensor, name: str) -> None:
        super().__init__()
        self.learning_rate = Parameter(learning_rate, name)
        self.gather = ops.Gather()

    def construct(self, global_step: Any) -> Any:
        return self.gather(self.learning_rate, global_step, 0)


class _Decay(LearningRateSchedule):
    """A rate that decays with the step, continuously or in stairs.

    Parameters
    ----------
    learning_rate : float
        The rate of step 0.
    decay_rate : float
    decay_steps : int
        Steps of one decay.
    is_stair : bool
        Decay once every `decay_steps` steps.

    Raises
    ------
    ScriptTypeError, ScriptValueError
        For values that MindSpore refuses.
    """

    def __init__(self, learning_rate: float, decay_rate: float, decay_steps: int, is_stair: bool = False) -> None:
        super().__init__()
        self.decay_steps = positive_int(decay_steps, "decay_steps", self.cls_name)
        self.learning_rate = _positive(learning_rate, "learning_rate", self.cls_name)
        self.decay_rate = _positive(decay_rate, "decay_rate", self.cls_name)
        self.is_stair = typed(is_stair, "is_stair", [bool], self.cls_name)
        self.pow = ops.Pow()
        self.cast = ops.Cast()


class ExponentialDecayLR(_Decay):
    """``learning_rate * decay_rate ** (step / decay_steps)``."""

    def construct(self, global_step: Any) -> Any:
        p = self.cast(global_step, mstype.float32) / self.decay_steps
        if self.is_stair:
            p = ops.Floor()(p)
        return self.learning_rate * self.pow(self.decay_rate, p)


class NaturalExpDecayLR(_Decay):
    """``learning_rate * e ** (-decay_rate * step)``."""

    def construct(self, global_step: Any) -> Any:
        p = self.cast(global_step, mstype.float32)
        if self.is_stair:
            p = ops.FloorDiv()(p, self.decay_steps) * self.decay_steps
        return self.learning_rate * self.pow(math.e, -self.decay_rate * p)


class InverseDecayLR(_Decay):
    """``learning_rate / (1 + decay_rate * step / decay_steps)``."""

    def construct(self, global_step: Any) -> Any:
        p = self.cast(global_step, mstype.float32) / self.decay_steps
        if self.is_stair:
            p = ops.Floor()(p)
        return self.learning_rate / (1 + self.decay_rate * p)


class CosineDecayLR(LearningRateSchedule):
    """A rate that falls from `max_lr` to `min_lr` along half a cosine wave in `decay_steps` steps."""

    def __init__(self, min_lr: float, max_lr: float, decay_steps: int) -> None:
        super().__init__()
        self.min_lr = _not_negative(min_lr, "min_lr", self.cls_name)
        self.max_lr = _positive(max_lr, "max_lr", self.cls_name)
        self.decay_steps = positive_int(decay_steps, "decay_steps", self.cls_name)
        if min_lr >= max_lr:
            raise ScriptValueError(
                "For 'CosineDecayLR', the 'max_lr' must be greater than the 'min_lr', "
                f"but got 'max_lr' value: {max_lr}, 'min_lr' value: {min_lr}."
            )
        self.delta = 0.5 * (max_lr - min_lr)
        self.sin = ops.Sin()
        self.min = ops.Minimum()
        self.cast = ops.Cast()

    def construct(self, global_step: Any) -> Any:
        p = self.cast(self.min(global_step, self.decay_steps), mstype.float32)
        return self.min_lr + self.delta * (1.0 + self.sin(math.pi * (p / self.decay_steps + 0.5)))


class PolynomialDecayLR(LearningRateSchedule):
    """A rate that falls to `end_learning_rate` as a power of the remaining share of `decay_steps`."""

    def __init__(
        self,
        learning_rate: float,
        end_learning_rate: float,
        decay_steps: int,
        power: float,
        update_decay_steps: bool = False,
    ) -> None:
        super().__init__()
        self.start_learning_rate = check_positive_float(learning_rate, "learning_rate")
        self.end_learning_rate = _not_negative(end_learning_rate, "end_learning_rate", self.cls_name)
        self.decay_steps = positive_int(decay_steps, "decay_steps", self.cls_name)
        self.update_decay_steps = typed(update_decay_steps, "update_decay_steps", [bool], self.cls_name)
        self.power = _positive(power, "power", self.cls_name)
        self.diff_learning_rate = learning_rate - end_learning_rate
        self.pow = ops.Pow()
        self.ceil = ops.Ceil()
        self.min = ops.Minimum()
        self.max = ops.Maximum()

    def construct(self, global_step: Any) -> Any:
        tmp_global_step = ops.Cast()(global_step, mstype.float32)
        tmp_decay_step = self.decay_steps
        if self.update_decay_steps:
            tmp_decay_step = tmp_decay_step * self.max(self.ceil(tmp_global_step / tmp_decay_step), 1)
        else:
            tmp_global_step = self.min(tmp_global_step, tmp_decay_step)
        p = tmp_global_step / tmp_decay_step
        lr = self.diff_learning_rate * self.pow(1.0 - p, self.power) + self.end_learning_rate
        return lr  # noqa: RET504 - the IR shows the variable


class WarmUpLR(LearningRateSchedule):
    """A rate that grows to `learning_rate` in `warmup_steps` equal steps."""

    def __init__(self, learning_rate: float, warmup_steps: int) -> None:
        super().__init__()
        self.learning_rate = _not_negative(learning_rate, "learning_rate", self.cls_name)
        self.warmup_steps = positive_int(warmup_steps, "warmup_steps", self.cls_name)
        self.min = ops.Minimum()
        self.cast = ops.Cast()

    def construct(self, global_step: Any) -> Any:
        warmup_percent = self.cast(self.min(global_step, self.warmup_steps), mstype.float32) / self.warmup_steps
        return self.learning_rate * warmup_percent


def _not_negative(value: Any, name: str, owner: str) -> float:
    """Return `value` if it is a float of at least 0."""
    if not isinstance(value, float):
        raise ScriptTypeError(
            f"For '{owner}', the argument '{name}' must be type of float, but got '{name}' type: {type_text(value)}."
        )
    if value < 0:
        raise ScriptValueError(
            f"For '{owner}', the '{name}' must be float and must >= 0, but got '{value}' with type 'float'."
        )
    return value


def _positive(value: Any, name: str, owner: str) -> float:
    """Return `value` if it is a float above 0."""
    if not isinstance(value, float):
        raise ScriptTypeError(f"For '{owner}', the '{name}' must be float, but got '{type(value).__name__}'")
    if value <= 0:
        raise ScriptValueError(
            f"For '{owner}', the '{name}' must be float and must > 0, but got '{value}' with type 'float'."
        )
    return value


def __getattr__(name: str) -> Any:
    return vendored("mindspore.nn.learning_rate_schedule", name)
