"""``mindspore.profiler.common``."""

from typing import Any

from dumpsim.frontends.mindspore._standin import vendored


def __getattr__(name: str) -> Any:
    return vendored("mindspore.profiler.common", name)
