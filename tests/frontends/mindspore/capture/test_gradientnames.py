"""The numbers that the gradient of a jit function uses up, against those of a traced MindSpore compiler."""

import pytest

from dumpsim.core.abstract import TensorType, TupleType
from dumpsim.core.dtype import dtype
from dumpsim.frontends.mindspore._capture import gradientnames
from dumpsim.graph.graph import Node, Parameter


def tensor(*shape):
    return TensorType(dtype=dtype("float32"), shape=shape)


def node(op_type, *operands, kind=None):
    return Node(op_type=op_type, operands=list(operands), abstract=kind or operands[0].abstract)


def two_uses():
    y = node("Tanh", Parameter(name="x", abstract=tensor(2, 3)))
    exp = node("Exp", y)
    return [y, exp, node("Mul", y, exp)]


def three_uses():
    y = node("Tanh", Parameter(name="x", abstract=tensor(2, 3)))
    exp, sin = node("Exp", y), node("Sin", y)
    add = node("Add", y, exp)
    return [y, exp, sin, add, node("Add", add, sin)]


def two_sums(*shape):
    y = node("Tanh", Parameter(name="x", abstract=tensor(3, 3)))
    exp = node("Exp", y)
    product = node("Mul", y, exp)
    z = node("ReduceSum", product, kind=tensor(*shape))
    sin = node("Sin", z)
    return [y, exp, product, z, sin, node("Mul", z, sin)]


def weight():
    x = Parameter(name="x", abstract=tensor(3, 3))
    return [node("Mul", node("Tanh", x), Parameter(name="w", abstract=tensor(3, 3), is_weight=True))]


def element(*kinds):
    def nodes():
        whole = node("Split", Parameter(name="x", abstract=tensor(3, 3)), kind=TupleType(items=kinds))
        part = node("TupleGetItem", whole, kind=kinds[0])
        return [whole, part, node("Exp", part)]

    return nodes


@pytest.mark.parametrize(
    ("nodes", "operators", "others"),
    [
        (two_uses, set(), 0),
        (three_uses, {"add_backward"}, 0),
        (lambda: two_sums(3, 3), {"add_backward"}, 0),
        (lambda: two_sums(3), set(), 0),
        (weight, {"zeros_like"}, 0),
        (element(tensor(1, 3), tensor(1, 3), tensor(1, 3)), {"zeros_like"}, 2),
        (element(tensor(3), TensorType(dtype=dtype("int64"), shape=(3,))), {"zeros_like"}, 1),
    ],
)
def test_numbers_that_a_gradient_takes(nodes, operators, others):
    made = nodes()
    assert gradientnames.operators(made, [made[-1]]) == operators
    assert gradientnames.others(made) == others


def test_each_element_makes_zeros_of_its_own():
    parts = [node for _ in range(2) for node in element(tensor(3, 3), tensor(3, 1), tensor(3, 1))()]
    assert gradientnames.others(parts) == 3
