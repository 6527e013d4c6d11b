"""The functions of ``mindspore.ops``."""

from importlib import import_module
from typing import Any

from dumpsim.frontends.mindspore._absent import absent

__all__ = ["MODULES", "find"]

MODULES = (
    "arithmetic",
    "elementwise",
    "shape",
    "reduce",
    "create",
    "network",
    "clip",
    "steer",
    "debug",
    "fused",
    "further",
    "combine",
)


def find(name: str) -> Any:
    """The function of a name, None where there is none."""
    for module_name in MODULES:
        module = import_module(f"{__name__}.{module_name}")
        value = None if name.startswith("_") else getattr(module, name, None)
        own = name in module.__all__ or getattr(value, "__module__", "") == module.__name__
        if own and callable(value) and not isinstance(value, type):
            return value
    return None


def __getattr__(name: str) -> Any:
    if name in MODULES:
        return import_module(f"{__name__}.{name}")
    value = None if name.startswith("__") else find(name)
    if value is None:
        raise absent("mindspore.ops.function", name)
    return value
