"""``mindspore.nn.dynamic_lr``: lists of learning rates, one for each step."""

import math
from collections.abc import Sequence

from dumpsim.core.errors import ScriptTypeError, ScriptValueError

__all__ = ["cosine_decay_lr", "exponential_decay_lr", "piecewise_constant_lr"]


def _positive(value: int, name: str, owner: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise ScriptTypeError(f"For '{owner}', the '{name}' must be int, but got '{type(value).__name__}'.")
    if value <= 0:
        raise ScriptValueError(
            f"For '{owner}', the '{name}' must be int and must > 0, but got '{value}' with type 'int'."
        )
    return value


def piecewise_constant_lr(milestone: Sequence[int], learning_rates: Sequence[float]) -> list[float]:
    """One rate up to each milestone.

    Examples
    --------
    >>> piecewise_constant_lr([2, 3], [0.1, 0.01])
    [0.1, 0.1, 0.01]
    """
    if len(milestone) != len(learning_rates):
        raise ScriptValueError(
            "For 'piecewise_constant_lr', the size of 'milestone' must be same with the size of 'learning_rates', "
            f"but got 'milestone' size: {len(milestone)}, 'learning_rates' size: {len(learning_rates)}."
        )
    rates: list[float] = []
    for stop, rate in zip(milestone, learning_rates, strict=True):
        if _positive(stop, "milestone", "piecewise_constant_lr") < len(rates):
            raise ScriptValueError("For 'piecewise_constant_lr', the value of milestone must not decrease.")
        rates += [float(rate)] * (stop - len(rates))
    return rates


def exponential_decay_lr(
    learning_rate: float, decay_rate: float, total_step: int, step_per_epoch: int, decay_epoch: int,
    is_stair: bool = False,
) -> list[float]:  # fmt: skip
    """Rates that fall by a factor in `decay_epoch` epochs.

    Examples
    --------
    >>> exponential_decay_lr(0.1, 0.5, 4, 1, 1)
    [0.1, 0.05, 0.025, 0.0125]
    """
    owner = "exponential_decay_lr"
    per_epoch = _positive(step_per_epoch, "step_per_epoch", owner)
    span = _positive(decay_epoch, "decay_epoch", owner)
    rates = []
    for step in range(_positive(total_step, "total_step", owner)):
        epochs = step // per_epoch / span
        rates.append(learning_rate * decay_rate ** (math.floor(epochs) if is_stair else epochs))
    return rates


def cosine_decay_lr(
    min_lr: float, max_lr: float, total_step: int, step_per_epoch: int, decay_epoch: int
) -> list[float]:
    """Rates that fall from `max_lr` to `min_lr` along a cosine in `decay_epoch` epochs.

    Examples
    --------
    >>> cosine_decay_lr(0.0, 1.0, 3, 1, 2)
    [1.0, 0.5, 0.0]
    """
    owner = "cosine_decay_lr"
    if min_lr >= max_lr:
        raise ScriptValueError(
            f"For '{owner}', the 'max_lr' must be greater than the 'min_lr', "
            f"but got 'max_lr' value: {max_lr}, 'min_lr' value: {min_lr}."
        )
    per_epoch = _positive(step_per_epoch, "step_per_epoch", owner)
    span = _positive(decay_epoch, "decay_epoch", owner)
    half = 0.5 * (max_lr - min_lr)
    epochs = (min(step // per_epoch, span) for step in range(_positive(total_step, "total_step", owner)))
    return [min_lr + half * (1.0 + math.cos(math.pi * epoch / span)) for epoch in epochs]
