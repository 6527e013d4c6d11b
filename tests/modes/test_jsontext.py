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
