"""Values whose gradient the script writes itself."""

import numpy as np

from dumpsim.graph.builder import constant
from dumpsim.graph.custom_gradient import CUSTOM_GRADIENT, custom_gradient, drop_custom_gradients
from dumpsim.graph.gradient import reverse
from dumpsim.graph.mindspore.gradient_nodes import NodeBuilder
from dumpsim.ops.table import find


def test_the_rule_gives_the_gradient_of_the_inputs(net):
    x = net.input("x", (3,))
    asked = []

    def rule(builder, node, dout):
        asked.append(node.op_type)
        return [builder.emit("Neg", dout[0] if isinstance(dout, tuple) else dout.items[0])]

    node = custom_gradient([net.op("Exp", x)], [x], rule)
    net.place(node)
    output = net.item(node, 0)
    made = []
    (found,) = reverse(output, constant(np.ones(3, np.float32)), [x], NodeBuilder(find, made.append, {}))
    assert asked == [CUSTOM_GRADIENT]
    assert [node.op_type for node in made] == ["Neg"]
    assert found is made[0]


def test_programs_hold_the_outputs_themselves_in_blocks_too(net):
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
