"""Encoding of Python objects as bytes, without pickle: decoding runs no code.

MindSpore pickles the objects of its object collectives, so a rank runs any code that another one sends. Here, only
plain values are allowed: None, bool, int, float, complex, str, bytes, list, tuple, dict, set, frozenset, range, slice,
numpy arrays and numbers, Tensors and number types.
"""

import base64
import json
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from dumpsim.core.dtype import DType, dtype, from_numpy
from dumpsim.core.errors import BadInputError, UnsupportedError
from dumpsim.frontends.mindspore.common.dtype import number
from dumpsim.frontends.mindspore.common.tensor import Tensor

__all__ = ["decode", "encode"]

_DEPTH = 100
_ALLOWED = (
    *("None", "bool", "int", "float", "complex", "str", "bytes", "list", "tuple", "dict", "set", "frozenset", "range"),
    *("slice", "numpy.ndarray", "numpy numbers", "Tensor", "number types"),
)


def encode(value: Any) -> bytes:
    """Encode an object as bytes.

    Raises
    ------
    UnsupportedError
        For an object of another type; the message names it.

    Examples
    --------
    >>> decode(encode({"step": 3, "loss": (0.5, None)}))
    {'step': 3, 'loss': (0.5, None)}
    >>> encode(print)
    Traceback (most recent call last):
        ...
    dumpsim.core.errors.UnsupportedError: object collective: an object of type builtin_function_or_method cannot be \
sent; allowed: None, bool, int, float, complex, str, bytes, list, tuple, dict, set, frozenset, range, slice, \
numpy.ndarray, numpy numbers, Tensor, number types
    """
    return json.dumps(_tree(value, 0), separators=(",", ":")).encode("ascii")


def decode(data: bytes) -> Any:
    """Return the object from the bytes of `encode`.

    Raises
    ------
    BadInputError
        For other bytes.
    """
    try:
        return _value(json.loads(data.decode("ascii")))
    except (ValueError, KeyError, TypeError, IndexError, RecursionError) as error:
        raise BadInputError(f"invalid bytes of an object: {error}", where="object collective") from None


def _tree(value: Any, depth: int) -> Any:
    if depth > _DEPTH:
        raise UnsupportedError(
            f"objects nested more than {_DEPTH} deep, or in themselves, cannot be sent", where="object collective"
        )
    kind = type(value)
    if value is None or kind in (bool, str):
        return value
    if kind is int:
        return ["int", str(value)]
    if kind is float:
        return ["float", value.hex()]
    if kind is complex:
        return ["complex", value.real.hex(), value.imag.hex()]
    if kind is bytes:
        return ["bytes", _text(value)]
    if kind in (list, tuple, set, frozenset):
        return [kind.__name__, *(_tree(item, depth + 1) for item in value)]
    if kind is dict:
        return ["dict", *([_tree(key, depth + 1), _tree(item, depth + 1)] for key, item in value.items())]
    if kind in (range, slice):
        return [kind.__name__, *(_tree(item, depth + 1) for item in (value.start, value.stop, value.step))]
    if isinstance(value, DType):
        return ["dtype", value.name]
    if isinstance(value, Tensor):
        return ["tensor", *_array(value._values("asnumpy"))]
    if isinstance(value, (np.ndarray, np.generic)) and value.dtype.kind not in "OSUmM":
        return ["array" if isinstance(value, np.ndarray) else "number", *_array(np.asarray(value))]
    raise UnsupportedError(
        f"an object of type {kind.__name__} cannot be sent", where="object collective", allowed=_ALLOWED
    )


def _array(array: "np.ndarray[Any, Any]") -> list[Any]:
    return [from_numpy(array.dtype).name, list(array.shape), _text(np.ascontiguousarray(array).tobytes())]


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def _numpy(name: str, shape: list[int], text: str) -> "np.ndarray[Any, Any]":
    return np.frombuffer(base64.b64decode(text), dtype(name).numpy).reshape(shape).copy()


_MAKERS: Mapping[str, Callable[..., Any]] = MappingProxyType(
    {
        "int": int,
        "float": float.fromhex,
        "complex": lambda real, imaginary: complex(float.fromhex(real), float.fromhex(imaginary)),
        "bytes": base64.b64decode,
        "list": lambda *items: [_value(item) for item in items],
        "tuple": lambda *items: tuple(_value(item) for item in items),
        "set": lambda *items: {_value(item) for item in items},
        "frozenset": lambda *items: frozenset(_value(item) for item in items),
        "dict": lambda *items: {_value(key): _value(item) for key, item in items},
        "range": lambda *items: range(*(_value(item) for item in items)),
        "slice": lambda *items: slice(*(_value(item) for item in items)),
        "dtype": lambda name: number(dtype(name)),
        "tensor": lambda *parts: Tensor._around(_numpy(*parts)),
        "array": _numpy,
        "number": lambda *parts: _numpy(*parts)[()],
    }
)


def _value(tree: Any) -> Any:
    return _MAKERS[tree[0]](*tree[1:]) if isinstance(tree, list) else tree
