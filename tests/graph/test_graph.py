"""Walks over graphs: order, reach, uses, copies."""

import numpy as np
import pytest

from dumpsim.core.abstract import TupleType
from dumpsim.graph.graph import control_of, copied, leaves_of, reachable, text_of, topological, uses

TWO = np.float32(2)


def types(nodes):
    return [node.op_type for node in nodes]


def test_operands_come_before_users_and_in_their_order(net):
    x = net.input("x", (3,))
    late = net.op("Neg", x)
    first, second = net.op("Exp", x), net.op("Tanh", x)
    both = net.op("Sub", net.op("Add", first, second), first)
    assert types(topological([both])) == ["Exp", "Tanh", "Add", "Sub"]
    assert types(topological([late, both, late, None, x])) == ["Neg", "Exp", "Tanh", "Add", "Sub"]


def test_every_node_comes_once_though_it_is_a_root_too(net):
    x = net.input("x", (3,))
    inner = net.op("Exp", x)
    outer = net.op("Add", inner, inner)
    assert topological([outer, inner, outer]) == [inner, outer]
    assert topological([inner, outer]) == [inner, outer]


def test_a_deep_chain_needs_no_recursion(net):
    value = net.input("x", (3,))
    for _ in range(3000):
        value = net.op("Neg", value)
    assert len(topological([value])) == len(reachable([value])) == 3000


def test_a_branch_uses_what_its_blocks_take_from_outside(net):
    x, y, flag = net.input("x", (3,)), net.input("y", (3,)), net.input("flag", (), "bool")
    before = net.op("Exp", x)
    (made,) = net.branch(flag, lambda: [net.op("Tanh", net.op("Mul", before, TWO))], lambda: [y])
    branch = made.operands[0]
    assert uses(branch) == [flag, before, y]
    assert {id(before), id(branch), id(made)} <= reachable([made])
    assert id(x) not in reachable([made])  # no node


def test_a_loop_uses_neither_its_parameters_nor_its_nodes(net):
    x, flag, w = net.input("x", (3,)), net.input("flag", (), "bool"), net.input("w", (3,))
    made = net.loop({"x": x}, lambda i: net.op("LogicalNot", flag), lambda i: {"x": net.op("Mul", i["x"], w)})["x"]
    assert uses(made.operands[0]) == [x, flag, w]


def test_an_inner_branch_reaches_outside_through_both(net):
    x, flag = net.input("x", (3,)), net.input("flag", (), "bool")
    far = net.op("Exp", x)

    def then():
        near = net.op("Sin", x)
        return net.branch(flag, lambda: [net.op("Add", near, far)], lambda: [near])

    (made,) = net.branch(flag, then, lambda: [x])
    found = uses(made.operands[0])
    assert any(value is far for value in found)
    assert not any(getattr(value, "op_type", "") == "Sin" for value in found)
    assert id(far) in reachable([made])


def test_a_copy_shares_no_node(net):
    x, flag = net.input("x", (3,)), net.input("flag", (), "bool")
    before = net.op("Exp", x)
    text_of(before).attrs["mine"] = 1
    (made,) = net.branch(flag, lambda: [net.op("Tanh", before)], lambda: [net.op("Neg", x)])
    net.give(net.op("Add", made, before))
    control_of(made.operands[0]).joins = True
    copy = copied(net.graph)
    assert types(copy.nodes()) == types(net.graph.nodes())
    assert not {id(node) for node in copy.trail} & {id(node) for node in net.graph.trail}
    assert [p.name for p in copy.parameters] == ["x", "flag"]
    assert copy.parameters[0] is not x
    exp = next(node for node in copy.trail if node.op_type == "Exp")
    assert exp.operands == [copy.parameters[0]]
    branch = next(node for node in copy.trail if node.op_type == "If")
    assert branch.operands == [copy.parameters[1]]
    assert branch.blocks[0].trail[0].operands == [exp]
    assert branch.blocks[1].output.operands == [branch.blocks[1].trail[0]]
    exp.text.attrs["mine"], exp.attrs["other"], branch.control.joins = 2, 3, False
    assert (before.text.attrs, before.attrs) == ({"mine": 1}, {})
    assert made.operands[0].control.joins is True


def test_a_graph_without_output_has_no_nodes(net):
    net.op("Exp", net.input("x", (3,)))
    assert net.graph.nodes() == []
    assert copied(net.graph).output is None
    assert len(copied(net.graph).trail) == 1


@pytest.mark.parametrize("depth", [0, 1, 2])
def test_leaves_are_the_tensors_of_nested_tuples(net, depth):
    leaf = abstract = net.input("x", (3,)).abstract
    for _ in range(depth):
        abstract = TupleType(items=(abstract, leaf))
    assert list(leaves_of(abstract)) == [leaf] * (depth + 1)
