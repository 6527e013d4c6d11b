"""The functions of ``mindspore.ops``."""

from importlib import import_module
from typing import Any

from dumpsim.frontends.mindspore._absent import absent
from dumpsim.frontends.mindspore._api import function

__all__ = ["find"]


def find(name: str) -> Any:
    """The function of a name, None where there is none."""
    row = function(name)
    return None if row is None or not row.module else getattr(import_module(f"{__name__}.{row.module}"), name)


def __getattr__(name: str) -> Any:
    value = find(name)
    if value is None:
        raise absent("mindspore.ops.function", name)
    return value
