"""``mindspore.train.callback``."""

from typing import Any

from dumpsim.frontends.mindspore._standin import vendored
from dumpsim.frontends.mindspore.train.callback._callback import Callback, RunContext
from dumpsim.frontends.mindspore.train.callback._checkpoint import CheckpointConfig, ModelCheckpoint
from dumpsim.frontends.mindspore.train.callback._monitor import LossMonitor, TimeMonitor
from dumpsim.frontends.mindspore.train.callback._watch import (
    EarlyStopping,
    History,
    LambdaCallback,
    LearningRateScheduler,
    ReduceLROnPlateau,
)

__all__ = [
    "Callback",
    "CheckpointConfig",
    "EarlyStopping",
    "History",
    "LambdaCallback",
    "LearningRateScheduler",
    "LossMonitor",
    "ModelCheckpoint",
    "ReduceLROnPlateau",
    "RunContext",
    "TimeMonitor",
]


def __getattr__(name: str) -> Any:
    return vendored("mindspore.train.callback", name)
