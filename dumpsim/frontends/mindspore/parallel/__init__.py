"""``mindspore.parallel``: networks that are split over devices."""

from typing import Any

from dumpsim.frontends.mindspore._standin import vendored
from dumpsim.frontends.mindspore.parallel._context import ParallelMode

__all__ = ["ParallelMode"]


def __getattr__(name: str) -> Any:
    return vendored("mindspore.parallel", name)
