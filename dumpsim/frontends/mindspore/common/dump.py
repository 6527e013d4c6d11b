"""``mindspore.common.dump``: the module of `set_dump` in releases up to 2.7."""

from typing import Any

from dumpsim.frontends.mindspore._standin import vendored
from dumpsim.frontends.mindspore.tools.data_dump import set_dump

__all__ = ["set_dump"]


def __getattr__(name: str) -> Any:
    return vendored("mindspore.common.dump", name)
