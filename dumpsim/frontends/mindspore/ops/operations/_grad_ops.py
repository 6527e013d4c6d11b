"""``mindspore.ops.operations._grad_ops``: the primitives of `mindspore.ops.operations`."""

from typing import Any

from dumpsim.frontends.mindspore._standin import vendored
from dumpsim.frontends.mindspore.ops.operations import _own


def __getattr__(name: str) -> Any:
    return vendored("mindspore.ops.operations._grad_ops", name, _own)
