"""The text of a Tensor, as formatted by MindSpore's C++ side. [observed 2.10]"""

from collections.abc import Callable, Iterator
from types import MappingProxyType
from typing import Any

import numpy as np

__all__ = ["graph_text", "tensor_text"]

_EDGE = 3  # items on each side of an ellipsis
_LONGEST_ROW = 6  # longer rows of an array with several axes are abbreviated
_LONGEST_VECTOR = 1000  # longer vectors are abbreviated
_PER_LINE = MappingProxyType({"f": 12, "b": 12})  # items per line of a vector
_PER_LINE_OTHER = 24


def tensor_text(array: "np.ndarray[Any, Any]", title: str) -> str:
    """Format a tensor: ``Tensor(shape=[2], dtype=Int32, value= [1, 2])``.

    Examples
    --------
    >>> tensor_text(np.array([1.5, -2.0], np.float32), "Float32")
    'Tensor(shape=[2], dtype=Float32, value= [ 1.50000000e+00, -2.00000000e+00])'
    """
    head = f"Tensor(shape={list(array.shape)}, dtype={title}, value="
    if array.size == 0:
        return head + ("\n)" if array.ndim > 1 else " )")
    if array.ndim == 0:
        return f"{head} {_scalar(array[()])})"
    body = _Printer(array).text()
    return f"{head}{chr(10) if array.ndim > 1 else ' '}{body})"


def graph_text(array: "np.ndarray[Any, Any]", title: str) -> str:
    """Format a tensor for the operator Print: without commas, only the number for shape (). [observed 2.10]

    Examples
    --------
    >>> graph_text(np.array([True, False]), "Bool")
    'Tensor(shape=[2], dtype=Bool, value=[ True False])'
    """
    if array.ndim == 0:
        return str(int(array[()])) if array.dtype.kind == "b" else _scalar(array[()])
    head, body = tensor_text(array, title).split("value=", 1)
    return f"{head}value={body.removeprefix(' ').replace(',', '')}"


def _scalar(value: Any) -> str:
    """Format a 0-d tensor: six significant digits, like a C++ stream."""
    if isinstance(value, np.bool_):
        return str(bool(value))
    if np.iscomplexobj(value):
        return f"{value.real:g}{value.imag:+g}j"
    if np.issubdtype(np.asarray(value).dtype, np.integer):
        return str(int(value))
    return f"{float(value):g}"


def _item(kind: str, itemsize: int) -> tuple[Callable[[Any], str], int]:
    """Return the formatter of an array's items, and their width (0: that of the widest item)."""
    if kind == "f":
        digits, width = (4, 11) if itemsize == 2 else (8, 15)
        return (lambda v: f"{float(v):.{digits}e}" if np.isfinite(v) else f"{float(v)}"), width
    if kind == "b":
        return (lambda v: str(bool(v))), 5
    if kind in "iu":
        return (lambda v: str(int(v))), 0
    return _scalar, 0


class _Printer:
    """The formatting of one array."""

    def __init__(self, array: "np.ndarray[Any, Any]") -> None:
        self.array = array
        kind = array.dtype.kind
        self.item, self.width = _item(kind, array.dtype.itemsize)
        self.per_line = _PER_LINE.get(kind, _PER_LINE_OTHER)
        if not self.width and kind != "c":
            self.width = max(len(self.item(v)) for v in self._shown(array))

    def text(self) -> str:
        """Return the brackets and their contents."""
        return self._block(self.array, 0)

    def _cut(self, length: int) -> bool:
        return length > (_LONGEST_VECTOR if self.array.ndim == 1 else _LONGEST_ROW)

    def _shown(self, array: "np.ndarray[Any, Any]") -> Iterator[Any]:
        rows = [*array[:_EDGE], *array[-_EDGE:]] if self._cut(len(array)) else list(array)
        if array.ndim == 1:
            yield from rows
        else:
            for row in rows:
                yield from self._shown(row)

    def _pad(self, value: Any) -> str:
        return self.item(value).rjust(self.width)

    def _block(self, array: "np.ndarray[Any, Any]", depth: int) -> str:
        if array.ndim == 1:
            return f"[{self._row(array)}]"
        gap = "\n" + " " * (depth + 1)
        if not self._cut(len(array)):
            return f"[{(',' + gap).join(self._block(a, depth + 1) for a in array)}]"
        first = [self._block(a, depth + 1) for a in array[:_EDGE]]
        last = [self._block(a, depth + 1) for a in array[-_EDGE:]]
        return f"[{(',' + gap).join([*first, '...'])}{gap}{(',' + gap).join(last)}]"

    def _row(self, row: "np.ndarray[Any, Any]") -> str:
        if self._cut(len(row)):
            first, last = row[:_EDGE], row[-_EDGE:]
            return f"{', '.join(map(self._pad, first))} ... {', '.join(map(self._pad, last))}"
        if self.array.ndim > 1 or len(row) <= _EDGE:
            return ", ".join(map(self._pad, row))
        pieces = []
        for index, value in enumerate(row, 1):
            pieces.append(self._pad(value) + (", " if index < len(row) else ""))
            if index % self.per_line == 0:
                pieces.append("\n ")
        return "".join(pieces)
