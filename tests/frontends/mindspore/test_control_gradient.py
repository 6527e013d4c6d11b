"""Gradients through branches and loops on tensors, against finite differences."""

import numpy as np
import pytest

import dumpsim.frontends.mindspore as ms
from dumpsim.core.errors import UnsupportedError
from dumpsim.frontends.mindspore import Parameter, Tensor, nn, ops


class Net(nn.Cell):
    """Branches, loops, loops in branches and branches in loops, with a weight in all of them."""

    def __init__(self):
        super().__init__()
        self.w = Parameter(Tensor(np.array([0.5, -0.25, 0.75], np.float32)), name="w")

    def construct(self, x):
        h = x * self.w
        if h.sum() > 0:
            y = ops.sin(h) * self.w
        else:
            y = ops.exp(h) - self.w
        i = Tensor(0, ms.int32)
        while i < 4:
            if i % 2 == 0:
                j = Tensor(0, ms.int32)
                while j < i + 1:
                    y = ops.tanh(y * self.w) + x
                    j = j + 1
            else:
                y = y * y + self.w
            if y.sum() > 9:
                break
            i = i + 1
        return (y * x).sum()


def differences(function, array, step):
    """The gradient of a function of an array by central differences."""
    found = np.zeros(array.shape)
    for index in np.ndindex(array.shape):
        ends = []
        for sign in (1, -1):
            moved = array.astype(np.float64)
            moved[index] += sign * step
            ends.append(function(moved.astype(np.float32)))
        found[index] = (ends[0] - ends[1]) / (2 * step)
    return found


@pytest.mark.parametrize("sign", [1, -1])
def test_branches_and_loops(sign):
    ms.set_context(mode=ms.GRAPH_MODE)
    net = Net()
    x = sign * np.array([[0.3, 0.1, 0.4], [0.25, -0.2, 0.15]], np.float32)

    by_x, by_w = ops.grad(net, 0, net.w)(Tensor(x))

    def of_weight(array):
        net.w.set_data(Tensor(array))
        return float(net(Tensor(x)).asnumpy())

    weight = net.w.asnumpy().copy()
    expected = differences(of_weight, weight, 1e-2)
    net.w.set_data(Tensor(weight))
    np.testing.assert_allclose(by_w.asnumpy(), expected, rtol=2e-2, atol=2e-2)
    expected = differences(lambda array: float(net(Tensor(array)).asnumpy()), x, 1e-2)
    np.testing.assert_allclose(by_x.asnumpy(), expected, rtol=2e-2, atol=2e-2)


@pytest.mark.parametrize("rounds", [0, 1, 5])
def test_iterations_of_a_loop_are_differentiated_in_reverse_order(rounds):
    """Each iteration squares and scales: the gradient needs the value of every iteration."""
    ms.set_context(mode=ms.GRAPH_MODE)

    class Loop(nn.Cell):
        def construct(self, x, n):
            i = Tensor(0, ms.int32)
            while i < n:
                x = x * x * 1.5
                i = i + 1
            return x

    x = np.array([0.9, -0.8, 0.5], np.float64)
    expected = np.ones(3)
    value = x.copy()
    for _ in range(rounds):
        expected *= 3 * value
        value = 1.5 * value * value

    found = ops.grad(Loop())(Tensor(x.astype(np.float32)), Tensor(rounds, ms.int32))

    np.testing.assert_allclose(found.asnumpy(), expected, rtol=1e-5)


class Chain(nn.Cell):
    """A loop with one result, whose variables each take the one before in the next iteration."""

    def construct(self, x, n):
        first, second, third = x, x, x
        while n > 0:
            third = third + ops.sin(second)
            second = second * first
            first = first * x
            n = n - 1
        return third


class SlopeOfChain(nn.Cell):
    """Takes the gradient in a loop of one iteration."""

    def __init__(self):
        super().__init__()
        self.net = Chain()

    def construct(self, x, n):
        m = Tensor(1, ms.int32)
        while m > 0:
            x = ops.grad(self.net)(x, n)
            m = m - 1
        return x


