"""Operators that are inserted for their gradients, and dropped later."""

import numpy as np
import pytest

from dumpsim.core.abstract import NoneType, ScalarType, TensorType, TupleType
from dumpsim.core.dtype import dtype
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


@pytest.mark.parametrize("name", sorted(VIRTUAL))
def test_a_virtual_operator_returns_its_operand(name):
    definition = VIRTUAL[name]
    x = np.ones((4, 2), np.float16)
    assert definition.kernel(x) is x
    kinds = [TensorType(dtype=dtype("float16"), shape=(4, 2), ref_key="w"), ScalarType(dtype=dtype("int64"), value=3)]
    found = [definition.infer([kind], {"rank_size": 3}) for kind in (kinds if name != GATHER else kinds[:1])]
    if name == "_VirtualDataset":  # several arguments
        assert found == [TupleType(items=(kind,)) for kind in kinds]
    elif name in ("DType", "DtypeToEnum"):
        assert found == [NoneType()] * 2
    else:  # no longer the weight itself
        rows = 12 if name == GATHER else 4
        assert found == [TensorType(dtype=dtype("float16"), shape=(rows, 2)), *kinds[1 : len(found)]]


def test_definitions_of_virtual_operators_are_found_in_addition_to_the_table():
    known = with_virtual(find)
    assert known("Exp") is find("Exp")
    for name in VIRTUAL:
        assert known(name).name == name
        with pytest.raises(UnsupportedError):
            find(name)
