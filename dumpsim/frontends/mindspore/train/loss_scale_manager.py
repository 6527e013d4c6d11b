"""``mindspore.train.loss_scale_manager``: the loss scale managers."""

from typing import Any

from dumpsim.frontends.mindspore._standin import vendored
from dumpsim.frontends.mindspore.amp import DynamicLossScaleManager, FixedLossScaleManager, LossScaleManager

__all__ = ["DynamicLossScaleManager", "FixedLossScaleManager", "LossScaleManager"]


def __getattr__(name: str) -> Any:
    return vendored("mindspore.train.loss_scale_manager", name)
