"""Side effects in order: from a captured graph to the structure that real MindSpore's text shows."""

import numpy as np
import pytest

from dumpsim.core.abstract import TupleType
from dumpsim.graph.effects import DEAD
from dumpsim.graph.graph import Graph, Node, text_of
from dumpsim.graph.mindspore.functions import made_functions
from dumpsim.graph.mindspore.monads import add_monads, joined
from dumpsim.ops.table import find
from tests.graph.compiled import root_of


def lines_of(graph):
    """Nodes in post-order, ``2 UpdateState(U, %0, %1)``."""
    nodes = graph.nodes()
    place = {id(node): f"%{at}" for at, node in enumerate(nodes)}
    place |= {id(parameter): parameter.name for parameter in graph.parameters}

    def name(value):
        return place.get(id(value)) or ("U" if getattr(value, "value", None) == "U" else "#")

    return [f"{at} {node.op_type}({', '.join(map(name, node.operands))})" for at, node in enumerate(nodes)]


def compiled(net, output):
    net.graph.output = output
    return lines_of(root_of(net.graph))


@pytest.fixture
def weights(net):
    return [net.weight(name, np.zeros(2, np.float32)) for name in "abc"]


@pytest.mark.parametrize(
    ("reads", "order"),
    [
        ("a", "a"),
        ("a b", "ab"),
        ("a b c", "bac"),
        ("a b c d e f", "ecabdf"),
        ("a bcde f g", "faedcbg"),  # BatchNorm that does not train reads four weights at once [observed 2.10]
        ("a b a", "ba"),
    ],
)
def test_loads_that_follow_each_other(reads, order):
    assert "".join(joined(reads.split())) == order


def test_a_forward_net(net, weights):
    x = net.input("x", (2,))
    for weight in weights:
        x = net.op("Add", x, weight)
    assert compiled(net, x) == [
        "0 Load(a, U)",
        "1 Add(x, %0)",
        "2 Load(b, U)",
        "3 Add(%1, %2)",
        "4 Load(c, U)",
        "5 Add(%3, %4)",
        "6 MakeTuple(%2, %0, %4)",
        "7 UpdateState(U, %6)",
        "8 Depend(%5, %7)",
    ]


def test_readers_run_before_the_writer(net, weights):
    """And the weight that is read at two times is copied each time. [observed 2.10: corpus h_paramline]"""
    a = weights[0]
    product = net.op("Mul", net.input("x", (2,)), a)
    net.op("Assign", a, net.op("Neg", product))
    total = net.op("Add", product, a)
    assert compiled(net, total) == [
        "0 Load(a, U)",
        "1 TensorMove(%0)",
        "2 Mul(x, %1)",
        "3 UpdateState(U, %1, %2)",
        "4 Neg(%2)",
        "5 Assign(a, %4, %3)",
        "6 UpdateState(%3, %5)",
        "7 Load(a, %6)",
        "8 TensorMove(%7)",
        "9 Add(%2, %8)",
        "10 UpdateState(%6, %8)",
        "11 Depend(%9, %10)",
    ]


def test_loads_that_need_not_wait_take_the_first_token(net, weights):
    """The last of those at a token stays. [observed 2.10: corpus h_traineval]"""
    a, b, c = weights
    x = net.input("x", (2,))
    net.op("Assign", a, x)
    total = net.op("Add", net.op("Add", x, b), c)
    found = compiled(net, total)
    assert "Load(b, U)" in " ".join(found)
    assert any("Load(c, %" in line for line in found)


@pytest.mark.parametrize(("again", "order"), [("", "b c"), ("a", "b c"), ("b", "c"), ("bc", "")])
def test_loads_that_repeat_an_unused_load_do_not_join_the_bundle(net, weights, again, order):
    """The bundle has the first load of each weight, and loses what nobody else takes. [observed 2.10: six nets]"""
    x = net.input("x", (2,))
    for name, weight in zip("abc", weights, strict=True):
        if name in again:
            dead = (weight,)
            net.graph.trail.append(
                Node(
                    op_type=DEAD,
                    operands=[],
                    abstract=TupleType(items=()),
                    attrs={"reads": True, "waits": True, "weights": dead},
                )
            )
    net.graph.output = net.op("Add", net.op("Mul", x, weights[1]), weights[2])
    found = lines_of(root_of(net.graph, woven_only=True))
    names = {line.split()[0]: line[line.index("(") + 1] for line in found if " Load(" in line}
    (state,) = [line for line in found if "UpdateState" in line] or [""]
    bundle = next((line for line in found if "MakeTuple" in line), state.replace("U,", ""))
    taken = [one.strip() for one in bundle[bundle.find("(") + 1 : -1].replace("%", "").split(",")]
    assert [names[one] for one in taken if one] == order.split()


