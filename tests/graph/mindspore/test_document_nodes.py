"""The lines of a document about a node: kernels, objects, attributes, marks and counts."""

from dataclasses import replace
from itertools import count

import numpy as np
import pytest

from dumpsim.core.abstract import StringType, TensorType, TupleType
from dumpsim.core.dtype import dtype
from dumpsim.core.irdoc import ConstRef, KernelIo, ParamRef, SourceLine
from dumpsim.graph.graph import Constant, Graph, Node, Parameter, text_of
from dumpsim.graph.mindspore.cut import CALL_RESULT
from dumpsim.graph.mindspore.document import document, outline
from dumpsim.graph.nodetext import NodeText
from dumpsim.ops.table import find
from tests.graph.compiled import root_of

LINE = SourceLine(path="net.py", line=7, end_line=7, column=0, end_column=4, code="x")


@pytest.fixture
def shown(net):
    def shown(*outputs, root=True, graph_id=3):
        net.give(*outputs)
        graph = root_of(net.graph, woven_only=True)
        numbers = count(8)
        return document(graph, graph_id, "Default/Return-op1", find=find, number=lambda: next(numbers), root=root)

    return shown


def only(doc, op_type):
    (found,) = [node for node in doc.nodes if node.op_type == op_type]
    return found


def io(kind, *shape):
    return KernelIo(dtype=kind, format="DefaultFormat", shape=shape)


def test_a_kernel_has_the_types_of_its_operands_and_outputs(net, shown):
    x = net.input("x", (2, 3), "float16")
    node = only(shown(net.op("ReduceSum", x, (1,), True)), "ReduceSum")
    assert node.index == 0
    assert node.prim_func is True
    assert node.kernel_in[:3] == (io("Float16", 2, 3), io("Int64"), io("Bool"))
    assert node.kernel_out == (io("Float16", 2, 1),)
    assert node.object_in[:3] == ("Tensor", "Tuple", "Scalar")
    assert node.object_out == "Tensor"
    assert node.output == TensorType(dtype=dtype("float16"), shape=(2, 1))
    assert node.operand_types[0] == x.abstract
    assert dict(node.node_attrs) == {"checkpoint": True, "is_dynamic_len": False}


def test_operators_of_python_are_no_functions(net, shown):
    doc = shown(net.op("L2Loss", net.input("x", (2,))))
    assert only(doc, "L2Loss").prim_func is False
    assert only(doc, "Return").prim_func is False


def test_loads_and_states_have_no_object_types_but_tuples_have(net, shown):
    w = net.weight("w", np.ones(2, np.float32))
    x = net.input("x", (2,))
    doc = shown(net.op("Add", net.op("Exp", w), x), net.op("Neg", x))
    load = only(doc, "Load")
    assert (load.object_in, load.object_out, load.kernel_in, load.kernel_out) == (None,) * 4
    tuple_ = only(doc, "MakeTuple")
    assert (tuple_.object_in, tuple_.object_out) == (("Tensor", "Tensor"), "TupleUnfold")
    assert (tuple_.kernel_in, tuple_.kernel_out) == (None, None)
    for kernel in ("Exp", "Add", "Neg"):
        assert only(doc, kernel).object_out == "Tensor"
        assert only(doc, kernel).kernel_out == (io("Float32", 2),)


def test_a_token_in_a_tuple_is_an_unknown_object(net, shown):
    x = net.input("x", (2,))
    token = net.state(x)
    bundle = Node(op_type="MakeTuple", operands=[x, token], abstract=TupleType(items=(x.abstract, token.abstract)))
    depend = Node(op_type="Depend", operands=[x, bundle], abstract=x.abstract)
    doc = shown(net.op("Exp", depend))
    assert only(doc, "MakeTuple").object_in == ("Tensor", "Unknown")
    assert only(doc, "Depend").object_in is None


def test_objects_of_a_write_leave_its_token_out(net, shown):
    w = net.weight("w", np.ones(2, np.float32))
    node = only(shown(net.op("Assign", w, net.input("x", (2,)))), "Assign")
    assert len(node.operands) == 3  # and the token
    assert node.object_in == ("Tensor", "Tensor")
    assert node.kernel_in == (io("Float32", 2), io("Float32", 2))
    assert dict(node.primitive_attrs)["IsFeatureMapInputList"] == (1,)


def test_sources_belong_to_kernels(net, shown):
    x = net.input("x", (2,))
    made = net.op("Exp", x)
    both = net.op("MakeTuple", made, net.op("Neg", x))
    for node in (made, both):
        text_of(node).sources = (LINE,)
    doc = shown(both)
    assert only(doc, "Exp").sources == (LINE,)
    assert only(doc, "Neg").sources == ()
    assert all(node.sources == () for node in doc.nodes if node.op_type == "MakeTuple")