@pytest.mark.parametrize("rounds", [1, 2, 4])
@pytest.mark.parametrize("make", [lambda: ops.grad(Chain()), SlopeOfChain], ids=["outside", "in a loop"])
def test_variables_of_a_loop_reach_the_result_through_others(make, rounds):
    ms.set_context(mode=ms.GRAPH_MODE)
    x = np.array([0.9, -0.8, 0.5])
    values, slopes = [x, x, x], [1, 1, 1]
    for _ in range(rounds):
        first, second, third = values
        values = [first * x, second * first, third + np.sin(second)]
        slopes = [
            slopes[0] * x + first,
            slopes[1] * first + second * slopes[0],
            slopes[2] + np.cos(second) * slopes[1],
        ]

    found = make()(Tensor(x.astype(np.float32)), Tensor(rounds, ms.int32))

    np.testing.assert_allclose(found.asnumpy(), slopes[2], rtol=1e-5)


def test_second_gradient_of_a_branch():
    ms.set_context(mode=ms.GRAPH_MODE)

    class Branch(nn.Cell):
        def construct(self, x):
            if x.sum() > 0:
                return x * x * x
            return ops.exp(x)

    class Slope(nn.Cell):
        def __init__(self):
            super().__init__()
            self.net = Branch()

        def construct(self, x):
            return ops.grad(self.net)(x)

    x = np.array([0.5, 1.5], np.float32)
    twice = ops.grad(Slope())

    np.testing.assert_allclose(twice(Tensor(x)).asnumpy(), 6 * x, rtol=1e-6)
    np.testing.assert_allclose(twice(Tensor(-x)).asnumpy(), np.exp(-x), rtol=1e-6)


@pytest.mark.parametrize("loops", [False, True])
def test_a_gradient_in_a_branch_does_not_go_through_a_loop_before_it(loops):
    """Without a loop before it, the branch has the gradient."""
    ms.set_context(mode=ms.GRAPH_MODE)

    def square(x):
        return (x * x).sum()

    class Slope(nn.Cell):
        def construct(self, x, n):
            y = x
            if loops:
                i = Tensor(0, ms.int32)
                while i < n:
                    y = ops.sin(y)
                    i = i + 1
            slope = x
            if n > 1:
                slope = ops.grad(square)(y)
            return slope

    x = Tensor(np.array([0.5, 1.0], np.float32))
    if loops:
        with pytest.raises(UnsupportedError, match="within a branch or loop, of a loop before it") as caught:
            Slope()(x, Tensor(2, ms.int32))
        assert caught.value.code == "DS-GRD-002"
    else:
        np.testing.assert_allclose(Slope()(x, Tensor(2, ms.int32)).asnumpy(), [1.0, 2.0], rtol=1e-6)


def test_a_second_gradient_of_a_loop_is_refused():
    ms.set_context(mode=ms.GRAPH_MODE)

    class Loop(nn.Cell):
        def construct(self, x):
            while x.sum() < 9:
                x = x * x
            return x

    with pytest.raises(UnsupportedError, match="gradient of the gradient of a loop"):
        ops.grad(ops.grad(Loop()))(Tensor(np.array([2.0], np.float32)))


def test_the_gradient_alone_of_a_loop_that_reads_weights():
    """The function returns only the gradient, and nothing else follows the loop."""

    class Loop(nn.Cell):
        def __init__(self):
            super().__init__()
            self.w = Parameter(Tensor(np.array([0.5, -2.0], np.float32)), name="w")

        def construct(self, x):
            i = Tensor(0, ms.int32)
            while i < 3:
                x = x * self.w
                i = i + 1
            return x

    ms.set_context(mode=ms.GRAPH_MODE)
    found = ops.grad(Loop())(Tensor(np.array([3.0, 4.0], np.float32)))
    np.testing.assert_array_equal(found.asnumpy(), np.array([0.125, -8.0], np.float32))


@pytest.mark.parametrize(("x", "slope"), [(2.0, 32.0), (-2.0, 1.0)])
def test_the_gradient_of_a_loop_in_a_branch(x, slope):
    class Loop(nn.Cell):
        def construct(self, x):
            y = x
            if x.sum() > 0:
                while y.sum() < 9:
                    y = y * y
            return y

    ms.set_context(mode=ms.GRAPH_MODE)
    found = ops.grad(Loop())(Tensor(np.array([x], np.float32)))
    np.testing.assert_array_equal(found.asnumpy(), np.array([slope], np.float32))


