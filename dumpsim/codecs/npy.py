"""A writer of npy files as MindSpore's, and a safe reader of any npy file.

The vendor's header differs from numpy's in spaces and commas
(``{'descr': '<f4', 'fortran_order': False, 'shape': (2,3,), }``) and is padded so that the data starts at a multiple
of 64. [spec mindspore 3.5, spec observed 1.3]
"""

import ast
import os
import re
import struct
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from dumpsim.core.dtype import DTYPES, DType, dtype
from dumpsim.core.errors import DtypeError, UnreadableError
from dumpsim.core.regular import RegularFile, open_regular

__all__ = ["MAGIC", "encode", "header", "info", "read"]

MAGIC = b"\x93NUMPY"
Header = tuple["np.dtype[Any]", tuple[int, ...], bool]

_ALIGN = 64
_MAX_HEADER = 10_000  # characters, as in numpy: parsing a header takes a thousand times its size
_MAX_BYTES = (1 << 63) - 1  # of a tensor; numpy counts the zeros of a shape as ones
_FIRST_READ = 512  # bytes, enough for usual headers
_DESCR = re.compile(r"[<>|=]?[A-Za-z?]+\d{0,3}", re.ASCII)  # without commas: numpy would evaluate the parts
_BFLOAT16_DESCR = "<E2"  # [spec observed 0.4]


