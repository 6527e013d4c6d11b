"""Nodes with effects, and the nodes that a graph needs because of them."""

import numpy as np

from dumpsim.graph.effects import has_effect, live_nodes, written_weights
from dumpsim.ops.table import find


def writing(net):
    w = net.weight("w", np.ones(3, np.float32))
    x, flag = net.input("x", (3,)), net.input("flag", (), "bool")

    def then():
        net.op("Assign", w, x)
        return [net.op("Exp", x)]

    net.branch(flag, then, lambda: [net.op("Neg", x)])
    (node,) = [node for node in net.graph.trail if node.op_type == "If"]
    return node, w, x


def test_a_control_node_has_the_effects_of_its_blocks(net):
    node, w, x = writing(net)
    assert has_effect(node, find)
    assert written_weights(node, find) == [w]
    assert not has_effect(net.op("Exp", x), find)
    assert written_weights(net.op("Exp", x), find) == []


def test_live_nodes_are_what_the_output_or_an_effect_needs(net):
    node, _, x = writing(net)
    dead = net.op("Tanh", x)
    net.graph.output = net.op("Exp", x)
    live = live_nodes(net.graph, find)
    assert node in live
    assert net.graph.output in live
    assert dead not in live
