"""Number types of tensors: one row for each type, with the spellings of the vendors."""

from dataclasses import dataclass
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

from dumpsim.core.errors import DtypeError, nearest

if TYPE_CHECKING:
    import numpy as np

__all__ = ["DTYPES", "DType", "dtype", "from_numpy"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DType:
    """A number type.

    Attributes
    ----------
    name : str
        Lower-case name, as in O0/O1 file names: ``float32``.
    title : str
        MindSpore's TypeId name, as in CPU file names and IR: ``Float32``. [spec observed 0.1]
    bits : int
        Size of one element.
    descr : str or None
        The descr that MindSpore writes into an npy header, None if there is none. [spec mindspore 3.5]
    kind : str
        ``bool``, ``int``, ``uint``, ``float`` or ``complex``.
    short : str
        The IR's wrapper of scalars and types: ``F32``, ``I64``, ``Bool``.
    proto : int
        Number in debugger.DataType. [spec mindspore 8.2]
    """

    name: str
    title: str
    bits: int
    descr: str | None
    kind: str
    short: str
    proto: int

    @property
    def itemsize(self) -> int:
        """Bytes of one element of an array; an element of an int4 tensor is a pair, one of uint1 is rounded up."""
        return max(1, self.bits // 8)

    def nbytes(self, count: int) -> int:
        """Bytes in memory of a tensor of `count` elements by its shape.

        The shape of an int4 tensor counts pairs, two numbers in a byte, as MindSpore's ``qint4x2`` does; uint1 has
        eight elements in a byte.

        Examples
        --------
        >>> dtype("float32").nbytes(3), dtype("int4").nbytes(3), dtype("uint1").nbytes(9)
        (12, 3, 2)
        """
        return (count + 7) // 8 if self.bits == 1 else count * self.itemsize

    @property
    def numpy(self) -> "np.dtype[Any]":
        """The numpy type of the elements.

        uint1 is uint8. int4 is a structured type of one byte that contains a pair: numpy has no such type, and
        arithmetic must not mistake it for int8.

        Raises
        ------
        DtypeError
            For hifloat8, which has no numpy type.

        Examples
        --------
        >>> dtype("int4").numpy
        dtype([('int4x2', 'i1')])
        """
        return _numpy(self.name)

    def __str__(self) -> str:
        return self.name


@cache
def _numpy(name: str) -> "np.dtype[Any]":
    """Return the numpy type of an element; cached, since it is needed for every tensor."""
    import numpy as np

    if name in _ML:
        import ml_dtypes

        found: np.dtype[Any] = np.dtype(getattr(ml_dtypes, _ML[name]))
        return found
    if name == "int4":
        return np.dtype([_PAIR])
    if name == "hifloat8":
        raise DtypeError("arrays of hifloat8 are not emulated", nearest="float8_e4m3fn", code="DS-TYP-002")
    return np.dtype("uint8" if name == "uint1" else name)


_PAIR = ("int4x2", "i1")
_ML = {
    "bfloat16": "bfloat16",
    "float8_e5m2": "float8_e5m2",
    "float8_e4m3fn": "float8_e4m3fn",
}


def _row(name: str, title: str, bits: int, descr: str | None, kind: str, short: str, proto: int) -> DType:
    return DType(name=name, title=title, bits=bits, descr=descr, kind=kind, short=short, proto=proto)


DTYPES: dict[str, DType] = {
    row.name: row
    for row in (
        _row("bool", "Bool", 8, "|b1", "bool", "Bool", 1),
        _row("int8", "Int8", 8, "|i1", "int", "I8", 2),
        _row("int16", "Int16", 16, "<i2", "int", "I16", 3),
        _row("int32", "Int32", 32, "<i4", "int", "I32", 4),
        _row("int64", "Int64", 64, "<i8", "int", "I64", 5),
        _row("uint8", "UInt8", 8, "|u1", "uint", "U8", 6),
        _row("uint16", "UInt16", 16, "<u2", "uint", "U16", 7),
        _row("uint32", "UInt32", 32, "<u4", "uint", "U32", 8),
        _row("uint64", "UInt64", 64, "<u8", "uint", "U64", 9),
        _row("float16", "Float16", 16, "<f2", "float", "F16", 10),
        _row("float32", "Float32", 32, "<f4", "float", "F32", 11),
        _row("float64", "Float64", 64, "<f8", "float", "F64", 12),
        _row("bfloat16", "BFloat16", 16, "<E2", "float", "BF16", 46),
        _row("int4", "Int4", 4, None, "int", "I4", 48),
        _row("uint1", "UInt1", 1, None, "uint", "U1", 0),
        _row("complex64", "Complex64", 64, "<c8", "complex", "C64", 0),
        _row("complex128", "Complex128", 128, "<c16", "complex", "C128", 0),
        _row("float8_e5m2", "Float8E5M2", 8, None, "float", "F8E5M2", 0),
        _row("float8_e4m3fn", "Float8E4M3FN", 8, None, "float", "F8E4M3FN", 0),
        _row("hifloat8", "HiFloat8", 8, None, "float", "HF8", 0),
    )
}

# the seed's short names of number types [decisions: "int", "uint", "float", "double"]
_ALIASES = {"int": "int32", "uint": "uint32", "float": "float32", "double": "float64", "bool_": "bool"}


def dtype(name: "str | DType") -> DType:
    """Return the number type of a name in any spelling (``float32``, ``Float32``, ``float``).

    Raises
    ------
    DtypeError
        For an unknown name.

    Examples
    --------
    >>> dtype("Float32").descr
    '<f4'
    """
    if isinstance(name, DType):
        return name
    key = name.lower()
    key = _ALIASES.get(key, key)
    try:
        return DTYPES[key]
    except KeyError:
        raise DtypeError(
            f"unknown number type {name!r}", allowed=DTYPES, nearest=nearest(name, DTYPES), code="DS-TYP-001"
        ) from None


def from_numpy(value: "np.dtype[Any] | type") -> DType:
    """Return the number type of a numpy type, whatever its byte order."""
    import numpy as np

    return _row_of(np.dtype(value))


@lru_cache(maxsize=64)
def _row_of(found: "np.dtype[Any]") -> DType:
    """Return the number type of a numpy type; cached, since numpy rebuilds the name at each access."""
    return dtype("int4" if found.names == _PAIR[:1] else found.newbyteorder("=").name)
