"""IR text against what MindSpore 2.10 wrote."""

from pathlib import Path

import pytest

from dumpsim.codecs import irtext
from dumpsim.core.errors import UnreadableError

RECORDED = Path(__file__).parents[2] / "fixtures" / "mindspore_2_10"
FILES = sorted(RECORDED.glob("**/*.ir"))

OLD = """# IR entry: @kernel_graph_1
subgraph @kernel_graph_1() {
  %20(equivoutput) = Conv2D(%17, %19) {instance name: conv2d} primitive_attrs: {kernel_size: (3, 3), mode: 1}
      : (<Tensor[Float32], (32, 256, 13, 13)>, <Tensor[Float32], (384, 256, 3, 3)>) -> (<Tensor[Float32], (32, 384, 13, 13)>)
      : (<Float16xNC1HWC0[const vector][32, 16, 13, 13, 16]>, <Float16xFracZ[const vector][144, 24, 16, 16]>) -> (<Float32xNC1HWC0[const vector][32, 24, 13, 13, 16]>)
      : full_name_with_scope: (Default/conv3-Conv2d/Conv2D-op12)
      # In file ./train.py(175)/        x = self.conv3(x)/
}
"""  # noqa: E501


@pytest.mark.parametrize("path", FILES, ids=lambda p: f"{p.parts[-3]}-{p.stem[-1]}")
def test_text_survives_a_round_trip_byte_for_byte(path):
    text = path.read_text("utf-8")
    assert irtext.render(irtext.parse(text, str(path))) == text


def test_there_is_something_to_read():
    assert len(FILES) >= 12


def test_nodes_know_their_names_operands_and_lines():
    path = RECORDED / "lenet_train" / "graphs" / "ms_output_trace_code_graph_0.ir"
    doc = irtext.parse(path.read_text("utf-8"))
    assert [param.name for param in doc.params][:2] == ["fc3.bias", "fc3.weight"]
    conv = next(node for node in doc.nodes if node.op_type == "Conv2D")
    assert conv.full_name == "Default/network-WithLossCell/_backbone-LeNet5/conv1-Conv2d/Conv2D-op0"
    assert dict(conv.primitive_attrs)["kernel_size"] == "(5, 5)"
    assert conv.sources[0].path == "train.py"
    assert doc.total_cnodes == len(doc.nodes)


def test_the_documents_older_form_is_read():
    node = irtext.parse(OLD).nodes[0]
    assert node.full_name == "Default/conv3-Conv2d/Conv2D-op12"
    assert node.kernel_in is not None
    assert node.kernel_in[0].format == "NC1HWC0"
    assert node.kernel_in[1].shape == (144, 24, 16, 16)
    assert (node.sources[0].path, node.sources[0].line) == ("./train.py", 175)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "hello",
        "# IR entry: @g\nsubgraph @g() {\n  %0(a) = Add(%1, (\n}\n",
        "# IR entry: @g\n%para1_x: <Tensor[Float99], (2)>\nsubgraph @g() {\n}\n",
        "# IR entry: @g\nsubgraph @g() {\n  %0(a) = Add(%1)\n      # In file nonsense\n}\n",
    ],
)
def test_what_is_not_a_graph_is_a_clear_error(text):
    with pytest.raises(UnreadableError) as caught:
        irtext.parse(text, "x.ir")
    assert "x.ir" in str(caught.value)


HEAD = "# IR entry: @g\n"
BODY = "subgraph @g() {\n  %0(a) = Add(%1)\n      : "


@pytest.mark.parametrize(
    ("text", "place", "said"),
    [
        (HEAD + "Total number of nodes: few\nsubgraph @g() {\n}\n", "x.ir", "is not a number"),
        (HEAD + "%para1_x: nonsense\nsubgraph @g() {\n}\n", "x.ir:2", "not a graph parameter"),
        (HEAD + "%para1_x: <Ref[Int64], ()>\nsubgraph @g() {\n}\n", "x.ir:2", "is not a parameter's type"),
        (HEAD + "subgraph @g() {\nnonsense\n}\n", "x.ir", "not a node"),
        (HEAD + BODY + "(<Tensor[Float32]>) -> (<Tensor[Float32], (2)>)\n}\n", "x.ir", "is not a type"),
        (HEAD + BODY + "(<Tuple[Int64*2], TupleShape((2))>) -> ()\n}\n", "x.ir", "2 types with 1 shapes"),
        (HEAD + BODY + "(<Tensor[Float32], (a)>) -> ()\n}\n", "x.ir", "is not a shape"),
        (HEAD + BODY + "(<Int8xNCHW[const vector]{a}>) -> ()\n}\n", "x.ir", "'a' is not a shape"),
        (HEAD + "subgraph @g() {\n  %0(a) = Add(%1) primitive_attrs: {a: (1\n}\n", "x.ir:3", "never closed"),
    ],
)
def test_damage_is_told_with_its_line(text, place, said):
    with pytest.raises(UnreadableError, match=said) as caught:
        irtext.parse(text, "x.ir")
    assert str(caught.value).startswith(place)


def test_parameters_that_are_tokens_or_tuples():
    """As segments of functions take them. [observed 2.10]"""
    lines = (
        "%para1_u: <UMonad, NoShape>  :  <UMonadxDefaultFormat[const vector]{}>  :  IsWeight: false",
        "%para2_n: <Int64, NoShape>  :  <Int64xDefaultFormat[const vector]{}>  :  IsWeight: false",
        "%para3_g: <Tuple[Tensor[Float32]*2], TupleShape((4, 4), (4))> : [[4, 4], [4]]  :  "
        "<Float32xDefaultFormat[const vector]{4, 4}>, <Float32xDefaultFormat[const vector]{4, 4}>  :  IsWeight: false",
    )
    doc = irtext.parse("\n".join([HEAD, *lines, "subgraph @g() {", "}"]))
    assert [param.label for param in doc.params] == ["u", "n", "g"]
    assert [line for line in irtext.render(doc).splitlines() if line.startswith("%para")] == list(lines)


NODE = """  %0(y) = Neg(I64(1)) primitive_attrs: {}
      : (<Int64, NoShape>) -> (<Int64, NoShape>)
      # Fullname with scope: (Default/Neg-op0)
"""
LINE = "      # In file net.py:{}, 8~30/        y = -x/\n"


@pytest.mark.parametrize(
    ("lines", "kind", "own", "more"),
    [
        ("", "", [], []),
        ("1", "", [1], []),
        ("c1", "code", [1], []),
        ("1c2", "", [1], [("code", [2])]),
        ("c1f2", "code", [1], [("forward node", [2])]),
        ("12f3c4", "", [1, 2], [("forward node", [3]), ("code", [4])]),
    ],
)
def test_source_lines_are_grouped_by_their_titles(lines, kind, own, more):
    titles = {f"{name[0]}": f"      # Corresponding {name} candidate:\n" for name in ("code", "forward node")}
    text = HEAD + "subgraph @g() {\n" + NODE + "".join(titles.get(one) or LINE.format(one) for one in lines) + "}\n"
    (node,) = irtext.parse(text).nodes
    assert (node.candidate, [line.line for line in node.sources]) == (kind, own)
    assert [(title, [line.line for line in group]) for title, group in node.more_sources] == more
    rendered = irtext.render(irtext.parse(text))
    assert irtext.parse(rendered) == irtext.parse(text)
