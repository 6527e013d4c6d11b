"""What ranks and their hub tell each other, in bytes and back: frames, calls, errors, values."""

import json

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dumpsim.core.communicator import Call
from dumpsim.core.errors import BadInputError, CollectiveError, PeerError, ScriptValueError
from dumpsim.core.gate import Failure
from dumpsim.world import wire
from dumpsim.world.value import decode_value, encode_value
from dumpsim.world.wire import (
    FIRST,
    LONGEST,
    Frames,
    WireError,
    decode_call,
    decode_failure,
    encode,
    encode_call,
    encode_error,
    encode_failure,
    rebuild,
    take,
)


def over_json(document):
    return json.loads(json.dumps(document))


# ---------------------------------------------------------------- frames
@settings(max_examples=30)
@given(st.lists(st.text(max_size=20), max_size=5), st.integers(1, 9))
def test_messages_are_whole_however_their_bytes_come(texts, step):
    messages = [{"kind": "say", "text": text} for text in texts]
    stream, frames, got = b"".join(map(encode, messages)), Frames(), []
    for at in range(0, len(stream), step):
        got += frames.feed(stream[at : at + step])
    assert got == messages


def test_a_frame_is_its_length_and_json():
    """Four bytes, the highest first, then JSON without blanks."""
    text = b'{"kind":"x","list":[1,2]}'
    assert encode({"kind": "x", "list": [1, 2]}) == len(text).to_bytes(4, "big") + text


def test_a_frame_is_as_long_as_its_limit(monkeypatch):
    assert (FIRST, LONGEST) == (4096, 64 << 20)  # before and after the sender has shown the token
    message = {"kind": "x" * (FIRST - len('{"kind":""}'))}
    assert Frames().feed(encode(message)) == [message]
    message["kind"] += "x"
    with pytest.raises(WireError, match=r"^message of 4097 bytes is too long; allowed: at most 4096$"):
        Frames().feed(encode(message)[:4])  # before the rest has come
    assert Frames(LONGEST).feed(encode(message)) == [message]
    monkeypatch.setattr(wire, "LONGEST", 14)
    assert encode({"kind": "abc"}) == b'\0\0\0\x0e{"kind":"abc"}'
    with pytest.raises(WireError, match=r"^message of 15 bytes is too long; allowed: at most 14$"):
        encode({"kind": "abcd"})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"{", "a message is not JSON: "), (b"\xff", "a message is not JSON: "),
        (b"[" * 100_000, "a message is not JSON: "),
        (b"[]", "a message is not an object with a kind"), (b"{}", "a message is not an object with a kind"),
        (b'{"kind": 1}', "a message is not an object with a kind"),
    ],
)  # fmt: skip
def test_what_is_no_message_is_refused(text, said):
    with pytest.raises(WireError, match=f"^{said}"):
        Frames(LONGEST).feed(len(text).to_bytes(4, "big") + text)


def test_fields_have_types():
    message = {"kind": "enter", "time": 3, "flag": True, "name": "n", "long": "y" * 100}
    assert (take(message, "time", int), take(message, "flag", bool), take(message, "name", str)) == (3, True, "n")
    assert take(message, "absent", int, 7) == 7
    for name, kind, said in (
        ("flag", int, "enter.flag is True; allowed: int"), ("time", str, "enter.time is 3; allowed: str"),
        ("absent", int, "enter.absent is None; allowed: int"),
        ("long", int, f"enter.long is '{'y' * 79}; allowed: int"),
    ):  # fmt: skip
        with pytest.raises(WireError) as caught:
            take(message, name, kind)
        assert str(caught.value) == said


# ---------------------------------------------------------------- calls
NUMBERS = st.lists(st.integers(0, 9), max_size=3).map(tuple)
CALLS = st.builds(
    Call,
    op=st.sampled_from(["AllReduce", "Send", "AlltoAllV"]),
    tensors=st.lists(st.tuples(st.sampled_from(["int8", "float16"]), NUMBERS), max_size=2).map(tuple),
    root=st.integers(0, 5),
    reduce=st.sampled_from(["", "sum", "max"]),
    name=st.text(max_size=5),
    sends=NUMBERS,
)


@settings(max_examples=50)
@given(CALLS)
def test_a_call_comes_as_it_was_sent(call):
    assert decode_call(over_json(encode_call(call))) == call


def test_only_what_a_call_says_is_sent():
    assert encode_call(Call(op="Barrier")) == {"op": "Barrier"}
    for fields, said in (
        ({"root": "1"}, "call.root is '1'"), ({"root": True}, "call.root is True"), ({"op": 1}, "call.op is 1"),
        ({"nothing": 1}, "call.nothing is 1"), ({"sends": [1, "2"]}, r"\[1, '2'\] is not a list of numbers"),
        ({"sends": [True]}, r"\[True\] is not a list of numbers"), ({"sends": 3}, "3 is not a list of numbers"),
        ({"tensors": [["int8", [1.0]]]}, r"\[1.0\] is not a list of numbers"),
    ):  # fmt: skip
        with pytest.raises(WireError, match=f"^{said}$"):
            decode_call({"op": "Send", **fields})


# ---------------------------------------------------------------- errors
class Mine(KeyError):
    """An error that a script defines."""


class Odd(BaseException):
    """One that is no `Exception`."""


def noted(error, *notes):
    for note in notes:
        error.add_note(note)
    return error


