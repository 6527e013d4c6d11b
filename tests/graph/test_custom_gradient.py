"""Values whose gradient the script defines."""

import numpy as np

from dumpsim.core.abstract import TupleType
from dumpsim.graph.builder import constant
from dumpsim.graph.custom_gradient import CUSTOM_GRADIENT, custom_gradient, drop_custom_gradients
from dumpsim.graph.gradient import reverse
from dumpsim.graph.graph import Graph, Node, Parameter
from dumpsim.graph.mindspore.gradient_nodes import NodeBuilder
from dumpsim.ops.table import find


def bundle(values):
    kinds = tuple(value.abstract for value in values)
    return Node(op_type="MakeTuple", operands=values, abstract=TupleType(items=kinds))


def test_the_rule_gives_the_gradient_of_the_inputs(net):
    x = net.input("x", (3,))
    y = net.op("Exp", x)
    with net.block("gradient") as rule:
        given = Parameter(name="", abstract=y.abstract)
        rule.parameters.append(given)
        rule.output = bundle([net.op("Mul", net.op("Neg", given), y)])
    node = custom_gradient([y], [x], rule)
    net.place(node)
    output = net.item(node, 0)
    for _ in range(2):  # the rule is used once more, not used up
        made = []
        seed = constant(np.full(3, 2, np.float32))
        (found,) = reverse(output, seed, [x], NodeBuilder(find, made.append, {}))
        assert [node.op_type for node in made] == ["Neg", "Mul"]
        assert made[0].operands == [seed]
        assert made[1].operands == [made[0], y]
        assert found is made[1]


def test_an_input_that_the_rule_leaves_out_has_no_gradient(net):
    x, w = net.input("x", (3,)), net.input("w", (3,))
    y = net.op("Mul", x, w)
    rule = Graph(parameters=[Parameter(name="", abstract=y.abstract)])
    rule.output = bundle([rule.parameters[0], constant(None)])
    node = custom_gradient([y], [x, w], rule)
    net.place(node)
    seed = constant(np.ones(3, np.float32))
    found = reverse(net.item(node, 0), seed, [x, w], NodeBuilder(find, net.place, {}))
    assert found == [seed, None]


def test_programs_contain_the_outputs_directly_also_in_blocks(net):
    x, flag = net.input("x", (3,)), net.input("flag", (), "bool")

    def hidden():
        value = net.op("Exp", x)
        node = custom_gradient([value], [x], None)
        net.place(node)
        return [net.op("Neg", net.item(node, 0))]

    net.branch(flag, hidden, hidden)
    net.give(*hidden())
    graph = drop_custom_gradients(net.graph)
    (control,) = [node for node in graph.trail if node.op_type == "If"]
    for nodes in (graph.trail, *(block.trail for block in control.blocks)):
        assert CUSTOM_GRADIENT not in [node.op_type for node in nodes]
        (neg,) = [node for node in nodes if node.op_type == "Neg"]
        assert neg.operands[0].op_type == "Exp"
