"""Nodes with effects, and the nodes that a graph needs because of them."""

import numpy as np

from dumpsim.graph.effects import has_effect, live_nodes, own_operands, skip_depends, written_weights
from dumpsim.graph.graph import Node, text_of
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


def normalised(net, training):
    weights = [net.weight(name, np.ones(3, np.float32)) for name in ("gamma", "beta", "mean", "variance")]
    return net.op("BatchNorm", net.input("image", (2, 3, 4, 4)), *weights, training, 1e-5, 0.1, 0), weights


def test_batch_norm_writes_its_statistics_only_when_it_trains(net):
    trained, weights = normalised(net, True)
    assert has_effect(trained, find)
    assert set(map(id, written_weights(trained, find))) <= set(map(id, weights[2:]))
    evaluated, _ = normalised(net, False)
    assert not has_effect(evaluated, find)
    assert written_weights(evaluated, find) == []


def test_a_write_through_depends_is_a_write_of_the_weight(net):
    w, x = net.weight("w", np.ones(3, np.float32)), net.input("x", (3,))
    tied = Node(op_type="Depend", operands=[w, x], abstract=w.abstract)
    twice = Node(op_type="Depend", operands=[tied, w], abstract=w.abstract)
    assert skip_depends(twice) is w
    assert skip_depends(x) is x
    assign = net.op("Assign", w, x)
    assign.operands[0] = twice
    assert written_weights(assign, find) == [w]
    assign.operands[0] = x  # an argument is written, too
    assert written_weights(assign, find) == [x]
    assign.operands[0] = net.op("Exp", x)
    assert written_weights(assign, find) == []


def test_operands_that_are_formal_parameters_of_a_loop_are_not_a_nodes_own(net):
    x, y = net.input("x", (3,)), net.input("y", (3,))
    total = net.op("Add", x, y)
    assert list(own_operands(total, frozenset({"loop"}))) == [x, y]
    text_of(total).formals[y] = "loop"
    assert list(own_operands(total, frozenset())) == [x, y]
    assert list(own_operands(total, frozenset({"loop"}))) == [x]
    assert list(own_operands(total, frozenset({"other"}))) == [x, y]
    text_of(total).formals[x] = "other"
    assert list(own_operands(total, frozenset({"other", "loop"}))) == []


def test_loops_and_what_they_need_are_live(net):
    x, i = net.input("x", (3,)), net.input("i", (), "int32")
    start = net.op("Abs", x)
    net.loop({"y": start}, lambda at: net.op("Less", i, i), lambda at: {"y": net.op("Exp", at["y"])})
    dead = net.op("Tanh", start)
    net.graph.output = net.op("Exp", x)
    live = live_nodes(net.graph, find)
    assert [node.op_type for node in live] == ["Abs", "While", "Exp"]
    assert dead not in live
