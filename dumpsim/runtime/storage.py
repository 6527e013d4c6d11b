"""Weights: the connection between the front end's Parameters and device memory, where values stay between runs.

A Parameter has its value in ``_array``. Before a run the executor compares it with the view of device memory that the
last upload stored there: if it is another array, the host has set a new value, which is uploaded. After an upload
``_array`` *is* device memory, so the host sees a graph's updates without a copy. A front end therefore replaces
``_array`` to set a value, and returns copies of it, never the array itself.

Each rank has its own value. A rank that finds another rank's device memory in ``_array`` takes the value that the host
has set, to which each such view has a reference. Ranks that upload equal bytes share them (`Replicas`) until one of
them writes: by a kernel's update, a fault, or a PYNATIVE operator.
"""

import weakref
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Protocol, cast

import numpy as np

from dumpsim.core.dtype import DType
from dumpsim.core.errors import BadInputError
from dumpsim.device.arena import Bytes
from dumpsim.device.device import Device
from dumpsim.device.memory import Buffer
from dumpsim.runtime.binding import Binding
from dumpsim.runtime.slot import Array, Slot
from dumpsim.runtime.unknown import HostArray, Unknown, shape_of

__all__ = ["Replica", "Replicas", "Storage", "Weights"]


class Storage(Protocol):
    """The interface of a front end's Parameter to the runtime."""

    _array: Any  # numpy array in host layout and of the Parameter's number type


@dataclass(frozen=True, eq=False, slots=True, weakref_slot=True)
class Replica:
    """A value that ranks have uploaded: a read-only array, and its bytes."""

    array: Array
    raw: Bytes


class Replicas:
    """A cache of the values that ranks have uploaded, each stored once while it is in use.

    Examples
    --------
    >>> replicas = Replicas()
    >>> one = replicas.share(np.zeros(4, np.float32))
    >>> replicas.share(np.zeros(4, np.float32)) is one, one.array.flags.writeable, one.raw.size
    (True, False, 16)
    """

    def __init__(self) -> None:
        self._known: weakref.WeakValueDictionary[tuple[object, ...], Replica] = weakref.WeakValueDictionary()

    def share(self, values: Array) -> Replica:
        """Return the replica with the number type, shape and bits of `values`."""
        raw: Bytes = np.ascontiguousarray(values).reshape(-1).view(np.uint8)
        key = values.dtype, values.shape, blake2b(raw.data, digest_size=32).digest()
        found = self._known.get(key)
        if found is None:
            raw = raw.copy()
            raw.flags.writeable = False
            found = self._known[key] = Replica(raw.view(values.dtype).reshape(values.shape), raw)
        return found


@dataclass(eq=False, slots=True, kw_only=True, weakref_slot=True)
class _Weight:
    """A weight in one rank."""

    storage: Any  # a weak reference to the Parameter, or the Parameter itself
    buffer: Buffer
    dtype: DType
    shape: tuple[int, ...]
    host: HostArray | None = None  # the value that was uploaded
    replica: Replica | None = None  # the shared copy of that value
    view: HostArray | None = None  # the array of device memory that the host sees

    def alive(self) -> bool:
        return not isinstance(self.storage, weakref.ref) or self.storage() is not None

    def publish(self) -> None:
        """Store a view of the device's current bytes in the Parameter."""
        storage = self.storage() if isinstance(self.storage, weakref.ref) else self.storage
        if storage is not None:
            raw: Bytes = np.asarray(_Published(self))
            view = raw.view(self.dtype.numpy)
            self.view = storage._array = view if self.dtype.bits == 1 else view.reshape(self.shape)


class _Published:
    """The owner of an array that shows a rank's weight; it is found through the array's `base`."""

    __slots__ = ("__weakref__", "host", "raw", "weight")

    def __init__(self, weight: _Weight) -> None:
        self.raw = weight.buffer.bytes()
        self.host = weight.host
        self.weight = weakref.ref(weight)

    @property
    def __array_interface__(self) -> dict[str, Any]:
        return self.raw.__array_interface__


def _base(array: Any) -> Any:
    """Return the owner of the bytes of an array."""
    base = array.base if isinstance(array, np.ndarray) else None
    while isinstance(base, np.ndarray):
        base = base.base
    return base.obj if isinstance(base, memoryview) else base


