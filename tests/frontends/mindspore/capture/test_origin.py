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


def equal(x):
    y = x
    for _ in range(3):
        if y.sum() > 0:
            t = ops.softmax(x, 1) * 2.0 - x
        else:
            t = ops.exp(x)
        y = y + t
    return y


def operators(x):
    y = x
    for k in range(3):
        if y.sum() > 0:
            t = ops.exp(x) if k > 0 else ops.tanh(x)
        else:
            t = ops.exp(x)
        y = y + t
    return y


def attributes(x):
    y = x
    for k in range(3):
        if y.sum() > 0:
            t = ops.L2Normalize(k % 2)(x)
        else:
            t = ops.exp(x)
        y = y + t
    return y


def numbers(x):
    y = x
    for k in range(3):
        if y.sum() > 0:
            t = x * (k + 1.0)
        else:
            t = ops.exp(x)
        y = y + t
    return y


def arrays(x):
    y = x
    for k in range(3):
        if y.sum() > 0:
            t = x + Tensor(np.full((2, 2), k % 2, np.float32))
        else:
            t = ops.exp(x)
        y = y + t
    return y


def orders(x):
    y = x
    for k in range(3):
        if y.sum() > 0:
            a, b = ops.exp(x), ops.tanh(x)
            t = a - b if k > 0 else b - a
        else:
            t = ops.exp(x)
        y = y + t
    return y


def values(x):
    y = x
    for _ in range(3):
        if y.sum() > 0:
            t = ops.exp(y)
        else:
            t = ops.exp(x)
        y = y + t
    return y


def equal_loops(x):
    y = x
    for _ in range(3):
        if y.sum() > 0:
            t = ops.exp(x)
            while t.sum() > 1:
                t = t * 0.5
        else:
            t = ops.exp(x)
        y = y + t
    return y


def loops(x):
    y = x
    for k in range(3):
        if y.sum() > 0:
            t = ops.exp(x)
            while t.sum() > 1:
                t = t * (0.5 if k > 0 else 0.25)
        else:
            t = ops.exp(x)
        y = y + t
    return y


@pytest.mark.parametrize(
    ("function", "count"),
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
def test_sides_of_equal_rounds_are_one_function(function, count):
    tracer = Tracer("net")
    with tracing(tracer):
        rewritten(function).function(tracer.argument("x", SQUARE))
    branches = [control_of(node).origins for node in tracer.graph.trail if node.op_type == "If"]
    assert len(branches) == 3
    then, other = ({origin.name for origin in origins} for origins in zip(*branches, strict=True))
    assert (len(then), len(other)) == (count, 1)
    assert not then & other
