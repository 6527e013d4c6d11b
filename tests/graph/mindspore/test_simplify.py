"""Dropping nodes that change nothing."""

import numpy as np
import pytest

from dumpsim.core.abstract import TupleType
from dumpsim.graph.builder import constant
from dumpsim.graph.graph import Node
from dumpsim.graph.mindspore.simplify import product_with_ones, simplify


def simplified(net, output):
    net.graph.output = output
    return simplify(net.graph)


def test_first_of_two_reshapes_is_skipped(net):
    middle = net.op("Reshape", net.op("Exp", net.input("x", (2, 6))), (12,))
    output = net.op("Reshape", middle, (3, 4))
    middle.scope, output.scope = "Default/inner", "Default/outer"
    graph = simplified(net, output)
    assert graph.output is output
    assert output.operands[0].op_type == "Exp"
    assert output.scope == "Default/outer"


def test_reshape_to_its_own_shape_is_dropped(net):
    exp = net.op("Exp", net.input("x", (2, 6)))
    output = net.op("Reshape", net.op("Reshape", exp, (12,)), (2, 6))
    assert simplified(net, output).output is exp


def test_product_with_ones_is_dropped_unless_it_broadcasts(net):
    exp = net.op("Exp", net.input("x", (3,)))
    plain = net.op("Mul", exp, np.ones((), np.float32))
    wide = net.op("Mul", plain, np.ones((2, 3), np.float32))
    graph = simplified(net, wide)
    assert graph.output is wide
    assert wide.operands[0] is exp


def test_a_tuple_of_all_outputs_of_one_node_in_their_order_is_that_node(net):
    x = net.input("x", (2, 6))
    split, other = net.op("Split", x, 1, 2), net.op("Split", net.op("Exp", x), 1, 2)
    first, second = net.item(split, 0), net.item(split, 1)

    def behind(*values):
        bundle = Node(op_type="MakeTuple", operands=list(values), abstract=TupleType(items=(x.abstract,) * len(values)))
        depend = Node(op_type="Depend", operands=[x, bundle], abstract=x.abstract)
        net.place(depend)
        return depend, bundle

    kept = [(second, first), (first,), (first, second, first), (first, net.item(other, 1)), (first, x), (x, first), ()]
    pairs = [behind(*values) for values in kept]
    whole, _ = behind(first, second)
    simplified(net, net.op("MakeTuple", x, split, other))
    assert whole.operands[0] is x
    assert whole.operands[1] is split
    assert all(depend.operands[1] is bundle for depend, bundle in pairs)


@pytest.mark.parametrize(
    ("shape", "ones", "gone"),
    [
        ((2, 1), (2, 1), True),
        ((2, 3), (1, 3), True),
        ((2, 3), (2, 1), True),
        ((2, 1), (1, 3), False),
        ((-1, 3), (3,), False),  # an open shape may be broadcast
        ((), (), True),
    ],
)
@pytest.mark.parametrize("first", [True, False])
def test_a_product_is_dropped_if_its_shape_is_that_of_the_factor(net, shape, ones, gone, first):
    x, factor = net.input("x", shape), constant(np.ones(ones, np.float32))
    assert product_with_ones(*((factor, x) if first else (x, factor))) is (x if gone else None)


def test_other_constants_and_other_types_stay(net):
    x = net.input("x", (3,))
    assert product_with_ones(x, constant(np.array([1, 1, 2], np.float32))) is None
    assert product_with_ones(x, constant(np.ones(3, np.float16))) is None  # the product is of another type
    assert product_with_ones(x, net.input("y", (3,))) is None
    whole = net.input("n", (3,), "int32")
    assert product_with_ones(whole, constant(np.ones(3, np.int32))) is None  # floats only


def test_a_reshape_of_an_open_shape_stays(net):
    x = net.input("x", (-1, 3))
    output = net.op("Reshape", x, (-1, 3))
    output.abstract = x.abstract
    assert simplified(net, output).output is output


def test_blocks_are_simplified_too(net):
    x, flag = net.input("x", (3,)), net.input("flag", (), "bool")
    (middle,) = net.branch(
        flag, lambda: [net.op("Exp", net.op("Reshape", x, (3,)))], lambda: [net.op("Mul", x, np.ones(3, np.float32))]
    )
    then, other = simplified(net, middle).trail[0].blocks
    assert [node.op_type for node in then.trail] == ["Exp"]
    assert then.trail[0].operands == [x]
    assert other.trail == []
    assert other.output.operands == [x]
