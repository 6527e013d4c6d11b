"""The files for Graphviz: each node, parameter and edge."""

import re

from dumpsim.core.abstract import NoneType, TensorType
from dumpsim.core.dtype import dtype
from dumpsim.core.irdoc import ConstRef, IrDoc, IrNode, IrParam, KernelIo, NodeRef, ParamRef
from dumpsim.runtime.irsave import dot

KIND = TensorType(dtype=dtype("float32"), shape=(2,))


def node(index, op_type, *operands):
    return IrNode(
        index=index, name=f"CNode_{index}", op_type=op_type, prim_func=False, operands=operands,
        operand_types=(KIND,) * len(operands), output=KIND, full_name=f"Default/{op_type}-op{index}",
    )  # fmt: skip


def param(name):
    device = KernelIo(dtype="Float32", format="DefaultFormat", shape=(2,))
    return IrParam(name=name, label=name, use_label=name, abstract=KIND, device=device, is_weight=False)


def test_nodes_parameters_and_edges_by_port():
    constant = ConstRef(value=None, abstract=NoneType())
    nodes = (
        node(0, "Add", ParamRef(index=1), ParamRef(index=0)),
        node(1, "Mul<1>", NodeRef(index=0), constant, ParamRef(index=1)),
        node(None, "Return", NodeRef(index=1)),
    )
    text = dot(IrDoc(name="kernel_graph0", graph_id=0, params=(param('x"'), param("y")), nodes=nodes))
    assert re.findall(r"(\w+)->(\w+):(\d+)", text) == [
        ("param1", "node0", "0"),
        ("param0", "node0", "1"),
        ("node0", "node1", "0"),
        ("param1", "node1", "2"),
        ("node1", "return", "0"),
    ]
    assert re.findall(r"^(\w+)\[.*?label=(.*)\]$", text, re.MULTILINE)[:2] == [("param0", '"x\\""'), ("param1", '"y"')]
    boxes = re.findall(r"^(\w+)\[fontname=\"Courier New\",shape=plaintext,label=<(.*)>\]$", text, re.MULTILINE)
    assert [name for name, _ in boxes] == ["node0", "node1", "return"]
    assert [re.findall(r"port='(\d+)'>(\d+)<", box) for _, box in boxes] == [
        [("0", "0"), ("1", "1")],
        [("0", "0"), ("1", "1"), ("2", "2")],
        [("0", "0")],
    ]
    assert [re.findall(r"colspan='(\d)' bgcolor='cornsilk'>(.*?)<", box) for _, box in boxes] == [
        [("2", "Add(CNode_0)")],
        [("3", "Mul&lt;1&gt;(CNode_1)")],
        [("1", "Return(CNode_None)")],
    ]
    assert text.index("}\nparam1->") > text.index("return[")  # edges come after the cluster
