"""Slots: the tensors of a plan. What they are called, how their bytes lie, and when they hold their memory."""

from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np

from dumpsim.core.dtype import DType
from dumpsim.core.errors import UnsupportedError
from dumpsim.device.packed import PACKED

__all__ = ["PLAIN", "Array", "Slot"]

Array = np.ndarray[Any, Any]

PLAIN = "DefaultFormat"
_ANY = np.dtype(np.uint8)


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class Slot:
    """A tensor of a plan; the memory that it has in a rank is in that rank's `Binding`.

    Attributes
    ----------
    index : int
        Number of the tensor in its plan.
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
    base : Slot or None
        The tensor whose bytes these are (views, updated operands).
    bound : int
        Largest number of elements where the shape has -1.
    transparent : bool
        Listeners see the shape of `base`, as the vendor's CPU shows results of operators that compute nothing.
    settles : bool
        Each run decides the shape.
    shows_largest : bool
        The kernel's values decide the shape, and a dump of this output shows the shape with room for every result,
        with zeros after the end: the vendor's CPU dumps it before it takes the new shape. Operators that read it have
        its true shape. [observed 2.10: Unique output.0 (3,)]
    plain : bool
        The bytes lie as on the host.
    viewable : bool
        A view of the bytes is the array that the host would have.
    is_element : bool
        Of an input: one of a tuple that is the argument; listeners see no name.
    is_formal : bool
        Of an input: no argument of the network, so that the value has no memory of its own. [spec vendor 2.11]
    storage : object
        Of a weight: what holds its value on the host, see `dumpsim.runtime.storage`, or its index among those of each
        rank.
    value : array or None
        Of a constant.
    root_index, root_offset : int
        Index and offset of the tensor that owns the bytes.
    born, dead : int
        First and last position in the execution order at which the bytes are needed.
    offset : int
        Where the bytes begin in the workspace; -1 for tensors that are not in it.
    """

    index: int
    name: str
    kind: str
    dtype: DType
    shape: tuple[int, ...]
    device_dtype: DType
    device_format: str = PLAIN
    groups: int = 1
    slot: int = 0
    scalar: bool = False
    base: "Slot | None" = None
    bound: int = 1
    transparent: bool = False
    shows_largest: bool = False
    is_element: bool = False
    is_formal: bool = False
    storage: Any = None
    value: Array | None = None
    born: int = -1
    dead: int = -1
    offset: int = -1
    plain: bool = field(init=False, default=True)
    viewable: bool = field(init=False, default=True)
    device_shape: tuple[int, ...] = field(init=False, default=())
    nbytes: int = field(init=False, default=0)
    settles: bool = field(init=False, default=False)
    root_index: int = field(init=False, default=-1)
    root_offset: int = field(init=False, default=-1)
    numpy: "np.dtype[Any]" = field(init=False, default=_ANY)

    def __post_init__(self) -> None:
        plain = self.device_format == PLAIN
        if self.device_dtype.name == "hifloat8" or (self.device_dtype.name in PACKED and not plain):
            raise UnsupportedError(
                f"tensors of {self.device_dtype} in {self.device_format} are not emulated",
                where=self.name,
                code="DS-DEV-004",
            )
        device_shape = self.shape
        if not plain:
            from dumpsim.tensor.layout import device_shape as shape_of

            device_shape = shape_of(self.shape, self.device_dtype.numpy, self.device_format, groups=self.groups)
        settles = -1 in self.shape  # the kernel decides: memory for the largest result
        derived = {
            "plain": plain,
            "viewable": plain and self.device_dtype.bits != 1,
            "device_shape": device_shape,
            "nbytes": self.device_dtype.nbytes(self.bound if settles else prod(device_shape)),
            "settles": settles,
            "root_index": self.index if self.base is None else self.base.root_index,
            "root_offset": self.offset if self.base is None else self.base.root_offset,
            "numpy": self.device_dtype.numpy,
        }
        for name, value in derived.items():
            object.__setattr__(self, name, value)

    @property
    def root(self) -> "Slot":
        """The tensor that owns the bytes."""
        slot = self
        while slot.base is not None:
            slot = slot.base
        return slot
