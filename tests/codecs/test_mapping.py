"""mapping.csv and stack files: what is written is read, and what was cut short is left out."""

import json
import warnings

import pytest

from dumpsim.codecs import mapping
from dumpsim.codecs.stackfile import StackFile
from dumpsim.core.errors import UnfinishedWarning, UnreadableError


def test_line_ends_in_a_name_are_written_as_escapes(tmp_path):
    names = {"1.npy": "a\nb.npy", "2.npy": "a\rb.npy", "3.npy": "a\r\nb", "4.npy": "plain,with comma"}
    shown = {short: name.replace("\n", "\\n").replace("\r", "\\r") for short, name in names.items()}
    text = "".join(mapping.line(short, name) for short, name in names.items())
    assert text.count("\n") == 4
    assert "\r" not in text
    file = tmp_path / "mapping.csv"
    file.write_text(text)
    assert mapping.parse(text) == dict(mapping.pairs(file)) == shown
    assert mapping.read(file, {"2.npy", "9.npy"}) == {"2.npy": "a\\rb.npy"}
    assert list(mapping.pairs(tmp_path / "none.csv")) == []


def test_an_unfinished_line_is_left_out():
    with pytest.warns(UnfinishedWarning):
        assert mapping.parse("1.npy,a\nno comma\n2.npy,b") == {"1.npy": "a"}


def stack(tmp_path, text):
    file = tmp_path / "stack.json"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return StackFile(file)


def test_stacks_are_those_of_json(tmp_path):
    calls = {f"call {n}": [f"frame {k} of {n}" for k in range(n % 4)] for n in range(200)} | {
        'ünïcode "quoted" \\': ["a\n"]
    }
    for text in (json.dumps(calls), json.dumps(calls, indent=2), json.dumps(calls, ensure_ascii=False)):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            found = stack(tmp_path, b"\xef\xbb\xbf" + text.encode())
        assert dict(found) == {key: tuple(frames) for key, frames in calls.items()}
        assert list(found) == list(calls)
        assert len(found) == 201
        assert "call 7" in found
        with pytest.raises(KeyError):
            found["call 200"]
    assert dict(stack(tmp_path, "{}")) == dict(stack(tmp_path, "  \n")) == dict(stack(tmp_path, " { } \n")) == {}
    assert dict(stack(tmp_path, '{"a": ["1"], "b": [], "a": ["2"]}')) == {"a": ("2",), "b": ()}


@pytest.mark.parametrize(
    "text", ['{"a": ["1"], "b": ["2', '{"a": ["1"], "b"', '{"a": ["1"],', '{"a": ["1"]', '{"a": ["1"]\n']
)
def test_stacks_that_end_too_early(tmp_path, text):
    with pytest.warns(UnfinishedWarning):
        assert dict(stack(tmp_path, text)) == {"a": ("1",)}


@pytest.mark.parametrize(("text", "words"), [
    ("[]", "is not a JSON object"), ('{"a": [1]}', "the frames of 'a' are not a list of strings"),
    ('{"a": ["1"]}}', "other text follows the last entry"), ('{"a": ["1"]} x}', "other text follows the last entry"),
    ('{"a": ["\\q"]}', "is not JSON"), ("{3}", "expected an entry"), ('{"a": ["1"] "b": []}', "other text follows"),
    ('{\n"a": "b"}', r"stack\.json:2: the frames of 'a'"),
])  # fmt: skip
def test_stacks_that_are_none(tmp_path, text, words):
    with pytest.raises(UnreadableError, match=words):
        stack(tmp_path, text)


def test_the_frames_of_a_call_have_a_limit(tmp_path):
    for size, fits in ((1 << 20, True), ((1 << 20) + 1, False)):
        text = '{"a": ["' + "x" * (size - 4) + '"]}'
        if fits:
            assert len(stack(tmp_path, text)["a"][0]) == size - 4
        else:
            with pytest.raises(UnreadableError):
                stack(tmp_path, text)
