"""Layouts that the IR text of a dump tells, worked out by hand from the strategies of its operators."""

import pytest
from smallgraph import BOOL, MONAD, SmallGraph, number, numbers, of, place

from dumpsim.analysis.derivedlayouts import derived
from dumpsim.core.abstract import TupleType


def rows(root):
    return [
        (row["graph_id"], row["op"].removeprefix("Default/"), row["io"], row["slot"], row["device_matrix"],
         row["tensor_map"], row["shape"], row["summed"])
        for row in derived(root)
    ]  # fmt: skip


@pytest.fixture
def found(tmp_path):
    """found(graph) -> the rows that a dump of four ranks tells."""

    def make(graph):
        place(tmp_path, graph.text(), rank=0)
        place(tmp_path, "no graph is read here", rank=3)
        return rows(tmp_path)

    return make


def test_terms_of_a_product_are_summed_by_the_reduction_after_it(found):
    """Rank m * 2 + k has the rows of part m and the columns of part k: [spec parallel 2.1]."""
    graph = SmallGraph()
    x, w = graph.param("x", 4, 4), graph.param("w", 4, 4)
    loaded = graph.node("Load", [w, MONAD], of(4, 4))
    flags = [number(False, BOOL), number(False, BOOL)]
    product = graph.node("MatMul", [x, loaded, *flags], of(4, 4), "((2, 2), (2, 1))")
    graph.node("AllReduce", [product], of(4, 4))
    graph.node("AllReduce", [x], of(4, 4))  # not of terms
    graph.node("AllReduce", [loaded], of(4, 4))
    matrix = (2, 2)
    assert found(graph) == [
        (0, "MatMul-op1", "input", 0, matrix, (1, 0), (8, 8), ()),
        (0, "MatMul-op1", "input", 1, matrix, (0, -1), (8, 4), ()),
        (0, "MatMul-op1", "output", 0, matrix, (1, -1), (8, 4), (0,)),
        (0, "AllReduce-op2", "input", 0, matrix, (1, -1), (8, 4), (0,)),
        (0, "AllReduce-op2", "output", 0, matrix, (1, -1), (8, 4), ()),
        (0, "x", "output", 0, matrix, (1, 0), (8, 8), ()),
        (0, "w", "output", 0, matrix, (0, -1), (8, 4), ()),
    ]


def test_transposed_operands_are_cut_the_other_way(found):
    graph = SmallGraph()
    x, w = graph.param("x", 4, 2), graph.param("w", 8, 4)
    graph.node(
        "MatMul", [x, w, number(True, BOOL), number(True, BOOL)], of(2, 8), "((1, 2), (2, 1))", mark="gen_strategy"
    )
    # x is (k, m) of (4, 4), w is (n, k) of (16, 4): k whole, m and n in two
    matrix = (2, 2)
    assert found(graph)[:3] == [
        (0, "MatMul-op0", "input", 0, matrix, (-1, 1), (4, 4), ()),
        (0, "MatMul-op0", "input", 1, matrix, (0, -1), (16, 4), ()),
        (0, "MatMul-op0", "output", 0, matrix, (1, 0), (4, 16), ()),
    ]


def test_tuples_are_flattened_and_passing_operators_are_looked_through(found):
    graph = SmallGraph()
    x, y = graph.param("x", 4, 3), graph.param("y", 4, 3)
    after = graph.node("Depend", [x, y], of(4, 3))
    both = graph.node("MakeTuple", [graph.node("Load", [after, y], of(4, 3)), y], TupleType(items=(of(4, 3), of(4, 3))))
    graph.node("Concat", [both, number(1)], of(4, 6), "((4, 1), (4, 1))", mark="")
    assert found(graph) == [
        (0, "Concat-op3", "input", 0, (4,), (0, -1), (16, 3), ()),
        (0, "Concat-op3", "input", 1, (4,), (0, -1), (16, 3), ()),
        (0, "Concat-op3", "output", 0, (4,), (0, -1), (16, 6), ()),
        (0, "x", "output", 0, (4,), (0, -1), (16, 3), ()),
        (0, "y", "output", 0, (4,), (0, -1), (16, 3), ()),
    ]


def test_a_parameter_has_the_first_layout_that_its_shape_fits(found):
    graph = SmallGraph()
    w = graph.param("w", 4, 4)
    loaded = graph.node("Load", [w, w], of(2, 4))  # a slice of it, made by a redistribution
    graph.node("ReLU", [loaded], of(2, 4), "((4, 1))")
    first = graph.node("ReLU", [w], of(4, 4), "((2, 1))")
    graph.node("ReLU", [w], of(4, 4), "((1, 2))")
    graph.node("ReLU", [first], of(4, 4), "((2, 2))")
    assert [row[4:7] for row in found(graph) if row[1] == "w"] == [((2, 2), (1, -1), (8, 4))]
    assert [row[1:7] for row in found(graph) if row[2] == "input"] == [
        ("ReLU-op1", "input", 0, (4,), (0, -1), (8, 4)),
        ("ReLU-op2", "input", 0, (2, 2), (1, -1), (8, 4)),  # two devices repeat each half
        ("ReLU-op3", "input", 0, (2, 2), (-1, 1), (4, 8)),
        ("ReLU-op4", "input", 0, (2, 2), (1, 0), (8, 8)),
    ]


