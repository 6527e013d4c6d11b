"""``mindspore.mint.optim``."""

from typing import Any

from dumpsim.frontends.mindspore._standin import vendored
from dumpsim.frontends.mindspore.mint.optim.adam import SGD, Adam, AdamW

__all__ = ["SGD", "Adam", "AdamW"]


def __getattr__(name: str) -> Any:
    return vendored("mindspore.mint.optim", name)
