"""Read the attributes of operators from GE's text graphs (``ge_proto_00000000_graph_1_PreRunBegin.txt``).

``DUMP_GE_GRAPH`` makes GE write them; the names of operators are the same as in the dump. [spec ge 1.5]
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dumpsim.archive.naming import escape
from dumpsim.core.dtype import DTYPES
from dumpsim.core.errors import UnreadableError
from dumpsim.core.regular import read_text

__all__ = ["GeOp", "ge_graphs", "parse"]

_FILE = re.compile(r"ge_proto_(\d{1,12})_graph_(\d{1,12})_(\w+)\.txt")
_DEEPEST = 64
_STAGES = ("PreRunBegin", "Build")  # before fusion, since fused operators lack attributes
_UP = 6  # number of directories above a part of a dump that are searched for graphs
_TYPES = {
    "DT_FLOAT": "float32", "DT_FLOAT16": "float16", "DT_BF16": "bfloat16", "DT_DOUBLE": "float64", "DT_BOOL": "bool",
    "DT_INT8": "int8", "DT_INT16": "int16", "DT_INT32": "int32", "DT_INT64": "int64", "DT_UINT8": "uint8",
    "DT_UINT16": "uint16", "DT_UINT32": "uint32", "DT_UINT64": "uint64", "DT_COMPLEX64": "complex64",
    "DT_COMPLEX128": "complex128",
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class GeOp:
    """An operator of a graph.

    Attributes
    ----------
    name, type : str
    inputs : tuple of str
        ``name:slot`` of the producer of each tensor.
    attrs : mapping
    """

    name: str
    type: str
    inputs: tuple[str, ...]
    attrs: Mapping[str, Any]


def ge_graphs(root: Path) -> tuple[Path, ...]:
    """Return the text graphs of a dump: those next to it, in ``graphs``, or in a directory above."""
    start = root if root.is_dir() else root.parent
    for directory in (start, *start.resolve().parents[:_UP]):
        for place in (directory, directory / "graphs"):
            found = []
            if place.is_dir():
                found = [path for path in place.glob("ge_proto_*.txt") if _FILE.fullmatch(path.name) and path.is_file()]
            if found:
                wanted = [path for path in found if path.stem.rpartition("_")[2] in _STAGES]
                return tuple(sorted(wanted or found))
    return ()


def parse(text: str, where: str = "graph") -> tuple[GeOp, ...]:
    """Read a graph in protobuf's text form.

    Raises
    ------
    UnreadableError

    Examples
    --------
    >>> op, = parse('graph { op {\\n name: "a/b" type: "Relu" input: "x:0" attr { key: "n" value { i: 3 } } } }')
    >>> op.type, op.inputs, dict(op.attrs)
    ('Relu', ('x:0',), {'n': 3})
    """
    graph = _message(_tokens(text), where, 0)
    found = []
    for inner in (*graph.get("graph", ()), graph):
        for op in inner.get("op", ()) if isinstance(inner, dict) else ():
            if isinstance(op, dict):
                found.append(_op(op))
    return tuple(found)


def index(paths: tuple[Path, ...]) -> dict[str, GeOp]:
    """Return the operators of several graphs by their name in files; later stages and graphs take precedence."""
    found: dict[str, GeOp] = {}
    for path in paths:
        for op in parse(read_text(path, _MAX_GRAPH), str(path)):
            found[escape(op.name)] = op
    return found


_MAX_GRAPH = 1 << 29  # bytes
_TOKEN = re.compile(r'\s*(?:([A-Za-z_]\w*)\s*(:)?|([{}<>])|"((?:[^"\\]|\\.)*)"|([-+.\w]+)|(\S))')


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    for found in _TOKEN.finditer(text):
        word, colon, brace, quoted, number, other = found.groups()
        if word is not None:
            yield ("key" if colon else "word"), word
        elif brace is not None:
            yield brace, brace
        elif quoted is not None:
            yield "text", quoted
        elif number is not None:
            yield "number", number
        elif other not in (",", ";"):
            yield "other", other


def _message(tokens: Iterator[tuple[str, str]], where: str, depth: int) -> dict[str, list[Any]]:
    """Return the fields of a message, each with all of its values."""
    if depth > _DEEPEST:
        raise UnreadableError("messages are nested too deeply", where=where, code="DS-RPL-001")
    fields: dict[str, list[Any]] = {}
    key = ""
    for kind, token in tokens:
        if kind in ("}", ">"):
            return fields
        if kind == "key" or (kind == "word" and not key):
            key = token
        elif kind in ("{", "<"):
            fields.setdefault(key, []).append(_message(tokens, where, depth + 1))
            key = ""
        elif not key:
            raise UnreadableError(f"{token[:40]!r} has no field", where=where, code="DS-RPL-001")
        else:
            fields.setdefault(key, []).append(_scalar(kind, token))
            key = ""
    if depth:
        raise UnreadableError("the file ends inside a message", where=where, code="DS-RPL-001")
    return fields


def _scalar(kind: str, token: str) -> Any:
    if kind in ("text", "word"):
        if kind == "word" and token in ("true", "false"):
            return token == "true"
        return token.replace('\\"', '"').replace("\\\\", "\\")
    try:
        return int(token)
    except ValueError:
        pass
    try:
        return float(token)
    except ValueError:
        return token


def _first(message: Mapping[str, list[Any]], name: str, default: Any) -> Any:
    return message[name][0] if message.get(name) else default


def _op(op: dict[str, list[Any]]) -> GeOp:
    attrs: dict[str, Any] = {}
    for attr in op.get("attr", ()):
        if isinstance(attr, dict):
            value = _first(attr, "value", {})
            attrs[str(_first(attr, "key", ""))] = _value(value) if isinstance(value, dict) else value
    inputs = tuple(str(one) for one in op.get("input", ()) if not str(one).endswith(":-1"))  # control edges
    return GeOp(name=str(_first(op, "name", "")), type=str(_first(op, "type", "")), inputs=inputs, attrs=attrs)


def _value(value: dict[str, list[Any]]) -> Any:
    """Return an attribute of GE's message: ``i``, ``f``, ``b``, ``s``, ``dt`` or a ``list`` of them."""
    for name, given in value.items():
        if name == "list" and isinstance(given[0], dict):
            return tuple(_plain(kind, one) for kind, ones in given[0].items() for one in ones)
        return _plain(name, given[0])
    return ()


def _plain(kind: str, value: Any) -> Any:
    if kind == "dt" and value in _TYPES:
        return DTYPES[_TYPES[value]]
    if kind == "f" and isinstance(value, int):
        return float(value)
    return _value(value) if isinstance(value, dict) else value
