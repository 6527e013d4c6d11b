"""Overflow files against the documents' tables of offsets."""

import json
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dumpsim.codecs.opdebug import (
    SIZE,
    UNITS,
    Block,
    NewOpDebug,
    OpDebug,
    decode,
    encode,
    meanings,
    overflows,
    parse_json,
    to_json,
)
from dumpsim.core.errors import BadInputError, UnreadableError

INFO = ["model_id", "stream_id", "task_id", "task_type", "pc_start", "para_base"]


def old():
    """The old layout by hand: every field another number. [spec ge 3.8]"""
    raw = bytearray(2048)
    for at, first in ((0, 1), (128, 11), (256, 21)):
        raw[at : at + 48] = struct.pack("<6Q", *range(first, first + 6))
    raw[512:520] = struct.pack("<Q", 0x0900)
    raw[768:776] = struct.pack("<Q", 2 << 16)
    raw[1024:1048] = struct.pack("<3Q", 0xAB, 7, 0x120)
    return bytes(raw)


def block(first, **last):
    return dict(zip(INFO, range(first, first + 6), strict=True)) | last


def test_the_old_layout():
    facts = decode(old())
    assert list(facts) == ["DHA Atomic Add", "L2 Atomic Add", "AI Core"]
    assert list(facts["AI Core"]) == [*INFO, "kernel_code", "block_idx", "status"]
    assert list(facts["L2 Atomic Add"]) == [*INFO, "status"]
    assert facts["DHA Atomic Add"] == block(1, status=0x0900) | {"pc_start": "0x5", "para_base": "0x6"}
    assert facts["AI Core"]["kernel_code"] == "0xab"
    assert (facts["AI Core"]["block_idx"], facts["AI Core"]["status"], facts["L2 Atomic Add"]["status"]) == (
        7, 0x120, 0x20000
    )  # fmt: skip
    record = OpDebug(
        dha=Block(**block(1, status=0x0900)),
        l2=Block(**block(11, status=0x20000)),
        ai_core=Block(**block(21, kernel_code=0xAB, block_idx=7, status=0x120)),
    )
    assert encode(record) == old()
    assert decode(old()[:1048]) == facts  # the vendor's npy writer asks for no more


def test_one_block_for_all_is_not_taken_for_the_core():
    same = Block(status=5, kernel_code=9)
    assert decode(encode(OpDebug(dha=same, l2=same, ai_core=same)))["L2 Atomic Add"]["status"] == 5


CORE = [*INFO[:4], "context_id", "thread_id", "pc_start", "para_base", "core_id", "block_id", "status"]
SDMA = [*INFO[:4], "context_id", "thread_id", "src_addr", "dst_addr", "channel_id", "status"]
AICPU = [*INFO[:4], "context_id", "cpu_id", "thread_id", "status"]


@pytest.mark.parametrize(
    ("kind", "unit", "version", "names"),
    [(0, "AIC", 0, CORE), (1, "AIV", 0, CORE), (2, "AICPU", 0, AICPU), (3, "SDMA", 0, SDMA), (0, "AIC", 1, CORE),
     (1, "AIV", 1, CORE), (3, "SDMA", 1, SDMA)],
)  # fmt: skip
def test_the_new_layout(kind, unit, version, names):
    four = version == 1 and unit != "SDMA"
    words = [*range(1, len(names)), *([8, 16, 32, 64] if four else [0x28])]
    raw = struct.pack("<6I", 0x5A5A5A5A, version, 1, kind, 9, 8 * len(words)) + struct.pack(f"<{len(words)}Q", *words)
    raw = raw.ljust(2048, b"\0")
    facts = decode(raw)
    assert list(facts) == ["magic", "version", "acc_list"]
    acc = facts["acc_list"]
    assert list(acc) == ["valid", "acc_type", "rsv", "data_len", "data"]
    assert (facts["magic"], facts["version"], acc["valid"], acc["acc_type"], acc["rsv"], acc["data_len"]) == (
        "0x5a5a5a5a", version, 1, unit, 9, 8 * len(words)
    )  # fmt: skip
    assert list(acc["data"]) == names
    for name, number in zip(names[:-1], words, strict=False):
        assert acc["data"][name] == (hex(number) if "addr" in name or name in ("pc_start", "para_base") else number)
    assert acc["data"]["status"] == ([8, 16, 32, 64] if four else 0x28)
    data = dict(zip(names[:-1], words, strict=False)) | {"status": (8, 16, 32, 64) if four else 0x28}
    assert encode(NewOpDebug(acc_type=unit, version=version, rsv=9, data=data)) == raw
    ((found, fields, said),) = overflows(facts)
    assert (found, fields["task_id"]) == (unit, 3)
    if unit in ("AIC", "AIV"):
        assert said[0] == "negation overflow"


