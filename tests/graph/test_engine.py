"""The hardware engine that runs a kernel."""

from dumpsim.core.abstract import TensorType
from dumpsim.core.dtype import dtype
from dumpsim.graph.engine import engine_of
from dumpsim.graph.graph import Node, Parameter
from dumpsim.ops.table import find


def relu(kind):
    abstract = TensorType(dtype=dtype(kind), shape=(2,))
    return Node(op_type="ReLU", operands=[Parameter(name="x", abstract=abstract)], abstract=abstract)


def test_number_types_without_units_go_to_the_ai_cpu():
    assert engine_of(relu("float64"), find) == "aicpu"
    assert engine_of(relu("float32"), find) == "aicore"


def test_an_operator_keeps_the_engine_of_its_definition():
    drawn = TensorType(dtype=dtype("float32"), shape=(2,))
    assert engine_of(Node(op_type="StandardNormal", operands=[], abstract=drawn), find) == "aicpu"
    assert engine_of(Node(op_type="AllReduce", operands=[], abstract=drawn), find) == "hccl"
