"""Text graphs of models: protobuf text that google.protobuf reads by a schema of the test's own."""

from dataclasses import replace

import numpy as np
import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, text_format

from dumpsim.core.dtype import dtype
from dumpsim.graph.builder import constant
from dumpsim.graph.ge.streams import schedule
from dumpsim.graph.ge.text import onnx, render, value_lines
from dumpsim.graph.pipeline import compile_graph
from dumpsim.ops.table import find
from dumpsim.runtime.ids import Ids


def compiled(graph, options):
    """A graph as GE's model."""
    (whole,) = compile_graph(graph, Ids(), find, options).kernel_graphs
    return whole


F = descriptor_pb2.FieldDescriptorProto
# message -> (field, number, type, repeated), numbers as in GE's ge_ir.proto
SCHEMA = {
    "Model": [("name", 1, "string", 0), ("graph", 7, "Graph", 1)],
    "Graph": [("name", 1, "string", 0), ("input", 4, "string", 1), ("output", 5, "string", 1), ("op", 6, "Op", 1)],
    "Op": [
        ("name", 1, "string", 0), ("type", 2, "string", 0), ("input", 5, "string", 1), ("attr", 10, "Entry", 1),
        ("id", 22, "int64", 0), ("stream_id", 23, "int64", 0), ("input_desc", 33, "Tensor", 1),
        ("output_desc", 34, "Tensor", 1),
    ],
    "Entry": [("key", 1, "string", 0), ("value", 2, "Value", 0)],
    "Value": [
        ("list", 1, "Value", 0), ("s", 2, "string", 1), ("i", 3, "int64", 1), ("f", 4, "float", 1), ("b", 5, "bool", 1),
        ("bt", 7, "bytes", 0), ("dt", 8, "DType", 1),
    ],
    "Tensor": [("dtype", 1, "DType", 0), ("shape", 2, "Shape", 0), ("layout", 3, "string", 0),
               ("origin_shape", 4, "Shape", 0)],
    "Shape": [("dim", 1, "int64", 1)],
}  # fmt: skip
SCALARS = {"string": F.TYPE_STRING, "int64": F.TYPE_INT64, "float": F.TYPE_FLOAT, "bool": F.TYPE_BOOL,
           "bytes": F.TYPE_BYTES}  # fmt: skip
DTYPES = ("DT_UNDEFINED", "DT_FLOAT", "DT_FLOAT16", "DT_INT32", "DT_INT64", "DT_BOOL", "DT_UINT8")


@pytest.fixture(scope="module")
def parse():
    file = descriptor_pb2.FileDescriptorProto(name="ge.proto", package="t", syntax="proto2")
    kind = file.enum_type.add(name="DType")
    for number, name in enumerate(DTYPES):
        kind.value.add(name=name, number=number)
    for message, fields in SCHEMA.items():
        made = file.message_type.add(name=message)
        for name, number, of, repeated in fields:
            field = made.field.add(name=name, number=number)
            field.label = F.LABEL_REPEATED if repeated else F.LABEL_OPTIONAL
            field.type = SCALARS.get(of, F.TYPE_ENUM if of == "DType" else F.TYPE_MESSAGE)
            if of not in SCALARS:
                field.type_name = f".t.{of}"
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    model = message_factory.GetMessageClass(pool.FindMessageTypeByName("t.Model"))
    return lambda text: text_format.Parse(text, model())


def build(net):
    x, w = net.input("x", (2, 3, 8, 8)), net.weight("conv.weight", np.ones((4, 3, 3, 3), np.float32))
    y = net.op("Conv2D", x, w, out_channel=4, kernel_size=(3, 3), pad_mode="same")
    y = net.op("ReLU", net.op("BiasAdd", y, net.weight("conv.bias", np.ones(4, np.float32))))
    y = net.op("Reshape", net.op("Mul", y, np.full((2, 4, 8, 8), 2, np.float32)), (2, 256))
    net.give(net.op("Add", y, net.op("StandardNormal", (2, 256))))


