"""Execution order: from the recorded text of each kernel graph to its recorded csv."""

import pytest
import recorded
from irgraph import graph_of

from dumpsim.codecs import irtext
from dumpsim.core.abstract import MonadType, TensorType
from dumpsim.core.dtype import dtype
from dumpsim.graph.graph import Constant, Node, Parameter
from dumpsim.graph.mindspore.order import OrderRules, kernel_order, rules_of

KIND = TensorType(dtype=dtype("float32"), shape=())
U = Constant(value="U", abstract=MonadType(kind="U"))


def node(op_type, *operands):
    return Node(op_type=op_type, operands=list(operands), abstract=KIND, full_name=op_type)


def order(root, rules=None):
    return " ".join(node.full_name for node in kernel_order(root, rules))


@pytest.mark.parametrize("name", recorded.cases())
def test_recorded_graphs(name):
    case = recorded.load(name)
    for text in case.graph_texts.values():
        graph = graph_of(irtext.parse(text))
        table = case.execution_order[f"ms_execution_order_graph_{graph.graph_id}.csv"]
        assert [n.full_name for n in kernel_order(graph.output)] == table.splitlines()[1:]


def test_one_independent_kernel_stays_loose():
    """The others run after the kernel that the walk back reaches next."""
    x = Parameter(name="x", abstract=KIND)
    first, second = node("Exp", x), node("Log", x)
    chain = node("Neg", node("Abs", node("Sin", node("Cos", x))))
    root = node("MakeTuple", first, second, chain)
    assert order(root) == "Cos Sin Log Abs Neg Exp"
    assert order(root, OrderRules(ties=False)) == "Cos Sin Abs Neg Exp Log"


def test_reads_of_parameters_make_no_kernel_wait():
    x = Parameter(name="x", abstract=KIND)
    load = node("Load", x, U)
    state = node("UpdateState", U, node("MakeTuple", load))
    assert order(node("Depend", node("Exp", load), state)) == "Exp"


def test_virtual_users_come_first():
    """What a token releases runs before the kernels that were ready."""
    x = Parameter(name="x", abstract=KIND)
    start = node("Sin", x)
    ready = node("Exp", start)
    effect = node("Assign", x, node("Load", x, node("UpdateState", U, start)))
    assert order(node("MakeTuple", ready, node("Neg", ready), effect)) == "Sin Assign Exp Neg"


def test_depth_first():
    x = Parameter(name="x", abstract=KIND)
    start = node("Sin", x)
    left, right = node("Exp", start), node("Log", start)
    root = node("MakeTuple", node("Neg", left), node("Abs", left), node("Cos", right))
    assert order(root) == "Sin Exp Log Cos Neg Abs"
    assert order(root, rules_of("CPU", "dfs")) == "Sin Exp Neg Abs Log Cos"


def test_a_gpu_has_no_ties():
    assert rules_of("GPU") == OrderRules(counts_uses=False, ties=False)
    assert rules_of("Ascend") == rules_of("CPU") == OrderRules()


def test_users_of_collectives_wait():
    """They run when nothing else can. [spec vendor 1.6]"""
    x = Parameter(name="x", abstract=KIND)
    start = node("Sin", x)
    reduced = node("Exp", node("AllReduce", start))
    other = node("Log", node("Neg", node("Abs", start)))
    assert order(node("MakeTuple", reduced, other)) == "Sin AllReduce Abs Neg Log Exp"
