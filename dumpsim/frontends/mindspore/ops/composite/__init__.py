"""``mindspore.ops.composite``: gradients and mapped functions."""

from typing import Any

from dumpsim.frontends.mindspore._absent import absent
from dumpsim.frontends.mindspore.ops.composite.base import (
    GradOperation,
    grad,
    value_and_grad,
    vjp,
)
from dumpsim.frontends.mindspore.ops.composite.hyper_map import HyperMap, Map, MultitypeFuncGraph

__all__ = ["GradOperation", "HyperMap", "Map", "MultitypeFuncGraph", "grad", "value_and_grad", "vjp"]


def __getattr__(name: str) -> Any:
    from dumpsim.frontends.mindspore.ops.function import find

    value = None if name.startswith("__") else find(name)
    if value is None:
        raise absent("mindspore.ops.composite", name)
    return value
