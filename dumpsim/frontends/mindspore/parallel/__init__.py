"""``mindspore.parallel``: networks split over devices."""

from typing import Any

from dumpsim.frontends.mindspore._standin import vendored
from dumpsim.frontends.mindspore.parallel._context import ParallelMode
from dumpsim.frontends.mindspore.parallel.shard import Layout, shard  # the function shadows the module, as in MindSpore

__all__ = ["Layout", "ParallelMode", "shard"]


def __getattr__(name: str) -> Any:
    return vendored("mindspore.parallel", name)
