"""Functions that MindSpore composes of others: values by numpy, operators as MindSpore 2.10 dumps them."""

from collections import Counter

import numpy as np
import pytest

import dumpsim
from dumpsim.frontends import mindspore as ms
from dumpsim.frontends.mindspore import Tensor, context, nn, ops
from tests.inprocess import dump, fresh

X = np.random.default_rng(1).normal(size=(3, 4)).astype(np.float32)
Y = np.random.default_rng(2).normal(size=(3, 4)).astype(np.float32)
W = np.random.default_rng(3).uniform(0.2, 1, (4,)).astype(np.float32)
PICTURE = np.random.default_rng(4).normal(size=(2, 4, 3, 3)).astype(np.float32)


def normalised(x, axes, mean=None, variance=None):
    mean = x.mean(axis=axes, keepdims=True) if mean is None else mean
    variance = x.var(axis=axes, keepdims=True) if variance is None else variance
    return (x - mean) / np.sqrt(variance + 1e-5)


CASES = {
    "multiply": (lambda: ops.multiply(Tensor(X), Tensor(Y)), X * Y),
    "subtract": (lambda: ops.subtract(Tensor(X), Tensor(Y), alpha=2), X - 2 * Y),
    "positive": (lambda: ops.positive(Tensor(X)), X),
    "addcmul": (lambda: ops.addcmul(Tensor(X), Tensor(Y), Tensor(X)), X + Y * X),
    "addcdiv": (lambda: ops.addcdiv(Tensor(X), Tensor(Y), Tensor(W), 0.5), X + 0.5 * Y / W),
    "fmod": (lambda: ops.fmod(Tensor(X), Tensor(Y)), np.fmod(X, Y)),
    "deg2rad": (lambda: ops.deg2rad(Tensor(X)), np.deg2rad(X)),
    "rad2deg": (lambda: ops.rad2deg(Tensor(X)), np.rad2deg(X)),
    "rad2deg of halves": (lambda: ops.rad2deg(Tensor(np.float16([1, 2]))), np.float16([57.3, 114.6])),
    "copysign": (lambda: ops.copysign(Tensor(X), Tensor(Y)), np.copysign(X, Y)),
    "copysign of a number": (lambda: ops.copysign(Tensor(X), -1), -abs(X)),
    "kron": (lambda: ops.kron(Tensor(X), Tensor(W)), np.kron(X, W)),
    "count_nonzero": (
        lambda: ops.count_nonzero(Tensor(np.float32([[0, 1, 2], [0, 0, 3]])), 1, True),
        np.int32([[2], [1]]),
    ),
    "group_norm": (
        lambda: ops.group_norm(Tensor(PICTURE), 2),
        normalised(PICTURE.reshape(2, 2, -1), -1).reshape(PICTURE.shape),
    ),
    "batch_norm": (
        lambda: ops.batch_norm(Tensor(X), Tensor(W), Tensor(W * 2), Tensor(W), Tensor(-W)),
        normalised(X, 0, W, W * 2) * W - W,
    ),
    "CELU": (lambda: nn.CELU(2.0)(Tensor(X)), np.where(X > 0, X, 2 * np.expm1(X / 2))),
    "HShrink": (lambda: nn.HShrink()(Tensor(X)), np.where(abs(X) > 0.5, X, 0)),
    "SoftShrink": (lambda: nn.SoftShrink()(Tensor(X)), np.sign(X) * np.maximum(abs(X) - 0.5, 0)),
} | {
    f"rot90 {k}": (lambda k=k: ops.rot90(Tensor(PICTURE), k, (1, 3)), np.rot90(PICTURE, k, (1, 3)))
    for k in (-1, 0, 1, 2, 7)
}


@pytest.mark.parametrize("name", CASES)
def test_values(name, monkeypatch):
    run, expected = CASES[name]
    with fresh("CPU", monkeypatch, mindspore="2.10"):
        context.set_context(mode=context.PYNATIVE_MODE)
        result = run().asnumpy()
    assert result.dtype == expected.dtype
    np.testing.assert_allclose(result, expected, rtol=2e-3 if result.dtype == np.float16 else 2e-5, atol=1e-5)


class Net(nn.Cell):
    def construct(self, x, y):
        product = ops.multiply(x, y)
        return (
            ops.subtract(x, y, alpha=2), ops.addcmul(x, y, product), ops.addcdiv(x, y, product, 0.5), ops.fmod(x, y),
            ops.deg2rad(x), ops.rad2deg(x), ops.copysign(x, y), ops.rot90(x, 1, (0, 1)), ops.rot90(x, 2, (0, 1)),
            ops.rot90(x, 3, (0, 1)), ops.kron(x, y), ops.count_nonzero(x, (1,)),
        )  # fmt: skip


def test_operators_are_those_of_mindspore(tmp_path, monkeypatch):
    x, y = (Tensor(one[:, :3]) for one in (X, Y))
    run = dump(tmp_path, monkeypatch, "CPU", lambda: Net()(x, y), settings={"mindspore": "2.10"})
    assert run.error is None
    nodes = {(entry.op_type, entry.op_name) for entry in dumpsim.open(run.root)}
    assert Counter(op_type for op_type, _ in nodes) == {
        "Mul": 6, "Sub": 2, "Addcmul": 1, "Addcdiv": 1, "Div": 3, "Trunc": 1, "Abs": 1, "Less": 1, "Neg": 1,
        "Parameter": 2, "Select": 1, "ReverseV2": 4, "Transpose": 2, "Reshape": 3, "NotEqual": 1, "Cast": 2,
        "ReduceSum": 1,
    }  # fmt: skip  # [observed 2.10]
    (value,) = dumpsim.open(run.root).filter(op_type="Addcmul", io="input", slot=3)
    assert value.dtype == "int64"


def test_results_without_tensors_have_no_gradient(monkeypatch):
    with fresh("CPU", monkeypatch, mindspore="2.10"):
        context.set_context(mode=context.PYNATIVE_MODE)
        x = Tensor(np.float32([1, 2]))
        for result in (0, 2.5, "text", None, (3, [4])):
            assert ms.grad(lambda a, result=result: result)(x).asnumpy().tolist() == [0, 0]
        assert ms.grad(lambda a: (a * a, 3, None))(x).asnumpy().tolist() == [2, 4]


def test_refusals(monkeypatch):
    with fresh("CPU", monkeypatch, mindspore="2.10"):
        context.set_context(mode=context.PYNATIVE_MODE)
        with pytest.raises(TypeError, match="must be a Tensor, but got <class 'int'>"):
            ops.positive(3)
        with pytest.raises(TypeError, match="At least one of the types of inputs must be tensor"):
            ops.fmod(3, 2)
        with pytest.raises(TypeError, match="float16"):
            ops.deg2rad(Tensor(np.int32([1])))
        with pytest.raises(ValueError, match="total rotation dims must be 2, but get 3"):
            ops.rot90(Tensor(X), 1, (0, 1, 2))
        with pytest.raises(ValueError, match="rotation dim1 is out of range, dim1=3"):
            ops.rot90(Tensor(X), 1, (0, 3))
        with pytest.raises(RuntimeError, match="rotation dims must be different"):
            ops.rot90(Tensor(X), 1, (0, 2))
