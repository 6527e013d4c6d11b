"""Gradients of control flow: the nodes that they make, and their numbers when a session runs them."""

import numpy as np
import pytest

from dumpsim.core.options import CompileOptions
from dumpsim.core.settings import RunSettings
from dumpsim.graph.builder import constant
from dumpsim.graph.gradient import reverse
from dumpsim.graph.gradient_control import below
from dumpsim.graph.mindspore.gradient_nodes import NodeBuilder
from dumpsim.graph.pipeline import compile_graph
from dumpsim.ops.table import find
from dumpsim.runtime.session import Session

LIMIT = np.float32(20)


@pytest.fixture
def run():
    """Compile the outputs of a net kernel by kernel and run it."""

    def run(net, outputs, *arguments):
        net.give(*outputs)
        session = Session(RunSettings(device="cpu"), environment={})
        program = compile_graph(net.graph, session.ids, find, CompileOptions(target="CPU", release="2.10"))
        return [session.execute(program, values) for values in arguments]

    return run


def gradients(net, output, wanted):
    builder = NodeBuilder(find, net.place, {}, block=net.block, graphs=[net.graph])
    sens = constant(np.ones(output.abstract.shape, np.float32))
    return reverse(output, sens, wanted, builder, nodes=below([output]))


def positive(net, x):
    return net.op("Greater", net.op("ReduceSum", x, (), False), np.float32(0))


def chosen(net, x):
    """exp(x) * x where the sum of x is positive, else tanh(x)."""

    def then():
        return [net.op("Mul", net.op("Exp", x), x)]

    return net.branch(positive(net, x), then, lambda: [net.op("Tanh", x)])[0]


def test_the_gradient_of_a_branch_is_that_of_the_side_that_ran(net, run):
    x = net.input("x", (3,))
    y = chosen(net, x)
    (found,) = gradients(net, y, [x])
    plus, minus = np.array([1, 2, -1], np.float32), np.array([-1, 0.5, -1], np.float32)
    (_, left), (_, right) = run(net, [y, found], [plus], [minus])
    np.testing.assert_allclose(left, np.exp(plus) * (1 + plus), rtol=1e-6)
    np.testing.assert_allclose(right, 1 - np.tanh(minus) ** 2, rtol=1e-6)


def test_a_branch_gives_out_what_its_gradient_uses(net):
    x = net.input("x", (3,))
    y = chosen(net, x)
    forward = y.operands[0]
    gradients(net, y, [x])
    backward = forward.control.backward
    assert backward.op_type == "If"
    assert backward.operands == [forward.operands[0], forward]
    then, other = (block.output.operands for block in forward.blocks)
    assert [block.results for block in forward.blocks] == [1, 1]
    assert [getattr(value, "op_type", 0.0) for value in then] == ["Mul", "Exp", 0.0]
    assert [getattr(value, "op_type", 0.0) for value in other] == ["Tanh", 0.0, "Tanh"]
    assert len(forward.abstract.items) == 3


def test_a_weight_that_no_side_uses_has_no_gradient(net):
    x, w = net.input("x", (3,)), net.weight("w", np.ones(3, np.float32))
    y = chosen(net, x)
    assert gradients(net, y, [w]) == [None]


def grown(net, x, w):
    """x * w^n, until its sum is at least `LIMIT`."""

    def below_limit(inside):
        return net.op("Less", net.op("ReduceSum", inside["x"], (), False), LIMIT)

    return net.loop({"x": x}, below_limit, lambda inside: {"x": net.op("Mul", inside["x"], w)})["x"]


def test_the_gradient_of_a_loop_goes_back_through_its_rounds(net, run):
    x, w = net.input("x", (2,)), net.weight("w", np.array([2, 3], np.float32))
    y = grown(net, x, w)
    found = gradients(net, y, [x, w])
    start, factor = np.array([1, 1], np.float32), np.array([2, 3], np.float32)
    (value, of_x, of_w), (same, of_same, of_none) = run(net, [y, *found], [start], [start * 20])
    np.testing.assert_allclose(value, start * factor**3)  # 5, 13, 35
    np.testing.assert_allclose(of_x, factor**3)
    np.testing.assert_allclose(of_w, 3 * start * factor**2)
    np.testing.assert_array_equal(same, start * 20)  # no round
    np.testing.assert_array_equal(of_same, [1, 1])
    np.testing.assert_array_equal(of_none, [0, 0])


def test_a_loop_saves_of_every_round_what_its_gradient_uses(net):
    x, w = net.input("x", (2,)), net.weight("w", np.ones(2, np.float32))
    y = grown(net, x, w)
    loop = y.operands[0]
    gradients(net, y, [x, w])
    (unwind,) = loop.control.unwinds
    assert unwind.op_type == "Unwind"
    assert unwind.operands[0] is loop
    assert loop.control.variables == ("x",)
    body = loop.blocks[1]
    assert [body.output.operands[at] for at in unwind.control.saved] == [body.parameters[0]]
