"""``mindspore.parallel``: networks that are split over devices."""

from importlib import import_module
from typing import Any

from dumpsim.frontends.mindspore._standin import vendored
from dumpsim.frontends.mindspore.parallel._context import ParallelMode

__all__ = ["ParallelMode"]


def __getattr__(name: str) -> Any:
    if name in ("Layout", "shard"):
        return getattr(import_module("dumpsim.frontends.mindspore.parallel._sharding"), name)
    return vendored("mindspore.parallel", name)
