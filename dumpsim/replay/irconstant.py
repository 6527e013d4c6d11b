"""Parse constants and attributes of IR text and of its protobuf form."""

import re
from typing import Any

import numpy as np

from dumpsim.codecs.irtype import split_list
from dumpsim.core.dtype import DTYPES, DType, dtype
from dumpsim.core.errors import DtypeError

__all__ = ["Unparsable", "parse"]

_SHORT = {row.short: row for row in DTYPES.values()}
_WRAPPED = re.compile(r"(Bool|[A-Z]+\d+\w*)\((.*)\)", re.DOTALL)
_TENSOR = re.compile(r"Tensor\(shape=\[([\d, ]*)\], dtype=(\w+), value=(.*)\)", re.DOTALL)
_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?|[-+]?(inf|nan)", re.IGNORECASE)
_LONGEST = 1 << 16


class Unparsable(Exception):
    """A value cannot be reconstructed from the text of the graph."""


def parse(text: str) -> Any:
    """Return the value of a constant or an attribute.

    Raises
    ------
    Unparsable
        For a tensor that is truncated in the text, and for text that is not a value.

    Examples
    --------
    >>> parse("I64(3)"), parse("(5, 5)"), parse("(I64(0), I64(1))"), parse('"valid"'), parse("Bool(1)")
    (3, (5, 5), (0, 1), 'valid', True)
    >>> parse("F32").name, parse("None"), parse("True"), parse("same")
    ('float32', None, True, 'same')
    >>> parse("Tensor(shape=[1, 3], dtype=Int32, value=\\n[[7 8 9]])").tolist()
    [[7, 8, 9]]
    """
    if len(text) > _LONGEST:
        raise Unparsable("a long value")
    text = text.strip()
    if text in ("None", "True", "False"):
        return {"None": None, "True": True, "False": False}[text]
    if text in _SHORT:
        return _SHORT[text]
    if len(text) > 1 and text[0] == text[-1] == '"':
        return text[1:-1]
    if text[:1] in "([" and text[-1:] in ")]":
        return tuple(parse(part) for part in split_list(text[1:-1].rstrip(", ")))
    if found := _TENSOR.fullmatch(text):
        return _tensor(*found.groups())
    if (found := _WRAPPED.fullmatch(text)) and found[1] in _SHORT:
        return _number(found[2], _SHORT[found[1]])
    if _NUMBER.fullmatch(text):
        return _number(text, DTYPES["int64" if re.fullmatch(r"[-+]?\d+", text) else "float32"])
    return text


def _number(text: str, kind: DType) -> Any:
    try:
        if kind.kind == "bool":
            return text.strip() not in ("0", "false", "False")
        if kind.kind in ("int", "uint"):
            return int(text)
        value = float(text)
    except ValueError:
        raise Unparsable(f"{text!r} is not of type {kind.name}") from None
    return value if kind.name == "float64" else float(np.float32(value))


def _tensor(shape: str, name: str, text: str) -> "np.ndarray[Any, Any]":
    dims = tuple(int(dim) for dim in shape.split(",") if dim.strip())
    try:
        kind = dtype(name)
    except DtypeError:
        raise Unparsable(f"a tensor of {name}") from None
    cells = text.replace("[", " ").replace("]", " ").replace(",", " ").split()
    count = int(np.prod(dims, dtype=np.int64))
    if count != len(cells) or kind.kind == "complex":
        raise Unparsable("a tensor whose elements the graph does not show")
    if kind.kind == "bool":
        return np.array([cell in ("True", "1") for cell in cells]).reshape(dims)
    try:
        return np.array([float(c) if kind.kind == "float" else int(c) for c in cells], kind.numpy).reshape(dims)
    except ValueError:
        raise Unparsable("a tensor whose elements the graph does not show") from None
