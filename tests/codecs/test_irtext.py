"""IR text against what MindSpore 2.10 wrote."""

from dataclasses import replace
from pathlib import Path

import pytest

from dumpsim.codecs import irtext
from dumpsim.core.abstract import MonadType, NoneType, ScalarType, StringType, TensorType, TupleType
from dumpsim.core.dtype import DTYPES
from dumpsim.core.errors import UnreadableError
from dumpsim.core.irdoc import (
    ConstRef,
    IrDoc,
    IrFunction,
    IrNode,
    IrParam,
    KernelIo,
    NameRef,
    NodeRef,
    ParamRef,
    SourceLine,
)

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


INT = ScalarType(dtype=DTYPES["int64"])
FLOAT = TensorType(dtype=DTYPES["float32"], shape=(2,))


def made(index, op_type="Neg", **fields):
    known = {"name": f"CNode_{index}", "prim_func": False, "operands": (), "operand_types": (), "output": FLOAT}
    return IrNode(index=index, op_type=op_type, **known | {"full_name": f"Default/{op_type}-op{index}"} | fields)


def lines_of(node, form="new", **fields):
    """The lines of a node in the text of its graph."""
    text = irtext.render(IrDoc(name="g", graph_id=-1, params=(), nodes=(node,), **fields), form)
    lines = text.splitlines()
    return lines[lines.index("subgraph @g() {") + 1 : lines.index("}")]


def test_functions_stand_before_their_graph_or_after_it():
    """As stages of 2.10 print them: the last ones after the graph, because they read its parameters."""
    graph = IrDoc(
        name="1_main", graph_id=1, params=(), nodes=(made(0),), attrs=(("k", "1"),), total_nodes=5, total_cnodes=3,
        instance="0xab", is_stage=True, order=("@1_main:CNode_0{}",), functions=(
            IrFunction(name="2_body", parent="1_main", formals=(("%para1_x", FLOAT), ("%para2_n", INT)),
                       nodes=(made(0, "Abs", operands=(NameRef(name="%para1_x"),), operand_types=(FLOAT,)),)),
            IrFunction(name="3_last", parent="2_body", formals=(), nodes=(), is_last=True),
        ),
    )  # fmt: skip
    assert (
        irtext.render(graph)
        == """\
# IR entry: @1_main
# Total subgraphs: 3

# Attrs:
k: 1

# Total params: 0

Node counting information:
Total number of nodes: 5
Total number of cnodes: 3

subgraph attr:
subgraph instance: 2_body : 0xab
# Parameters: 2, (<Tensor[Float32], (2)>, <Int64, NoShape>)
subgraph @2_body parent: [subgraph @1_main](%para1_x, %para2_n) {
  %0(CNode_0) = Abs(%para1_x)
      : (<Tensor[Float32], (2)>) -> (<Tensor[Float32], (2)>)
      # Scope: (Default/Abs-op0)
}


subgraph attr:
k: 1
subgraph instance: 1_main : 0xab

subgraph @1_main() {
  %0(CNode_0) = Neg()
      : () -> (<Tensor[Float32], (2)>)
      # Scope: (Default/Neg-op0)
}


subgraph attr:
subgraph instance: 3_last : 0xab
# Parameters: 0, ()
subgraph @3_last parent: [subgraph @2_body]() {
}
# Order:
#   1: @1_main:CNode_0{}


"""
    )


IO = KernelIo(dtype="Float32", format="NC1HWC0", shape=(1, 2))


@pytest.mark.parametrize(
    ("fields", "form", "head", "rest"),
    [
        ({}, "new", "  %0(CNode_0) = Neg()", ["# Fullname with scope: (Default/Neg-op0)"]),
        ({}, "old", "  %0(CNode_0) = Neg()", [": full_name_with_scope: (Default/Neg-op0)"]),
        ({"index": None, "op_type": "Return", "prim_func": True}, "new", "  PrimFunc_Return()", None),
        ({"strategy": "((2, 1))"}, "new", "  %0(CNode_0) = Neg() {in_strategy: ((2, 1))}", None),
        ({"instance_name": "neg", "primitive_attrs": (("axis", 1),), "node_attrs": (("a", True),),
          "primal_attrs": (("b", "c"),), "strategy": "((1))"}, "new",
         '  %0(CNode_0) = Neg() {instance name: neg} primitive_attrs: {axis: I64(1)} cnode_attrs: {a: Bool(1)} '
         'cnode_primal_attrs: {b: "c"} {in_strategy: ((1))}', None),
        ({"kernel_in": (IO, IO), "kernel_out": (IO,)}, "new", None,
         [": (<Float32xNC1HWC0[const vector]{1, 2}>, <Float32xNC1HWC0[const vector]{1, 2}>) -> "
          "(<Float32xNC1HWC0[const vector]{1, 2}>)", "# Fullname with scope: (Default/Neg-op0)"]),
        ({"kernel_in": (IO,)}, "new", None, ["# Fullname with scope: (Default/Neg-op0)"]),
        ({"kernel_out": (IO,)}, "new", None, ["# Fullname with scope: (Default/Neg-op0)"]),
        ({"object_in": ("Tensor", "Number"), "object_out": "Tensor"}, "new", None,
         [": (Tensor, Number) -> (Tensor)", "# Fullname with scope: (Default/Neg-op0)"]),
        ({"object_in": ("Tensor",)}, "new", None, ["# Fullname with scope: (Default/Neg-op0)"]),
        ({"object_out": "Tensor"}, "new", None, ["# Fullname with scope: (Default/Neg-op0)"]),
    ],
)  # fmt: skip
def test_the_lines_of_a_node(fields, form, head, rest):
    found = lines_of(replace(made(0), **fields), form)
    assert found[0] == (head or "  %0(CNode_0) = Neg()")
    assert found[1] == "      : () -> (<Tensor[Float32], (2)>)"
    name = {"new": "# Fullname with scope: ", "old": ": full_name_with_scope: "}[form] + "(Default/Neg-op0)"
    assert [line.removeprefix("      ") for line in found[2:]] == (rest or [name])


