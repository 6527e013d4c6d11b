"""``mindspore.runtime``: the device as far as scripts wait for it."""

from typing import Any

from dumpsim.frontends.mindspore._absent import absent
from dumpsim.frontends.mindspore.hal import synchronize

__all__ = ["synchronize"]


def __getattr__(name: str) -> Any:
    raise absent("mindspore.runtime", name)