class Loop(nn.Cell):
    """A loop, followed by a function whose gradient may use its own result."""

    def __init__(self, start, after):
        super().__init__()
        self.w = Parameter(Tensor(np.array([0.5, -0.25, 0.75], np.float32)), name="w")
        self.start = start
        self.after = after

    def construct(self, x):
        y = self.start(x, self.w)
        i = Tensor(0, ms.int32)
        while i < 2:
            y = y * y + x
            i = i + 1
        return self.after(y)


def wide_differences(function, array, step=1e-6):
    """Central differences in float64."""
    moved = np.eye(array.size).reshape(array.size, *array.shape) * step
    return np.array([function(array + one) - function(array - one) for one in moved]).reshape(array.shape) / (2 * step)


def rounds(y, x):
    for _ in range(2):
        y = y * y + x
    return y


@pytest.mark.parametrize("after", ["exp", "tanh", "sin", "square"])
@pytest.mark.parametrize("with_weight", [True, False])
def test_gradients_after_a_loop(after, with_weight):
    x = np.array([[0.3, -0.2, 0.4], [0.1, 0.25, -0.3]], np.float32)
    w = np.array([0.5, -0.25, 0.75]) if with_weight else 2
    net = Loop((lambda x, w: x * w) if with_weight else (lambda x, w: x * 2), getattr(ops, after))
    found = ops.grad(net)(Tensor(x)).asnumpy()
    expected = wide_differences(lambda a: getattr(np, after)(rounds(a * w, a)).sum(), x.astype(np.float64))
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_two_gradients_of_one_loop():
    class Both(nn.Cell):
        def __init__(self):
            super().__init__()
            self.net = Loop(lambda x, w: x * w, ops.exp)

        def construct(self, x):
            return ops.grad(self.net)(x), ops.grad(self.net, None, self.net.w)(x)

    x = np.array([[0.3, -0.2, 0.4]], np.float32)
    w = np.array([0.5, -0.25, 0.75])
    by_input, by_weight = Both()(Tensor(x))
    wide = x.astype(np.float64)
    expected = wide_differences(lambda a: np.exp(rounds(a * w, a)).sum(), wide)
    np.testing.assert_allclose(by_input.asnumpy(), expected, rtol=1e-4, atol=1e-5)
    expected = wide_differences(lambda b: np.exp(rounds(wide * b, wide)).sum(), w)
    np.testing.assert_allclose(by_weight.asnumpy(), expected, rtol=1e-4, atol=1e-5)


class Continued(nn.Cell):
    """A loop whose iterations end early, with a branch whose rest is a function."""

    def __init__(self):
        super().__init__()
        self.w = Parameter(Tensor(np.array([0.5, -0.25, 0.75], np.float32)), name="w")

    def construct(self, x):
        y, i = x * self.w, Tensor(0, ms.int32)
        while i < 5:
            i = i + 1
            if i % 2 == 0:
                y = ops.tanh(y) + x
                continue
            if y.sum() > 0:
                y = y * self.w
            y = ops.sin(y) + self.w
        return (y * x).sum()


class Nested(Continued):
    """A loop in a loop, both of which are left early, with code after each."""

    def construct(self, x):
        y, i = x * self.w, Tensor(0, ms.int32)
        while i < 4:
            i = i + 1
            j = Tensor(0, ms.int32)
            while j < 3:
                j = j + 1
                y = ops.tanh(y * self.w) + x
                if j + i > 5:
                    y = y * y
                    break
                y = y - self.w
            y = ops.sin(y) * x
            if i > 2:
                break
        y = y * self.w
        if y.sum() > 0:
            y = ops.exp(y)
        return (y * x).sum()


class Outside(Continued):
    """A loop that ends early by a comparison made before it."""

    def construct(self, x):
        y, i, large = x * self.w, Tensor(0, ms.int32), x.sum() > 0
        while i < 3:
            i = i + 1
            y = ops.tanh(y) + self.w
            if large:
                break
            y = y * x
        return (y * x).sum()


