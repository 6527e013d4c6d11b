"""``mindspore.ops.auto_generate``: functions and primitives of operators that MindSpore defines by yaml."""

from typing import Any

from dumpsim.frontends.mindspore import ops as _ops

__all__: list[str] = []


def __getattr__(name: str) -> Any:
    return getattr(_ops, name)
