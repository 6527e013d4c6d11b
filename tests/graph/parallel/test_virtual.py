"""Operators that are inserted for their gradients, and dropped later."""

import numpy as np
import pytest

from dumpsim.core.abstract import NoneType, ScalarType, TensorType, TupleType
from dumpsim.core.dtype import dtype
from dumpsim.core.errors import UnsupportedError
from dumpsim.graph.builder import NodeMaker
from dumpsim.graph.graph import Node, Parameter
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


def told(value):
    """A value as a formula."""
    if isinstance(value, Node):
        operands = [told(one) for one in value.operands]
        operands += [f"{key}={value.attrs[key]}" for key in ("op", "group", "rank_size") if value.attrs.get(key)]
        return f"{value.op_type}({', '.join(operands)})"
    return value.name if isinstance(value, Parameter) else str(value.value) if value is not None else None


MEAN, SUM = {"mean_flag": True}, {"mean_flag": False}
REDUCED, ONCE = "AllReduce(dy, op=sum, group=g)", "AllReduce(Depend(z, dy), op=sum, group=g)"
SCATTERED = "ReduceScatter({}, op=sum, group=g, rank_size=4)"
GRADIENTS = [
    ("ShardIdentity", {}, ["dy"]),
    ("_VirtualOutput", {}, ["dy"]),
    ("_VirtualPipelineEnd", {}, ["dy"]),
    ("_VirtualDiv", {"divisor": 8}, ["RealDiv(dy, 8.0)"]),
    ("_MirrorOperator", {"dev_num": 4, **MEAN}, [f"Mul({REDUCED}, 0.25)"]),
    ("_MirrorOperator", {"dev_num": 4, **SUM}, [REDUCED]),
    ("_VirtualAssignAdd", {}, ["Depend(0.0, AssignAdd(z, dy, U))", None]),
    # of one rank nothing is summed; the parallel optimizer takes the sum, others the accumulator
    ("_MirrorMicroStepOperator", {"dev_num": 1, "_shards": True, **MEAN}, ["Depend(z, dy)", None]),
    ("_MirrorMicroStepOperator", {"dev_num": 2, "_shards": True, **SUM}, [ONCE, None]),
    ("_MirrorMicroStepOperator", {"dev_num": 2, "_shards": True, **MEAN}, [f"Mul({ONCE}, 0.5)", None]),
    ("_MirrorMicroStepOperator", {"dev_num": 1, **SUM}, ["Depend(1.0, Assign(Depend(z, dy), Depend(z, dy), U))", None]),
    ("_MirrorMicroStepOperator", {"dev_num": 4, **MEAN},
     [f"Depend(1.0, Assign(Depend(z, dy), Mul({ONCE}, 0.25), U))", None]),
    (GATHER, {"rank_size": 4, "_mean": True}, [f"Mul({SCATTERED.format('dy')}, 0.25)"]),
    (GATHER, {"rank_size": 4, "_mean": False}, [SCATTERED.format("dy")]),
    ("2" + GATHER, {"rank_size": 4, "_mean": True}, [f"Mul({SCATTERED.format('Depend(z, dy)')}, 0.25)", None]),
]  # fmt: skip


@pytest.mark.parametrize(("name", "attrs", "found"), GRADIENTS)
def test_the_gradient_of_a_virtual_operator(net, name, attrs, found):
    """What is summed over the copies becomes a mean on demand; gradients of parts of a batch are accumulated."""
    definition = VIRTUAL[name.lstrip("2")]
    x, z, dy = (net.input(letter, (8, 2)) for letter in ("x", "z", "dy"))
    operands = [x, z] if len(found) == 2 else [x]
    settings = {**definition.attrs, "group": "g", **attrs}
    gradients = definition.grad(net.maker, operands, None, dy, settings)
    assert [told(one) for one in gradients] == found


def test_without_attributes_there_is_one_rank_and_nothing_is_divided():
    for definition in VIRTUAL.values():
        assert all(value in (1, "", False) for value in definition.attrs.values())
        numbers = {name for name, value in definition.attrs.items() if type(value) is int}
        assert numbers <= {"divisor", "fusion", "dev_num", "rank_size"}
        assert all(definition.attrs[name] == 1 for name in numbers)
