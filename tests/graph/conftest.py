"""Networks of table operators, built by hand."""

from dataclasses import dataclass, field

import numpy as np
import pytest

from dumpsim.core.abstract import MonadType, TensorType
from dumpsim.core.dtype import dtype, from_numpy
from dumpsim.core.options import CompileOptions
from dumpsim.graph.builder import NodeMaker, constant
from dumpsim.graph.graph import Constant, Graph, Node, Parameter
from dumpsim.graph.sequence import kernel_order
from dumpsim.ops.table import find

U = MonadType(kind="U")


@dataclass
class Net:
    """A graph under construction; kernels are named as the process would."""

    graph: Graph = field(default_factory=lambda: Graph(name="kernel_graph0"))
    counts: dict = field(default_factory=dict)

    def __post_init__(self):
        self.maker = NodeMaker(find, self._name)

    def _name(self, node):
        self.graph.trail.append(node)
        number = self.counts.get(node.op_type, 0)
        self.counts[node.op_type] = number + 1
        node.full_name = f"Default/{node.op_type}-op{number}"

    def input(self, name, shape, kind="float32"):
        parameter = Parameter(name=name, abstract=TensorType(dtype=dtype(kind), shape=shape))
        self.graph.parameters.append(parameter)
        return parameter

    def weight(self, name, array):
        abstract = TensorType(dtype=from_numpy(np.asarray(array).dtype), shape=np.shape(array))
        parameter = Parameter(name=name, abstract=abstract, is_weight=True, storage=array)
        self.graph.parameters.append(parameter)
        return parameter

    def op(self, op_type, *operands, **attrs):
        return self.maker.emit(op_type, *operands, **attrs)

    def item(self, value, at):
        return self.maker.item(value, at)

    def state(self, *behind):
        """A token that stands behind other values."""
        return Node(op_type="UpdateState", operands=[Constant(value="U", abstract=U), *behind], abstract=U)

    def give(self, *outputs):
        """The outputs of the graph; returns its kernels in order."""
        self.graph.output = outputs[0] if len(outputs) == 1 else self.maker.emit("MakeTuple", *outputs)
        return kernel_order(self.graph.output)


@pytest.fixture
def net():
    return Net()


@pytest.fixture(scope="session")
def make_net():
    return Net


@pytest.fixture(scope="session")
def o2():
    """Options of a 910B that runs graphs whole."""
    from dumpsim.device.chip import chip

    return CompileOptions(
        jit_level="O2",
        pipeline="ge-private",
        cube_ops=chip("910B").cube_ops,
        cube_dtype="float16",
    )


@pytest.fixture(scope="session")
def numbers():
    return constant
