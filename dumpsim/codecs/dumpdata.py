"""The header of a binary dump file of GE, ACL and MindSpore's O2: protobuf DumpData. [spec ge 3.1, 3.2]

::

    8 bytes   length of the header, little-endian
    header    protobuf DumpData, without data; outputs come before inputs
    payload   inputs, outputs, buffers, workspaces: raw, one after the other

`dumpsim.codecs.binfile` reads whole files.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from dumpsim.codecs.protonumber import (
    DTYPES_PROTO,
    FORMATS,
    dtype_name,
    dtype_number,
    format_number,
    from_ge,
    ge_number,
    vendor_name,
)
from dumpsim.codecs.wire import Span, bad, bytes_field, fields, int_field, packed, signed32, varints
from dumpsim.core.errors import UnreadableError

__all__ = [
    "DTYPES_PROTO",
    "FORMATS",
    "Decoder",
    "DumpData",
    "HeaderPlan",
    "Item",
    "Space",
    "decode",
    "dtype_name",
    "dtype_number",
    "format_number",
    "from_ge",
    "ge_number",
    "header",
    "item_of",
    "vendor_name",
]

_MAX_ITEMS = 1 << 16  # tensors; real operators have far fewer
_MAX_DIMS = 32
_SHORT = 512  # largest size of a tensor's message that is cached


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """A tensor as the header describes it.

    Attributes
    ----------
    dtype, format : int
        Numbers of `DTYPES_PROTO` and `FORMATS`.
    shape : tuple of int
        Shape on the device.
    size : int
        Number of bytes.
    original_shape : tuple of int
        Shape on the host.
    sub_format : int
        Number of groups of FRACTAL_Z if above 1.
    address, offset : int
        Address on the device; 0 for static shapes, 2**64 - 1 for dynamic ones. [spec ge 3.2]
    arg_index, input_type : int or None
        For exception dumps; None if the header does not have them.
    original_name, original_index, original_dtype, original_format
        The output of the operator before fusion. They are written for outputs only, and only if there is a name.
        `original_dtype` is GE's number.
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
    """The header of a file; `dump_time` is in microseconds, `op_name` is the name in the graph, unescaped."""

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
        """Number of bytes after the header."""
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
    """Encode the bytes before the payload: the length and the message.

    Parameters
    ----------
    data : DumpData
        The payload that follows is that of `data.inputs`, then outputs, buffers and spaces, each of its `size`.

    Examples
    --------
    >>> item = Item(dtype=dtype_number("float16"), format=format_number("ND"), shape=(2,), size=4)
    >>> header(DumpData(op_name="Add_1", dump_time=1700000000000000, inputs=(item,), outputs=())).hex()
    '24000000000000000a03322e30108080f9c0c1c48203220d080210021a030a01022804320032054164645f31'
    """
    return HeaderPlan(data).at(data.dump_time)


class HeaderPlan:
    """The header of files that differ only in their time.

    Examples
    --------
    >>> data = DumpData(op_name="Add_1", dump_time=0, inputs=(), outputs=())
    >>> HeaderPlan(data).at(5) == header(DumpData(op_name="Add_1", dump_time=5, inputs=(), outputs=()))
    True
    >>> plan = HeaderPlan(data)
    >>> times = [1 << 50, (1 << 50) + 300, (1 << 50) + (1 << 20), 1 << 51, 7]
    >>> all(plan.at(time) == HeaderPlan(data).at(time) for time in times)
    True
    """

    __slots__ = ("_after", "_before", "_high", "_size", "_slow")

    def __init__(self, data: DumpData) -> None:
        self._before = _text(1, data.version)
        self._after = _after_time(data)
        self._size = len(self._before) + len(self._after)
        self._high = 0  # the upper bits of the last time; `_slow` is the bytes before and after its lower digits
        self._slow = b"", b""

    def at(self, dump_time: int) -> bytes:
        """Encode the header for a time in microseconds; `DumpData.dump_time` is ignored."""
        high = dump_time >> 21
        if high != self._high or not high:
            time = int_field(2, dump_time)
            start = (self._size + len(time)).to_bytes(8, "little") + self._before
            self._high, self._slow = high, (start + time[:1], time[4:] + self._after)
            return start + time + self._after
        before, after = self._slow
        digits = dump_time & 0x7F | 0x80, dump_time >> 7 & 0x7F | 0x80, dump_time >> 14 & 0x7F | 0x80
        return b"".join((before, bytes(digits), after))


