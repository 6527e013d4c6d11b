"""Conversions between kernels that disagree about formats and number types."""

from dataclasses import replace
from itertools import count

import numpy as np
import pytest

from dumpsim.core.options import CompileOptions
from dumpsim.graph.ge.layout import lay_out
from dumpsim.graph.graph import Node
from dumpsim.ops.table import find

CONV = {"kernel_size": (3, 3), "pad_mode": "same"}


@pytest.fixture
def o0():
    """Options of a 910A that launches kernel by kernel."""
    from dumpsim.device.chip import chip

    return CompileOptions(pipeline="ascend-private", cube_ops=chip("910A").cube_ops, cube_dtype="float16")


def laid_out(net, order, options):
    numbers = count()

    def named(node):
        node.full_name = f"trans_{node.op_type}_{next(numbers)}"

    return lay_out(net.graph, order, find, options, named, agnostic=options.jit_level == "O2")


def flow(order):
    """Kernels as text: name, sources, and the layout of the first output."""
    lines = []
    for node in order:
        sources = [
            o.full_name.split("/")[-1] if isinstance(o, Node) else o.name
            for o in node.operands
            if isinstance(o, Node) or hasattr(o, "name")
        ]
        layout = node.layouts[0] if node.layouts else None
        shown = f" {layout.dtype} {layout.format}" if layout else ""
        lines.append(f"{node.full_name.split('/')[-1]}({', '.join(sources)}){shown}")
    return lines


def conv(net, x, name, channels, size=4):
    w = net.weight(name, np.ones((size, channels, 3, 3), np.float32))
    return net.op("Conv2D", x, w, out_channel=size, **CONV)


def test_two_convolutions_need_no_conversion_between_them(net, o0):
    y = conv(net, conv(net, net.input("x", (2, 3, 8, 8)), "w1", 3), "w2", 4)
    assert flow(laid_out(net, net.give(y), o0)) == [
        "trans_Cast_0(x) float16 DefaultFormat",
        "trans_TransData_1(trans_Cast_0) float16 NC1HWC0",
        "trans_Cast_2(w1) float16 DefaultFormat",
        "trans_TransData_3(trans_Cast_2) float16 FRACTAL_Z",
        "Conv2D-op0(trans_TransData_1, trans_TransData_3) float16 NC1HWC0",
        "trans_Cast_4(w2) float16 DefaultFormat",
        "trans_TransData_5(trans_Cast_4) float16 FRACTAL_Z",
        "Conv2D-op1(Conv2D-op0, trans_TransData_5) float16 NC1HWC0",
        "trans_TransData_6(Conv2D-op1) float16 DefaultFormat",
        "trans_Cast_7(trans_TransData_6) float32 DefaultFormat",
    ]
    assert net.graph.output.full_name == "trans_Cast_7"  # results are as on the host


def test_one_conversion_serves_all_users(net, o0):
    middle = conv(net, net.input("x", (2, 3, 8, 8)), "w1", 3)
    order = laid_out(net, net.give(net.op("Neg", middle), net.op("Exp", middle)), o0)
    assert [line for line in flow(order) if "Conv2D-op0" in line.split("(")[1]] == [
        "trans_TransData_4(Conv2D-op0) float16 DefaultFormat"
    ]
    assert sorted(flow(order)[-2:]) == ["Exp-op0(trans_Cast_5)", "Neg-op0(trans_Cast_5)"]


def test_elementwise_operators_of_whole_graphs_stay_in_the_format(net, o2):
    middle = net.op("Neg", conv(net, net.input("x", (2, 3, 8, 8)), "w1", 3))
    order = flow(laid_out(net, net.give(conv(net, middle, "w2", 4)), o2))
    at = next(i for i, line in enumerate(order) if line.startswith("Neg"))
    assert order[at - 1 : at + 2] == [
        "trans_Cast_4(Conv2D-op0) float32 NC1HWC0",
        "Neg-op0(trans_Cast_4) float32 NC1HWC0",
        "trans_Cast_5(Neg-op0) float16 NC1HWC0",
    ]


