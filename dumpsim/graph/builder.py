"""Building graph nodes: constants, and the `GradBuilder` that creates nodes."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dumpsim.core.abstract import (
    Abstract,
    NoneType,
    ScalarType,
    StringType,
    TensorType,
    TupleType,
    TypeType,
)
from dumpsim.core.dtype import DType, dtype, from_numpy
from dumpsim.core.errors import BadInputError
from dumpsim.graph.graph import Constant, Node, Parameter, Value
from dumpsim.graph.nodetext import NodeText
from dumpsim.ops.opdef import OpDef
from dumpsim.ops.rules import numbers_of

__all__ = ["NodeMaker", "constant"]


_VALUES = (Node, Parameter, Constant, np.ndarray)  # a tuple with one of these becomes a node


def constant(value: Any) -> Constant:
    """Create a graph constant from a host value or a numpy array.

    Examples
    --------
    >>> constant((1, 2)).abstract.value
    (1, 2)
    >>> constant(np.zeros(3, np.float32)).abstract.constant
    True
    """
    return Constant(value=value, abstract=_abstract(value))


def _abstract(value: Any) -> Abstract:
    if isinstance(value, (np.ndarray, np.generic)):
        numbers = numbers_of(np.asarray(value))
        return TensorType(dtype=from_numpy(value.dtype), shape=np.shape(value), constant=True, value=numbers)
    if value is None:
        return NoneType()
    if isinstance(value, bool):
        return ScalarType(dtype=dtype("bool"), value=value)
    if isinstance(value, int):
        return ScalarType(dtype=dtype("int64"), value=value)
    if isinstance(value, float):
        return ScalarType(dtype=dtype("float32"), value=value)
    if isinstance(value, str):
        return StringType(value=value)
    if isinstance(value, DType):
        return TypeType(value=value)
    if isinstance(value, (tuple, list)):
        return TupleType(items=tuple(_abstract(item) for item in value), value=tuple(value))
    raise BadInputError(f"{type(value).__name__} is not a constant of a graph")


class NodeMaker:
    """Creates nodes of operators; `place` sets their scope and adds them to the program.

    Parameters
    ----------
    find : callable
        The definition of an operator type.
    place : callable
        ``place(node)`` is called for every new node.
    """

    def __init__(self, find: Callable[[str], OpDef], place: Callable[[Node], None]) -> None:
        self._find = find
        self._place = place

    def definition(self, op_type: str) -> OpDef:
        """Return the definition of an operator."""
        return self._find(op_type)

    def value(self, operand: Any) -> Value:
        """Return the graph value of an operand: itself, a MakeTuple for a tuple of tensors, otherwise a constant."""
        if isinstance(operand, (Node, Parameter, Constant)):
            return operand
        if isinstance(operand, (tuple, list)) and any(isinstance(o, _VALUES) for o in operand):
            return self._tuple([self.value(o) for o in operand])
        return constant(operand)

    def emit(self, op_type: str, *operands: Any, **attrs: Any) -> Any:
        """Create a node of an operator; the operands of MakeTuple are its items."""
        if op_type == "MakeTuple":
            return self._tuple([self.value(o) for o in operands])
        definition = self._find(op_type)
        inputs = [self.value(operand) for operand in operands]
        missing = len(definition.operands) - len(inputs)
        if missing > 0:
            inputs += [constant(v) for v in definition.defaults[len(definition.defaults) - missing :]]
        keywords = {**definition.attrs, **attrs}
        node = Node(
            op_type=op_type,
            operands=inputs,
            abstract=definition.output_type([v.abstract for v in inputs], keywords),
            attrs=keywords,
            text=NodeText(given=tuple(attrs)) if attrs else None,
        )
        self._place(node)
        return node

    def item(self, value: Any, index: int) -> Any:
        """Return output `index` of a node with several outputs."""
        if isinstance(value, (tuple, list)):
            return value[index]
        assert isinstance(value.abstract, TupleType)
        node = Node(op_type="TupleGetItem", operands=[value, constant(index)], abstract=value.abstract.items[index])
        self._place(node)
        return node

    def _tuple(self, items: Sequence[Value]) -> Node:
        abstract = TupleType(items=tuple(item.abstract for item in items))
        node = Node(op_type="MakeTuple", operands=list(items), abstract=abstract)
        self._place(node)
        return node
