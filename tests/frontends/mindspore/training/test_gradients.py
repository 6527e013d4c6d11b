"""Gradients of functions and cells: against finite differences, and the same op by op and as a graph."""

import numpy as np
import pytest

from dumpsim.core.errors import ScriptRuntimeError, ScriptTypeError, UnsupportedError
from dumpsim.frontends import mindspore as ms
from dumpsim.frontends.mindspore import Parameter, ParameterTuple, Tensor, nn, ops


def rand(*shape, seed=0):
    return np.random.RandomState(seed).uniform(-1, 1, shape).astype(np.float32)


class Perceptron(nn.Cell):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Dense(4, 5)
        self.norm = nn.LayerNorm((5,))
        self.act = nn.GELU()
        self.fc2 = nn.Dense(5, 3)

    def construct(self, x):
        return self.fc2(self.act(self.norm(self.fc1(x))))


class Convolution(nn.Cell):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(2, 3, 3, pad_mode="same")
        self.norm = nn.BatchNorm2d(3)
        self.relu = nn.ReLU()
        self.pool = nn.MaxPool2d(2, 2)
        self.flatten = nn.Flatten()
        self.fc = nn.Dense(12, 2)

    def construct(self, x):
        x = self.pool(self.relu(self.norm(self.conv(x))))
        return self.fc(self.flatten(x))


class Attention(nn.Cell):
    def __init__(self):
        super().__init__()
        self.query, self.key, self.value = nn.Dense(4, 4), nn.Dense(4, 4), nn.Dense(4, 4)
        self.softmax = nn.Softmax(axis=-1)
        self.product = ops.BatchMatMul(transpose_b=True)

    def construct(self, x):
        scores = self.softmax(self.product(self.query(x), self.key(x)) * 0.5)
        return x + ops.BatchMatMul()(scores, self.value(x))


NETS = {
    "perceptron": (Perceptron, (3, 4)),
    "convolution": (Convolution, (2, 2, 4, 4)),
    "attention": (Attention, (2, 3, 4)),
}


def make(name):
    kind, shape = NETS[name]
    net = kind()
    for index, parameter in enumerate(net.trainable_params()):
        parameter.set_data(Tensor(rand(*parameter.shape, seed=index + 1)))
    net.set_train()
    return net, rand(*shape)


def loss_of(net):
    def loss(x):
        y = net(x)
        return ops.reduce_sum(y * y)

    return loss


def gradients(name, mode_name):
    """The loss, the gradient by the input and those by the weights."""
    net, x = make(name)
    weights = ParameterTuple(net.trainable_params())
    step = ms.value_and_grad(loss_of(net), 0, weights)
    if mode_name == "graph":
        step = ms.jit(step)
    value, (of_x, of_weights) = step(Tensor(x))
    return float(value.asnumpy()), of_x.asnumpy(), [g.asnumpy() for g in of_weights]


