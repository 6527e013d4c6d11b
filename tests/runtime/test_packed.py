"""Tensors of int4 and uint1: packed in device memory, numbers in kernels."""

import ml_dtypes
import numpy as np
import pytest

from dumpsim.core.abstract import TensorType
from dumpsim.core.dtype import dtype, from_numpy
from dumpsim.core.errors import UnsupportedError
from dumpsim.core.settings import RunSettings
from dumpsim.ops.opdef import OpDef
from dumpsim.runtime.session import Session

PAIRS = dtype("int4").numpy
NIBBLES = np.array([[1, -1, -8, 7, 0, 3], [2, -2, 5, -5, 6, -6]], np.int8)


def packed(nibbles):
    """Two numbers a byte, low nibble first, by arithmetic of the test's own."""
    low, high = nibbles[..., ::2].astype(int) & 15, nibbles[..., 1::2].astype(int) & 15
    return (low | high << 4).astype(np.uint8)


def machine(kernel, infer, **settings):
    """A session whose only operator is `Op`."""
    op = OpDef(name="Op", operands=("x", "w"), infer=lambda a, _: infer, kernel=kernel)
    return Session(RunSettings(chip="910B"), environment={}, find=lambda name: op)


def test_int4_weights_lie_packed_and_are_numbers_in_kernels(net, recorder):
    seen = []

    def product(x, w):
        seen.append(w.copy())
        return x @ w

    b = net()
    x, w = b.input("x", (1, 2)), b.weight("w", packed(NIBBLES).view(PAIRS))
    assert w.abstract == TensorType(dtype=dtype("int4"), shape=(2, 3))
    assert w.abstract.nbytes == 6
    node = b.op("Op", x, w, shape=(1, 6), kind="float32")
    b.order.append(node)
    s = machine(product, TensorType(dtype=dtype("float32"), shape=(1, 6)))
    tap = recorder()
    s.add_tap(tap)
    (out,) = s.execute(b.program(node), [np.array([[2, 3]], np.float32)])
    assert out.tolist() == [(2 * NIBBLES[0].astype(int) + 3 * NIBBLES[1]).tolist()]
    assert seen[0].dtype == np.int8
    assert seen[0].tolist() == NIBBLES.tolist()
    event, values = tap.of("before")[0]
    operand = event.operands[1]
    assert (operand.nbytes, operand.shape, operand.dtype.name) == (6, (2, 3), "int4")
    assert values["in", 1].tolist() == packed(NIBBLES).reshape(-1).tolist()


def test_int4_results_are_packed(net):
    b = net()
    x, y = b.input("x", (2, 6)), b.input("y", ())
    node = b.op("Op", x, y, shape=(2, 3), kind="int4")
    b.order.append(node)
    s = machine(lambda x, y: x.astype(np.int8), TensorType(dtype=dtype("int4"), shape=(2, 3)))
    (out,) = s.execute(b.program(node), [NIBBLES.astype(np.float32), np.float32(0)])
    assert out.dtype == PAIRS
    assert out.view(np.uint8).tolist() == packed(NIBBLES).tolist()


@pytest.mark.parametrize("count", [1, 7, 8, 9, 20])
def test_uint1_has_eight_in_a_byte(net, recorder, count):
    bits = (np.arange(count) % 3 == 0).astype(np.uint8)
    b = net()
    x, y = b.input("x", (count,), "uint1"), b.input("y", ())
    node = b.op("Op", x, y, shape=(count,), kind="uint1")
    b.order.append(node)
    s = machine(lambda x, y: 1 - x, TensorType(dtype=dtype("uint1"), shape=(count,)))
    tap = recorder()
    s.add_tap(tap)
    (out,) = s.execute(b.program(node), [bits, np.float32(0)])
    assert out.tolist() == (1 - bits).tolist()
    event, values = tap.of("after")[0]
    assert np.unpackbits(values["in", 0], count=count).tolist() == bits.tolist()
    assert np.unpackbits(values["out", 0], count=count).tolist() == (1 - bits).tolist()
    (operand, _), (result,) = event.operands, event.outputs
    assert operand.nbytes == result.nbytes == -(-count // 8)
    assert result.shape == (count,)


def test_what_is_not_emulated_is_named(net):
    b = net()
    x, y = b.input("x", (2,), "hifloat8"), b.input("y", ())
    node = b.op("Op", x, y, shape=(2,), kind="float32")
    b.order.append(node)
    s = machine(lambda x, y: x, TensorType(dtype=dtype("float32"), shape=(2,)))
    with pytest.raises(UnsupportedError, match="hifloat8 in DefaultFormat are not emulated"):
        s.compile(b.program(node))


def test_a_pair_is_not_mistaken_for_a_number():
    assert from_numpy(PAIRS) is dtype("int4")
    assert PAIRS.itemsize == dtype("int4").itemsize == 1
    with pytest.raises(TypeError):
        np.zeros(2, PAIRS) + 1
    assert from_numpy(np.dtype(ml_dtypes.bfloat16)) is dtype("bfloat16")
