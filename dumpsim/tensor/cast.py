"""Bit-exact conversion of low-precision numbers to and from numpy.

`to_numpy` reads the bytes of a dump, `from_numpy` makes them, and `widen` converts a tensor as the dump does before it
writes an npy file. The conversions are in `dumpsim._ext.cast`; names, shapes and values are checked here.
"""

import math
from collections.abc import Sequence
from typing import Any, Literal

import ml_dtypes
import numpy as np
import numpy.typing as npt

from dumpsim._ext import cast as _kernel
from dumpsim.core.dtype import DTYPES
from dumpsim.core.errors import BadInputError, DtypeError, nearest
from dumpsim.tensor.simd import level_number

__all__ = ["FLOATS", "PACKED", "Rounding", "from_numpy", "to_numpy", "widen"]

Array = npt.NDArray[Any]
Rounding = Literal["nearest", "nearest_even", "nearest_away"]

FLOATS = frozenset(_kernel.KINDS)
_AWAY = ("hifloat8", "float8_e8m0fnu")  # rounded with ties away from zero, as in en_dtypes and ml_dtypes
PACKED = {"int4": 4, "uint1": 1}
_NATIVE = {row.name: row.numpy for row in DTYPES.values() if row.name not in FLOATS and row.name not in PACKED}
_ALIASES = {"bf16": "bfloat16", "float8_e8m0": "float8_e8m0fnu"}  # GE's names [spec ge 3.3]
_LIMIT = 1 << 48  # elements; larger shapes are forged
_FEW = 4096  # with fewer elements, calling the kernel takes longer than its work


def _name(dtype_name: str) -> str:
    """Return our name of a type, whatever the case; an unknown name is an error."""
    name = _ALIASES.get(dtype_name.lower(), dtype_name.lower())
    if name not in FLOATS and name not in PACKED and name not in _NATIVE:
        known = [*_NATIVE, *sorted(FLOATS), *PACKED]
        raise DtypeError(
            f"unknown number type {dtype_name!r}",
            where="dtype_name",
            allowed=known,
            nearest=nearest(name, known),
            code="DS-TYP-001",
        )
    return name


def _type_of_codes(name: str) -> np.dtype[Any]:
    """Return the numpy type of a float's codes: uint8 for HiFloat8, which numpy does not have."""
    if name == "float16":
        return np.dtype(np.float16)
    return np.dtype(np.uint8) if name == "hifloat8" else np.dtype(getattr(ml_dtypes, name))


def _bytes(raw: Any) -> Array:
    """Return the contiguous bytes of an object with a buffer, at an address that is a multiple of 16."""
    if isinstance(raw, np.ndarray):
        flat = np.ascontiguousarray(raw, raw.dtype.newbyteorder("<")).reshape(-1).view(np.uint8)
    else:
        flat = np.frombuffer(raw, np.uint8)
    return flat if flat.ctypes.data % 16 == 0 else flat.copy()


def _decode(flat: Array, name: str, count: int) -> Array:
    """Convert codes to float32."""
    out = np.empty(count, np.float32)
    _kernel.to_float(out, flat, count, _kernel.KINDS[name], level_number())
    return out


def _unpack(flat: Array, name: str, count: int) -> Array:
    """Unpack bytes to one element per byte."""
    if name == "int4":
        out: Array = np.empty(count, np.int8)
        _kernel.unpack4(out, flat, count, level_number())
    else:
        out = np.empty(count, np.uint8)
        _kernel.unpack1(out, flat, count, level_number())
    return out


