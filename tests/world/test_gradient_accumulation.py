"""A batch in parts: a network that is split over devices accumulates the gradients of the parts like one device.

Inputs and weights are small integers and rates are powers of two, so that the sums of the first step are exact.
"""

import re
from functools import partial
from itertools import pairwise

import numpy as np
import pytest

import dumpsim.frontends.mindspore as ms
from dumpsim.core.errors import UnsupportedError
from dumpsim.core.settings import RunSettings
from dumpsim.frontends.mindspore import Tensor, nn
from dumpsim.frontends.mindspore.amp import DynamicLossScaleManager, build_train_network
from dumpsim.frontends.mindspore.communication import get_rank, init
from dumpsim.frontends.mindspore.ops import operations as ops
from dumpsim.frontends.mindspore.parallel.nn import GradAccumulation
from dumpsim.runtime.session import Session
from dumpsim.world import launch

SETTINGS = RunSettings(quiet=True, manifest=None)
INPUT = (np.arange(16 * 32).reshape(16, 32) % 7 - 3).astype(np.float32)
WHOLE = ((1, 1), (1, 1)), ((1, 1), (1, 1))


class Net(nn.Cell):
    """Two products, of which the second weight is used twice."""

    def __init__(self, first, second):
        super().__init__()
        self.first, self.second = ops.MatMul().shard(first), ops.MatMul().shard(second)
        self.again = ops.MatMul().shard(second)
        self.sum = ops.ReduceSum().shard(((1, 1),))
        self.w1 = ms.Parameter(Tensor(np.arange(32 * 64).reshape(32, 64) % 5 - 2, ms.float32), name="w1")
        self.w2 = ms.Parameter(Tensor(np.arange(64 * 64).reshape(64, 64) % 3 - 1, ms.float32), name="w2")

    def construct(self, x):
        return self.sum(self.again(self.second(self.first(x, self.w1), self.w2), self.w2))


def train(strategies, parts, *, cell=nn.GradAccumulationCell, steps=2, **settings):
    """Losses of some steps, and all Parameters with their layouts."""
    ms.set_context(mode=ms.GRAPH_MODE)
    init()
    batch = INPUT
    if settings:
        ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", **settings)
        if settings["dataset_strategy"] == "data_parallel":
            batch = np.split(INPUT, 4)[get_rank()]
    net = Net(*strategies)
    optimizer = nn.Momentum(net.trainable_params(), 2.0**-8, 0.5)
    if settings:
        step = build_train_network(cell(net, parts), optimizer)
    else:
        step = nn.TrainOneStepCell(net, optimizer, 1 / parts).set_train()
    losses, states = [], []
    for _ in range(steps):
        losses.append(step(Tensor(batch)).asnumpy().item())
        states.append({p.name: (p.asnumpy(), p._layout) for p in step.get_parameters()})
    return losses, states


SMALL = {"parallel_optimizer_config": {"parallel_optimizer_threshold": 0}}
CASES = {
    "mirrors": (((2, 1), (1, 2)), ((2, 2), (2, 1)), 2, {}),
    "cut whole": (((1, 4), (4, 1)), ((4, 1), (1, 1)), 4, {}),
    "means": (((4, 1), (1, 1)), ((4, 1), (1, 1)), 2, {"gradients_mean": True}),
    "parts of the batch": (((4, 1), (1, 1)), ((4, 1), (1, 1)), 2, {"dataset_strategy": "data_parallel"}),
    "optimizer": (((4, 1), (1, 1)), ((2, 1), (1, 2)), 4, {"enable_parallel_optimizer": True, **SMALL}),
    "optimizer, nothing cut": (((4, 1), (1, 1)), ((2, 1), (1, 2)), 2, {"enable_parallel_optimizer": True}),
    "exchanges": (((1, 1), (1, 4)), ((4, 1), (1, 1)), 2, {"enable_alltoall": True}),
}


@pytest.mark.parametrize("case", CASES)
def test_accumulated_gradients_are_those_of_one_device(case):
    first, second, count, given = CASES[case]
    (one,) = launch(train, 1, args=[WHOLE, count], settings=SETTINGS)
    settings = {"dataset_strategy": "full_batch", **given}
    ranks = launch(lambda: train((first, second), count, **settings), 4, settings=SETTINGS)
    cut = set()
    for rank, (losses, states) in enumerate(ranks):
        for step, state in enumerate(states[:1] if case == "means" else states):
            bound = 1e-4 if step else 0  # weights are fractions from then on
            np.testing.assert_allclose(losses[step], one[0][step], rtol=bound)
            for name, (value, layout) in state.items():
                if name.startswith("accu_grads."):
                    assert not value.any(), f"{name} is cleared after each step"
                    continue
                whole = one[1][step][name][0]
                if case == "means":
                    continue
                wanted = whole[layout.region(rank) if layout is not None else ...]
                np.testing.assert_allclose(
                    value, wanted, rtol=bound, atol=bound * np.abs(whole).max(), err_msg=f"{name} of rank {rank}"
                )
                cut |= {name} if value.shape != whole.shape else set()
    assert ("moments.w1" in cut) == (case in ("mirrors", "cut whole", "optimizer", "exchanges"))


