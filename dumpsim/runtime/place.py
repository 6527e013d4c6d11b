"""A tensor on the device: its host type, how its bytes lie in memory, and the way between the two."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from dumpsim.core.dtype import DType
from dumpsim.core.errors import DeviceError, UnsupportedError
from dumpsim.device.memory import Buffer
from dumpsim.device.packed import PACKED, pack, unpack
from dumpsim.runtime.unknown import HostArray, Unknown

__all__ = ["PLAIN", "Array", "Place"]

Array = np.ndarray[Any, Any]

PLAIN = "DefaultFormat"
_ANY = np.dtype(np.uint8)


@dataclass(eq=False, slots=True, kw_only=True)
class Place:
    """Where a tensor lies and what its bytes mean.

    Attributes
    ----------
    name : str
        Full name of the producing node, or parameter name.
    kind : str
        ``weight``, ``input``, ``constant`` or ``activation``.
    dtype, shape : host number type and shape
    device_dtype, device_format, device_shape, groups : how the bytes lie
    nbytes : int
        Logical bytes on the device.
    slot : int
        Output slot of the producer.
    scalar : bool
        Kernels take and give it as a Python number.
    base : Place or None
        The tensor whose bytes these are (views, updated operands).
    bound : int
        Largest number of elements where the shape has -1.
    transparent : bool
        Listeners see the shape of `base`, as the vendor's CPU shows results of operators that compute nothing.
    settles : bool
        Each run of the kernel decides the shape.
    largest : tuple of int or None
        Of a result that settles: the shape with room for the largest one, where listeners see that one, zeros behind
        the end, as on the vendor's CPU: it dumps before it takes the new shape. [observed 2.10: Unique output.0 (3,)]
    is_element : bool
        Of an input: one of a tuple that is the argument; listeners see no name.
    born, dead : int
        First and last position in the execution order at which the bytes are needed.
    """

    name: str
    kind: str
    dtype: DType
    shape: tuple[int, ...]
    device_dtype: DType
    device_format: str = PLAIN
    groups: int = 1
    slot: int = 0
    scalar: bool = False
    base: "Place | None" = None
    born: int = -1
    dead: int = -1
    offset: int = -1
    storage: Any = None
    is_element: bool = False
    value: Array | None = None
    device_shape: tuple[int, ...] = ()
    nbytes: int = 0
    bound: int = 1
    buffer: Buffer | None = None
    transparent: bool = False
    settles: bool = False
    largest: tuple[int, ...] | None = None
    _numpy: "np.dtype[Any]" = _ANY
    _cached: Array | None = None
    _cached_version: int = -1
    _view: Array | None = None
    _view_of: Buffer | None = None
    _view_at: int = -1

    @property
    def shown_shape(self) -> tuple[int, ...]:
        """The shape that listeners see. [spec observed 1.2]"""
        if self.largest is not None:
            return self.largest
        return self.base.shown_shape if self.transparent and self.base is not None else self.shape

    @property
    def shown_nbytes(self) -> int:
        """The bytes that listeners see."""
        return self.device_dtype.nbytes(self.bound) if self.largest is not None else self.nbytes

    def __post_init__(self) -> None:
        if self.device_dtype.name == "hifloat8" or (self.device_dtype.name in PACKED and self.device_format != PLAIN):
            raise UnsupportedError(
                f"tensors of {self.device_dtype} in {self.device_format} are not emulated",
                where=self.name,
                code="DS-DEV-004",
            )
        self._numpy = self.device_dtype.numpy
        if self.device_format == PLAIN:
            self.device_shape = self.shape
        else:
            from dumpsim.tensor.layout import device_shape

            self.device_shape = device_shape(self.shape, self._numpy, self.device_format, groups=self.groups)
        count = 1
        for dim in self.device_shape:
            count *= dim
        if -1 in self.shape:  # the kernel decides: memory for the largest result
            count = self.bound
        self.nbytes = self.device_dtype.nbytes(count)
        self.settles = -1 in self.shape

    def settle(self, shape: tuple[int, ...]) -> None:
        """Take the shape that the kernel has decided in this run.

        Raises
        ------
        DeviceError
            The result is larger than planned.
        """
        count = 1
        for dim in shape:
            count *= dim
        if count > self.bound:
            raise DeviceError(f"a result of shape {shape} needs more than {self.bound} elements", where=self.name)
        self.shape = self.device_shape = shape
        self.nbytes = self.device_dtype.nbytes(count)
        self._view = None
        if self.largest is not None:
            buffer = self.memory()
            buffer.memory.view(buffer.address, self.shown_nbytes)[:] = 0

    @property
    def root(self) -> "Place":
        """The place that owns the bytes."""
        place = self
        while place.base is not None:
            place = place.base
        return place

    @property
    def plain(self) -> bool:
        """Whether the bytes lie as on the host."""
        return self.device_format == PLAIN

    def memory(self) -> Buffer:
        """The buffer that holds the bytes now."""
        buffer = self.root.buffer
        assert buffer is not None, self.name
        return buffer

    def device_array(self) -> Array:
        """The bytes as an array of device type and device shape (uint1: in one dimension): a view of memory."""
        buffer = self.memory()
        view = self._view
        if view is None or self._view_of is not buffer or self._view_at != buffer.address:
            raw = buffer.memory.view(buffer.address, self.nbytes)
            view = raw.view(self._numpy)
            view = self._view = view if self.device_dtype.bits == 1 else view.reshape(self.device_shape)
            self._view_of, self._view_at = buffer, buffer.address
        return view

    def array(self) -> Array:
        """The values in host layout, in the device's number type; a view of memory where the layout is plain.

        A private layout is converted, and bits are unpacked, once per version of the buffer.
        """
        if self.device_format == PLAIN and self.device_dtype.bits != 1:
            return self.device_array()
        version = self.memory().version
        if self._cached is None or self._cached_version != version:
            self._cached = self._host_array()
            self._cached_version = version
        return self._cached

    def _host_array(self) -> Array:
        if self.device_format == PLAIN:
            return unpack(self.device_array(), self.device_dtype.name, self.shape)
        from dumpsim.tensor.layout import to_host

        return to_host(self.device_array(), self.device_format, self.shape, groups=self.groups)

    def put(self, values: HostArray) -> None:
        """Write values (host layout, device number type) to memory, and end the version of the buffer."""
        if not self.memory().memory.backed:
            self.memory().touch()
            return
        assert not isinstance(values, Unknown)
        target = self.device_array()
        if self.device_dtype.bits == 1:
            target[...] = pack(values, self.device_dtype.name)
            self.memory().touch()
        elif self.device_format == PLAIN:
            target[...] = values.reshape(self.shape)
            self.memory().touch()
        else:
            from dumpsim.tensor.layout import to_device

            to_device(values.reshape(self.shape), self.device_format, groups=self.groups, out=target)
            self.memory().touch()
            # a view may show memory that somebody writes later
            self._cached = values.reshape(self.shape) if values.base is None else None
            self._cached_version = self.memory().version

    def forget(self) -> None:
        """The tensor is dead: keep no converted copy of it."""
        self._cached = None
