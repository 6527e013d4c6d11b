"""Dropping unused parts of a network; loops and effects stay."""

import numpy as np

from dumpsim.graph.effects import DEAD
from dumpsim.graph.graph import control_of
from dumpsim.graph.mindspore.unused import drop_unused
from dumpsim.ops.table import find


def kinds(nodes):
    return [node.op_type for node in nodes if node.op_type != "TupleGetItem"]


def chosen(net, then, other):
    values = net.branch(net.input("flag", (), "bool"), then, other)
    (node,) = [node for node in net.graph.trail if node.op_type == "If"]
    return node, values


def test_nodes_that_only_a_dead_node_needs_are_dropped_with_it(net):
    x = net.input("x", (3,))
    net.op("Tanh", net.op("Exp", net.op("Neg", x)))
    kept = net.op("Abs", x)
    net.graph.output = kept
    assert drop_unused(net.graph, find).trail == [kept]


def test_a_branch_with_effects_keeps_all_outputs_since_a_token_takes_them(net):
    w, x = net.weight("w", np.ones(3, np.float32)), net.input("x", (3,))

    def then():
        net.op("Assign", w, x)
        return [net.op("Exp", x)]

    node, _ = chosen(net, then, lambda: [net.op("Neg", x)])
    net.graph.output = net.op("Exp", x)
    drop_unused(net.graph, find)
    assert kinds(net.graph.trail) == ["If", DEAD, "Exp"]  # what takes a part of the call
    assert [kinds(block.trail) for block in node.blocks] == [["Assign", "Exp"], ["Neg"]]
    assert len(node.abstract.items) == 1


def test_an_unused_read_of_a_weight_leaves_a_dead_node(net):
    w, x = net.weight("w", np.ones(3, np.float32)), net.input("x", (3,))
    net.op("Mul", x, w)
    net.op("Mul", x, x)
    net.graph.output = net.op("Abs", x)
    assert kinds(drop_unused(net.graph, find).trail) == [DEAD, "Abs"]


def test_a_branch_without_users_or_effects_is_dropped(net):
    x = net.input("x", (3,))
    chosen(net, lambda: [net.op("Exp", x)], lambda: [net.op("Neg", x)])
    net.graph.output = net.op("Abs", x)
    assert kinds(drop_unused(net.graph, find).trail) == ["Abs"]


def test_unused_outputs_of_a_branch_are_zeros(net):
    x = net.input("x", (3,))
    node, values = chosen(
        net, lambda: [net.op("Exp", x), net.op("Sin", x)], lambda: [net.op("Neg", x), net.op("Cos", x)]
    )
    net.graph.output = net.op("Abs", values[1])
    drop_unused(net.graph, find)
    assert [kinds(block.trail) for block in node.blocks] == [["Sin"], ["Cos"]]
    assert [block.output.operands[0].value for block in node.blocks] == [0, 0]
    (item,) = [each for each in net.graph.trail if each.op_type == "TupleGetItem"]
    assert (item.operands[0], item.operands[1].value, item.operands[1].abstract.value) == (node, 1, 1)


def test_a_loop_stays_with_the_variables_that_it_reads(net):
    """Nothing reads y; z is read by its own next value, so that the real one keeps it."""
    x, i = net.input("x", (3,)), net.input("i", (), "int32")
    net.loop(
        {"y": x, "i": i, "z": x},
        lambda at: net.op("Less", at["i"], i),
        lambda at: {"y": net.op("Exp", at["z"]), "i": net.op("Neg", at["i"]), "z": net.op("Sin", at["z"])},
    )
    net.graph.output = net.op("Abs", x)
    drop_unused(net.graph, find)
    assert kinds(net.graph.trail) == ["While", "Abs"]
    node = net.graph.trail[0]
    assert node.control.variables == ("i", "z")
    assert node.operands == [i, x]
    assert [len(block.parameters) for block in node.blocks] == [2, 2]
    assert kinds(node.blocks[1].trail) == ["Neg", "Sin"]


def test_a_variable_of_a_loop_stays_if_a_used_one_needs_it(net):
    x, i = net.input("x", (3,)), net.input("i", (), "int32")
    values = net.loop(
        {"y": x, "i": i, "z": x, "w": x},
        lambda at: net.op("Less", at["i"], i),
        lambda at: {"y": net.op("Exp", at["z"]), "i": net.op("Neg", at["i"]), "z": net.op("Sin", at["z"]), "w": x},
    )
    net.graph.output = net.op("Abs", values["y"])
    drop_unused(net.graph, find)
    (node,) = [each for each in net.graph.trail if each.op_type == "While"]
    assert node.control.variables == ("y", "i", "z")


def test_an_unused_output_of_a_branch_with_a_gradient_is_zero(net):
    x = net.input("x", (3,))
    node, _ = chosen(net, lambda: [net.op("Exp", x)], lambda: [net.op("Neg", x)])
    (found,) = net.branch(node.operands[0], lambda: [net.op("Abs", x)], lambda: [net.op("Cos", x)])
    backward = found.operands[0]
    backward.operands.append(node)
    control_of(node).backward = backward
    net.graph.output = found
    drop_unused(net.graph, find)
    assert [block.output.operands[0].value for block in node.blocks] == [0, 0]
    assert [kinds(block.trail) for block in node.blocks] == [[], []]


def test_what_an_unrolled_loop_passes_on_is_dropped_after_gradients(net):
    x = net.input("x", (3,))
    node, values = chosen(
        net,
        lambda: [net.op("Exp", x), net.op("Abs", x)],
        lambda: [net.op("Neg", x), net.op("Cos", x)],
    )
    control_of(node).passed.append(1)
    net.graph.output = values[0]
    drop_unused(net.graph, find, before_gradients=True)
    assert kinds(node.blocks[0].trail) == ["Exp", "Abs"]
    drop_unused(net.graph, find)
    assert kinds(node.blocks[0].trail) == ["Exp"]
