"""Training steps: the same weights in both modes and with every optimizer's formula."""

import numpy as np
import pytest

from dumpsim.frontends.mindspore import Parameter, Tensor, nn, ops


def rand(*shape, seed=0):
    return np.random.RandomState(seed).uniform(-1, 1, shape).astype(np.float32)


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 2, 3, pad_mode="same")
        self.norm = nn.BatchNorm2d(2)
        self.relu = nn.ReLU()
        self.flatten = nn.Flatten()
        self.fc = nn.Dense(32, 3)

    def construct(self, x):
        return self.fc(self.flatten(self.relu(self.norm(self.conv(x)))))


OPTIMIZERS = {
    "momentum": lambda weights: nn.Momentum(weights, 0.1, 0.9, weight_decay=0.01),
    "sgd": lambda weights: nn.SGD(weights, 0.1, momentum=0.9, nesterov=True),
    "adam": lambda weights: nn.Adam(weights, 0.01),
    "adam_weight_decay": lambda weights: nn.AdamWeightDecay(weights, 0.01, weight_decay=0.1),
}


def trained(optimizer, steps=3, sens=None):
    """The losses of some steps, and the weights after them."""
    net = Net()
    for index, parameter in enumerate(net.trainable_params()):
        parameter.set_data(Tensor(rand(*parameter.shape, seed=index + 1)))
    loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    step = nn.TrainOneStepCell(nn.WithLossCell(net, loss), optimizer(net.trainable_params()), sens)
    step.set_train()
    images, labels = Tensor(rand(4, 1, 4, 4)), Tensor(np.array([0, 1, 2, 1], np.int32))
    losses = [float(step(images, labels).asnumpy()) for _ in range(steps)]
    return losses, {p.name: p.asnumpy().copy() for p in net.get_parameters()}


@pytest.mark.parametrize("name", sorted(OPTIMIZERS))
def test_graph_and_pynative_train_alike(name, mode):
    mode("graph")
    losses, weights = trained(OPTIMIZERS[name])
    mode("pynative")
    eager_losses, eager_weights = trained(OPTIMIZERS[name])

    assert losses == pytest.approx(eager_losses, rel=1e-5)
    for key, value in weights.items():
        # Adam divides by the size of the gradient: rounding shows where that is tiny
        np.testing.assert_allclose(value, eager_weights[key], rtol=1e-3, atol=2e-4, err_msg=key)
    assert losses[-1] < losses[0]


class Line(nn.Cell):
    """A net whose loss is the sum of weights times inputs, so that the gradient is the input."""

    def __init__(self):
        super().__init__()
        self.w = Parameter(Tensor(np.array([1.0, -2.0], np.float32)), name="w")

    def construct(self, x):
        return ops.reduce_sum(self.w * x)


def stepped(optimizer, mode, times=2, **settings):
    mode("graph")
    net = Line()
    step = nn.TrainOneStepCell(net, optimizer(net.trainable_params()), **settings)
    x = np.array([0.5, 4.0], np.float32)
    for _ in range(times):
        step(Tensor(x))
    return net.w.asnumpy(), x.astype(np.float64)


START = np.array([1.0, -2.0])


def test_momentum(mode):
    found, g = stepped(lambda weights: nn.Momentum(weights, 0.1, 0.9), mode)
    np.testing.assert_allclose(found, START - 0.1 * g - 0.1 * (0.9 * g + g), rtol=1e-6)


def test_momentum_undoes_the_scale_of_the_loss(mode):
    found, g = stepped(lambda weights: nn.Momentum(weights, 0.1, 0.9, loss_scale=8.0), mode, times=1, sens=8.0)
    np.testing.assert_allclose(found, START - 0.1 * g, rtol=1e-6)


def test_sgd_with_weight_decay(mode):
    found, g = stepped(lambda weights: nn.SGD(weights, 0.1, weight_decay=0.5), mode, times=1)
    np.testing.assert_allclose(found, START - 0.1 * (g + 0.5 * START), rtol=1e-6)


def test_adam(mode):
    found, g = stepped(lambda weights: nn.Adam(weights, 0.1), mode, times=2)
    expected, first, second = START.copy(), np.zeros(2), np.zeros(2)
    for t in (1, 2):
        first, second = 0.9 * first + 0.1 * g, 0.999 * second + 0.001 * g * g
        rate = 0.1 * np.sqrt(1 - 0.999**t) / (1 - 0.9**t)
        expected -= rate * first / (np.sqrt(second) + 1e-8)
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_reads_of_a_weight_come_before_its_update(mode):
    """The gradient by the first weight reads the second one, which the optimizer updates in the same step."""

    class Pair(nn.Cell):
        def __init__(self):
            super().__init__()
            self.a = Parameter(Tensor(np.array([2.0], np.float32)), name="a")
            self.b = Parameter(Tensor(np.array([3.0], np.float32)), name="b")

        def construct(self, x):
            return ops.reduce_sum(self.a * self.b * x)

    for order in (slice(None), slice(None, None, -1)):
        mode("graph")
        net = Pair()
        weights = list(net.trainable_params())[order]
        nn.TrainOneStepCell(net, nn.SGD(weights, 1.0))(Tensor(np.array([0.5], np.float32)))

        assert (net.a.asnumpy()[0], net.b.asnumpy()[0]) == (2.0 - 1.5, 3.0 - 1.0)
