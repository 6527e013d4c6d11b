"""``mindspore.nn.optim``."""

from typing import Any

from dumpsim.frontends.mindspore._standin import vendored
from dumpsim.frontends.mindspore.nn.optim.adam import Adam, AdamWeightDecay
from dumpsim.frontends.mindspore.nn.optim.adaptive import FTRL, Adadelta, Adagrad, AdaMax, ProximalAdagrad, RMSProp
from dumpsim.frontends.mindspore.nn.optim.momentum import Momentum
from dumpsim.frontends.mindspore.nn.optim.optimizer import Optimizer
from dumpsim.frontends.mindspore.nn.optim.sgd import SGD

__all__ = [
    "FTRL",
    "SGD",
    "AdaMax",
    "Adadelta",
    "Adagrad",
    "Adam",
    "AdamWeightDecay",
    "Momentum",
    "Optimizer",
    "ProximalAdagrad",
    "RMSProp",
]


def __getattr__(name: str) -> Any:
    return vendored("mindspore.nn.optim", name)
