"""``mindspore.parallel.nn``: cells that process their batch in parts."""

from typing import Any

from dumpsim.frontends.mindspore._standin import vendored
from dumpsim.frontends.mindspore.nn.wrap._accumulation import GradAccumulationCell, MicroBatchInterleaved

__all__ = ["GradAccumulation", "MicroBatchInterleaved"]


class GradAccumulation(GradAccumulationCell):
    """A network that processes its batch in parts, see `mindspore.nn.GradAccumulationCell`.

    Examples
    --------
    >>> from dumpsim.frontends.mindspore import nn
    >>> GradAccumulation(nn.ReLU(), 2).micro_size
    2
    """


def __getattr__(name: str) -> Any:
    return vendored("mindspore.parallel.nn", name)
