"""Networks of table operators, built by hand."""

from contextlib import contextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace

import numpy as np
import pytest

from dumpsim.core.abstract import MonadType, TensorType, TupleType
from dumpsim.core.dtype import dtype, from_numpy
from dumpsim.core.options import CompileOptions
from dumpsim.graph.builder import NodeMaker, constant
from dumpsim.graph.graph import Constant, Control, Graph, Node, Parameter
from dumpsim.graph.mindspore.order import kernel_order
from dumpsim.ops.table import find

U = MonadType(kind="U")


@dataclass
class Net:
    """A graph under construction; kernels are named as the process would."""

    graph: Graph = field(default_factory=lambda: Graph(name="kernel_graph0"))
    counts: dict = field(default_factory=dict)

    def __post_init__(self):
        self.maker = NodeMaker(find, self.place)
        self._open = [self.graph]

    def place(self, node):
        """Put a node into the innermost block."""
        self._open[-1].trail.append(node)
        number = self.counts.get(node.op_type, 0)
        self.counts[node.op_type] = number + 1
        node.full_name = f"Default/{node.op_type}-op{number}"

    def input(self, name, shape, kind="float32"):
        parameter = Parameter(name=name, abstract=TensorType(dtype=dtype(kind), shape=shape))
        self.graph.parameters.append(parameter)
        return parameter

    def weight(self, name, array):
        abstract = TensorType(dtype=from_numpy(np.asarray(array).dtype), shape=np.shape(array))
        parameter = Parameter(name=name, abstract=abstract, is_weight=True, storage=SimpleNamespace(_array=array))
        self.graph.parameters.append(parameter)
        return parameter

    def op(self, op_type, *operands, **attrs):
        return self.maker.emit(op_type, *operands, **attrs)

    def item(self, value, at):
        return self.maker.item(value, at)

    @contextmanager
    def block(self, name):
        """A graph that takes the nodes that are made inside."""
        self._open.append(Graph(name=name))
        yield self._open[-1]
        self._open.pop()

    def branch(self, condition, then, other):
        """The outputs of an ``if``; `then` and `other` make the nodes of its sides and return lists of values."""
        blocks = []
        for name, side in (("then", then), ("else", other)):
            with self.block(name) as graph:
                graph.output = bundle(side())
            blocks.append(graph)
        node = Node(op_type="If", operands=[condition], abstract=blocks[0].output.abstract, blocks=tuple(blocks))
        self.place(node)
        return [self.item(node, at) for at in range(len(node.abstract.items))]

    def loop(self, start, test, body):
        """The variables after a ``while``, by name; `test` and `body` take and return such mappings."""
        blocks = []
        for name, part in (("test", lambda inside: {"": test(inside)}), ("body", body)):
            with self.block(name) as graph:
                inside = {key: Parameter(name=key, abstract=value.abstract) for key, value in start.items()}
                graph.parameters.extend(inside.values())
                graph.output = bundle(part(inside).values())
            blocks.append(graph)
        kind = TupleType(items=tuple(value.abstract for value in start.values()))
        control = Control(variables=tuple(start))
        node = Node(
            op_type="While", operands=list(start.values()), abstract=kind, blocks=tuple(blocks), control=control
        )
        self.place(node)
        return {key: self.item(node, at) for at, key in enumerate(start)}

    def state(self, *behind):
        """Create a token that depends on other values."""
        return Node(op_type="UpdateState", operands=[Constant(value="U", abstract=U), *behind], abstract=U)

    def give(self, *outputs):
        """The outputs of the graph; returns its kernels in order."""
        self.graph.output = outputs[0] if len(outputs) == 1 else self.maker.emit("MakeTuple", *outputs)
        return kernel_order(self.graph.output)


def bundle(values):
    """A tuple that is not a part of the program."""
    values = list(values)
    return Node(op_type="MakeTuple", operands=values, abstract=TupleType(items=tuple(v.abstract for v in values)))


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
