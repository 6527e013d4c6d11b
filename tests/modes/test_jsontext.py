"""The JSON reader against what MindSpore 2.10.0 said of the same bytes."""

import json
from pathlib import Path

import pytest

from dumpsim.modes.jsontext import JsonTextError, parse

RECORDED = json.loads((Path(__file__).parents[2] / "fixtures/modes/json_errors.json").read_text())


@pytest.mark.parametrize("case", RECORDED, ids=lambda case: case["bytes"][:24] or "empty")
def test_errors_are_those_of_the_real_library(case):
    data = bytes.fromhex(case["bytes"])
    if case["message"] is None:
        parse(data)
        return
    with pytest.raises(JsonTextError) as caught:
        parse(data)
    assert str(caught.value) == case["message"]


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
    with pytest.raises(JsonTextError) as caught:
        parse(b"hello")
    assert caught.value.rest == "ello"


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
