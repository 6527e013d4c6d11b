"""``mindspore.ops.function.array_func``: the functions of `mindspore.ops.function`."""

from typing import Any

from dumpsim.frontends.mindspore._standin import vendored
from dumpsim.frontends.mindspore.ops.function import _own


def __getattr__(name: str) -> Any:
    return vendored("mindspore.ops.function.array_func", name, _own)