def test_formats_need_their_rank(net, o0):
    x = net.input("x", (2, 4))
    params = [net.weight(name, np.ones(4, np.float32)) for name in ("gamma", "beta", "mean", "variance")]
    y = net.item(net.op("BatchNorm", x, *params, True, 1e-3, 0.1, 0), 0)
    assert flow(laid_out(net, net.give(y), o0)) == ["BatchNorm-op0(x, gamma, beta, mean, variance)"]


def test_a_weight_is_converted_again_after_its_update(net, o0):
    x, w = net.input("x", (4, 4)), net.weight("w", np.ones((4, 4), np.float32))
    first = net.op("MatMul", x, w, False, False)
    assign = net.op("Assign", w, x)
    second = net.op("MatMul", x, w, False, False)
    net.give(first, assign, second)
    order = flow(laid_out(net, (first, assign, second), o0))
    products = [line for line in order if line.startswith("MatMul")]
    assert [line.split(", ")[1].split(")")[0] for line in products] == ["trans_TransData_3", "trans_TransData_5"]
    assert sum(line.startswith("trans_Cast") and "(w)" in line for line in order) == 2
    assert sum("(x)" in line and line.startswith("trans_Cast") for line in order) == 1


@pytest.mark.parametrize("ordering", ["Depend", "Load"])
def test_a_weight_behind_an_ordering_node_is_converted_again_after_its_update(net, o0, ordering):
    x, w = net.input("x", (4, 4)), net.weight("w", np.ones((4, 4), np.float32))
    read = Node(op_type=ordering, operands=[w, net.state(x)], abstract=w.abstract)
    before, again = (net.op("MatMul", x, read, False, False) for _ in range(2))
    assign, after = net.op("Assign", w, x), net.op("MatMul", x, read, False, False)
    net.give(before, again, assign, after)
    order = laid_out(net, (before, again, assign, after), o0)
    first, second, third = (node.operands[1] for node in order if node.op_type == "MatMul")
    assert first is second
    assert third is not first
    assert order.index(first) < order.index(assign) < order.index(third)


def test_integers_and_kernels_without_formats_are_left_alone(net, o0):
    x = net.input("x", (4, 4), "int32")
    assert flow(laid_out(net, net.give(net.op("Add", x, x)), o0)) == ["Add-op0(x, x)"]


def test_the_group_of_a_collective_is_no_group_of_a_convolution(net, o2):
    x = net.input("x", (4, 4))
    product = net.op("MatMul", x, x, False, False)
    summed = net.op("AllReduce", product, op="sum", group="hccl_world_group")
    order = flow(laid_out(net, net.give(summed), o2))
    assert order[-1] == "AllReduce-op0(trans_Cast_3)"


def test_the_weight_of_a_grouped_convolution_lies_by_groups(net, o0):
    x, w = net.input("x", (2, 4, 8, 8)), net.weight("w", np.ones((4, 2, 3, 3), np.float32))
    y = net.op("Conv2D", x, w, out_channel=4, group=2, **CONV)
    order = laid_out(net, net.give(y), o0)
    made = {node.attrs["dst_format"]: node.attrs["groups"] for node in order if node.op_type == "TransData"}
    assert made == {"NC1HWC0": 1, "FRACTAL_Z": 2, "DefaultFormat": 1}


def test_a_product_of_integers_stays_in_its_type(net, o0):
    x = net.input("x", (4, 4), "int32")
    order = flow(laid_out(net, net.give(net.op("MatMul", x, x, False, False)), o0))
    assert [line.split(") ")[1:] for line in order if line.startswith("MatMul")] == [["int32 FRACTAL_NZ"]]
    assert not [line for line in order if "float16" in line]


# the convolution of x and w: operands are narrowed, then take the formats of the matrix unit
CONVOLUTION = [
    "trans_Cast_0(x) float16 DefaultFormat",
    "trans_TransData_1(trans_Cast_0) float16 NC1HWC0",
    "trans_Cast_2(w) float16 DefaultFormat",
    "trans_TransData_3(trans_Cast_2) float16 FRACTAL_Z",
    "Conv2D-op0(trans_TransData_1, trans_TransData_3) float16 NC1HWC0",
]
IMAGES = (2, 4, 8, 8)


