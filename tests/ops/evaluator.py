"""Runs operators at once, with their gradients and expansions: the smallest thing that can hold a graph."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from ops.cases import Case, Draw, Kind

from dumpsim.core.abstract import Abstract, NoneType, ScalarType, TensorType, TupleType, TypeType, tensors_of
from dumpsim.core.dtype import DType, dtype, from_numpy
from dumpsim.ops.expand import expand
from dumpsim.ops.opdef import OpDef
from dumpsim.ops.table import find

__all__ = ["Builder", "Value", "operands_of"]


@dataclass(eq=False, slots=True)
class Value:
    """What a node gave: its type, its array or arrays, and where it came from."""

    abstract: Abstract
    content: Any
    op: str = ""
    inputs: tuple["Value", ...] = ()


def abstract_of(value: Any) -> Abstract:
    """The type of a Python value as an operand."""
    if isinstance(value, Value):
        return value.abstract
    if isinstance(value, DType):
        return TypeType(value=value)
    if value is None:
        return NoneType()
    if isinstance(value, np.ndarray | np.generic):
        return TensorType(dtype=from_numpy(value.dtype), shape=value.shape, constant=True)
    if isinstance(value, bool | int | float):
        kind = "bool" if isinstance(value, bool) else "int64" if isinstance(value, int) else "float32"
        return ScalarType(dtype=dtype(kind), value=value)
    items = tuple(abstract_of(item) for item in value)
    return TupleType(items=items, value=None if any(isinstance(v, Value) for v in value) else tuple(value))


def content_of(value: Any) -> Any:
    if isinstance(value, Value):
        return value.content
    return tuple(content_of(v) for v in value) if isinstance(value, tuple) else value


def values_in(value: Any) -> list[Value]:
    if isinstance(value, Value):
        return [value]
    return [v for item in value for v in values_in(item)] if isinstance(value, tuple) else []


def check(definition: OpDef, abstract: Abstract, result: Any) -> None:
    """The kernel gives what the shape rule says; a dimension of -1 may be anything."""
    arrays = result if isinstance(result, tuple) else (result,)
    tensors = tensors_of(abstract)
    if not tensors:
        assert isinstance(abstract, ScalarType | TupleType), (definition.name, abstract)
        return
    assert len(arrays) == len(tensors), definition.name
    for array, tensor in zip(arrays, tensors, strict=True):
        shape = np.shape(array)
        assert len(shape) == len(tensor.shape), (definition.name, shape, tensor.shape)
        assert all(n in (m, -1) for n, m in zip(tensor.shape, shape, strict=True)), (
            definition.name,
            shape,
            tensor.shape,
        )
        kind = "float32" if tensor.dtype.name in ("float16", "bfloat16") else tensor.dtype.name
        assert np.asarray(array).dtype.name in (kind, tensor.dtype.name), (definition.name, np.asarray(array).dtype)


@dataclass(slots=True)
class Builder:
    """Runs every node when it is emitted; `expanding` replaces composite operators as the compiler does."""

    expanding: bool = False
    made: list[Value] = field(default_factory=list)

    def emit(self, op_type: str, *operands: Any, **attrs: Any) -> Any:
        definition = find(op_type)
        missing = len(definition.operands) - len(operands)
        if missing and not definition.operands[0].startswith("*"):
            operands = (*operands, *definition.defaults[len(definition.defaults) - missing :])
        merged = dict(definition.attrs) | attrs
        assert set(attrs) <= set(definition.attrs), (op_type, attrs)
        abstracts = [abstract_of(o) for o in operands]
        abstract = definition.infer(abstracts, merged)
        if self.expanding and definition.composite:
            replaced = expand(self, op_type, operands, abstract)
            assert [(t.dtype, t.shape) for t in tensors_of(replaced.abstract)] == [
                (t.dtype, t.shape) for t in tensors_of(abstract)
            ], op_type
            return replaced
        contents = [
            np.array(content_of(o)) if at in definition.updates else content_of(o) for at, o in enumerate(operands)
        ]
        result = definition.kernel(*contents, **merged)
        if op_type not in ("MakeTuple",):
            check(definition, abstract, result)
        if isinstance(result, tuple):
            result = tuple(np.asarray(r) for r in result) if isinstance(abstract, TupleType) else result
        elif isinstance(abstract, TensorType):
            result = np.asarray(result)
        node = Value(abstract, result, op_type, tuple(values_in(tuple(operands))))
        self.made.append(node)
        return node

    def item(self, value: Any, index: int) -> Any:
        return self.emit("TupleGetItem", value, index)

    @property
    def in_graph(self) -> bool:
        return True

    def choose(self, condition: Any, one: Any, other: Any) -> Any:
        return one() if bool(content_of(condition)) else other()

    def gradients(self, case: Case, operands: Sequence[Any], out: Value, dout: Any) -> Sequence[Any]:
        definition = find(case.op)
        assert definition.grad is not None, case.op
        return definition.grad(self, operands, out, dout, dict(definition.attrs) | dict(case.attrs))


def operands_of(case: Case, arrays: Sequence[np.ndarray[Any, Any]]) -> list[Any]:
    """The operands of a case with these tensors."""
    left = list(arrays)

    def made(operand: Any) -> Any:
        if isinstance(operand, Draw):
            array = left.pop(0)
            return Value(TensorType(dtype=from_numpy(array.dtype), shape=array.shape), array)
        if isinstance(operand, Kind):
            return dtype(operand.name)
        if isinstance(operand, tuple) and any(isinstance(o, Draw) for o in operand):
            return tuple(made(o) for o in operand)
        return operand

    return [made(operand) for operand in case.operands]
