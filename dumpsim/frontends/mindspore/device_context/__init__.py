"""``mindspore.device_context``: settings of one kind of device."""

from importlib import import_module
from typing import Any

from dumpsim.frontends.mindspore._absent import absent

__all__ = ["ascend"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        return import_module(f"{__name__}.{name}")
    raise absent("mindspore.device_context", name)
