"""``mindspore.runtime``: waiting for the device."""

from typing import Any

from dumpsim.frontends.mindspore._standin import vendored
from dumpsim.frontends.mindspore.hal import synchronize

__all__ = ["launch_blocking", "synchronize"]


def launch_blocking() -> None:
    """Wait for every operator that is launched, as every call of the front end does anyway.

    Examples
    --------
    >>> launch_blocking()
    """


__path__ = ()  # the vendor's module has submodules


def __getattr__(name: str) -> Any:
    return vendored("mindspore.runtime", name)
