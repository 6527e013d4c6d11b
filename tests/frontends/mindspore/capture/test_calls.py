"""The calls of a function that a capture records, for the order in which the vendor inlines them."""

import pytest

from dumpsim.core.abstract import TensorType
from dumpsim.core.dtype import dtype
from dumpsim.frontends.mindspore import ops
from dumpsim.frontends.mindspore._capture.control import rewritten
from dumpsim.frontends.mindspore._capture.trace import Tracer
from dumpsim.frontends.mindspore._current import tracing

VECTOR = TensorType(dtype=dtype("float32"), shape=(2,))


def check(value):
    assert value is not None


def checked(x):
    check(x)
    return ops.relu(x)


def with_unused_tensor(x):
    ops.exp(x)
    return ops.relu(x)


def plain(x):
    """A docstring is not a call."""
    return ops.relu(x)


@pytest.fixture
def trace():
    """A function that runs another one on an argument of a graph and returns the tracer."""

    def run(function):
        tracer = Tracer("net")
        with tracing(tracer):
            rewritten(function).function(tracer.argument("x", VECTOR))
        return tracer

    return run


@pytest.mark.parametrize(("function", "is_held"), [(checked, True), (with_unused_tensor, False), (plain, False)])
def test_a_result_follows_a_call_without_a_tensor(trace, function, is_held):
    assert trace(function).calls.root.is_held == is_held


def doubled(x):
    return ops.tanh(x) * x


def test_a_python_operator_is_a_call_of_a_helper_under_the_default_scope():
    tracer = Tracer("net")
    with tracing(tracer):
        x = tracer.argument("x", VECTOR)
        tracer.mention(doubled, tracer.frame.scope)
        with tracer.entering(scope="Default/cell"), tracer.entering_function(doubled, name="doubled"):
            rewritten(doubled).function(x)
            ops.exp(x)
    scopes = {node.op_type: node.scope for node in tracer.graph.trail}
    assert scopes["Mul"] == "Default"
    assert scopes["Exp"] == "Default/cell"


@pytest.mark.parametrize("function", [ops.sum, lambda x: ops.transpose(x, (0,))])
def test_a_function_of_the_library_keeps_the_scope_of_its_first_caller(function):
    tracer = Tracer("net")
    with tracing(tracer):
        x = tracer.argument("x", VECTOR)
        for scope in ("Default/one", "Default/two"):
            with tracer.entering(scope=scope):
                function(x)
    assert [node.scope for node in tracer.graph.trail] == ["Default/one", "Default/one"]
