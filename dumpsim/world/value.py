"""Values that a rank's function may return to another process: JSON values, bytes, tuples and arrays."""

from base64 import b64decode, b64encode
from typing import Any

import numpy as np

from dumpsim.core.dtype import dtype, from_numpy
from dumpsim.core.errors import BadInputError

__all__ = ["decode_value", "encode_value"]

_ALLOWED = ("None", "bool", "int", "float", "str", "bytes", "arrays", "lists, tuples and dicts of them")


def encode_value(value: Any, *, where: str) -> Any:
    """Encode a value as JSON.

    Raises
    ------
    BadInputError
        For anything other than None, bool, numbers, text, bytes, arrays, and lists, tuples and dicts of them.

    Examples
    --------
    >>> decode_value(encode_value({"a": (1, np.float32(2.5), [None, b"x"])}, where="example"))
    {'a': (1, np.float32(2.5), [None, b'x'])}
    >>> encode_value([open], where="result of rank 1")
    Traceback (most recent call last):
        ...
    dumpsim.core.errors.BadInputError: result of rank 1: a value of type builtin_function_or_method cannot be sent \
to another process; allowed: None, bool, int, float, str, bytes, arrays, lists, tuples and dicts of them
    """
    if value is None or type(value) in (bool, int, float, str):
        return value
    if type(value) is list:
        return [encode_value(each, where=where) for each in value]
    if type(value) is tuple:
        return {"tuple": [encode_value(each, where=where) for each in value]}
    if type(value) is dict:
        pairs = [[encode_value(key, where=where), encode_value(each, where=where)] for key, each in value.items()]
        return {"dict": pairs}
    if type(value) is bytes:
        return {"bytes": b64encode(value).decode()}
    if isinstance(value, np.ndarray | np.generic) and value.dtype.kind in "biufcV":
        array = np.asarray(value)
        array = array.astype(array.dtype.newbyteorder("="), copy=False)
        fields = {
            "type": from_numpy(array.dtype).name,
            "shape": array.shape,
            "data": b64encode(array.tobytes()).decode(),
        }
        return {"array" if isinstance(value, np.ndarray) else "scalar": fields}
    what = f"a value of type {type(value).__name__} cannot be sent to another process"
    raise BadInputError(what, where=where, allowed=_ALLOWED)


def decode_value(given: Any) -> Any:
    """Return the value that was passed to `encode_value`."""
    if isinstance(given, list):
        return [decode_value(each) for each in given]
    if not isinstance(given, dict):
        return given
    ((kind, content),) = given.items()
    if kind == "tuple":
        return tuple(decode_value(each) for each in content)
    if kind == "dict":
        return {decode_value(key): decode_value(each) for key, each in content}
    if kind == "bytes":
        return b64decode(content)
    array = np.frombuffer(b64decode(content["data"]), dtype(content["type"]).numpy).reshape(content["shape"]).copy()
    return array if kind == "array" else array[()]
