"""``mindspore.device_context``: settings by kind of device."""

from typing import Any

from dumpsim.frontends.mindspore._standin import vendored

__all__ = ["ascend"]


def __getattr__(name: str) -> Any:
    return vendored("mindspore.device_context", name)
