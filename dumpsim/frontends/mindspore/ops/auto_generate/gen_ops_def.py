"""``mindspore.ops.auto_generate.gen_ops_def``: the names of `mindspore.ops.auto_generate`."""

from typing import Any

from dumpsim.frontends.mindspore._standin import vendored
from dumpsim.frontends.mindspore.ops import _own


def __getattr__(name: str) -> Any:
    return vendored("mindspore.ops.auto_generate.gen_ops_def", name, _own)