@pytest.mark.parametrize("mode", ["1", "2", "3"])
def test_operators_links_and_layouts_are_those_of_the_model(net, o2, parse, mode):
    build(net)
    whole = compiled(net.graph, replace(o2, ge_graph=mode, ge_level="1"))
    assert [name for name, _ in whole.stages] == [
        "PreRunBegin",
        "PreRunAfterOptimizeOriginalGraph",
        "PreRunAfterOptimizeGraphBeforeBuild",
        "AfterAssignStream",
        "Build",
    ]
    texts = dict(whole.stages)
    begin, built = (parse(texts[name]).graph[0] for name in ("PreRunBegin", "Build"))
    assert sorted(op.type for op in begin.op if op.type != "Const") == [
        "Add", "BiasAdd", "Conv2D", *["Data"] * 3, "Mul", "NetOutput", "ReLU", "Reshape", "StandardNormal"
    ]  # fmt: skip
    ops = {op.name: op for op in built.op}
    assert len(ops) == len(built.op)
    kernels = [node.full_name for node in whole.order]
    assert [op.name for op in built.op if op.name in kernels] == kernels
    assert {op.type for op in built.op} - {node.op_type for node in whole.order} == {
        "Data", "Const", "NetOutput", "Send", "Recv"
    }  # fmt: skip
    for graph in (begin, built):  # the graph takes its Data and gives what NetOutput takes
        assert list(graph.input) == [f"{op.name}:0" for op in graph.op if op.type == "Data"]
        (last,) = (op for op in graph.op if op.type == "NetOutput")
        assert list(graph.output) == list(last.input) != []
    assert [op.id for op in built.op] == list(range(len(built.op)))
    for op in built.op:  # every link leads to an operator of the graph
        assert {link.rsplit(":", 1)[0] for link in op.input} <= ops.keys()
    for op in begin.op:  # and there is one for each tensor that it takes
        links = [link for link in op.input if not link.endswith(":-1")]
        taken = {"Add": 2, "Mul": 2, "Conv2D": 2, "BiasAdd": 2, "ReLU": 1, "NetOutput": 1, "Data": 0, "Const": 0}
        assert len(links) == taken.get(op.type, len(links)), op.name
    conv = next(op for op in built.op if op.type == "Conv2D")
    assert conv.name == "Default/Conv2D-op0Default/BiasAdd-op0Default/ReLU-op0"
    noise = ops["Default/StandardNormal-op0"]
    assert (noise.stream_id, conv.stream_id) == (2, 0)
    described = [(d.layout, d.dtype, list(d.shape.dim), list(d.origin_shape.dim)) for d in conv.input_desc]
    attrs = {entry.key: entry.value for entry in conv.attr}
    const = next(op for op in built.op if op.type == "Const")
    if mode == "3":
        assert (described, attrs) == ([], {})
        return
    half = DTYPES.index("DT_FLOAT16")
    assert described == [
        ("NC1HWC0", half, [2, 1, 8, 8, 16], [2, 3, 8, 8]),
        ("FRACTAL_Z", half, [9, 1, 16, 16], [4, 3, 3, 3]),
        ("ND", DTYPES.index("DT_FLOAT"), [4], [4]),
    ]
    assert list(attrs["_datadump_original_op_names"].list.s) == [
        "Default/Conv2D-op0", "Default/BiasAdd-op0", "Default/ReLU-op0"
    ]  # fmt: skip
    data = {entry.key: entry.value.bt for entry in const.attr}
    assert data == ({"value": np.full(512, 2, np.float32).tobytes()} if mode == "1" else {})


@pytest.mark.parametrize(
    ("level", "wanted"), [("2", ["PreRunBegin", "Build"]), ("3", ["Build"]), ("4", ["PreRunBegin"])]
)
def test_levels_choose_stages(net, o2, level, wanted):
    build(net)
    stages = compiled(net.graph, replace(o2, ge_graph="2", ge_level=level)).stages
    assert [name for name, _ in stages] == wanted


def test_the_onnx_form_has_the_same_nodes_and_links(net, o2):
    build(net)
    ((_, text),) = compiled(net.graph, replace(o2, ge_graph="3", ge_level="3")).stages
    keys = ("    name: ", "    input: ")
    here = [line for line in text.splitlines() if line.startswith(keys)]
    assert [line for line in onnx(text).splitlines() if line.startswith(keys)] == here
    assert onnx(text).count('op_type: "ge:') == text.count("\n    type: ") == onnx(text).count("  node {")


def rows(graph):
    """Each operator: name, type, links, attributes, number, stream, and the shapes of what it takes and gives."""
    for op in graph.op:
        attrs = {entry.key: plain(entry.value) for entry in op.attr}
        shapes = [[tuple(desc.shape.dim) for desc in descs] for descs in (op.input_desc, op.output_desc)]
        yield op.name, op.type, list(op.input), attrs, op.id, op.stream_id, *shapes


def plain(value):
    """The value of an attribute message that has one field."""
    ((field, content),) = value.ListFields()
    if field.name == "list":
        return {kind.name: list(items) for kind, items in content.ListFields()}
    return content if field.name == "bt" else content[0]


def small(net):
    """A sum with a constant, its parts, and their collective, on two streams."""
    net.graph.name = "g"
    x = net.input("x", (2, 2))
    both = net.op("Add", x, np.array([1, 2], np.float32))
    parts = net.op("Split", both, 0, 2)
    bundle = net.maker.emit("MakeTuple", net.item(parts, 1), x)
    total = net.op("AllReduce", net.item(bundle, 0), op="sum", group="hccl_world_group")
    order = net.give(total, net.item(parts, 0), np_constant(net))
    return order, schedule(order, find, engines=True)


