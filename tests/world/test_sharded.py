"""Networks that are split over devices equal the network on one device: losses, weights and optimizer states, exactly.

Inputs and weights are small integers, so that every sum is exact in float32 and its order does not matter.
"""

import numpy as np
import pytest

import dumpsim.frontends.mindspore as ms
from dumpsim.core.settings import RunSettings
from dumpsim.frontends.mindspore import Tensor, nn
from dumpsim.frontends.mindspore.communication import get_group_size, get_rank, init
from dumpsim.frontends.mindspore.ops import operations as ops
from dumpsim.frontends.mindspore.ops.operations import MatMul, ReduceSum
from dumpsim.frontends.mindspore.parallel import Layout
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
    """Train two steps; return losses, parameters and their layouts."""
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


# weights of less than 64 KB are not cut by default
SMALL = {"parallel_optimizer_config": {"parallel_optimizer_threshold": 0}}
CASES = [
    (4, ((2, 1), (1, 2)), ((4, 1), (1, 1)), ((1, 1),), {}),
    (4, ((1, 4), (4, 1)), ((1, 1), (1, 1)), ((4, 1),), {}),
    (4, ((4, 1), (1, 1)), ((1, 4), (4, 1)), ((2, 2),), {}),
    (4, ((1, 1), (1, 4)), ((4, 1), (1, 1)), ((1, 2),), {"enable_alltoall": True}),
    (4, ((1, 1), (1, 4)), ((1, 4), (4, 1)), ((1, 1),), {}),
    (8, ((2, 2), (2, 2)), ((2, 4), (4, 1)), ((8, 1),), {"enable_alltoall": True}),
    (2, ((2, 1), (1, 1)), ((2, 1), (1, 1)), ((2, 1),), {"dataset_strategy": "data_parallel"}),
    (4, ((4, 1), (1, 1)), ((4, 1), (1, 1)), ((4, 1),), {"enable_parallel_optimizer": True, **SMALL}),
    (4, ((2, 2), (2, 2)), ((2, 2), (2, 2)), ((2, 2),), {}),  # both operands are gathered
    (4, ((4, 1), (4, 1)), ((1, 4), (1, 4)), ((1, 1),), {}),
    (8, ((4, 1), (1, 2)), ((2, 2), (2, 1)), ((1, 1),), {"enable_parallel_optimizer": True, **SMALL}),
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
        with pytest.raises(RuntimeError, match=text):
            Chain(strategy, ((1, 1), (1, 1)), ((1, 1),))(Tensor(INPUT))

    for strategy, text in [
        (
            ((3, 1), (1, 1)),
            r"Failure:operator MatMul init failed: Input index 0, the strategy is \(\(3, 1\), \(1, 1\)\), shape is "
            r"\[16, 32\], shape value 16 at dim index 0 cannot be divisible by strategy value 3",
        ),
        (
            ((1, 2), (1, 1)),
            r"init failed: Invalid strategy for mat_a \[1, 2\] and mat_b \[1, 1\]\. The transpose_a is: 0, and "
            r"transpose_b is 0, the shard num of first input's column is 2, but the shard num of second input's row is",
        ),
        (
            ((4, 2), (2, 1)),
            r"The strategy is \(\(4, 2\), \(2, 1\)\), it requires 8 devices, but the device number of this stage is 4, "
            r"it can not be divisible by 8",
        ),
        (((4, 1),), r"The strategy is \(\(4, 1\),\), strategy size: 1 is not equal to inputs size: 2"),
        (((4, 1, 1), (1, 1)), r"strategy len: 3 is not equal to inputs len: 2, index: 0"),
        (((4, 0), (1, 1)), r"the value of strategy must be larger than 0, but get 0"),
    ]:
        launch(main, 1, args=[strategy, text], settings=SETTINGS)


def test_strategies_are_checked_as_they_are_given():
    layout = Layout((2, 2), ("rows", "columns"))
    relu = ops.ReLU()
    for given, kind, text in [
        (
            ((2, 1.0),),
            TypeError,
            r"The in_strategy: \(\(2, 1\.0\),\) of ReLU is not valid, the value of strategy must be",
        ),
        (([2, 1],), TypeError, "The element of strategy must be tuple/Layout type, but got:<class 'list'>"),
        ((layout("rows", "None"), (2, 1)), TypeError, "item should be a object of class Layout"),
    ]:
        with pytest.raises(kind, match=text):
            relu.shard(given)
    with pytest.raises(
        ValueError, match=r"The out_strategy of ReLU is \(\(2, 1\),\), need to set in_strategy, but got"
    ):
        relu.shard(None, ((2, 1),))
    with pytest.raises(ValueError, match="The in_strategy type must equal to the out_strategy type"):
        relu.shard(((2, 1),), (layout("rows", "None"),))


SLICES = {
    "x[0, 0]": (1, 1), "x[0]": (1, 1), "x[:, 3]": (2, 1), "x[0:8]": (1, 1), "x[:, 0:8]": (2, 1), "x[2:10:2]": (1, 1),
    "x[None, 0]": None, "x[..., 2]": None, "x[-1]": None,
}  # fmt: skip


@pytest.mark.parametrize("text", SLICES)
def test_slices_without_a_strategy_are_cut_where_they_take_rows_whole(text):
    """The strategies are those that the real 2.10 generates."""

    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.product = MatMul().shard(((2, 1), (1, 1)))
            self.relu = ops.ReLU()

        def construct(self, x, y):
            x = self.product(x, y)
            if text == "x[0, 0]":
                x = x[0, 0]
            elif text == "x[0]":
                x = x[0]
            elif text == "x[:, 3]":
                x = x[:, 3]
            elif text == "x[0:8]":
                x = x[0:8]
            elif text == "x[:, 0:8]":
                x = x[:, 0:8]
            elif text == "x[2:10:2]":
                x = x[2:10:2]
            elif text == "x[None, 0]":
                x = x[None, 0]
            elif text == "x[..., 2]":
                x = x[..., 2]
            else:
                x = x[-1]
            return self.relu(x)

    def main():
        ms.set_context(mode=ms.GRAPH_MODE)
        init()
        ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", dataset_strategy="full_batch")
        net = Net()
        result = net(Tensor(INPUT), Tensor(INPUT.T)).asnumpy()
        (found,) = net.__dict__["_programs"].values()
        strategies = found.program.sharding.strategies_by_name
        return result, [rows[0] for name, rows in strategies.items() if "StridedSlice" in name]

    expected = eval(text, {"x": np.maximum(INPUT @ INPUT.T, 0)})
    for result, strategies in launch(main, 2, settings=SETTINGS):
        np.testing.assert_array_equal(result, expected)
        if SLICES[text] is not None:
            assert strategies == [SLICES[text]]


def test_the_hybrid_mode_leaves_collectives_to_the_script():
    class Summed(nn.Cell):
        def __init__(self):
            super().__init__()
            self.reduce = ops.AllReduce()
            self.weight = ms.Parameter(Tensor(np.full(4, get_rank() + 1, np.float32)), name="weight")

        def construct(self, x):
            return self.reduce(x * self.weight)

    def main():
        ms.set_context(mode=ms.GRAPH_MODE)
        init()
        ms.set_auto_parallel_context(parallel_mode="hybrid_parallel", device_num=2)
        return Summed()(Tensor(np.arange(4, dtype=np.float32))).asnumpy()

    for result in launch(main, 2, settings=SETTINGS):
        np.testing.assert_array_equal(result, 3 * np.arange(4))