def test_fields_that_are_not_given_are_zero():
    head = struct.pack("<6I", 0x5A5A5A5A, 1, 1, 0, 0, 8 * 14)
    assert encode(NewOpDebug(acc_type="AIC", version=1, data={})) == head.ljust(2048, b"\0")
    assert encode(NewOpDebug(acc_type="AIC", version=1, data={"status": 5})) == (
        head + bytes(80) + struct.pack("<4Q", 5, 0, 0, 0)
    ).ljust(2048, b"\0")
    plain = struct.pack("<6I", 0x5A5A5A5A, 0, 1, 3, 0, 8 * 10)
    assert encode(NewOpDebug(acc_type="SDMA", data={"stream_id": 9})) == (plain + struct.pack("<2Q", 0, 9)).ljust(
        2048, b"\0"
    )


def test_units_that_overflowed_are_told_with_what_their_bits_mean():
    facts = decode(old())
    assert overflows(facts) == (
        ("DHA Atomic Add", facts["DHA Atomic Add"], ("overflow",)),
        ("L2 Atomic Add", facts["L2 Atomic Add"], ("underflow",)),
        ("AI Core", facts["AI Core"], ("floating-point overflow", "float32 or int32 to float16 overflow")),
    )
    assert overflows(decode(bytes(2048))) == ()
    some = decode(encode(OpDebug(l2=Block(status=3 << 16 | 1))))
    assert [(unit, texts) for unit, _, texts in overflows(some)] == [("L2 Atomic Add", ("source is NaN", "0x1"))]
    assert overflows({"AI Core": facts["AI Core"]})[0][0] == "AI Core"  # JSON with one block
    words = decode(encode(NewOpDebug(acc_type="AIV", version=1, data={"status": (0x20, 0, 0x20, 0x8)})))
    ((unit, fields, texts),) = overflows(words)
    assert (unit, fields["status"]) == ("AIV", [0x20, 0, 0x20, 8])
    assert texts == ("floating-point overflow", "negation overflow")  # each once


# [spec mindspore 5.2]
BITS = {
    **{("AI Core", 1 << bit): text for bit, text in {
        3: "negation overflow", 4: "integer add, subtract, multiply or multiply-add overflow",
        5: "floating-point overflow", 7: "float to unsigned of a negative value",
        8: "float32 or int32 to float16 overflow", 10: "cube accumulation overflow"}.items()},
    **{("DHA Atomic Add", 0x900 + (n << 8)): text for n, text in enumerate(
        ("overflow", "underflow", "source is NaN", "destination is NaN", "both are NaN"))},
    **{("L2 Atomic Add", (1 + n) << 16): text for n, text in enumerate(
        ("overflow", "underflow", "source is NaN", "destination is NaN", "both are NaN"))},
}  # fmt: skip


@pytest.mark.parametrize(("unit", "status"), BITS)
def test_every_bit_that_is_documented(unit, status):
    text = BITS[unit, status]
    assert meanings(unit, status) == (text,)
    for other in (1, 1 << 40):  # bits without a meaning
        assert meanings(unit, status | other) == (text, hex(other))


def test_bits_without_a_meaning_are_shown_as_they_are():
    core = sum(1 << bit for bit in (3, 4, 5, 7, 8, 10))
    for bit in range(64):
        if not core >> bit & 1:
            assert meanings("AIV", 1 << bit) == (hex(1 << bit),)
    for code in {*range(256)} - {*range(9, 14)} - {0}:
        assert meanings("DHA Atomic Add", code << 8) == (hex(code << 8),)
    for code in (6, 7):
        assert meanings("L2 Atomic Add", code << 16) == (hex(code << 16),)
    assert meanings("AICPU", 6) == ("0x6",)


def test_json_of_both_tools():
    facts = decode(old())
    compact = to_json(facts, "mindspore")
    assert compact.startswith('{"AI Core":{"block_idx":7,"kernel_code":"0xab","model_id":21,"para_base":"0x1a",')
    assert json.loads(compact) == facts
    ordered = to_json(facts, "msaccucmp")
    assert ordered.splitlines()[:3] == ["{", '    "DHA Atomic Add": {', '        "model_id": 1,']
    assert not ordered.endswith("\n")
    assert list(json.loads(ordered)["AI Core"]) == [*INFO, "kernel_code", "block_idx", "status"]
    with pytest.raises(BadInputError, match="mindspore, msaccucmp"):
        to_json(facts, "yaml")


