"""Cutting at control flow: segments, steps, and the parameters that connect them."""

import numpy as np

from dumpsim.core.abstract import TensorType
from dumpsim.core.dtype import dtype
from dumpsim.graph.graph import Constant
from dumpsim.graph.mindspore.cut import CALL_RESULT
from dumpsim.graph.program import Branch, Loop, Move, Run
from tests.graph.compiled import pieces_of


def kernels(graph):
    virtual = {"MakeTuple", "TupleGetItem", "Load", "UpdateState", "Depend"}
    return [node.op_type for node in graph.nodes() if node.op_type not in virtual]


def parts(net):
    """Before, if, after."""
    x = net.input("x", (3,))
    flag = net.input("flag", (), "bool")
    before = net.op("Exp", x)
    (middle,) = net.branch(flag, lambda: [net.op("Tanh", before)], lambda: [net.op("Neg", before)])
    net.give(net.op("Add", middle, x))
    return net.graph


def test_a_straight_line_is_one_graph_and_one_run(net):
    net.give(net.op("Exp", net.input("x", (3,))))
    pieces = pieces_of(net.graph)
    (graph,) = pieces.graphs
    assert kernels(graph) == ["Exp"]
    assert pieces.steps == (Run(graph=0, arguments=(0,), results=(1,)),)
    assert (pieces.outputs, pieces.slots, pieces.stacks) == ((1,), 2, 0)
    assert pieces.roots == {0}


def test_segments_of_a_function_come_before_its_branches(net):
    pieces = pieces_of(parts(net))
    assert [kernels(graph) for graph in pieces.graphs] == [["Exp"], ["Add"], ["Tanh"], ["Neg"]]
    assert pieces.roots == {0, 1}
    first, branch, last = pieces.steps
    assert (first.graph, last.graph) == (0, 1)
    assert isinstance(branch, Branch)
    assert branch.condition == 1  # the second input
    assert [[type(step) for step in side] for side in (branch.then, branch.otherwise)] == [[Move, Run, Move]] * 2
    assert [side[1].graph for side in (branch.then, branch.otherwise)] == [2, 3]
    assert branch.then[2].target == branch.otherwise[2].target == last.arguments[0]


def test_the_result_of_a_branch_is_a_parameter_of_the_segment_after_it(net):
    pieces = pieces_of(parts(net))
    assert [p.name for p in pieces.graphs[1].parameters] == [CALL_RESULT, "x"]
    assert [p.name for p in pieces.graphs[2].parameters] == [""]  # of the segment before


def test_an_argument_has_its_own_memory_in_the_first_segment_only(net):
    pieces = pieces_of(parts(net))  # [2.10 observed]
    found = [[p.is_formal for p in graph.parameters if p.name == "x"] for graph in pieces.graphs[:2]]
    assert found == [[False], [True]]
    first, _, last = pieces.steps
    assert (first.arguments, last.arguments[1]) == ((0,), 0)


def test_a_side_without_nodes_is_a_move_of_its_result(net):
    x, flag = net.input("x", (3,)), net.input("flag", (), "bool")
    (middle,) = net.branch(flag, lambda: [net.op("Tanh", x)], lambda: [x])
    net.give(middle)
    pieces = pieces_of(net.graph)
    (branch,) = pieces.steps
    (move,) = branch.otherwise
    assert isinstance(move, Move)
    assert (move.source, move.target) == (0, pieces.outputs[0])


def test_a_loop_runs_its_head_and_body_and_names_its_variables(net):
    x = net.input("x", (3,))
    limit = np.float32(9)
    after = net.loop(
        {"y": net.op("Exp", x)},
        lambda inside: net.op("Less", net.op("ReduceSum", inside["y"], (), False), limit),
        lambda inside: {"y": net.op("Mul", inside["y"], np.float32(2))},
    )["y"]
    net.give(net.op("Neg", after))
    pieces = pieces_of(net.graph)
    assert [kernels(graph) for graph in pieces.graphs] == [["Exp"], ["ReduceSum", "Less"], ["Mul"], ["Neg"]]
    assert pieces.roots == {0}
    (loop,) = [step for step in pieces.steps if isinstance(step, Loop)]
    assert [step.graph for step in loop.head if isinstance(step, Run)] == [1]
    assert [step.graph for step in loop.body if isinstance(step, Run)] == [2]
    assert loop.counted == ()
    assert [p.debug_name for p in pieces.graphs[3].parameters] == ["фy"]


