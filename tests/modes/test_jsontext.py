"""The JSON reader against what MindSpore 2.10.0 said of the same bytes."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dumpsim.modes.jsontext import JsonTextError, parse

RECORDED = json.loads((Path(__file__).parents[2] / "fixtures/modes/json_errors.json").read_text())


def said(data):
    """What the reader says of bytes, None where it takes them."""
    try:
        parse(data)
    except JsonTextError as error:
        return str(error)
    return None


def test_errors_are_those_of_the_real_library():
    recorded = {bytes.fromhex(case["bytes"]): case["message"] for case in RECORDED}
    assert len(recorded) > 450
    assert {data: said(data) for data in recorded} == recorded


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)  # fmt: skip


@given(
    VALUES, st.booleans(), st.sampled_from([None, 0, 3, "\t", "\r\n"]), st.sampled_from([b"", b" ", b"\xef\xbb\xbf"])
)
def test_what_another_writer_writes_is_read(value, plain, indent, before):
    assert parse(before + json.dumps(value, ensure_ascii=plain, indent=indent).encode("utf-8", "replace")) == (
        json.loads(json.dumps(value, ensure_ascii=plain).encode("utf-8", "replace"))
    )


@pytest.mark.parametrize(
    "text",
    ['{"a": [1, -2, 3.5, true, null, "\\u00e9\\ud83d\\ude00x"], "b": {}}', "[]", '"\u7f51"', "[1e3, 0, -0, 1E-2]"],
)
def test_values_are_those_of_python(text):
    assert parse(text.encode()) == json.loads(text)


def test_whole_numbers_keep_their_kind():
    found = parse(b"[1, 1.0, -1, 18446744073709551615, 18446744073709551616]")
    assert [type(v) for v in found] == [int, float, int, int, float]


def test_the_rest_of_the_file_is_not_looked_at():
    assert parse(b"{} x") == {}


@pytest.mark.parametrize("depth", [600, 100_000])
def test_any_depth_is_read_as_the_library_reads_it(depth):
    """The real library recurses neither in reading nor in freeing."""
    value = parse(b"[" * depth + b"7" + b"]" * depth)
    for _ in range(depth):
        (value,) = value
    assert value == 7
    value = parse(b'{"a":' * depth + b"7" + b"}" * depth)
    for _ in range(depth):
        value = value["a"]
    assert value == 7
    with pytest.raises(JsonTextError, match=f"column {depth + 1}: syntax error while parsing value"):
        parse(b"[" * depth)


@pytest.mark.parametrize("number", [0, -(2**63), 2**64 - 1, 2**53 + 1, -1, 10**19])
def test_whole_numbers_of_64_bits_are_exact(number):
    found = parse(str(number).encode())
    assert (found, type(found)) == (number, int)


@pytest.mark.parametrize("number", [-(2**63) - 1, 2**64, 10**30, -(10**19)])
def test_larger_ones_are_rounded_as_the_library_does(number):
    found = parse(str(number).encode())
    assert (found, type(found)) == (float(number), float)


@pytest.mark.parametrize(
    "text",
    ["\u00e9", "\u7f51\u4e00", "\U0001f600x", "\u0080\u07ff\u0800\uffff\U00010000", "\U000fffff\U00100000\U0010ffff"],
)
def test_characters_of_several_bytes(text):
    data = f'"{text}"'.encode()
    assert parse(data) == text
    for end in range(2, len(data) - 1):  # cut inside of a character or before the quote
        with pytest.raises(JsonTextError):
            parse(data[:end])
        if data[end] & 0xC0 == 0x80:
            with pytest.raises(JsonTextError, match="ill-formed UTF-8 byte"):
                parse(data[:end] + b'"')


@pytest.mark.parametrize("code", [0x00, 0x7F, 0x80, 0x7FF, 0x800, 0xD7FF, 0xE000, 0xFFFF])
def test_escapes_of_characters_outside_the_surrogates(code):
    assert parse(b'"\\u%04x"' % code) == chr(code)


@pytest.mark.parametrize("pair", [(0xD800, 0xDC00), (0xD800, 0xDFFF), (0xDBFF, 0xDC00), (0xDBFF, 0xDFFF)])
def test_the_first_and_last_surrogate_pairs(pair):
    text = b'"\\u%04x\\u%04X"' % pair
    assert parse(text) == json.loads(text)


@pytest.mark.parametrize("code", [0xDC00, 0xDFFF])
def test_a_second_surrogate_alone(code):
    with pytest.raises(JsonTextError, match=r"surrogate U\+DC00..U\+DFFF must follow U\+D800..U\+DBFF"):
        parse(b'"\\u%04x"' % code)


@pytest.mark.parametrize("follower", [b"", b"x", b"\\n", b"\\u0041", b"\\udbff", b"\\ue000"])
@pytest.mark.parametrize("code", [0xD800, 0xDBFF])
def test_a_first_surrogate_without_the_second(code, follower):
    with pytest.raises(JsonTextError, match=r"surrogate U\+D800..U\+DBFF must be followed by U\+DC00..U\+DFFF"):
        parse(b'"\\u%04x%s"' % (code, follower))
