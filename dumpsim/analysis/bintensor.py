"""A tensor inside a bin file: its bytes on the device, and its values on the host."""

from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

import numpy as np

from dumpsim.codecs.binfile import BinFile
from dumpsim.codecs.dumpdata import Item
from dumpsim.codecs.protonumber import DTYPES_PROTO, FORMATS
from dumpsim.core.dtype import DTYPES
from dumpsim.core.errors import BadInputError, DtypeError, FormatError, UnreadableError, UnsupportedError
from dumpsim.core.format import FORMATS as LAYOUTS
from dumpsim.tensor.cast import FLOATS, PACKED, to_numpy
from dumpsim.tensor.layout import device_shape, to_host

__all__ = ["BinTensor"]

Array = np.ndarray[Any, Any]

_WHOLE = ("ND", "NCHW", "NCDHW", "NCL")  # layouts whose data is the host's, in the host's order
_ORDERS = {4: (None, "NHWC", "HWCN"), 5: (None, "NDHWC", "DHWCN")}  # of the host, by rank; None: the layout's own
_LIMIT = 1 << 48  # larger dimensions are forged
_AS_INTEGERS = {"resource": "int64", "undefined": "uint8"}  # as the vendor's reader has them [spec ge 4.2]


@dataclass(frozen=True, kw_only=True)
class BinTensor:
    """One input or output of the operator of a bin file.

    Attributes
    ----------
    file : BinFile
    io : str
        ``input`` or ``output``.
    slot : int
    """

    file: BinFile
    io: str
    slot: int

    @cached_property
    def item(self) -> Item:
        """What the header tells."""
        return (self.file.data.inputs if self.io == "input" else self.file.data.outputs)[self.slot]

    @property
    def label(self) -> str:
        return f"{self.file.path}: {self.io} {self.slot}"

    @cached_property
    def dtype(self) -> str:
        """Our name of the type, ``type 99`` for a number that is none's."""
        row = DTYPES_PROTO.get(self.item.dtype)
        return row.dtype if row is not None else f"type {self.item.dtype}"

    @property
    def format(self) -> str:
        """Layout on the device."""
        return FORMATS.get(self.item.format, f"format {self.item.format}")

    @cached_property
    def device_shape(self) -> tuple[int, ...]:
        """Shape on the device; where the file has none, that of its elements in a row."""
        shape = self.item.shape
        row = DTYPES_PROTO.get(self.item.dtype)
        bits = row.bits if row is not None and row.bits else 8
        count = self.item.size * 8 // bits
        return (count,) if (shape == () and count != 1) or self.dtype == "undefined" else shape

    @cached_property
    def _host(self) -> tuple[tuple[int, ...], str | None] | None:
        """Shape on the host and its order, None where the data stays as it is on the device."""
        layout = LAYOUTS.get(self.format)
        shape = self.item.original_shape
        if layout is None or not layout.known or not layout.blocked or not shape or not self.decodable:
            return None
        if max(*shape, *self.device_shape) > _LIMIT:
            return None
        similar = None
        for order in _ORDERS.get(layout.rank, (None,)):
            try:
                found = device_shape(shape, self._kind, self.format, host_format=order, **self._options)
            except (FormatError, BadInputError):
                continue
            if found == self.device_shape:
                return shape, order
            if similar is None and prod(found) == prod(self.device_shape):
                similar = (shape, order)
        return similar

    @property
    def _options(self) -> dict[str, Any]:
        """How the layout is read; the last dimension tells C0 better than any rule. [spec ge 5.1]"""
        c0 = self.device_shape[-1] if self.device_shape and LAYOUTS[self.format].c0 is None else None
        return {"dialect": "ge", "groups": max(self.item.sub_format, 1), "c0": c0}

    @property
    def _kind(self) -> "np.dtype[Any]":
        """The type that is moved when the layout changes."""
        name = _AS_INTEGERS.get(self.dtype, self.dtype)
        if name in PACKED:
            return np.dtype("int8" if name == "int4" else "uint8")
        if name in FLOATS and name != "float16":
            return np.dtype(f"<u{DTYPES_PROTO[self.item.dtype].bits // 8}")
        return DTYPES[name].numpy

    @property
    def decodable(self) -> bool:
        """Whether the type's values can be told from its bytes."""
        name = _AS_INTEGERS.get(self.dtype, self.dtype)
        return name in DTYPES or name in FLOATS or name == "float8_e8m0"

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of `array`: the host's, or the device's where there is no way to the host's."""
        if self._host is not None:
            return self._host[0]
        original = self.item.original_shape
        if self.format in _WHOLE and original and prod(original) == prod(self.device_shape):
            return original
        return self.device_shape

    @property
    def converted(self) -> bool:
        """Whether `array` is in another layout than the file."""
        return self._host is not None

    @property
    def host_order(self) -> str | None:
        """Order of the axes of a converted `array`, None for the layout's own and for one that is not converted."""
        return self._host[1] if self._host is not None else None

    def raw(self) -> "np.ndarray[Any, np.dtype[np.uint8]]":
        """The bytes in the file, mapped and read-only."""
        return self.file.input(self.slot) if self.io == "input" else self.file.output(self.slot)

    def device(self) -> Array:
        """The values in the device's layout and shape; types of fewer than 16 bits and bfloat16 are decoded."""
        self._check()
        return self._decode(self.raw(), self.device_shape)

    def array(self) -> Array:
        """The values in the host's layout and shape.

        Raises
        ------
        UnreadableError
            If the size does not fit shape and type.
        UnsupportedError
            For a type whose values cannot be told from its bytes; `raw` gives those.
        """
        self._check()
        if self._host is None:
            return self._decode(self.raw(), self.shape)
        shape, order = self._host
        packed = self.dtype in PACKED
        source = self._decode(self.raw(), self.device_shape) if packed else self.raw().view(self._kind)
        try:
            host = to_host(source, self.format, shape, host_format=order, **self._options)
        except (FormatError, BadInputError) as error:
            raise UnreadableError(str(error), where=self.label, code="DS-ANA-006") from None
        return host if packed else self._decode(host, shape)

    def _check(self) -> None:
        if not self.decodable:
            known = [*DTYPES, *_AS_INTEGERS]
            raise UnsupportedError(
                f"values of {self.dtype} cannot be read; raw() gives the bytes",
                where=self.label,
                allowed=known,
                code="DS-ANA-007",
            )
        start, end = self.file.spans[f"{self.io}s"][self.slot]
        size = end - start  # what is there: a part without an address has none
        bits = DTYPES_PROTO[self.item.dtype].bits or 8
        needed = (prod(self.device_shape) * bits + 7) // 8
        if needed != size or max(*self.device_shape, *self.item.original_shape, 0, 0) > _LIMIT:
            what = f"{self.dtype} of shape {self.device_shape} has {needed} bytes, the file has {size}"
            raise UnreadableError(what, where=self.label, code="DS-ANA-006")

    def _decode(self, codes: Array, shape: tuple[int, ...]) -> Array:
        """Values of codes; native types are seen as they are, without a copy."""
        name = _AS_INTEGERS.get(self.dtype, self.dtype)
        if name in PACKED or ((name not in DTYPES or name in FLOATS) and name != "float16"):
            try:
                return to_numpy(codes, name, shape)
            except (BadInputError, DtypeError) as error:
                raise UnreadableError(str(error), where=self.label, code="DS-ANA-006") from None
        return codes.reshape(-1).view(DTYPES[name].numpy).reshape(shape)
