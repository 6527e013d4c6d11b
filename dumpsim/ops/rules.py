"""Helpers of shape rules: reading operands, broadcasting, axes, and the vendor's errors."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from dumpsim.core.abstract import Abstract, NoneType, ScalarType, StringType, TensorType, TupleType, TypeType
from dumpsim.core.dtype import DType, dtype
from dumpsim.core.errors import ScriptTypeError, ScriptValueError

__all__ = [
    "FLOATS",
    "axis_of",
    "broadcast",
    "constant",
    "fits",
    "ints_of",
    "is_constant",
    "is_spread",
    "kept_shape",
    "numbers_of",
    "output",
    "pair_of",
    "same_dtype",
    "same_shape",
    "size_of",
    "tensor_of",
    "tensors_in",
    "tuple_of",
    "type_number",
    "type_of",
    "value_of",
    "vector",
]

_FEW = 64  # largest number of elements of a constant whose value rules can use
FLOATS = ("bfloat16", "float16", "float32", "float64")

Infer = Callable[[Sequence[Abstract], Mapping[str, Any]], Abstract]


def output(number_type: DType | str, shape: Iterable[int]) -> TensorType:
    """Return the type of an output tensor."""
    return TensorType(dtype=dtype(number_type), shape=tuple(shape))


def tuple_of(*items: Abstract) -> TupleType:
    """Return the type of several outputs."""
    return TupleType(items=items)


def vector(numbers: Sequence[int]) -> str:
    """Format a list of integers as the vendor's C++ does, ``[const vector]{2, 3}``."""
    return "[const vector]{" + ", ".join(str(n) for n in numbers) + "}"


def tensor_of(op: str, abstract: Abstract, name: str, kinds: Sequence[str] = ()) -> TensorType:
    """Return the tensor type of an operand; host numbers count as tensors of shape ().

    Raises
    ------
    ScriptTypeError
        The operand is not a tensor, or its number type is not one of `kinds` (names of types, ``float``, ``int``, ...).
    """
    if isinstance(abstract, ScalarType):
        abstract = TensorType(dtype=abstract.dtype, shape=(), constant=abstract.value is not None)
    if not isinstance(abstract, TensorType):
        what = type(abstract).__name__.removesuffix("Type")
        raise ScriptTypeError(f"For primitive[{op}], the input argument[{name}] must be a tensor, but got {what}.")
    if kinds and abstract.dtype.name not in kinds and abstract.dtype.kind not in kinds:
        legal = ", ".join(f"Tensor[{dtype(k).title}]" if k not in ("float", "int", "uint") else k for k in kinds)
        raise ScriptTypeError(
            f"For primitive[{op}], the input argument[{name}] must be a type of {{{legal}}}, but got "
            f"Tensor[{abstract.dtype.title}]."
        )
    return abstract


def tensors_in(op: str, abstract: Abstract, name: str) -> tuple[TensorType, ...]:
    """Return the tensors of an operand that is a tuple."""
    if not isinstance(abstract, TupleType) or not abstract.items:
        raise ScriptTypeError(f"For primitive[{op}], the input argument[{name}] must be a tuple of tensors.")
    return tuple(tensor_of(op, item, f"{name}[{i}]") for i, item in enumerate(abstract.items))


def is_constant(abstract: Abstract) -> bool:
    """Whether the value of a host operand is known at compile time."""
    if isinstance(abstract, TupleType):
        return abstract.value is not None or all(is_constant(item) for item in abstract.items)
    return isinstance(abstract, NoneType) or getattr(abstract, "value", None) is not None


def _python_value(abstract: Abstract) -> Any:
    if isinstance(abstract, NoneType):
        return None
    if isinstance(abstract, TupleType):
        return abstract.value if abstract.value is not None else tuple(_python_value(item) for item in abstract.items)
    if isinstance(abstract, ScalarType | StringType | TypeType):
        return abstract.value
    raise TypeError(type(abstract).__name__)


