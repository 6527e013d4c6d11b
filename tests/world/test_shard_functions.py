"""Layouts with names, strategies of cells and functions, propagation and AutoParallel, against one device."""

import numpy as np
import pytest

import dumpsim.frontends.mindspore as ms
from dumpsim.core.errors import UnsupportedError
from dumpsim.core.settings import RunSettings
from dumpsim.frontends.mindspore import Tensor, nn, ops
from dumpsim.frontends.mindspore.communication import init
from dumpsim.frontends.mindspore.ops.operations import MatMul
from dumpsim.frontends.mindspore.parallel import Layout, shard
from dumpsim.frontends.mindspore.parallel.auto_parallel import AutoParallel
from dumpsim.world import launch

SETTINGS = RunSettings(quiet=True, manifest=None)
INPUT = (np.arange(16 * 32).reshape(16, 32) % 7 - 3).astype(np.float32)
WEIGHT = (np.arange(32 * 8).reshape(32, 8) % 5 - 2).astype(np.float32)


class Product(nn.Cell):
    def __init__(self, *strategies):
        super().__init__()
        self.matmul = MatMul().shard(strategies) if strategies else MatMul()
        self.weight = ms.Parameter(Tensor(WEIGHT), name="weight")

    def construct(self, x):
        return ops.relu(self.matmul(x, self.weight) + 1)


EXPECTED = np.maximum(INPUT @ WEIGHT + 1, 0)


def run(make, **settings):
    """The result of a network on each of four ranks, and the layout of its weight."""

    def main():
        ms.set_context(mode=ms.GRAPH_MODE)
        init()
        if settings:
            ms.set_auto_parallel_context(dataset_strategy="full_batch", **settings)
        net = make()
        result = net(Tensor(INPUT)).asnumpy()
        return result, next(iter(net.get_parameters()))._layout

    results = launch(main, 4, settings=SETTINGS)
    for result, _ in results:
        np.testing.assert_array_equal(result, EXPECTED)
    return results[0][1]


def test_layouts_with_names():
    layout = Layout((2, 2), ("rows", "columns"))
    found = run(
        lambda: Product(layout("rows", "columns"), layout("columns", "None")), parallel_mode="semi_auto_parallel"
    )
    assert found.cuts == (2, 1)
    found = run(
        lambda: Product(layout("None", ("rows", "columns")), layout(("rows", "columns"), "None")),
        parallel_mode="semi_auto_parallel",
    )
    assert (found.cuts, found.tensor_map[0]) == ((4, 1), (1, 0))


def test_a_layout_that_does_not_fit_is_refused():
    layout = Layout((2, 2), ("rows", "columns"))

    def main():
        ms.set_context(mode=ms.GRAPH_MODE)
        ms.set_auto_parallel_context(
            parallel_mode="semi_auto_parallel", device_num=4, global_rank=0, dataset_strategy="full_batch"
        )
        with pytest.raises(ValueError, match="axes that belong together must be cut by the same device dimensions"):
            Product(layout("None", "rows"), layout("columns", "None"))(Tensor(INPUT))

    launch(main, 1, settings=SETTINGS)
    with pytest.raises(ValueError, match="The axis rows has been set more than one"):
        layout("rows", "rows")


def test_strategies_of_the_first_operator_propagate():
    settings = {"parallel_mode": "auto_parallel", "search_mode": "sharding_propagation"}

    class Chain(Product):
        def construct(self, x):
            return super().construct(self.first(x, Tensor(np.zeros_like(INPUT))))

        def __init__(self):
            super().__init__()
            self.first = ops.operations.Add().shard(((1, 4), (1, 4)))

    assert run(Chain, **settings).cuts == (4, 1)  # as its operand along the axis that is summed


def test_a_cell_whose_argument_has_a_strategy():
    class Outer(nn.Cell):
        def __init__(self):
            super().__init__()
            self.product = Product()
            self.sharded = self.product.shard(in_strategy=((2, 2),))

        def construct(self, x):
            return self.sharded(x)

    assert run(Outer, parallel_mode="semi_auto_parallel").cuts == (2, 1)
    assert run(Outer) is None  # strategies are ignored elsewhere


def test_a_function_whose_argument_has_a_strategy():
    class Outer(Product):
        def construct(self, x):
            return super().construct(shard(lambda value: value * 1, in_strategy=((4, 1),))(x))

    assert run(Outer, parallel_mode="semi_auto_parallel").cuts == (1, 1)


def test_a_network_with_settings_of_its_own():
    def make():
        net = AutoParallel(Product((1, 4), (4, 1)), "semi_auto")
        net.dataset_strategy("full_batch")
        return net

    assert run(make).cuts == (4, 1)

    def search():
        ms.set_context(mode=ms.GRAPH_MODE)
        init()
        with pytest.raises(UnsupportedError, match="search of strategies"):
            AutoParallel(Product(), "recursive_programming")(Tensor(INPUT))

    launch(search, 2, settings=SETTINGS)