def test_reductions_of_other_kinds_have_no_layout_of_their_terms(found):
    graph = SmallGraph()
    x = graph.param("x", 4, 4)
    for op_type, axis, strategy in (
        ("ReduceSum", 1, "((2, 2))"), ("ReduceMax", 1, "((2, 2))"), ("ReduceMax", 1, "((4, 1))"),
        ("ReduceSum", (0, 1), "((2, 2))"),
    ):  # fmt: skip
        axes = numbers(*axis) if isinstance(axis, tuple) else numbers(axis)
        result = of(4) if axis == 1 else of()
        graph.node("AllReduce", [graph.node(op_type, [x, axes, number(False, BOOL)], result, strategy)], result)
    assert [row for row in found(graph) if "All" in row[1] or (row[1] != "x" and row[2] == "output")] == [
        (0, "ReduceSum-op0", "output", 0, (2, 2), (1,), (8,), (0,)),
        (0, "AllReduce-op1", "input", 0, (2, 2), (1,), (8,), (0,)),
        (0, "AllReduce-op1", "output", 0, (2, 2), (1,), (8,), ()),
        (0, "ReduceMax-op4", "output", 0, (4,), (0,), (16,), ()),
        (0, "ReduceSum-op6", "output", 0, (2, 2), (), (), (0, 1)),
        (0, "AllReduce-op7", "input", 0, (2, 2), (), (), (0, 1)),
        (0, "AllReduce-op7", "output", 0, (2, 2), (), (), ()),
    ]


def test_all_results_of_an_operator_have_layouts(found):
    graph = SmallGraph()
    x = graph.param("x", 2, 6)
    graph.node("Split", [x, number(1), number(3)], TupleType(items=(of(2, 2),) * 3), "((4, 1))")
    assert found(graph)[:4] == [
        (0, "Split-op0", "input", 0, (4,), (0, -1), (8, 6), ()),
        *((0, "Split-op0", "output", slot, (4,), (0, -1), (8, 2), ()) for slot in range(3)),
    ]


@pytest.mark.parametrize(
    ("strategy", "operands"),
    [
        ("", 1),
        ("((2, 2), (2, 2))", 1),  # two rows, one operand
        ("((2, 2))", 2),
        ("((2))", 1),  # one count, two axes
        ("((2, 2, 1))", 1),
        ("((3, 1))", 1),  # four devices cannot be three
        ("((8, 1))", 1),
        ("((-1, 1))", 1),
        ("None", 1),
    ],
)
def test_a_strategy_that_does_not_fit_gives_no_layout(found, strategy, operands):
    graph = SmallGraph()
    x, y = graph.param("x", 2, 6), graph.param("y", 2, 6)
    graph.node("ReLU", [x, y][:operands], of(2, 6), strategy)
    assert found(graph) == []


def test_an_operator_without_a_rule_has_layouts_only_where_it_is_whole(found):
    graph = SmallGraph()
    x = graph.param("x", 2, 6)
    graph.node("NoSuchOperator", [x], of(3), "((2, 1))")
    graph.node("NoSuchOperator", [x], of(3), "((1, 1))")
    assert found(graph) == [
        (0, "NoSuchOperator-op1", "input", 0, (4,), (-1, -1), (2, 6), ()),
        (0, "NoSuchOperator-op1", "output", 0, (4,), (-1,), (3,), ()),
        (0, "x", "output", 0, (4,), (-1, -1), (2, 6), ()),
    ]


def test_the_graphs_of_the_first_rank_tell_the_number_of_devices_by_the_last(tmp_path):
    graph = SmallGraph()
    graph.node("ReLU", [graph.param("x", 2)], of(2), "((2))")
    assert rows(tmp_path) == []
    for rank in (2, 10):  # 11 devices, which two parts do not divide
        place(tmp_path, graph.text(), rank=rank)
    assert rows(tmp_path) == []
    place(tmp_path, graph.text(), rank=11)
    place(tmp_path, graph.text(1), rank=2, graph=1)
    place(tmp_path, "not read", rank="x")
    one = [("ReLU-op0", "input"), ("ReLU-op0", "output"), ("x", "output")]
    assert rows(tmp_path) == [
        (graph_id, op, io, 0, (2, 6), (1,), (4,), ()) for graph_id in (0, 1) for op, io in one
    ]  # fmt: skip
