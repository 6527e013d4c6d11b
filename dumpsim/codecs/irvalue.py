"""Values and types in MindSpore's IR text. [spec mindspore 8.3, spec observed 1.8]"""

from collections.abc import Sequence
from itertools import groupby
from typing import Any

import numpy as np

from dumpsim.core.abstract import (
    Abstract,
    FunctionType,
    MonadType,
    NoneType,
    ObjectType,
    ScalarType,
    StringType,
    TensorType,
    TupleType,
    TypeType,
)
from dumpsim.core.dtype import DType, from_numpy

__all__ = ["Text", "attr_text", "constant_text", "float_text", "shape_text", "tensor_text", "type_text"]

_SMALL = 30  # constants with as many elements or more are printed as value=[...]
_FLOAT = {"float16": "{: .4e}", "float32": "{: .8e}", "float64": "{: .8e}"}


class Text(str):
    """A value that is already text, as a reader found it; printed unchanged."""

    __slots__ = ()


def float_text(value: float) -> str:
    """Format a number as a C++ stream does.

    Examples
    --------
    >>> float_text(1e-05), float_text(2.0), float_text(3.5)
    ('1e-05', '2', '3.5')
    """
    return f"{value:.6g}"


def shape_text(shape: Sequence[int]) -> str:
    """Format a shape as ``(2, 3)``; one dimension has no trailing comma."""
    return f"({', '.join(map(str, shape))})"


def tensor_text(array: "np.ndarray[Any, Any]") -> str:
    r"""Format a tensor constant.

    Examples
    --------
    >>> tensor_text(np.array([[7, 8, 9]], np.int32))
    'Tensor(shape=[1, 3], dtype=Int32, value=\n[[7 8 9]])'
    >>> tensor_text(np.array([True, False, True]))
    'Tensor(shape=[3], dtype=Bool, value=[ True False  True])'
    """
    kind = from_numpy(array.dtype)
    head = f"Tensor(shape=[{', '.join(map(str, array.shape))}], dtype={kind.title}, value="
    if array.ndim == 0:
        return f"{head}{_element(array[()], kind, scalar=True)})"
    if array.size >= _SMALL:
        return f"{head}[...])"
    cells = [_element(x, kind) for x in array.ravel()]
    width = len(max(cells, key=len, default=""))
    rows = iter(cell.rjust(width) for cell in cells)
    return head + ("\n" if array.ndim > 1 else "") + _nested(array.shape, rows, 0) + ")"


def _element(value: Any, kind: DType, *, scalar: bool = False) -> str:
    """Format one element of a tensor."""
    if kind.kind == "bool":
        return str(bool(value))
    if kind.kind == "float":
        pattern = None if scalar else _FLOAT.get(kind.name)
        return pattern.format(float(value)) if pattern else float_text(float(value))
    if kind.kind == "complex":
        return f"({float_text(value.real)},{float_text(value.imag)})"
    return str(int(value))


def _nested(shape: Sequence[int], cells: Any, depth: int) -> str:
    """Put brackets around rows, with one row per line."""
    if len(shape) == 1:
        return "[" + " ".join(next(cells) for _ in range(shape[0])) + "]"
    glue = "\n" + " " * (depth + 1)
    return "[" + glue.join(_nested(shape[1:], cells, depth + 1) for _ in range(shape[0])) + "]"


def constant_text(value: Any, abstract: Abstract) -> str:
    """Format a constant operand: ``I64(0)``, ``(I64(0), I64(3))``, ``UMonad[U]``, or a tensor."""
    if isinstance(value, Text):
        return value
    match abstract:
        case FunctionType():
            return f"@{value.name}"
        case ObjectType(name=name):
            return name
        case MonadType(kind=kind):
            return f"{kind}Monad[{kind}]"
        case TensorType():
            return tensor_text(np.asarray(value))
        case TupleType(items=items):
            return f"({', '.join(constant_text(v, a) for v, a in zip(value, items, strict=True))})"
        case ScalarType(dtype=kind):
            return _scalar(value, kind)
        case StringType():
            return f'"{value}"'
        case TypeType():
            return str(value.short)
        case NoneType():
            return "None"


def _scalar(value: Any, kind: DType) -> str:
    text = float_text(value) if kind.kind == "float" else str(int(value))
    return f"{kind.short}({text})"


def attr_text(value: Any) -> str:
    """Format an attribute: a number is wrapped in its type, elements of tuples and lists are not.

    Examples
    --------
    >>> attr_text(True), attr_text(3), attr_text("valid"), attr_text((5, 5)), attr_text(["x", "w"])
    ('Bool(1)', 'I64(3)', '"valid"', '(5, 5)', '[x, w]')
    """
    if isinstance(value, Text):
        return value
    if isinstance(value, np.generic):  # a number with a type of its own
        return _scalar(value.item(), from_numpy(value.dtype))
    if isinstance(value, bool):
        return f"Bool({int(value)})"
    if isinstance(value, int):
        return f"I64({value})"
    if isinstance(value, float):
        return f"F32({float_text(value)})"
    if isinstance(value, str):
        return f'"{value}"'
    return _bare(value)


def _bare(value: Any) -> str:
    match value:
        case None:
            return "None"
        case DType():
            return value.short
        case bool():
            return str(int(value))
        case float():
            return float_text(value)
        case tuple():
            return f"({', '.join(map(_bare, value))})"
        case list():
            return f"[{', '.join(map(_bare, value))}]"
        case np.ndarray():
            return tensor_text(value)
        case _:
            return str(value)


def type_text(abstract: Abstract) -> str:
    """Format the type in angle brackets after an operand.

    Examples
    --------
    >>> from dumpsim.core.dtype import dtype
    >>> f32 = TensorType(dtype=dtype("float32"), shape=(2, 3))
    >>> type_text(f32)
    '<Tensor[Float32], (2, 3)>'
    >>> type_text(TupleType(items=(f32, f32)))
    '<Tuple[Tensor[Float32]*2], TupleShape((2, 3), (2, 3))>'
    """
    text = f"<{_name(abstract)}, {_shape(abstract)}"
    match abstract:
        case TensorType(ref_key=str() as key):
            text += f", ref_key={key}, is_parameter" + (", is_inplace" if abstract.inplace else "")
        case TensorType(constant=True):
            text += ", value=..."
        case TupleType(items=items) if abstract.counted or (items and abstract.value is not None):
            text += f", elements_use_flags={{[const vector]{{{', '.join('1' for _ in items)}}}}}"
    return text + ">"


def _name(abstract: Abstract) -> str:
    match abstract:
        case TensorType():
            name = f"Tensor[{abstract.dtype.title}]"
            return f"Ref[{name}]" if abstract.ref_key is not None else name
        case ScalarType():
            return abstract.dtype.title
        case FunctionType():
            return "Func"
        case ObjectType(name=name):
            return f"Object:{name}"
        case MonadType():
            return f"{abstract.kind}Monad"
        case StringType():
            return "String"
        case TypeType():
            return "TypeType"
        case NoneType():
            return "None"
        case TupleType():
            runs = ((name, sum(1 for _ in group)) for name, group in groupby(map(_name, abstract.items)))
            return f"Tuple[{','.join(name if n == 1 else f'{name}*{n}' for name, n in runs)}]"


def _shape(abstract: Abstract) -> str:
    match abstract:
        case TensorType():
            return shape_text(abstract.shape)
        case TupleType():
            return f"TupleShape({', '.join(map(_shape, abstract.items))})"
        case _:
            return "NoShape"
