"""Operators that the vendor's compiler computes at once where all of their operands are constants."""

import numpy as np

from dumpsim.core.abstract import TensorType
from dumpsim.graph.builder import constant
from dumpsim.graph.graph import Constant, Node
from dumpsim.ops.opdef import OpDef
from dumpsim.ops.rules import constant as host_value

__all__ = ["fold", "is_foldable"]

# others, ReLU, Exp or MatMul, are kernels all the same [observed 2.10: tensors in tuples, and tensors that are
# attributes of a cell]
_FOLDED = frozenset({"Add", "Mul", "Muls", "Reshape"})


def is_foldable(node: Node) -> bool:
    """Whether a node gives a tensor that is known at compile time."""
    constants = all(isinstance(value, Constant) for value in node.operands)
    known = constants and any(isinstance(value.abstract, TensorType) for value in node.operands)
    return known and node.op_type in _FOLDED and isinstance(node.abstract, TensorType)


def fold(node: Node, definition: OpDef) -> Constant:
    """The result of an operator on constants."""
    assert isinstance(node.abstract, TensorType)
    result = definition.kernel(*(host_value(value) for value in node.operands), **node.attrs)
    return constant(np.array(result, node.abstract.dtype.numpy))
