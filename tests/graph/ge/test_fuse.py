"""Fused operators, their names, and conditions that prevent fusion."""

import numpy as np
import pytest

from dumpsim.graph.ge.fuse import fuse, fuse_in_order
from dumpsim.graph.graph import Node
from dumpsim.ops.table import find

CONV = {"out_channel": 4, "kernel_size": (3, 3), "pad_mode": "same"}
NAMES = ("gamma", "beta", "mean", "variance")


def kinds(order):
    return [(node.op_type, node.full_name) for node in order]


def conv(net, x, name="w", channels=4):
    w = net.weight(name, np.ones((4, channels, 3, 3), np.float32))
    return net.op("Conv2D", x, w, **CONV)


def test_convolution_bias_and_activation_are_one_kernel_named_by_all(net):
    x = net.input("x", (2, 3, 8, 8))
    y = net.op("ReLU", net.op("BiasAdd", conv(net, x, channels=3), net.weight("b", np.ones(4, np.float32))))
    net.give(y)
    (fused,) = fuse(net.graph, find)
    assert kinds([fused]) == [("Conv2D", "Default/Conv2D-op0Default/BiasAdd-op0Default/ReLU-op0")]
    assert [member.op_type for member in fused.members] == ["Conv2D", "BiasAdd", "ReLU"]
    assert net.graph.output is fused
    assert [o.name for o in fused.operands if not isinstance(o, Node) and hasattr(o, "name")] == ["x", "w", "b"]


def test_product_bias_and_activation_take_the_librarys_type(net):
    x, w = net.input("x", (2, 3)), net.weight("w", np.ones((3, 4), np.float32))
    y = net.op("BiasAdd", net.op("MatMul", x, w, False, False), net.weight("b", np.ones(4, np.float32)))
    net.give(net.op("ReLU", y), net.op("MatMul", x, w, False, False))
    assert kinds(fuse(net.graph, find)) == [
        ("MatMulV2", "Default/MatMul-op0Default/BiasAdd-op0Default/ReLU-op0"),
        ("MatMulV2", "Default/MatMul-op1"),
    ]


def test_an_intermediate_result_with_other_readers_prevents_fusion(net):
    x = net.input("x", (2, 3, 8, 8))
    middle = conv(net, x, channels=3)
    net.give(net.op("ReLU", middle), middle)
    assert [kind for kind, _ in kinds(fuse(net.graph, find))] == ["Conv2D", "Relu"]


def test_a_mark_for_dumping_is_lost_with_its_operator(net):
    x = net.input("x", (2, 3, 8, 8))
    middle = conv(net, x, channels=3)
    middle.dump_mark = "true"
    net.give(net.op("ReLU", middle))
    (fused,) = fuse(net.graph, find)
    assert fused.dump_mark is None


def test_chains_of_elementwise_operators_end_where_shapes_change(net):
    x, y = net.input("x", (2, 3)), net.input("y", (3,))
    total = net.op("Mul", net.op("Add", net.op("Neg", y), y), x)  # grows to (2, 3) here
    net.give(net.op("Exp", net.op("Abs", total)))
    assert kinds(fuse(net.graph, find)) == [
        ("Neg", "Default/Neg-op0Default/Add-op0"),
        ("Mul", "Default/Mul-op0Default/Abs-op0Default/Exp-op0"),
    ]


def test_an_effect_between_two_operators_keeps_them_apart(net):
    """The second one reads what was written because the first one had run: as one kernel it would wait for itself."""
    x = net.input("x", (2,))
    w = net.weight("w", np.zeros(2, np.float32))
    first = net.op("Neg", x)
    assign = net.op("Assign", w, x)
    assign.operands.append(net.state(first))
    load = Node(op_type="Load", operands=[w, net.state(assign)], abstract=x.abstract)
    net.give(net.op("Add", first, load))
    assert [kind for kind, _ in kinds(fuse(net.graph, find))] == ["Neg", "Assign", "Add"]


def batch_norm(net, x, training):
    params = [net.weight(name, np.ones(4, np.float32)) for name in NAMES]
    return net.op("BatchNorm", x, *params, training, 1e-3, 0.1, 0)


def test_normalisation_after_a_convolution_folds_in_inference_only(net):
    x = net.input("x", (2, 3, 8, 8))
    y = net.item(batch_norm(net, conv(net, x, channels=3), False), 0)
    net.give(net.op("ReLU", y))
    (fused,) = fuse(net.graph, find)
    assert fused.full_name == "Default/Conv2D-op0Default/BatchNorm-op0Default/ReLU-op0"


def test_normalisation_in_training_is_two_kernels_each_way(net):
    x, dy = net.input("x", (2, 4, 8, 8)), net.input("dy", (2, 4, 8, 8))
    norm = batch_norm(net, x, True)
    gamma = norm.operands[1]
    slopes = net.op("BatchNormGrad", dy, x, gamma, *(net.item(norm, at) for at in (3, 4, 2)), True, 1e-3, 0)
    net.give(net.item(norm, 0), *(net.item(slopes, at) for at in range(3)))
    order = fuse(net.graph, find)
    assert sorted(kinds(order)) == [
        ("BNTrainingReduce", "Default/BatchNorm-op0_Reduce"),
        ("BNTrainingReduceGrad", "Default/BatchNormGrad-op0_Reduce"),
        ("BNTrainingUpdate", "Default/BatchNorm-op0_Update"),
        ("BNTrainingUpdateGrad", "Default/BatchNormGrad-op0_Update"),
    ]
    place = {node.op_type: at for at, node in enumerate(order)}
    assert place["BNTrainingReduce"] < place["BNTrainingUpdate"] < place["BNTrainingUpdateGrad"]
    assert place["BNTrainingUpdateGrad"] < place["BNTrainingReduceGrad"]


