"""Nodes that gave way to others."""

import gc

from dumpsim.core.abstract import NoneType
from dumpsim.graph.graph import Graph, Node
from dumpsim.graph.passes.monads import merged
from dumpsim.graph.passes.replacement import Replacements


def node(*operands):
    return Node(op_type="Neg", operands=list(operands), abstract=NoneType())


def test_no_new_node_gets_the_identity_of_one_that_gave_way():
    replaced, stays = Replacements(), node()
    for _ in range(200):
        replaced.put(node(), stays)
    gc.collect()
    fresh = [node() for _ in range(2000)]
    assert [one for one in fresh if one in replaced or replaced.of(one) is not one] == []


def test_the_output_follows_and_a_bundle_takes_what_is_left():
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


def test_loads_are_merged_from_the_middle_to_both_ends():
    assert [merged(list(range(count))) for count in (1, 2, 3, 6)] == [[0], [0, 1], [1, 0, 2], [4, 2, 0, 1, 3, 5]]
