"""Dropping unused parts of a network; loops and effects stay."""

import numpy as np
import pytest

from dumpsim.core.abstract import TupleType
from dumpsim.graph.effects import DEAD
from dumpsim.graph.graph import Constant, Node, control_of
from dumpsim.graph.mindspore.unused import Effects, drop_unused
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


def looped(net, **control):
    """A loop of which only the second variable is read, and its parts."""
    x, i = net.input("x", (3,)), net.input("i", (), "int32")
    values = net.loop(
        {"y": x, "i": i},
        lambda at: net.op("Less", at["i"], i),
        lambda at: {"y": net.op("Exp", x), "i": net.op("Neg", at["i"])},
    )
    (node,) = [each for each in net.graph.trail if each.op_type == "While"]
    for name, value in control.items():
        setattr(node.control, name, value)
    net.graph.output = net.op("Abs", values["i"])
    drop_unused(net.graph, find)
    (part,) = [each for each in net.graph.trail if each.op_type == "TupleGetItem"]
    return node, part.operands[1].value


def test_a_loop_without_a_gradient_loses_a_variable_that_nothing_reads(net):
    node, place = looped(net)
    assert node.control.variables == ("i",)
    assert kinds(node.blocks[1].trail) == ["Neg"]
    assert place == 0


@pytest.mark.parametrize("control", ["backward", "unwinds", "saved"])
def test_a_loop_with_a_gradient_or_that_is_one_keeps_all_variables(net, control):
    other = Node(op_type="Exp", operands=[], abstract=TupleType(items=()))
    node, place = looped(net, **{control: {"backward": other, "unwinds": [other], "saved": [0]}[control]})
    assert node.control.variables == ("y", "i")
    assert kinds(node.blocks[1].trail) == ["Exp", "Neg"]
    assert len(node.abstract.items) == len(node.operands) == 2
    assert place == 1


def test_a_loop_whose_block_has_outputs_for_its_gradient_keeps_all_variables(net):
    x, i = net.input("x", (3,)), net.input("i", (), "int32")
    net.loop(
        {"y": x, "i": i},
        lambda at: net.op("Less", at["i"], i),
        lambda at: {"y": net.op("Exp", x), "i": net.op("Neg", at["i"])},
    )
    (node,) = [each for each in net.graph.trail if each.op_type == "While"]
    node.blocks[1].results = 2
    net.graph.output = net.op("Abs", x)
    drop_unused(net.graph, find)
    assert node.control.variables == ("y", "i")
    assert kinds(node.blocks[1].trail) == ["Exp", "Neg"]


def test_a_branch_with_a_gradient_and_a_loop_keeps_what_its_sides_give(net):
    """The functions of loops inside are left as they are."""
    x, i = net.input("x", (3,)), net.input("i", (), "int32")

    def then():
        values = net.loop({"i": i}, lambda at: net.op("Less", at["i"], i), lambda at: {"i": net.op("Neg", at["i"])})
        return [net.op("Exp", x), values["i"]]

    node, values = chosen(net, then, lambda: [net.op("Cos", x), i])
    control_of(node).backward = node
    net.graph.output = net.op("Abs", values[1])
    drop_unused(net.graph, find)
    assert [kinds(block.trail) for block in node.blocks] == [["While", "Exp"], ["Cos"]]
    assert [len(block.output.operands) for block in node.blocks] == [2, 2]
    assert not any(isinstance(value, Constant) for block in node.blocks for value in block.output.operands)


@pytest.mark.parametrize("op_type", ["Unwind", "Invoke"])
def test_gradients_of_loops_and_calls_of_shared_functions_keep_all_results(net, op_type):
    x = net.input("x", (3,))
    node, values = chosen(net, lambda: [net.op("Exp", x), net.op("Sin", x)], lambda: [x, net.op("Cos", x)])
    node.op_type = op_type
    net.graph.output = net.op("Abs", values[1])
    drop_unused(net.graph, find)
    assert [kinds(block.trail) for block in node.blocks] == [["Exp", "Sin"], ["Cos"]]
    (part,) = [each for each in net.graph.trail if each.op_type == "TupleGetItem"]
    assert part.operands[1].value == 1


def test_a_value_that_a_branch_gives_on_is_read(net):
    """It is an argument of the code after the branch, even if that does not read it."""
    x = net.input("x", (3,))
    made = {}

    def then():
        made.update(given=net.op("Exp", x), lost=net.op("Sin", x))
        return [made["given"]]

    chosen(net, then, lambda: [net.op("Neg", x)])
    net.graph.output = net.op("Abs", x)
    effects = Effects(net.graph, find)
    assert not effects.is_isolated(made["given"])
    assert effects.is_isolated(made["lost"])
    assert not effects.is_isolated(net.graph.output)


@pytest.mark.parametrize(("how", "is_read"), [("break", False), ("continue", True), ("", True)])
def test_a_side_that_breaks_gives_on_what_the_code_after_the_loop_reads(net, how, is_read):
    x, i = net.input("x", (3,)), net.input("i", (), "int32")
    made = {}

    def body(at):
        def then():
            made.update(y=net.op("Exp", at["y"]), i=net.op("Neg", at["i"]))
            return [made["y"], made["i"]]

        values = net.branch(net.op("Less", at["i"], i), then, lambda: [at["y"], at["i"]])
        return dict(zip("yi", values, strict=True))

    values = net.loop({"y": x, "i": i}, lambda at: net.op("Less", at["i"], i), body)
    (node,) = [each for each in net.graph.trail if each.op_type == "While"]
    (inner,) = [each for each in node.blocks[1].trail if each.op_type == "If"]
    control_of(inner).jumps = (how, "")
    net.graph.output = net.op("Abs", values["y"])
    effects = Effects(net.graph, find)
    assert not effects.is_isolated(made["y"])  # the result of the network
    assert effects.is_isolated(made["i"]) is not is_read


@pytest.mark.parametrize("reads", [True, False])
def test_values_that_depend_on_weights_or_effects(net, reads):
    w, x = net.weight("w", np.ones(3, np.float32)), net.input("x", (3,))
    first = net.op("Mul", x, w if reads else x)
    last = net.op("Exp", net.op("Neg", first))
    alone = net.op("Sin", x)
    net.graph.output = net.op("Add", last, alone)
    effects = Effects(net.graph, find)
    for _ in range(2):  # also from the cache
        assert effects.depends(last) is reads
        assert effects.depends(net.graph.output) is reads
        assert effects.depends(alone) is False
        assert effects.depends(x) is effects.depends(w) is False
    assert effects.depends(net.op("Assign", w, x)) is True


@pytest.mark.parametrize(("kind", "depends"), [("loop", False), ("joins", False), ("branch", True)])
def test_what_loops_and_sides_that_go_on_give_depends_on_nothing(net, kind, depends):
    """It is a formal parameter of the function that follows."""
    w, x = net.weight("w", np.ones(3, np.float32)), net.input("x", (3,))
    start = net.op("Mul", x, w)

    def test(at):
        return net.op("Less", net.op("ReduceSum", at["y"], (), False), np.float32(9))

    if kind == "loop":
        value = net.loop({"y": start}, test, lambda at: {"y": net.op("Exp", at["y"])})["y"]
    else:
        value = net.branch(test({"y": start}), lambda: [net.op("Exp", x)], lambda: [net.op("Neg", x)])[0]
        (node,) = [node for node in net.graph.trail if node.op_type == "If"]
        control_of(node).joins = kind == "joins"
    net.graph.output = net.op("Abs", value)
    assert Effects(net.graph, find).depends(net.graph.output) is depends
