"""``mindspore.ops.composite``: gradients and mapped functions."""

from importlib import import_module
from types import MappingProxyType
from typing import Any

from dumpsim.frontends.mindspore._standin import vendored
from dumpsim.frontends.mindspore.ops.function import find

_MODULES = MappingProxyType(
    {"base": "GradOperation grad value_and_grad vjp", "hyper_map": "HyperMap Map MultitypeFuncGraph"}
)

__all__ = [name for listed in _MODULES.values() for name in listed.split()]


def _own(name: str) -> Any:
    for module, listed in _MODULES.items():
        if name in listed.split():
            return getattr(import_module(f"{__name__}.{module}"), name)
    value = None if name.startswith("__") else find(name)
    if value is None:
        raise AttributeError(name)
    return value


def __getattr__(name: str) -> Any:
    return vendored("mindspore.ops.composite", name, _own)