def test_loads_on_both_sides_of_another_weights_write_are_one(net, weights):
    a, b, _ = weights
    x = net.op("Add", net.input("x", (2,)), b)
    net.op("Assign", a, x)
    found = compiled(net, net.op("Add", x, b))
    assert sum("Load(b" in line for line in found) == 1


def test_loads_on_both_sides_of_a_write_of_the_weight_stay_two(net, weights):
    a = weights[0]
    x = net.op("Add", net.input("x", (2,)), a)
    net.op("Assign", a, x)
    found = compiled(net, net.op("Add", x, a))
    assert sum("Load(a" in line for line in found) == 2


@pytest.mark.parametrize(("by_weights", "order"), [(True, "c a b"), (False, "b a c")])
def test_loads_before_a_gradient(net, weights, by_weights, order):
    """The zeros of gradients by weights read these once more, which turns the order round. [corpus h_gradgraph]"""
    x = net.input("x", (2,))
    for weight in weights:
        x = net.op("Mul", x, weight)
    back = net.op("Mul", x, weights[0])
    back.scope = "Gradients/Default"
    net.graph.differentiates_weights = by_weights
    found = compiled(net, back)
    names = {line.split()[0]: line[line.index("(") + 1] for line in found if " Load(" in line}
    (bundle,) = (line for line in found if "MakeTuple" in line)
    assert [names[one] for one in bundle[bundle.index("(") + 1 : -1].replace("%", "").split(", ")] == order.split()


def test_a_weight_is_read_again_after_a_branch_with_effects(net, weights):
    """Even if the branch writes another one."""
    a, b, _ = weights
    x = net.input("x", (2,))
    first = net.op("Mul", x, a)

    def then():
        net.op("Assign", b, x)
        return [net.op("Exp", x)]

    (given,) = net.branch(net.input("flag", (), "bool"), then, lambda: [net.op("Neg", x)])
    lines = compiled(net, net.op("Mul", net.op("Add", first, given), a))
    (call,) = (int(line.split()[0]) for line in lines if "Call(" in line)
    reads = [int(line.split()[0]) for line in lines if "Load(a, " in line]
    assert len(reads) == 2
    assert reads[0] < call < reads[1]


@pytest.mark.parametrize(("block", "scope"), [("", "Default/cell"), ("Default/block", "Default/block")])
def test_a_token_follows_each_tuple_of_weights_before_loads_are_merged(net, weights, block, scope):
    a, b, _ = weights
    first = net.op("Mul", net.input("x", (2,)), a)
    bundle = net.maker.emit("MakeTuple", a, b)
    bundle.scope, text_of(bundle).block_scope = "Default/cell", block
    net.graph.output = net.op("Add", net.op("Add", first, net.op("AddN", bundle)), b)
    form = made_functions(net.graph)
    add_monads(form, find, orders_bundles=True)
    root = Graph(name="", parameters=net.graph.parameters, output=form.root.output, trail=form.root.trail)
    assert lines_of(root) == [
        "0 Load(a, U)",
        "1 Mul(x, %0)",
        "2 UpdateState(U, %0)",
        "3 Load(a, %2)",
        "4 Load(b, %2)",
        "5 MakeTuple(%3, %4)",
        "6 AddN(%5)",
        "7 Add(%1, %6)",
        "8 Add(%7, %4)",
        "9 UpdateState(%2, %5)",
        "10 UpdateState(%9, %4)",
        "11 Depend(%8, %10)",
    ]
    (tied,) = [node for node in root.nodes() if node.op_type == "UpdateState" and node.operands[1] is bundle]
    assert tied.scope == scope