def np_constant(net):
    """A constant that the network gives out."""
    return net.maker.emit("Add", np.float32([0]), np.float32([3]))


@pytest.mark.parametrize("detail", ["1", "2", "3"])
def test_every_field_of_a_small_model(net, parse, detail):
    """Rows by hand, from the graph and the rules of GE's text. [spec ge 1.5]"""
    order, launches = small(net)
    text = render(net.graph, order, launches, find, detail=detail)
    depth = 0  # nesting is indented by two blanks a level
    for line in text.splitlines():
        depth -= line.strip() == "}"
        assert len(line) - len(line.lstrip()) == 2 * depth
        depth += line.endswith("{")
    graph = parse(text).graph[0]
    data = [np.float32(values).tobytes() for values in ([1, 2], [0], [3])]
    add, split, total = "Default/Add-op0", "Default/Split-op0", "Default/AllReduce-op0"
    last = "Default/Add-op1"
    group = {"op": "sum", "group": "hccl_world_group", "_engine": "hccl"}
    wanted = {
        "x": ("Data", [], {"index": 0}, 0, [(2, 2)], [(2, 2)]),
        "Const_0": ("Const", [], {"value": data[0]}, 0, [], [(2,)]),
        "Const_1": ("Const", [], {"value": data[1]}, 0, [], [(1,)]),
        "Const_2": ("Const", [], {"value": data[2]}, 0, [], [(1,)]),
        add: ("Add", ["x:0", "Const_0:0"], {"_engine": "aicore"}, 0, [(2, 2), (2,)], [(2, 2)]),
        split: (
            *("Split", [f"{add}:0"], {"_engine": "aicore", "axis": 0, "output_num": 2}),
            *(0, [(2, 2)], [(1, 2), (1, 2)]),
        ),
        f"{split}_Send_0": ("Send", [f"{split}:-1"], {"event_id": 0}, 0, [], []),
        f"{total}_Recv_0": ("Recv", [], {"event_id": 0}, 1, [], []),
        total: ("AllReduce", [f"{split}:1", f"{total}_Recv_0:-1"], group, 1, [(1, 2)], [(1, 2)]),
        last: ("Add", ["Const_1:0", "Const_2:0"], {"_engine": "aicore"}, 0, [(1,), (1,)], [(1,)]),
        "Node_Output": (
            *("NetOutput", [f"{total}:0", f"{split}:0", f"{last}:0"], {}),
            *(0, [(1, 2), (1, 2), (1,)], []),
        ),
    }
    found = {}
    for number, (name, kind, links, attrs, id_, *rest) in enumerate(rows(graph)):
        assert id_ == number
        found[name] = kind, links, attrs, *rest
    if detail != "1":
        wanted = {
            name: (*row[:2], {k: v for k, v in row[2].items() if k != "value"}, *row[3:])
            for name, row in wanted.items()
        }
    if detail == "3":
        wanted = {name: (*row[:2], {}, row[3], [], []) for name, row in wanted.items()}
    assert found == wanted


@pytest.mark.parametrize(
    ("value", "lines"),
    [
        (True, ["b: true"]),
        (False, ["b: false"]),
        (1, ["i: 1"]),
        (0.5, ["f: 0.5"]),
        (1e-12, ["f: 1e-12"]),
        ('a"b\\c\n', ['s: "a\\"b\\\\c\\n"']),
        (dtype("float16"), ["dt: DT_FLOAT16"]),
        ((1, (2.0, "x")), ["list {", "  i: 1", "  list {", "    f: 2", '    s: "x"', "  }", "}"]),
        ([], ["list {", "}"]),
        (None, []),
    ],
)
def test_attributes_by_kind(value, lines):
    assert list(value_lines(value)) == lines


@pytest.mark.parametrize("alone", [False, True])
def test_a_constant_that_is_a_result_is_an_operator_of_the_model(net, parse, alone):
    x, known, other = net.input("x", (2,)), constant(np.float32([1, 2])), constant(np.float32([5]))
    total = net.op("Add", x, known)
    order = net.give(known) if alone else net.give(total, known, other)
    text = render(net.graph, order, schedule(order, find, engines=True), find, detail="1")
    found = {name: (kind, links, attrs.get("value")) for name, kind, links, attrs, *_ in rows(parse(text).graph[0])}
    data = [np.float32(values).tobytes() for values in ([1, 2], [5])]
    wanted = {"x": ("Data", [], None), "Const_0": ("Const", [], data[0])}
    if alone:
        wanted["Node_Output"] = ("NetOutput", ["Const_0:0"], None)
    else:
        wanted["Const_1"] = ("Const", [], data[1])
        wanted["Default/Add-op0"] = ("Add", ["x:0", "Const_0:0"], None)
        wanted["Node_Output"] = ("NetOutput", ["Default/Add-op0:0", "Const_0:0", "Const_1:0"], None)
    assert found == wanted