@pytest.mark.parametrize(
    ("unit", "status", "text"),
    [
        ("AI Core", 0x8, "negation"), ("AIC", 0x10, "integer"), ("AIV", 0x20, "floating"),
        ("AI Core", 0x80, "unsigned"), ("AI Core", 0x100, "float16"), ("AI Core", 0x400, "cube"),
        ("AI Core", 0x1, "0x1"), ("DHA Atomic Add", 0x900, "overflow"), ("DHA Atomic Add", 0xD00, "both"),
        ("L2 Atomic Add", 2 << 16, "underflow"), ("L2 Atomic Add", 4 << 16, "destination"), ("SDMA", 1, "0x1"),
    ],
)  # fmt: skip
def test_status_words(unit, status, text):
    (said,) = meanings(unit, status)
    assert text in said
    assert meanings(unit, 0) == ()


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (b"", "byte 0: 0 bytes are too few"),
        (old()[:1047], "byte 1047: 1047 bytes are too few"),
        (struct.pack("<I", 0x5A5A5A5A), "byte 4: the header is cut short"),
        (struct.pack("<6I", 0x5A5A5A5A, 0, 1, 0, 0, 88)[:23], "byte 23: the header is cut short"),
        (struct.pack("<6I", 0x5A5A5A5A, 0, 1, 0, 0, 88), "byte 24: model_id is cut short"),
        (struct.pack("<6I", 0x5A5A5A5A, 1, 1, 0, 0, 88) + bytes(80 + 24), "byte 104: status is cut short"),
        (struct.pack("<6I", 0x5A5A5A5A, 0, 1, 4, 0, 88) + bytes(2000), r"byte 12: acc_type 4 .*0 \(AIC\)"),
        (struct.pack("<6I", 0x5A5A5A5A, 0, 1, 0, 0, 88) + bytes(80), "byte 104: status is cut short"),
    ],
    ids=range(8),
)
def test_data_that_is_cut_short(raw, text):
    with pytest.raises(UnreadableError, match=text):
        decode(raw, "f")


GOOD = to_json(decode(old()), "mindspore")
BAD = {
    "nothing": "",
    "a list": "[]",
    "an empty mapping": "{}",
    "a number": "3",
    "deep": "[" * 100_000,
    "long": "x" * (1 << 21),
    "unknown unit": '{"acc_list": {"acc_type": "GPU"}}',
    "no block": '{"acc_list": 5}',
    "number as text": GOOD.replace("288", '"288"'),
    "negative": GOOD.replace("288", "-1"),
    "a bool": GOOD.replace("288", "true"),
    "bad address": GOOD.replace("0xab", "x"),
    "65 bits": GOOD.replace("288", str(1 << 64)),
    "a list of numbers": GOOD.replace('"task_id":3', '"task_id":[3]'),
    "a list of texts": GOOD.replace("288", '["288"]'),
}


@pytest.mark.parametrize("name", BAD)
def test_json_that_is_none(name):
    assert "288" in GOOD
    with pytest.raises(UnreadableError, match="f: is not the JSON of an overflow"):
        parse_json(BAD[name], "f")


def test_json_up_to_the_limits():
    facts = decode(encode(NewOpDebug(acc_type="AIC", version=1, data={"task_id": 2**64 - 1, "status": (1, 2, 3, 4)})))
    text = to_json(facts, "mindspore")
    assert parse_json(text) == facts
    assert parse_json(text.ljust(1 << 20)) == facts
    with pytest.raises(UnreadableError, match=f"{(1 << 20) + 1} characters, at most {1 << 20} are allowed"):
        parse_json(text.ljust((1 << 20) + 1))


word = st.integers(0, 2**64 - 1)
news = st.builds(NewOpDebug, acc_type=st.sampled_from(UNITS), data=st.fixed_dictionaries({}, optional={
    "model_id": word, "stream_id": word, "task_id": word, "context_id": word, "status": word,
}), version=st.sampled_from([0, 2]))  # fmt: skip
olds = st.builds(OpDebug, dha=st.builds(Block, task_id=word, status=word), ai_core=st.builds(Block, pc_start=word))


@given(news | olds, st.sampled_from(["mindspore", "msaccucmp"]))
def test_bytes_and_json_say_the_same(record, style):
    raw = encode(record)
    assert len(raw) == SIZE
    assert parse_json(to_json(decode(raw), style)) == decode(raw)


def test_what_no_layout_holds():
    for record, text in (
        (NewOpDebug(acc_type="GPU", data={}), "AIC, AIV, AICPU, SDMA"),
        (NewOpDebug(acc_type="SDMA", data={"core_id": 1}), "SDMA has no 'core_id'"),
        (NewOpDebug(acc_type="AIC", version=1, data={"status": (1, 2)}), "not 4"),
        (NewOpDebug(acc_type="AIC", data={"status": (1, 2)}), "one number"),
    ):
        with pytest.raises(BadInputError, match=text):
            encode(record)
