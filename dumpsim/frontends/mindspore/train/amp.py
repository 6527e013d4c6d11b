"""``mindspore.train.amp``: as `mindspore.amp`."""

from dumpsim.frontends.mindspore.amp import FixedLossScaleManager, LossScaleManager, build_train_network

__all__ = ["FixedLossScaleManager", "LossScaleManager", "build_train_network"]
