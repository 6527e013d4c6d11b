"""The document of a kernel graph: names, numbers, attributes, constants."""

from itertools import count

import numpy as np
import pytest

from dumpsim.core.abstract import FunctionType, TensorType
from dumpsim.core.dtype import dtype
from dumpsim.core.irdoc import ConstRef, NodeRef, ParamRef
from dumpsim.graph.graph import Graph, Node, Parameter, text_of
from dumpsim.graph.mindspore.document import document, outline
from dumpsim.graph.nodetext import NodeText
from dumpsim.ops.table import find
from tests.graph.compiled import root_of

FLOAT = dtype("float32")


@pytest.fixture
def shown(net):
    """The document of a net with these outputs, after side effects are in order; nodes take numbers from 8."""

    def shown(*outputs, root=True):
        net.give(*outputs)
        graph = root_of(net.graph, woven_only=True)
        numbers = count(8)
        return document(graph, 3, "Default/Return-op1", find=find, number=lambda: next(numbers), root=root)

    return shown


def node_of(doc, op_type):
    (found,) = [node for node in doc.nodes if node.op_type == op_type]
    return found


def test_operands_are_nodes_parameters_and_constants_of_the_document(net, shown):
    x = net.input("x", (2, 3))
    doc = shown(net.op("Add", net.op("Exp", x), np.float32(2)))
    assert (doc.name, doc.graph_id) == ("kernel_graph3", 3)
    assert [node.op_type for node in doc.nodes] == ["Exp", "Add", "Return"]
    assert node_of(doc, "Exp").operands == (ParamRef(index=0),)
    first, second = node_of(doc, "Add").operands
    assert first == NodeRef(index=0)
    assert isinstance(second, ConstRef)
    assert second.value == np.float32(2)
    assert node_of(doc, "Return").full_name == "Default/Return-op1"


def test_only_nodes_without_a_variable_take_a_number(net, shown):
    x = net.input("x", (2, 3))
    named = net.op("Exp", x)
    text_of(named).variable = "y"
    doc = shown(net.op("Neg", named))
    assert [node.name for node in doc.nodes] == ["y", "CNode_8", "CNode_9"]
    assert doc.order == ("@kernel_graph3:CNode_9{[0]: ValueNode<Primitive> Return, [1]: CNode_8}",)


def test_nodes_of_the_front_end_of_the_root_carry_checkpoint(net, shown):
    x = net.input("x", (2, 3))
    made = net.op("Exp", x)
    made.text = NodeText(is_backend=True)
    output = net.op("Neg", made)
    assert [dict(n.node_attrs).get("checkpoint") for n in shown(output).nodes[:2]] == [None, True]


def test_nodes_of_branches_carry_no_checkpoint(net, shown):
    doc = shown(net.op("Exp", net.input("x", (2, 3))), root=False)
    assert "checkpoint" not in dict(doc.nodes[0].node_attrs)


def test_text_of_a_node_is_in_its_line(net, shown):
    made = net.op("Exp", net.input("x", (2, 3)))
    text = text_of(made)
    text.full_name, text.instance_name, text.candidate = "Default/exp-op5", "exp", "code"
    text.attrs["mine"] = 3
    node = shown(made).nodes[0]
    assert (node.full_name, node.instance_name, node.candidate) == ("Default/exp-op5", "exp", "code")
    assert dict(node.primitive_attrs)["mine"] == 3
    made.text.full_name = ""
    assert made.ir_name == made.full_name


def test_weights_are_references_where_a_kernel_writes_them(net, shown):
    w = net.weight("w", np.ones((2,), np.float32))
    v = net.weight("v", np.ones((2,), np.float32))
    assign = net.op("Assign", w, net.op("Exp", v))
    doc = shown(assign)
    assert {param.name: param.abstract.inplace for param in doc.params} == {"w": True, "v": False}
    assert all(param.is_weight and param.device.dtype == "Unknown" for param in doc.params)
    assert dict(node_of(doc, "Assign").primitive_attrs)["side_effect_mem"] is True


def test_a_kernel_takes_the_members_of_a_tuple_one_by_one(net, shown):
    x, y = net.input("x", (2, 3)), net.input("y", (2, 3))
    doc = shown(net.op("Concat", (x, y), 0))
    assert [node.op_type for node in doc.nodes] == ["Concat", "Return"]
    concat = node_of(doc, "Concat")
    assert concat.operands[:2] == (ParamRef(index=0), ParamRef(index=1))
    assert dict(concat.primitive_attrs)["dyn_input_sizes"][0] == 2


def test_equal_constants_are_counted_once(net, shown):
    x = net.input("x", (2, 3))
    one = shown(net.op("Mul", net.op("Add", x, np.float32(2)), np.float32(2)))
    assert one.total_nodes == 2 * 3 + 1 + 1
    assert one.total_cnodes == 3


def test_an_outline_shows_blocks_and_takes_no_number(net):
    x, flag = net.input("x", (3,)), net.input("flag", (), "bool")
    (middle,) = net.branch(flag, lambda: [net.op("Tanh", x)], lambda: [net.op("Neg", x)])
    net.give(middle)
    docs = outline(net.graph, find)
    assert [doc.name for doc in docs] == ["kernel_graph0", "then", "else"]
    assert [[n.op_type for n in doc.nodes if n.op_type in ("If", "Tanh", "Neg")] for doc in docs] == [
        ["If"], ["Tanh"], ["Neg"]
    ]  # fmt: skip
    assert outline(Graph(), find) == []


def test_an_outline_shows_functions_among_the_parameters(net):
    # what a differentiated branch gives besides its output
    given = Parameter(name="given", abstract=FunctionType())
    call = Node(op_type="Call", operands=[given, net.input("x", (2,))], abstract=TensorType(dtype=FLOAT, shape=(2,)))
    (doc,) = outline(Graph(name="net", output=call), find)
    assert [(param.name, param.device.dtype, param.device.shape) for param in doc.params] == [
        ("given", "Unknown", ()),
        ("x", "Float32", (2,)),
    ]
