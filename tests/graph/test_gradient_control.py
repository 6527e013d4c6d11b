"""Gradients of control flow: their nodes, and their values when a session runs them."""

import numpy as np
import pytest

from dumpsim.core.dtype import dtype
from dumpsim.core.errors import UnsupportedError
from dumpsim.core.options import CompileOptions
from dumpsim.core.settings import RunSettings
from dumpsim.graph.builder import constant
from dumpsim.graph.gradient import reverse
from dumpsim.graph.gradient_control import (
    below,
    ends_of,
    everything,
    in_parts,
    is_child,
    is_unwound,
    reached_variables,
)
from dumpsim.graph.graph import Control, Node
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
    return reverse(output, sens, wanted, builder, nodes=in_parts(below([output]), net.graph.trail))


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


def test_a_branch_returns_the_values_that_its_gradient_uses(net):
    x = net.input("x", (3,))
    y = chosen(net, x)
    forward = y.operands[0]
    gradients(net, y, [x])
    backward = forward.control.backward
    assert backward.op_type == "If"
    assert backward.operands[:2] == [forward.operands[0], forward]
    assert backward.operands[3:] == [x]  # after the gradient of the output, which its sides take as a parameter
    assert [len(block.parameters) for block in backward.blocks] == [1, 1]
    then, other = (block.output.operands for block in forward.blocks)
    assert [block.results for block in forward.blocks] == [1, 1]
    assert [getattr(value, "op_type", 0.0) for value in then] == ["Mul", "Exp", 0.0]
    assert [getattr(value, "op_type", 0.0) for value in other] == ["Tanh", 0.0, "Tanh"]
    assert len(forward.abstract.items) == 3


def test_a_value_returned_for_a_gradient_has_the_type_of_its_read(net, run):
    x = net.input("x", (3,))

    def then():
        total = net.op("ReduceSum", net.op("Mul", net.op("Exp", x), x), (), False)
        return [net.op("Mul", net.op("Tanh", total), total)]

    (y,) = net.branch(positive(net, x), then, lambda: [net.op("ReduceSum", x, (), False)])
    (found,) = gradients(net, y, [x])
    branch = y.operands[0]
    read = [node for node in net.graph.trail if node.op_type == "TupleGetItem" and node.operands[0] is branch]
    assert {len(node.abstract.shape) for node in read} == {0, 1}
    assert all(node.abstract == branch.abstract.items[node.operands[1].value] for node in read)
    values = np.array([0.1, 0.2, -0.1], np.float32)
    ((_, left),) = run(net, [y, found], [values])
    total = np.sum(np.exp(values) * values)
    outer = np.tanh(total) + total * (1 - np.tanh(total) ** 2)
    np.testing.assert_allclose(left, outer * np.exp(values) * (1 + values), rtol=1e-5)


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


@pytest.mark.parametrize("rounds", range(5))
def test_variables_of_a_loop_may_change_places(net, run, rounds):
    """Rounds of (a, b, c) -> (b, c, a * w), with gradients of a by the rotation of all three."""
    names = "abc"
    a, b, c = (net.input(name, (2,)) for name in names)
    n, w = net.input("n", (), "int32"), net.weight("w", np.array([2, 3], np.float32))

    def body(inside):
        product = net.op("Mul", inside["a"], w)
        return {"n": net.op("Add", inside["n"], np.int32(1)), "a": inside["b"], "b": inside["c"], "c": product}

    last = net.loop(
        {"n": n, "a": a, "b": b, "c": c}, lambda inside: net.op("Less", inside["n"], np.int32(rounds)), body
    )
    total = net.op("Add", net.op("Mul", last["a"], np.float32(7)), net.op("Mul", last["b"], np.float32(11)))
    found = gradients(net, total, [a, b, c, w])
    values = [np.array(pair, np.float32) for pair in ([1, 2], [3, 5], [7, 9])]
    (given,) = run(net, [last["a"], last["b"], last["c"], *found], [*values, np.int32(0)])
    expected, factors, slopes = list(values), [np.ones(2)] * 3, [np.zeros(2)] * 3
    factor = np.array([2, 3])
    for _ in range(rounds):
        first, power, slope = expected[0] * factor, factors[0] * factor, slopes[0] * factor + expected[0]
        expected, factors, slopes = [*expected[1:], first], [*factors[1:], power], [*slopes[1:], slope]
    by_start = [np.zeros(2)] * 3  # each result comes from one of the initial values
    for at, weight in ((0, 7), (1, 11)):
        by_start[(at + rounds) % 3] = weight * factors[at]
    for one, other in zip(given, [*expected, *by_start, 7 * slopes[0] + 11 * slopes[1]], strict=True):
        np.testing.assert_array_equal(one, other)


