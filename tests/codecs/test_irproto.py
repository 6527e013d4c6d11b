"""IR protobuf against what MindSpore 2.10 wrote, decoded with the recorder's own schema."""

import contextlib
import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dumpsim.codecs import irproto, irtext
from dumpsim.core.abstract import MonadType, NoneType, ScalarType, StringType, TensorType, TupleType
from dumpsim.core.dtype import DTYPES
from dumpsim.core.errors import UnreadableError
from dumpsim.core.irdoc import ConstRef, IrDoc, IrNode, IrParam, KernelIo, NameRef, NodeRef, ParamRef, SourceLine

RECORDED = Path(__file__).parents[2] / "fixtures" / "mindspore_2_10"
SHORT = {row.short: row for row in DTYPES.values()}


def _value(text: str):
    """The Python value of an attribute or constant that IR text spells."""
    if match := re.fullmatch(r"(\w+)\((-?[\d.e+-]+)\)", text):
        kind = SHORT[match.group(1)]
        return kind.numpy.type(float(match.group(2))).item()
    if text.startswith('"'):
        return text.strip('"')
    if text in SHORT:
        return SHORT[text]
    if text[0] in "([":
        parts = [part for part in text[1:-1].split(", ") if part]
        values = [
            int(part) if re.fullmatch(r"-?\d+", part) else _value(part) if "(" in part else part for part in parts
        ]
        return tuple(values) if text[0] == "(" else values
    return text


def _typed(doc: IrDoc) -> IrDoc:
    """A document that was read from text, with values in place of their spelling."""

    def operand(item, identity: int):
        if not isinstance(item, ConstRef) or isinstance(item.abstract, TensorType | MonadType):
            return item
        return replace(item, value=_value(item.value), identity=identity)

    def node(item: IrNode) -> IrNode:
        expanded = item.full_name.startswith("Expand/")  # its constants are its own
        operands = tuple(operand(o, n if expanded else 0) for n, o in enumerate(item.operands, 1))
        attrs = tuple((name, _value(value)) for name, value in item.primitive_attrs)
        return replace(item, operands=operands, primitive_attrs=attrs)

    return replace(doc, nodes=tuple(map(node, doc.nodes)))


CASES = ["simple_3steps", "lenet_fwd", "control_flow", "iter_ABAB", "longname"]
GRAPHS = [path for case in CASES for path in sorted((RECORDED / "reference_cases" / case / "graphs").glob("*.ir"))]


def _without_lines(graph):
    for node in graph["graph"]["node"]:
        node.pop("source_address", None)
    return graph


@pytest.mark.parametrize("case", CASES)
def test_what_the_text_says_becomes_the_recorded_protobuf(case, graph_proto):
    written = 0  # constants count on from graph to graph
    for path in (path for path in GRAPHS if path.parts[-3] == case):
        doc = _typed(irtext.parse(path.read_text("utf-8")))
        expected = json.loads(path.with_suffix(".pb.json").read_text())
        data = irproto.encode(doc, first_constant=written)
        assert _without_lines(graph_proto.decode(data)) == _without_lines(expected)
        written += len(irproto.constants(doc))


def test_decoding_gives_back_names_types_and_lines():
    path = RECORDED / "reference_cases" / "lenet_fwd" / "graphs" / "ms_output_trace_code_graph_0.ir"
    doc = _typed(irtext.parse(path.read_text("utf-8")))
    back = irproto.decode(irproto.encode(doc))
    assert [n.full_name for n in back.nodes] == [n.full_name for n in doc.nodes if n.index is not None]
    assert [n.sources for n in back.nodes] == [n.sources for n in doc.nodes if n.index is not None]
    assert [p.name for p in back.params] == [p.name for p in doc.params]
    assert [n.output for n in back.nodes if isinstance(n.output, TensorType)] == [
        n.output for n in doc.nodes if isinstance(n.output, TensorType)
    ]


def _doc(kind: str) -> IrDoc:
    tensor = TensorType(dtype=DTYPES[kind], shape=(2,))
    param = IrParam(
        name="x",
        label="x",
        use_label="x",
        abstract=tensor,
        device=KernelIo(dtype="Unknown", format="DefaultFormat", shape=(2,)),
        is_weight=False,
    )
    return IrDoc(name="kernel_graph0", graph_id=0, params=(param,), nodes=())


@pytest.mark.parametrize("name", ["complex64", "complex128", "float8_e5m2", "uint1"])
def test_types_without_a_number_are_undefined(name, graph_proto):
    (parameter,) = graph_proto.decode(irproto.encode(_doc(name)))["graph"]["parameters"]
    assert parameter["type"]["tensor_type"].get("elem_type", 0) in (0, "DT_UNDEFINED")


