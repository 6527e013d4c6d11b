"""The results of a network that is split, and the order in which its operators are numbered."""

import pytest

from dumpsim.core.abstract import TensorType, TupleType
from dumpsim.core.dtype import dtype
from dumpsim.graph.graph import Graph, Node, Parameter
from dumpsim.graph.parallel.nodeorder import naming_order
from dumpsim.graph.parallel.results import block_outputs, output_cuts, output_edges
from dumpsim.graph.parallel.settings import Settings

KIND = TensorType(dtype=dtype("float32"), shape=(8, 4))
X = Parameter(name="x", abstract=KIND)


def node(op_type, *operands, **more):
    return Node(op_type=op_type, operands=list(operands), abstract=KIND, **more)


def bundle(*operands):
    return Node(op_type="MakeTuple", operands=list(operands), abstract=TupleType(items=(KIND,) * len(operands)))


def edges(output):
    return [edge if edge is None else (edge.node, edge.at) for edge in output_edges(Graph(output=output))]


def test_results_are_operands_of_bundles_and_of_what_orders_them():
    one, two, token = node("Exp", X), node("Neg", X), node("UpdateState", X)
    assert edges(one) == [None]
    assert edges(X) == [None]
    tied = node("Depend", one, token)
    assert edges(tied) == [(tied, 0)]
    pair = bundle(one, X, two)
    assert edges(pair) == [(pair, 0), (pair, 1), (pair, 2)]
    inner = bundle(two, tied)
    outer = bundle(one, inner)
    whole = node("Depend", outer, token)
    assert edges(whole) == [(outer, 0), (inner, 0), (tied, 0)]
    assert edges(None) == [None]


def test_the_outputs_of_a_block():
    one, two = node("Exp", X), node("Neg", X)
    pair = bundle(one, two)
    assert block_outputs(Graph(output=pair, trail=[one, two])) == [one, two]
    assert block_outputs(Graph(output=pair, trail=[one, two, pair])) == [pair]  # the script's own tuple
    assert block_outputs(Graph(output=one, trail=[one])) == [one]
    assert block_outputs(Graph(output=X)) == [X]
    assert block_outputs(Graph()) == []


@pytest.mark.parametrize(
    ("strategy", "shape", "expected"),
    [
        ("full_batch", (8, 4), (1, 1)),
        ("full_batch", (3,), (1,)),
        ("data_parallel", (8, 4), (4, 1)),
        ("data_parallel", (4, 4, 2), (4, 1, 1)),
        ("data_parallel", (6, 4), None),  # four devices cannot cut it
        (((2, 2),), (8, 4), None),
    ],
)
def test_results_of_an_evaluation_are_cut_like_the_batch(strategy, shape, expected):
    assert output_cuts(Settings(device_num=4, rank=0, dataset_strategy=strategy), shape) == expected


@pytest.mark.parametrize(
    ("strategy", "number", "shape", "expected"),
    [
        ("full_batch", 0, (8, 4), (1, 1)),
        ("data_parallel", 0, (8, 4), (4, 1)),
        ("data_parallel", 1, (8, 4, 2), (4, 1, 1)),
        ("data_parallel", 0, (), ()),
        (((2, 2), (1, 4)), 0, (8, 4), (2, 2)),
        (((2, 2), (1, 4)), 1, (8, 4), (1, 4)),
    ],
)
def test_cuts_of_arguments(strategy, number, shape, expected):
    assert Settings(device_num=4, rank=0, dataset_strategy=strategy).cuts(number, shape) == expected


def named(graph, forward):
    return [one.op_type for one in naming_order(graph, forward)]


def test_without_control_flow_operators_are_numbered_in_program_order():
    one, two, three = node("Exp", X), node("Neg", X), node("Sin", X)
    total = node("Add", three, one)
    assert named(Graph(output=total), [one, two, three, total]) == ["Exp", "Neg", "Sin", "Add"]


def branching(op_type):
    """A control node with an operand on each side of its blocks: Cos and Tanh before, Exp and Neg inside."""
    before, other = node("Cos", X), node("Tanh", X)
    inner, last = node("Exp", X), node("Neg", X)
    blocks = (Graph(output=inner, trail=[inner]), Graph(output=last, trail=[last]))
    control = node(op_type, before, other, blocks=blocks)
    return before, other, control


def test_with_a_branch_the_search_from_the_result_takes_operands_from_the_last_on_and_then_the_sides():
    before, other, branch = branching("If")
    end = node("Mul", branch, node("Sin", X))
    forward = [before, other, branch, end.operands[1], end]
    found = named(Graph(output=end, trail=forward), forward)
    assert found == ["Mul", "If", "Tanh", "Cos", "Exp", "Neg", "Sin"]


def test_with_a_loop_blocks_come_before_operands():
    before, other, loop = branching("While")
    forward = [before, other, loop]
    assert named(Graph(output=loop, trail=forward), forward) == ["While", "Exp", "Neg", "Cos", "Tanh"]


def test_unused_operators_come_last_from_the_end_on_and_those_that_later_nodes_take_before():
    before, other, branch = branching("If")
    dead, last = node("Sin", X), node("Abs", X)
    taken = node("Log", X)
    forward = [dead, before, other, branch, taken, last]
    after = node("Grad", taken)  # of the backward pass
    found = named(Graph(output=branch, trail=[*forward, after]), forward)
    assert found == ["If", "Tanh", "Cos", "Exp", "Neg", "Log", "Abs", "Sin"]
