"""``mindspore.train.loss_scale_manager``: the managers of the scale of the loss."""

from dumpsim.frontends.mindspore.amp import DynamicLossScaleManager, FixedLossScaleManager, LossScaleManager

__all__ = ["DynamicLossScaleManager", "FixedLossScaleManager", "LossScaleManager"]
