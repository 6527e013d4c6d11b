"""``mindspore.hal``: the device as far as scripts wait for it."""

from typing import Any

from dumpsim.frontends.mindspore._standin import vendored

__all__ = ["device_count", "get_device_name", "is_available", "synchronize"]


def synchronize() -> None:
    """Wait for the device: for the collectives that the script started with ``async_op``, all else is done.

    Examples
    --------
    >>> synchronize()
    """
    from dumpsim.frontends.mindspore._capture.dispatch import finish  # loaded where it is called

    finish()


def is_available(device_target: str) -> bool:
    """Whether a device can be emulated.

    Examples
    --------
    >>> is_available("Ascend")
    True
    """
    return device_target in ("Ascend", "GPU", "CPU")


def device_count(device_target: str | None = None) -> int:
    """Devices of the process: one."""
    return 1


def get_device_name(device_id: int, device_target: str | None = None) -> str:
    """The name of the device."""
    from dumpsim.frontends.mindspore.context import get_context

    return str(device_target or get_context("device_target"))


def __getattr__(name: str) -> Any:
    return vendored("mindspore.hal", name)
