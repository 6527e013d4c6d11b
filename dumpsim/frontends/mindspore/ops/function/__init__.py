"""The functions of ``mindspore.ops``."""

from importlib import import_module
from typing import Any

from dumpsim.frontends.mindspore._api import function
from dumpsim.frontends.mindspore._standin import vendored

__all__ = ["find"]


def find(name: str) -> Any:
    """Return the function of a name, or None if it does not exist."""
    row = function(name)
    return None if row is None or not row.module else getattr(import_module(f"{__name__}.{row.module}"), name)


def _own(name: str) -> Any:
    value = find(name)
    if value is None:
        raise AttributeError(name)
    return value


def __getattr__(name: str) -> Any:
    return vendored("mindspore.ops.function", name, _own)
