"""Merging nested sums."""

from dumpsim.core.abstract import TensorType, TupleType
from dumpsim.core.dtype import dtype
from dumpsim.graph.builder import NodeMaker
from dumpsim.graph.graph import Graph, Parameter
from dumpsim.graph.mindspore.sums import merge_sums
from dumpsim.ops.table import find

VECTOR = TensorType(dtype=dtype("float32"), shape=(2,))


def summed(build):
    """The graph of ``build(emit, parameters)``, sums merged: summands of its output, and types of its nodes."""
    parameters = [Parameter(name=name, abstract=VECTOR) for name in "abcd"]
    graph = Graph(parameters=parameters)
    maker = NodeMaker(find, graph.trail.append)
    graph.output = build(maker.emit, parameters)
    merge_sums(graph)
    return graph.output.operands[0].operands, [node.op_type for node in graph.trail]


def test_the_first_summand_is_merged():
    operands, types = summed(lambda emit, v: emit("AddN", (emit("AddN", (v[0], v[1])), v[2], v[3])))
    assert [operand.name for operand in operands] == ["a", "b", "c", "d"]
    assert types == ["MakeTuple", "AddN"]


def test_the_last_summand_is_merged():
    operands, types = summed(lambda emit, v: emit("AddN", (v[0], emit("AddN", (v[1], v[2])))))
    assert [operand.name for operand in operands] == ["a", "b", "c"]
    assert types == ["MakeTuple", "AddN"]


def test_a_summand_in_the_middle_stays():
    operands, types = summed(lambda emit, v: emit("AddN", (v[0], emit("AddN", (v[1], v[2])), v[3])))
    assert [operand.op_type for operand in operands if hasattr(operand, "op_type")] == ["AddN"]
    assert types.count("AddN") == 2


def test_a_sum_with_two_users_stays():
    def build(emit, v):
        inner = emit("AddN", (v[0], v[1]))
        return emit("AddN", (inner, emit("Tanh", inner)))

    operands, types = summed(build)
    assert [operand.op_type for operand in operands] == ["AddN", "Tanh"]
    assert types.count("AddN") == 2


def test_a_sum_of_a_tuple_from_elsewhere_stays():
    """The results of a Split, or a parameter that is a tuple, have no summands that could be merged."""
    given = Parameter(name="t", abstract=TupleType(items=(VECTOR, VECTOR)))
    wide = Parameter(name="w", abstract=TensorType(dtype=dtype("float32"), shape=(4,)))
    for make in (lambda emit: emit("Split", wide, 0, 2), lambda emit: given):
        for place in (0, -1):

            def build(emit, v, make=make, place=place):
                inner = emit("AddN", make(emit))
                return emit("AddN", (inner, v[1]) if place == 0 else (v[1], inner))

            operands, types = summed(build)
            assert [getattr(one, "op_type", "") for one in operands] == (["AddN", ""] if place == 0 else ["", "AddN"])
            assert types.count("AddN") == 2
