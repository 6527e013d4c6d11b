"""The binary dump file of GE, ACL and MindSpore's O2: one operator, all its tensors. [spec ge 3.1, 3.2]

::

    8 bytes   length of the header, little-endian
    header    protobuf DumpData, without data; it names outputs before inputs
    payload   inputs, outputs, buffers, workspaces: raw and back to back

Two other containers stand behind the same reader: a bare protobuf with the data in its fields ("version 1"), and the
variant of small chips, which `dumpsim.codecs.nano` reads. [spec ge 3.9]
"""

import os
import stat
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from dumpsim.codecs import nano
from dumpsim.codecs.protonumber import (
    DTYPES_PROTO,
    FORMATS,
    dtype_name,
    dtype_number,
    format_name,
    format_number,
    from_ge,
    ge_number,
    vendor_name,
)
from dumpsim.codecs.wire import Span, bad, bytes_field, fields, int_field, packed, signed32, varints
from dumpsim.core.errors import BadInputError

__all__ = [
    "DTYPES_PROTO",
    "FORMATS",
    "UNKNOWN_OFFSET",
    "BinFile",
    "DumpData",
    "Item",
    "Space",
    "decode",
    "dtype_name",
    "dtype_number",
    "format_name",
    "format_number",
    "from_ge",
    "ge_number",
    "header",
    "vendor_name",
]

Bytes = np.ndarray[Any, np.dtype[np.uint8]]

UNKNOWN_OFFSET = (1 << 64) - 1  # offset of a tensor of a dynamic shape; 0 for a static one [spec ge 3.2]
_MAX_HEADER = 1 << 26  # real headers have some hundred bytes; no real operator has so many tensors, dims, attributes
_MAX_ITEMS = 1 << 16
_MAX_DIMS = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """A tensor as the header tells of it.

    Attributes
    ----------
    dtype, format : int
        Numbers of `DTYPES_PROTO` and `FORMATS`.
    shape : tuple of int
        On the device.
    size : int
        Bytes of its data.
    original_shape : tuple of int
        On the host.
    sub_format : int
        Groups of FRACTAL_Z where above 1.
    address, offset : int
        On the device; `UNKNOWN_OFFSET` for dynamic shapes.
    arg_index, input_type : int or None
        In exception dumps; None where the header does not tell.
    original_name, original_index, original_dtype, original_format
        The operator before fusion; outputs only, and only with a name. `original_dtype` is GE's number.
    """

    dtype: int
    format: int
    shape: tuple[int, ...]
    size: int
    original_shape: tuple[int, ...] = ()
    sub_format: int = 0
    address: int = 0
    offset: int = 0
    arg_index: int | None = None
    input_type: int | None = None
    original_name: str = ""
    original_index: int = 0
    original_dtype: int = 0
    original_format: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Space:
    """An L1 buffer (type 0) or a workspace (type 0: log)."""

    type: int
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DumpData:
    """The header of a file; `dump_time` in microseconds, `op_name` as the graph has it, unescaped."""

    op_name: str
    dump_time: int
    inputs: tuple[Item, ...]
    outputs: tuple[Item, ...]
    version: str = "2.0"
    buffers: tuple[Space, ...] = ()
    spaces: tuple[Space, ...] = ()
    attrs: tuple[tuple[str, str], ...] = ()
    dfx_message: str = ""

    @property
    def payload(self) -> int:
        """Bytes behind the header."""
        return sum(part.size for part in self.parts)

    @property
    def parts(self) -> "tuple[Item | Space, ...]":
        """Tensors and spaces in the order of their data."""
        return (*self.inputs, *self.outputs, *self.buffers, *self.spaces)


# -- writing


def _text(number: int, value: str) -> bytes:
    return bytes_field(number, value.encode() or None)


def _shape(number: int, dims: tuple[int, ...]) -> bytes:
    return bytes_field(number, packed(1, dims))


def _input(item: Item) -> bytes:
    return b"".join(
        (
            int_field(1, item.dtype),
            int_field(2, item.format),
            _shape(3, item.shape),
            int_field(5, item.size),
            _shape(6, item.original_shape),
            int_field(7, item.sub_format),
            int_field(8, item.address),
            int_field(9, item.offset),
            int_field(10, item.arg_index),
            int_field(11, item.input_type),
        )
    )


def _output(item: Item) -> bytes:
    original = None
    if item.original_name:
        original = _text(1, item.original_name) + int_field(2, item.original_index)
        original += int_field(3, item.original_dtype) + int_field(4, item.original_format)
    return b"".join(
        (
            int_field(1, item.dtype),
            int_field(2, item.format),
            _shape(3, item.shape),
            bytes_field(4, original),
            int_field(6, item.size),
            _shape(7, item.original_shape),
            int_field(8, item.sub_format),
            int_field(9, item.address),
            int_field(11, item.offset),
            int_field(12, item.arg_index),
        )
    )


