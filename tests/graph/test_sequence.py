"""Orders of nodes and parameters."""

import pytest
import recorded
from hypothesis import given
from hypothesis import strategies as st
from irgraph import graph_of

from dumpsim.codecs import irtext
from dumpsim.core.abstract import TensorType
from dumpsim.core.dtype import dtype
from dumpsim.graph.graph import Node, Parameter, topological
from dumpsim.graph.sequence import listed, parameter_order, plain_order

KIND = TensorType(dtype=dtype("float32"), shape=())


@pytest.mark.parametrize("name", recorded.cases())
def test_parameters_of_recorded_graphs(name):
    for text in recorded.load(name).graph_texts.values():
        graph = graph_of(irtext.parse(text))
        assert parameter_order(listed(graph.output)) == graph.parameters


@given(st.lists(st.lists(st.integers(0, 30), max_size=4), min_size=1, max_size=30))
def test_operands_come_before_their_users(links):
    nodes: list[Node] = []
    for link in links:
        operands = [nodes[i % len(nodes)] for i in link] if nodes else []
        nodes.append(Node(op_type="Add", operands=operands, abstract=KIND))
    root = Node(op_type="MakeTuple", operands=list(nodes), abstract=KIND)
    everything = {id(node) for node in topological([root])}
    for order in (listed(root), [*plain_order(root), root]):
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
    assert "".join(node.op_type for node in plain_order(join)) == expected
