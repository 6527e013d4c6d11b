"""Differentiated branches return their gradients as functions."""

import numpy as np

from dumpsim.graph.builder import constant
from dumpsim.graph.gradient import reverse
from dumpsim.graph.gradient_control import below
from dumpsim.graph.graph import control_of
from dumpsim.graph.mindspore.funcgraph import function_of
from dumpsim.graph.mindspore.gradient_nodes import NodeBuilder
from dumpsim.ops.table import find
from tests.graph.compiled import functions_of


def gradient_of(net, y, wanted, sens=None):
    builder = NodeBuilder(find, net.place, {}, block=net.block, graphs=[net.graph])
    ones = constant(np.ones(y.abstract.shape, np.float32))
    return reverse(y, ones if sens is None else sens, wanted, builder, nodes=below([y]))


def sides_of(form, kind):
    """The functions of a side: what runs forward, and its gradient."""
    (forward,) = (function for function in form.functions if function.kind == kind and function.is_differentiated)
    return forward, forward.gradient


def test_a_side_gives_its_output_and_its_gradient(net):
    x, flag = net.input("x", (2,)), net.input("flag", (), "bool")
    (y,) = net.branch(flag, lambda: [net.op("Tanh", net.op("Exp", x))], lambda: [net.op("Neg", x)])
    net.give(*gradient_of(net, y, [x]))
    form = functions_of(net.graph)
    forward, gradient = sides_of(form, "true")
    output, handed = forward.output.operands
    assert output.op_type == "Tanh"
    assert handed.op_type == "Partial"
    assert function_of(handed.operands[0]) is gradient
    assert {node.op_type for node in handed.operands[1:]} == {"Tanh", "Exp"}
    forward, gradient = sides_of(form, "false")
    assert function_of(forward.output.operands[1]) is gradient  # it takes nothing of the side


def test_a_gradient_takes_that_of_the_output_as_a_parameter(net):
    x, flag = net.input("x", (2,)), net.input("flag", (), "bool")
    (y,) = net.branch(flag, lambda: [net.op("ReduceSum", x, (), True)], lambda: [net.op("ReduceSum", x, (), True)])
    net.give(*gradient_of(net, y, [x], sens=net.input("sens", (1,))))
    _, gradient = sides_of(functions_of(net.graph), "true")
    assert [node.op_type for node in gradient.trail] == [
        "Tile",
        "MakeTuple",
    ]
    assert gradient.trail[0].operands[0] is gradient.parameters[-1]


def test_a_gradient_knows_a_constant_one_of_the_output(net):
    x, flag = net.input("x", (2,)), net.input("flag", (), "bool")
    (y,) = net.branch(flag, lambda: [net.op("Mul", x, x)], lambda: [net.op("Neg", x)])
    net.give(*gradient_of(net, y, [x]))
    _, gradient = sides_of(functions_of(net.graph), "true")
    assert [node.op_type for node in gradient.trail] == ["MakeTuple", "AddN", "MakeTuple"]  # products with ones go


def test_the_gradient_of_a_nested_branch_calls_the_closure_of_the_inner_one(net):
    x, flag = net.input("x", (2,)), net.input("flag", (), "bool")

    def outer():
        return net.branch(flag, lambda: [net.op("Exp", x)], lambda: [net.op("Tanh", x)])

    (y,) = net.branch(flag, outer, lambda: [net.op("Neg", x)])
    net.give(*gradient_of(net, y, [x]))
    form = functions_of(net.graph)
    forward = next(f for f in form.functions if f.kind == "true" and any(n.op_type == "Switch" for n in f.trail))
    (call,) = (node for node in forward.gradient.trail if node.op_type == "Call")
    assert call.operands[0] is forward.gradient.parameters[0]  # a function that the outer side has passed on
    given = forward.output.operands[1].operands[1]
    assert given.op_type == "TupleGetItem"
    assert given.operands[1].value == 1


def test_a_differentiated_branch_without_a_gradient_gives_a_number(net):
    x, flag = net.input("x", (2,)), net.input("flag", (), "bool")
    (y,) = net.branch(flag, lambda: [net.op("Exp", x)], lambda: [net.op("Tanh", x)])
    control_of(y.operands[0]).is_differentiated = True
    net.give(net.op("Neg", y))
    form = functions_of(net.graph)
    forward, gradient = sides_of(form, "true")
    assert gradient is None
    assert forward.output.operands[1].value == 0


def test_results_come_in_the_order_of_the_formal_parameters(net):
    """Values around which as many calls are inlined: weights come later, then what only the other side takes."""
    x, flag = net.input("x", (2,)), net.input("flag", (), "bool")
    w, b = net.weight("w", np.ones(2, np.float32)), net.weight("b", np.ones(2, np.float32))
    e = net.op("Exp", x)
    (y,) = net.branch(flag, lambda: [net.op("Add", net.op("Mul", e, w), b)], lambda: [net.op("Mul", e, x)])
    net.give(*gradient_of(net, y, [x, w, b]))
    form = functions_of(net.graph)
    forward, gradient = sides_of(form, "true")
    assert [getattr(value, "name", "e") for value in forward.order[:3]] == ["e", "w", "b"]
    assert len(gradient.output.operands) == 4