def test_the_gradient_of_a_round_uses_values_of_the_round(net):
    x, w = net.input("x", (2,)), net.weight("w", np.ones(2, np.float32))
    y = grown(net, x, w)
    loop = y.operands[0]
    gradients(net, y, [x, w])
    (unwind,) = loop.control.unwinds
    assert unwind.op_type == "Unwind"
    assert unwind.operands[0] is loop
    assert loop.control.variables == ("x",)
    (x_before,) = loop.blocks[1].parameters
    rounds, after, head = unwind.control.steps
    products = [node for node in rounds.graph.trail if node.op_type == "Mul"]
    assert [product.operands[0] for product in products] == [w, x_before]
    assert rounds.targets == after.targets == head.targets == [x_before, w]


def counted(net, x, w, rounds=3):
    """x * w^rounds by a loop with a whole number and a variable that nothing needs."""
    start = {"n": constant(np.int32(0)), "idle": net.op("Exp", x), "x": x}

    def body(inside):
        return {
            "n": net.op("Add", inside["n"], np.int32(1)),
            "idle": net.op("Neg", inside["idle"]),
            "x": net.op("Mul", inside["x"], w),
        }

    return net.loop(start, lambda inside: net.op("Less", inside["n"], np.int32(rounds)), body)


def test_also_variables_that_do_not_reach_the_result_carry_gradients(net, run):
    """The gradients of all formal parameters of a function come back, also those of whole numbers."""
    x, w = net.input("x", (2,)), net.input("w", (2,))
    y = counted(net, x, w)["x"]
    found = gradients(net, y, [x, w])
    (unwind,) = y.operands[0].control.unwinds
    assert unwind.operands[-2:] == [x, w]
    assert unwind.operands[-3].op_type == "Exp"
    kinds = [(kind.dtype.name, kind.shape) for kind in (p.abstract for p in unwind.blocks[0].parameters)]
    assert kinds == [("int32", ()), *[("float32", (2,))] * 3]
    start, factor = np.array([1, -2], np.float32), np.array([2, 3], np.float32)
    ((value, of_x, of_w),) = run(net, [y, *found], [start, factor])
    np.testing.assert_allclose(value, start * factor**3)
    np.testing.assert_allclose(of_x, factor**3)
    np.testing.assert_allclose(of_w, 3 * start * factor**2)


def test_rounds_also_pass_on_gradients_that_are_not_wanted(net):
    x, w = net.input("x", (2,)), net.input("w", (2,))
    y = counted(net, x, w)["x"]
    (of_x,) = gradients(net, y, [x])
    (unwind,) = y.operands[0].control.unwinds
    assert unwind.operands[-2:] == [x, w]
    of_idle, handed_on = of_x.operands[0].operands
    assert of_idle.op_type == "Mul"
    assert handed_on.operands[0] is unwind


@pytest.mark.parametrize(
    ("mixes", "is_float", "reached"), [(False, True, {0}), (True, True, {0, 1}), (True, False, {0, 1})]
)
def test_variables_of_a_loop_that_depend_on_a_wanted_value(net, mixes, is_float, reached):
    """Also whole numbers do."""
    x, y = net.input("x", (3,)), net.input("y", (3,), "float32" if is_float else "int32")

    def body(inside):
        other = inside["b"]
        if mixes:
            added = inside["a"] if is_float else net.op("Cast", inside["a"], dtype("int32"))
            other = net.op("Add", other, added)
        return {"a": net.op("Sin", inside["a"]), "b": net.op("Neg", other)}

    after = net.loop(
        {"a": x, "b": y},
        lambda inside: net.op("Less", net.op("ReduceSum", inside["a"], (), False), LIMIT),
        body,
    )
    loop = after["a"].operands[0]
    block = loop.blocks[1]
    assert reached_variables(loop, {id(x)}, block.trail, [block.output.operands], []) == reached