def evaluate(value, feeds):
    """The values of a graph, by its kernels alone."""
    if not isinstance(value, Node):
        return feeds[value.name] if hasattr(value, "name") else value.value
    if value.op_type == "MakeTuple":
        return tuple(evaluate(o, feeds) for o in value.operands)
    if value.op_type == "TupleGetItem":
        return evaluate(value.operands[0], feeds)[value.operands[1].value]
    if value.op_type == "Depend":
        return evaluate(value.operands[0], feeds)
    key = id(value)
    if key not in feeds:
        definition = value.definition or find(value.op_type)
        feeds[key] = definition.kernel(*(evaluate(o, feeds) for o in value.operands), **definition.attrs, **value.attrs)
    return feeds[key]


@pytest.mark.parametrize("training", [True, False])
def test_the_parts_compute_what_the_whole_does(net, training):
    rng = np.random.default_rng(5)
    x, dy = net.input("x", (2, 4, 8, 8)), net.input("dy", (2, 4, 8, 8))
    norm = batch_norm(net, x, training)
    gamma = norm.operands[1]
    slopes = net.op("BatchNormGrad", dy, x, gamma, *(net.item(norm, at) for at in (3, 4, 2)), training, 1e-3, 0)
    net.give(*(net.item(norm, at) for at in (0, 3, 4)), *(net.item(slopes, at) for at in range(3)))
    feeds = {"x": rng.normal(2, 3, size=(2, 4, 8, 8)), "dy": rng.normal(size=(2, 4, 8, 8))}
    feeds |= {name: rng.uniform(0.5, 2, 4) for name in NAMES}
    before = {name: np.array(value) for name, value in feeds.items()}
    whole = evaluate(net.graph.output, feeds)
    moved = {name: feeds[name] for name in NAMES}
    fuse(net.graph, find)
    feeds = {name: np.array(value) for name, value in before.items()}
    for one, other in zip(whole, evaluate(net.graph.output, feeds), strict=True):
        np.testing.assert_allclose(other, one, rtol=1e-9, atol=1e-9)
    for name in NAMES:
        np.testing.assert_allclose(feeds[name], moved[name])


@pytest.mark.parametrize("size", [6, 128, 200])
def test_dropout_is_a_mask_of_bits_and_two_uses_of_it(net, size):
    x, dy = net.input("x", (2, size)), net.input("dy", (2, size))
    dropped = net.op("Dropout", x, 0.75, 3, 4)
    slopes = net.op("DropoutGrad", dy, net.item(dropped, 1), keep_prob=0.75)
    net.give(net.item(dropped, 0), slopes)
    values = {"x": np.ones((2, size), np.float32), "dy": np.full((2, size), 3, np.float32)}
    y, mask = find("Dropout").kernel(values["x"], 0.75, 3, 4, counter=0)
    order = fuse(net.graph, find)
    assert kinds(order)[0] == ("DropOutGenMask", "Default/Dropout-op0_GenMask")
    assert sorted(kinds(order)[1:]) == [
        ("DropOutDoMask", "Default/Dropout-op0_DoMask"),
        ("DropOutDoMask", "Default/DropoutGrad-op0_DoMask"),
    ]
    order[0].attrs["counter"] = 0  # the runtime counts
    got = evaluate(net.graph.output, dict(values))
    np.testing.assert_array_equal(got[0], y)
    np.testing.assert_array_equal(got[1], mask * 3 / np.float32(0.75))
    assert order[0].abstract.shape == (-(-2 * size // 128) * 16,)  # blocks of 128 bits


def test_a_mask_that_somebody_reads_keeps_dropout_whole(net):
    dropped = net.op("Dropout", net.input("x", (2, 3)), 0.5, 0, 0)
    net.give(net.item(dropped, 0), net.item(dropped, 1))
    assert kinds(fuse(net.graph, find)) == [("Dropout", "Default/Dropout-op0")]


def test_a_chain_whose_result_another_chain_takes_is_one_kernel_too(net):
    x, w = net.input("x", (2, 4)), net.weight("w", np.ones((4, 4), np.float32))
    y = net.op("Tanh", net.op("Mul", x, x))
    net.give(net.op("ReLU", net.op("MatMul", y, w, False, False)))
    assert [kind for kind, _ in kinds(fuse(net.graph, find))] == ["Mul", "MatMulV2"]


def test_kernels_with_an_order_keep_it(net):
    """A chain runs where its last member did."""
    x = net.input("x", (2, 4))
    first = net.op("Tanh", net.op("Mul", x, x))
    other = net.op("ReduceSum", x, ())
    net.give(first, other)
    mul, tanh = first.operands[0], first
    order = (mul, other, tanh)
    for node in order:
        node.definition = find(node.op_type)
    joined = fuse_in_order(net.graph, order, find)
    assert [node.op_type for node in joined] == ["ReduceSum", "Mul"]
    assert [member.op_type for member in joined[1].members] == ["Mul", "Tanh"]
    assert net.graph.output.operands[0] is joined[1]
