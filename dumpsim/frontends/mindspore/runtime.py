"""``mindspore.runtime``: the device as far as scripts wait for it."""

from typing import Any

from dumpsim.frontends.mindspore._standin import vendored
from dumpsim.frontends.mindspore.hal import synchronize

__all__ = ["synchronize"]


__path__ = ()  # the vendor's module has submodules


def __getattr__(name: str) -> Any:
    return vendored("mindspore.runtime", name)