class Weights:
    """The weights of one rank on its device.

    Parameters
    ----------
    device : Device
    replicas : Replicas, optional
        Shared with ranks that have equal weights.
    """

    def __init__(self, device: Device, replicas: Replicas | None = None) -> None:
        self._device = device
        self._replicas = replicas
        self._weights: dict[int, _Weight] = {}

    def bind(self, binding: Binding, slot: Slot) -> _Weight:
        """Assign memory to a weight.

        Raises
        ------
        BadInputError
            For a weight without a value on the host.
        OutOfMemoryError
            If the device has not enough memory.
        """
        storage = binding.storage(slot)
        if getattr(storage, "_array", None) is None:
            raise BadInputError("the weight has no value on the host", where=slot.name, code="DS-DEV-005")
        weight = self._weights.get(id(storage))
        if weight is not None and (not weight.alive() or weight.buffer.size != slot.nbytes):
            self._drop(id(storage))
            weight = None
        if weight is None:
            buffer = self._device.memory.allocate(
                slot.nbytes, owner=slot.name, kind="weight", born=self._device.clock.now_ns, fill=False
            )
            try:
                reference: Any = weakref.ref(storage)
            except TypeError:
                reference = storage
            weight = self._weights[id(storage)] = _Weight(
                storage=reference, buffer=buffer, dtype=slot.device_dtype, shape=slot.shape
            )
            buffer.holder = weight
        binding.fix(slot, weight.buffer)
        return weight

    def upload(self, binding: Binding, slot: Slot) -> None:
        """Copy the host's value to the device, if the host has set a new one."""
        storage = binding.storage(slot)
        weight = self._weights.get(id(storage))
        if weight is None or not binding.is_fixed(slot, weight.buffer):
            weight = self.bind(binding, slot)
        host = storage._array
        if host is weight.view:
            return
        shown = _base(host)
        if isinstance(shown, _Published) and shown.weight() is not weight:
            host = shown.host  # another rank has run since
        if weight.view is not None and host is weight.host:
            weight.publish()
            return
        if shape_of(host) != slot.shape:
            raise BadInputError(f"the weight's value has shape {shape_of(host)}", where=slot.name, allowed=[slot.shape])
        unknown = isinstance(host, Unknown) and host.name == slot.name  # set by this rank or another one below
        if weight.view is None or not unknown:
            self._device.clock.advance(self._device.chip.prices.copy_duration_ns(slot.nbytes))
        if not self._device.memory.backed:  # the host must not see its old value as the current one
            weight.view = storage._array = Unknown(slot.name, slot.dtype.numpy, slot.shape)
            return
        values = np.asarray(host).astype(slot.numpy, copy=False)
        weight.host = cast(Array, host)
        if self._replicas is None or slot.device_dtype.bits < 8:
            binding.put(slot, values)
        else:
            self._share(weight, values, self._replicas)
        weight.publish()

    def _share(self, weight: _Weight, values: Array, replicas: Replicas) -> None:
        """Upload a value that other ranks may have uploaded too."""
        weight.replica = replicas.share(values)
        weight.host = weight.replica.array
        weight.buffer.share(weight.replica.raw)

    def writable(self, array: HostArray) -> HostArray:
        """Return an array that a PYNATIVE operator can write instead of `array`, which may be shared."""
        shown = _base(array)
        weight = shown.weight() if isinstance(shown, _Published) else None
        if weight is None or weight.view is None or array is not weight.view:
            return array
        weight.buffer.own()
        return weight.view

    def retire(self) -> None:
        """Store copies of all values on the host, because the rank continues on another device."""
        for weight in self._weights.values():
            storage = weight.storage() if isinstance(weight.storage, weakref.ref) else weight.storage
            if storage is not None and weight.view is not None and storage._array is weight.view:
                storage._array = weight.view.copy()

    def touch(self) -> None:
        """End the versions of all weights, which were written through the host's views."""
        for weight in self._weights.values():
            weight.buffer.touch()

    def sweep(self) -> None:
        """Free the memory of Parameters that no longer exist."""
        for key in [key for key, weight in self._weights.items() if not weight.alive()]:
            self._drop(key)

    def _drop(self, key: int) -> None:
        weight = self._weights.pop(key)
        self._device.memory.free(weight.buffer, dead=self._device.clock.now_ns)