def to_numpy(raw: Any, dtype_name: str, shape: Sequence[int], *, bug_compat: bool = False) -> Array:
    """Read the bytes of a tensor.

    Parameters
    ----------
    raw : bytes-like or ndarray
        The bytes, little-endian; for an array, its elements in C order.
    dtype_name : str
        ``float16``, ``bfloat16``, ``float8_e5m2``, ``float8_e4m3fn``, ``float8_e4m3``, ``float8_e3m4``,
        ``float8_e4m3fnuz``, ``float8_e5m2fnuz``, ``float8_e4m3b11fnuz``, ``float8_e8m0``, ``hifloat8``, ``int4``,
        ``uint1``, or a type of numpy. Case does not matter.
    shape : sequence of int
        Shape in elements. A byte has two elements of int4 or eight of uint1; the last byte may be partly used.
    bug_compat : bool
        Whether to read uint1 as MindSpore does: of a last byte with r elements it takes 8 - r; the missing ones are 0
        here. [spec mindspore 3.5]

    Returns
    -------
    ndarray
        float32 for floats of 8 bits and bfloat16, int8 for int4, uint8 for uint1; otherwise the type itself, also for
        float16. Decoding is exact. A NaN of bfloat16 keeps its payload.

    Raises
    ------
    DtypeError
        For an unknown name.
    BadInputError
        If the number of bytes does not fit the shape, before anything is allocated.

    Examples
    --------
    >>> to_numpy(b"\\x80\\x3f\\x00\\xc0", "bfloat16", (2,)).tolist()
    [1.0, -2.0]
    >>> to_numpy(b"\\xf1\\x08", "int4", (2, 2)).tolist()
    [[1, -1], [-8, 0]]
    >>> to_numpy(b"\\xa0", "uint1", (3,)).tolist()
    [1, 0, 1]
    """
    name = _name(dtype_name)
    dims = tuple(int(n) for n in shape)
    count = math.prod(dims)
    if any(n < 0 for n in dims) or math.prod(n for n in dims if n) > _LIMIT:
        raise BadInputError(f"{dims} is not a shape that memory can hold", where="shape", code="DS-CST-001")
    bits = PACKED.get(name) or 8 * (_type_of_codes(name) if name in FLOATS else _NATIVE[name]).itemsize
    needed = (count * bits + 7) // 8
    flat = _bytes(raw)
    if flat.size != needed:
        raise BadInputError(
            f"{dtype_name} of shape {dims} has {needed} bytes, got {flat.size}",
            where="raw",
            nearest=f"{flat.size * 8 // bits} elements",
            code="DS-CST-001",
        )
    if name in PACKED:
        out = _unpack(flat, name, count)
        if name == "uint1" and bug_compat:
            out[count // 8 * 8 + 8 - count % 8 :] = 0
        return out.reshape(dims)
    if name == "float16":
        return flat.view("<f2").reshape(dims)
    if name in FLOATS:
        return _decode(flat, name, count).reshape(dims)
    return flat.view(_NATIVE[name].newbyteorder("<")).reshape(dims)


def _check_rounding(name: str, rounding: str) -> None:
    """Check that a type has the given rounding; each type has only one."""
    own = "nearest_away" if name in _AWAY else "nearest_even"
    if rounding not in ("nearest", own):
        raise BadInputError(
            f"{name} is not rounded {rounding!r}",
            where="rounding",
            allowed=("nearest", own),
            nearest=own,
            code="DS-CST-002",
        )


def _float32(values: Array, name: str) -> Array:
    """Convert floats to contiguous float32, such that rounding to the narrow type gives the same as directly."""
    if values.dtype.name in FLOATS:  # exact in float32
        return np.ascontiguousarray(values, np.float32)
    if values.dtype.kind != "f" or values.dtype.itemsize > 8:
        raise DtypeError(
            f"{values.dtype} cannot become {name}",
            where="array",
            allowed=("float16", "float32", "float64", "bfloat16"),
            nearest="float32",
            code="DS-TYP-002",
        )
    if values.dtype.itemsize < 8:
        return np.ascontiguousarray(values, np.float32)
    wide = np.ascontiguousarray(values, np.float64)
    out = np.empty(wide.shape, np.float32)
    _kernel.to_odd(out.reshape(-1), wide.reshape(-1), wide.size, level_number())
    return out


def _pack(values: Array, name: str) -> Array:
    """Check the range of elements, and pack them into bytes."""
    low, high = (-8, 7) if name == "int4" else (0, 1)
    if values.dtype.name == "int4":
        values = values.astype(np.int8)
    if values.dtype.kind not in "biu":
        raise DtypeError(
            f"{values.dtype} cannot become {name}",
            where="array",
            allowed=("int8", "uint8", "bool"),
            nearest="int8" if name == "int4" else "uint8",
            code="DS-TYP-002",
        )
    for found in (values.min(), values.max()) if values.size else ():
        if not low <= int(found) <= high:
            raise BadInputError(
                f"{found} is not {'an' if name[0] == 'i' else 'a'} {name}",
                where="array",
                allowed=(f"{low}..{high}",),
                nearest=str(low if found < low else high),
                code="DS-CST-003",
            )
    flat = np.ascontiguousarray(values, np.int8).reshape(-1)
    out = np.empty((flat.size * PACKED[name] + 7) // 8, np.uint8)
    (_kernel.pack4 if name == "int4" else _kernel.pack1)(out, flat, flat.size, level_number())
    return out


def from_numpy(array: npt.ArrayLike, dtype_name: str, rounding: Rounding = "nearest") -> Array:
    """Make the codes of a tensor; `tobytes` of the result are the bytes of a dump.

    Parameters
    ----------
    array : array_like
        float16, float32, float64 or bfloat16 for floats; integers for int4 (-8 to 7) and uint1 (0, 1).
    dtype_name : str
        As in `to_numpy`.
    rounding : {"nearest", "nearest_even", "nearest_away"}
        ``nearest`` is the rounding of the type: to nearest with ties to even; for hifloat8 and float8_e8m0 with ties
        away from zero. The other two can be given to make sure of one; a type does not have both. float64 is rounded
        once, not to float32 first. float8_e8m0 rounds everything between 2**-127 and 2**-126 up, as ml_dtypes does.

    Returns
    -------
    ndarray
        An array of the shape of `array`, with a type of ml_dtypes, float16, or uint8 codes for hifloat8; for int4 and
        uint1 packed uint8 in one dimension. Numbers that are too large become infinity, or NaN if the type has no
        infinity (e4m3fn, e8m0 and fnuz types). NaN becomes a quiet NaN without payload; in float16 it keeps the upper
        ten bits of the payload.

    Raises
    ------
    DtypeError
        For an unknown name, or an array whose type cannot be converted.
    BadInputError
        For a rounding that the type does not have, or integers out of range.

    Examples
    --------
    >>> from_numpy(np.float32([1.0, 1.0625, 448, 480]), "float8_e4m3fn").view(np.uint8).tolist()
    [56, 56, 126, 127]
    >>> from_numpy(np.float32([1.0, 1.0625]), "hifloat8").tolist()
    [8, 9]
    >>> from_numpy([1, -1, -8], "int4").tolist()
    [241, 8]
    """
    name = _name(dtype_name)
    values = np.asarray(array)
    if name in PACKED:
        return _pack(values, name)
    if name not in FLOATS:
        if values.dtype.newbyteorder("=") != _NATIVE[name]:
            raise DtypeError(
                f"{values.dtype} cannot become {name}, which is not a low-precision type",
                where="array",
                allowed=[*sorted(FLOATS), *PACKED],
                nearest=values.dtype.name,
                code="DS-TYP-002",
            )
        return np.ascontiguousarray(values, values.dtype.newbyteorder("<")).reshape(values.shape)
    _check_rounding(name, rounding)
    if values.dtype == _type_of_codes(name) and name != "hifloat8":
        return values.copy()
    single = _float32(values, name)
    out = np.empty(values.shape, _type_of_codes(name))
    codes = out.reshape(-1).view(f"u{out.itemsize}")
    _kernel.from_float(codes, single.reshape(-1), single.size, _kernel.KINDS[name], level_number())
    return out


def widen(array: npt.ArrayLike, name: str) -> Array:
    """Convert a tensor to a type of npy files and numpy, as the dump does.

    Parameters
    ----------
    array : array_like
        The tensor on the device: bfloat16 or 8-bit codes (as ml_dtypes or unsigned integers), packed int4 or uint1 as
        bytes, or ml_dtypes' unpacked int4.
    name : str
        The tensor's type, as in `to_numpy`.

    Returns
    -------
    ndarray
        bfloat16 and 8-bit floats: float32. int4: int8 with twice the last dimension, low nibble first. uint1: uint8
        with eight times the last dimension, most significant bit first. Other types: unchanged. [spec mindspore 3.5]

    Raises
    ------
    DtypeError
        For an unknown name, or an array whose elements have another size.

    Examples
    --------
    >>> widen(np.array([[0x21, 0xf8]], np.uint8), "int4").tolist()
    [[1, 2, -8, -1]]
    >>> widen(np.array([1.5], ml_dtypes.bfloat16), "bfloat16")
    array([1.5], dtype=float32)
    """
    known = _name(name)
    values = np.asarray(array)
    if known in PACKED:
        if values.dtype.name == known:  # already one element per byte
            return values.astype(np.int8 if known == "int4" else np.uint8)
        _check_size(values, name, 1)
        per_byte = 8 // PACKED[known]
        shape = (*values.shape[:-1], values.shape[-1] * per_byte) if values.ndim else (per_byte,)
        return _unpack(_bytes(values), known, values.size * per_byte).reshape(shape)
    if known in FLOATS and known != "float16":
        codes = _type_of_codes(known)
        _check_size(values, name, codes.itemsize)
        if values.dtype.kind not in "iu" and values.dtype.name != known:
            raise DtypeError(f"{values.dtype} has no codes of {name}", where="array", code="DS-TYP-002")
        if known == "bfloat16" and values.size < _FEW and values.dtype.isnative:
            return values.view(codes).astype(np.float32)
        return _decode(_bytes(values), known, values.size).reshape(values.shape)
    return values


def _check_size(values: Array, name: str, itemsize: int) -> None:
    """Check the size of elements."""
    if values.dtype.itemsize != itemsize:
        raise DtypeError(
            f"{name} has elements of {itemsize} bytes in an array, got {values.dtype}",
            where="array",
            code="DS-TYP-002",
        )
