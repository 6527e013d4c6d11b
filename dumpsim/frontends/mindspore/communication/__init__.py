"""``mindspore.communication``."""

from importlib import import_module
from typing import Any

from dumpsim.frontends.mindspore._standin import vendored
from dumpsim.frontends.mindspore.communication import management
from dumpsim.frontends.mindspore.communication.management import *  # noqa: F403

__all__ = [*management.__all__]


def _own(name: str) -> Any:
    if name == "comm_func":  # loads the operators
        return import_module(f"{__name__}.{name}")
    raise AttributeError(name)


def __getattr__(name: str) -> Any:
    return vendored("mindspore.communication", name, _own)
