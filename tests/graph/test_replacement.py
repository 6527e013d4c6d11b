"""Replaced nodes."""

import gc

from dumpsim.core.abstract import NoneType
from dumpsim.graph.graph import Graph, Node
from dumpsim.graph.replacement import Replacements


def node(*operands):
    return Node(op_type="Neg", operands=list(operands), abstract=NoneType())


def test_no_new_node_gets_the_id_of_a_replaced_one():
    replaced, stays = Replacements(), node()
    for _ in range(200):
        replaced.put(node(), stays)
    gc.collect()
    fresh = [node() for _ in range(2000)]
    assert [one for one in fresh if one in replaced or replaced.of(one) is not one] == []


def test_the_output_is_replaced_and_a_bundle_keeps_its_items_replaced():
    first, second = node(), node()
    replaced = Replacements()
    replaced.put(second, first)
    graph = Graph(name="g", output=second)
    replaced.finish(graph, [first])
    assert graph.output is first
    bundle = node(second, first)
    graph = Graph(name="g", output=bundle)
    replaced.finish(graph, [first])
    assert graph.output is bundle
    assert all(operand is first for operand in bundle.operands)