def test_types_of_nodes_that_are_not_inferred_are_null():
    none = ConstRef(value="None", abstract=NoneType())
    node = made(0, operands=(none, NodeRef(index=3)), operand_types=(NoneType(), NoneType()), output=NoneType())
    assert lines_of(node)[:2] == ["  %0(CNode_0) = Neg(None, %3)", "      : (<None, NoShape>, <null>) -> (<null>)"]
    assert lines_of(replace(node, output=None))[1] == "      : (<None, NoShape>, <null>)"


@pytest.mark.parametrize(
    ("numbers", "text"),
    [
        ((7, 7, -1, -1), "net.py:7/  y = -x/"),
        ((7, 7, 0, 5), "net.py:7, 0~5/  y = -x/"),
        ((7, 9, 1, 5), "net.py:7~9, 1~5/  y = -x/"),
        ((7, 8, -1, -1), "net.py:7~8/  y = -x/"),
    ],
)
def test_source_lines_in_both_directions(numbers, text):
    line = SourceLine(path="net.py", line=numbers[0], end_line=numbers[1], column=numbers[2], end_column=numbers[3],
                      code="  y = -x")  # fmt: skip
    assert irtext.source_text(line) == text
    assert irtext.parse_source(f"# In file {text}", "ir") == line
    old = "# In file net.py(7)/  y = -x/"
    assert irtext.parse_source(old, "ir") == replace(line, line=7, end_line=7, column=-1, end_column=-1)
    assert lines_of(made(0, sources=(line,)), "old")[-1] == f"      {old}"


WHOLE = """\
# IR entry: @kernel_graph12
# Total subgraphs: 1

# Attrs:
key: a: b
other: 1

# Total params: 3
# Params:
%para1_x(1): <Tensor[Float32], (2)> : [2]  :  <Float32xDefaultFormat[const vector]{2}>  :  IsWeight: false
%para2_label: <Ref[Tensor[Float32]], (2), ref_key=net.w, is_parameter>  :  has_default  :  \
<UnknownxDefaultFormat[const vector]{2}>  :  IsWeight: true
%para3_u: <UMonad, NoShape>

Node counting information:
Total number of nodes: 31
Total number of cnodes: 3

subgraph attr:
key: a: b
other: 1
subgraph instance: kernel_graph12 : 0xab

subgraph @kernel_graph12() {
  %0(y) = PrimFunc_Op(%para1_x(1), %para2_w, "a) (, b", Tensor(shape=[3, 1], dtype=Int32, value=
[[1]

      [2]
# [3]]), (I64(1), %0)) {instance name: op} primitive_attrs: {a: "x: (", b: {c: I64(1)}} cnode_attrs: {d: e: f} \
cnode_primal_attrs: {g: (1, 2)} {in_strategy: ((2), (1))}
      : (<Tensor[Float32], (2)>, <Ref[Tensor[Float32]], (2), ref_key=net.w, is_parameter>, <String, NoShape>) -> \
(<Tuple[Int64*2], TupleShape(NoShape, NoShape), elements_use_flags={[const vector]{1, 1}}>)
      : (<Float32xNC1HWC0[const vector]{2}>, <UnknownxND[const vector]{}>) -> (<Int64xND[const vector]{1, 2}>)
      : (Tensor, Tensor, Scalar) -> (Tuple)
      # Fullname with scope: (Default/a/Op-op0)
      # In file a.py:1/  x/
      # Corresponding code candidate:
      # In file b.py:2~3, 4~5/  y/
  %7(CNode_1) = Print(%0, %para3_u)
      : (<null>, <UMonad, NoShape>)
      # Fullname with scope: (Default/Print-op0)
  Return(%7) {in_strategy: ((1))}
      : (<Int64, NoShape>)
}
# Order:
#   1: @kernel_graph12:y{}
#   2: @kernel_graph12:CNode_1: z{}
"""