def test_a_part_begins_after_the_backward_pass_of_the_part_before():
    """At least the gradients on the way to the first product's weight have been computed: of three products."""

    def order():
        train((((2, 1), (1, 2)), ((2, 2), (2, 1))), 4, steps=1, dataset_strategy="full_batch")
        graphs = [graph for one in Session.current().executors() for graph in one.program.kernel_graphs]
        return [node.full_name for graph in graphs for node in graph.order]

    for names in launch(order, 4, settings=SETTINGS):
        starts = [at for at, name in enumerate(names) if re.match(r"Default/.*-_MicroBatch/StridedSlice", name)]
        assert [names[at].partition("CellList/")[2][0] for at in starts] == ["0", "1", "2", "3"]
        for one, two in pairwise(starts):
            assert sum("Grad_MatMul/MatMul" in name for name in names[one:two]) >= 3


def test_the_mean_of_accumulated_gradients_divides_by_the_number_of_replicas():
    strategies = ((4, 1), (1, 1)), ((4, 1), (1, 1))

    def moments(mean):
        """The gradient of the second weight."""
        main = partial(train, strategies, 2, steps=1, dataset_strategy="full_batch", gradients_mean=mean)
        return launch(main, 4, settings=SETTINGS)[0][1][0]["moments.w2"][0]

    assert moments(mean=True).any()
    np.testing.assert_array_equal(moments(mean=False), 4 * moments(mean=True))


def test_the_cell_of_the_parallel_package_does_the_same():
    strategies = ((2, 1), (1, 2)), ((2, 2), (2, 1))
    mains = [
        partial(train, strategies, 2, cell=cell, dataset_strategy="full_batch")
        for cell in (nn.GradAccumulationCell, GradAccumulation)
    ]
    found = [launch(main, 4, settings=SETTINGS)[3] for main in mains]
    assert found[0][0] == found[1][0]
    assert set(found[0][1][0]) == set(found[1][1][0]) >= {"accu_grads.w1", "moments.w2"}


def test_what_is_refused():
    def evaluate():
        ms.set_context(mode=ms.GRAPH_MODE)
        ms.set_auto_parallel_context(
            parallel_mode="semi_auto_parallel", device_num=4, global_rank=0, dataset_strategy="full_batch"
        )
        net = Net(*WHOLE)
        with pytest.raises(RuntimeError, match="Current not support predict with grad_accu"):
            nn.GradAccumulationCell(net, 2)(Tensor(INPUT))
        with pytest.raises(ValueError, match=r"shape of input\(16\) must be divided by micro size\(3\)"):
            nn.GradAccumulationCell(net, 3)(Tensor(INPUT))
        with pytest.raises(ValueError, match=r"The interface is deprecated\. To use gradient accumulation"):
            ms.set_auto_parallel_context(grad_accumulation_step=2)
        ms.set_context(device_target="Ascend")
        with pytest.raises(UnsupportedError, match="accumulated gradients with a dynamic loss scale"):
            build_train_network(
                nn.GradAccumulationCell(net, 2),
                nn.Momentum(net.trainable_params(), 0.5, 0.5),
                loss_scale_manager=DynamicLossScaleManager(),
            )

    launch(evaluate, 1, settings=SETTINGS)
    for config, text in [
        ({"threshold": 1}, r"Unknown config: \['threshold'\]"),
        ({"parallel_optimizer_threshold": -1}, "must be int and must >= 0"),
        ({"optimizer_level": "level4"}, "Optimizer level should in"),
        ({"optimizer_level": "level2"}, "gradient_accumulation_shard and optimizer_level above level1"),
        ({"optimizer_weight_shard_size": 2}, "optimizer_weight_shard_size=2 is not emulated"),
    ]:
        with pytest.raises((ValueError, UnsupportedError), match=text):
            ms.set_auto_parallel_context(parallel_optimizer_config=config)
    ms.reset_auto_parallel_context()
    with pytest.raises(ValueError, match="must be large than 0, but got 0"):
        nn.GradAccumulationCell(nn.ReLU(), 0)
    with pytest.raises(TypeError, match="must cell type"):
        nn.GradAccumulationCell(abs, 2)
