"""mapping.csv and stack files: what is written is read, and what was cut short is left out."""

import json
import warnings

import pytest

from dumpsim.codecs import mapping, stackfile
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


# std::hash of libstdc++ 13 for the first n of the bytes 200, 237, 18, 55 ... (37 n + 200 mod 256)
HASHES = [
    6142509188972423790, 14826297069089410527, 10135178265775065329, 9338584168996029163, 14154114902186123411,
    13353481854530438885, 2463724047527879929, 11728608288653311405, 10795258665927903552, 11498324021501034758,
    9342716259337600661, 591657677912815384, 1096268469452362146, 1537991229923948274, 16893923659773094454,
    14799379953586360574, 10447652718083941251, 8062386179589752220, 8044001011922379663, 13825283763604830352,
    8697690922962035332, 11498720215425171848, 5305414841534962360, 15577542994700921825, 12743831941403526550,
    886254747480063684, 12908178235056068203, 6076317506296808823, 9780265758309218547, 13391025881309590762,
    2812358063679343045, 17214655681230561637, 11629749903543164774, 3242884412381678902,
]  # fmt: skip


def test_hashes_are_those_of_the_library():
    whole = bytes((37 * n + 200) % 256 for n in range(len(HASHES)))
    assert [mapping.string_hash(whole[:size]) for size in range(len(HASHES))] == HASHES


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
    compact = json.dumps(calls, separators=(",", ":"))
    for text in (json.dumps(calls), json.dumps(calls, indent=2), json.dumps(calls, ensure_ascii=False), compact):
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
    assert "a" not in stack(tmp_path, "{}")
    assert dict(stack(tmp_path, '{"a": ["1"], "b": [], "a": ["2"]}')) == {"a": ("2",), "b": ()}


@pytest.mark.parametrize("value", [0, 5, -1, 2**61])
def test_keys_with_one_hash_are_told_apart(tmp_path, monkeypatch, value):
    monkeypatch.setattr(stackfile, "hash", lambda key: value, raising=False)
    found = stack(tmp_path, json.dumps({f"call {n}": [str(n)] for n in range(9)} | {"other": []}))
    assert [found[f"call {n}"] for n in range(9)] == [(str(n),) for n in range(9)]
    assert found["other"] == ()
    monkeypatch.setattr(stackfile, "hash", lambda key: value + (key != "absent"), raising=False)
    for key in ("call 9", "absent"):  # with no entry of its hash, and with all entries
        with pytest.raises(KeyError, match=key):
            found[key]


@pytest.mark.parametrize(
    "text", ['{"a": ["1"], "b": ["2', '{"a": ["1"], "b"', '{"a": ["1"],', '{"a": ["1"]', '{"a": ["1"]\n']
)
@pytest.mark.parametrize("lines", [0, 3])
def test_stacks_that_end_too_early(tmp_path, text, lines):
    last = 1 + lines + text.count("\n")
    with pytest.warns(UnfinishedWarning, match=rf"stack\.json:{last}: the last line is unfinished and left out"):
        assert dict(stack(tmp_path, "\n" * lines + text)) == {"a": ("1",)}


@pytest.mark.parametrize(("text", "words"), [
    ("{} x", "other text follows the last entry"), ("{}}", "other text follows the last entry"),
    ('\n\n{"a": ["1"],\n3}', r"stack\.json:3: is not JSON: expected an entry"),
    ('{"' + "k" * 300 + '": 3}', f"stack.json:1: the frames of '{'k' * 200}' are not a list of strings"),
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
