"""``mindspore.nn.loss``."""

from typing import Any

from dumpsim.frontends.mindspore._standin import vendored
from dumpsim.frontends.mindspore.nn.loss import loss
from dumpsim.frontends.mindspore.nn.loss.loss import *  # noqa: F403

__all__ = [*loss.__all__]


def __getattr__(name: str) -> Any:
    return vendored("mindspore.nn.loss", name)
