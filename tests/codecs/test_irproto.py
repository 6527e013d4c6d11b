"""IR protobuf against what MindSpore 2.10 wrote, decoded with the recorder's own schema."""

import contextlib
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dumpsim.codecs import irproto, irtext
from dumpsim.core.abstract import MonadType, ScalarType, TensorType, TupleType
from dumpsim.core.dtype import DTYPES
from dumpsim.core.errors import UnreadableError
from dumpsim.core.irdoc import ConstRef, IrDoc, IrNode, IrParam, KernelIo

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


@given(st.binary(max_size=300))
def test_no_bytes_crash_the_reader(data):
    with contextlib.suppress(UnreadableError):
        irproto.decode(data)