def test_the_code_after_a_loop_is_a_block_of_its_gradient(net, run):
    x, w = net.input("x", (2,)), net.weight("w", np.array([2, 3], np.float32))
    z = net.op("Exp", x)
    y = net.op("Mul", net.op("Tanh", grown(net, x, w)), z)
    found = gradients(net, y, [x, w])
    (unwind,) = next(node for node in net.graph.trail if node.op_type == "While").control.unwinds
    turn, after, _ = unwind.blocks
    assert "TanhGrad" in [node.op_type for node in after.trail]
    assert {node.op_type for node in turn.trail} == {"Mul", "MakeTuple", "AddN"}
    assert sorted(getattr(value, "op_type", "") for value in unwind.operands[-3:]) == ["", "", "Exp"]
    start, factor = np.array([0.01, 0.01], np.float32), np.array([2, 3], np.float32)
    ((value, of_x, of_w),) = run(net, [y, *found], [start])
    rounds = next(n for n in range(20) if np.sum(start * factor**n) >= LIMIT)
    end = start * factor**rounds
    slope = (1 - np.tanh(end) ** 2) * np.exp(start)
    np.testing.assert_allclose(value, np.tanh(end) * np.exp(start), rtol=1e-6)
    np.testing.assert_allclose(of_x, slope * factor**rounds + np.tanh(end) * np.exp(start), rtol=1e-5)
    np.testing.assert_allclose(of_w, slope * start * rounds * factor ** (rounds - 1), rtol=1e-5, atol=1e-6)


def test_a_variable_that_another_one_takes_up_carries_a_gradient(net, run):
    """x and y change places: after three rounds the result is twice what y was."""
    x, y, n = net.input("x", (2,)), net.input("y", (2,)), constant(np.int32(0))
    after = net.loop(
        {"n": n, "x": x, "y": y},
        lambda inside: net.op("Less", inside["n"], np.int32(3)),
        lambda inside: {
            "n": net.op("Add", inside["n"], np.int32(1)),
            "x": net.op("Mul", inside["y"], np.float32(2)),
            "y": inside["x"],
        },
    )["x"]
    found = gradients(net, after, [x, y])
    one, two = np.array([1, 2], np.float32), np.array([3, 4], np.float32)
    ((value, of_x, of_y),) = run(net, [after, *found], [one, two])
    np.testing.assert_allclose(value, 4 * two)
    np.testing.assert_allclose(of_x, [0, 0])
    np.testing.assert_allclose(of_y, [4, 4])


def test_the_gradient_of_a_branch_in_a_loop(net, run):
    """Twice x while its sum is small, else its square, three times."""
    x, n = net.input("x", (2,)), constant(np.int32(0))

    def body(inside):
        small = net.op("Less", net.op("ReduceSum", inside["x"], (), False), np.float32(5))
        (made,) = net.branch(
            small,
            lambda: [net.op("Mul", inside["x"], np.float32(2))],
            lambda: [net.op("Mul", inside["x"], inside["x"])],
        )
        return {"n": net.op("Add", inside["n"], np.int32(1)), "x": made}

    after = net.loop({"n": n, "x": x}, lambda inside: net.op("Less", inside["n"], np.int32(3)), body)["x"]
    (found,) = gradients(net, after, [x])
    start = np.array([1, 0.5], np.float32)
    ((value, slope),) = run(net, [after, found], [start])  # sums 1.5, 3, 6
    np.testing.assert_allclose(value, (4 * start) ** 2)
    np.testing.assert_allclose(slope, 32 * start)


def test_both_outputs_of_a_branch_have_gradients(net, run):
    x, flag = net.input("x", (2,)), net.input("flag", (), "bool")
    a, b = net.branch(flag, lambda: [net.op("Exp", x), net.op("Neg", x)], lambda: [x, net.op("Mul", x, x)])
    (found,) = gradients(net, net.op("Mul", a, b), [x])
    start = np.array([1, 2], np.float32)
    (yes,), (no,) = run(net, [found], [start, np.array(True)], [start, np.array(False)])
    np.testing.assert_allclose(yes, -np.exp(start) * (1 + start), rtol=1e-6)
    np.testing.assert_allclose(no, 3 * start**2)


