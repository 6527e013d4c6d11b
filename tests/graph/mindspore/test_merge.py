"""Merging of equal computations within each function."""

import numpy as np
import pytest

from dumpsim.graph.graph import Graph, text_of
from dumpsim.graph.mindspore.merge import merge_equal
from dumpsim.ops.table import find


def kinds(graph: Graph) -> list[str]:
    return [node.op_type for node in graph.trail if node.op_type not in ("TupleGetItem", "MakeTuple")]


def test_the_first_of_equal_nodes_stays_and_users_take_it(net):
    x = net.input("x", (3,))
    first, second = net.op("Exp", x), net.op("Exp", x)
    total = net.op("Add", net.op("Neg", first), net.op("Neg", second))
    net.give(total)
    merge_equal(net.graph, find)
    assert kinds(net.graph) == ["Exp", "Neg", "Add"]
    assert total.operands[0] is total.operands[1]
    assert total.operands[0].operands == [first]


def test_nodes_with_different_operands_constants_or_attributes_stay(net):
    x, y = net.input("x", (3,)), net.input("y", (3,))
    pairs = [
        (net.op("Exp", x), net.op("Exp", y)),
        (net.op("Add", x, np.float32(1)), net.op("Add", x, np.float32(2))),
        (net.op("ReduceSum", x, (0,), False), net.op("ReduceSum", x, (0,), True)),
        (net.op("Concat", (x, y), 0), net.op("Concat", (y, x), 0)),
    ]
    marked = net.op("Tanh", x)
    text_of(marked).attrs["dump"] = "true"
    net.give(*(node for pair in pairs for node in pair), marked, net.op("Tanh", x))
    before = kinds(net.graph)
    assert kinds(merge_equal(net.graph, find)) == before


def test_random_numbers_and_effects_are_never_merged(net):
    x = net.input("x", (3,))
    w = net.weight("w", np.ones(3, np.float32))
    outputs = [net.op("Dropout", x, keep_prob=0.5), net.op("Dropout", x, keep_prob=0.5)]
    net.op("AssignAdd", w, x)
    net.op("AssignAdd", w, x)
    net.give(*(net.item(node, 0) for node in outputs))
    assert kinds(merge_equal(net.graph, find)) == ["Dropout"] * 2 + ["AssignAdd"] * 2


def test_the_name_stays_that_the_search_from_the_result_meets_first(net):
    x = net.input("x", (3,))
    first, second = net.op("Exp", x), net.op("Exp", x)
    first.scope, second.scope = "first", "second"
    net.give(net.op("Neg", second), net.op("Tanh", first))
    merge_equal(net.graph, find)
    assert [node.scope for node in net.graph.trail if node.op_type == "Exp"] == ["second"]


@pytest.mark.parametrize("written", [True, False])
def test_a_weight_is_another_value_after_it_was_written(net, written):
    x = net.input("x", (3,))
    w, other = (net.weight(name, np.ones(3, np.float32)) for name in ("w", "other"))
    first = net.op("Exp", w)
    net.op("Assign", w if written else other, x)
    net.give(net.op("Add", first, net.op("Exp", w)))
    assert kinds(merge_equal(net.graph, find)) == ["Exp", "Assign", *(["Exp"] * written), "Add"]


def test_nodes_are_not_merged_across_the_borders_of_a_branch(net):
    """As function graphs of their own. [2.10 observed]"""
    x, flag = net.input("x", (3,)), net.input("flag", (), "bool")
    first = net.op("Exp", x)

    def side():
        return [net.op("Add", net.op("Exp", x), net.op("Exp", x))]

    (result,) = net.branch(flag, side, lambda: [net.op("Exp", x)])
    net.give(net.op("Add", net.op("Add", first, result), net.op("Exp", x)))
    merge_equal(net.graph, find)
    (node,) = [node for node in net.graph.trail if node.op_type == "If"]
    assert [kinds(block) for block in node.blocks] == [["Exp", "Add"], ["Exp"]]
    assert kinds(net.graph) == ["Exp", "If", "Add", "Add"]  # after the branch the outer one is there
    assert first not in node.blocks[0].trail


def test_nodes_after_a_loop_are_not_merged_with_nodes_before_it(net):
    """As real MindSpore does: the rest of a function after a loop is a function of its own (net r1_046)."""
    x, i = net.input("x", (3,)), net.input("i", (), "int32")
    before = net.op("Exp", x)
    after = net.loop({"i": i}, lambda at: net.op("Less", at["i"], i), lambda at: {"i": net.op("Neg", at["i"])})
    net.give(before, after["i"], net.op("Exp", x), net.op("Exp", x))
    assert kinds(merge_equal(net.graph, find)) == ["Exp", "While", "Exp"]
