"""Gradient rules with branches as functions: the rule of Max."""

import numpy as np
import pytest

from dumpsim.core.options import CompileOptions
from dumpsim.core.settings import RunSettings
from dumpsim.graph.builder import constant
from dumpsim.graph.mindspore.expand_gradients import expand_gradients
from dumpsim.graph.mindspore.functions import made_functions
from dumpsim.graph.mindspore.gradient_node import gradient_node
from dumpsim.graph.mindspore.merge import merge_equal
from dumpsim.graph.mindspore.rulefunctions import share_rules
from dumpsim.graph.pipeline import compile_graph
from dumpsim.ops.table import find
from dumpsim.runtime.session import Session

ONE = constant(np.float32(1))
A, B = np.array([1, 5, 5], np.float32), np.array([4, 2, 1], np.float32)


def differentiate(net, output, *wanted):
    node = gradient_node(output, ONE, wanted)
    net.place(node)
    net.give(*(net.item(node, at) for at in range(len(wanted))))
    return net.graph


def functions(graph):
    """Kinds of the functions with branches on NaN, and calls of each."""
    merge_equal(expand_gradients(graph, find, shares=True), find)
    form = made_functions(graph)
    share_rules(form)
    calls = [form.called_by(node)[0] for one in form.functions for node in one.trail if node.op_type == "Call"]
    return sorted((one.kind, sum(one is other for other in calls)) for one in form.functions if one.kind != "root")


def maxima(net, *values):
    """The sum of products of maxima with different factors."""
    total = None
    for at, value in enumerate(values):
        part = net.op("Mul", net.op("Max", value), np.float32(at + 2))
        total = part if total is None else net.op("Add", total, part)
    return total


def test_a_rule_that_is_called_once_is_inlined(net):
    x = net.input("x", (3,))
    graph = differentiate(net, maxima(net, x), x)
    assert functions(graph) == [("false", 0), ("true", 1)]


def test_gradients_of_different_nodes_call_one_function(net):
    x, y = net.input("x", (3,)), net.input("y", (3,))
    graph = differentiate(net, maxima(net, x, y), x, y)
    assert ("rule", 2) in functions(graph)


def test_arguments_of_other_types_need_another_function(net):
    x, y = net.input("x", (3,)), net.input("y", (2, 2))
    graph = differentiate(net, maxima(net, x, y), x, y)
    assert all(kind != "rule" for kind, _ in functions(graph))


def test_gradients_of_equal_nodes_call_one_closure_into_which_the_rule_is_inlined(net):
    x = net.input("x", (3,))
    graph = differentiate(net, maxima(net, x, x), x)
    found = functions(graph)
    assert ("closure", 2) in found
    assert all(kind != "rule" for kind, _ in found)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_values_do_not_depend_on_who_computes_them(net, count):
    x, y = net.input("x", (3,)), net.input("y", (3,))
    values = [x, y, x][:count]
    graph = differentiate(net, maxima(net, *values), x, y)
    session = Session(RunSettings(device="cpu"), environment={})
    program = compile_graph(graph, session.ids, find, CompileOptions(target="CPU", release="2.10"))
    by_x, by_y = session.execute(program, [A, B])
    factor = 6 if count == 3 else 2
    np.testing.assert_array_equal(by_x, factor * np.array([0, 0.5, 0.5], np.float32))
    np.testing.assert_array_equal(by_y, (count > 1) * np.array([3, 0, 0], np.float32))
