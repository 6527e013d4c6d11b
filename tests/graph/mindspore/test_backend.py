"""Changes of the backend for kernels: casts of indexes and numbers, tuples that become tensors."""

import numpy as np
import pytest

from dumpsim.core.abstract import TensorType
from dumpsim.graph.graph import Constant, Node, text_of
from dumpsim.graph.mindspore.backend import adapt_to_kernels


def remade(node):
    return text_of(node).is_remade


@pytest.mark.parametrize("kind", ["int64", "int32"])
def test_gather_takes_indices_of_32_bits(net, kind):
    x, index = net.input("x", (4, 3)), net.input("i", (2,), kind)
    node = net.op("Gather", x, index, 0, 0)
    net.give(node)
    adapt_to_kernels(net.graph)
    taken = node.operands[1]
    if kind == "int32":
        assert taken is index
        assert not remade(node)
        return
    assert isinstance(taken, Node)
    assert taken.op_type == "Cast"
    assert taken.operands[0] is index
    assert taken.abstract.dtype.name == "int32"
    assert taken.abstract.shape == (2,)
    assert not remade(node)  # [observed 2.10: corpus h_dynamic]
    assert text_of(taken).is_backend
    assert text_of(taken).attrs["is_backend_cast"] is True


def test_only_indices_of_gather_are_cast(net):
    x, index = net.input("x", (4, 3), "int64"), net.input("i", (2, 1), "int64")
    node = net.op("GatherNd", x, index)
    gather = net.op("Gather", x, net.input("j", (2,), "int32"), 0, 0)
    net.give(node, gather)
    adapt_to_kernels(net.graph)
    assert node.operands == [x, index]
    assert gather.operands[0] is x
    assert not remade(node)
    assert not remade(gather)


def test_the_number_of_topk_is_cast_to_a_tensor_of_32_bits(net):
    node = net.op("TopK", net.input("x", (2, 5)), 3)
    net.give(net.item(node, 0), net.item(node, 1))
    adapt_to_kernels(net.graph)
    cast = node.operands[1]
    assert cast.op_type == "Cast"
    assert cast.abstract.dtype.name == "int32"
    (number,) = (o for o in cast.operands if isinstance(o, Constant) and isinstance(o.abstract, TensorType))
    assert number.value.dtype == np.int64
    assert number.value == 3
    assert remade(node)
    assert text_of(node).node_attrs["has_dynamic_value"] is True


@pytest.mark.parametrize("op", ["Conv2DBackpropInput", "Conv2DBackpropFilter"])
def test_sizes_of_convolution_gradients_are_constant_tensors(net, op):
    x, w, dout = net.input("x", (1, 2, 4, 4)), net.input("w", (3, 2, 3, 3)), net.input("d", (1, 3, 4, 4))
    other, size = (w, (1, 2, 4, 4)) if op.endswith("Input") else (x, (3, 2, 3, 3))
    node = net.op(op, dout, other, size, out_channel=3, kernel_size=(3, 3), pad_mode="same")
    net.give(node)
    adapt_to_kernels(net.graph)
    sizes = node.operands[2]
    assert isinstance(sizes, Constant)
    assert sizes.value.dtype == np.int64
    assert sizes.value.tolist() == list(size)
    assert remade(node)
    before = list(node.operands)
    adapt_to_kernels(net.graph)  # once is enough
    assert node.operands == before


def test_only_nodes_that_take_a_tuple_of_tensors_are_recreated(net):
    x, y = net.input("x", (2, 3)), net.input("y", (2, 3))
    parts = net.op("MakeTuple", x, y)
    concat, total = net.op("Concat", parts, 0), net.op("Add", x, y)
    net.give(concat, total)
    adapt_to_kernels(net.graph)
    assert remade(concat)
    assert text_of(concat).candidate == "code"
    assert not remade(total)
