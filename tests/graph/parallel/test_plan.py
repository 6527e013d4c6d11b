"""Which operators of a network are cut, their tensor operands, and the sources of values."""

from itertools import product

import numpy as np
import pytest

from dumpsim.core.abstract import ScalarType, TensorType, TupleType
from dumpsim.core.cutting import StrategyError
from dumpsim.core.dtype import dtype
from dumpsim.core.errors import UnsupportedError
from dumpsim.core.tensorlayout import TensorLayout
from dumpsim.graph.builder import constant
from dumpsim.graph.graph import Graph, Node, Parameter
from dumpsim.graph.mindspore.gradient_node import gradient_node
from dumpsim.graph.parallel.plan import edges_of, forward_nodes, is_cut, plan_of, source_of
from dumpsim.graph.parallel.propagation import plan_propagated, propagated
from dumpsim.graph.parallel.settings import Settings

KIND = TensorType(dtype=dtype("float32"), shape=(8, 16))
NUMBER = ScalarType(dtype=dtype("int64"), value=3)
X, Y = (Parameter(name=name, abstract=KIND) for name in "xy")
SETTINGS = Settings(device_num=4, rank=1)


def node(op_type, *operands, kind=KIND, **attrs):
    return Node(op_type=op_type, operands=list(operands), abstract=kind, attrs=attrs)


def bundle(*operands):
    return node("MakeTuple", *operands, kind=TupleType(items=tuple(value.abstract for value in operands)))


def item(source, at):
    return node("TupleGetItem", source, constant(at))


@pytest.mark.parametrize(
    ("op_type", "expected"),
    [(name, True) for name in ("MatMul", "ReLU", "Cast", "Gather")]
    + [
        (name, False)
        for name in (
            *("MakeTuple", "TupleGetItem", "Load", "Depend", "UpdateState", "Return", "StopGradient", "TensorDump"),
            *("Print", "Reshape", "_VirtualDataset", "VirtualLoss"),
        )
    ],
)
def test_nodes_that_order_bundle_or_pass_values_on_are_not_cut(op_type, expected):
    assert is_cut(node(op_type, X)) is expected


def test_control_flow_is_not_cut():
    assert not is_cut(Node(op_type="If", operands=[X], abstract=KIND, blocks=(Graph(), Graph())))


def test_the_tensor_operands_of_an_operator_are_those_of_its_tuples_too():
    inner = bundle(Y, X)
    pair = bundle(X, inner)
    numbers = bundle(constant(1), constant(2))
    concat = node("Concat", pair, constant(0), numbers, Y)
    assert [(edge.node, edge.at, edge.value) for edge in edges_of(concat)] == [
        (pair, 0, X),
        (inner, 0, Y),
        (inner, 1, X),
        (concat, 3, Y),
    ]
    assert list(edges_of(node("Split", node("Other", kind=pair.abstract)))) == []


def test_the_source_of_a_value_is_behind_what_passes_it_on():
    relu = node("ReLU", X)
    passed = node("Depend", node("Load", node("StopGradient", relu)), X)
    assert source_of(passed) == (relu, 0)
    assert source_of(X) == (X, 0)
    several = node("Split", X, kind=TupleType(items=(KIND, KIND, KIND)))
    assert source_of(node("Depend", item(several, 2), X)) == (several, 2)
    assert source_of(several) == (several, 0)


def test_the_source_of_an_item_of_a_tuple_is_that_of_the_operand():
    several = node("Split", X, kind=TupleType(items=(KIND, KIND)))
    pair = bundle(X, item(several, 1), Y)
    assert source_of(item(pair, 0)) == (X, 0)
    assert source_of(item(pair, 1)) == (several, 1)
    assert source_of(item(pair, 2)) == (Y, 0)
    assert source_of(pair) == (pair, 0)
    nested = bundle(Y, pair)
    assert source_of(item(nested, 1)) == (pair, 0)


def names(nodes):
    return [one.op_type for one in nodes]


def test_without_a_gradient_every_node_belongs_to_the_forward_pass():
    graph = Graph(name="net", parameters=[X])
    graph.trail = [node("ReLU", X), node("Exp", X)]
    assert forward_nodes(graph) == graph.trail


def test_the_forward_pass_is_what_the_loss_needs_and_what_depends_on_arguments_only():
    weight = Parameter(name="w", abstract=KIND, is_weight=True)
    graph = Graph(name="net", parameters=[X, weight])
    used = node("Mul", X, weight)
    aside = node("Tanh", X)
    after_aside = node("Sin", aside)
    of_weight = node("Neg", weight)
    taken = gradient_node(used, constant(1.0), (weight,))
    part = item(taken, 0)
    mixed = node("Sub", part, X)
    later = node("Cos", mixed)
    graph.trail = [used, aside, after_aside, of_weight, taken, part, mixed, later]
    assert names(forward_nodes(graph)) == ["Mul", "Tanh", "Sin"]


def test_a_gradient_inside_of_control_flow_is_refused():
    block = Graph(name="then", trail=[gradient_node(node("ReLU", X), constant(1.0), (X,))])
    graph = Graph(name="net", parameters=[X])
    graph.trail = [Node(op_type="If", operands=[X], abstract=KIND, blocks=(block, Graph()))]
    with pytest.raises(UnsupportedError, match="a gradient in a branch or loop of a network that is split"):
        forward_nodes(graph)


def add(**attrs):
    return plan_of(node("Add", X, Y), SETTINGS, attrs)


