"""Numbers of data types and formats in dump files. [spec ge 3.3]"""

from dataclasses import dataclass

from dumpsim.core.errors import DtypeError, FormatError, nearest

__all__ = [
    "DTYPES_PROTO",
    "FORMATS",
    "ProtoType",
    "dtype_name",
    "dtype_number",
    "format_number",
    "from_ge",
    "ge_number",
    "vendor_name",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProtoType:
    """A data type: number in dump files, GE's number, the vendor's name, our name, and bits (0: no fixed size)."""

    number: int
    ge: int
    name: str
    dtype: str
    bits: int


def _row(number: int, ge: int, name: str, dtype: str, bits: int) -> ProtoType:
    return ProtoType(number=number, ge=ge, name=name, dtype=dtype, bits=bits)


# by number; types that `dumpsim.core.dtype` does not have get the vendor's name in lower case
DTYPES_PROTO: dict[int, ProtoType] = {
    row.number: row
    for row in (
        _row(0, 28, "UNDEFINED", "undefined", 0),
        _row(1, 0, "FLOAT", "float32", 32),
        _row(2, 1, "FLOAT16", "float16", 16),
        _row(3, 2, "INT8", "int8", 8),
        _row(4, 4, "UINT8", "uint8", 8),
        _row(5, 6, "INT16", "int16", 16),
        _row(6, 7, "UINT16", "uint16", 16),
        _row(7, 3, "INT32", "int32", 32),
        _row(8, 9, "INT64", "int64", 64),
        _row(9, 8, "UINT32", "uint32", 32),
        _row(10, 10, "UINT64", "uint64", 64),
        _row(11, 12, "BOOL", "bool", 8),
        _row(12, 11, "DOUBLE", "float64", 64),
        _row(13, 13, "STRING", "string", 0),
        _row(14, 14, "DUAL_SUB_INT8", "dual_sub_int8", 8),
        _row(15, 15, "DUAL_SUB_UINT8", "dual_sub_uint8", 8),
        _row(16, 16, "COMPLEX64", "complex64", 64),
        _row(17, 17, "COMPLEX128", "complex128", 128),
        _row(18, 18, "QINT8", "qint8", 8),
        _row(19, 19, "QINT16", "qint16", 16),
        _row(20, 20, "QINT32", "qint32", 32),
        _row(21, 21, "QUINT8", "quint8", 8),
        _row(22, 22, "QUINT16", "quint16", 16),
        _row(23, 23, "RESOURCE", "resource", 64),
        _row(24, 24, "STRING_REF", "string_ref", 0),
        _row(25, 25, "DUAL", "dual", 0),
        _row(26, 26, "VARIANT", "variant", 0),
        _row(27, 27, "BF16", "bfloat16", 16),
        _row(28, 29, "INT4", "int4", 4),
        _row(29, 30, "UINT1", "uint1", 1),
        _row(30, 31, "INT2", "int2", 2),
        _row(31, 32, "UINT2", "uint2", 2),
        _row(32, 33, "COMPLEX32", "complex32", 32),
        _row(33, 34, "HIFLOAT8", "hifloat8", 8),
        _row(34, 35, "FLOAT8_E5M2", "float8_e5m2", 8),
        _row(35, 36, "FLOAT8_E4M3FN", "float8_e4m3fn", 8),
        _row(36, 37, "FLOAT8_E8M0", "float8_e8m0", 8),
        _row(37, 38, "FLOAT6_E3M2", "float6_e3m2", 6),
        _row(38, 39, "FLOAT6_E2M3", "float6_e2m3", 6),
        _row(39, 40, "FLOAT4_E2M1", "float4_e2m1", 4),
        _row(40, 41, "FLOAT4_E1M2", "float4_e1m2", 4),
        _row(41, 42, "HIFLOAT4", "hifloat4", 4),
        _row(42, 43, "HIFLOAT4_SCALE", "hifloat4_scale", 0),
    )
}

_DTYPE_BY_NAME = {
    **{row.name.lower(): row for row in DTYPES_PROTO.values()},
    **{row.dtype: row for row in DTYPES_PROTO.values()},
}
_DTYPE_BY_GE = {row.ge: row for row in DTYPES_PROTO.values()}

_FORMAT_NAMES = (
    "NCHW NHWC ND NC1HWC0 FRACTAL_Z NC1C0HWPAD NHWC1C0 FSR_NCHW FRACTAL_DECONV C1HWNC0 FRACTAL_DECONV_TRANSPOSE "
    "FRACTAL_DECONV_SP_STRIDE_TRANS NC1HWC0_C04 FRACTAL_Z_C04 CHWN FRACTAL_DECONV_SP_STRIDE8_TRANS HWCN NC1KHKWHWC0 "
    "BN_WEIGHT FILTER_HWCK HASHTABLE_LOOKUP_LOOKUPS HASHTABLE_LOOKUP_KEYS HASHTABLE_LOOKUP_VALUE "
    "HASHTABLE_LOOKUP_OUTPUT HASHTABLE_LOOKUP_HITS C1HWNCoC0 MD NDHWC FRACTAL_ZZ FRACTAL_NZ NCDHW DHWCN NDC1HWC0 "
    "FRACTAL_Z_3D CN NC DHWNC FRACTAL_Z_3D_TRANSPOSE FRACTAL_ZN_LSTM FRACTAL_Z_G RESERVED ALL NULL ND_RNN_BIAS "
    "FRACTAL_ZN_RNN YUV YUV_A NCL FRACTAL_Z_WINO C1HWC0"
)

# by number
FORMATS: dict[int, str] = {**dict(enumerate(_FORMAT_NAMES.split())), 255: "MAX"}
_FORMAT_NUMBERS = {name: number for number, name in FORMATS.items()} | {"DHWCH": 31, "NYUV": 45, "NYUV_A": 46}


def dtype_number(name: str) -> int:
    """Return the number of a type in dump files, by our name or the vendor's, in upper or lower case.

    Raises
    ------
    DtypeError
        For an unknown name.

    Examples
    --------
    >>> dtype_number("float32"), dtype_number("FLOAT"), dtype_number("bfloat16")
    (1, 1, 27)
    """
    try:
        return _DTYPE_BY_NAME[name.lower()].number
    except KeyError:
        raise DtypeError(
            f"{name!r} has no number in dump files",
            allowed=[row.dtype for row in DTYPES_PROTO.values()],
            nearest=nearest(name, _DTYPE_BY_NAME),
            code="DS-BIN-002",
        ) from None


def _proto_type(number: int) -> ProtoType:
    try:
        return DTYPES_PROTO[number]
    except KeyError:
        raise DtypeError(
            f"{number} is not the number of a type in dump files",
            allowed=[f"0..{max(DTYPES_PROTO)}"],
            code="DS-BIN-002",
        ) from None


def dtype_name(number: int) -> str:
    """Return our name of a type.

    Raises
    ------
    DtypeError
        For an unknown number.

    Examples
    --------
    >>> dtype_name(1), dtype_name(33), dtype_name(18)
    ('float32', 'hifloat8', 'qint8')
    """
    return _proto_type(number).dtype


def vendor_name(number: int) -> str:
    """Return the vendor's name of a type.

    Raises
    ------
    DtypeError
        For an unknown number.

    Examples
    --------
    >>> vendor_name(1), vendor_name(12)
    ('FLOAT', 'DOUBLE')
    """
    return _proto_type(number).name


def ge_number(number: int) -> int:
    """Return GE's number of a type, which the original operator's type and the nano container use.

    Examples
    --------
    >>> ge_number(dtype_number("int32"))
    3
    """
    return _proto_type(number).ge


def from_ge(number: int) -> int:
    """Convert GE's number of a type to the number in dump files.

    Raises
    ------
    DtypeError
        For an unknown number.

    Examples
    --------
    >>> dtype_name(from_ge(12))
    'bool'
    """
    try:
        return _DTYPE_BY_GE[number].number
    except KeyError:
        raise DtypeError(
            f"{number} is not the number of a GE type", allowed=sorted(_DTYPE_BY_GE), code="DS-BIN-002"
        ) from None


def format_number(name: str) -> int:
    """Return the number of a format, by the vendor's name.

    Raises
    ------
    FormatError
        For an unknown name.

    Examples
    --------
    >>> format_number("FRACTAL_NZ")
    29
    """
    try:
        return _FORMAT_NUMBERS[name]
    except KeyError:
        raise FormatError(
            f"{name!r} has no number in dump files",
            allowed=FORMATS.values(),
            nearest=nearest(name, _FORMAT_NUMBERS),
            code="DS-BIN-003",
        ) from None
