"""Expansion of composite operators to nodes of the back end."""

from dumpsim.graph.graph import text_of
from dumpsim.graph.mindspore.expand import expand_composites
from dumpsim.ops.table import find


def test_an_expansion_keeps_the_source_and_is_of_the_back_end(net):
    mean = net.op("MeanExt", net.input("x", (2, 3)), (1,), False, None)
    text = text_of(mean)
    text.sources, text.call_scope, text.block_scope, text.call_variable = ("line",), "Default/a", "Default/b", "y"
    last = net.op("Neg", mean)
    net.give(last)
    graph = expand_composites(net.graph, find)
    made = graph.trail[:-1]
    assert made
    assert "MeanExt" not in {node.op_type for node in made}
    assert graph.trail[-1] is last
    assert last.operands[0] in made
    for node in made:
        found = node.text
        assert node.scope == "Expand/_MeanExt"
        assert (found.sources, found.candidate, found.is_backend) == (("line",), "code", True)
        assert (found.call_scope, found.block_scope, found.call_variable) == ("Default/a", "Default/b", "y")
