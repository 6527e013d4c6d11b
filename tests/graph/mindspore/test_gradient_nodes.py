"""The builder of gradients: scopes, sums, folding, positions of nodes."""

import numpy as np
import pytest

from dumpsim.core.abstract import TensorType
from dumpsim.core.dtype import dtype
from dumpsim.graph.builder import constant
from dumpsim.graph.graph import Constant, Graph, Node, text_of
from dumpsim.graph.mindspore.folding import fold, is_foldable
from dumpsim.graph.mindspore.gradient_nodes import NodeBuilder
from dumpsim.ops.table import find

VECTOR = TensorType(dtype=dtype("float32"), shape=(3,))
ONES = np.ones(3, np.float32)


@pytest.fixture
def builder(net):
    return NodeBuilder(find, net.place, {})


def test_nodes_go_into_the_scope_of_their_forward_node(net):
    x = net.input("x", (3,))
    forward = net.op("Tanh", x)
    forward.scope, text_of(forward).sources = "Default/a", ("line",)
    builder = NodeBuilder(find, net.place, {})
    with builder.backward_of(forward):
        inner = builder.emit("Exp", x)
    outer = builder.emit("Neg", x)
    assert inner.scope == "Gradients/Default/a/Grad_Tanh"
    assert (inner.text.sources, inner.text.candidate) == (("line",), "forward node")
    assert outer.scope == "Gradients/Default"
    assert outer.text is None or outer.text.candidate == ""
    assert net.graph.trail == [forward, inner, outer]


def test_a_shared_scope_comes_before_the_nodes_own(net):
    x = net.input("x", (3,))
    forward = net.op("Tanh", x)
    builder = NodeBuilder(find, net.place, {id(forward): "Default/shared"})
    with builder.backward_of(forward):
        assert builder.emit("Exp", x).scope == "Gradients/Default/shared/Grad_Tanh"


def test_a_gradient_is_named_after_the_primitive_in_the_front_end(net, builder):
    x = net.input("x", (3,))
    forward = net.op("Tanh", x)
    text_of(forward).primitive = "Hyperbolic"
    with builder.backward_of(forward):
        assert builder.emit("Exp", x).scope == "Gradients/Default/Grad_Hyperbolic"


def test_the_scope_is_restored_when_a_rule_raises(net, builder):
    x = net.input("x", (3,))
    with pytest.raises(KeyError), builder.backward_of(net.op("Tanh", x)):
        raise KeyError
    assert builder.emit("Exp", x).scope == "Gradients/Default"


@pytest.mark.parametrize(
    ("mark", "attrs", "wanted"), [("true", {}, "true"), (None, {}, None), ("true", {"dump": "true"}, None)]
)
def test_a_mark_on_a_cell_holds_for_its_gradients(net, builder, mark, attrs, wanted):
    x = net.input("x", (3,))
    forward = net.op("Tanh", x)
    forward.dump_mark, text_of(forward).attrs = mark, attrs
    with builder.backward_of(forward):
        assert builder.emit("Exp", x).dump_mark == wanted
    assert builder.emit("Exp", x).dump_mark is None


# -- sums


def test_a_sum_is_one_node_in_the_scope_of_the_value(net, builder):
    x = net.input("x", (3,))
    value, other = net.op("Exp", x), net.op("Neg", x)
    value.scope = "Default/a"
    total = builder.total((value, other), value)
    assert (total.op_type, total.scope) == ("AddN", "Gradients/Default/a")
    assert total.operands[0].operands == [value, other]
    assert total.text.candidate == "forward node"


def test_zeros_are_not_summed(net, builder):
    x = net.input("x", (3,))
    zeros = constant(np.zeros(3, np.float32))
    assert builder.total((zeros, x, zeros), x) is x
    assert builder.total((zeros, constant(np.zeros(3, np.float32))), x) is zeros
    assert net.graph.trail == []
    assert builder.total((x, zeros, x), x).operands[0].operands == [x, x]


def test_the_sum_for_a_weight_is_in_the_scope_of_its_load(net):
    w, v = net.weight("w", ONES), net.weight("v", ONES)
    grads = net.op("Exp", w), net.op("Neg", w)
    builder = NodeBuilder(find, net.place, {id(w): "Default/load"})
    assert builder.total(grads, w).scope == "Gradients/Default/load"
    assert builder.total(grads, v).scope == "Gradients/Default"
    named = NodeBuilder(find, net.place, {id(w): "Default/load"}, sums="Sums")
    assert named.total(grads, w).scope == "Sums"


# -- folding


