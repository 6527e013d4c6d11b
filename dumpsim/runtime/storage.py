"""Weights between the front end's Parameters and device memory, where they stay from run to run.

A Parameter holds its value in ``_array``. Before a run the executor looks at it: if it is not the view of device memory
that the last upload put there, the host has set a new value, and it is uploaded. After an upload ``_array`` *is* device
memory, so that what a graph updates is seen by the host without a copy. A front end therefore replaces ``_array`` to
set a value, and hands out copies of it (`is_device_memory` tells), never the array itself.
"""

import mmap
import weakref
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from dumpsim.core.errors import BadInputError
from dumpsim.device.device import Device
from dumpsim.device.memory import Buffer
from dumpsim.runtime.place import Array, Place
from dumpsim.runtime.unknown import HostArray, Unknown, shape_of

__all__ = ["Storage", "Weights", "is_device_memory"]


class Storage(Protocol):
    """What a front end's Parameter shows to the runtime."""

    _array: Any  # numpy array in host layout and of the Parameter's number type


@dataclass(eq=False, slots=True, kw_only=True)
class _Weight:
    storage: Any  # keeps the Parameter, or is a weak reference to it
    buffer: Buffer
    view: HostArray | None = None

    def alive(self) -> bool:
        return not isinstance(self.storage, weakref.ref) or self.storage() is not None


def is_device_memory(array: Array) -> bool:
    """Whether an array is a view of a device's memory, so that the next run may change it.

    Examples
    --------
    >>> is_device_memory(np.ones(3))
    False
    """
    base = array.base
    while isinstance(base, np.ndarray):
        base = base.base
    if isinstance(base, memoryview):
        base = base.obj
    return isinstance(base, mmap.mmap)


class Weights:
    """The weights of one device."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._held: dict[int, _Weight] = {}

    def bind(self, place: Place) -> None:
        """Give the place of a weight its memory.

        Raises
        ------
        BadInputError
            For a weight without a value on the host.
        OutOfMemoryError
            Where the device has no room.
        """
        storage = place.storage
        if getattr(storage, "_array", None) is None:
            raise BadInputError("the weight has no value on the host", where=place.name, code="DS-DEV-005")
        weight = self._held.get(id(storage))
        if weight is not None and (not weight.alive() or weight.buffer.size != place.nbytes):
            self._drop(id(storage))
            weight = None
        if weight is None:
            buffer = self._device.memory.allocate(
                place.nbytes, owner=place.name, kind="weight", born=self._device.clock.now_ns, fill=False
            )
            try:
                held: Any = weakref.ref(storage)
            except TypeError:
                held = storage
            weight = self._held[id(storage)] = _Weight(storage=held, buffer=buffer)
        place.buffer = weight.buffer

    def upload(self, place: Place) -> None:
        """Copy the host's value to the device where the host has set a new one."""
        storage = place.storage
        weight = self._held.get(id(storage))
        if weight is None or place.buffer is not weight.buffer:
            self.bind(place)
            weight = self._held[id(storage)]
        host = storage._array
        if host is weight.view:
            return
        if shape_of(host) != place.shape:
            raise BadInputError(
                f"the weight's value has shape {shape_of(host)}", where=place.name, allowed=[place.shape]
            )
        self._device.clock.advance(self._device.chip.prices.copy_duration_ns(place.nbytes))
        if self._device.memory.backed:
            place.put(np.asarray(host).astype(place.device_dtype.numpy, copy=False))
            weight.view = storage._array = place.device_array()
        else:  # the host must not take its old value for that of the device
            weight.view = storage._array = Unknown(place.name, place.dtype.numpy, place.shape)

    def touch(self) -> None:
        """End the versions of all weights: somebody wrote them through the host's views."""
        for weight in self._held.values():
            weight.buffer.touch()

    def sweep(self) -> None:
        """Free the memory of Parameters that are gone."""
        for key in [key for key, weight in self._held.items() if not weight.alive()]:
            self._drop(key)

    def _drop(self, key: int) -> None:
        weight = self._held.pop(key)
        self._device.memory.free(weight.buffer, dead=self._device.clock.now_ns)