def value_of(op: str, abstract: Abstract, name: str) -> Any:
    """Return the Python value of a host operand.

    Raises
    ------
    ScriptTypeError
        If the operand is a tensor, or is known only at run time.
    """
    if isinstance(abstract, TensorType) or not is_constant(abstract):
        raise ScriptTypeError(
            f"For '{op}', the input '{name}' must be a constant, but its value is known only when the graph runs."
        )
    return _python_value(abstract)


def constant(operand: Any) -> Any:
    """Return the Python value of a host operand of a gradient rule (a symbol or the value itself)."""
    abstract = getattr(operand, "abstract", None)
    if abstract is None or isinstance(abstract, TensorType):
        return getattr(operand, "value", operand)
    return _python_value(abstract)


def ints_of(op: str, abstract: Abstract, name: str) -> tuple[int, ...]:
    """Return a host operand that is an integer or a tuple of integers as a tuple; None gives ()."""
    value = value_of(op, abstract, name)
    if value is None:
        return ()
    if isinstance(value, int):
        return (value,)
    if isinstance(value, tuple | list) and all(isinstance(v, int) for v in value):
        return tuple(value)
    raise ScriptTypeError(f"For '{op}', the input '{name}' must be an int or a tuple of int, but got {value!r}.")


def numbers_of(array: Any) -> Any:
    """Return the value of a constant's `TensorType`: nested tuples of a few integers, None for any other array.

    Examples
    --------
    >>> import numpy as np
    >>> numbers_of(np.array([[1, 2], [3, 4]])), numbers_of(np.zeros(2))
    (((1, 2), (3, 4)), None)
    """
    if array.dtype.kind not in "iu" or array.size > _FEW:
        return None
    return _nested(array.tolist())


def _nested(value: Any) -> Any:
    return tuple(map(_nested, value)) if isinstance(value, list) else value


def pair_of(value: Any) -> tuple[int, int]:
    """Return height and width of a setting given as one number, two, or four in NCHW order."""
    if isinstance(value, int):
        return value, value
    *_, height, width = value
    return int(height), int(width)


def axis_of(op: str, axis: int, rank: int, name: str = "axis value", extra: int = 0, *, is_closed: bool = False) -> int:
    """Return an axis counted from 0.

    Raises
    ------
    ScriptValueError
        If it is not in ``[-rank, rank)``; `extra` widens the range (ExpandDims has one more). Some of the vendor's
        errors name a closed range.
    """
    low, high = -rank - extra, rank + extra
    if rank == 0 and not extra:
        low, high = -1, 1
    if not low <= axis < high:
        span = f"[{low},{high - 1}]" if is_closed else f"[{low},{high})"
        raise ScriptValueError(f"For primitive[{op}], the {name} must be in {span}, but got {axis}.")
    return axis + rank + extra if axis < 0 and rank + extra else max(axis, 0)


# the vendor's numbers of number types, for operands that are a type [observed 2.10]
_TYPES = MappingProxyType(
    {
        "bool": 30, "int8": 32, "int16": 33, "int32": 34, "int64": 35, "uint8": 37, "uint16": 38, "uint32": 39,
        "uint64": 40, "float16": 42, "float32": 43, "float64": 44, "bfloat16": 45, "complex64": 51, "complex128": 52,
    }
)  # fmt: skip


def type_number(kind: DType) -> int | None:
    """Return the vendor's number of a number type, None if there is none.

    Examples
    --------
    >>> type_number(dtype("int64"))
    35
    """
    return _TYPES.get(kind.name)


def type_of(value: Any) -> Any:
    """Return the number type of an operand, which is the type itself or the vendor's number.

    Examples
    --------
    >>> type_of(43).name, type_of(None)
    ('float32', None)
    """
    if isinstance(value, int) and not isinstance(value, bool):
        return dtype(next(name for name, number in _TYPES.items() if number == value))
    return value


# names of operands in the shape errors of operators [observed 2.10]
_INPUT_AND_OTHER = frozenset({"AddExt", "FloorDiv", "LogAddExp2", "NotEqual", "Select", "SubExt"})