@lru_cache(maxsize=256)  # the tensors of a dump have few types and shapes
def header(descr: str, shape: tuple[int, ...]) -> bytes:
    r"""Encode the header.

    Parameters
    ----------
    descr : str
        Data type as in `DType.descr`, ``<f4``.
    shape : tuple of int

    Examples
    --------
    >>> len(header("<f4", (2, 3)))
    128
    >>> header("<f4", (2, 3))[10:68]
    b"{'descr': '<f4', 'fortran_order': False, 'shape': (2,3,), "
    """
    dims = "".join(f"{dim}," for dim in shape)
    text = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': ({dims}), }}"
    for version, size in ((b"\x01\x00", "<H"), (b"\x02\x00", "<I")):
        prefix = len(MAGIC) + 2 + struct.calcsize(size)
        # the dict is followed by at least one space and a newline
        padded = -(-(prefix + len(text) + 2) // _ALIGN) * _ALIGN - prefix
        if size == "<I" or padded <= 0xFFFF:
            body = text.ljust(padded - 1) + "\n"
            return MAGIC + version + struct.pack(size, padded) + body.encode("latin-1")
    raise AssertionError("unreachable")


def encode(array: "np.ndarray[Any, Any]", kind: DType | None = None) -> tuple[bytes, memoryview]:
    """Return header and data of an array; the data is a view if the array is contiguous.

    Raises
    ------
    DtypeError
        For a data type without a descr.
    """
    row = kind if kind is not None else dtype(array.dtype.name)
    if row.descr is None:
        raise DtypeError(f"{row.name} has no npy form", code="DS-NPY-001")
    flat = np.ascontiguousarray(array).ravel()
    return header(row.descr, array.shape), flat.view(np.uint8).data


def info(path: "str | os.PathLike[str]") -> tuple["np.dtype[Any]", tuple[int, ...], bool, int]:
    """Read type, shape, Fortran order and data offset from the header of an npy file.

    Raises
    ------
    UnreadableError
        For anything but a valid npy header, or if the data is cut short; with the file and the offset.
    """
    with open_regular(path) as file:
        return _info(file)


def _info(file: RegularFile) -> tuple["np.dtype[Any]", tuple[int, ...], bool, int]:
    """As `info`."""
    path, size = file.path, file.size
    head = file.read(_FIRST_READ)
    start = head[:8]
    if start[:6] != MAGIC:
        raise _bad(path, 0, "does not start with the npy magic")
    if start[6:] not in (b"\x01\x00", b"\x02\x00", b"\x03\x00"):
        raise _bad(path, 6, f"npy version {start[6:].hex()} is not 1.0, 2.0 or 3.0")
    width = 2 if start[6] == 1 else 4
    raw = head[8 : 8 + width]
    if len(raw) < width:
        raise _bad(path, 8, "header length is cut short")
    length = int.from_bytes(raw, "little")
    offset = 8 + width + length
    if offset > size:
        raise _bad(path, 8, f"header length {length} does not fit a file of {size} bytes")
    if length > _MAX_HEADER:
        raise _bad(path, 8, f"a header of {length} bytes is longer than numpy's limit of {_MAX_HEADER}")
    if offset > len(head):
        head += file.read(offset - len(head))
    text = head[8 + width : offset].decode("latin-1")
    kind, shape, fortran = _parse(path, text)
    if prod(shape) * kind.itemsize > size - offset:
        raise _bad(
            path,
            offset,
            f"shape {shape} of {kind} needs {prod(shape) * kind.itemsize} bytes, but {size - offset} follow the header",
        )
    return kind, shape, fortran, offset


def read(path: "str | os.PathLike[str]", *, mmap: bool = True) -> "np.ndarray[Any, Any]":
    """Read an npy file, memory-mapped and read-only by default; bfloat16 (``<E2``) is supported.

    Parameters
    ----------
    path : path
    mmap : bool
        Whether to map the file instead of reading it.

    Returns
    -------
    ndarray
        Never an object array: pickled content is an error.

    Raises
    ------
    UnreadableError
    """
    with open_regular(path) as file:
        kind, shape, fortran, offset = _info(file)
        count = prod(shape)
        if count == 0:
            return np.empty(shape, kind)
        array: np.ndarray[Any, Any]
        if mmap:
            array = np.memmap(file.stream(), dtype=kind, mode="r", offset=offset, shape=(count,))
        else:
            array = np.empty(count, kind)
            if (there := file.read_into(array.view(np.uint8).data, offset)) < array.nbytes:
                raise _bad(path, offset + there, "the file was cut while it was read")
    return array.reshape(shape, order="F" if fortran else "C")


def _parse(path: Any, text: str) -> Header:
    """Parse the three fields of the header's dict."""
    found = _fields(text)
    if isinstance(found, str):
        raise _bad(path, 10, found)
    return found


@lru_cache(maxsize=256)  # the tensors of a dump have few types and shapes
def _fields(text: str) -> Header | str:
    """Parse the three fields of the header's dict; return a text if they are wrong."""
    try:
        fields = ast.literal_eval(text.strip())
        descr, fortran, shape = fields["descr"], fields["fortran_order"], fields["shape"]
    except (ValueError, SyntaxError, KeyError, TypeError, MemoryError, RecursionError):
        return "header is not a dict with descr, fortran_order and shape"
    if not isinstance(descr, str):
        return f"descr {descr!r} is not a plain data type"
    if not isinstance(fortran, bool) or not isinstance(shape, tuple):
        return "fortran_order is not a bool or shape is not a tuple"
    if len(shape) > 32 or not all(type(dim) is int and 0 <= dim < 1 << 48 for dim in shape):
        return f"shape {shape!r} is not possible"
    if descr in (_BFLOAT16_DESCR, "|E2"):
        kind = dtype("bfloat16").numpy
    else:
        try:
            kind = np.dtype(descr if _DESCR.fullmatch(descr) else "")
        except (TypeError, ValueError):
            return f"descr {descr!r} is not a number type"
        if kind.kind not in "biufc" or kind.newbyteorder("=").name not in DTYPES:
            return f"descr {descr!r} is not a number type (objects and strings are refused)"
    if prod(dim or 1 for dim in shape) * kind.itemsize > _MAX_BYTES:
        return f"shape {shape!r} of {kind} is not possible"
    return kind, shape, fortran


def _bad(path: Any, offset: int, what: str) -> UnreadableError:
    return UnreadableError(what, where=f"{os.fspath(path)}: byte {offset}", code="DS-NPY-002")
