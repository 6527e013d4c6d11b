"""Changes of the backend in a kernel graph: casts of operands, and tuples whose items kernels take."""

from collections.abc import Mapping

import numpy as np

from dumpsim.core.abstract import ScalarType, TensorType, TypeType
from dumpsim.core.dtype import DType, dtype
from dumpsim.graph.builder import constant
from dumpsim.graph.graph import Constant, Graph, Node, Value, text_of
from dumpsim.graph.nodetext import NodeText
from dumpsim.graph.sequence import is_kernel
from dumpsim.ops.rules import type_number

__all__ = ["adapt_to_kernels"]

# number operands that kernels take as tensors of another number type [observed 2.10]
_WANTED: Mapping[str, Mapping[int, str]] = {"TopK": {1: "int32"}}
# index tensors that kernels take as another number type [observed 2.10]
_INDICES: Mapping[str, tuple[int, str, str]] = {"Gather": (1, "int64", "int32")}
# operators that the backend always recreates [spec vendor 4.2; observed 2.10: all of 39, 7, 2 nodes of the corpus]
_REMADE = frozenset({"Cast", "AdamWeightDecay", "StridedSliceGrad", "UnsortedSegmentSum", "AddExt", "SubExt"})
# tuples that kernels take as constant tensors [observed 2.10]
_AS_TENSOR: Mapping[str, int] = {
    "Conv2DBackpropInput": 2,
    "Conv2DBackpropFilter": 2,
    "PadV3": 1,
    "PadV3Grad": 1,
}

# operands with a number type, which kernels take as the vendor's number of the type [observed 2.10]
_TYPE_OPERANDS: Mapping[str, int] = {"Argmax": 2, "Argmin": 2, "Cast": 1, "Eye": 2, "Zeros": 1}


def adapt_to_kernels(graph: Graph) -> Graph:
    """Insert backend casts, and mark the nodes that the backend recreates, whose IR names get new numbers."""
    for node in graph.nodes():
        if not is_kernel(node):
            continue
        text = text_of(node)
        text.is_remade = node.op_type in _REMADE
        for place, name in _WANTED.get(node.op_type, {}).items():
            operand = node.operands[place]
            if isinstance(operand, Constant) and isinstance(operand.abstract, ScalarType):
                node.operands[place] = _cast(node, operand, dtype(name))
                text.is_remade = True
                text.node_attrs["has_dynamic_value"] = True
                text.candidate = "code"
        if node.op_type in _INDICES:
            place, given, wanted = _INDICES[node.op_type]
            operand = node.operands[place]
            if isinstance(operand.abstract, TensorType) and operand.abstract.dtype.name == given:
                node.operands[place] = _cast(node, operand, dtype(wanted))
        place_of_tuple = _AS_TENSOR.get(node.op_type)
        if place_of_tuple is not None:
            sizes = node.operands[place_of_tuple]
            if isinstance(sizes, Constant) and not isinstance(sizes.abstract, TensorType):
                node.operands[place_of_tuple] = constant(np.array(sizes.value, np.int64))
                text.is_remade = True
                text.candidate = "code"
        _number_types(node)
        if any(isinstance(o, Node) and o.op_type == "MakeTuple" for o in node.operands):
            text.is_remade = True
            text.candidate = "code"
    return graph


def _number_types(node: Node) -> None:
    """Replace number types in operands by their numbers; for a Cast only in expansions. [observed 2.10]"""
    place = _TYPE_OPERANDS.get(node.op_type)
    if place is None or (node.op_type == "Cast" and not node.scope.startswith("Expand/")):
        return
    operand = node.operands[place]
    if isinstance(operand.abstract, TypeType) and isinstance(operand, Constant):
        number = type_number(operand.value)
        if number is not None:
            node.operands[place] = constant(number)


def _cast(node: Node, operand: Value, kind: DType) -> Node:
    value = operand
    if isinstance(operand, Constant) and not isinstance(operand.abstract, TensorType):
        value = constant(np.array(operand.value, np.int64))
    assert isinstance(value.abstract, TensorType)
    return Node(
        op_type="Cast",
        operands=[value, constant(kind)],
        abstract=TensorType(dtype=kind, shape=value.abstract.shape),
        scope=node.scope,
        text=NodeText(attrs={"is_backend_cast": True}, is_backend=True),
    )
