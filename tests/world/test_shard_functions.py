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


@pytest.mark.parametrize(
    ("row", "plan", "cuts"),
    [
        (((2, 2),), None, (2, 1)),
        (((2, 2),), {"self.block.weight": (4, 1)}, (4, 1)),
        (((4, 1),), {"block.weight": Layout((2, 2), ("a", "b"))("b", "a")}, (2, 2)),
        (((2, 2),), {"self.weight": (1, 4)}, (2, 1)),  # no Parameter has this name
    ],
)
def test_a_cell_with_a_plan_is_cut_wherever_it_is_called(row, plan, cuts):
    """[recorded: the marker after the Parameter has its row; where a name is unknown, the plan is ignored]"""

    class Outer(nn.Cell):
        def __init__(self):
            super().__init__()
            self.block = Product()
            self.block.shard(row, parameter_plan=plan)

        def construct(self, x):
            return self.block(x)

    assert run(Outer, parallel_mode="semi_auto_parallel").cuts == cuts


def test_a_planned_weight_is_trained_as_on_one_device():
    def main(mode):
        ms.set_context(mode=ms.GRAPH_MODE)
        init()
        if mode:
            ms.set_auto_parallel_context(parallel_mode=mode, dataset_strategy="full_batch")
        net = Product()
        net.shard(((4, 1),), parameter_plan={"weight": (2, 1)})
        step = nn.TrainOneStepCell(net, nn.Momentum(net.trainable_params(), 0.5, 0.5), sens=1.0)
        loss = step(Tensor(INPUT)).asnumpy()
        return loss, net.weight.asnumpy(), net.weight._layout

    ((loss, weight, _),) = launch(main, 1, args=[""], settings=SETTINGS)
    for rank, (found, part, layout) in enumerate(launch(main, 4, args=["semi_auto_parallel"], settings=SETTINGS)):
        np.testing.assert_array_equal(part, weight[layout.region(rank)])
        assert layout.cuts == (2, 1)
        assert found.shape[-1] == loss.shape[-1]


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ({"in_strategy": [(1, 2)]}, "For 'Shard', the 'in_strategy' should be a tuple, but got list"),
        ({"in_strategy": (None,)}, r"should be a tuple\(tuple\(int\)\) or tuple\(mindspore.parallel.Layout\), but got"),
        ({"in_strategy": ((1, "a"),)}, "The tuple strategy for each dimension should be tuple"),
        ({"in_strategy": ((1, 1), Layout((2,), ("a",))("a"))}, "can only pass in consistent type for all dimensions"),
        ({"in_strategy": ((1, 1),), "parameter_plan": [1]}, "'parameter_plan' should be a dict or None, but got list"),
        ({"in_strategy": ((1, 1),), "parameter_plan": {"w": 1}}, "must be str and tuple/Layout, but got str and int"),
        ({"in_strategy": ((1, 1),), "parameter_plan": {"weight": (1,)}}, "is not equal to param_shape len: 2"),
        ({"in_strategy": ((1, 1),), "parameter_plan": {"weight": (3, 1)}}, "32 cannot be divisible by param_strategy"),
    ],
)
def test_strategies_of_cells_that_are_refused(words, text):
    with pytest.raises((TypeError, ValueError), match=text):
        shard(Product(), **words)


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
        AutoParallel(Product()).hsdp()
        for other in ({"shard_size": 2}, {"optimizer_level": "level2"}):
            with pytest.raises(UnsupportedError, match="another shard_size or optimizer_level is not emulated"):
                AutoParallel(Product()).hsdp(**other)

    launch(search, 2, settings=SETTINGS)
