"""The header of dump files of small chips: tags, lengths and values instead of protobuf. [spec ge 3.9]

::

    u32 0x5a5a5a5a, u32 version
    u32 tag 4, u32 length, u32 count, inputs       then the same with tag 5 and outputs
    each: i32 type, format, address type; outputs: i32 original index, type, format; u64 address, offset, size;
          u32 length of the rest: u32 tag, u32 length, value; tags: 0 shape, 1 original shape (u64), 2 original name
"""

from dumpsim.codecs.protonumber import from_ge
from dumpsim.codecs.wire import Span, bad
from dumpsim.core.errors import DtypeError

__all__ = ["MAGIC", "Fields", "decode"]

MAGIC = b"\x5a\x5a\x5a\x5a"
_INPUTS, _OUTPUTS = 4, 5
_MAX_DIMS = 32

# one tensor: names and values of `dumpsim.codecs.dumpdata.Item`
Fields = dict[str, int | str | tuple[int, ...]]

_INPUT = (("dtype", 4), ("format", 4), ("address_type", 4), ("address", 8), ("offset", 8), ("size", 8), ("rest", 4))
_OUTPUT = (
    *_INPUT[:3],
    *(("original_index", 4), ("original_dtype", 4), ("original_format", 4)),
    *_INPUT[3:],
)


class _Cursor:
    """Reads numbers one after the other, up to an end."""

    def __init__(self, data: memoryview, span: Span, where: str) -> None:
        self.data, self.where = data, where
        self.at, self.end = span

    def number(self, size: int, *, signed: bool = False) -> int:
        """Read the next `size` bytes as a number."""
        if size > self.end - self.at:
            raise bad(self.where, self.at, f"{size} bytes are needed, {self.end - self.at} are left")
        self.at += size
        return int.from_bytes(self.data[self.at - size : self.at], "little", signed=signed)

    def part(self, length: int) -> "_Cursor":
        """Return a cursor over the next `length` bytes."""
        if length > self.end - self.at:
            raise bad(self.where, self.at, f"{length} bytes are needed, {self.end - self.at} are left")
        self.at += length
        return _Cursor(self.data, (self.at - length, self.at), self.where)

    @property
    def left(self) -> int:
        return self.end - self.at


def decode(data: memoryview, span: Span, where: str) -> tuple[int, list[Fields], list[Fields]]:
    """Decode version, inputs and outputs; GE's numbers of types become those of dump files.

    Raises
    ------
    UnreadableError
        If a length does not fit, a tag is unknown or a type has no number; with the offset.
    """
    cursor = _Cursor(data, span, where)
    if cursor.number(4) != int.from_bytes(MAGIC, "little"):
        raise bad(where, span[0], "does not start with the nano magic")
    version = cursor.number(4)
    found: dict[int, list[Fields]] = {_INPUTS: [], _OUTPUTS: []}
    while cursor.left:
        at = cursor.at
        tag = cursor.number(4)
        part = cursor.part(cursor.number(4))
        if tag not in found or found[tag]:
            raise bad(where, at, f"tag {tag} is unknown or repeated")
        layout = _INPUT if tag == _INPUTS else _OUTPUT
        count = part.number(4)
        if count > part.left // sum(size for _, size in layout):
            raise bad(where, at + 8, f"{count} tensors do not fit {part.left} bytes")
        found[tag] = [_tensor(part, layout) for _ in range(count)]
        if part.left:
            raise bad(where, part.at, f"{part.left} bytes follow the last tensor of tag {tag}")
    return version, found[_INPUTS], found[_OUTPUTS]


def _tensor(cursor: _Cursor, layout: tuple[tuple[str, int], ...]) -> Fields:
    """Decode the description of one tensor."""
    start = cursor.at
    numbers = {name: cursor.number(size, signed=size == 4 and name != "rest") for name, size in layout}
    rest = cursor.part(numbers.pop("rest"))
    del numbers["address_type"]  # the base of the address, which a dump does not need
    item: Fields = {**numbers, "shape": ()}
    try:
        item["dtype"] = from_ge(numbers["dtype"])
    except DtypeError as error:
        raise bad(cursor.where, start, str(error)) from None
    while rest.left:
        at = rest.at
        tag = rest.number(4)
        value = rest.part(rest.number(4))
        if tag == 2:
            item["original_name"] = bytes(rest.data[value.at : value.end]).decode("utf-8", errors="backslashreplace")
        elif tag in (0, 1):
            if value.left % 8 or value.left > 8 * _MAX_DIMS:
                raise bad(cursor.where, at, f"{value.left} bytes are not a shape of at most {_MAX_DIMS} dimensions")
            dims = tuple(value.number(8) for _ in range(value.left // 8))
            item["original_shape" if tag else "shape"] = dims
        else:
            raise bad(cursor.where, at, f"tag {tag} is unknown")
    return item
