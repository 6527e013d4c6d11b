"""An Ascend device's record of an overflow: the data of ``Opdebug.Node_OpDebug`` files. [spec ge 3.8]

There are two layouts, both of 2048 bytes, padded with zeros. The old one has a block for each unit that detects
overflows; the new one has one block, and the type of its unit.
"""

import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from dumpsim.core.errors import BadInputError, UnreadableError

__all__ = [
    "SIZE",
    "UNITS",
    "Block",
    "NewOpDebug",
    "OpDebug",
    "decode",
    "encode",
    "meanings",
    "overflows",
    "parse_json",
    "to_json",
]

SIZE = 2048
_MAGIC = 0x5A5A5A5A
_HEX = ("pc_start", "para_base", "src_addr", "dst_addr", "kernel_code")
_INFO = ("model_id", "stream_id", "task_id", "task_type", "pc_start", "para_base")

# block -> offset of its fields, offset of its status [spec ge 3.8]
_OLD = {"DHA Atomic Add": (0, 512), "L2 Atomic Add": (128, 768), "AI Core": (256, 1024)}
_AI_CORE = ("kernel_code", "block_idx", "status")
_NEEDED = 1048  # the end of the last status; the vendor's npy writer needs only these bytes [spec mindspore 5.2]

UNITS = ("AIC", "AIV", "AICPU", "SDMA")  # by acc_type
_CORE = (*_INFO[:4], "context_id", "thread_id", "pc_start", "para_base", "core_id", "block_id", "status")
_FIELDS = {
    "AIC": _CORE,
    "AIV": _CORE,
    "AICPU": (*_INFO[:4], "context_id", "cpu_id", "thread_id", "status"),
    "SDMA": (*_INFO[:4], "context_id", "thread_id", "src_addr", "dst_addr", "channel_id", "status"),
}
_HEADER = struct.Struct("<6I")
_STATUS_WORDS = 4  # of AIC and AIV in version 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One unit of the old layout; only the AI Core has `kernel_code` and `block_idx`."""

    model_id: int = 0
    stream_id: int = 0
    task_id: int = 0
    task_type: int = 0
    pc_start: int = 0
    para_base: int = 0
    status: int = 0
    kernel_code: int = 0
    block_idx: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class OpDebug:
    """The old layout: an overflow in the AI Core, or in atomic additions on the way to memory."""

    dha: Block = Block()
    l2: Block = Block()
    ai_core: Block = Block()


@dataclass(frozen=True, slots=True, kw_only=True)
class NewOpDebug:
    """The new layout.

    Attributes
    ----------
    acc_type : str
        One of `UNITS`.
    data : mapping of str to int
        The unit's fields; missing ones are 0. `status` has four numbers for AIC and AIV in version 1.
    """

    acc_type: str
    data: Mapping[str, "int | tuple[int, ...]"]
    version: int = 0
    valid: int = 1
    rsv: int = 0


def encode(record: OpDebug | NewOpDebug) -> bytes:
    """Encode a record to 2048 bytes.

    Raises
    ------
    BadInputError
        For a unit or a field that the layout does not have.

    Examples
    --------
    >>> raw = encode(OpDebug(ai_core=Block(stream_id=2, task_id=3, status=0x20)))
    >>> len(raw), raw[256:288].hex(" ", 8)
    (2048, '0000000000000000 0200000000000000 0300000000000000 0000000000000000')
    """
    out = bytearray(SIZE)
    if isinstance(record, OpDebug):
        blocks = (record.dha, record.l2, record.ai_core)
        for block, (unit, (info, status)) in zip(blocks, _OLD.items(), strict=True):
            struct.pack_into("<6Q", out, info, *(getattr(block, name) for name in _INFO))
            last = _AI_CORE if unit == "AI Core" else ("status",)
            struct.pack_into(f"<{len(last)}Q", out, status, *(getattr(block, name) for name in last))
        return bytes(out)
    if record.acc_type not in _FIELDS:
        raise BadInputError(f"unknown unit {record.acc_type!r}", where="acc_type", allowed=UNITS, code="DS-OVF-001")
    names = _FIELDS[record.acc_type]
    if unknown := [name for name in record.data if name not in names]:
        raise BadInputError(f"{record.acc_type} has no {unknown[0]!r}", where="data", allowed=names, code="DS-OVF-001")
    words: list[int] = []
    for name in names:
        value = record.data.get(name, 0)
        if name == "status" and _four(record.acc_type, record.version):
            parts = value if isinstance(value, tuple) else (value, 0, 0, 0)
            if len(parts) != _STATUS_WORDS:
                raise BadInputError(f"status has {len(parts)} numbers, not 4", where="data", code="DS-OVF-001")
            words += parts
        elif isinstance(value, tuple):
            raise BadInputError(f"{name} must be one number", where="data", code="DS-OVF-001")
        else:
            words.append(value)
    kind = UNITS.index(record.acc_type)
    _HEADER.pack_into(out, 0, _MAGIC, record.version, record.valid, kind, record.rsv, 8 * len(words))
    struct.pack_into(f"<{len(words)}Q", out, _HEADER.size, *words)
    return bytes(out)


