"""Errors: the text that people read, the names that scripts know, and what is suggested."""

import pytest

from dumpsim.core import errors
from dumpsim.core.errors import (
    BadInputError,
    CollectiveError,
    DumpConfigError,
    DumpsimError,
    PeerError,
    ScriptFileError,
    ScriptValueError,
    StreamHazard,
    UnknownValueError,
    nearest,
    public_name,
)

ALL = {"where": "file.json: $.path", "allowed": ("a", 2), "nearest": "a", "code": "DS-CFG-012"}
PARTS = ["file.json: $.path: ", "'x' is wrong", "; allowed: a, 2", " (did you mean 'a'?)", " [DS-CFG-012]"]


@pytest.mark.parametrize("left_out", [None, *ALL])
def test_the_text_has_what_is_known(left_out):
    known = {name: value for name, value in ALL.items() if name != left_out}
    gone = {"where": 0, "allowed": 2, "nearest": 3, "code": 4}.get(left_out)
    error = DumpsimError("'x' is wrong", **known)
    assert str(error) == error.explain() == "".join(part for at, part in enumerate(PARTS) if at != gone)
    assert (error.what, error.allowed) == ("'x' is wrong", () if left_out == "allowed" else ("a", "2"))
    assert [getattr(error, name) for name in ("where", "nearest", "code")] == [
        None if name == left_out else ALL[name] for name in ("where", "nearest", "code")
    ]
    assert not getattr(error, "__notes__", [])


def test_the_vendors_text_is_the_message_and_ours_a_note():
    error = DumpConfigError("'x' is wrong", **ALL, vendor="Dump path only support")
    assert str(error) == error.vendor == "Dump path only support"
    assert error.__notes__ == ["".join(PARTS)]
    assert isinstance(error, RuntimeError)
    empty = DumpConfigError("'x' is wrong", vendor="")
    assert (str(empty), empty.__notes__) == ("", ["'x' is wrong"])


def test_codes_by_the_kind_of_an_error():
    assert str(UnknownValueError("x")) == "x [DS-ENG-001]"
    assert str(UnknownValueError("x", code="DS-X")) == "x [DS-X]"
    assert str(StreamHazard("x")) == "x [DS-DEV-007]"
    peer = PeerError("rank 3 failed", rank=3, where="AllReduce")
    assert (str(peer), peer.rank, peer.code) == ("AllReduce: rank 3 failed [DS-DEV-006]", 3, "DS-DEV-006")
    late = CollectiveError("rank 1 is late", rank=1, code="EI0006", where="AllReduce")
    assert (str(late), late.rank, late.code) == ("AllReduce: rank 1 is late [EI0006]", 1, "EI0006")
    assert BadInputError("x").code is None


def test_names_are_those_that_scripts_know():
    raised = (ScriptValueError("x"), ScriptFileError("x"), BadInputError("x"), KeyError())
    assert [public_name(one) for one in raised] == ["ValueError", "FileNotFoundError", "BadInputError", "KeyError"]
    assert public_name(None) == "NoneType"
    script = [name for name in errors.__all__ if name.startswith("Script")]
    assert {name: public_name(getattr(errors, name)("x")) for name in script} == {
        "ScriptTypeError": "TypeError", "ScriptValueError": "ValueError", "ScriptFileError": "FileNotFoundError",
        "ScriptRuntimeError": "RuntimeError",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("value", "allowed", "expected"),
    [
        ("tensors", ["tensor", "statistic", "full"], "tensor"),
        ("TENSOR", ["Tensor", "full"], "Tensor"),  # whatever the case, in the case of the legal value
        ("npu", ["ascend", "gpu"], "ascend"),  # a synonym
        ("tpu", ["gpu", "cpu"], None),  # no synonym of any, though its spelling is close
        ("abcd", ["abxy"], "abxy"),  # half of it is equal
        ("abcd", ["axyz"], None),
        (10, [1, 16, 160], "160"),
        (3, [], None),
    ],
)
def test_the_nearest_legal_value(value, allowed, expected):
    assert nearest(value, allowed) == expected
