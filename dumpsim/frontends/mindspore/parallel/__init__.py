"""``mindspore.parallel``: settings only; nothing is split over devices here."""

from typing import Any

from dumpsim.frontends.mindspore._absent import absent
from dumpsim.frontends.mindspore.parallel._context import ParallelMode

__all__ = ["ParallelMode"]


def __getattr__(name: str) -> Any:
    raise absent("mindspore.parallel", name)