def test_a_plan_has_the_strategy_of_the_script():
    plan = add(in_strategy=((2, 2), (2, 2)))
    assert plan.is_given
    assert plan.strategy == ((2, 2), (2, 2))
    assert [layout.cuts for layout in (*plan.layouts.inputs, *plan.layouts.outputs)] == [(2, 2)] * 3
    assert [(edge.at, edge.value) for edge in plan.edges] == [(0, X), (1, Y)]
    assert plan.operator.shapes == ((8, 16), (8, 16))
    assert plan.operator.outputs == ((8, 16),)
    assert plan.operator.devices == 4


def test_without_a_strategy_the_first_axis_is_cut():
    """[spec parallel 2.2: the batch is cut over all devices]"""
    plan = add()
    assert not plan.is_given
    assert plan.strategy == ((4, 1), (4, 1))
    generated = plan_of(node("Add", X, Y), SETTINGS, {}, ((1, 2), (1, 2)))
    assert not generated.is_given
    assert generated.strategy == ((1, 2), (1, 2))
    assert plan_of(node("Add", X, Y), SETTINGS, {"in_strategy": ((2, 1), (2, 1))}, ((1, 2), (1, 2))).strategy == (
        (2, 1),
        (2, 1),
    )


def test_a_strategy_may_be_of_layouts():
    layout = TensorLayout((2, 2), (0, 1), (8, 16))
    plan = add(in_strategy=(layout, layout))
    assert plan.is_given
    assert plan.strategy == ((2, 2), (2, 2))
    assert [one.region(1) for one in plan.layouts.inputs] == [layout.region(1)] * 2
    assert plan.layouts.outputs[0].region(2) == layout.region(2)


def test_an_output_strategy_scatters_the_sum():
    product = node("MatMul", X, Parameter(name="w", abstract=TensorType(dtype=dtype("float32"), shape=(16, 4))),
                   constant(False), constant(False), kind=TensorType(dtype=dtype("float32"), shape=(8, 4)))  # fmt: skip
    rows = {"in_strategy": ((2, 2), (2, 1))}
    plain = plan_of(product, SETTINGS, rows)
    assert plain.scheme.reduction.kind == "sum"
    assert plain.layouts.outputs[0].cuts == (2, 1)
    scattered = plan_of(product, SETTINGS, {**rows, "out_strategy": ((4, 1),)})
    assert scattered.scheme.reduction.kind == "scatter"
    assert scattered.layouts.outputs[0].cuts == (4, 1)
    with pytest.raises(StrategyError, match="the output cannot be cut into"):
        plan_of(product, SETTINGS, {**rows, "out_strategy": ((2, 2),)})


@pytest.mark.parametrize(
    "shapes",
    [
        ((8, 16), (16, 4)),
        ((2, 8, 16), (2, 16, 4)),
        ((2, 8, 16), (16, 4)),
        ((4, 2, 8, 16), (2, 16, 4)),
        ((4, 2, 8, 16), (4, 1, 16, 4)),
        ((2, 8, 16), (4, 2, 16, 8)),
        ((8, 16), (2, 16, 4)),
    ],
)
@pytest.mark.parametrize("transposed", [False, True])
def test_a_product_of_parts_is_a_part_of_the_product(shapes, transposed):
    """The strategy of a product that follows its first operand cuts the second one so that the parts fit together."""
    first, second = shapes
    for cuts in product((1, 2), repeat=len(first)):
        source = TensorLayout(cuts, tuple(reversed(range(len(cuts)))), first)
        turned = (*second[:-2], second[-1], second[-2]) if transposed else second
        rows, columns = propagated("BatchMatMul", [first, turned], [source, None], transposed=transposed)
        assert rows == cuts
        assert len(columns) == len(turned)
        columns = (*columns[:-2], columns[-1], columns[-2]) if transposed else columns
        parts = [
            np.zeros([n // cut for n, cut in zip(*pair, strict=True)]) for pair in ((first, rows), (second, columns))
        ]
        whole = np.zeros(first) @ np.zeros(second)
        outer = len(whole.shape) - len(first)
        wanted = [n // (cuts[at - outer] if at >= outer else 1) for at, n in enumerate(whole.shape[:-1])]
        assert list((parts[0] @ parts[1]).shape) == [*wanted, whole.shape[-1]]


def test_products_follow_their_first_operand_only():
    source = TensorLayout((4,), (0, -1), (16, 4))
    assert propagated("MatMul", [(8, 16), (16, 4)], [None, source]) is None
    assert propagated("Add", [(8, 16), (16, 4)], [None, None]) is None
    assert propagated("Add", [(16, 4), (16, 4)], [None, source]) == ((4, 1), (4, 1))
    assert (
        propagated("Add", [(1, 4), (2, 16, 4)], [None, source]) is None
    )  # the operand has another shape than its source


@pytest.mark.parametrize("op_type", ["MatMul", "BatchMatMul"])
def test_a_transposed_product_follows_its_operands(op_type):
    first = TensorLayout((2, 2), (1, 0), (8, 16))
    for transposed, shape, strategy in ((False, (16, 4), (2, 1)), (True, (4, 16), (1, 2))):
        weight = Parameter(name="w", abstract=TensorType(dtype=dtype("float32"), shape=shape))
        kind = TensorType(dtype=dtype("float32"), shape=(8, 4))
        made = node(op_type, X, weight, constant(False), constant(transposed), kind=kind)
        plan = plan_propagated(made, SETTINGS, {}, {id(X): (first,)})
        assert plan.strategy == ((2, 2), strategy)
        assert not plan.is_given
