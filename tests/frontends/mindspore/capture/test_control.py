"""Control flow on tensors has the results of the same code on numpy arrays."""

import numpy as np
import pytest

from dumpsim.core.errors import CaptureError, ScriptTypeError
from dumpsim.frontends.mindspore import nn, ops
from dumpsim.frontends.mindspore.common import dtype as mstype
from dumpsim.frontends.mindspore.common.parameter import Parameter
from dumpsim.frontends.mindspore.common.tensor import Tensor


class Branches(nn.Cell):
    def construct(self, x, n):
        y = x * 2.0
        if n > 0:
            if x.sum() > 0:
                y = y + 1.0
            else:
                x = x - 1.0
        elif n < -3:
            y = x
        return x + y


class EarlyReturn(nn.Cell):
    def construct(self, x, n):
        if n > 2:
            return x * 2.0
        x = x + 1.0
        if n == 2:
            return x
        return x - 5.0


class BothReturn(nn.Cell):
    """Each branch changes a variable that the other one reads."""

    def construct(self, x, n):
        y = x + 1.0
        if n > 0:
            x = x * 2.0
            return x - y
        else:
            y = y * 3.0
            return x - y


class Loops(nn.Cell):
    def construct(self, x, n):
        i = 0
        y = x
        while i < n:
            j = 0
            while j < i:
                y = y + x
                j = j + 1
            x, y = y, x
            i = i + 1
        return x - y * 2.0


class LoopWithBranch(nn.Cell):
    def construct(self, x, n):
        i = 0
        while i < n:
            if x.sum() > 4.0:
                x = x - 3.0
            else:
                x = x * 2.0
            i = i + 1
        return x


class Static(nn.Cell):
    def construct(self, x, n):
        total = 0
        for i in range(5):
            if i == 1:
                continue
            if i == 4:
                break
            total = total + i
        if total == 5 and x.ndim == 2:
            x = x * 3.0
        return x + n


class Choices(nn.Cell):
    def construct(self, x, n):
        a = x if n > 1 else x * 10.0
        b = a + 1.0 if n > 1 and n < 4 else a
        return b if not n == 0 else -b  # noqa: SIM201


CELLS = [Branches, EarlyReturn, BothReturn, Loops, LoopWithBranch, Static, Choices]
X = np.array([[1.0, -2.0, 0.5], [0.25, 3.0, -1.0]], np.float32)


@pytest.mark.parametrize("n", [-4, 0, 1, 2, 3, 5])
@pytest.mark.parametrize("cell", CELLS)
def test_results_are_those_of_python_on_arrays(graph_mode, cell, n):
    net = cell()
    expected = cell.construct(net, X.copy(), np.int32(n))
    np.testing.assert_array_equal(net(Tensor(X), Tensor(n, mstype.int32)).asnumpy(), expected)
    np.testing.assert_array_equal(
        net(Tensor(-X), Tensor(n, mstype.int32)).asnumpy(), cell.construct(net, -X, np.int32(n))
    )


def test_both_branches_and_the_body_are_captured_once(graph_mode, graphs):
    net = LoopWithBranch()
    for n in (1, 4):
        net(Tensor(X), Tensor(n, mstype.int32))
    (compiled,) = graphs()
    kernels = sorted(node.op_type for graph in compiled for node in graph.order)
    assert kernels == [
        "Add",
        "Greater",
        "Less",
        "Mul",
        "ReduceSum",
        "Sub",
    ]  # the operands of Less are i, an int64, and n, an int32, without a cast
    assert [graph.is_root for graph in compiled] == [True] + [False] * (len(compiled) - 1)


def test_only_kernel_graphs_with_their_own_ids(graph_mode, graphs):
    Branches()(Tensor(X), Tensor(1, mstype.int32))
    EarlyReturn()(Tensor(X), Tensor(1, mstype.int32))
    ids = [graph.graph_id for compiled in graphs() for graph in compiled]
    assert ids == list(range(len(ids)))
    first, second = graphs()
    assert {graph.root_graph_id for graph in second} == {len(first)}


class WeightInBranch(nn.Cell):
    def __init__(self):
        super().__init__()
        self.fc = nn.Dense(3, 3)

    def construct(self, x, n):
        if n > 0:
            x = self.fc(x)
        return self.fc(x)


@pytest.mark.parametrize("n", [0, 1])
def test_weights_are_read_in_branches(graph_mode, n):
    net = WeightInBranch()
    weight, bias = (parameter.asnumpy() for parameter in net.get_parameters())
    expected = X @ weight.T + bias
    if n > 0:
        expected = expected @ weight.T + bias
    np.testing.assert_allclose(net(Tensor(X), Tensor(n, mstype.int32)).asnumpy(), expected, rtol=1e-5, atol=1e-6)


class BreakOnTensor(nn.Cell):
    def construct(self, x, n):
        for i in range(3):
            if n > i:
                break
            x = x + 1.0
        return x


class DifferentShapes(nn.Cell):
    def construct(self, x, n):
        y = x
        if n > 0:
            y = x.sum()
        return y