def _after_time(data: DumpData) -> bytes:
    return b"".join(
        (
            *(bytes_field(3, _output(item)) for item in data.outputs),
            *(bytes_field(4, _input(item)) for item in data.inputs),
            *(bytes_field(5, _space(space)) for space in data.buffers),
            _text(6, data.op_name),
            *(bytes_field(7, _text(1, name) + _text(2, value)) for name, value in data.attrs),
            *(bytes_field(8, _space(space)) for space in data.spaces),
            _text(9, data.dfx_message),
        )
    )


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


def item_of(found: Mapping[str, Any]) -> Item:
    """Make a tensor from the fields that were found; missing fields have protobuf's defaults."""
    blank: dict[str, Any] = {"dtype": 0, "format": 0, "shape": (), "size": 0}
    return Item(**blank | dict(found))


class Decoder:
    """Decodes a message; offsets in errors are those of the file `where`."""

    def __init__(self, view: memoryview, where: str) -> None:
        self.view = view
        self.where = where

    def string(self, span: Span) -> str:
        return bytes(self.view[span[0] : span[1]]).decode("utf-8", errors="backslashreplace")

    def message(self, span: Span, names: dict[int, str]) -> dict[str, Any]:
        """Decode the known fields of a message; as in protobuf, later values win and shapes are concatenated."""
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
                raise bad(self.where, at, f"field {number} ({name}) is not a number")
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
        if span[1] - span[0] <= _SHORT:
            known = _known(bytes(self.view[span[0] : span[1]]), names is _OUTPUT)
            if known is not None:
                return known, None
        return self.new_item(span, names)

    def new_item(self, span: Span, names: dict[int, str]) -> tuple[Item, Span | None]:
        found = self.message(span, names)
        data = found.pop("data", None)
        return item_of(found), data

    def space(self, span: Span) -> tuple[Space, Span | None]:
        found = self.message(span, _SPACE)
        return Space(type=found.get("type", 0), size=found.get("size", 0)), found.get("data")

    def attr(self, span: Span) -> tuple[str, str]:
        found = self.message(span, _ATTR)
        return found.get("name", ""), found.get("value", "")

    def dump_data(self, span: Span) -> tuple[DumpData, dict[str, tuple[Span | None, ...]]]:
        """Decode the header; also return the span of each part's data if the message contains it."""
        parts: dict[str, list[Any]] = {"outputs": [], "inputs": [], "buffers": [], "spaces": [], "attrs": []}
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
                    raise bad(self.where, at, "field 2 (dump_time) is not a number")
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


@lru_cache(maxsize=1024)  # a tensor has the same description in every step
def _known(message: bytes, output: bool) -> Item | None:
    """Decode the tensor of a message; None if it contains data or is unreadable (errors need the file's offset)."""
    try:
        item, data = Decoder(memoryview(message), "").new_item((0, len(message)), _OUTPUT if output else _INPUT)
    except UnreadableError:
        return None
    return item if data is None else None


def decode(message: bytes | memoryview, where: str = "DumpData") -> DumpData:
    """Decode the header message, without the length before it.

    Raises
    ------
    UnreadableError
        With the offset in the message.

    Examples
    --------
    >>> decode(bytes.fromhex("0a03322e301080e59a773205 4164645f31")).op_name
    'Add_1'
    """
    return Decoder(memoryview(message), where).dump_data((0, len(message)))[0]
