"""A tensor of a bin file: its bytes on the device, and its values on the host."""

from dataclasses import dataclass
from functools import lru_cache
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
Shape = tuple[int, ...]

_WHOLE = ("ND", "NCHW", "NCDHW", "NCL")  # layouts whose data is the host's, in the host's order
_ORDERS = {4: (None, "NHWC", "HWCN"), 5: (None, "NDHWC", "DHWCN")}  # of the host, by rank; None: the layout's own
_LIMIT = 1 << 48  # larger dimensions are forged
_AS_INTEGERS = {"resource": "int64", "undefined": "uint8"}  # as the vendor's reader has them [spec ge 4.2]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reading:
    """How to read the bytes of a tensor; it depends on a few numbers of the header only.

    Attributes
    ----------
    dtype, format : str
        Our names; ``type 99`` and ``format 99`` for unknown numbers.
    stored : str
        The type of the bytes if the vendor's reader interprets them as another one, as for handles.
    decodable : bool
        Whether the bytes can be decoded as values of the type.
    native : dtype or None
        The numpy type to view the bytes with, None if they must be decoded.
    kind : dtype or None
        The type of the elements to move if the layout changes, else None.
    device_shape, shape : tuple of int
        Shape on the device, and of `BinTensor.array`.
    needed : int
        Number of bytes of the elements.
    host : tuple or None
        Shape on the host and its order of axes, None if the data is not converted.
    options : mapping
        Options of the conversion.
    """

    dtype: str
    format: str
    stored: str
    decodable: bool
    native: "np.dtype[Any] | None"
    kind: "np.dtype[Any] | None"
    device_shape: Shape
    shape: Shape
    needed: int
    host: tuple[Shape, str | None] | None
    options: dict[str, Any]


@lru_cache(maxsize=1024)  # a dump has few types and shapes
def _reading(number: int, layout: int, shape: Shape, original: Shape, size: int, groups: int) -> _Reading:
    """Return how to read a tensor with these fields of the header."""
    row = DTYPES_PROTO.get(number)
    dtype = row.dtype if row is not None else f"type {number}"
    format = FORMATS.get(layout, f"format {layout}")
    stored = _AS_INTEGERS.get(dtype, dtype)
    bits = row.bits if row is not None and row.bits else 8
    elements = size * 8 // bits
    device = (elements,) if (shape == () and elements != 1) or dtype == "undefined" else shape
    decodable = stored in DTYPES or stored in FLOATS or stored == "float8_e8m0"
    coded = stored in PACKED or ((stored not in DTYPES or stored in FLOATS) and stored != "float16")
    kind, host, options = None, None, {}
    rule = LAYOUTS.get(format)
    if rule is not None and rule.known and rule.blocked and original and decodable:
        kind = _moved(stored, bits)
        c0 = device[-1] if device and rule.c0 is None else None  # a more reliable C0 than any rule [spec ge 5.1]
        options = {"dialect": "ge", "groups": max(groups, 1), "c0": c0}
        host = _host(original, device, kind, format, rule.rank, options)
    result = device
    if host is not None:
        result = host[0]
    elif format in _WHOLE and original and prod(original) == prod(device):
        result = original
    return _Reading(
        dtype=dtype,
        format=format,
        stored=stored,
        decodable=decodable,
        native=DTYPES[stored].numpy if decodable and not coded else None,
        kind=kind,
        device_shape=device,
        shape=result,
        needed=(prod(device) * bits + 7) // 8,
        host=host,
        options=options,
    )


def _moved(stored: str, bits: int) -> "np.dtype[Any]":
    """The type that is moved when the layout changes."""
    if stored in PACKED:
        return np.dtype("int8" if stored == "int4" else "uint8")
    if stored in FLOATS and stored != "float16":
        return np.dtype(f"<u{bits // 8}")
    return DTYPES[stored].numpy


def _host(
    original: Shape, device: Shape, kind: "np.dtype[Any]", format: str, rank: int, options: dict[str, Any]
) -> tuple[Shape, str | None] | None:
    """Return shape and order on the host: those that give the file's device shape, or one of the same size."""
    if max(*original, *device) > _LIMIT:
        return None
    similar = None
    for order in _ORDERS.get(rank, (None,)):
        try:
            found = device_shape(original, kind, format, host_format=order, **options)
        except (FormatError, BadInputError):
            continue
        if found == device:
            return original, order
        if similar is None and prod(found) == prod(device):
            similar = (original, order)
    return similar