class GrowingLoop(nn.Cell):
    def construct(self, x, n):
        i = 0
        while i < n:
            x = x.sum()
            i = i + 1
        return x


class BreakBeforeElse(nn.Cell):
    def construct(self, x, n):
        for i in range(3):
            if n > i:
                break
        else:
            x = x + 1.0
        return x


@pytest.mark.parametrize(
    ("cell", "error", "text"),
    [
        (DifferentShapes, ScriptTypeError, "'y'"),
        (GrowingLoop, ScriptTypeError, "'x'"),
        (BreakBeforeElse, CaptureError, "a condition on a tensor of the graph cannot decide 'break', 'continue' or"),
    ],
)
def test_unsupported_statements_are_named_with_their_line(graph_mode, cell, error, text):
    with pytest.raises(error, match=text) as caught:
        cell()(Tensor(X), Tensor(1, mstype.int32))
    assert f"{__file__}:" in str(caught.value)


class Writes(nn.Cell):
    def __init__(self):
        super().__init__()
        self.count = Parameter(Tensor(np.zeros((), np.float32)), name="count")
        self.weight = Parameter(Tensor(np.ones(3, np.float32)), name="weight")

    def construct(self, x, n):
        before = self.weight * 2.0
        self.count += 1.0
        if n > 0:
            self.weight = self.weight + x[0]
            ops.assign_add(self.count, Tensor(10.0))
        after = self.weight * 2.0
        i = 0
        while i < n:
            ops.assign_add(self.count, Tensor(100.0))
            self.weight = self.weight * 2.0
            i = i + 1
        return before, after, self.count + self.weight, self.weight * 2.0


@pytest.mark.parametrize("n", [0, 1, 3])
def test_weights_are_written_in_the_order_of_the_program(graph_mode, n):
    weight, count = np.ones(3, np.float32), np.float32(0)
    net = Writes()
    for _ in range(2):
        expected = [weight * 2]
        count += 1
        if n > 0:
            weight, count = weight + X[0], count + 10
        expected.append(weight * 2)
        for _ in range(n):
            weight, count = weight * 2, count + 100
        expected += [count + weight, weight * 2]
        for found, wanted in zip(net(Tensor(X), Tensor(n, mstype.int32)), expected, strict=True):
            np.testing.assert_array_equal(found.asnumpy(), wanted)
        np.testing.assert_array_equal(net.weight.asnumpy(), weight)
        assert net.count.asnumpy() == count


class ShortCircuit(nn.Cell):
    def construct(self, x, n):
        return x if n > 1 and (x.max() > 2.0 or n < 3) else -x


def test_and_and_or_evaluate_what_follows_a_tensor_in_a_branch(graph_mode, graphs):
    ShortCircuit()(Tensor(X), Tensor(1, mstype.int32))
    (compiled,) = graphs()
    kernels = [[node.op_type for node in graph.order] for graph in compiled]
    assert ["Greater"] in kernels  # n > 1 alone
    assert not {"LogicalAnd", "LogicalOr"} & {kind for order in kernels for kind in order}


class NestedLoops(nn.Cell):
    def construct(self, x, n):
        i = n - n
        while i < n:
            i = i + 1
            j = n - n
            while j < n:
                j = j + 1
                if x.max() > 4.0:
                    break
                x = x * 2.0
        return x


@pytest.mark.parametrize("n", [0, 1, 3])
def test_a_loop_without_jumps_may_contain_one_with_jumps(graph_mode, n):
    expected = NestedLoops.construct(None, X, np.int32(n))
    np.testing.assert_array_equal(NestedLoops()(Tensor(X), Tensor(n, mstype.int32)).asnumpy(), expected)


class ChangesNothingThatIsRead(nn.Cell):
    def construct(self, x, n):
        y = x * 2.0
        if n > 1:
            x = x + 1.0
        else:
            x = x - 1.0
        return ops.tanh(y)


class ChangesWhatIsRead(nn.Cell):
    def construct(self, x, n):
        y = x * 2.0
        if n > 1:
            y = x + 1.0
            x = ops.exp(x)
        return ops.tanh(y)


@pytest.mark.parametrize(
    ("cell", "orders"),
    [
        (ChangesNothingThatIsRead, [["Greater", "Mul"], ["Tanh"], ["Tanh"]]),  # 'x + 1.0' is unused
        (ChangesWhatIsRead, [["Greater", "Mul"], ["Tanh"], ["Add"]]),
    ],
)
def test_code_after_a_branch_is_in_its_sides_if_it_reads_nothing_they_change(graph_mode, graphs, cell, orders):
    cell()(Tensor(X), Tensor(1, mstype.int32))
    (compiled,) = graphs()
    found = [sorted(node.op_type for node in graph.order) for graph in compiled]
    assert [order for order in found if order] == orders


class InHelpers(nn.Cell):
    def choose(self, x, n):
        if n > 1:
            y = x + 1.0
        else:
            y = x - 1.0
        del y
        return x * 3.0

    def construct(self, x, n):
        a = self.choose(x, n)
        if n > 2:
            b = self.choose(a, n)
            return a, b
        return a + x, a