@pytest.mark.parametrize("make", [Continued, Nested, Outside])
@pytest.mark.parametrize("sign", [1, -1])
def test_iterations_that_end_early(make, sign):
    ms.set_context(mode=ms.GRAPH_MODE)
    net = make()
    x = sign * np.array([[0.3, 0.1, 0.4], [0.25, -0.2, 0.15]], np.float32)

    by_x, by_w = ops.grad(net, 0, net.w)(Tensor(x))

    weight = net.w.asnumpy().copy()

    def of_weight(array):
        net.w.set_data(Tensor(array))
        return float(net(Tensor(x)).asnumpy())

    expected = differences(of_weight, weight, 1e-2)
    net.w.set_data(Tensor(weight))
    np.testing.assert_allclose(by_w.asnumpy(), expected, rtol=2e-2, atol=2e-2)
    expected = differences(lambda array: float(net(Tensor(array)).asnumpy()), x, 1e-2)
    np.testing.assert_allclose(by_x.asnumpy(), expected, rtol=2e-2, atol=2e-2)


class Weighted(nn.Cell):
    """A branch between functions whose gradients use its result and its operands."""

    def __init__(self):
        super().__init__()
        self.w = Parameter(Tensor(np.array([2.0, 3.0], np.float32)), name="w")

    def construct(self, x, n):
        y = x * self.w
        if n > 0:
            y = y * y * x
        else:
            y = y + ops.sin(x)
        return ops.tanh(y).sum()


def weighted(x, n):
    y = x * np.array([2.0, 3.0])
    return np.tanh(y * y * x if n > 0 else y + np.sin(x)).sum()


class Powers(nn.Cell):
    """A loop with a weight before it."""

    def __init__(self):
        super().__init__()
        self.w = Parameter(Tensor(np.array([2.0, 3.0], np.float32)), name="w")

    def construct(self, x, n):
        y = x * self.w
        while n > 0:
            y = y * ops.sin(x)
            n = n - 1
        return (y * y).sum()


def powers(x, n):
    return ((x * np.array([2.0, 3.0]) * np.sin(x) ** n) ** 2).sum()


class Left(nn.Cell):
    """A loop that a branch in a branch leaves, with code after both branches."""

    def construct(self, x, n):
        y = x
        while n > 0:
            if x.sum() > 1:
                y = y * ops.sin(x)
                if n > 2:
                    y = y + x
                    break
            else:
                y = y * y
                if n > 3:
                    y = ops.exp(y)
            y = y * 0.5
            n = n - 1
        return (y * y).sum()


def left(x, n):
    y = x
    while n > 0:
        if x.sum() > 1:
            y = y * np.sin(x)
            if n > 2:
                y = y + x
                break
        else:
            y = y * y
            if n > 3:
                y = np.exp(y)
        y = y * 0.5
        n -= 1
    return (y * y).sum()


class Slope(nn.Cell):
    """The gradient of a network."""

    def __init__(self, net):
        super().__init__()
        self.net = net

    def construct(self, x, n):
        return ops.grad(self.net)(x, n)


class Descent(nn.Cell):
    """A loop of steps along the gradient of a network."""

    def __init__(self, net):
        super().__init__()
        self.net = net

    def construct(self, x, n):
        i = n
        while i > 0:
            x = x - 0.1 * ops.grad(self.net)(x, n)
            i = i - 1
        return x


@pytest.mark.parametrize("n", [3, -1])
def test_second_gradients_pass_through_the_gradient_of_a_branch(n):
    """What follows the branch depends on its result. [2.10 observed: 2.8956149 and 12.456376 for n = 3]"""
    ms.set_context(mode=ms.GRAPH_MODE)
    x = np.array([0.5, 0.25], np.float32)
    found = ops.grad(Slope(Weighted()))(Tensor(x), Tensor(n, ms.int32)).asnumpy()
    expected = wide_differences(lambda a: wide_differences(lambda b: weighted(b, n), a, 1e-4).sum(), x + 0.0, 1e-4)
    np.testing.assert_allclose(found, expected, rtol=1e-3)
    if n == 3:
        np.testing.assert_allclose(found, [2.8956149, 12.456376], rtol=1e-6)


