"""Operators that are inserted for their gradients, and dropped later."""

import pytest

from dumpsim.core.errors import UnsupportedError
from dumpsim.graph.builder import NodeMaker
from dumpsim.graph.parallel.virtual import GATHER, VIRTUAL, drop_virtual, with_virtual
from dumpsim.ops.table import find


def test_only_virtual_operators_are_dropped(net):
    net.maker = NodeMaker(with_virtual(find), net.place)
    x = net.input("x", (4, 2))
    exp = net.op("Exp", x)
    mirror = net.op("_MirrorOperator", exp, group="g", dev_num=2, mean_flag=True)
    again = net.op("_MirrorOperator", mirror, group="g", dev_num=2, mean_flag=True)
    total = net.op("Add", again, mirror)
    net.graph.output = net.op("_MirrorOperator", total, group="g", dev_num=2, mean_flag=False)
    graph = drop_virtual(net.graph)
    assert graph.trail == [exp, total]
    assert total.operands == [exp, exp]
    assert graph.output is total


def test_a_gather_with_a_gradient_of_its_own_becomes_one_without(net):
    net.maker = NodeMaker(with_virtual(find), net.place)
    x = net.input("x", (4, 2))
    count = net.input("count", (4, 2))
    attrs = {"group": "g", "rank_size": 2, "_mean": True}
    gathered = net.op(GATHER, x, count, **attrs)
    net.graph.output = net.op("Exp", gathered)
    graph = drop_virtual(net.graph)
    assert [node.op_type for node in graph.trail] == ["AllGather", "Exp"]
    assert gathered.operands == [x]
    assert gathered.attrs == {"group": "g", "rank_size": 2}


def test_definitions_of_virtual_operators_are_found_in_addition_to_the_table():
    known = with_virtual(find)
    assert known("Exp") is find("Exp")
    for name in VIRTUAL:
        assert known(name).name == name
        with pytest.raises(UnsupportedError):
            find(name)
