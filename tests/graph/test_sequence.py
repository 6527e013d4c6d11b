"""Orders of nodes and parameters."""

import pytest
import recorded
from hypothesis import given
from hypothesis import strategies as st

from dumpsim.codecs import irtext
from dumpsim.core.abstract import TensorType
from dumpsim.core.dtype import dtype
from dumpsim.core.irdoc import NodeRef, ParamRef
from dumpsim.graph.graph import Node, Parameter, topological
from dumpsim.graph.sequence import kernel_order, listed, parameter_order

KIND = TensorType(dtype=dtype("float32"), shape=())


def graph_of(doc):
    """A graph with the nodes and edges of a document; constants left out."""
    params = [Parameter(name=param.name, abstract=KIND) for param in doc.params]
    nodes: list[Node] = []
    for node in doc.nodes:
        operands = [
            nodes[operand.index] if isinstance(operand, NodeRef) else params[operand.index]
            for operand in node.operands
            if isinstance(operand, NodeRef | ParamRef)
        ]
        nodes.append(Node(op_type=node.op_type, operands=operands, abstract=KIND, full_name=node.full_name))
    return params, nodes[-1]


@pytest.mark.parametrize("name", recorded.cases())
def test_parameters_of_recorded_graphs(name):
    for text in recorded.load(name).graph_texts.values():
        params, root = graph_of(irtext.parse(text))
        found = parameter_order(listed(root))
        assert [p.name for p in found] == [p.name for p in params]


FORWARD = ["simple_3steps", "lenet_fwd", "longname", "iter_ABAB", "dtypes", "control_flow"]


@pytest.mark.parametrize("name", FORWARD)
def test_execution_order_of_recorded_graphs(name):
    case = recorded.load(name)
    orders = case.execution_order
    for key, text in case.graph_texts.items():
        number = key.rsplit("_", 1)[1].removesuffix(".ir")
        expected = next(v for k, v in orders.items() if k.endswith(f"ms_execution_order_graph_{number}.csv"))
        names = [node.full_name for node in kernel_order(graph_of(irtext.parse(text))[1])]
        assert names == expected.splitlines()[1:]


@given(st.lists(st.lists(st.integers(0, 30), max_size=4), min_size=1, max_size=30))
def test_operands_come_before_their_users(links):
    nodes: list[Node] = []
    for link in links:
        operands = [nodes[i % len(nodes)] for i in link] if nodes else []
        nodes.append(Node(op_type="Add", operands=operands, abstract=KIND))
    root = Node(op_type="MakeTuple", operands=list(nodes), abstract=KIND)
    everything = {id(node) for node in topological([root])}
    for order in (listed(root), [*kernel_order(root), root]):
        assert {id(node) for node in order} == everything
        place = {id(node): at for at, node in enumerate(order)}
        for node in order:
            assert all(place[id(operand)] < place[id(node)] for operand in node.operands)


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [(3, 1, "AAABJ"), (1, 3, "BBBAJ"), (3, 3, "AAABBBJ"), (5, 2, "AAAAABBJ"), (2, 5, "BBBBBAAJ")],
)
def test_independent_chains(first, second, expected):
    """The longer chain first, of equal ones that of the first operand. [observed 2.10]"""
    start = Parameter(name="x", abstract=KIND)

    def chain(op_type, length):
        value = start
        for _ in range(length):
            value = Node(op_type=op_type, operands=[value], abstract=KIND)
        return value

    join = Node(op_type="J", operands=[chain("A", first), chain("B", second)], abstract=KIND)
    assert "".join(node.op_type for node in kernel_order(join)) == expected
