"""``torch.npu``: the device, its memory, streams and events."""

from typing import Any

import torch

from dumpsim.core.errors import BadInputError
from dumpsim.frontends.torchair._state import state

__all__ = [
    "Event",
    "Stream",
    "current_device",
    "current_stream",
    "device_count",
    "empty_cache",
    "get_device_name",
    "is_available",
    "manual_seed",
    "manual_seed_all",
    "max_memory_allocated",
    "memory_allocated",
    "memory_reserved",
    "set_device",
    "synchronize",
]

Stream = torch.cpu.Stream


def _is_in_bad_fork() -> bool:
    """Return whether the process is a fork that cannot use the device: never. torch calls it to set the seed."""
    return False


class Event:
    """A time stamp of the device's clock.

    Parameters
    ----------
    enable_timing : bool
    """

    def __init__(self, enable_timing: bool = False, **ignored: Any) -> None:
        self.enable_timing = enable_timing
        self._time_ns: int | None = None

    def record(self, stream: Any = None) -> None:
        """Record the time."""
        self._time_ns = state().session.clock.now_ns

    def wait(self, stream: Any = None) -> None:
        """Do nothing: everything that was launched has run."""

    def query(self) -> bool:
        """Return whether the device has reached the event: always."""
        return True

    def synchronize(self) -> None:
        """Wait for the device."""
        synchronize()

    def elapsed_time(self, other: "Event") -> float:
        """Return the milliseconds between two events, on the device's clock.

        Raises
        ------
        BadInputError
            If one of them was not recorded.
        """
        if self._time_ns is None or other._time_ns is None:
            raise BadInputError("an event has no time before it is recorded", where="torch.npu.Event.elapsed_time")
        return (other._time_ns - self._time_ns) / 1e6


def is_available() -> bool:
    """Return whether there is a device: always."""
    return True


def device_count() -> int:
    """Return the number of devices of the process: one."""
    return 1


def current_device() -> int:
    """Return the number of the rank's device."""
    return state().session.device_id


def set_device(device: Any) -> None:
    """Set the device; a process has only one.

    Raises
    ------
    BadInputError
        For a device other than the rank's.
    """
    number = torch.device(device).index if isinstance(device, str) else getattr(device, "index", device)
    if number not in (None, current_device()):
        raise BadInputError(
            f"device {number} is not this rank's", where="torch.npu.set_device", allowed=(current_device(),)
        )


def get_device_name(device: Any = None) -> str:
    """Return the name of the chip."""
    return f"Ascend{state().session.chip.name}"


def synchronize(device: Any = None) -> None:
    """Wait for the device."""
    state().session.synchronize()


def current_stream(device: Any = None) -> Any:
    """Return the stream of eager operators."""
    return torch.cpu.current_stream()


def empty_cache() -> None:
    """Do nothing: unused memory is freed at once."""


def memory_allocated(device: Any = None) -> int:
    """Return the bytes of the device's memory in use."""
    return state().session.device.memory.used


def max_memory_allocated(device: Any = None) -> int:
    """Return the largest number of bytes of the device's memory in use at a time."""
    return state().session.device.memory.peak


def memory_reserved(device: Any = None) -> int:
    """Return the same as `memory_allocated`: no memory is reserved."""
    return memory_allocated(device)


def manual_seed(seed: int) -> None:
    """Seed torch's CPU generator, which draws the random numbers."""
    torch.default_generator.manual_seed(seed)  # torch.manual_seed calls this function


manual_seed_all = manual_seed