def test_operators_of_constants_are_constants(net, builder):
    row = np.arange(6, dtype=np.float32).reshape(2, 3)
    folded = builder.emit("Neg", row)
    assert isinstance(folded, Constant)
    np.testing.assert_array_equal(folded.value, -row)
    cast = builder.emit("Cast", row, dtype("float16"))
    assert cast.value.dtype == np.float16
    assert builder.emit("Reshape", row, (3, 2)).abstract.shape == (3, 2)
    assert net.graph.trail == []


def test_missing_operands_have_their_defaults(builder):
    square = np.ones((3, 2), np.float32)
    assert builder.emit("SumExt", square).value == 6
    assert builder.emit("SumExt", square, (1,), True).value.shape == (3, 1)


@pytest.mark.parametrize(
    ("op_type", "operands"),
    [("Transpose", (np.ones((2, 3), np.float32), (1, 0))), ("ExpandDims", (ONES, 0)), ("Exp", (ONES,)),
     ("Pow", (ONES, ONES)), ("RealDiv", (ONES, np.float32(3))), ("Add", (ONES, np.float32(3)))],
)  # fmt: skip
def test_other_operators_of_constants_are_nodes(builder, op_type, operands):
    """As real 2.10 does with each of them on constant tensors; Add and its like fold where both shapes are equal."""
    assert isinstance(builder.emit(op_type, *operands), Node)


@pytest.mark.parametrize("op_type", ["Add", "Sub", "RealDiv", "Equal"])
def test_operands_of_one_shape_are_folded_element_by_element(builder, op_type):
    assert isinstance(builder.emit(op_type, ONES, ONES), Constant)


def test_items_of_a_tuple_are_checked(net):
    three = constant(np.ones(3, np.float32))
    known = net.op("Concat", net.maker.emit("MakeTuple", three, three), 0)
    assert is_foldable(known)
    assert fold(known, find("Concat")).value.shape == (6,)
    assert not is_foldable(net.op("Concat", net.maker.emit("MakeTuple", three, net.input("x", (3,))), 0))


def test_a_condition_on_a_constant_stays_an_operator(net):
    assert not is_foldable(net.op("LessScalar", constant(np.float32(1)), 4))


def test_late_zeros_are_not_folded(builder):
    late = builder.late_zeros(VECTOR)
    np.testing.assert_array_equal(late.value, np.zeros(3))
    assert isinstance(builder.emit("Reshape", late, (3, 1)), Node)
    assert isinstance(builder.emit("Reshape", builder.zeros(VECTOR), (3, 1)), Constant)


def test_products_with_ones_are_the_other_factor(net, builder):
    x = net.input("x", (3,))
    assert builder.emit("Mul", x, ONES) is x
    assert builder.emit("Mul", ONES, x) is x
    assert builder.emit("Mul", x, 2 * ONES).op_type == "Mul"
    assert builder.emit("Add", x, ONES).op_type == "Add"


# -- positions


def test_a_node_is_inserted_after_another_also_in_a_block(net):
    x, flag = net.input("x", (3,)), net.input("flag", (), "bool")
    first, last = net.op("Exp", x), net.op("Cos", x)
    (made,) = net.branch(flag, lambda: [net.op("Tanh", net.op("Sin", x))], lambda: [net.op("Neg", x)])
    builder = NodeBuilder(find, net.place, {}, graphs=[Graph(), net.graph])
    new = [Node(op_type=f"New{n}", operands=[], abstract=VECTOR) for n in range(3)]
    builder.insert(new[0], after=first)
    assert net.graph.trail[:3] == [first, new[0], last]
    then, other = made.operands[0].blocks
    builder.insert(new[1], after=then.trail[0])
    assert [node.op_type for node in then.trail] == ["Sin", "New1", "Tanh"]
    builder.insert(new[2], after=other.trail[-1])
    assert other.trail[-1] is new[2]
    with pytest.raises(AssertionError, match="no graph holds Abs"):
        builder.insert(new[0], after=Node(op_type="Abs", operands=[], abstract=VECTOR))


def test_an_added_node_gets_the_scope_and_is_placed(net, builder):
    node = Node(op_type="If", operands=[], abstract=VECTOR, scope="elsewhere")
    assert builder.add(node) is node
    assert node.scope == "Gradients/Default"
    assert net.graph.trail == [node]


def test_a_block_takes_the_nodes_made_inside(net):
    builder = NodeBuilder(find, net.place, {}, block=net.block)
    x = net.input("x", (3,))
    with builder.block("unwind") as graph:
        inner = builder.emit("Exp", x)
    outer = builder.emit("Neg", x)
    assert (graph.name, graph.trail, net.graph.trail) == ("unwind", [inner], [outer])
