"""Sides of a branch that rounds of an unrolled loop record again: one function if they compute the same."""

import numpy as np
import pytest

from dumpsim.core.abstract import TensorType
from dumpsim.core.dtype import dtype
from dumpsim.frontends.mindspore import Tensor, ops
from dumpsim.frontends.mindspore._capture.control import rewritten
from dumpsim.frontends.mindspore._capture.trace import Tracer
from dumpsim.frontends.mindspore._current import tracing
from dumpsim.graph.graph import control_of

SQUARE = TensorType(dtype=dtype("float32"), shape=(2, 2))


def rounds(side):
    """A loop of three rounds with a branch, one side of which is given the argument, the sum and the round."""

    def run(x):
        y = x
        for k in range(3):
            if y.sum() > 0:
                t = side(x, y, k)
            else:
                t = ops.exp(x)
            y = y + t
        return y

    return run


def equal(x, y, k):
    return ops.softmax(x, 1) * 2.0 - x


def operators(x, y, k):
    return ops.exp(x) if k > 0 else ops.tanh(x)


def attributes(x, y, k):
    return ops.L2Normalize(k % 2)(x)


def numbers(x, y, k):
    return x * (k + 1.0)


def arrays(x, y, k):
    return x + Tensor(np.full((2, 2), k % 2, np.float32))


def orders(x, y, k):
    a, b = ops.exp(x), ops.tanh(x)
    return a - b if k > 0 else b - a


def values(x, y, k):
    return ops.exp(y)


def equal_loops(x, y, k):
    t = ops.exp(x)
    while t.sum() > 1:
        t = t * 0.5
    return t


def loops(x, y, k):
    t = ops.exp(x)
    while t.sum() > 1:
        t = t * (0.5 if k > 0 else 0.25)
    return t


@pytest.mark.parametrize(
    ("side", "count"),
    [
        (equal, 1),
        (operators, 2),
        (attributes, 2),
        (numbers, 3),
        (arrays, 2),
        (orders, 2),
        (values, 3),  # a side is cloned with the round whose values it uses
        (equal_loops, 1),
        (loops, 2),
    ],
)
def test_sides_of_equal_rounds_are_one_function(side, count):
    tracer = Tracer("net")
    with tracing(tracer):
        rewritten(rounds(side)).function(tracer.argument("x", SQUARE))
    branches = [control_of(node).origins for node in tracer.graph.trail if node.op_type == "If"]
    assert len(branches) == 3
    then, other = ({origin.name for origin in origins} for origins in zip(*branches, strict=True))
    assert (len(then), len(other)) == (count, 1)
    assert not then & other