def test_every_part_of_a_document_is_read():
    io = KernelIo(dtype="Float32", format="DefaultFormat", shape=(2,))
    weight = TensorType(dtype=DTYPES["float32"], shape=(2,), ref_key="net.w")
    x = IrParam(
        name="x(1)", label="x(1)", use_label="x(1)", abstract=FLOAT, device=io, is_weight=False, shape_hint=True
    )
    w = IrParam(name="net.w", label="label", use_label="w", abstract=weight, device=replace(io, dtype="Unknown"),
                is_weight=True, has_default=True)  # fmt: skip
    u = IrParam(name="u", label="u", use_label="u", abstract=MonadType(kind="U"), is_weight=False,
                device=KernelIo(dtype="Unknown", format="DefaultFormat", shape=()))  # fmt: skip
    first = IrNode(
        index=0, name="y", op_type="Op", prim_func=True,
        operands=(
            ParamRef(index=0), ParamRef(index=1), ConstRef(value='"a) (, b"', abstract=StringType()),
            ConstRef(value="Tensor(shape=[3, 1], dtype=Int32, value=\n[[1]\n\n      [2]\n# [3]])", abstract=NoneType()),
            ConstRef(value="(I64(1), %0)", abstract=NoneType()),
        ),
        operand_types=(FLOAT, weight, StringType()), output=TupleType(items=(INT, INT), value=()),
        full_name="Default/a/Op-op0", instance_name="op",
        primitive_attrs=(("a", '"x: ("'), ("b", "{c: I64(1)}")), node_attrs=(("d", "e: f"),),
        primal_attrs=(("g", "(1, 2)"),), strategy="((2), (1))",
        kernel_in=(KernelIo(dtype="Float32", format="NC1HWC0", shape=(2,)),
                   KernelIo(dtype="Unknown", format="ND", shape=())),
        kernel_out=(KernelIo(dtype="Int64", format="ND", shape=(1, 2)),),
        object_in=("Tensor", "Tensor", "Scalar"), object_out="Tuple",
        sources=(SourceLine(path="a.py", line=1, end_line=1, column=-1, end_column=-1, code="  x"),),
        more_sources=(("code", (SourceLine(path="b.py", line=2, end_line=3, column=4, end_column=5, code="  y"),)),),
    )  # fmt: skip
    second = IrNode(index=7, name="CNode_1", op_type="Print", prim_func=False,
                    operands=(NodeRef(index=0), ParamRef(index=2)), operand_types=(NoneType(), MonadType(kind="U")),
                    output=None, full_name="Default/Print-op0")  # fmt: skip
    last = IrNode(index=None, name="", op_type="Return", prim_func=False, operands=(NodeRef(index=7),),
                  operand_types=(INT,), output=None, full_name="", strategy="((1))")  # fmt: skip
    assert irtext.parse(WHOLE) == IrDoc(
        name="kernel_graph12", graph_id=12, params=(x, w, u), nodes=(first, second, last),
        attrs=(("key", "a: b"), ("other", "1")), total_nodes=31, total_cnodes=3, instance="0xab",
        order=("@kernel_graph12:y{}", "@kernel_graph12:CNode_1: z{}"),
    )  # fmt: skip


def test_what_a_text_may_lack():
    found = irtext.parse("# IR entry: @main\nsubgraph @main() {\n}\n")
    assert found == IrDoc(name="main", graph_id=-1, params=(), nodes=())


def test_the_longest_line_of_a_parameter():
    for length, fits in ((8191, True), (8192, False)):
        line = "%para1_: <Int64, NoShape>"
        text = f"{HEAD}{line.replace('_', '_' + 'x' * (length - len(line)))}\nsubgraph @g() {{\n}}\n"
        if fits:
            assert len(irtext.parse(text).params[0].label) == length - len(line)
        else:
            with pytest.raises(UnreadableError, match="ir:2: not a graph parameter"):
                irtext.parse(text)


def test_a_text_that_ends_early_has_the_nodes_before_its_end():
    graph = HEAD + "subgraph @g() {\n" + NODE
    for end in ("", "}", "}\n", "}\n# Order:\n#   1: @g:y{}\n"):
        found = irtext.parse(graph.rstrip() + "\n" * bool(end) + end)
        assert [(node.op_type, node.full_name) for node in found.nodes] == [("Neg", "Default/Neg-op0")]
        assert found.order == (("@g:y{}",) if "Order" in end else ())
    for damaged in (graph.replace("@g()", "@h()"), graph.replace("# IR entry", "# IR")):
        with pytest.raises(UnreadableError, match=r"^x\.ir: no '# IR entry' and 'subgraph' lines \[DS-IR-001\]$"):
            irtext.parse(damaged, "x.ir")


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
