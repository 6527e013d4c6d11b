"""``mindspore.nn.dynamic_lr``: lists of learning rates, one for each step."""

import math
from collections.abc import Sequence
from typing import Any

from dumpsim.core.errors import ScriptTypeError, ScriptValueError
from dumpsim.frontends.mindspore._checkparam import (
    check_is_float,
    check_non_negative_float,
    check_positive_float,
    check_positive_int,
    check_value_type,
)
from dumpsim.frontends.mindspore._standin import vendored
from dumpsim.frontends.mindspore.common._operandtypes import type_text

__all__ = [
    "cosine_decay_lr",
    "exponential_decay_lr",
    "inverse_decay_lr",
    "natural_exp_decay_lr",
    "piecewise_constant_lr",
    "polynomial_decay_lr",
    "warmup_lr",
]


def _check_steps(**counts: Any) -> None:
    for name, count in counts.items():
        check_positive_int(count, name)


def _check_float(value: Any, name: str, owner: str) -> None:
    if not isinstance(value, float):
        raise ScriptTypeError(
            f"For '{owner}', the argument '{name}' must be type of float, but got '{name}' type: {type_text(value)}."
        )


def _check_decay(learning_rate: Any, decay_rate: Any, is_stair: Any, **counts: Any) -> None:
    _check_steps(**counts)
    check_positive_float(learning_rate, "learning_rate")
    check_positive_float(decay_rate, "decay_rate")
    check_value_type("is_stair", is_stair, [bool])


def piecewise_constant_lr(milestone: Sequence[int], learning_rates: Sequence[float]) -> list[float]:
    """List one constant rate for the steps up to each milestone.

    Examples
    --------
    >>> piecewise_constant_lr([2, 3], [0.1, 0.01])
    [0.1, 0.1, 0.01]
    """
    check_value_type("milestone", milestone, (tuple, list))
    check_value_type("learning_rates", learning_rates, (tuple, list))
    if len(milestone) != len(learning_rates):
        raise ScriptValueError(
            "For 'piecewise_constant_lr', the size of 'milestone' must be same with the size of 'learning_rates', "
            f"but got 'milestone' size: {len(milestone)}, 'learning_rates' size: {len(learning_rates)}."
        )
    rates: list[float] = []
    for index, (stop, rate) in enumerate(zip(milestone, learning_rates, strict=True)):
        if check_positive_int(stop, f"milestone[{index}]") < len(rates):
            last = milestone[index - 1]
            raise ScriptValueError(
                f"For 'piecewise_constant_lr', the value of milestone[{index}] must be greater than "
                f"milestone[{index - 1}], but got milestone[{index}]: {stop}, milestone[{index - 1}]: {last}."
            )
        check_is_float(rate, f"learning_rates[{index}]")
        rates += [rate] * (stop - len(rates))
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
    counts = {"total_step": total_step, "step_per_epoch": step_per_epoch, "decay_epoch": decay_epoch}
    _check_decay(learning_rate, decay_rate, is_stair, **counts)
    rates = []
    for step in range(total_step):
        epochs = step // step_per_epoch / decay_epoch
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
    counts = {"total_step": total_step, "step_per_epoch": step_per_epoch, "decay_epoch": decay_epoch}
    _check_decay(learning_rate, decay_rate, is_stair, **counts)
    epochs = (step // step_per_epoch for step in range(total_step))
    return [
        learning_rate * math.e ** (-decay_rate * (epoch // decay_epoch * decay_epoch if is_stair else epoch))
        for epoch in epochs
    ]


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
    counts = {"total_step": total_step, "step_per_epoch": step_per_epoch, "decay_epoch": decay_epoch}
    _check_decay(learning_rate, decay_rate, is_stair, **counts)
    rates = []
    for step in range(total_step):
        epoch = step // step_per_epoch
        grown = decay_rate * (epoch // decay_epoch) if is_stair else decay_rate * epoch / decay_epoch
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
    check_positive_float(learning_rate, "learning_rate")
    _check_float(end_learning_rate, "end_learning_rate", "polynomial_decay_lr")
    check_non_negative_float(end_learning_rate, "end_learning_rate")
    check_positive_float(power, "power")
    _check_steps(total_step=total_step, step_per_epoch=step_per_epoch, decay_epoch=decay_epoch)
    check_value_type("update_decay_epoch", update_decay_epoch, [bool])
    rates = []
    for step in range(total_step):
        epoch, whole = step // step_per_epoch, decay_epoch
        if update_decay_epoch:
            whole = decay_epoch * max(math.ceil(epoch / decay_epoch), 1)
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
    _check_float(learning_rate, "learning_rate", "warmup_lr")
    check_non_negative_float(learning_rate, "learning_rate")
    _check_steps(warmup_epoch=warmup_epoch, total_step=total_step, step_per_epoch=step_per_epoch)
    epochs = (min(step // step_per_epoch, warmup_epoch) for step in range(total_step))
    return [learning_rate * epoch / warmup_epoch for epoch in epochs]


def cosine_decay_lr(
    min_lr: float, max_lr: float, total_step: int, step_per_epoch: int, decay_epoch: int
) -> list[float]:
    """List rates that fall from `max_lr` to `min_lr` along a cosine in `decay_epoch` epochs.

    Examples
    --------
    >>> cosine_decay_lr(0.0, 1.0, 3, 1, 2)
    [1.0, 0.5, 0.0]
    """
    _check_float(min_lr, "min_lr", "cosine_decay_lr")
    check_non_negative_float(min_lr, "min_lr")
    check_positive_float(max_lr, "max_lr")
    _check_steps(total_step=total_step, step_per_epoch=step_per_epoch, decay_epoch=decay_epoch)
    if min_lr >= max_lr:
        raise ScriptValueError(
            "For 'cosine_decay_lr', the 'max_lr' must be greater than the 'min_lr', "
            f"but got 'max_lr' value: {max_lr}, 'min_lr' value: {min_lr}."
        )
    half = 0.5 * (max_lr - min_lr)
    epochs = (min(step // step_per_epoch, decay_epoch) for step in range(total_step))
    return [min_lr + half * (1.0 + math.cos(math.pi * epoch / decay_epoch)) for epoch in epochs]


def __getattr__(name: str) -> Any:
    return vendored("mindspore.nn.dynamic_lr", name)
