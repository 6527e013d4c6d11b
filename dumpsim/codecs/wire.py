"""Protobuf's wire format without a schema: functions that write fields, and read them with their offsets.

Dump files may come from anyone, so nothing here allocates memory according to a number in a file: a length is checked
against the remaining bytes before it is used, and the depth of nesting is limited by the caller.
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
    r"""Encode a number in groups of seven bits; negative numbers as 64-bit complement.

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
    """Encode a number; zero and None are not written, as in proto3."""
    return varint(number << 3) + varint(value) if value else b""


def bytes_field(number: int, value: bytes | None) -> bytes:
    """Encode bytes, a string or a message; an empty message is written, None is not."""
    return b"" if value is None else varint(number << 3 | 2) + varint(len(value)) + value


def packed(number: int, values: Sequence[int]) -> bytes:
    """Encode repeated numbers as one field; an empty sequence is not written."""
    return bytes_field(number, b"".join(map(varint, values))) if values else b""


# -- reading


def bad(where: str, offset: int, what: str) -> UnreadableError:
    """Return the error of an unreadable file, with file and offset."""
    return UnreadableError(what, where=f"{where}: byte {offset}", code="DS-BIN-001")


def signed32(value: int) -> int:
    """Convert a varint to int32 or enum: its lower half.

    Examples
    --------
    >>> signed32((1 << 64) - 2), signed32(7)
    (-2, 7)
    """
    return ((value & 0xFFFFFFFF) ^ 0x80000000) - 0x80000000


def _varint(data: memoryview, at: int, end: int, where: str) -> tuple[int, int]:
    """Decode the number at an offset; return it and the offset after it."""
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
    """Decode the numbers of a packed field, at most `limit`.

    Raises
    ------
    UnreadableError
        For a number that is cut short, or for more numbers; with the offset.

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
    """Decode the fields of a message: number, value, offset.

    The value is an integer, or the span of bytes, a string or a message. Fields of fixed width are skipped.

    Raises
    ------
    UnreadableError
        For a field that is longer than the message, number 0, or wire types that proto3 does not have; with the offset.
    """
    at, end = span
    while at < end:
        start = at
        key = data[at]
        if key < 0x80:  # the common case, without the cost of a call
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
        at += length  # fields of fixed width are unknown: no message that is read here has one