def decode(raw: bytes | memoryview, where: str = "Opdebug") -> dict[str, Any]:
    """Decode a record to nested mappings, in the documented order, with addresses as hexadecimal text.

    Parameters
    ----------
    raw : bytes
        The only output of an Opdebug file. It may have fewer than 2048 bytes if it has all fields.
    where : str
        File for error messages.

    Raises
    ------
    UnreadableError
        If the data is cut short or the unit is unknown, with the offset in the data.

    Examples
    --------
    >>> decode(encode(OpDebug(ai_core=Block(task_id=3, pc_start=0x1000, status=32))))["AI Core"]
    ... # doctest: +NORMALIZE_WHITESPACE
    {'model_id': 0, 'stream_id': 0, 'task_id': 3, 'task_type': 0, 'pc_start': '0x1000', 'para_base': '0x0',
     'kernel_code': '0x0', 'block_idx': 0, 'status': 32}
    """
    raw = bytes(raw[:SIZE])
    if len(raw) >= 4 and int.from_bytes(raw[:4], "little") == _MAGIC:
        return _decode_new(raw, where)
    if len(raw) < _NEEDED:
        raise UnreadableError(
            f"{len(raw)} bytes are too few for the old layout, which needs {_NEEDED} of {SIZE}",
            where=f"{where}: byte {len(raw)}",
            code="DS-OVF-002",
        )
    found: dict[str, Any] = {}
    for name, (info, status) in _OLD.items():
        words = dict(zip(_INFO, struct.unpack_from("<6Q", raw, info), strict=True))
        last = _AI_CORE if name == "AI Core" else ("status",)
        words |= zip(last, struct.unpack_from(f"<{len(last)}Q", raw, status), strict=True)
        found[name] = {key: _shown(key, value) for key, value in words.items()}
    return found


def _decode_new(raw: bytes, where: str) -> dict[str, Any]:
    if len(raw) < _HEADER.size:
        raise UnreadableError("the header is cut short", where=f"{where}: byte {len(raw)}", code="DS-OVF-002")
    magic, version, valid, kind, rsv, length = _HEADER.unpack_from(raw)
    if kind >= len(UNITS):
        raise UnreadableError(
            f"acc_type {kind} is unknown",
            where=f"{where}: byte 12",
            allowed=[f"{number} ({unit})" for number, unit in enumerate(UNITS)],
            code="DS-OVF-003",
        )
    unit = UNITS[kind]
    at = _HEADER.size
    data: dict[str, Any] = {}
    for name in _FIELDS[unit]:
        four = name == "status" and _four(unit, version)
        count = _STATUS_WORDS if four else 1
        if at + 8 * count > len(raw):
            raise UnreadableError(f"{name} is cut short", where=f"{where}: byte {at}", code="DS-OVF-002")
        words = struct.unpack_from(f"<{count}Q", raw, at)
        data[name] = list(words) if four else _shown(name, words[0])
        at += 8 * count
    acc = {"valid": valid, "acc_type": unit, "rsv": rsv, "data_len": length, "data": data}
    return {"magic": hex(magic), "version": version, "acc_list": acc}


def _four(unit: str, version: int) -> bool:
    return version == 1 and unit in ("AIC", "AIV")


def _shown(name: str, value: int) -> int | str:
    return hex(value) if name in _HEX else value


def to_json(facts: Mapping[str, Any], style: Literal["mindspore", "msaccucmp"]) -> str:
    """Format the result of `decode` as JSON, without a newline at the end.

    Parameters
    ----------
    facts : mapping
    style : str
        ``mindspore``: compact, with keys in alphabetical order, as O2 writes it beside npy files. [spec mindspore 5.2]
        ``msaccucmp``: in the documented order, indented by four.

    Examples
    --------
    >>> to_json({"magic": "0x5a5a5a5a", "acc_list": {"valid": 1}}, "mindspore")
    '{"acc_list":{"valid":1},"magic":"0x5a5a5a5a"}'
    """
    if style == "mindspore":
        return json.dumps(facts, separators=(",", ":"), sort_keys=True)
    if style == "msaccucmp":
        return json.dumps(facts, indent=4)
    raise BadInputError(f"unknown style {style!r}", allowed=("mindspore", "msaccucmp"), code="DS-OVF-001")


# -- bits of a status [spec mindspore 5.2]

