"""``mindspore.dtype``: the number types of scripts."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from dumpsim.core.dtype import DTYPES, DType
from dumpsim.core.dtype import from_numpy as _from_numpy
from dumpsim.core.errors import ScriptTypeError
from dumpsim.frontends.mindspore._standin import vendored

__all__ = [
    "Number",
    "all_types",
    "bfloat16",
    "bool_",
    "complex64",
    "complex128",
    "complex_type",
    "double",
    "dtype_to_nptype",
    "dtype_to_pytype",
    "float16",
    "float32",
    "float64",
    "float_type",
    "half",
    "int8",
    "int16",
    "int32",
    "int64",
    "int_type",
    "long",
    "number",
    "number_type",
    "pytype_to_dtype",
    "short",
    "single",
    "type_of",
    "ubyte",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "uint_type",
]


class Number(DType):
    """A number type that is printed like those of MindSpore.

    Examples
    --------
    >>> float32
    mindspore.float32
    >>> str(float32)
    'Float32'
    """

    __slots__ = ()

    def __str__(self) -> str:
        return self.title

    def __repr__(self) -> str:
        return f"mindspore.{self.name}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DType) and other.name == self.name

    def __hash__(self) -> int:
        return DType.__hash__(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return number, (self.name,)

    def __copy__(self) -> "Number":
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> "Number":
        return self


def _family(name: str) -> type[Number]:
    """Return a class with the name and module that errors show for the type of a number type."""
    module = f"{__name__.partition('.mindspore')[0]}.mindspore._c_expression.typing"
    return type(name, (Number,), {"__slots__": (), "__module__": module})


_FAMILIES: Mapping[str, type[Number]] = MappingProxyType(
    {
        kind: _family(name)
        for kind, name in (
            ("bool", "Bool"),
            ("int", "Int"),
            ("uint", "UInt"),
            ("float", "Float"),
            ("complex", "Complex"),
        )
    }
)
_BFLOAT = _family("BFloat")


def _number(row: DType) -> Number:
    family = _BFLOAT if row.name == "bfloat16" else _FAMILIES.get(row.kind, Number)
    return family(
        name=row.name,
        title=row.title,
        bits=row.bits,
        descr=row.descr,
        kind=row.kind,
        short=row.short,
        proto=row.proto,
    )


_NUMBERS: Mapping[str, Number] = MappingProxyType({name: _number(row) for name, row in DTYPES.items()})

bool_ = _NUMBERS["bool"]
int8, int16, int32, int64 = (_NUMBERS[n] for n in ("int8", "int16", "int32", "int64"))
uint8, uint16, uint32, uint64 = (_NUMBERS[n] for n in ("uint8", "uint16", "uint32", "uint64"))
float16, float32, float64 = (_NUMBERS[n] for n in ("float16", "float32", "float64"))
bfloat16 = _NUMBERS["bfloat16"]
int4 = qint4x2 = _NUMBERS["int4"]  # two numbers in an element
complex64, complex128 = _NUMBERS["complex64"], _NUMBERS["complex128"]
float8_e4m3fn, float8_e5m2, hifloat8 = (_NUMBERS[n] for n in ("float8_e4m3fn", "float8_e5m2", "hifloat8"))

byte, short, intc, long, intp = int8, int16, int32, int64, int64
ubyte, ushort, uintc, uintp = uint8, uint16, uint32, uint64
half, single, double = float16, float32, float64

int_type = (int8, int16, int32, int64)
uint_type = (uint8, uint16, uint32, uint64)
float_type = (float16, float32, float64, bfloat16)
complex_type = (complex64, complex128)
number_type = (*int_type, *uint_type, *float_type, *complex_type)
all_types = (bool_, *number_type)


def number(kind: DType | str) -> Number:
    """Return the number type for a core type or a name.

    Examples
    --------
    >>> number("int32") is int32
    True
    """
    return _NUMBERS[kind if isinstance(kind, str) else kind.name]


def type_of(value: Any, where: str = "dtype") -> Number:
    """Return the number type for a number type, a numpy type, a Python type or a name.

    Raises
    ------
    ScriptTypeError
        For a value that is none of these.

    Examples
    --------
    >>> type_of(float), type_of("int8")
    (mindspore.float32, mindspore.int8)
    """
    if isinstance(value, DType):
        return number(value)
    if value in _PYTHON:
        return _PYTHON[value]
    try:
        return number(_from_numpy(value))
    except (TypeError, KeyError):
        raise ScriptTypeError(f"{value!r} is not a number type", where=where, allowed=_NUMBERS) from None


_PYTHON: Mapping[Any, Number] = MappingProxyType({bool: bool_, int: int64, float: float32, complex: complex128})


# what the errors of a cast list, in their order [2.10 observed]
_CASTS = (*int_type, *uint_type, *float_type, *complex_type, int4, float8_e4m3fn, float8_e5m2, hifloat8, bool_)
_NUMPY_CASTS = "int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 bool_ complex64 complex128"
_CAST_NAMES = (
    "bool_ int8 byte int16 short int32 intc int64 long intp uint8 ubyte uint16 ushort uint32 uintc uint64 uintp "
    "float16 half float32 single float64 double complex64 cfloat complex128 cdouble qint4x2 bfloat16 float8_e4m3fn "
    "float8_e5m2 "
    "hifloat8 int_ uint float_ list_ tuple_ string number tensor_type type_none _null TensorType Type "
    "Int int float bool"
)


def cast_target(value: Any) -> Number:
    """Return the number type of ``Tensor.astype``.

    Raises
    ------
    ScriptTypeError
        For a value that names none.

    Examples
    --------
    >>> cast_target("int8"), cast_target(float)
    (mindspore.int8, mindspore.float32)
    """
    names = _CAST_NAMES.split()
    if isinstance(value, str) and value not in names:
        raise ScriptTypeError(f"For Tensor.astype, the string input type must be one of {names}, but got '{value}'.")
    if isinstance(value, (str, DType, type)):
        return type_of(value, "Tensor.astype")
    listed = ", ".join([*map(repr, _CASTS), *(f"<class 'numpy.{name}'>" for name in _NUMPY_CASTS.split())])
    raise ScriptTypeError(f"For Tensor.astype, the input type must be one of [{listed}], but got '{value}'.")


def dtype_to_nptype(type_: DType) -> Any:
    """Return the numpy type of a MindSpore type.

    Examples
    --------
    >>> import numpy as np
    >>> dtype_to_nptype(float16) is np.float16
    True
    """
    return number(type_).numpy.type


def dtype_to_pytype(type_: DType) -> type:
    """Return the Python type of a MindSpore type.

    Examples
    --------
    >>> dtype_to_pytype(uint8)
    <class 'int'>
    """
    return {"bool": bool, "int": int, "uint": int, "float": float, "complex": complex}[type_.kind]


def pytype_to_dtype(obj: Any) -> Number:
    """Return the MindSpore type of a Python or numpy type.

    Examples
    --------
    >>> import numpy as np
    >>> pytype_to_dtype(np.int32)
    mindspore.int32
    """
    if not isinstance(obj, (type, Number)):
        raise ScriptTypeError(
            "For 'pytype_to_dtype', the argument 'obj' must be a python type object,such as int, float, str, etc. "
            f"But got type {type(obj)}."
        )
    return number("float64") if obj is float else type_of(obj)  # literals are Float32, the type is not


def __getattr__(name: str) -> Any:
    return vendored("mindspore.common.dtype", name)