@pytest.mark.parametrize(
    "error",
    [
        ValueError("too many"), ValueError(), ValueError("a", 1, 2.5, True), KeyError("k"), OSError(28, "full"),
        FileNotFoundError(2, "No such file", "x.py"), OSError("text"),
        BadInputError("wrong", where="here", allowed=("a", "b"), nearest="a", code="DS-X"), PeerError("late", rank=2),
        CollectiveError("differs", rank=1, code="EI0005"), ScriptValueError("ours", vendor="theirs", code="DS-Y"),
        noted(ValueError("noted"), "one", "two"),
    ],
)  # fmt: skip
def test_an_error_has_the_same_type_and_text_on_the_other_side(error):
    found = rebuild(over_json(encode_error(error)))
    assert (type(found), str(found), repr(found)) == (type(error), str(error), repr(error))
    assert getattr(found, "__notes__", []) == getattr(error, "__notes__", [])
    for name in ("what", "where", "nearest", "code", "vendor", "rank", "culprit", "kernel"):
        assert getattr(found, name, None) == getattr(error, name, None)
    assert tuple(getattr(found, "allowed", ())) == tuple(getattr(error, "allowed", ()))


def test_an_error_that_the_other_side_does_not_know_becomes_the_nearest_that_it_knows():
    for error, shown in (
        (Mine("key"), KeyError("Mine: 'key'")), (Odd("odd"), RuntimeError("Odd: odd")),
        (KeyboardInterrupt(), RuntimeError("KeyboardInterrupt: ")),
    ):  # fmt: skip
        assert repr(rebuild(over_json(encode_error(error)))) == repr(shown)
    for name in ("Nothing", "print", "BaseException", "public_name"):
        assert repr(rebuild({"type": name, "text": "t", "notes": []})) == "RuntimeError('t')"


def test_a_group_of_errors_arrives_with_its_text():
    found = rebuild(over_json(encode_error(ExceptionGroup("several", [ValueError("a"), KeyError("b")]))))
    assert repr(found) == "Exception('ExceptionGroup: several (2 sub-exceptions)')"
    assert repr(rebuild({"type": "ExceptionGroup", "text": "t", "notes": []})) == "RuntimeError('t')"


def test_objects_in_an_error_stay_at_home():
    found = rebuild(over_json(encode_error(OSError(5, "bad", b"bytes"))))
    assert (type(found), str(found)) == (OSError, "[Errno 5] bad: b'bytes'")
    found = encode_error(ValueError("a", object()))
    assert "args" not in found
    assert repr(rebuild(over_json(found))) == repr(ValueError(found["text"]))


def test_the_end_of_a_traceback_is_sent_on_demand(monkeypatch):
    with pytest.raises(ValueError, match="deep") as caught:
        raise ValueError("deep")
    assert "traceback" not in encode_error(caught.value)
    whole = encode_error(caught.value, trace=True)["traceback"]
    assert whole.startswith("Traceback (most recent call last):\n")
    assert whole.endswith("\nValueError: deep\n")
    monkeypatch.setattr(wire, "_TRACEBACK", 6)
    assert encode_error(caught.value, trace=True)["traceback"] == " deep\n"


@pytest.mark.parametrize("lasting", [True, False])
def test_a_failure_comes_as_it_was_sent(lasting):
    failure = Failure(rank=3, time_ns=17, error=ValueError("x"), lasting=lasting)
    found = decode_failure(over_json(encode_failure(failure)))
    assert (found.rank, found.time_ns, found.lasting, repr(found.error)) == (3, 17, lasting, "ValueError('x')")
    for name, value in (("rank", "3"), ("rank", True), ("time", 1.5), ("time", None), ("lasting", 1)):
        with pytest.raises(WireError, match=r"^a failure without rank or time$"):
            decode_failure(over_json(encode_failure(failure)) | {name: value})


# ---------------------------------------------------------------- values
SIMPLE = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary()
VALUES = st.recursive(
    SIMPLE,
    lambda inner: st.lists(inner) | st.lists(inner).map(tuple) | st.dictionaries(st.text() | st.integers(), inner),
    max_leaves=8,
)


def types(value):
    if isinstance(value, (list, tuple)):
        return type(value), [types(one) for one in value]
    if isinstance(value, dict):
        return dict, [(types(key), types(one)) for key, one in value.items()]
    return type(value)


@settings(max_examples=50)
@given(VALUES)
def test_values_come_back_with_their_types(value):
    found = decode_value(over_json(encode_value(value, where="here")))
    assert found == value
    assert types(found) == types(value)


@pytest.mark.parametrize(
    "value",
    [
        np.arange(6, dtype=np.int16).reshape(2, 3)[:, ::-1], np.array(2.5), np.zeros((0, 2), bool), np.float32(1.5),
        np.array([1 + 2j], np.complex64), np.array([1.5, -0.0], ml_dtypes.bfloat16), np.array([2, 3], np.uint64),
        np.bool_(True), np.array([1.5], ">f4"),
    ],
)  # fmt: skip
def test_arrays_come_back_with_their_bytes(value):
    found = decode_value(over_json(encode_value(value, where="here")))
    assert isinstance(found, np.ndarray) is isinstance(value, np.ndarray)
    assert (found.dtype, found.shape) == (value.dtype.newbyteorder("="), value.shape)
    assert found.tobytes() == np.asarray(value, found.dtype).tobytes()
    if isinstance(found, np.ndarray):
        assert found.flags.writeable


@pytest.mark.parametrize("value", [object(), {1}, np.array(["text"]), np.array([None]), type("L", (list,), {})()])
def test_other_values_are_refused(value):
    kind = type(value).__name__
    said = f"^here: a value of type {kind} cannot be sent to another process; allowed: None, bool, int, float, str, "
    for holder in (value, [value], (1, value), {"k": value}):
        with pytest.raises(BadInputError, match=said):
            encode_value(holder, where="here")