@pytest.mark.parametrize("n", [0, 2, 4])
@pytest.mark.parametrize("x", [(0.5, 0.25), (0.9, 0.8)])
def test_a_loop_left_from_a_branch_in_a_branch(x, n):
    ms.set_context(mode=ms.GRAPH_MODE)
    found = ops.grad(Left())(Tensor(np.array(x, np.float32)), Tensor(n, ms.int32)).asnumpy()
    np.testing.assert_allclose(found, wide_differences(lambda a: left(a, n), np.array(x)), rtol=1e-4, atol=1e-7)


@pytest.mark.parametrize(
    ("net", "function", "observed"),
    [(Weighted, weighted, [0.1416189, 0.05375179]), (Powers, powers, [0.45561546, 0.24879451])],
)
def test_gradients_taken_in_a_loop(net, function, observed):
    """[2.10 observed]"""
    ms.set_context(mode=ms.GRAPH_MODE)
    x = np.array([0.5, 0.25])
    found = Descent(net())(Tensor(x.astype(np.float32)), Tensor(3, ms.int32)).asnumpy()
    for _ in range(3):
        x = x - 0.1 * wide_differences(lambda a: function(a, 3), x)
    np.testing.assert_allclose(found, x, rtol=1e-4)
    np.testing.assert_allclose(found, observed, rtol=1e-5)


class Jumping(nn.Cell):
    """Branches that break and continue in nested branches, with calls of a helper that has a branch itself."""

    def __init__(self):
        super().__init__()
        self.w = Parameter(Tensor(np.array([2.0, 3.0], np.float32)), name="w")

    def helper(self, y, n):
        if n > 1:
            y = y * self.w
        else:
            y = y + self.w
        return y

    def construct(self, x, n):
        y = x
        while n > 0:
            if y.sum() > 4:
                y = self.helper(y, n)
                if n > 2:
                    y = y * 0.25
                else:
                    y = ops.sin(y)
                n = n - 1
                if y.sum() < 1:
                    break
                y = y * 0.5
            elif n == 2:
                y = self.helper(y, n)
                n = n - 1
                continue
            else:
                y = self.helper(y, n)
            n = n - 1
        return (y * y).sum()


class Deep(nn.Cell):
    """A loop in a loop, which a branch leaves, with branches after both."""

    def construct(self, x, n):
        y = x
        m = n
        while n > 0:
            k = n
            while k > 0:
                if y.sum() > 3:
                    y = y * 0.5
                    break
                y = y + ops.sin(x)
                k = k - 1
            if n == 2:
                y = y * x
            y = ops.tanh(y) * x
            n = n - 1
        if m > 2:
            y = y + x
        return (y * y).sum()


class Returning(nn.Cell):
    """A result from inside a loop, and operators whose gradients have branches."""

    def construct(self, x, n):
        y = x
        while n > 0:
            if n == 1:
                if x.sum() > 0:
                    return y * 2
                y = y + x
            else:
                y = ops.relu(y - x) + ops.clamp(y, 0.1, 0.9)
            n = n - 1
        return y * y


class Rest(Jumping):
    """Branches before and after a call in a side whose round goes on, while the other side continues."""

    def construct(self, x, n):
        y = x
        while n > 0:
            if y.sum() > 4:
                if n > 2:
                    y = y * 0.25
                else:
                    y = ops.sin(y)
                y = self.helper(y, n) + x
            else:
                n = n - 2
                y = self.helper(y, n)
                continue
            y = y * 0.9
            if y.sum() > 0:
                y = y - 0.5
            n = n - 1
        return (y * y).sum()


class TwoSlopes(Slope):
    """A gradient taken in a branch."""

    def construct(self, x, n):
        y = ops.grad(self.net)(x, n)
        if n > 2:
            y = y + ops.grad(self.net)(x, n - 1)
        return y


