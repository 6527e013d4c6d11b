"""``mindspore.communication``."""

from typing import Any

from dumpsim.frontends.mindspore._standin import vendored
from dumpsim.frontends.mindspore.communication import management
from dumpsim.frontends.mindspore.communication.management import *  # noqa: F403

__all__ = [*management.__all__]


def __getattr__(name: str) -> Any:
    return vendored("mindspore.communication", name)
