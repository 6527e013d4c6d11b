"""Calls of a capture, and the numbers that function graphs use up."""

import numpy as np
import pytest

from dumpsim.graph.compilation import Functions
from dumpsim.graph.graph import Node
from dumpsim.graph.mindspore.calls import Call, CallStack
from dumpsim.graph.mindspore.numbering import function_numbers

TWO = np.float32(2)


def outline(call):
    """Names of calls with what is in them; nodes by their types, what follows a branch with a star."""
    inside = [outline(entry) if isinstance(entry, Call) else entry.op_type for entry in call.entries]
    return call.name + "*" * call.is_rest, inside


@pytest.fixture
def calls():
    return CallStack("root")


def recorded(calls, *types):
    for op_type in types:
        calls.record(Node(op_type=op_type, operands=[], abstract=None))


def test_nodes_belong_to_the_innermost_call(calls):
    recorded(calls, "Exp")
    with calls.calling("f"):
        recorded(calls, "Tanh")
        with calls.calling("g"):
            recorded(calls, "Sin")
        recorded(calls, "Neg")
    recorded(calls, "Cos")
    assert outline(calls.root) == ("root", ["Exp", ("f", ["Tanh", ("g", ["Sin"]), "Neg"]), "Cos"])


def test_the_latest_call_is_that_of_the_innermost_open_one(calls):
    assert calls.latest() is None
    with calls.calling("f"):
        with calls.calling("g"):
            assert calls.latest() is None
        recorded(calls, "Exp")
        assert calls.latest().name == "g"
    assert calls.latest().name == "f"


def test_a_call_ends_where_its_function_raises(calls):
    with pytest.raises(KeyError), calls.calling("f"):
        raise KeyError
    recorded(calls, "Exp")
    assert outline(calls.root) == ("root", [("f", []), "Exp"])


@pytest.mark.parametrize("fixed", [True, False])
def test_the_code_after_a_branch_with_a_fixed_condition_is_inside_of_it(calls, fixed):
    depth = calls.enter("branch")
    recorded(calls, "Tanh")
    calls.leave_branch(depth, ["value"], fixed=fixed)
    recorded(calls, "Neg")
    rest = ("rest*", ["Neg"])
    assert outline(calls.root) == ("root", [("branch", ["Tanh", rest])] if fixed else [("branch", ["Tanh"]), rest])
    assert calls.root.entries[0].values == ["value"]


@pytest.mark.parametrize("fixed", [True, False])
def test_the_tail_of_a_function_is_the_code_after_its_branch(calls, fixed):
    calls.leave_branch(calls.enter("branch"), [], fixed=fixed)
    branch, last = calls.root.entries[0], calls.root.entries[-1]
    assert calls.root.tail is last
    assert branch.is_branch
    assert not last.is_rest or not last.is_branch
    assert (last is branch) == fixed
    assert branch.tail is (branch.entries[0] if fixed else None)


def test_a_call_or_a_branch_that_ends_itself_is_no_tail(calls):
    assert calls.root.tail is None
    with calls.calling("f"):
        calls.leave_branch(calls.enter("branch"), [], fixed=True)
    assert calls.root.tail is None  # a call with a tail is not a branch
    calls.leave(calls.enter("branch"))
    assert calls.root.tail is None
    recorded(calls, "Exp")
    assert calls.root.tail is None


def test_an_unrolled_loop_goes_on_in_two_graphs(calls):
    calls.turn(is_last=False)
    recorded(calls, "Exp")
    calls.leave(1)
    assert outline(calls.root) == ("root", [("rest*", [("rest*", ["Exp"])])])
    (header,) = calls.root.entries
    assert [call.is_held for call in (header, *header.entries)] == [False, True]
    recorded(calls, "Neg")
    assert calls.root.entries[-1].op_type == "Neg"


def test_the_code_after_an_unrolled_loop_does_not_wait_for_the_counter(calls):
    calls.turn(is_last=True)
    (header,) = calls.root.entries
    assert not any(call.is_held for call in (header, *header.entries))


# -- numbers


def numbers(net):
    found = function_numbers(net.graph)
    assert isinstance(found, Functions)
    return found.before, found.after


def choose(net, x, flag, rest=False):
    (made,) = net.branch(flag, lambda: [net.op("Tanh", x)], lambda: [net.op("Neg", x)])
    return net.op("Mul", made, x) if rest else made


def turn(net, x, flag, step):
    return net.loop({"x": x}, lambda inside: net.op("LogicalNot", flag), lambda inside: {"x": step(inside["x"])})["x"]


@pytest.mark.parametrize("rest", [True, False])
def test_a_branch_takes_four_and_two(net, rest):
    choose(net, net.input("x", (3,)), net.input("flag", (), "bool"), rest)
    assert numbers(net) == (2 + 4, 2)


@pytest.mark.parametrize(("op", "more"), [("Mul", 0), ("Add", 1)])
def test_a_loop_takes_five_and_one_for_additions(net, op, more):
    turn(net, net.input("x", (3,)), net.input("flag", (), "bool"), lambda x: net.op(op, x, TWO))
    assert numbers(net) == (2 + 5 + more, 2)


def test_an_open_shape_takes_one(net):
    net.op("Exp", net.input("x", (-1,)))
    assert numbers(net) == (3, 0)


def test_an_open_shape_inside_takes_one(net):
    net.op("Exp", net.input("x", (3,))).abstract = net.input("y", (-1, 2)).abstract
    net.graph.parameters.pop()
    assert numbers(net) == (3, 0)


@pytest.mark.parametrize(("rest", "more"), [(True, 1), (False, 0)])
def test_a_branch_in_a_loop_takes_one_where_statements_follow(net, rest, more):
    x, flag = net.input("x", (3,)), net.input("flag", (), "bool")
    turn(net, x, flag, lambda inside: choose(net, inside, flag, rest))
    assert numbers(net) == (2 + 5 + 4 + more, 4)


def test_a_branch_in_a_branch_in_a_loop_is_in_the_loop(net):
    x, flag = net.input("x", (3,)), net.input("flag", (), "bool")

    def step(inside):
        (made,) = net.branch(flag, lambda: [choose(net, inside, flag, True)], lambda: [inside])
        return made

    turn(net, x, flag, step)
    assert numbers(net) == (2 + 5 + 4 + (4 + 1), 6)


def test_a_branch_in_a_branch_is_in_no_loop(net):
    x, flag = net.input("x", (3,)), net.input("flag", (), "bool")
    net.branch(flag, lambda: [choose(net, x, flag, True)], lambda: [x])
    assert numbers(net) == (2 + 4 + 4, 4)