def _space(space: Space) -> bytes:
    return int_field(1, space.type) + int_field(3, space.size)


def header(data: DumpData) -> bytes:
    """All that stands before the payload: the length and the message.

    Parameters
    ----------
    data : DumpData
        The payload to write behind it is `data.inputs`, then outputs, buffers and spaces, each of its `size`.

    Examples
    --------
    >>> item = Item(dtype=dtype_number("float16"), format=format_number("ND"), shape=(2,), size=4)
    >>> header(DumpData(op_name="Add_1", dump_time=1700000000000000, inputs=(item,), outputs=())).hex()
    '24000000000000000a03322e30108080f9c0c1c48203220d080210021a030a01022804320032054164645f31'
    """
    message = b"".join(
        (
            _text(1, data.version),
            int_field(2, data.dump_time),
            *(bytes_field(3, _output(item)) for item in data.outputs),
            *(bytes_field(4, _input(item)) for item in data.inputs),
            *(bytes_field(5, _space(space)) for space in data.buffers),
            _text(6, data.op_name),
            *(bytes_field(7, _text(1, name) + _text(2, value)) for name, value in data.attrs),
            *(bytes_field(8, _space(space)) for space in data.spaces),
            _text(9, data.dfx_message),
        )
    )
    return len(message).to_bytes(8, "little") + message


# -- reading

# number of a field -> its name in Item or Space
_INPUT = {1: "dtype", 2: "format", 3: "shape", 4: "data", 5: "size", 6: "original_shape", 7: "sub_format"}
_INPUT |= {8: "address", 9: "offset", 10: "arg_index", 11: "input_type"}
_OUTPUT = {1: "dtype", 2: "format", 3: "shape", 4: "original", 5: "data", 6: "size", 7: "original_shape"}
_OUTPUT |= {8: "sub_format", 9: "address", 11: "offset", 12: "arg_index"}
_ORIGINAL = {1: "original_name", 2: "original_index", 3: "original_dtype", 4: "original_format"}
_SPACE = {1: "type", 2: "data", 3: "size"}
_ATTR = {1: "name", 2: "value"}
_SIGNED = frozenset({"dtype", "format", "sub_format", "type", "original_dtype", "original_format"})
_UNSIGNED32 = frozenset({"arg_index", "input_type", "original_index"})
_STRINGS = frozenset({"original_name", "name", "value"})
_SHAPES = frozenset({"shape", "original_shape"})
_MESSAGES = _SHAPES | _STRINGS | {"data", "original"}


