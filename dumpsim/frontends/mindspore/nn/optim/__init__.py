"""``mindspore.nn.optim``."""

from typing import Any

from dumpsim.frontends.mindspore._absent import absent
from dumpsim.frontends.mindspore.nn.optim.adam import Adam, AdamWeightDecay
from dumpsim.frontends.mindspore.nn.optim.momentum import Momentum
from dumpsim.frontends.mindspore.nn.optim.optimizer import Optimizer
from dumpsim.frontends.mindspore.nn.optim.sgd import SGD

__all__ = ["SGD", "Adam", "AdamWeightDecay", "Momentum", "Optimizer"]


def __getattr__(name: str) -> Any:
    raise absent("mindspore.nn", name)