def broadcast(
    op: str, first: Sequence[int], second: Sequence[int], names: tuple[str, str] | None = None
) -> tuple[int, ...]:
    """Return the broadcast shape of two operands; -1 is a dimension that is known only at run time.

    Raises
    ------
    ScriptValueError
        Two dimensions differ and neither is 1.
    """
    names = names or (("input", "other") if op in _INPUT_AND_OTHER else ("input1", "input2"))
    rank = max(len(first), len(second))
    left = (1,) * (rank - len(first)) + tuple(first)
    right = (1,) * (rank - len(second)) + tuple(second)
    shape = []
    for position, (a, b) in enumerate(zip(left, right, strict=True)):
        if a == b or b == 1:
            shape.append(a)
        elif a in (1, -1):
            shape.append(b)
        elif b == -1:
            shape.append(a)
        else:
            # quirk: the text numbers a dimension by rank + its position in the shorter shape [2.10 observed]
            place = position - abs(len(first) - len(second))
            raise ScriptValueError(
                f"For '{op}', {names[0]}.shape and {names[1]}.shape need to broadcast. The value of "
                f"{names[0]}.shape[{len(first) + place}] or {names[1]}.shape[{len(second) + place}] must be 1 or -1 "
                "when they "
                f"are not the same, but got {names[0]}.shape = {list(first)} and {names[1]}.shape = {list(second)}"
            )
    return tuple(shape)


def same_shape(op: str, name: str, first: Sequence[int], second: Sequence[int]) -> None:
    """Refuse two shapes that differ; `name` is what the vendor's error calls the first one."""
    if tuple(first) != tuple(second):
        one, other = (f"[{''.join(f'{n},' for n in shape)}]" for shape in (first, second))
        raise ScriptValueError(f"For primitive[{op}], the {name}: {one} must be equal to {other}")


def is_spread(shape: Sequence[int], whole: Sequence[int]) -> bool:
    """Whether a tensor of the first shape can be broadcast to the second.

    Examples
    --------
    >>> is_spread((1, 3), (2, 3)), is_spread((2, 3), (1, 3)), is_spread((1, 2, 3), (2, 3))
    (True, False, False)
    """
    ends = zip(shape[::-1], whole[::-1], strict=False)
    return len(shape) <= len(whole) and all(n in (1, m) or -1 in (n, m) for n, m in ends)


def fits(op: str, abstract: Abstract, name: str, whole: Sequence[int]) -> None:
    """Refuse a weight that cannot be broadcast to the input; it may be None."""
    if not isinstance(abstract, NoneType) and not is_spread(tensor_of(op, abstract, name).shape, whole):
        raise ScriptValueError(f"For '{op}', the shape of '{name}' can not broadcast to the shape of 'input'.")


_NAMES_TYPES = ("BatchMatMul", "Dense", "MatMul", "MatMulExt")  # the vendor's errors name types [2.10 observed]


def same_dtype(op: str, operands: Mapping[str, TensorType]) -> DType:
    """Return the number type of several operands.

    Raises
    ------
    ScriptTypeError
        If the types differ.
    """
    (first_name, first), *others = operands.items()
    for name, other in others:
        if other.dtype != first.dtype:
            if op not in _NAMES_TYPES:
                raise ScriptTypeError(f"For primitive[{op}], the input type must be same.")
            raise ScriptTypeError(
                f"For '{op}', the type of '{name}' should be same as '{first_name}', but got '{first_name}' with type "
                f"Tensor[{first.dtype.title}] and '{name}' with type Tensor[{other.dtype.title}]."
            )
    return first.dtype


def kept_shape(shape: Sequence[int], axes: Iterable[int]) -> tuple[int, ...]:
    """Return a shape with extent 1 on `axes` (from 0)."""
    gone = set(axes)
    return tuple(1 if i in gone else n for i, n in enumerate(shape))


def size_of(shape: Iterable[int]) -> int:
    """Return the number of elements of a shape."""
    total = 1
    for n in shape:
        total *= n
    return total
