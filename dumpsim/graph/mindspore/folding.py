"""Operators that the vendor's compiler evaluates if all of their operands are constants."""

from collections.abc import Sequence

import numpy as np

from dumpsim.core.abstract import Abstract, TensorType
from dumpsim.graph.builder import constant
from dumpsim.graph.graph import Constant, Node, Value
from dumpsim.ops.opdef import OpDef
from dumpsim.ops.rules import constant as host_value

__all__ = ["fold", "folds", "is_foldable", "result_of"]

# primitives whose type inference returns a value, too; all others (Exp, MatMul, Transpose, ExpandDims) are kernels
# [source core/ops/ops_frontend_func_impl; run on 2.10 with each of them on constant tensors]
_FOLDED = frozenset(
    {
        *("Abs", "BroadcastTo", "Cast", "Concat", "Diag", "Div", "DivMod", "Divs", "EqScalar", "GatherD", "LessScalar"),
        *("Log", "Max", "MeanExt", "Min", "Muls", "Neg", "ProdExt", "Reciprocal", "ReduceAll", "ReduceAny"),
        *("ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum", "Reshape", "Select", "Softmax", "Sqrt"),
        *("Stack", "SumExt", "Tile"),
    }
)
# elementwise primitives, which are not folded if the operands have two different shapes
_FOLDED_ALIKE = frozenset(
    {
        *("Add", "Equal", "Greater", "GreaterEqual", "Less", "LessEqual", "Minimum", "Mul", "NotEqual", "RealDiv"),
        "Sub",
    }
)


def folds(op_type: str, operands: Sequence[Value]) -> bool:
    """Whether the compiler computes an operator on these operands."""
    known = [item for operand in operands for item in _items(operand)]
    if not all(isinstance(item, Constant) for item in known):
        return False
    shapes = {item.abstract.shape for item in known if isinstance(item.abstract, TensorType)}
    return op_type in _FOLDED or (op_type in _FOLDED_ALIKE and len(shapes) == 1)


def is_foldable(node: Node) -> bool:
    """Whether the result of a node is a tensor that is known at compile time.

    A bool tensor is not folded: a condition on a constant tensor is not decided at compile time either, and a loop that
    begins with one stays a loop. [observed 2.10]
    """
    if not isinstance(node.abstract, TensorType) or node.abstract.dtype.name == "bool":
        return False
    tensors = any(isinstance(item.abstract, TensorType) for operand in node.operands for item in _items(operand))
    return tensors and folds(node.op_type, node.operands)


def fold(node: Node, definition: OpDef) -> Constant:
    """Return the result of a node on constants."""
    return result_of(node.operands, definition, node.attrs, node.abstract)


def result_of(operands: Sequence[Value], definition: OpDef, attrs: dict[str, object], abstract: Abstract) -> Constant:
    """Return the result of an operator on constants."""
    assert isinstance(abstract, TensorType)
    values = (tuple(map(host_value, _items(v))) if isinstance(v, Node) else host_value(v) for v in operands)
    return constant(np.array(definition.kernel(*values, **attrs), abstract.dtype.numpy))


def _items(operand: Value) -> Sequence[Value]:
    """Return the items of a tuple, or the operand."""
    return operand.operands if isinstance(operand, Node) and operand.op_type == "MakeTuple" else (operand,)
