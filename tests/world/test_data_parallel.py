"""Data-parallel training on several ranks equals training on one rank with the whole batch, bit by bit.

Inputs and weights are small integers, so that every sum is exact in float32 and its order does not matter.
"""

import numpy as np
import pytest

import dumpsim.frontends.mindspore as ms
from dumpsim.core.settings import RunSettings
from dumpsim.frontends.mindspore import Tensor, nn
from dumpsim.frontends.mindspore.communication import get_group_size, get_rank, init
from dumpsim.world import launch

SETTINGS = RunSettings(quiet=True, manifest=None)
BATCH = 16
RNG = np.random.default_rng(5)
IMAGES = RNG.integers(0, 2, (BATCH, 1, 32, 32)).astype(np.float32)
SLOPES = RNG.integers(-1, 2, (BATCH, 10)).astype(np.float32)
MODES = [pytest.param(ms.GRAPH_MODE, id="graph"), pytest.param(ms.PYNATIVE_MODE, id="pynative")]


def sparse(shape, seed):
    """Weights of -1, 0 and 1: two of each output's inputs count, so that sums stay small."""
    rng = np.random.default_rng(seed)
    weight = np.zeros((shape[0], int(np.prod(shape[1:]))), np.float32)
    for row in weight:
        row[rng.choice(row.size, 2, replace=False)] = rng.choice([-1, 1], 2)
    return Tensor(weight.reshape(shape))


class LeNet(nn.Cell):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 6, 5, pad_mode="valid", weight_init=sparse((6, 1, 5, 5), 1))
        self.conv2 = nn.Conv2d(6, 16, 5, pad_mode="valid", weight_init=sparse((16, 6, 5, 5), 2))
        self.relu = nn.ReLU()
        self.pool = nn.MaxPool2d(2, 2)
        self.flatten = nn.Flatten()
        self.fc1 = nn.Dense(400, 120, weight_init=sparse((120, 400), 3), bias_init="ones")
        self.fc2 = nn.Dense(120, 84, weight_init=sparse((84, 120), 4), bias_init="ones")
        self.fc3 = nn.Dense(84, 10, weight_init=sparse((10, 84), 5), bias_init="zeros")

    def construct(self, x):
        x = self.pool(self.relu(self.conv1(x)))
        x = self.pool(self.relu(self.conv2(x)))
        x = self.relu(self.fc1(self.flatten(x)))
        return self.fc3(self.relu(self.fc2(x)))


class Weighted(nn.Cell):
    """A loss that is linear in the outputs: the gradients are integers."""

    def construct(self, out, slopes):
        return (out * slopes).sum()


def train(mode, mean=False):
    """One step on this rank's part of the batch: loss, gradients and what the weights are then."""
    ms.set_context(mode=mode)
    init()
    ranks, rank = get_group_size(), get_rank()
    ms.set_auto_parallel_context(parallel_mode="data_parallel", gradients_mean=mean)
    net = LeNet()
    step = nn.TrainOneStepCell(
        nn.WithLossCell(net, Weighted()), nn.Momentum(net.trainable_params(), 0.5, 0.5), return_grad=True
    ).set_train()
    loss, gradients = step(Tensor(IMAGES[rank::ranks]), Tensor(SLOPES[rank::ranks]))
    weights = {each.name: each.asnumpy() for each in net.trainable_params()}
    return loss.asnumpy().item(), {name: value.asnumpy() for name, value in gradients.items()}, weights


def same(found, expected):
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        np.testing.assert_array_equal(found[name], value, err_msg=name)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("ranks", [2, pytest.param(4, marks=pytest.mark.slow), pytest.param(8, marks=pytest.mark.slow)])
def test_lenet_as_on_one_rank(mode, ranks):
    ((loss, gradients, weights),) = launch(train, ranks=1, args=[mode], settings=SETTINGS)
    assert all(value.any() and not (value % 1).any() for value in gradients.values())
    found = launch(train, ranks=ranks, args=[mode], settings=SETTINGS)
    assert sum(each[0] for each in found) == loss
    for each in found:
        same(each[1], gradients)
        same(each[2], weights)


def test_the_mean_divides_by_the_ranks():
    ((_, gradients, _),) = launch(train, ranks=1, args=[ms.GRAPH_MODE], settings=SETTINGS)
    for each in launch(train, ranks=2, args=[ms.GRAPH_MODE, True], settings=SETTINGS):
        same(each[1], {name: value / 2 for name, value in gradients.items()})
