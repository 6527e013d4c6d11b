"""``mindspore.hal``: waiting for the device, and information about it."""

from typing import Any

from dumpsim.frontends.mindspore._standin import vendored

__all__ = ["device_count", "get_device_name", "is_available", "synchronize"]


def synchronize() -> None:
    """Wait for the device, that is, for collectives started with ``async_op``; all other operators are done.

    Examples
    --------
    >>> synchronize()
    """
    from dumpsim.frontends.mindspore._capture.dispatch import finish  # imported on first use

    finish()


def is_available(device_target: str) -> bool:
    """Return whether a device can be emulated.

    Examples
    --------
    >>> is_available("Ascend")
    True
    """
    return device_target in ("Ascend", "GPU", "CPU")


def device_count(device_target: str | None = None) -> int:
    """Return 1, the number of devices of the process."""
    return 1


def get_device_name(device_id: int, device_target: str | None = None) -> str:
    """Return the name of the device."""
    from dumpsim.frontends.mindspore.context import get_context

    return str(device_target or get_context("device_target"))


def __getattr__(name: str) -> Any:
    return vendored("mindspore.hal", name)