def test_whole_numbers_have_gradients_of_their_type(net, run):
    x, flag, n = net.input("x", (2,)), net.input("flag", (), "bool"), net.input("n", (2,), "int32")
    (made,) = net.branch(flag, lambda: [net.op("Cast", n, dtype("float32"))], lambda: [net.op("Exp", x)])
    found = gradients(net, made, [x, n])
    values = np.zeros(2, np.float32), np.array([3, 4], np.int32)
    (of_x, of_n), (of_x2, of_n2) = run(
        net, found, [values[0], np.array(True), values[1]], [values[0], np.array(False), values[1]]
    )
    assert of_n.dtype == np.int32
    np.testing.assert_array_equal([of_x, of_x2], [[0, 0], [1, 1]])
    np.testing.assert_array_equal([of_n, of_n2], [[1, 1], [0, 0]])


def test_deep_branches_return_gradients_that_nobody_asked_for(net):
    x, w, flag = net.input("x", (2,)), net.weight("w", np.ones(2, np.float32)), net.input("flag", (), "bool")

    def nested(depth):
        then = (lambda: nested(depth - 1)) if depth > 1 else (lambda: [net.op("Mul", x, w)])
        return net.branch(flag, then, lambda: [net.op("Neg", x)])

    (made,) = nested(4)
    gradients(net, made, [x])
    found = [made.operands[0].control.backward]
    while inner := [node for node in found[-1].blocks[0].trail if node.op_type == "If"]:
        found += inner
    assert [len(node.abstract.items) for node in found] == [1, 1, 2, 2]  # the weight's from the third one on


def test_operands_of_a_condition_get_zero_gradients(net):
    x = net.input("x", (2,))
    compared = net.op("ReduceSum", x, (), False)
    (made,) = net.branch(
        net.op("Greater", compared, np.float32(0)), lambda: [net.op("Tanh", x)], lambda: [net.op("Neg", x)]
    )
    _, of_compared = gradients(net, made, [x, compared])
    np.testing.assert_array_equal(of_compared.value, 0)


def test_the_second_gradient_of_a_loop_is_refused(net):
    x, w = net.input("x", (2,)), net.input("w", (2,))
    y = grown(net, x, w)
    (of_x,) = gradients(net, y, [x])
    with pytest.raises(UnsupportedError, match="the gradient of the gradient of a loop") as caught:
        gradients(net, of_x, [w])
    assert caught.value.code == "DS-GRD-002"


@pytest.mark.parametrize("values", [[1, 3, 3], [2, 1, 0]])
def test_the_gradient_of_a_maximum_asks_for_nan_by_a_branch(net, run, values):
    x = net.input("x", (3,))
    (found,) = gradients(net, net.op("Max", x), [x])
    (branch,) = (node for node in net.graph.trail if node.op_type == "If")
    assert [[node.op_type for node in block.trail] for block in branch.blocks] == [["NotEqual"], ["Equal"]]
    start = np.array(values, np.float32)
    ((slope,),) = run(net, [found], [start])
    np.testing.assert_array_equal(slope, (start == start.max()) / np.sum(start == start.max()))


def test_everything_goes_into_blocks(net):
    x, flag = net.input("x", (2,)), net.input("flag", (), "bool")
    (made,) = net.branch(flag, lambda: [net.op("Tanh", x)], lambda: [net.op("Neg", x)])
    net.give(net.op("Exp", made))
    assert [node.op_type for node in everything(net.graph.trail)] == ["Tanh", "Neg", "If", "TupleGetItem", "Exp"]


def test_a_second_gradient_of_the_same_loop_is_refused(net):
    x, w = net.input("x", (2,)), net.input("w", (2,))
    y = grown(net, x, w)
    gradients(net, y, [x])
    with pytest.raises(UnsupportedError, match="several gradients of one loop"):
        gradients(net, y, [w])


# -- what is known of control flow


def nested(net, x):
    """A loop around a loop, beside a branch, and a loop after it."""
    n = constant(np.int32(0))
    step = np.float32(2)

    def inner(inside):
        return net.loop(
            {"m": n, "z": inside["y"]},
            lambda at: net.op("Less", at["m"], np.int32(2)),
            lambda at: {"m": net.op("Add", at["m"], np.int32(1)), "z": net.op("Mul", at["z"], step)},
        )["z"]

    after = net.loop(
        {"n": n, "y": x},
        lambda at: net.op("Less", at["n"], np.int32(3)),
        lambda at: {"n": net.op("Add", at["n"], np.int32(1)), "y": net.op("Neg", inner(at))},
    )["y"]
    (chosen_,) = net.branch(positive(net, after), lambda: [net.op("Exp", after)], lambda: [after])
    return net.loop(
        {"n": n, "y": chosen_},
        lambda at: net.op("Less", at["n"], np.int32(1)),
        lambda at: {"n": net.op("Add", at["n"], np.int32(1)), "y": net.op("Add", at["y"], at["y"])},
    )["y"]


