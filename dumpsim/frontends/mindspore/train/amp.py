"""``mindspore.train.amp``: functions of `mindspore.amp`."""

from typing import Any

from dumpsim.frontends.mindspore._standin import vendored
from dumpsim.frontends.mindspore.amp import (
    auto_mixed_precision,
    build_train_network,
    custom_mixed_precision,
    get_black_list,
)

__all__ = ["auto_mixed_precision", "build_train_network", "custom_mixed_precision", "get_black_list"]


def __getattr__(name: str) -> Any:
    return vendored("mindspore.train.amp", name)
