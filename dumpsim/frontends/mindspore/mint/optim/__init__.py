"""``mindspore.mint.optim``."""

from typing import Any

from dumpsim.frontends.mindspore._absent import absent
from dumpsim.frontends.mindspore.mint.optim.adam import SGD, Adam, AdamW

__all__ = ["SGD", "Adam", "AdamW"]


def __getattr__(name: str) -> Any:
    raise absent("mindspore.mint.optim", name)