@pytest.mark.parametrize("whole", [False, True])
def test_a_view_takes_the_hosts_format_in_any_number_type(net, o0, o2, whole):
    """A Reshape has no kernel: it leaves the type as it is, so that nothing is widened before the next product."""
    y = net.op("Reshape", conv(net, net.input("x", (2, 3, 8, 8)), "w", 3), (2, 256))
    v = net.weight("v", np.ones((256, 5), np.float32))
    assert flow(laid_out(net, net.give(net.op("MatMul", y, v, False, False)), o2 if whole else o0)) == [
        *CONVOLUTION,
        "trans_TransData_4(Conv2D-op0) float16 DefaultFormat",
        "Reshape-op0(trans_TransData_4) float16 DefaultFormat",
        "trans_TransData_5(Reshape-op0) float16 FRACTAL_NZ",
        "trans_Cast_6(v) float16 DefaultFormat",
        "trans_TransData_7(trans_Cast_6) float16 FRACTAL_NZ",
        "MatMul-op0(trans_TransData_5, trans_TransData_7) float16 FRACTAL_NZ",
        "trans_TransData_8(MatMul-op0) float16 DefaultFormat",
        "trans_Cast_9(trans_TransData_8) float32 DefaultFormat",
    ]


def test_a_view_of_the_hosts_values_stays_so(net, o0):
    y = net.op("Reshape", net.input("x", (2, 4)), (8,))
    assert flow(laid_out(net, net.give(y), o0)) == ["Reshape-op0(x)"]
    assert y.layouts == ()


def test_values_in_a_tuple_are_as_on_the_host(net, o0):
    x = net.input("x", IMAGES)
    total = net.op("AddN", net.maker.emit("MakeTuple", conv(net, x, "w", 4), x))
    assert flow(laid_out(net, net.give(total), o0)) == [
        *CONVOLUTION,
        "trans_TransData_4(Conv2D-op0) float16 DefaultFormat",
        "trans_Cast_5(trans_TransData_4) float32 DefaultFormat",
        "AddN-op0(MakeTuple-op0)",
    ]
    assert [getattr(o, "full_name", o) for o in total.operands[0].operands] == ["trans_Cast_5", x]


def pooled(net, x):
    return net.op("MaxPool", x, kernel_size=(2, 2), strides=(2, 2), pad_mode="valid")


def test_kernels_with_formats_beside_the_matrix_unit_take_any_number_type(net, o0):
    """They work in the type in which their operand comes. [spec mindspore 10]"""
    y = pooled(net, conv(net, net.input("x", IMAGES), "w", 4))
    assert flow(laid_out(net, net.give(y), o0)) == [
        *CONVOLUTION,
        "MaxPool-op0(Conv2D-op0) float16 NC1HWC0",
        "trans_TransData_4(MaxPool-op0) float16 DefaultFormat",
        "trans_Cast_5(trans_TransData_4) float32 DefaultFormat",
    ]


def test_formats_of_the_hosts_number_type(net, o0):
    y = pooled(net, net.input("x", IMAGES))
    assert flow(laid_out(net, net.give(y), o0)) == [
        "trans_TransData_0(x) float32 NC1HWC0",
        "MaxPool-op0(trans_TransData_0) float32 NC1HWC0",
        "trans_TransData_1(MaxPool-op0) float32 DefaultFormat",
    ]


def test_half_precision_of_the_script_is_not_cast(net, o0):
    x = net.input("x", (4, 4), "float16")
    assert flow(laid_out(net, net.give(net.op("MatMul", x, x, False, False)), o0)) == [
        "trans_TransData_0(x) float16 FRACTAL_NZ",
        "MatMul-op0(trans_TransData_0, trans_TransData_0) float16 FRACTAL_NZ",
        "trans_TransData_1(MatMul-op0) float16 DefaultFormat",
    ]


