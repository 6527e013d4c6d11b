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

Stream = torch.Stream if not hasattr(torch, "cpu") else torch.cpu.Stream


def _is_in_bad_fork() -> bool:
    """Whether the device cannot be used since the process was forked: never. torch asks before it sets the seed."""
    return False


class Event:
    """A moment on the device's clock.

    Parameters
    ----------
    enable_timing : bool
    """

    def __init__(self, enable_timing: bool = False, **ignored: Any) -> None:
        self.enable_timing = enable_timing
        self._time_ns: int | None = None

    def record(self, stream: Any = None) -> None:
        """Take the time."""
        self._time_ns = state().session.clock.now_ns

    def wait(self, stream: Any = None) -> None:
        """Do nothing: whatever was launched has run."""

    def query(self) -> bool:
        """Whether the device has come so far, which it always has."""
        return True

    def synchronize(self) -> None:
        """Wait for the device."""
        synchronize()

    def elapsed_time(self, other: "Event") -> float:
        """Milliseconds between two events, on the device's clock.

        Raises
        ------
        BadInputError
            Where one of them was not recorded.
        """
        if self._time_ns is None or other._time_ns is None:
            raise BadInputError("an event has no time before it is recorded", where="torch.npu.Event.elapsed_time")
        return (other._time_ns - self._time_ns) / 1e6


def is_available() -> bool:
    """Whether there is a device: always."""
    return True


def device_count() -> int:
    """Devices of a process."""
    return 1


def current_device() -> int:
    """The number of the rank's device."""
    return state().session.device_id


def set_device(device: Any) -> None:
    """Choose the device; there is one a process.

    Raises
    ------
    BadInputError
        For another device than the rank's.
    """
    number = torch.device(device).index if isinstance(device, str) else getattr(device, "index", device)
    if number not in (None, current_device()):
        raise BadInputError(
            f"device {number} is not this rank's", where="torch.npu.set_device", allowed=(current_device(),)
        )


def get_device_name(device: Any = None) -> str:
    """The name of the chip."""
    return f"Ascend{state().session.chip.name}"


def synchronize(device: Any = None) -> None:
    """Wait for the device."""
    state().session.synchronize()


def current_stream(device: Any = None) -> Any:
    """The stream of eager operators."""
    return torch.cpu.current_stream()


def empty_cache() -> None:
    """Do nothing: memory that nobody uses is free at once."""


def memory_allocated(device: Any = None) -> int:
    """Bytes of the device's memory that are taken."""
    return state().session.device.memory.used


def max_memory_allocated(device: Any = None) -> int:
    """Most bytes of the device's memory that were taken at a time."""
    return state().session.device.memory.peak


def memory_reserved(device: Any = None) -> int:
    """As `memory_allocated`: nothing is kept in reserve."""
    return memory_allocated(device)


def manual_seed(seed: int) -> None:
    """Seed random numbers, which are those of torch's CPU generator."""
    torch.default_generator.manual_seed(seed)  # torch.manual_seed calls this function


manual_seed_all = manual_seed