@pytest.mark.parametrize(
    ("net", "n", "observed"),
    [
        (Jumping, 1, [5.0, 8.5]),
        (Jumping, 2, [-0.558831, 2.411353]),
        (Jumping, 3, [-3.02721, -4.3845706]),
        (Jumping, 5, [-0.23973104, 0.8059821]),
        (Deep, 1, [0.8729395, 2.5725336]),
        (Deep, 2, [0.58788073, 2.6771667]),
        (Deep, 3, [3.789994, 10.153792]),
        (Deep, 5, [3.8199165, 10.152346]),
        (Rest, 3, [0.81919384, 2.512058]),
        (Rest, 5, [8.64, 36.01406]),
        (Returning, 1, [2, 2]),
        (Returning, 2, [2, 0]),
        (Returning, 5, [2, 0]),
    ],
)
def test_gradients_of_branches_that_jump(net, n, observed):
    """[2.10 observed]"""
    ms.set_context(mode=ms.GRAPH_MODE)
    found = ops.grad(net())(Tensor(np.array([0.5, 1.25], np.float32)), Tensor(n, ms.int32))
    np.testing.assert_allclose(found.asnumpy(), observed, rtol=1e-5)


def test_weights_gradients_through_branches_that_jump():
    """[2.10 observed]"""
    ms.set_context(mode=ms.GRAPH_MODE)
    net = Jumping()
    by_weight = ops.grad(net, None, net.w)
    for n, observed in ((1, [5.0, 8.5]), (3, [-1.513605, -3.6538088])):
        found = by_weight(Tensor(np.array([0.5, 1.25], np.float32)), Tensor(n, ms.int32))
        np.testing.assert_allclose(found.asnumpy(), observed, rtol=1e-5)


@pytest.mark.parametrize(("n", "observed"), [(2, [5.0, 8.5]), (3, [5.819194, 11.012058]), (5, [28.354458, 12.087988])])
def test_a_gradient_of_a_loop_in_a_branch_is_captured_in_time(n, observed):
    """The identity of the branch's side leaves out what the gradient refers to. [2.10 observed]"""
    ms.set_context(mode=ms.GRAPH_MODE)
    found = TwoSlopes(Rest())(Tensor(np.array([0.5, 1.25], np.float32)), Tensor(n, ms.int32))
    np.testing.assert_allclose(found.asnumpy(), observed, rtol=1e-5)


@pytest.mark.parametrize(
    ("net", "n", "observed"),
    [
        (Deep, 1, [0.41270605, 0.9927466]),
        (Deep, 2, [0.3784643, 0.77509177]),
        (Deep, 3, [0.06455604, 0.09907343]),
        (Jumping, 1, [0, 0.4]),
        (Jumping, 2, [0.56780654, 1.1561502]),
        (Jumping, 3, [0.8669963, 2.2384832]),
    ],
)
def test_gradients_of_loops_in_loops_taken_in_a_loop(net, n, observed):
    """[2.10 observed]"""
    ms.set_context(mode=ms.GRAPH_MODE)
    found = Descent(net())(Tensor(np.array([0.5, 1.25], np.float32)), Tensor(n, ms.int32))
    np.testing.assert_allclose(found.asnumpy(), observed, rtol=1e-5, atol=1e-6)


class Written(nn.Cell):
    """A side that writes a weight between two reads."""

    def __init__(self):
        super().__init__()
        self.w = Parameter(Tensor(np.array([0.5, 2.0], np.float32)), name="w")

    def construct(self, x, n):
        if n > 0:
            y = ops.exp(x) * self.w
            ops.assign(self.w, x + 1)
            y = ops.tanh(y) * self.w
        else:
            y = ops.sin(x) * self.w
        return y


def test_the_gradient_of_a_side_reads_a_weight_as_each_operator_has_read_it():
    """What is written has no gradient. [2.10 observed: the values of a recorded run]"""
    ms.set_context(mode=ms.GRAPH_MODE)
    x, w = np.array([0.25, -0.125]), np.array([0.5, 2.0])

    found = Slope(Written())(Tensor(x.astype(np.float32)), Tensor(1, ms.int32))

    expected = (1 - np.tanh(np.exp(x) * w) ** 2) * np.exp(x) * w * (x + 1)
    np.testing.assert_allclose(found.asnumpy(), expected, rtol=1e-5)
