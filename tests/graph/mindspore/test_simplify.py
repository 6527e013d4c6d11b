"""Nodes that change nothing go."""

import numpy as np

from dumpsim.graph.mindspore.simplify import simplify


def simplified(net, output):
    net.graph.output = output
    return simplify(net.graph)


def test_first_of_two_reshapes_is_passed_over(net):
    middle = net.op("Reshape", net.op("Exp", net.input("x", (2, 6))), (12,))
    output = net.op("Reshape", middle, (3, 4))
    middle.scope, output.scope = "Default/inner", "Default/outer"
    graph = simplified(net, output)
    assert graph.output is output
    assert output.operands[0].op_type == "Exp"
    assert output.scope == "Default/outer"


def test_reshape_to_its_own_shape_goes(net):
    exp = net.op("Exp", net.input("x", (2, 6)))
    output = net.op("Reshape", net.op("Reshape", exp, (12,)), (2, 6))
    assert simplified(net, output).output is exp


def test_product_with_ones_goes_unless_it_broadcasts(net):
    exp = net.op("Exp", net.input("x", (3,)))
    plain = net.op("Mul", exp, np.ones((), np.float32))
    wide = net.op("Mul", plain, np.ones((2, 3), np.float32))
    graph = simplified(net, wide)
    assert graph.output is wide
    assert wide.operands[0] is exp