@dataclass(frozen=True, slots=True, kw_only=True)
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

    @property
    def item(self) -> Item:
        """The fields of the header."""
        return (self.file.data.inputs if self.io == "input" else self.file.data.outputs)[self.slot]

    @property
    def _reading(self) -> _Reading:
        item = self.item
        return _reading(item.dtype, item.format, item.shape, item.original_shape, item.size, item.sub_format)

    @property
    def label(self) -> str:
        return f"{self.file.path}: {self.io} {self.slot}"

    @property
    def dtype(self) -> str:
        """Our name of the type, ``type 99`` for an unknown number."""
        return self._reading.dtype

    @property
    def format(self) -> str:
        """Layout on the device."""
        return self._reading.format

    @property
    def device_shape(self) -> Shape:
        """Shape on the device; one-dimensional if the file has no shape."""
        return self._reading.device_shape

    @property
    def decodable(self) -> bool:
        """Whether the bytes can be decoded as values of the type."""
        return self._reading.decodable

    @property
    def shape(self) -> Shape:
        """Shape of `array`: the host's, or the device's if it cannot be converted."""
        return self._reading.shape

    @property
    def converted(self) -> bool:
        """Whether the layout of `array` differs from the file's."""
        return self._reading.host is not None

    @property
    def host_order(self) -> str | None:
        """Order of the axes of a converted `array`, None for the layout's own and for one that is not converted."""
        host = self._reading.host
        return host[1] if host is not None else None

    def raw(self) -> "np.ndarray[Any, np.dtype[np.uint8]]":
        """The bytes in the file, read-only."""
        return self.file.input(self.slot) if self.io == "input" else self.file.output(self.slot)

    def device(self) -> Array:
        """The values in the device's layout and shape; types of fewer than 16 bits and bfloat16 are decoded."""
        reading = self._checked()
        return self._decode(self.raw(), reading, reading.device_shape)

    def array(self) -> Array:
        """The values in the host's layout and shape.

        Raises
        ------
        UnreadableError
            If the size does not fit shape and type.
        UnsupportedError
            For a type whose bytes cannot be decoded; `raw` returns them.
        """
        reading = self._checked()
        if reading.host is None or reading.kind is None:
            return self._decode(self.raw(), reading, reading.shape)
        shape, order = reading.host
        packed = reading.dtype in PACKED
        source = self._decode(self.raw(), reading, reading.device_shape) if packed else self.raw().view(reading.kind)
        try:
            host = to_host(source, reading.format, shape, host_format=order, **reading.options)
        except (FormatError, BadInputError) as error:
            raise UnreadableError(str(error), where=self.label, code="DS-ANA-006") from None
        return host if packed else self._decode(host, reading, shape)

    def _checked(self) -> _Reading:
        """Return how to read the bytes, after checking their number."""
        reading = self._reading
        if not reading.decodable:
            known = [*DTYPES, *_AS_INTEGERS]
            raise UnsupportedError(
                f"values of {reading.dtype} cannot be read; raw() gives the bytes",
                where=self.label,
                allowed=known,
                code="DS-ANA-007",
            )
        start, end = self.file.spans[f"{self.io}s"][self.slot]
        size = end - start  # bytes in the file: a part without an address has none
        shape = reading.device_shape
        if reading.needed != size or any(extent > _LIMIT for extent in (*shape, *self.item.original_shape)):
            what = f"{reading.dtype} of shape {shape} has {reading.needed} bytes, the file has {size}"
            raise UnreadableError(what, where=self.label, code="DS-ANA-006")
        return reading

    def _decode(self, codes: Array, reading: _Reading, shape: Shape) -> Array:
        """Decode values; native types are viewed without a copy."""
        if reading.native is not None:
            return codes.reshape(-1).view(reading.native).reshape(shape)
        try:
            return to_numpy(codes, reading.stored, shape)
        except (BadInputError, DtypeError) as error:
            raise UnreadableError(str(error), where=self.label, code="DS-ANA-006") from None
