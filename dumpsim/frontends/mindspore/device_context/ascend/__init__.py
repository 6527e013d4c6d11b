"""``mindspore.device_context.ascend``: settings of Ascend devices."""

from typing import Any

from dumpsim.frontends.mindspore._standin import vendored

__all__ = ["op_debug"]


def __getattr__(name: str) -> Any:
    return vendored("mindspore.device_context.ascend", name)
