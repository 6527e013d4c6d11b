"""``mindspore.train.callback``."""

from typing import Any

from dumpsim.frontends.mindspore._absent import absent
from dumpsim.frontends.mindspore.train.callback._callback import Callback, RunContext
from dumpsim.frontends.mindspore.train.callback._checkpoint import CheckpointConfig, ModelCheckpoint
from dumpsim.frontends.mindspore.train.callback._monitor import LossMonitor, TimeMonitor

__all__ = ["Callback", "CheckpointConfig", "LossMonitor", "ModelCheckpoint", "RunContext", "TimeMonitor"]


def __getattr__(name: str) -> Any:
    raise absent("mindspore.train.callback", name)