def test_a_chip_without_a_number_type_of_the_matrix_unit_computes_in_float32(net, o0):
    x = net.input("x", (4, 4))
    order = laid_out(net, net.give(net.op("MatMul", x, x, False, False)), replace(o0, cube_dtype=None))
    assert flow(order) == [
        "trans_TransData_0(x) float32 FRACTAL_NZ",
        "MatMul-op0(trans_TransData_0, trans_TransData_0) float32 FRACTAL_NZ",
        "trans_TransData_1(MatMul-op0) float32 DefaultFormat",
    ]


def test_two_private_formats_meet_in_the_hosts_format(net, o0):
    x = net.input("x", IMAGES)
    order = laid_out(net, net.give(conv(net, net.op("BatchMatMul", x, x, False, False), "w", 4)), o0)
    assert flow(order)[1:5] == [
        "trans_TransData_1(trans_Cast_0) float16 FRACTAL_NZ",
        "BatchMatMul-op0(trans_TransData_1, trans_TransData_1) float16 FRACTAL_NZ",
        "trans_TransData_2(BatchMatMul-op0) float16 DefaultFormat",
        "trans_TransData_3(trans_TransData_2) float16 NC1HWC0",
    ]
    assert [node.attrs for node in order if node.full_name in ("trans_TransData_2", "trans_TransData_3")] == [
        {"src_format": "FRACTAL_NZ", "dst_format": "DefaultFormat", "groups": 1},
        {"src_format": "DefaultFormat", "dst_format": "NC1HWC0", "groups": 1},
    ]


@pytest.mark.parametrize("rank", [1, 2, 3, 7, 8])
def test_ranks_of_the_format_of_matrices(net, o0, rank):
    """From 2 to 7; elsewhere the matrix unit takes values as they lie, still in its number type."""
    x = net.input("x", (4,) * rank)
    product = Node(op_type="BatchMatMul", operands=[x, x], abstract=x.abstract, full_name="product")
    net.graph.trail.append(product)
    lines = flow(laid_out(net, net.give(product), o0))
    (line,) = [line for line in lines if line.startswith("product(")]
    assert line.endswith("float16 FRACTAL_NZ" if 2 <= rank <= 7 else "float16 DefaultFormat")


def test_which_elementwise_operators_of_whole_graphs_stay_in_a_format(net, o2):
    """Those whose operands have one shape, where those with a private format have the same one."""
    x, one = net.input("x", IMAGES), net.input("one", (1, 4, 8, 8))
    image, product = conv(net, x, "w", 4), net.op("BatchMatMul", x, x, False, False)
    results = [
        net.op("Add", image, x),
        net.op("Add", image, one),
        net.op("Mul", image, image),
        net.op("Softmax", image, (1,)),
        net.op("Sub", image, product),
        net.op("Add", x, x),
    ]
    lines = flow(laid_out(net, net.give(*results), o2))
    assert lines[:5] == CONVOLUTION
    assert lines[5:] == [
        "trans_Cast_4(Conv2D-op0) float32 NC1HWC0",
        "trans_TransData_5(x) float32 NC1HWC0",
        "Add-op0(trans_Cast_4, trans_TransData_5) float32 NC1HWC0",
        "trans_TransData_6(Conv2D-op0) float16 DefaultFormat",
        "trans_Cast_7(trans_TransData_6) float32 DefaultFormat",
        "Add-op1(trans_Cast_7, one)",
        "Mul-op0(trans_Cast_4, trans_Cast_4) float32 NC1HWC0",
        "Softmax-op0(trans_Cast_7)",
        "trans_TransData_8(trans_Cast_0) float16 FRACTAL_NZ",
        "BatchMatMul-op0(trans_TransData_8, trans_TransData_8) float16 FRACTAL_NZ",
        "trans_TransData_9(BatchMatMul-op0) float16 DefaultFormat",
        "trans_Cast_10(trans_TransData_9) float32 DefaultFormat",
        "Sub-op0(trans_Cast_7, trans_Cast_10)",
        "Add-op2(x, x)",
        "trans_TransData_11(Add-op0) float32 DefaultFormat",
        "trans_TransData_12(Mul-op0) float32 DefaultFormat",
    ]
    assert [one.full_name for one in net.graph.output.operands] == [
        *("trans_TransData_11", "Default/Add-op1", "trans_TransData_12", "Default/Softmax-op0"),
        *("Default/Sub-op0", "Default/Add-op2"),
    ]


