"""The order of lifted parameters of functions, as in real MindSpore's final IR."""

import pytest

from dumpsim.graph.graph import Control, Origin
from dumpsim.graph.mindspore.closures import lift_closures
from dumpsim.graph.mindspore.funcform import number_functions
from dumpsim.graph.mindspore.functions import made_functions


def names(form, kind):
    """What the functions of a kind take, by the names of the network's arguments."""
    return [[p.name for p in function.parameters if p.name] for function in form.functions if function.kind == kind]


def lifted(net):
    form = made_functions(net.graph)
    number_functions(form)
    lift_closures(form)
    return form


@pytest.fixture
def inputs(net):
    return [net.input(name, (3,)) for name in ("x", "y", "z", "n")]


def test_values_of_inner_functions_come_before_those_of_the_header(net, inputs):
    """As in net r1_006: the header takes what the function after the loop takes, and n."""
    x, y, z, n = inputs
    i = net.input("i", (), "int32")
    net.loop({"i": i}, lambda at: net.op("Less", at["i"], n), lambda at: {"i": net.op("Neg", at["i"])})
    net.give(net.op("Add", net.op("Sub", z, net.op("Neg", z)), y), x)
    form = lifted(net)
    assert names(form, "after") == [["x", "y", "z"]]
    assert names(form, "header") == [["x", "y", "z", "n", "i"]]
    assert names(form, "body") == [["x", "y", "z", "i", "n"]]


def test_operands_are_visited_from_last_to_first(net, inputs):
    """What the second side takes comes first, then the first side, then what the function itself uses."""
    x, y, z, n = inputs
    flag = net.input("flag", (), "bool")

    def then():
        (value,) = net.branch(flag, lambda: [net.op("Exp", x)], lambda: [net.op("Neg", y)])
        return [net.op("Mul", value, net.op("Sin", z))]

    (value,) = net.branch(flag, then, lambda: [n])
    net.give(value)
    (outer, *_) = names(lifted(net), "true")
    assert outer == ["y", "x", "z", "flag"]


def test_sides_with_the_same_source_and_values_are_one_function(net, inputs):
    """As in net r1_067: a side that uses nothing of a loop's turn is one function for all turns."""
    x, y, z, _ = inputs
    flags = [net.input(name, (), "bool") for name in ("one", "two")]
    values = []
    for flag, other in zip(flags, (y, z), strict=True):
        values += net.branch(flag, lambda: [net.op("Exp", x)], lambda other=other: [net.op("Neg", other)])
        node = net.graph.trail[-2]
        assert node.op_type == "If"
        origins = Origin(key="then", values=(x,), keeps=None), Origin(key="else", values=(other,), keeps=None)
        node.control = Control(origins=origins)
    net.give(*values)
    assert [function.kind for function in made_functions(net.graph).functions] == ["root", "true", "false", "false"]
