"""A transformer cut over eight devices equals the transformer on one: losses, gradients, weights, optimizer states.

With integers (see `world.transformer`) every sum is exact, so the two are equal bit for bit; with fractions they differ
by the order of sums.
"""

from dataclasses import replace

import numpy as np
import pytest
from world.transformer import Size, Transformer, Ways, sentences

import dumpsim.frontends.mindspore as ms
from dumpsim.core.settings import RunSettings
from dumpsim.frontends.mindspore import Tensor, nn
from dumpsim.frontends.mindspore.communication import get_rank, init
from dumpsim.world import launch

SETTINGS = RunSettings(quiet=True, manifest=None)
RANKS = 8
SMALL, WHOLE = Size(layers=1, length=4), Size()
OPTIMIZERS = {
    "momentum": lambda weights: nn.Momentum(weights, 1.0, 1.0),
    "adam": lambda weights: nn.Adam(weights, 2.0**-6, eps=1e-3),
}


def train(size, ways, is_integer, optimizer, steps, **settings):
    """Losses, the Parameters after each step with optimizer states among them, and the layouts of these."""
    ms.set_context(mode=ms.GRAPH_MODE)
    init()
    if settings:
        ms.set_auto_parallel_context(**{"parallel_mode": "semi_auto_parallel", **settings})
    if settings.get("parallel_mode") == "data_parallel":  # the network sees its part of the batch alone
        net = Transformer(replace(size, batch=size.batch // RANKS), ways, is_integer=is_integer)
    else:
        net = Transformer(size, ways, is_integer=is_integer)
    step = nn.TrainOneStepCell(net, OPTIMIZERS[optimizer](net.trainable_params())).set_train()
    losses, states = [], []
    for number in range(steps):
        ids, labels = sentences(size, number)
        if "data_parallel" in settings.values() or isinstance(settings.get("dataset_strategy"), tuple):
            count = ways.data if ways.data > 1 else RANKS  # the data set's replicas are the outer dimension of devices
            ids, labels = (np.split(array, count)[get_rank() % count] for array in (ids, labels))
        losses.append(step(Tensor(ids), Tensor(labels)).asnumpy().item())
        states.append({p.name: p.asnumpy() for p in step.get_parameters()})
    return losses, states, {p.name: p._layout for p in step.get_parameters()}


FULL, PARTS = {"dataset_strategy": "full_batch"}, {"dataset_strategy": "data_parallel"}
OPTIMIZER = {
    "enable_parallel_optimizer": True,
    "parallel_optimizer_config": {"parallel_optimizer_threshold": 0},  # KB; small weights are not cut by default
}
CASES = {
    "data": (Ways(8, 1), PARTS),
    "data, whole batch": (Ways(8, 1), FULL),
    "tensor": (Ways(1, 8), FULL),
    "mixed": (Ways(2, 4), FULL),
    "mixed, parts of the batch": (Ways(4, 2, rows=True), {"dataset_strategy": ((4, 1), (4, 1))}),
    "mixed, optimizer": (Ways(2, 4), {**FULL, **OPTIMIZER}),
    "mixed, exchanges": (Ways(2, 4, rows=True), {**FULL, "enable_alltoall": True}),
}


def check(size, ways, settings, optimizer, steps, is_integer=True, **bounds):
    """Compare all ranks with one device; equal bit for bit where no bounds are given."""
    (one,) = launch(train, 1, args=[size, Ways(), is_integer, optimizer, steps], settings=SETTINGS)
    parts = launch(lambda: train(size, ways, is_integer, optimizer, steps, **settings), RANKS, settings=SETTINGS)
    cut = set()
    for rank, (losses, states, layouts) in enumerate(parts):
        np.testing.assert_allclose(losses, one[0], **{"rtol": 0, **bounds})
        for number, (state, wanted) in enumerate(zip(states, one[1], strict=True)):
            assert state.keys() == wanted.keys()
            for name, value in state.items():
                place = layouts[name].region(rank) if layouts[name] is not None else ...
                where = f"{name} of rank {rank} after step {number}"
                np.testing.assert_allclose(value, wanted[name][place], **{"rtol": 0, **bounds}, err_msg=where)
                if value.shape != wanted[name].shape:
                    cut.add(name)
    return cut


@pytest.mark.parametrize("case", ["data", "tensor", "mixed"])
def test_a_small_transformer_is_that_of_one_device(case):
    """One layer; after one step with a rate of 1 the moments are the gradients."""
    cut = check(SMALL, *CASES[case], "momentum", 1)
    assert any(name.startswith("moments.") for name in cut) == (case != "data")


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_a_transformer_of_four_layers_is_that_of_one_device(case):
    """Two steps: the second one sees weights that the first one has moved."""
    ways, settings = CASES[case]
    cut = check(WHOLE, ways, settings, "momentum", 2)
    if ways.model > 1:
        assert {"moments.layers.3.attention.query", "layers.3.up", "layers.3.down", "table", "head"} <= cut


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_the_states_of_adam_are_those_of_one_device(case):
    """One step: the weights are fractions from then on."""
    check(WHOLE, *CASES[case], "adam", 1)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_a_transformer_with_fractions_differs_by_the_order_of_sums(case):
    """LayerNorm, Softmax, GeLU, cross-entropy and Adam; three steps."""
    check(WHOLE, *CASES[case], "adam", 3, is_integer=False, rtol=2e-5, atol=1e-5)


@pytest.mark.slow
def test_the_data_parallel_mode_is_one_device_with_the_whole_batch():
    """The loss there is that of the part, and gradients are summed."""
    (one,) = launch(train, 1, args=[WHOLE, Ways(), True, "momentum", 2], settings=SETTINGS)
    parts = launch(
        lambda: train(WHOLE, Ways(), True, "momentum", 2, parallel_mode="data_parallel"), RANKS, settings=SETTINGS
    )
    np.testing.assert_array_equal(np.sum([losses for losses, _, _ in parts], axis=0), one[0])
    for _, states, _ in parts:
        for state, wanted in zip(states, one[1], strict=True):
            for name, value in state.items():
                np.testing.assert_array_equal(value, wanted[name], err_msg=name)
