"""The file of the operator Print: a sequence of messages ``mindspore.prntpb.Print``.

A message contains values: the bytes of a text (field 1), or a tensor (field 2) with dims (1, unpacked), type name (2)
and bytes (3). [spec observed 3]
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dumpsim.codecs.wire import bad, bytes_field, fields, varint
from dumpsim.core.dtype import dtype, from_numpy
from dumpsim.core.errors import DtypeError

__all__ = ["decode", "encode"]

Item = str | np.ndarray[Any, Any]


def encode(items: Iterable[Item]) -> bytes:
    r"""Encode the message of one run of Print.

    Examples
    --------
    >>> encode(["ab"])
    b'\n\x04\n\x02ab'
    """
    return b"".join(bytes_field(1, _value(item)) for item in items)


def _value(item: Item) -> bytes:
    if isinstance(item, str):
        return bytes_field(1, item.encode())
    dims = b"".join(varint(1 << 3) + varint(n) for n in item.shape)
    content = np.ascontiguousarray(item).tobytes()
    return bytes_field(2, dims + bytes_field(2, from_numpy(item.dtype).title.encode()) + bytes_field(3, content))


@dataclass(slots=True)
class _Tensor:
    dims: list[int]
    kind: str = ""
    content: bytes = b""


def decode(data: bytes, where: str = "print file") -> list[Item]:
    """Decode the values of all messages of a file.

    Raises
    ------
    UnreadableError
        For bytes that are not such messages, with the offset.

    Examples
    --------
    >>> decode(encode(["x:", np.float32([1, 2])]))
    ['x:', array([1., 2.], dtype=float32)]
    """
    view = memoryview(data)
    found: list[Item] = []
    for number, span, at in fields(view, (0, len(view)), where):
        if number != 1 or isinstance(span, int):
            raise bad(where, at, f"field {number} is not a value of Print")
        for kind, inner, start in fields(view, span, where):
            if isinstance(inner, int) or kind not in (1, 2):
                raise bad(where, start, f"field {kind} is neither a text nor a tensor")
            if kind == 1:
                found.append(bytes(view[slice(*inner)]).decode(errors="replace"))
            else:
                found.append(_tensor(view, inner, where, start))
    return found


def _tensor(view: memoryview, span: tuple[int, int], where: str, start: int) -> np.ndarray[Any, Any]:
    tensor = _Tensor([])
    for number, value, at in fields(view, span, where):
        if number == 1 and isinstance(value, int):
            tensor.dims.append(value)
        elif number == 2 and not isinstance(value, int):
            tensor.kind = bytes(view[slice(*value)]).decode(errors="replace")
        elif number == 3 and not isinstance(value, int):
            tensor.content = bytes(view[slice(*value)])
        else:
            raise bad(where, at, f"field {number} is not a field of a tensor of Print")
    try:
        kind = dtype(tensor.kind).numpy
    except DtypeError:
        raise bad(where, start, f"{tensor.kind!r} is not a number type") from None
    size = int(np.prod(tensor.dims, dtype=object)) * kind.itemsize
    if size != len(tensor.content):
        raise bad(where, start, f"a tensor of shape {tuple(tensor.dims)} has {len(tensor.content)} bytes, not {size}")
    return np.frombuffer(tensor.content, kind).reshape(tensor.dims)
