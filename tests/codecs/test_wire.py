"""Protobuf's wire format against Google's own reader, and what it refuses."""

import pytest
from google.protobuf.empty_pb2 import Empty
from google.protobuf.unknown_fields import UnknownFieldSet
from hypothesis import given
from hypothesis import strategies as st

from dumpsim.codecs.wire import bytes_field, fields, int_field, packed, signed32, varint, varints
from dumpsim.core.errors import UnreadableError

NUMBERS = st.integers(1, (1 << 29) - 1)
FIELDS = st.lists(st.one_of(
    st.tuples(NUMBERS, st.integers(-(1 << 63), (1 << 64) - 1)), st.tuples(NUMBERS, st.binary(max_size=300)),
))  # fmt: skip


def google(data):
    message = Empty()
    message.ParseFromString(data)
    return [(one.field_number, one.data) for one in UnknownFieldSet(message)]


def own(data):
    found = []
    for number, value, at in fields(memoryview(data), (0, len(data)), "file"):
        found.append((number, bytes(data[slice(*value)]) if isinstance(value, tuple) else value))
        assert data[at : at + len(varint(number << 3))][1:] == varint(number << 3)[1:]  # where its key begins
    return found


@given(FIELDS)
def test_fields_are_those_that_google_reads(given):
    data = b"".join(
        bytes_field(number, value) if isinstance(value, bytes) else int_field(number, value) for number, value in given
    )
    assert own(data) == google(data)
    shown = [(number, value % (1 << 64) if isinstance(value, int) else value) for number, value in given if value != 0]
    assert own(data) == shown


def test_the_ends_of_numbers():
    assert [varint(n).hex() for n in (0, 127, 128, 16383, 16384)] == ["00", "7f", "8001", "ff7f", "808001"]
    assert own(varint(((1 << 29) - 1) << 3) + b"\x05") == [((1 << 29) - 1, 5)]
    for number in (0, 1 << 29):
        with pytest.raises(UnreadableError, match=f"file: byte 0: {number} is not the number of a field"):
            own(varint(number << 3) + b"\x05")
    assert int_field(1, 0) == int_field(1, None) == bytes_field(1, None) == packed(1, []) == b""
    assert bytes_field(1, b"") == b"\x0a\x00"
    assert [signed32(n) for n in (0, (1 << 31) - 1, 1 << 31, (1 << 32) - 1, 1 << 32)] == [
        0,
        (1 << 31) - 1,
        -(1 << 31),
        -1,
        0,
    ]
    eleven = b"\x80" * 10 + b"\x01"
    with pytest.raises(UnreadableError, match="more than 10 bytes"):
        own(b"\x08" + eleven)
    assert own(b"\x08" + b"\x80" * 9 + b"\x01") == [(1, 1 << 63)]


@pytest.mark.parametrize(("data", "words"), [
    (b"\x08\x80", "byte 1: a number is cut short"), (b"\x80", "byte 0: a number is cut short"),
    (b"\x08", "byte 1: a number is cut short"), (b"\x0a\x03ab", "byte 0: field 1 has 3 bytes, 2 are left"),
    (b"\x08\x01\x0b", "byte 2: field 1 has wire type 3"), (b"\x0d\x01\x02\x03", "field 1 has 4 bytes, 3 are left"),
    (b"\x09" + b"\x01" * 7, "field 1 has 8 bytes, 7 are left"), (b"\x0f", "field 1 has wire type 7"),
])  # fmt: skip
def test_what_is_refused(data, words):
    with pytest.raises(UnreadableError, match=words):
        own(data)


def test_numbers_of_fixed_width_are_passed_over():
    assert own(b"\x0d\x01\x02\x03\x04\x10\x07") == [(2, 7)]
    assert own(b"\x09" + b"\x01" * 8 + b"\x10\x07") == [(2, 7)]


@given(st.lists(st.integers(0, (1 << 64) - 1), max_size=20))
def test_packed_numbers(values):
    if not values:
        return
    data = packed(3, values)
    ((number, span, at),) = fields(memoryview(data), (0, len(data)), "file")
    assert (number, at) == (3, 0)
    assert list(varints(memoryview(data), span, "file", len(values))) == values
    with pytest.raises(UnreadableError, match=f"more than {len(values) - 1} numbers"):
        list(varints(memoryview(data), span, "file", len(values) - 1))
