"""Slots: the tensors of a plan, with their names, layouts and life times."""

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


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class Slot:
    """A tensor of a plan; its memory in a rank is in that rank's `Binding`.

    Attributes
    ----------
    index : int
        Number of the tensor in its plan.
    name : str
        Full name of the producing node, or parameter name.
    kind : str
        ``weight``, ``input``, ``constant`` or ``activation``.
    dtype, shape : host number type and shape
    device_dtype, device_format, device_shape, groups : layout of the bytes on the device
    nbytes : int
        Logical bytes on the device.
    slot : int
        Output slot of the producer.
    scalar : bool
        Whether kernels take and return it as a Python number.
    base : Slot or None
        The tensor that owns the bytes (of views and updated operands).
    bound : int
        Largest number of elements, if the shape has -1.
    transparent : bool
        Whether listeners see the shape of `base`, as for the vendor's CPU operators that compute nothing.
    settles : bool
        Whether each run decides the shape.
    shows_largest : bool
        Whether the kernel's values decide the shape, and a dump of this output shows the upper bound of the shape, with
        zeros after the end: the vendor's CPU dumps it before it sets the new shape. Operators that read it see its true
        shape. [observed 2.10: Unique output.0 (3,)]
    plain : bool
        Whether the layout is the host's.
    viewable : bool
        Whether a view of the bytes equals the array on the host.
    is_element : bool
        Of an input: whether it is an item of a tuple argument; listeners see no name.
    is_formal : bool
        Of an input: whether it is not an argument of the network, so that the value has no memory of its own.
        [spec vendor 2.11]
    storage : object
        Of a weight: the host's `Storage`, see `dumpsim.runtime.storage`, or its index in the storages of each rank.
    value : array or None
        Of a constant: its value.
    root_index, root_offset : int
        Index and offset of the tensor that owns the bytes.
    born, dead : int
        First and last position in the execution order at which the bytes are needed.
    offset : int
        Offset of the bytes in the workspace; -1 for tensors that are not in it.
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
    plain: bool = field(init=False)
    viewable: bool = field(init=False)
    device_shape: tuple[int, ...] = field(init=False)
    nbytes: int = field(init=False)
    settles: bool = field(init=False)
    root_index: int = field(init=False)
    root_offset: int = field(init=False)
    numpy: "np.dtype[Any]" = field(init=False)

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