@pytest.mark.parametrize("name", sorted(NETS))
def test_graph_and_pynative_agree(name, mode):
    mode("pynative")
    eager = gradients(name, "pynative")
    graph = gradients(name, "graph")

    assert eager[0] == pytest.approx(graph[0], rel=1e-6)
    np.testing.assert_allclose(eager[1], graph[1], rtol=1e-5, atol=1e-6)
    for one, other in zip(eager[2], graph[2], strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", sorted(NETS))
def test_finite_differences(name, mode):
    """The slope along a direction through all weights and the input at once, in float64."""
    mode("pynative")
    net, x = make(name)
    weights = net.trainable_params()
    _, of_x, of_weights = gradients(name, "pynative")
    directions = [rand(*w.shape, seed=50 + i).astype(np.float64) for i, w in enumerate(weights)]
    direction_x = rand(*x.shape, seed=99).astype(np.float64)
    expected = sum(float((g * d).sum()) for g, d in zip(of_weights, directions, strict=True))
    expected += float((of_x * direction_x).sum())
    starts = [w.asnumpy().astype(np.float64) for w in weights]

    def at(step):
        for weight, start, direction in zip(weights, starts, directions, strict=True):
            weight.set_dtype(ms.float64)
            weight.set_data(Tensor(start + step * direction))
        # in a graph: op by op, a CPU refuses a convolution of float64
        value = ms.jit(loss_of(net))(Tensor(x.astype(np.float64) + step * direction_x))
        return float(value.asnumpy())

    step = 1e-6
    slope = (at(step) - at(-step)) / (2 * step)

    assert slope == pytest.approx(expected, rel=2e-4, abs=1e-4)


def test_grad_of_several_arguments(mode):
    mode("pynative")
    x, y = rand(3), rand(3, seed=1)

    of_x, of_y = ms.grad(lambda a, b: ops.reduce_sum(a * a * b), (0, 1))(Tensor(x), Tensor(y))

    np.testing.assert_allclose(of_x.asnumpy(), 2 * x * y, rtol=1e-6)
    np.testing.assert_allclose(of_y.asnumpy(), x * x, rtol=1e-6)


@pytest.mark.parametrize("mode_name", ["graph", "pynative"])
class TestGradOperation:
    @staticmethod
    def net():
        class Scale(nn.Cell):
            def __init__(self):
                super().__init__()
                self.w = Parameter(Tensor(np.array([2.0, 3.0], np.float32)), name="w")

            def construct(self, x, y):
                return x * self.w + y

        return Scale()

    @staticmethod
    def run(net, operation, *args, weights=None):
        class Gradient(nn.Cell):
            def __init__(self):
                super().__init__()
                self.net, self.grad, self.weights = net, operation, weights

            def construct(self, *inputs):
                if self.weights is None:
                    return self.grad(self.net)(*inputs)
                return self.grad(self.net, self.weights)(*inputs)

        return Gradient()(*args)

    def test_first_argument(self, mode, mode_name):
        mode(mode_name)
        found = self.run(self.net(), ops.GradOperation(), Tensor(rand(2)), Tensor(rand(2)))
        np.testing.assert_array_equal(found.asnumpy(), [2, 3])

    def test_all_arguments(self, mode, mode_name):
        mode(mode_name)
        of_x, of_y = self.run(self.net(), ops.GradOperation(get_all=True), Tensor(rand(2)), Tensor(rand(2)))
        np.testing.assert_array_equal(of_x.asnumpy(), [2, 3])
        np.testing.assert_array_equal(of_y.asnumpy(), [1, 1])

    def test_by_list_with_sens(self, mode, mode_name):
        mode(mode_name)
        net, x = self.net(), rand(2)
        operation = ops.GradOperation(get_by_list=True, sens_param=True)
        weights = ParameterTuple(net.trainable_params())
        sens = Tensor(np.array([10.0, 100.0], np.float32))
        (of_w,) = self.run(net, operation, Tensor(x), Tensor(rand(2)), sens, weights=weights)
        np.testing.assert_allclose(of_w.asnumpy(), x * [10, 100], rtol=1e-6)


@pytest.mark.parametrize("mode_name", ["graph", "pynative"])
def test_gradients_of_a_value_used_often_are_added(mode, mode_name):
    mode(mode_name)
    x = rand(4)

    def function(a):
        b = ops.exp(a)
        return ops.reduce_sum(b * b + b - a)

    run = ms.grad(function)
    found = (ms.jit(run) if mode_name == "graph" else run)(Tensor(x))

    np.testing.assert_allclose(found.asnumpy(), 2 * np.exp(2 * x) + np.exp(x) - 1, rtol=1e-5)


@pytest.mark.parametrize("mode_name", ["graph", "pynative"])
def test_no_gradient_passes_stop_gradient(mode, mode_name):
    mode(mode_name)
    x = rand(4)
    run = ms.grad(lambda a: ops.reduce_sum(a * ops.stop_gradient(a)))

    found = (ms.jit(run) if mode_name == "graph" else run)(Tensor(x))

    np.testing.assert_array_equal(found.asnumpy(), x)


@pytest.mark.parametrize("mode_name", ["graph", "pynative"])
def test_what_does_not_depend_has_zeros(mode, mode_name):
    mode(mode_name)
    run = ms.grad(lambda a, b: ops.reduce_sum(a), (0, 1))

    _, found = (ms.jit(run) if mode_name == "graph" else run)(Tensor(rand(2)), Tensor(rand(3)))

    np.testing.assert_array_equal(found.asnumpy(), np.zeros(3, np.float32))


def test_second_order(mode):
    mode("pynative")
    x = rand(3)

    first = ms.grad(lambda a: ops.reduce_sum(a * a * a))
    second = ms.grad(lambda a: ops.reduce_sum(first(a)))

    np.testing.assert_allclose(second(Tensor(x)).asnumpy(), 6 * x, rtol=1e-5)


def test_second_order_through_a_jit_function(mode):
    """The backward pass of the compiled function is differentiated, too."""
    mode("pynative")
    x = rand(3)

    @ms.jit
    def cube(a):
        return a * a * a

    first = ms.grad(lambda a: ops.reduce_sum(cube(a)))
    second = ms.grad(lambda a: ops.reduce_sum(first(a)))

    np.testing.assert_allclose(first(Tensor(x)).asnumpy(), 3 * x * x, rtol=1e-5)
    np.testing.assert_allclose(second(Tensor(x)).asnumpy(), 6 * x, rtol=1e-5)


@pytest.mark.parametrize("by_keyword", [False, True])
def test_tensors_in_arguments_of_a_jit_function_with_a_loop_get_no_silent_gradient(mode, by_keyword):
    mode("pynative")
    x = Tensor(rand(3))

    @ms.jit
    def powers(a, pair, factor=None):
        i = Tensor(0, ms.int32)
        while i < 2:
            a = a * pair[0] if factor is None else a * factor
            i = i + 1
        return a

    def of_parts(a, b):
        return powers(a, (1.0,), factor=b) if by_keyword else powers(a, (b, 1.0))

    with pytest.raises(UnsupportedError, match="gradients of tensors in tuples or keyword arguments of a jit function"):
        ms.grad(lambda a, b: ops.reduce_sum(of_parts(a, b)), (0, 1))(x, x)
    by_a = ms.grad(lambda a: ops.reduce_sum(powers(a, (2.0, 1.0))))(x)  # numbers have no gradient
    np.testing.assert_allclose(by_a.asnumpy(), np.full(3, 4.0), rtol=1e-6)


def test_vjp(mode):
    mode("pynative")
    x, sens = rand(3), rand(3, seed=5)

    value, back = ms.vjp(lambda a: a * a, Tensor(x))

    np.testing.assert_allclose(value.asnumpy(), x * x, rtol=1e-6)
    np.testing.assert_allclose(back(Tensor(sens))[0].asnumpy(), 2 * x * sens, rtol=1e-6)


def test_aux_outputs_are_passed_on(mode):
    mode("pynative")
    x = rand(3)

    (value, aux), found = ms.value_and_grad(lambda a: (ops.reduce_sum(a * a), a + 1), has_aux=True)(Tensor(x))

    assert float(value.asnumpy()) == pytest.approx(float((x * x).sum()), rel=1e-6)
    np.testing.assert_array_equal(aux.asnumpy(), x + 1)
    np.testing.assert_allclose(found.asnumpy(), 2 * x, rtol=1e-6)


def test_jit_function_inside_of_a_gradient(mode):
    mode("pynative")
    x = rand(3)

    @ms.jit
    def square(a):
        return a * a

    found = ms.grad(lambda a: ops.reduce_sum(square(a) * 3.0))(Tensor(x))

    np.testing.assert_allclose(found.asnumpy(), 6 * x, rtol=1e-5)


def test_argument_of_another_type(mode):
    mode("pynative")
    with pytest.raises(ScriptTypeError, match="argument 0 is of type float"):
        ms.grad(lambda a: a)(1.0)


def test_invalid_position(mode):
    mode("pynative")
    with pytest.raises(ScriptRuntimeError, match="Position index 2 is exceed input size"):
        ms.grad(lambda a: a, 2)(Tensor(rand(1)))


def test_operator_without_gradient(mode):
    mode("pynative")
    with pytest.raises(UnsupportedError, match="has no gradient"):
        ms.grad(ms.grad(lambda a: ops.reduce_sum(nn.GELU()(a))))(Tensor(rand(2)))
