"""``mindspore.nn.dynamic_lr``: lists of learning rates, one for each step."""

import math
from collections.abc import Sequence
from typing import Any

from dumpsim.core.errors import ScriptTypeError, ScriptValueError
from dumpsim.frontends.mindspore._checkparam import check_positive_int
from dumpsim.frontends.mindspore._standin import vendored

__all__ = [
    "cosine_decay_lr",
    "exponential_decay_lr",
    "inverse_decay_lr",
    "natural_exp_decay_lr",
    "piecewise_constant_lr",
    "polynomial_decay_lr",
    "warmup_lr",
]


def _positive(value: int, name: str, owner: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise ScriptTypeError(f"For '{owner}', the '{name}' must be int, but got '{type(value).__name__}'.")
    if value <= 0:
        raise ScriptValueError(
            f"For '{owner}', the '{name}' must be int and must > 0, but got '{value}' with type 'int'."
        )
    return value


def piecewise_constant_lr(milestone: Sequence[int], learning_rates: Sequence[float]) -> list[float]:
    """List one constant rate for the steps up to each milestone.

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
    for index, (stop, rate) in enumerate(zip(milestone, learning_rates, strict=True)):
        if check_positive_int(stop, f"milestone[{index}]") < len(rates):
            raise ScriptValueError("For 'piecewise_constant_lr', the value of milestone must not decrease.")
        rates += [float(rate)] * (stop - len(rates))
    return rates


def exponential_decay_lr(
    learning_rate: float, decay_rate: float, total_step: int, step_per_epoch: int, decay_epoch: int,
    is_stair: bool = False,
) -> list[float]:  # fmt: skip
    """List rates that fall by the factor `decay_rate` in `decay_epoch` epochs.

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


def natural_exp_decay_lr(
    learning_rate: float, decay_rate: float, total_step: int, step_per_epoch: int, decay_epoch: int,
    is_stair: bool = False,
) -> list[float]:  # fmt: skip
    """List rates that fall by powers of e.

    Examples
    --------
    >>> [round(rate, 4) for rate in natural_exp_decay_lr(0.1, 0.9, 3, 1, 2, True)]
    [0.1, 0.1, 0.0165]
    """
    owner = "natural_exp_decay_lr"
    per_epoch = _positive(step_per_epoch, "step_per_epoch", owner)
    span = _positive(decay_epoch, "decay_epoch", owner)
    epochs = (step // per_epoch for step in range(_positive(total_step, "total_step", owner)))
    return [learning_rate * math.e ** (-decay_rate * (epoch // span * span if is_stair else epoch)) for epoch in epochs]


def inverse_decay_lr(
    learning_rate: float, decay_rate: float, total_step: int, step_per_epoch: int, decay_epoch: int,
    is_stair: bool = False,
) -> list[float]:  # fmt: skip
    """List rates divided by ``1 + decay_rate * epoch / decay_epoch``.

    Examples
    --------
    >>> inverse_decay_lr(0.1, 1.0, 3, 1, 1)
    [0.1, 0.05, 0.03333333333333333]
    """
    owner = "inverse_decay_lr"
    per_epoch = _positive(step_per_epoch, "step_per_epoch", owner)
    span = _positive(decay_epoch, "decay_epoch", owner)
    rates = []
    for step in range(_positive(total_step, "total_step", owner)):
        epoch = step // per_epoch
        grown = decay_rate * (epoch // span) if is_stair else decay_rate * epoch / span
        rates.append(learning_rate / (1 + grown))
    return rates


def polynomial_decay_lr(
    learning_rate: float, end_learning_rate: float, total_step: int, step_per_epoch: int, decay_epoch: int,
    power: float, update_decay_epoch: bool = False,
) -> list[float]:  # fmt: skip
    """List rates that fall to `end_learning_rate` as a power of the epoch, in cycles with `update_decay_epoch`.

    Examples
    --------
    >>> polynomial_decay_lr(1.0, 0.5, 4, 1, 2, 1.0)
    [1.0, 0.75, 0.5, 0.5]
    """
    owner = "polynomial_decay_lr"
    per_epoch = _positive(step_per_epoch, "step_per_epoch", owner)
    span = _positive(decay_epoch, "decay_epoch", owner)
    rates = []
    for step in range(_positive(total_step, "total_step", owner)):
        epoch, whole = step // per_epoch, span
        if update_decay_epoch:
            whole = span * max(math.ceil(epoch / span), 1)
        share = 1 - min(epoch, whole) / whole
        rates.append((learning_rate - end_learning_rate) * share**power + end_learning_rate)
    return rates


def warmup_lr(learning_rate: float, total_step: int, step_per_epoch: int, warmup_epoch: int) -> list[float]:
    """List rates that grow from 0 to `learning_rate` in `warmup_epoch` epochs.

    Examples
    --------
    >>> warmup_lr(0.1, 3, 1, 2)
    [0.0, 0.05, 0.1]
    """
    owner = "warmup_lr"
    per_epoch = _positive(step_per_epoch, "step_per_epoch", owner)
    span = _positive(warmup_epoch, "warmup_epoch", owner)
    epochs = (min(step // per_epoch, span) for step in range(_positive(total_step, "total_step", owner)))
    return [learning_rate * epoch / span for epoch in epochs]


def cosine_decay_lr(
    min_lr: float, max_lr: float, total_step: int, step_per_epoch: int, decay_epoch: int
) -> list[float]:
    """List rates that fall from `max_lr` to `min_lr` along a cosine in `decay_epoch` epochs.

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


def __getattr__(name: str) -> Any:
    return vendored("mindspore.nn.dynamic_lr", name)
