"""Variables of captured functions: unbound, changed by a branch, or carried by a loop."""

from typing import Any

import numpy as np

from dumpsim.core.abstract import TensorType, TupleType
from dumpsim.core.dtype import from_numpy
from dumpsim.core.errors import CaptureError
from dumpsim.frontends.mindspore._capture import values
from dumpsim.graph.graph import Node, Value

__all__ = ["Unbound", "bundle", "filled", "is_carried", "refuse_unbound", "same", "tensor_type", "tensors_of", "zeros"]


class Unbound:
    """A variable without a value, or with a value on one side of a branch only."""

    __slots__ = ("_name", "_why")

    def __init__(self, name: str, why: str = "") -> None:
        object.__setattr__(self, "_name", name)
        object.__setattr__(self, "_why", why)

    def __getattr__(self, attribute: str) -> Any:
        raise UnboundLocalError(
            self._why or f"cannot access local variable {self._name!r} where it is not associated with a value"
        )

    def _fail(self, *_: Any) -> Any:
        return self.__getattr__("")

    __bool__ = __len__ = __iter__ = __getitem__ = __call__ = _fail
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _fail


def tensor_type(value: Value) -> TensorType:
    """Return the type of a tensor value, without marks of weights and constants."""
    abstract = value.abstract
    assert isinstance(abstract, TensorType)
    return TensorType(dtype=abstract.dtype, shape=abstract.shape)


def bundle(items: list[Value]) -> Node:
    """Return the outputs of a block as one value; the node is not a part of the program."""
    return Node(op_type="MakeTuple", operands=items, abstract=TupleType(items=tuple(v.abstract for v in items)))


def same(a: Any, b: Any) -> bool:
    """Whether two values are the same constant."""
    if values.is_tensor(a) or values.is_tensor(b):
        return values.is_tensor(a) and values.is_tensor(b) and a._symbol is not None and a._symbol is b._symbol
    if isinstance(a, (tuple, list)) and isinstance(b, (tuple, list)):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return False
    return type(a) is type(b) and bool(a == b)


def tensors_of(value: Any) -> list[Any]:
    """Return the tensors of a variable's value; numbers become constant tensors."""
    if isinstance(value, (bool, int, float)):
        return [_lifted(value)]
    if isinstance(value, (tuple, list)):
        return [t for element in value for t in tensors_of(element)]
    if values.is_tensor(value):
        return [value]
    if value is None or isinstance(value, str):
        return []
    raise CaptureError(f"a variable of type {type(value).__name__} cannot change under a condition on a tensor")


def _lifted(value: Any) -> Any:
    kind = np.bool_ if isinstance(value, bool) else np.int64 if isinstance(value, int) else np.float32
    array = np.array(value, kind)
    return values.tensor_of_array(array, from_numpy(array.dtype))


def filled(structure: Any, fresh: list[Any]) -> Any:
    """Replace the tensors and numbers of a structure, in the order of `tensors_of`."""
    if isinstance(structure, (tuple, list)):
        parts, rest = [], list(fresh)
        for element in structure:
            count = len(tensors_of(element))
            parts.append(filled(element, rest[:count]))
            del rest[:count]
        return type(structure)(parts)
    return fresh[0] if fresh else structure


def is_carried(value: Any) -> bool:
    """Whether a variable contains a tensor, which a loop passes between its iterations."""
    return any(True for _ in values.tensors_in(value))


def zeros(value: Any) -> Any:
    """Return a value of the same structure, with zeros for its tensors and numbers."""
    blank = [np.zeros(tensor._shape, tensor._dtype.numpy) for tensor in tensors_of(value)]
    return filled(value, [values.tensor_of_array(array, from_numpy(array.dtype)) for array in blank])


def refuse_unbound(value: Any) -> None:
    """Raise for a result of a network that only some of its paths define."""
    if isinstance(value, Unbound):
        value._fail()
    for element in value if isinstance(value, (tuple, list)) else ():
        refuse_unbound(element)