def test_a_written_weight_has_the_hosts_layout(net, o2):
    x, state = net.input("x", IMAGES), net.weight("s", np.zeros(IMAGES, np.float32))
    order = net.give(net.op("Assign", state, conv(net, x, "w", 4)), x)
    assert flow(laid_out(net, order, o2))[5:] == [
        "trans_TransData_4(Conv2D-op0) float16 DefaultFormat",
        "trans_Cast_5(trans_TransData_4) float32 DefaultFormat",
        "Assign-op0(s, trans_Cast_5)",
    ]


def test_ordering_nodes_pass_layouts_on_and_stay_after_conversions(net, o2):
    x = net.input("x", IMAGES)
    image = conv(net, x, "w", 4)
    tied = Node(op_type="Depend", operands=[image, token := net.state(image)], abstract=image.abstract)
    bundle = net.maker.emit("MakeTuple", image, x)
    waits = Node(op_type="Depend", operands=[bundle, token], abstract=bundle.abstract)
    assert flow(laid_out(net, net.give(tied, net.op("Neg", tied), waits), o2))[5:] == [
        "trans_Cast_4() float32 NC1HWC0",
        "Neg-op0(trans_Cast_4) float32 NC1HWC0",
        "trans_TransData_5(Conv2D-op0) float16 DefaultFormat",
        "trans_Cast_6(trans_TransData_5) float32 DefaultFormat",
        "trans_TransData_7(Neg-op0) float32 DefaultFormat",
    ]
    first, second, third = net.graph.output.operands
    assert (first.op_type, first.operands[0].full_name, first.operands[1]) == ("Depend", "trans_Cast_6", token)
    assert second.full_name == "trans_TransData_7"
    assert (third.op_type, third.operands[1], third.operands[0].op_type) == ("Depend", token, "MakeTuple")
    assert [getattr(o, "full_name", o) for o in third.operands[0].operands] == ["trans_Cast_6", x]


def test_results_of_a_kernel_with_several_are_converted_one_by_one(net, o0):
    """The whole tuple is given out: its first part lies in a format, the others do not."""
    x = net.input("x", IMAGES)
    params = [net.weight(name, np.ones(4, np.float32)) for name in ("gamma", "beta", "mean", "variance")]
    norm = net.op("BatchNorm", x, *params, False, 1e-3, 0.1, 0)
    order = laid_out(net, net.give(norm), o0)
    assert flow(order) == [
        "trans_TransData_0(x) float32 NC1HWC0",
        "BatchNorm-op0(trans_TransData_0, gamma, beta, mean, variance) float32 NC1HWC0",
        "trans_TransData_2(trans_TupleGetItem_1) float32 DefaultFormat",
    ]
    output = net.graph.output
    assert (output.op_type, output.abstract) == ("MakeTuple", norm.abstract)
    assert output.operands[0] is order[-1]
    assert [(o.op_type, o.operands[0], o.operands[1].value) for o in output.operands[1:]] == [
        ("TupleGetItem", norm, at) for at in range(1, len(norm.abstract.items))
    ]


def test_a_part_of_a_nested_tuple_has_its_own_layout(net, o0):
    x = net.input("x", IMAGES)
    image = conv(net, x, "w", 4)
    inner = net.maker.emit("MakeTuple", x, image)
    outer = net.maker.emit("MakeTuple", net.maker.emit("MakeTuple", x, x), inner, x)
    last = net.op("Neg", net.item(net.item(outer, 1), 1))
    assert flow(laid_out(net, net.give(last), o0))[5:] == [
        "trans_TransData_4(TupleGetItem-op1) float16 DefaultFormat",
        "trans_Cast_5(trans_TransData_4) float32 DefaultFormat",
        "Neg-op0(trans_Cast_5)",
    ]
