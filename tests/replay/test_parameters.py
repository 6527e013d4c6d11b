"""Which inputs of an operator are Parameters, of graphs that may be anybody's."""

from types import SimpleNamespace

import pytest

from dumpsim.core.irdoc import NodeRef, ParamRef
from dumpsim.replay import plan


@pytest.mark.parametrize("index", [-1, 2, 7])
def test_references_to_what_a_graph_does_not_have_are_passed_over(monkeypatch, index):
    load = SimpleNamespace(op_type="Load", operands=[ParamRef(index=1)])
    add = SimpleNamespace(op_type="Add", operands=[ParamRef(index=1)])
    doc = SimpleNamespace(params=[SimpleNamespace(name="w"), SimpleNamespace(name="b")], nodes=[load, add])
    node = SimpleNamespace()
    graphs = SimpleNamespace(node=lambda name, graph: node, document=lambda found: doc)
    entry = SimpleNamespace(graphs=graphs, graph_id=0, name=SimpleNamespace(op_name="x"))
    operands = [ParamRef(index=0), ParamRef(index=index), NodeRef(index=0), NodeRef(index=1), NodeRef(index=index)]
    monkeypatch.setattr(plan, "operands_of", lambda node, doc: [(one, None) for one in operands])
    assert list(plan._parameters(SimpleNamespace(entries=[entry]))) == [(0, "w"), (2, "b")]
    for name in ("node", "document"):
        broken = SimpleNamespace(**{**vars(graphs), name: lambda *args: None})
        entry.graphs = broken
        assert list(plan._parameters(SimpleNamespace(entries=[entry]))) == []
