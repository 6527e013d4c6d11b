"""What an operator reads in its graph, and which node an operator's name means."""

from types import SimpleNamespace

import pytest

from dumpsim.analysis.graphindex import GraphIndex
from dumpsim.analysis.reads import Reads, reads_of
from dumpsim.core.abstract import TensorType
from dumpsim.core.dtype import dtype
from dumpsim.core.irdoc import ConstRef, IrDoc, IrNode, NodeRef, ParamRef, SourceLine

KIND = TensorType(dtype=dtype("float32"), shape=(2,))


def operand(text):
    """``%3`` a node, ``p1`` a parameter, ``c`` a constant."""
    if text.startswith("%"):
        return NodeRef(index=int(text[1:]))
    return ConstRef(value=1, abstract=KIND) if text == "c" else ParamRef(index=int(text[1:]))


def node(index, op_type, operands="", name=None, **more):
    operands = tuple(map(operand, operands.split()))
    return IrNode(
        index=index, name=f"CNode_{index}", op_type=op_type, prim_func=True, operands=operands,
        operand_types=(KIND,) * len(operands), output=KIND, full_name=name or f"Default/x/{op_type}-op{index}", **more,
    )  # fmt: skip


def reads(*nodes, of=-1):
    return Reads(node=nodes[of], nodes={one.index: one for one in nodes}, names=("w", "layer.b"))


@pytest.mark.parametrize(
    ("nodes", "producers", "parameters"),
    [
        ([(0, "Add", "p0 p1"), (1, "Mul", "%0 %0 c")], ["Default_x_Add-op0"], []),
        ([(0, "Load", "p1 c"), (1, "MatMul", "%0 p0")], [], ["layer.b", "w"]),
        ([(0, "Add", "p0"), (1, "Load", "%0"), (2, "Depend", "%1"), (3, "Mul", "%2")], ["Default_x_Add-op0"], []),
        ([(0, "Load", "p0"), (1, "Depend", "%0 c"), (2, "Mul", "%1 c %1")], [], ["w", "w"]),
        ([(0, "A"), (1, "B"), (2, "MakeTuple", "%0 %1"), (3, "AddN", "%2")],
         ["Default_x_A-op0", "Default_x_B-op1"], []),
        ([(0, "Split", "p0"), (1, "TupleGetItem", "%0 c"), (2, "Mul", "%1 p1")],
         ["Default_x_Split-op0"], ["layer.b"]),
        ([(0, "A"), (1, "UpdateState", "%0"), (2, "Mul", "p0 %1")], [], ["w"]),
        ([(0, "MakeTuple", "p0"), (1, "Mul", "%0")], [], []),  # a tuple is no parameter
        ([(1, "Mul", "%7 p5 %1")], [], []),  # unknown nodes and parameters, and itself
        ([(0, "Load", "%1"), (1, "Load", "%0"), (2, "Mul", "%0")], [], []),  # a ring
        ([(0, "Load"), (1, "Mul", "%0")], [], []),
    ],
)  # fmt: skip
def test_producers_and_parameters_are_found_behind_what_passes_them_on(nodes, producers, parameters):
    found = reads(*(node(*one) for one in nodes))
    assert sorted(found.producers) == producers
    assert list(found.parameters) == parameters


def test_what_fills_a_slot():
    found = reads(node(0, "Load", "p1"), node(1, "Add", "p0"), node(2, "Mul", "%0 c %1 p7"))
    assert [found.given(slot) for slot in range(6)] == ["layer.b", "a constant", "", "", "", ""]
    assert [found.parameter(slot) for slot in range(5)] == ["layer.b", "", "", "", ""]


def index(*documents):
    """An index of graphs that are given instead of read."""
    found = GraphIndex.__new__(GraphIndex)
    found.documents = {
        number: IrDoc(
            name="g", graph_id=number, params=tuple(SimpleNamespace(name=name) for name in names), nodes=nodes
        )
        for number, (names, nodes) in enumerate(documents)
    }
    return found


def test_names_of_files_lead_to_nodes():
    first = [node(0, "Add", name="Default/a/Add-op5"), node(1, "Mul", name="Default/a/Mul-op7"),
             node(2, "Sub", name="Default/b/Sub-op8")]  # fmt: skip
    second = [node(0, "Add", name="Default/a/Add-op5"), node(1, "Mul", name="Default/c/Mul-op9"),
              node(2, "Mul", name="Default/c/Mul-op10"), node(3, "Sub", name="Default/z/Sub-op8")]  # fmt: skip
    graphs = index((["fc.weight"], tuple(first)), ([], tuple(second)))
    for name, graph, found in (
        ("Default/a/Add-op5", 0, first[0]), ("Default_a_Add-op5", 1, second[0]), ("Default_a_Add-op5", 7, first[0]),
        ("Default_a_Add-op5", None, first[0]), ("Default_a_Mul-op99", 0, first[1]), ("Default_a_Mul-op99", 1, None),
        ("Default_a_Mul-op99", None, first[1]), ("Default_c_Mul-op11", 1, None), ("Mul-op9", 1, second[1]),
        ("Sub-op8", 0, first[2]), ("Sub-op8", 1, second[3]), ("Sub-op8", None, None), ("Neg-op0", 0, None),
    ):  # fmt: skip
        assert graphs.node(name, graph) is found, (name, graph)
    assert graphs.document(second[1]) is graphs.documents[1]
    assert graphs.document(node(9, "Add")) is None
    assert graphs.alike("Mul", "Default_c_Mul") == [second[1], second[2]]
    assert graphs.alike("Add", "Default_a_Add") == [first[0], second[0]]
    assert graphs.alike("Add", "Default_c_Mul") == []
    assert (graphs.parameter("fc_weight"), graphs.parameter("fc_bias")) == ("fc.weight", "fc_bias")


def test_lines_of_a_node_are_outermost_first():
    lines = [SourceLine(path="n.py", line=n, end_line=n, column=0, end_column=1, code="x") for n in range(4)]
    one = node(0, "Add", name="Default/Add-op0", sources=tuple(lines[:2]),
               more_sources=(("a", (lines[2],)), ("b", (lines[3],))))  # fmt: skip
    graphs = index(([], (one,)))
    assert graphs.lines("Default_Add-op0", 0) == tuple(lines)
    assert graphs.lines("Default_Mul-op0", 0) == ()


def test_an_operator_without_a_graph_reads_nothing_that_is_known():
    graphs = index((["w"], (node(0, "Add", "p0", name="Default/Add-op0"),)))

    def entry(graph, name="Default_Add-op0"):
        return SimpleNamespace(graph_id=graph, graphs=graphs, name=SimpleNamespace(op_name=name))

    cache = {}
    assert list(reads_of(entry(0), cache).parameters) == ["w"]
    assert list(cache) == [0]
    assert reads_of(entry(0), cache).nodes is cache[0]
    for other in (entry(None), entry(3), entry(0, "Default_Mul-op0")):
        assert reads_of(other, {}) is None
