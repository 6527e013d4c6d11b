"""Conversions between kernels that disagree about formats and number types."""

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