class _Decoder:
    """One pass over a message; `where` and the offsets are the file's."""

    def __init__(self, view: memoryview, where: str) -> None:
        self.view = view
        self.where = where

    def string(self, span: Span) -> str:
        return bytes(self.view[span[0] : span[1]]).decode("utf-8", errors="backslashreplace")

    def message(self, span: Span, names: dict[int, str]) -> dict[str, Any]:
        """The known fields of a message; later values win, shapes add up, as protobuf merges them."""
        found: dict[str, Any] = {}
        for number, value, at in fields(self.view, span, self.where):
            name = names.get(number)
            if name is None:
                continue
            if isinstance(value, int):
                if name in _MESSAGES:
                    raise bad(self.where, at, f"field {number} ({name}) is a number")
                if name in _SIGNED:
                    value = signed32(value)
                elif name in _UNSIGNED32:
                    value &= 0xFFFFFFFF
                found[name] = value
            elif name in _SHAPES:
                found[name] = (*found.get(name, ()), *self.dims(value))
                if len(found[name]) > _MAX_DIMS:
                    raise bad(self.where, at, f"a shape has more than {_MAX_DIMS} dimensions")
            elif name == "original":
                found |= self.message(value, _ORIGINAL)
            elif name in _STRINGS:
                found[name] = self.string(value)
            elif name == "data":
                found[name] = value
            else:
                raise bad(self.where, at, f"field {number} ({name}) is no number")
        return found

    def dims(self, span: Span) -> list[int]:
        dims: list[int] = []
        for number, value, at in fields(self.view, span, self.where):
            if number == 1:
                values = [value] if isinstance(value, int) else varints(self.view, value, self.where, _MAX_DIMS)
                dims += values
                if len(dims) > _MAX_DIMS:
                    raise bad(self.where, at, f"a shape has more than {_MAX_DIMS} dimensions")
        return dims

    def item(self, span: Span, names: dict[int, str]) -> tuple[Item, Span | None]:
        found = self.message(span, names)
        data = found.pop("data", None)
        return _item(found), data

    def space(self, span: Span) -> tuple[Space, Span | None]:
        found = self.message(span, _SPACE)
        return Space(type=found.get("type", 0), size=found.get("size", 0)), found.get("data")

    def attr(self, span: Span) -> tuple[str, str]:
        found = self.message(span, _ATTR)
        return found.get("name", ""), found.get("value", "")

    def dump_data(self, span: Span) -> tuple[DumpData, dict[str, tuple[Span | None, ...]]]:
        """The header, and where each part's own data stands if it is in the message."""
        parts: dict[str, list[Any]] = {name: [] for name in ("outputs", "inputs", "buffers", "spaces", "attrs")}
        readers: dict[int, tuple[str, Callable[[Span], Any]]] = {
            3: ("outputs", lambda part: self.item(part, _OUTPUT)),
            4: ("inputs", lambda part: self.item(part, _INPUT)),
            5: ("buffers", self.space),
            7: ("attrs", self.attr),
            8: ("spaces", self.space),
        }
        texts = {1: "version", 6: "op_name", 9: "dfx_message"}
        plain: dict[str, Any] = {"op_name": "", "version": "", "dump_time": 0}
        for number, value, at in fields(self.view, span, self.where):
            if number == 2:
                if not isinstance(value, int):
                    raise bad(self.where, at, "field 2 (dump_time) is no number")
                plain["dump_time"] = value
            elif number in texts or number in readers:
                if isinstance(value, int):
                    raise bad(self.where, at, f"field {number} is a number")
                if number in texts:
                    plain[texts[number]] = self.string(value)
                    continue
                name, reader = readers[number]
                if len(parts[name]) == _MAX_ITEMS:
                    raise bad(self.where, at, f"more than {_MAX_ITEMS} {name}")
                parts[name].append(reader(value))
        plain["attrs"] = tuple(parts.pop("attrs"))
        plain |= {name: tuple(read[0] for read in part) for name, part in parts.items()}
        return DumpData(**plain), {name: tuple(p[1] for p in part) for name, part in parts.items()}


def decode(message: bytes | memoryview, where: str = "DumpData") -> DumpData:
    """The header message, without the length before it.

    Raises
    ------
    UnreadableError
        With the offset in the message.

    Examples
    --------
    >>> decode(bytes.fromhex("0a03322e301080e59a773205 4164645f31")).op_name
    'Add_1'
    """
    return _Decoder(memoryview(message), where).dump_data((0, len(message)))[0]


Kind = Literal["bin", "nano", "bare"]


