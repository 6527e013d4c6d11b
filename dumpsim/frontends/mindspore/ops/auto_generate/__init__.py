"""``mindspore.ops.auto_generate``: functions and primitives of the operators that MindSpore defines in yaml."""

from typing import Any

from dumpsim.frontends.mindspore._standin import vendored
from dumpsim.frontends.mindspore.ops import _own


def __getattr__(name: str) -> Any:
    return vendored("mindspore.ops.auto_generate", name, _own)