_AI_CORE_BITS = {
    0x8: "negation overflow",
    0x10: "integer add, subtract, multiply or multiply-add overflow",
    0x20: "floating-point overflow",
    0x80: "float to unsigned of a negative value",
    0x100: "float32 or int32 to float16 overflow",
    0x400: "cube accumulation overflow",
}
_DHA = {0x9: "overflow", 0xA: "underflow", 0xB: "source is NaN", 0xC: "destination is NaN", 0xD: "both are NaN"}
_L2 = {1: "overflow", 2: "underflow", 3: "source is NaN", 4: "destination is NaN", 5: "both are NaN"}


def meanings(unit: str, status: int) -> tuple[str, ...]:
    """Return the meanings of a status word's bits; bits without a documented meaning are returned as their value.

    Parameters
    ----------
    unit : str
        ``AI Core``, ``AIC``, ``AIV``, ``DHA Atomic Add``, ``L2 Atomic Add``; the bits of other units are not
        documented.
    status : int

    Examples
    --------
    >>> meanings("AI Core", 0x120)
    ('floating-point overflow', 'float32 or int32 to float16 overflow')
    >>> meanings("DHA Atomic Add", 0x0B00), meanings("L2 Atomic Add", 1 << 16), meanings("SDMA", 4)
    (('source is NaN',), ('overflow',), ('0x4',))
    """
    if unit == "DHA Atomic Add":
        found, rest = _DHA.get(status >> 8 & 0xFF), status & ~0xFF00
    elif unit == "L2 Atomic Add":
        found, rest = _L2.get(status >> 16 & 7), status & ~0x70000
    elif unit in ("AI Core", "AIC", "AIV"):
        texts = tuple(text for bit, text in _AI_CORE_BITS.items() if status & bit)
        rest = status & ~sum(_AI_CORE_BITS)
        return (*texts, hex(rest)) if rest else texts
    else:
        found, rest = None, status
    if found is None:
        return (hex(status),) if status else ()
    return (found, hex(rest)) if rest else (found,)


def overflows(facts: Mapping[str, Any]) -> tuple[tuple[str, Mapping[str, Any], tuple[str, ...]], ...]:
    """Return the units that overflowed: name, fields and meanings of the status.

    Examples
    --------
    >>> facts = decode(encode(NewOpDebug(acc_type="AIV", data={"task_id": 7, "status": 0x20})))
    >>> [(unit, fields["task_id"], texts) for unit, fields, texts in overflows(facts)]
    [('AIV', 7, ('floating-point overflow',))]
    """
    if "acc_list" in facts:
        acc = facts["acc_list"]
        blocks = {acc["acc_type"]: acc["data"]}
    else:
        blocks = {name: facts[name] for name in _OLD if name in facts}
    found = []
    for unit, block in blocks.items():
        words = block["status"] if isinstance(block["status"], list) else [block["status"]]
        if any(words):
            texts = dict.fromkeys(text for word in words for text in meanings(unit, word))
            found.append((unit, block, tuple(texts)))
    return tuple(found)


_MAX_JSON = 1 << 20  # characters; real files have a few hundred


def parse_json(text: str, where: str = "Opdebug") -> dict[str, Any]:
    """Parse and check JSON of either style; the result is that of `decode`, in the same order.

    Raises
    ------
    UnreadableError
        If the text is not JSON, or a field is missing or has another type.

    Examples
    --------
    >>> facts = decode(encode(OpDebug(l2=Block(task_id=3, status=1 << 16))))
    >>> parse_json(to_json(facts, "mindspore")) == parse_json(to_json(facts, "msaccucmp")) == facts
    True
    """
    try:
        if len(text) > _MAX_JSON:
            raise ValueError(f"{len(text)} characters, at most {_MAX_JSON} are allowed")
        read = json.loads(text)
        if "acc_list" not in read:
            return {
                name: _parsed(read[name], (*_INFO, *(_AI_CORE if name == "AI Core" else ("status",)))) for name in _OLD
            }
        acc = read["acc_list"]
        data = _parsed(acc["data"], _FIELDS[acc["acc_type"]])
        head = {name: _parsed(acc, (name,))[name] for name in ("valid", "rsv", "data_len")}
        acc = {"valid": head["valid"], "acc_type": acc["acc_type"], "rsv": head["rsv"], "data_len": head["data_len"]}
        return {"magic": hex(int(read["magic"], 16)), **_parsed(read, ("version",)), "acc_list": acc | {"data": data}}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        what = f"is not the JSON of an overflow ({type(error).__name__}: {error})"
        raise UnreadableError(what, where=where, code="DS-OVF-004") from None


def _parsed(block: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    """Check the fields of a block: numbers, and addresses as text."""
    found: dict[str, Any] = {}
    for name in names:
        value = block[name]
        if name in _HEX:
            found[name] = hex(int(value, 16))
            continue
        for word in value if name == "status" and isinstance(value, list) else [value]:
            if type(word) is not int or not 0 <= word < 1 << 64:
                raise ValueError(f"{name} is {value!r}")
        found[name] = value
    return found