@pytest.mark.parametrize("n", [0, 2, 3])
def test_code_after_a_branch_of_a_helper_ends_with_the_helper(graph_mode, n):
    expected = InHelpers().construct(X, np.int32(n))
    found = InHelpers()(Tensor(X), Tensor(n, mstype.int32))
    for one, other in zip(expected, found, strict=True):
        np.testing.assert_array_equal(other.asnumpy(), one)


class Continues(nn.Cell):
    def construct(self, x, n):
        i = n - n
        while i < n:
            i = i + 1
            if x.max() > 4.0:
                x = x - 3.0
                if i == 2:
                    continue
            else:
                x = x * 2.0
                continue
            x = x + 1.0
        return x


@pytest.mark.parametrize("n", [0, 1, 3, 6])
def test_continue_ends_a_side_of_a_branch(graph_mode, graphs, n):
    expected = Continues.construct(None, X, np.int32(n))
    np.testing.assert_array_equal(Continues()(Tensor(X), Tensor(n, mstype.int32)).asnumpy(), expected)
    (compiled,) = graphs()
    assert not any("Logical" in node.op_type for graph in compiled for node in graph.order)  # no flags


def pick(x, y):
    if x.max() > 2.0:
        return x - y
    return x + y * 2.0


class Twice(nn.Cell):
    def construct(self, x, n):
        return pick(pick(x, x * n), x)


class OfOtherTypes(nn.Cell):
    def construct(self, x, n):
        return pick(pick(x, n), x)


class Straight(nn.Cell):
    def half(self, x):
        return x * 0.5

    def construct(self, x, n):
        return self.half(self.half(x) + n)


@pytest.mark.parametrize(
    ("cell", "operator", "times"),
    [(Twice, "Greater", 1), (OfOtherTypes, "Greater", 2), (Straight, "Muls", 0)],
)
def test_a_function_with_a_branch_that_is_called_twice_has_one_graph(graph_mode, graphs, cell, operator, times):
    net = cell()
    for sign in (1, -1):
        expected = cell.construct(net, sign * X, np.int32(2))
        np.testing.assert_allclose(net(Tensor(sign * X), Tensor(2, mstype.int32)).asnumpy(), expected, rtol=1e-6)
    (compiled,) = graphs()
    assert sum(node.op_type == operator for graph in compiled for node in graph.order) == times


class Block(nn.Cell):
    def __init__(self):
        super().__init__()
        self.w = Parameter(Tensor(np.float32([1.0, 2.0, 3.0])), name="w")

    def construct(self, x):
        i = 0
        while x.max() > 1.0 and i < 5:
            x = x * 0.5
            self.w = self.w + x[0]
            i = i + 1
        return x, x + self.w


class CallsBlocks(nn.Cell):
    def __init__(self):
        super().__init__()
        self.block = Block()

    def construct(self, x, n):
        a, b = self.block(x)
        if n > 1:
            a, b = self.block(b)
        c, d = self.block(a + b)
        return a, b, c, d


@pytest.mark.parametrize("n", [0, 2])
def test_a_cell_with_a_loop_and_writes_is_called_in_order(graph_mode, n):
    def block(x, w):
        i = 0
        while x.max() > 1.0 and i < 5:
            x = x * np.float32(0.5)
            w = w + x[0]
            i += 1
        return x, x + w, w

    w = np.float32([1.0, 2.0, 3.0])
    a, b, w = block(X * 3, w)
    if n > 1:
        a, b, w = block(b, w)
    c, d, w = block(a + b, w)
    net = CallsBlocks()
    found = net(Tensor(X * 3), Tensor(n, mstype.int32))
    for one, other in zip((a, b, c, d), found, strict=True):
        np.testing.assert_allclose(other.asnumpy(), one, rtol=1e-6)
    np.testing.assert_allclose(net.block.w.asnumpy(), w, rtol=1e-6)


class OfShared(nn.Cell):
    def __init__(self):
        super().__init__()
        self.net = Twice()

    def construct(self, x, n):
        return ops.grad(self.net, 0)(x, n)


def test_a_gradient_goes_through_a_function_that_is_called_twice(graph_mode):
    x = X.astype(np.float32) * 0.5
    found = OfShared()(Tensor(x), Tensor(2, mstype.int32)).asnumpy()

    def total(value):
        return Twice.construct(None, value, np.float64(2)).sum()

    expected = np.empty(x.shape)
    for place in np.ndindex(x.shape):
        step = np.zeros(x.shape)
        step[place] = 1e-3
        expected[place] = (total(x.astype(np.float64) + step) - total(x.astype(np.float64) - step)) / 2e-3
    np.testing.assert_allclose(found, expected, rtol=1e-4)


def test_fewer_variables_than_values_take_the_first(graph_mode):
    """As in MindSpore's graphs (net h_multi); Python raises an error."""

    class Net(nn.Cell):
        def construct(self, x):
            a, b = ops.unstack(x, 0)
            return a - b

    x = np.arange(6, dtype=np.float32).reshape(3, 2)
    np.testing.assert_array_equal(Net()(Tensor(x)).asnumpy(), x[0] - x[1])