@dataclass(frozen=True, slots=True, kw_only=True)
class BinFile:
    """A dump file: its header, read and checked, and views of its data, mapped when asked for.

    Attributes
    ----------
    path : str
    kind : str
        ``bin``, ``nano`` or ``bare``.
    data : DumpData
    spans : mapping of str to tuple
        First and last byte of each of ``inputs``, ``outputs``, ``buffers`` and ``spaces``.
    """

    path: str
    kind: Kind
    data: DumpData
    spans: dict[str, tuple[Span, ...]]

    @classmethod
    def open(cls, path: "str | os.PathLike[str]", *, trailing: bool = False) -> "BinFile":
        """Read a file's header.

        Parameters
        ----------
        path : path
        trailing : bool
            Whether bytes behind the last tensor are let pass, as the vendor's newest reader does. [spec ge 3.1]

        Raises
        ------
        UnreadableError
            With file and offset, for a file that is cut short, has trailing bytes, or is something else.

        Examples
        --------
        >>> import tempfile
        >>> item = Item(dtype=dtype_number("float16"), format=format_number("ND"), shape=(2,), size=4)
        >>> data = DumpData(op_name="Add_1", dump_time=1700000000000000, inputs=(item,), outputs=())
        >>> with tempfile.NamedTemporaryFile(suffix=".3.5.1700000000000000") as file:
        ...     _ = file.write(header(data) + bytes.fromhex("003c0040"))
        ...     file.flush()
        ...     BinFile.open(file.name).input(0).view("float16").tolist()
        [1.0, 2.0]
        """
        where = os.fspath(path)
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise bad(where, 0, "is not a regular file")
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            length = int.from_bytes(file.read(8), "little")
            if size <= 8:
                raise bad(where, size, f"{size} bytes are no dump file")
            if not 1 <= length <= size - 8:
                return cls._bare(where, size, length)
            if length > _MAX_HEADER:
                raise bad(where, 0, f"a header of {length} bytes is above the limit of {_MAX_HEADER}")
            message = file.read(length)
        if len(message) < length:
            raise bad(where, 8 + len(message), "the file was cut while it was read")
        view = memoryview(bytes(8) + message)  # offsets are the file's
        kind: Kind = "bin"
        if message[:4] == nano.MAGIC:
            kind, trailing = "nano", False  # sizes must add up exactly [spec ge 3.9]
            data = _nano(view, where)
        else:
            data, _ = _Decoder(view, where).dump_data((8, 8 + length))
        return cls(path=where, kind=kind, data=data, spans=_spans(data, 8 + length, size, where, trailing))

    @classmethod
    def _bare(cls, where: str, size: int, length: int) -> "BinFile":
        """A bare protobuf, whose parts hold their data."""
        if not size <= 1 << 31:
            raise bad(where, 0, f"a header of {length} bytes does not fit a file of {size} bytes")
        view = np.memmap(where, np.uint8, mode="r").data
        try:
            if view[0] not in (0x0A, 0x10, 0x1A, 0x22):  # a message starts with its version, time, output or input
                raise bad(where, 0, "the first byte is no field of a dump")
            data, held = _Decoder(view, where).dump_data((0, size))
        except ValueError as error:
            what = f"a header of {length} bytes does not fit a file of {size} bytes"
            raise bad(where, 0, f"{what}, nor is it a bare message ({error})") from None
        spans = {}
        for name, parts in held.items():
            spans[name] = tuple(span or (0, 0) for span in parts)
            for part, (start, end) in zip(getattr(data, name), spans[name], strict=True):
                if part.size not in (0, end - start):
                    raise bad(where, start, f"{end - start} bytes of data where the size says {part.size}")
        return cls(path=where, kind="bare", data=data, spans=spans)

    def _view(self, what: str, index: int) -> Bytes:
        spans = self.spans[what]
        if not 0 <= index < len(spans):
            raise BadInputError(
                f"there is no {index}", where=f"{self.path}: {what}", allowed=[f"0..{len(spans) - 1}"] if spans else ()
            )
        start, end = spans[index]
        if start == end:
            return np.empty(0, np.uint8)
        return np.memmap(self.path, np.uint8, mode="r", offset=start, shape=(end - start,))

    def input(self, index: int) -> Bytes:
        """Data of an input: uint8, of its size, mapped and read-only."""
        return self._view("inputs", index)

    def output(self, index: int) -> Bytes:
        """Data of an output."""
        return self._view("outputs", index)

    def buffer(self, index: int) -> Bytes:
        """Data of an L1 buffer."""
        return self._view("buffers", index)

    def space(self, index: int) -> Bytes:
        """Data of a workspace."""
        return self._view("spaces", index)


def _nano(view: memoryview, where: str) -> DumpData:
    """A header of tags; what it leaves out, operator and time, is in the file's name."""
    version, inputs, outputs = nano.decode(view, (8, len(view)), where)
    name = os.path.basename(where).split(".")
    stamp = name[-1] if len(name) > 2 and name[-1].isdecimal() else "0"
    return DumpData(
        op_name=name[1] if len(name) > 2 else "",
        dump_time=int(stamp[:20]),
        version=str(version),
        inputs=tuple(_item(found) for found in inputs),
        outputs=tuple(_item(found) for found in outputs),
    )


def _item(found: Mapping[str, Any]) -> Item:
    blank: dict[str, Any] = {"dtype": 0, "format": 0, "shape": (), "size": 0}
    return Item(**blank | dict(found))


def _spans(data: DumpData, start: int, size: int, where: str, trailing: bool) -> dict[str, tuple[Span, ...]]:
    """Where each part's bytes are; parts without an address have none if only so the payload adds up. [spec ge 3.1]"""
    items = data.parts
    sizes = [item.size for item in items]
    if start + sum(sizes) > size:
        held = [0 if isinstance(item, Item) and item.address == 0 else item.size for item in items]
        if start + sum(held) == size:
            sizes = held
    at = start
    spans: dict[str, tuple[Span, ...]] = {}
    index = 0
    for name in ("inputs", "outputs", "buffers", "spaces"):
        row = []
        for number in range(len(getattr(data, name))):
            end = at + sizes[index]
            if end > size:
                raise bad(where, at, f"{name[:-1]} {number} has {sizes[index]} bytes, {size - at} are left")
            row.append((at, end))
            at = end
            index += 1
        spans[name] = tuple(row)
    if at < size and not trailing:
        raise bad(where, at, f"{size - at} bytes follow the last tensor")
    return spans