def test_a_cast_names_its_type_and_does_not_take_it(net, shown):
    x = net.input("x", (2,))
    cast = net.op("Cast", x, dtype("float16"))
    doc = shown(cast)
    node = only(doc, "Cast")
    assert node.operands == (ParamRef(index=0),)
    assert dict(node.primitive_attrs)["dst_type"] == dtype("float16")
    assert doc.total_nodes == 2 * 2 + 1  # the type is not a constant


def test_a_cast_of_the_backend_has_no_names(net, shown):
    x = net.input("x", (2,))
    named = dict(only(shown(net.op("Cast", x, dtype("float16"))), "Cast").primitive_attrs)
    cast = net.op("Cast", x, dtype("float16"))
    cast.text = NodeText(is_backend=True)
    bare = dict(only(shown(cast), "Cast").primitive_attrs)
    assert "input_names" not in bare
    assert "output_names" not in bare
    assert bare["dst_type"] == dtype("float16")
    assert set(bare) <= set(named)


def test_feature_maps_are_data_of_the_network(net, shown):
    w, x = net.weight("w", np.ones(2, np.float32)), net.input("x", (2,))
    doc = shown(net.op("Add", net.op("Mul", w, x), np.float32(2)))
    marks = {node.op_type: dict(node.primitive_attrs) for node in doc.nodes}
    assert marks["Mul"]["IsFeatureMapInputList"] == (1,)  # the other one is a load
    assert marks["Add"]["IsFeatureMapInputList"] == (0, 1)
    assert marks["Add"]["IsFeatureMapOutput"] is True
    assert "dyn_input_sizes" not in marks["Add"]
    total = dict(only(shown(net.op("ReduceSum", x, (), False)), "ReduceSum").primitive_attrs)
    assert 1 not in total["IsFeatureMapInputList"]  # an empty tuple is nothing


def test_sizes_of_tuples_stand_among_minus_ones(net, shown):
    x = net.input("x", (2, 3))
    concat = only(shown(net.op("Concat", (x, x, x), 1)), "Concat")
    assert dict(concat.primitive_attrs)["dyn_input_sizes"] == (3, -1)
    assert concat.kernel_in == (*[io("Float32", 2, 3)] * 3, io("Int64"))


@pytest.mark.parametrize(
    ("op_type", "before", "after", "sizes"), [("Stack", 0, 0, (3,)), ("Concat", 0, 1, (3, -1)), ("Add", 1, 0, (-1, 3))]
)
def test_sizes_of_tuples_do_not_depend_on_the_definition(net, shown, op_type, before, after, sizes):
    """An operator of a script takes tuples, too."""
    x = net.input("x", (2, 3))
    bundle = net.op("Stack", (x, x, x)).operands[0]
    node = Node(
        op_type=op_type,
        operands=[*[x] * before, bundle, *[x] * after],
        abstract=x.abstract,
        scope="Default",
        definition=replace(find(op_type), fixed={}),
    )
    net.graph.trail.append(node)
    assert dict(only(shown(node), op_type).primitive_attrs)["dyn_input_sizes"] == sizes


@pytest.mark.parametrize(
    ("shape_in", "shape_out", "marks"),
    [
        ((2, 3), (2, 3), set()),
        ((-1, 3), (2, 3), {"input_is_dynamic_shape"}),
        ((2, 3), (-1, 3), {"output_is_dynamic_shape"}),
        ((-1, 3), (2, -1), {"input_is_dynamic_shape", "output_is_dynamic_shape"}),
    ],
)
def test_shapes_that_are_open_are_marked(net, shown, shape_in, shape_out, marks):
    x = net.input("x", shape_in)
    made = net.op("Exp", x)
    made.abstract = TensorType(dtype=dtype("float32"), shape=shape_out)
    doc = shown(made)
    found = dict(only(doc, "Exp").primitive_attrs)
    assert {name for name in found if "dynamic" in name} == marks
    assert all(found[name] is True for name in marks)
    end = dict(doc.nodes[-1].primitive_attrs)
    both = {"input_is_dynamic_shape", "output_is_dynamic_shape"} if -1 in shape_out else set()
    assert {name for name in end if "dynamic" in name} == both


def test_attributes_are_in_the_order_of_the_text(net, shown):
    made = net.op("Exp", net.input("x", (2,)))
    text_of(made).attrs["mine"] = 3
    text_of(made).node_attrs = {"other": 4}
    node = only(shown(made), "Exp")
    assert dict(node.node_attrs) == {"other": 4, "checkpoint": True, "is_dynamic_len": False}
    assert {"mine", "IsFeatureMapInputList", "IsFeatureMapOutput"} <= set(dict(node.primitive_attrs))


# -- constants


def operand_of(doc, op_type, at):
    found = only(doc, op_type).operands[at]
    assert isinstance(found, ConstRef)
    return found


def test_constants_of_an_expansion_are_its_own(net, shown):
    x = net.input("x", (2,))
    first, second = net.op("Add", x, np.float32(2)), None
    second = net.op("Mul", first, np.float32(2))
    plain = shown(second)
    assert [operand_of(plain, op, 1).identity for op in ("Add", "Mul")] == [0, 0]
    first.scope = second.scope = "Expand/Default"
    doc = shown(second)
    assert [operand_of(doc, op, 1).identity for op in ("Add", "Mul")] == [2, 4]  # all operands count