def test_equal_constants_are_one_unless_their_identity_differs(graph_proto):
    number = ScalarType(dtype=DTYPES["int64"], value=0)

    def node(n: int, *identities: int) -> IrNode:
        return IrNode(
            index=n,
            name="",
            op_type="Op",
            prim_func=False,
            operands=tuple(ConstRef(value=0, abstract=number, identity=i) for i in identities),
            operand_types=(number,) * len(identities),
            output=TupleType(items=()),
            full_name=f"Default/Op-op{n}",
        )

    doc = replace(_doc("float32"), nodes=(node(0, 0, 0), node(1, 7, 0)))
    graph = graph_proto.decode(irproto.encode(doc))["graph"]
    assert [[i["name"] for i in n["input"]] for n in graph["node"]] == [["cst1", "cst1"], ["cst2", "cst1"]]
    assert [c["full_name"] for c in graph["const_vals"]] == ["Default_data-0", "Default_data-1"]


def _node(**fields) -> IrNode:
    settings = {"operands": (), "operand_types": (), "output": TupleType(items=()), "full_name": "Default/Op-op0"}
    return IrNode(index=0, name="", op_type="Op", prim_func=False, **settings | fields)


ATTRIBUTES = [  # value, what the protobuf holds, how the reader spells it
    (None, {"dtype": "NONE"}, ""),
    (True, {"dtype": "BOOL", "bool_val": True}, "True"),
    (-3, {"dtype": "INT64", "int_val": -3}, "-3"),
    (0.5, {"dtype": "FLOAT32", "float_val": 0.5}, "0.5"),
    (np.float64(0.1), {"dtype": "FLOAT64", "double_val": 0.1}, "0.1"),
    (np.float16(0.5), {"dtype": "FLOAT16", "float_val": 0.5}, "0.5"),
    (np.uint8(200), {"dtype": "UINT8", "uint_val": 200}, "200"),
    (np.int16(-7), {"dtype": "INT16", "int_val": -7}, "-7"),
    (np.bool_(False), {"dtype": "BOOL", "bool_val": False}, "False"),
    ("NCHW", {"dtype": "STRING", "str_val": "NCHW"}, "NCHW"),
    (
        (1, "a"),
        {"dtype": "TUPLE", "values": [{"dtype": "INT64", "int_val": 1}, {"dtype": "STRING", "str_val": "a"}]},
        "(1, a)",
    ),
    ([2.0], {"dtype": "LIST", "values": [{"dtype": "FLOAT32", "float_val": 2.0}]}, "(2.0)"),
    ((), {"dtype": "TUPLE"}, "()"),
    (DTYPES["float16"], {"dtype": "TYPE", "type_val": {"data_type": 38}}, ""),
    (DTYPES["int8"], {"dtype": "TYPE", "type_val": {"data_type": 36}}, ""),
    (DTYPES["uint32"], {"dtype": "TYPE", "type_val": {"data_type": 37}}, ""),
    (DTYPES["bool"], {"dtype": "TYPE", "type_val": {"data_type": 35}}, ""),
]


@pytest.mark.parametrize(("value", "expected", "spelled"), ATTRIBUTES, ids=lambda item: repr(item)[:20])
def test_an_attribute_of_every_kind(value, expected, spelled, graph_proto):
    data = irproto.encode(replace(_doc("float32"), nodes=(_node(primitive_attrs=(("key", value),)),)))
    (node,) = graph_proto.decode(data)["graph"]["node"]
    assert node["attribute"] == [{"name": "key", "value": expected}]
    (back,) = irproto.decode(data).nodes
    assert back.primitive_attrs == (("key", spelled),)


def test_counts_of_the_feature_map_are_unsigned(graph_proto):
    attrs = (("IsFeatureMapInputList", (0, 2)), ("begin", (0, 2)))
    data = irproto.encode(replace(_doc("float32"), nodes=(_node(primitive_attrs=attrs),)))
    (node,) = graph_proto.decode(data)["graph"]["node"]
    assert [[member["dtype"] for member in one["value"]["values"]] for one in node["attribute"]] == [
        ["UINT64", "UINT64"],
        ["INT64", "INT64"],
    ]


FLOATS = TensorType(dtype=DTYPES["float32"], shape=(2, 3))
OUTPUTS = [
    (
        FLOATS,
        {"data_type": "TENSOR", "tensor_type": {"elem_type": "FLOAT32", "shape": {"dim": [{"size": 2}, {"size": 3}]}}},
    ),
    (ScalarType(dtype=DTYPES["int64"]), {"data_type": "INT64"}),
    (ScalarType(dtype=DTYPES["bool"]), {"data_type": "BOOL"}),
    (MonadType(kind="U"), {"data_type": "UMONAD"}),
    (MonadType(kind="IO"), {"data_type": "IOMONAD"}),
    (StringType(), {"data_type": "STRING"}),
    (NoneType(), {"data_type": "NONE"}),
    (TupleType(items=()), {"data_type": "TUPLE", "sequence_type": {}}),
]


@pytest.mark.parametrize(("abstract", "expected"), OUTPUTS, ids=lambda item: str(item)[:20])
def test_an_output_of_every_kind(abstract, expected, graph_proto):
    data = irproto.encode(replace(_doc("float32"), nodes=(_node(output=abstract),)))
    (node,) = graph_proto.decode(data)["graph"]["node"]
    assert node["output_type"] == expected
    (back,) = irproto.decode(data).nodes
    assert back.output == abstract


