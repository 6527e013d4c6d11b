"""Augmented assignment to tensors: values and gradients of ``x += y`` and the like, in both modes."""

import operator

import numpy as np
import pytest

import dumpsim.frontends.mindspore as ms
from dumpsim.frontends.mindspore import Tensor, nn

X = np.array([[1.5, -2.0, 7.0], [0.25, 3.0, -4.5]])
Y = np.array([[2.0, 4.0, -3.0], [0.5, 1.0, 2.0]])
WEIGHTS = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])

# slopes of the result in x and in y
SLOPES = {
    "iadd": (lambda x, y: 1, lambda x, y: 1),
    "isub": (lambda x, y: 1, lambda x, y: -1),
    "imul": (lambda x, y: y, lambda x, y: x),
    "itruediv": (lambda x, y: 1 / y, lambda x, y: -x / y**2),
    "ifloordiv": (lambda x, y: 0, lambda x, y: 0),
    "imod": (lambda x, y: 1, lambda x, y: -np.floor(x / y)),
}


class Net(nn.Cell):
    """The result is weighted, to detect a gradient that is not multiplied with the incoming one."""

    def __init__(self, function, other=None):
        super().__init__()
        self.function, self.other = function, other
        self.weights = Tensor(WEIGHTS, ms.float32)

    def construct(self, x, y=None):
        x = x * 1
        x = self.function(x, self.other if y is None else y)
        return (x * self.weights).sum()


def iadd(x, y):
    x += y
    return x


def isub(x, y):
    x -= y
    return x


def imul(x, y):
    x *= y
    return x


def itruediv(x, y):
    x /= y
    return x


def ifloordiv(x, y):
    x //= y
    return x


def imod(x, y):
    x %= y
    return x


FUNCTIONS = {function.__name__: function for function in (iadd, isub, imul, itruediv, ifloordiv, imod)}
MODES = pytest.mark.parametrize("mode", [ms.GRAPH_MODE, ms.PYNATIVE_MODE], ids=["graph", "pynative"])


@MODES
@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("other", ["same", "row", "number"])
def test_values_and_gradients(mode, name, other):
    ms.set_context(mode=mode)
    y = {"same": Y, "row": Y[0], "number": 4.0}[other]
    net = Net(FUNCTIONS[name], 4.0 if other == "number" else None)
    given = [Tensor(X, ms.float32)] + ([] if other == "number" else [Tensor(y, ms.float32)])
    value, found = ms.value_and_grad(net, tuple(range(len(given))))(*given)
    plain = getattr(operator, name)(X.copy(), y)
    np.testing.assert_allclose(value.asnumpy(), (plain * WEIGHTS).sum(), rtol=1e-6)
    wanted = [np.broadcast_to(slope(X, y), X.shape) * WEIGHTS for slope in SLOPES[name]]
    if other == "row":
        wanted[1] = wanted[1].sum(0)
    for one, expected in zip(found if isinstance(found, tuple) else (found,), wanted, strict=False):
        np.testing.assert_allclose(one.asnumpy(), expected, rtol=1e-6)