def test_constants_of_the_backend_are_counted_one_by_one(net, shown):
    x = net.input("x", (2,))
    second = net.op("Mul", net.op("Add", x, np.float32(2)), np.float32(2))
    assert shown(second).total_nodes == 2 * 3 + 1 + 1
    for node in (second, second.operands[0]):
        text_of(node).is_backend = True
    assert shown(second).total_nodes == 2 * 3 + 1 + 2


def test_constants_with_other_values_or_types_are_counted_separately(net, shown):
    x = net.input("x", (2,))
    made = net.op("Add", net.op("Add", x, np.float32(2)), np.float32(3))
    assert shown(made).total_nodes == 2 * 3 + 1 + 2


def test_a_format_is_one_with_other_formats_only(net, shown):
    x, scale = net.input("x", (1, 2, 3, 3)), net.input("b", (2,))
    node = only(shown(net.op("BiasAdd", x, scale)), "BiasAdd")
    place = next(i for i, operand in enumerate(node.operands) if isinstance(operand, ConstRef))
    assert node.operands[place].identity == -1


# -- parameters


def parameters(*made, root=False):
    out = Node(op_type="MakeTuple", operands=list(made), abstract=TupleType(items=tuple(p.abstract for p in made)))
    graph = Graph(parameters=list(made), output=out)
    numbers = count(8)
    return document(graph, 1, "Return", find=find, number=lambda: next(numbers), root=root).params


def test_a_parameter_without_a_name_takes_a_number():
    kind = TensorType(dtype=dtype("float32"), shape=(2,))
    plain, result, variable, inner = parameters(
        Parameter(name="x", abstract=kind),
        Parameter(name=CALL_RESULT, abstract=kind),
        Parameter(name="y", debug_name="фy", abstract=kind),
        Parameter(name="", abstract=kind),
    )
    assert (plain.name, plain.label, plain.use_label, plain.shape_hint) == ("x", "x", "x", True)
    assert (result.name, result.label, result.use_label) == ("Parameter_8", "_8", "Parameter_8")
    assert (variable.name, variable.label, variable.use_label) == ("фy", "", "фy")
    assert (inner.name, inner.label, inner.use_label) == ("Parameter_9", "", "Parameter_9")
    assert [p.shape_hint for p in (result, variable, inner)] == [False] * 3
    assert plain.device == io("Float32", 2)


def test_a_weight_keeps_its_name_and_has_no_device_type():
    kind = TensorType(dtype=dtype("float32"), shape=(2,))
    (weight,) = parameters(Parameter(name="w", debug_name="para_w", abstract=kind, is_weight=True, has_default=True))
    assert (weight.name, weight.label, weight.use_label) == ("w", "w", "para_w")
    assert (weight.is_weight, weight.has_default, weight.shape_hint) == (True, True, False)
    assert weight.device == KernelIo(dtype="Unknown", format="DefaultFormat", shape=(2,))
    assert weight.abstract == replace(kind, inplace=False)


# -- the whole


def test_the_head_of_a_document(net, shown):
    x = net.input("x", (2,))
    doc = shown(net.op("Exp", x), graph_id=5)
    assert (doc.name, doc.instance, doc.attrs) == (
        "kernel_graph5", "0x550000005000", (("enable_zero_copy_in_graph", "1"),)
    )  # fmt: skip
    assert (doc.total_nodes, doc.total_cnodes) == (2 * 2 + 1, 2)
    end = doc.nodes[-1]
    assert (end.index, end.name, end.output) == (None, "CNode_9", None)
    assert end.operand_types == (doc.nodes[0].output,)


def test_an_outline_names_a_graph_without_a_name_and_counts_from_1(net):
    net.give(net.op("Exp", net.input("x", (2,))))
    net.graph.name = ""
    (doc,) = outline(net.graph, find)
    assert doc.name == "graph"
    assert [node.name for node in doc.nodes] == ["CNode_1", "CNode_2", "CNode_3"]
    assert doc.nodes[-1].full_name == "Default/Return"
    assert [param.name for param in doc.params] == ["x"]
    assert dict(doc.nodes[0].node_attrs)["checkpoint"] is True


def test_strings_and_nothing_have_types_of_their_own(net, shown):
    x, scale = net.input("x", (1, 2, 3, 3)), net.input("b", (2,))
    made = net.op("BiasAdd", x, scale)
    text = Constant(value="NCHW", abstract=StringType(value="NCHW"))
    made.operands = [*made.operands[:2], text]
    node = only(shown(made), "BiasAdd")
    assert node.kernel_in[2] == io("String")
    assert node.object_in[2] == "Scalar"
    summed = only(shown(net.op("SumExt", x, None, False, None)), "SumExt")
    assert (summed.kernel_in[1], summed.object_in[1]) == (io("None"), "Scalar")