def test_members_of_a_tuple_lose_their_shape(graph_proto):
    """As in what MindSpore writes."""
    data = irproto.encode(replace(_doc("float32"), nodes=(_node(output=TupleType(items=(FLOATS, NoneType()))),)))
    (node,) = graph_proto.decode(data)["graph"]["node"]
    members = [{"data_type": "TENSOR", "tensor_type": {"elem_type": "FLOAT32"}}, {"data_type": "NONE"}]
    assert node["output_type"] == {"data_type": "TUPLE", "sequence_type": {"elem_types": members}}
    (back,) = irproto.decode(data).nodes
    assert back.output == TupleType(items=(replace(FLOATS, shape=()), NoneType()))


def test_operands_are_numbered_by_what_they_are():
    number = ScalarType(dtype=DTYPES["int64"], value=5)
    operands = (ParamRef(index=0), ConstRef(value=5, abstract=number))
    two = replace(_node(operands=(NodeRef(index=0), *operands), operand_types=(FLOATS,) * 3), index=1)
    doc = replace(_doc("float32"), nodes=(_node(operands=operands, operand_types=(FLOATS,) * 2), two))
    first, second = irproto.decode(irproto.encode(doc)).nodes
    assert [type(operand) for operand in second.operands] == [NodeRef, ParamRef, ConstRef]
    assert first.operands == second.operands[1:] == (ParamRef(index=0), ConstRef(value="5", abstract=NoneType()))
    assert second.operands[0] == NodeRef(index=0)


@pytest.mark.parametrize(("root", "graph_id"), [(0, 0), (7, 7), (10**17 - 1, 10**17 - 1), (10**17, -1)])
def test_a_graph_id_that_no_graph_has_is_none(root, graph_id):
    assert irproto.decode(irproto.encode(replace(_doc("float32"), graph_id=root))).graph_id == graph_id


def test_a_whole_document_comes_back():
    """Of what the file has: kernel build information and names of instances are not in it."""
    lines = tuple(
        SourceLine(path=path, line=7, end_line=8, column=0, end_column=9, code="  x = f(y)")
        for path in ("a.py", "b.py")
    )
    number = ScalarType(dtype=DTYPES["int64"])
    operands = (ParamRef(index=1), NameRef(name="%para5_x"), ConstRef(value=(1, 2.5), abstract=TupleType(
        items=(number, ScalarType(dtype=DTYPES["float32"])))), ConstRef(value="max", abstract=StringType()),
        ConstRef(value=np.ones(3), abstract=FLOATS), ConstRef(value=None, abstract=MonadType(kind="U")))  # fmt: skip
    first = _node(operands=operands, operand_types=(FLOATS,) * 6, output=FLOATS, full_name="Default/a/Op-op0",
                  sources=lines, primitive_attrs=(("axis", -1), ("names", ["x", "y"])))  # fmt: skip
    end = IrNode(index=None, name="", op_type="Return", prim_func=False, operands=(NodeRef(index=0),),
                 operand_types=(FLOATS,), output=None, full_name="Default/Return-op9")  # fmt: skip
    (tensor,) = _doc("int8").params
    params = (tensor, replace(tensor, name="n", abstract=number))
    doc = IrDoc(name="kernel_graph7", graph_id=7, params=params, nodes=(first, end))
    data = irproto.encode(doc)
    io = KernelIo(dtype="Int8", format="DefaultFormat", shape=(2,))
    scalar = KernelIo(dtype="Float32", format="DefaultFormat", shape=())
    none = NoneType()
    assert irproto.decode(data) == IrDoc(
        name="kernel_graph7",
        graph_id=7,
        params=(
            replace(tensor, device=io),
            IrParam(name="n", label="n", use_label="n", abstract=TensorType(dtype=DTYPES["float32"], shape=()),
                    device=scalar, is_weight=False),
        ),
        nodes=(
            replace(
                first,
                operands=(
                    ParamRef(index=1),
                    *(ConstRef(value=text, abstract=none) for text in ("%para5_x", "(1, 2.5)", "max", "", "")),
                ),
                operand_types=(),
                primitive_attrs=(("axis", "-1"), ("names", "(x, y)")),
            ),
        ),
    )  # fmt: skip
    assert irproto.constants(doc) == operands[2:]


def test_the_number_of_a_constant_counts_on_from_the_first(graph_proto):
    node = _node(operands=(ConstRef(value=1, abstract=ScalarType(dtype=DTYPES["int64"])),), operand_types=(FLOATS,))
    for first in (0, 3):
        data = irproto.encode(replace(_doc("float32"), nodes=(node,)), first_constant=first)
        (constant,) = graph_proto.decode(data)["graph"]["const_vals"]
        assert (constant["key"], constant["full_name"]) == ("cst1", f"Default_data-{first}")


@given(st.binary(max_size=300))
def test_no_bytes_crash_the_reader(data):
    with contextlib.suppress(UnreadableError):
        irproto.decode(data)