def test_loops_in_loops_are_inner_ones_after_a_gradient_of_one_node(net, run):
    x = net.input("x", (2,))
    y = nested(net, x)
    loops = [node for node in everything(net.graph.trail) if node.op_type == "While"]
    for loop in loops:
        loop.control.gradients = 2  # so that functions do not return their gradients
    (found,) = gradients(net, y, [x])
    assert [loop.control.is_inner for loop in loops] == [True, False, False]
    start = np.array([-0.01, 0.0], np.float32)  # times 4 and -1, three times: positive, then exp and twice
    ((value, slope),) = run(net, [y, found], [start])
    np.testing.assert_allclose(value, 2 * np.exp(-64 * start), rtol=1e-5)
    np.testing.assert_allclose(slope, -128 * np.exp(-64 * start), rtol=1e-5)


def test_only_loops_with_at_most_one_gradient_are_unwound(net):
    x = net.input("x", (2,))
    y = grown(net, x, x)
    loop = y.operands[0]
    for count, expected in ((0, True), (1, True), (2, False)):
        loop.control.gradients = count
        assert is_unwound(loop) is expected
    loop.control.gradients, loop.control.is_inner = 1, True
    assert not is_unwound(loop)
    assert not is_unwound(chosen(net, x).operands[0])


def test_nodes_are_parted_by_loops(net):
    x = net.input("x", (2,))
    before, aside = net.op("Exp", x), net.op("Neg", x)
    y = grown(net, before, x)
    loop = y.operands[0]
    after, late = net.op("Tanh", aside), net.op("Mul", y, aside)
    mixed = [late, after, y, loop, aside, before]
    assert in_parts(mixed, net.graph.trail) == [aside, before, loop, late, after, y]
    assert in_parts([late, aside, before], net.graph.trail) == [late, aside, before]  # without the loop
    loop.control.gradients = 2
    assert in_parts(mixed, net.graph.trail) == mixed


def turn(net, *ends):
    """A round whose branch ends in these ways, one in the other; the last way is the round's own end."""
    with net.block("turn") as block:
        x = net.input("x", (2,))
        if ends:
            how, *others = ends
            sides = []
            for inner in ((), tuple(others)):
                sides.append(turn(net, *inner))
            node = Node(op_type="If", operands=[x], abstract=x.abstract, blocks=tuple(sides))
            node.control = Control(jumps=(how, ""))
            block.trail.append(node)
    block.output = net.op("MakeTuple", x)
    return block


def test_the_ends_of_a_round(net):
    plain = turn(net)
    assert list(ends_of(plain)) == [("", plain.output)]
    block = turn(net, "break", "continue")
    (branch,) = (node for node in block.trail if node.op_type == "If")
    first, rest = branch.blocks
    (branch,) = (node for node in rest.trail if node.op_type == "If")
    second, last = branch.blocks
    assert list(ends_of(block)) == [("break", first.output), ("continue", second.output), ("", last.output)]


def test_code_after_a_branch_that_uses_values_from_before_is_a_child(net):
    x = net.input("x", (2,))
    before, other = net.op("Exp", x), net.op("Sin", x)
    uses_it, apart = net.op("Neg", before), net.op("Neg", x)
    bundle = net.op("MakeTuple", apart, before)
    assert is_child([apart, uses_it], x, [before])
    assert not is_child([apart], x, [before])
    assert not is_child([uses_it], x, [other])
    assert is_child([], bundle, [before])
    assert not is_child([], net.op("MakeTuple", apart, x), [before])
    assert not is_child([], before, [before])


def test_everything_in_blocks_comes_before_the_node(net):
    x = net.input("x", (2,))
    net.op("Abs", x)
    chosen(net, x)
    kinds = [node.op_type for node in everything(net.graph.trail) if node.op_type not in ("TupleGetItem", "ReduceSum")]
    assert kinds == ["Abs", "Greater", "Exp", "Mul", "Tanh", "If"]