def test_variables_that_change_places_are_read_before_they_are_written(net):
    a, b, flag = net.input("a", (3,)), net.input("b", (3,)), net.input("flag", (), "bool")
    after = net.loop(
        {"a": net.op("Exp", a), "b": net.op("Neg", b)},
        lambda inside: net.op("LogicalNot", flag),
        lambda inside: {"a": inside["b"], "b": inside["a"]},
    )
    net.give(after["a"], after["b"])
    pieces = pieces_of(net.graph)
    (loop,) = [step for step in pieces.steps if isinstance(step, Loop)]
    values = {}
    for step in loop.body:
        values[step.target] = values.get(step.source, step.source)
    first, second = (step.target for step in loop.body[-2:])
    assert (values[first], values[second]) == (second, first)


def test_a_constant_condition_is_put_into_a_slot(net):
    x = net.input("x", (3,))
    flag = Constant(value=np.array(True), abstract=TensorType(dtype=dtype("bool"), shape=(), constant=True))
    (middle,) = net.branch(flag, lambda: [net.op("Tanh", x)], lambda: [net.op("Neg", x)])
    net.give(middle)
    move, branch = pieces_of(net.graph).steps
    assert isinstance(move, Move)
    assert move.source is flag
    assert branch.condition == move.target


def test_the_token_that_a_loop_takes_makes_graphs_without_kernels(net):
    x, w = net.input("x", (3,)), net.weight("w", np.ones(3, np.float32))
    after = net.loop(
        {"y": net.op("Mul", x, w)},
        lambda inside: net.op("Less", net.op("ReduceSum", inside["y"], (), False), np.float32(9)),
        lambda inside: {"y": net.op("Add", inside["y"], w)},
    )["y"]
    net.give(net.op("Neg", after))
    pieces = pieces_of(net.graph)
    found = [kernels(graph) for graph in pieces.graphs]
    assert found == [["Mul"], [], ["ReduceSum", "Less"], ["Add"], [], ["Neg"]]
    assert pieces.roots == {0, 1}


def test_the_code_after_a_branch_in_a_loop_is_a_function(net):
    x, flag = net.input("x", (3,)), net.input("flag", (), "bool")

    def body(inside):
        (middle,) = net.branch(flag, lambda: [net.op("Tanh", inside["y"])], lambda: [net.op("Neg", inside["y"])])
        return {"y": net.op("Sin", middle)}

    net.give(net.loop({"y": x}, lambda inside: net.op("LogicalNot", flag), body)["y"])
    pieces = pieces_of(net.graph)
    assert [kernels(graph) for graph in pieces.graphs] == [["LogicalNot"], ["Sin"], ["Tanh"], ["Neg"]]
    assert pieces.roots == set()


def test_a_tuple_of_an_earlier_segment_is_passed_item_by_item(net):
    x, flag = net.input("x", (3,)), net.input("flag", (), "bool")
    pair = net.op("MakeTuple", net.op("Exp", x), net.op("Neg", x))
    first = net.op("Concat", pair, 0)
    (middle,) = net.branch(flag, lambda: [net.op("Tanh", first)], lambda: [net.op("Neg", first)])
    net.give(net.op("Add", middle, net.op("Concat", pair, 0)), pair)
    pieces = pieces_of(net.graph)
    for graph in pieces.graphs:
        inside = {id(node) for node in graph.nodes()}
        for node in graph.nodes():
            assert all(operand is not None for operand in node.operands)
            assert all(id(o) in inside for o in node.operands if hasattr(o, "op_type"))
    assert len(pieces.outputs) == 3


def test_a_tuple_that_a_branch_takes_is_recreated_from_its_items(net):
    x, flag = net.input("x", (3,)), net.input("flag", (), "bool")
    pair = net.op("MakeTuple", net.op("Exp", x), net.op("Neg", x))
    (middle,) = net.branch(flag, lambda: [net.op("Concat", pair, 0)], lambda: [net.op("Concat", pair, -1)])
    net.give(middle)
    first, *sides = pieces_of(net.graph).graphs
    assert kernels(first) == ["Exp", "Neg"]
    assert [kernels(side) for side in sides] == [["Concat"], ["Concat"]]
    for side in sides:
        (made,) = [o for node in side.nodes() if node.op_type == "Concat" for o in node.operands[:1]]
        assert made.op_type == "MakeTuple"
        assert made.operands == side.parameters
