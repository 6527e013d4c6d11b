"""Protobuf's wire format without a schema: fields written in order, fields read one by one with their offsets.

The headers of dump files are read from strangers, so nothing here allocates by a number that a file holds: a length is
checked against the bytes that are there before it is used, and nesting is the caller's, never the file's.
"""

from collections.abc import Iterator, Sequence

from dumpsim.core.errors import UnreadableError

__all__ = ["Span", "bad", "bytes_field", "fields", "int_field", "packed", "signed32", "varint", "varints"]

Span = tuple[int, int]  # first byte, and one after the last

_MASK = (1 << 64) - 1
_FIXED = {1: 8, 5: 4}
_LONGEST = 10  # bytes of a varint


# -- writing


def varint(value: int) -> bytes:
    r"""A number in groups of seven bits; negative numbers as their 64-bit complement.

    Examples
    --------
    >>> varint(300), len(varint(-1))
    (b'\xac\x02', 10)
    """
    value &= _MASK
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def int_field(number: int, value: int | None) -> bytes:
    """A number; zero and None are not written, as proto3 has it."""
    return varint(number << 3) + varint(value) if value else b""


def bytes_field(number: int, value: bytes | None) -> bytes:
    """Bytes, a string or a message; an empty message is written, None is not."""
    return b"" if value is None else varint(number << 3 | 2) + varint(len(value)) + value


def packed(number: int, values: Sequence[int]) -> bytes:
    """Repeated numbers in one field; none are not written."""
    return bytes_field(number, b"".join(map(varint, values))) if values else b""


# -- reading


def bad(where: str, offset: int, what: str) -> UnreadableError:
    """The error of a file that cannot be read, with the file and the offset."""
    return UnreadableError(what, where=f"{where}: byte {offset}", code="DS-BIN-001")


def signed32(value: int) -> int:
    """A varint as int32 or enum: its low half.

    Examples
    --------
    >>> signed32((1 << 64) - 2), signed32(7)
    (-2, 7)
    """
    return ((value & 0xFFFFFFFF) ^ 0x80000000) - 0x80000000


def _varint(data: memoryview, at: int, end: int, where: str) -> tuple[int, int]:
    """The number at an offset and the offset after it."""
    value = 0
    for index in range(_LONGEST):
        if at + index >= end:
            raise bad(where, at, "a number is cut short")
        byte = data[at + index]
        value |= (byte & 0x7F) << 7 * index
        if byte < 0x80:
            return value & _MASK, at + index + 1
    raise bad(where, at, f"a number has more than {_LONGEST} bytes")


def varints(data: memoryview, span: Span, where: str, limit: int) -> Iterator[int]:
    """The numbers of a packed field, at most `limit`.

    Raises
    ------
    UnreadableError
        With the offset, for a number that is cut short, and for more numbers.

    Examples
    --------
    >>> list(varints(memoryview(bytes.fromhex("01ac02")), (0, 3), "file", 2))
    [1, 300]
    """
    at, end = span
    for _ in range(limit):
        if at == end:
            return
        if data[at] < 0x80:
            value, at = data[at], at + 1
        else:
            value, at = _varint(data, at, end, where)
        yield value
    if at != end:
        raise bad(where, at, f"more than {limit} numbers in one field")


def fields(data: memoryview, span: Span, where: str) -> Iterator[tuple[int, int | Span, int]]:
    """Fields of a message: number, value, offset. The value is an int, or where bytes, a string or a message stand.

    Fields of fixed width are passed over.

    Raises
    ------
    UnreadableError
        With the offset, for a field that leaves the message, number 0, or the wire types that proto3 has not.
    """
    at, end = span
    while at < end:
        start = at
        key = data[at]
        if key < 0x80:  # as nearly all are: a call for each would be most of the work
            at += 1
        else:
            key, at = _varint(data, at, end, where)
        number, wire = key >> 3, key & 7
        if number == 0 or number >= 1 << 29:
            raise bad(where, start, f"{number} is not the number of a field")
        if wire in (0, 2):
            if at < end and data[at] < 0x80:
                value, at = data[at], at + 1
            else:
                value, at = _varint(data, at, end, where)
            if wire == 0:
                yield number, value, start
                continue
            length = value
        elif wire in _FIXED:
            length = _FIXED[wire]
        else:
            raise bad(where, start, f"field {number} has wire type {wire}")
        if length > end - at:
            raise bad(where, start, f"field {number} has {length} bytes, {end - at} are left")
        if wire == 2:
            yield number, (at, at + length), start
        at += length  # a number of fixed width is an unknown field: no message that is read here has one
