"""Nested values of a script: which tensors they hold, and in what order they are put back."""

from collections import namedtuple

import numpy as np
import pytest

import dumpsim.frontends.mindspore as ms
from dumpsim.core.errors import CaptureError
from dumpsim.frontends.mindspore import Parameter, Tensor, nn, ops
from dumpsim.frontends.mindspore._capture import values, variable

Pair = namedtuple("Pair", "left right")
NESTED = {
    "tensor": lambda t: t(),
    "tuple": lambda t: (t(), 1, (t(), "a")),
    "list": lambda t: [t(), [None, t()], 2.5],
    "named": lambda t: Pair(t(), (3, t())),
    "mapping": lambda t: {"b": t(), "a": [t(), {}]},
    "none": lambda t: (1, "a", None, {}),
}


def same(one, other):
    """Whether two nested values are equal, tensors by their numbers."""
    if type(one) is not type(other):
        return False
    if isinstance(one, Tensor):
        return one.asnumpy().tolist() == other.asnumpy().tolist()
    if isinstance(one, dict):
        return list(one) == list(other) and all(same(one[name], other[name]) for name in one)
    if isinstance(one, (tuple, list)):
        return len(one) == len(other) and all(map(same, one, other))
    return one == other


@pytest.mark.parametrize("form", NESTED)
@pytest.mark.parametrize("parameters", [True, False])
def test_other_tensors_take_the_places_of_the_first(form, parameters):
    count = iter(range(10))
    weights = iter("abcdef")

    def tensor():
        number = next(count)
        return Parameter(Tensor([number]), name=next(weights)) if number % 2 else Tensor([number])

    value = NESTED[form](tensor)
    found = list(values.tensors_in(value, parameters=parameters))
    assert all(isinstance(one, Tensor) for one in found)
    assert parameters or not any(isinstance(one, Parameter) for one in found)
    again = values.rebuild(value, iter(found), parameters=parameters)
    assert same(again, value)
    negative = values.rebuild(value, (Tensor(-one.asnumpy() - 1) for one in found), parameters=parameters)
    assert [int(one) for one in values.tensors_in(negative, parameters=parameters)] == [-int(one) - 1 for one in found]
    assert len(list(values.tensors_in(negative))) == len(list(values.tensors_in(value)))


def test_constants_are_the_same_if_their_types_are_too():
    array = np.ones(2)
    for one, other, equal in [
        (1, 1, True), (1, 2, False), (1, 1.0, False), (1, True, False), ("a", "a", True), (None, None, True),
        ((1, 2), (1, 2), True), ((1, 2), [1, 2], False), ((1, 2), (1, 2, 3), False), ((1, (2,)), (1, (3,)), False),
        (array, array, False), (array, 1, False), (1, array, False), (Tensor(1), 1, False),
        (Tensor(1), Tensor(1), False),
    ]:  # fmt: skip
        assert variable.same(one, other) is equal, (one, other)


def test_what_a_branch_may_change_are_numbers_and_tensors():
    tensor = Tensor([1.0])
    found = variable.tensors_of((True, 2, (0.5, [tensor]), None, "mean"))
    assert [(one.dtype, one.asnumpy().tolist()) for one in found] == [
        (ms.bool_, True),
        (ms.int64, 2),
        (ms.float32, 0.5),
        (ms.float32, [1.0]),
    ]
    assert found[-1] is tensor
    with pytest.raises(CaptureError, match="type set"):
        variable.tensors_of({1})


class Taken(nn.Cell):
    """Rows of a tensor, whose number is open."""

    def construct(self, x):
        total = x.sum()
        for row in ops.unstack(x):
            total = total + row.sum()
        return total


def test_a_network_that_needs_the_extents_has_a_graph_for_each_shape(graph_mode, capsys):
    net = Taken()
    net.set_inputs(Tensor(shape=(None, 2), dtype=ms.float32))
    for rows in (2, 3, 2):
        value = np.arange(2.0 * rows, dtype=np.float32).reshape(rows, 2)
        assert float(net(Tensor(value))) == 2 * value.sum()
    error = capsys.readouterr().err
    assert error.count("Taken: one graph for the open shapes of set_inputs is not possible") == 1
    assert len(list(graph_mode.executors())) == 2


def test_an_open_extent_is_no_result(graph_mode):
    class Net(nn.Cell):
        def construct(self, x):
            return x, (1, x.shape[0])

    net = Net()
    net.set_inputs(Tensor(shape=(None, 2), dtype=ms.float32))
    _, (one, rows) = net(Tensor(np.ones((3, 2), np.float32)))
    assert (one, rows) == (1, 3)


REFLECTED = {
    "Add": lambda a, b: a + b, "Sub": lambda a, b: a - b, "Mul": lambda a, b: a * b, "RealDiv": lambda a, b: a / b,
    "FloorDiv": lambda a, b: a // b, "FloorMod": lambda a, b: a % b, "Pow": lambda a, b: a**b,
    "BitwiseAnd": lambda a, b: a & b, "BitwiseOr": lambda a, b: a | b, "BitwiseXor": lambda a, b: a ^ b,
}  # fmt: skip


@pytest.mark.parametrize("operator", REFLECTED)
@pytest.mark.parametrize("first", [True, False])
def test_operands_are_in_the_order_of_the_script(graph_mode, operator, first):
    number = 3 if operator.startswith("Bitwise") else 3.0

    class Net(nn.Cell):
        def construct(self, x):
            return REFLECTED[operator](x, number) if first else REFLECTED[operator](number, x)

    value = np.array([1, 2, 5], np.int32 if operator.startswith("Bitwise") else np.float32)
    found = Net()(Tensor(value)).asnumpy()
    wanted = REFLECTED[operator](value, number) if first else REFLECTED[operator](number, value)
    np.testing.assert_allclose(found, wanted, 1e-6)
    (graph,) = (g for e in graph_mode.executors() for g in e.program.kernel_graphs)
    *_, node = (node for node in graph.order if node.op_type != "MakeTuple")
    constants = [not hasattr(one, "op_type") and hasattr(one, "value") for one in node.operands[:2]]
    # [2.10 observed] Muls and Divs take the tensor first; 3 / x is Muls(Reciprocal(x), 3)
    assert constants == ([False, True] if first or operator in ("Mul", "RealDiv") else [True, False])
