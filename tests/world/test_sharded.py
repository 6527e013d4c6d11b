"""Networks that are split over devices equal the network on one device: losses, weights and optimizer states, exactly.

Inputs and weights are small integers, so that every sum is exact in float32 and its order does not matter.
"""

import numpy as np
import pytest

import dumpsim.frontends.mindspore as ms
from dumpsim.core.settings import RunSettings
from dumpsim.frontends.mindspore import Tensor, nn
from dumpsim.frontends.mindspore.communication import get_group_size, get_rank, init
from dumpsim.frontends.mindspore.ops.operations import MatMul, ReduceSum
from dumpsim.world import launch

SETTINGS = RunSettings(quiet=True, manifest=None)
INPUT = (np.arange(16 * 32).reshape(16, 32) % 7 - 3).astype(np.float32)


class Chain(nn.Cell):
    def __init__(self, first, second, loss):
        super().__init__()
        self.first, self.second = MatMul().shard(first), MatMul().shard(second)
        self.sum = ReduceSum().shard(loss)
        self.w1 = ms.Parameter(Tensor(np.arange(32 * 64).reshape(32, 64) % 5 - 2, ms.float32), name="w1")
        self.w2 = ms.Parameter(Tensor(np.arange(64 * 32).reshape(64, 32) % 3 - 1, ms.float32), name="w2")

    def construct(self, x):
        return self.sum(self.second(self.first(x, self.w1), self.w2))


def train(first, second, loss, **settings):
    """Two steps: losses, parameters, and where the parts of these belong."""
    ms.set_context(mode=ms.GRAPH_MODE)
    init()
    batch = INPUT
    if settings:
        ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", **settings)
        if settings["dataset_strategy"] == "data_parallel":
            rows = len(INPUT) // get_group_size()
            batch = INPUT[get_rank() * rows : (get_rank() + 1) * rows]
    net = Chain(first, second, loss)
    step = nn.TrainOneStepCell(net, nn.Momentum(net.trainable_params(), 0.5, 0.5)).set_train()
    losses = [step(Tensor(batch)).asnumpy().item() for _ in range(2)]
    return (
        losses,
        {p.name: p.asnumpy() for p in step.get_parameters()},
        {p.name: p._layout for p in step.get_parameters()},
    )


CASES = [
    (4, ((2, 1), (1, 2)), ((4, 1), (1, 1)), ((1, 1),), {}),
    (4, ((1, 4), (4, 1)), ((1, 1), (1, 1)), ((4, 1),), {}),
    (4, ((4, 1), (1, 1)), ((1, 4), (4, 1)), ((2, 2),), {}),
    (4, ((1, 1), (1, 4)), ((4, 1), (1, 1)), ((1, 2),), {"enable_alltoall": True}),
    (4, ((1, 1), (1, 4)), ((1, 4), (4, 1)), ((1, 1),), {}),
    (8, ((2, 2), (2, 2)), ((2, 4), (4, 1)), ((8, 1),), {"enable_alltoall": True}),
    (2, ((2, 1), (1, 1)), ((2, 1), (1, 1)), ((2, 1),), {"dataset_strategy": "data_parallel"}),
    (4, ((4, 1), (1, 1)), ((4, 1), (1, 1)), ((4, 1),), {"enable_parallel_optimizer": True}),
    (8, ((4, 1), (1, 2)), ((2, 2), (2, 1)), ((1, 1),), {"enable_parallel_optimizer": True}),
]


@pytest.mark.parametrize("case", CASES)
def test_training_equals_that_of_one_device(case):
    ranks, first, second, loss, given = case
    whole = ((1, 1), (1, 1))
    (expected,) = launch(train, 1, args=[whole, whole, ((1, 1),)], settings=SETTINGS)
    settings = {"dataset_strategy": "full_batch", **given}
    parts = launch(lambda: train(first, second, loss, **settings), ranks, settings=SETTINGS)
    for rank, (losses, weights, layouts) in enumerate(parts):
        assert losses == expected[0]
        for name, value in weights.items():
            place = layouts[name].region(rank) if layouts[name] is not None else ...
            np.testing.assert_array_equal(value, expected[1][name][place], err_msg=f"{name} of rank {rank}")


def test_the_mean_of_gradients_divides_by_the_number_of_replicas():
    strategies = ((4, 1), (1, 1)), ((4, 1), (1, 1)), ((4, 1),)
    total = launch(lambda: train(*strategies, dataset_strategy="full_batch"), 4, settings=SETTINGS)
    mean = launch(lambda: train(*strategies, dataset_strategy="full_batch", gradients_mean=True), 4, settings=SETTINGS)
    moved = [(one[1]["w2"] - Chain(*strategies).w2.asnumpy()) for one in (total[0], mean[0])]
    assert total[0][0][0] == mean[0][0][0]
    assert np.abs(moved[0]).max() > np.abs(moved[1]).max() > 0


def test_a_strategy_that_does_not_fit_is_refused_with_the_vendors_words():
    def main(strategy, text):
        ms.set_context(mode=ms.GRAPH_MODE)
        ms.set_auto_parallel_context(
            parallel_mode="semi_auto_parallel", device_num=4, global_rank=0, dataset_strategy="full_batch"
        )
        with pytest.raises(ValueError, match=text):
            Chain(strategy, ((1, 1), (1, 1)), ((1, 1),))(Tensor(INPUT))

    for strategy, text in [
        (((3, 1), (1, 1)), r"Failure:operator MatMul init failed: 16 cannot be cut into 3 parts"),
        (((1, 2), (1, 1)), r"Failure:operator MatMul init failed: both operands must be cut alike"),
        (((4, 2), (2, 1)), r"it needs 8 of 4 devices"),
        (((4, 1),), r"it has 1 rows for 2 operands"),
    ]:
        launch(main, 1, args=[strategy, text], settings=SETTINGS)
