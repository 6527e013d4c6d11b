"""``mindspore.runtime``: the device as far as scripts wait for it."""

from typing import Any

from dumpsim.core.errors import UnsupportedError
from dumpsim.frontends.mindspore.hal import synchronize

__all__ = ["synchronize"]


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(f"module 'mindspore.runtime' has no attribute {name!r}")
    raise UnsupportedError(f"{name} is not emulated", where="mindspore.runtime", code="DS-API-001")
