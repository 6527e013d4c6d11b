"""``mindspore.mint.distributed``: PyTorch's names for groups and collectives, which write into their arguments."""

from typing import Any

from dumpsim.frontends.mindspore._standin import vendored
from dumpsim.frontends.mindspore.mint.distributed import distributed
from dumpsim.frontends.mindspore.mint.distributed.distributed import *  # noqa: F403

__all__ = [*distributed.__all__]


def __getattr__(name: str) -> Any:
    return vendored("mindspore.mint.distributed", name)
