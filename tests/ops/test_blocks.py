"""Elementwise kernels that compute large arrays block by block."""

import numpy as np
import pytest

from dumpsim.ops.activation import OPS
from dumpsim.ops.blocks import in_blocks

NAMES = ["GeLU", "GeLUGrad", "FastGeLU", "FastGeLUGrad", "HSwish", "HSwishGrad", "ReLU6Grad", "SoftplusGrad", "Mish"]


@pytest.mark.parametrize("name", NAMES)
def test_a_large_array_has_the_bits_of_its_pieces(name):
    kernel = next(one.kernel for one in OPS if one.name == name)
    count = len(next(one.operands for one in OPS if one.name == name))
    rng = np.random.default_rng(5)
    operands = [rng.normal(scale=3, size=(7, 9001)).astype(np.float32) for _ in range(count)]
    pieces = [kernel(*(one[row] for one in operands)) for row in range(7)]
    whole = kernel(*operands)
    assert whole.dtype == np.float32
    assert whole.shape == (7, 9001)
    assert np.array_equal(whole, np.stack(pieces))


def test_operands_of_other_shapes_and_orders_are_taken_whole():
    sizes = []

    @in_blocks
    def kernel(x, y, *, scale):
        sizes.append(x.size)
        return (x + y) * scale

    x = np.arange(60000.0).reshape(200, 300)
    assert np.array_equal(kernel(x.T, x.T, scale=2), 4 * x.T)
    assert np.array_equal(kernel(x, x[:1], scale=2), 2 * (x + x[:1]))
    assert sizes == [60000, 60000]
    assert np.array_equal(kernel(x, np.float64(3), scale=2), 2 * (x + 3))
    assert max(sizes[2:]) < 60000
    assert sum(sizes[2:]) == 60000
    assert np.array_equal(kernel(np.ones(3), 1.0, scale=2), np.full(3, 4.0))
