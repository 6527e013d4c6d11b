"""Ranks of one world: equal networks share a program, a plan and unwritten weights, and nothing else."""

import numpy as np
import pytest

from dumpsim.core.settings import RunSettings
from dumpsim.frontends import mindspore as ms
from dumpsim.frontends.mindspore import Parameter, Tensor, nn, ops
from dumpsim.runtime.session import Session
from dumpsim.runtime.storage import Replicas
from dumpsim.world.context import RankContext, World, current

X = np.arange(12, dtype=np.float32).reshape(3, 4)


class Net(nn.Cell):
    def __init__(self, width=2, value=0.5):
        super().__init__()
        self.fc = nn.Dense(4, width, weight_init=value, bias_init="ones")
        self.seen = Parameter(Tensor(np.zeros(1, np.float32)), name="seen")

    def construct(self, x):
        ops.assign_add(self.seen, Tensor(np.ones(1, np.float32)))
        return self.fc(x)


@pytest.fixture
def ranks():
    """Calls a function in each rank of a world with three, one after the other."""
    world = World(ranks=3)
    environment = {"DUMPSIM_RUN": RunSettings().to_text()}
    contexts = [
        RankContext(rank=rank, size=3, device_id=rank, environment=environment, world=world) for rank in range(3)
    ]

    def each(function, *more):
        return [context.run(function, *given) for context, *given in zip(contexts, *more, strict=False)]

    each.world = world
    yield each
    for context in contexts:
        context.close()


def built(net=Net, **settings):
    ms.set_context(mode=ms.GRAPH_MODE, device_target="Ascend", **settings)
    net = net()
    return net, net(Tensor(X)).asnumpy()


def programs():
    return [executor.program for executor in Session.current().executors()]


def plans():
    return [graph.plan for executor in Session.current().executors() for graph in executor.graphs]


@pytest.mark.parametrize("level", ["O0", "O2"])
def test_ranks_that_build_the_same_network_share_its_program_and_its_plan(ranks, level):
    found = ranks(lambda: (*built(jit_level=level), programs(), plans(), Session.current().ids.state()))
    (_, first, (program,), (plan,), ids), *others = found
    for _, out, theirs, their_plans, their_ids in others:
        assert theirs == [program]
        assert their_plans == [plan]
        assert their_ids == ids
        assert out.tobytes() == first.tobytes()


def test_other_networks_options_and_counters_have_programs_of_their_own(ranks):
    cases = [lambda: built(), lambda: built(lambda: Net(width=3)), lambda: built(jit_level="O2")]
    found = ranks(lambda case: (case(), programs())[1], cases)
    assert len({id(program) for (program,) in found}) == 3
    again = ranks(lambda: (built(), programs()[1].kernel_graphs[0].graph_id)[1])
    assert again == [1, 1, 1]


def test_each_rank_has_its_own_weights_in_a_shared_program(ranks):
    nets = [net for net, _ in ranks(built)]

    def step(net, times):
        for _ in range(times):
            net(Tensor(X))
        return net.seen.asnumpy().tolist()

    assert ranks(step, nets, (0, 1, 3)) == [[1], [2], [4]]
    ranks(lambda net: net.fc.weight.set_data(Tensor(np.zeros((2, 4), np.float32))), nets[:1])
    zeros = ranks(lambda net: net(Tensor(X)).asnumpy(), nets)
    assert zeros[0].tolist() == np.ones((3, 2)).tolist()
    assert zeros[1].tobytes() == zeros[2].tobytes() != zeros[0].tobytes()


def test_a_network_made_before_the_launch_has_a_value_in_each_rank(ranks):
    net = Net()

    def step(times):
        ms.set_context(mode=ms.GRAPH_MODE, device_target="Ascend")
        for _ in range(times):
            net(Tensor(X))
        return net.seen.asnumpy().tolist()

    assert ranks(step, (1, 1, 1)) == [[1], [1], [1]]
    assert ranks(step, (0, 1, 2)) == [[1], [2], [3]]
    assert net.seen.asnumpy().tolist() == [0]  # the main thread never ran it


def test_operators_of_pynative_write_the_rank_s_own_weights(ranks):
    net = Net()

    def step(times):
        ms.set_context(mode=ms.PYNATIVE_MODE, device_target="Ascend")
        for _ in range(times):
            net(Tensor(X))
        return net.seen.asnumpy().tolist()

    assert ranks(step, (1, 2, 3)) == [[1], [2], [3]]
    assert net.seen.asnumpy().tolist() == [0]


def weights():
    """The rank's weight buffers by name."""
    return {b.owner: b for b in Session.current().device.memory.blocks() if b.kind == "weight"}


def test_replicas_share_their_bytes_until_one_of_them_is_written(ranks):
    nets = [net for net, _ in ranks(built)]
    buffers = ranks(weights)
    assert buffers[0]["fc.weight"].shared is not None
    assert buffers[0]["fc.weight"].shared is buffers[1]["fc.weight"].shared is buffers[2]["fc.weight"].shared
    assert all(each["seen"].shared is None for each in buffers)  # the kernel has written it
    assert len({each["fc.weight"].address for each in buffers}) == 1

    def read(net):
        return net.fc.weight.asnumpy().tolist()

    assert ranks(read, nets) == [[[0.5] * 4] * 2] * 3

    def overwrite():
        buffer = weights()["fc.weight"]
        buffer.memory.write(buffer.address, np.zeros(4, np.uint8))

    ranks(overwrite, ())  # on no rank
    current_rank = ranks(lambda do: overwrite() if do else None, (False, True, False))
    assert current_rank == [None] * 3
    assert [each["fc.weight"].shared is None for each in buffers] == [False, True, False]
    after = ranks(read, nets)
    assert after[0] == after[2] == [[0.5] * 4] * 2
    assert after[1][0] == [0, 0.5, 0.5, 0.5]


class Sum(nn.Cell):
    def __init__(self, dtype):
        super().__init__()
        self.weight = Parameter(Tensor(np.ones(6, dtype)), name="weight")

    def construct(self, x):
        return x + self.weight


@pytest.mark.parametrize("dtype", ["int8", "uint8", "float16", "int32", "float64"])
def test_weights_of_each_number_type_share_their_bytes(ranks, dtype):
    def run():
        ms.set_context(mode=ms.GRAPH_MODE, device_target="Ascend")
        return Sum(dtype), Sum(dtype)(Tensor(np.full(6, 2, dtype))).asnumpy()

    assert [out.tolist() for _, out in ranks(run)] == [[3] * 6] * 3
    first, *others = (each["weight"].shared for each in ranks(weights))
    assert first is not None
    assert all(other is first for other in others)


def test_an_operator_of_pynative_takes_its_own_bytes_of_a_shared_weight(ranks):
    nets = [net for net, _ in ranks(built)]

    def update(net):
        ms.set_context(mode=ms.PYNATIVE_MODE)
        ops.assign_add(net.fc.weight, Tensor(np.full((2, 4), current().rank, np.float32)))
        ms.set_context(mode=ms.GRAPH_MODE)
        return net(Tensor(X)).asnumpy(), net.fc.weight.asnumpy()

    for rank, (out, weight) in enumerate(ranks(update, nets)):
        assert weight.tolist() == [[0.5 + rank] * 4] * 2
        np.testing.assert_array_equal(out, X @ weight.T + 1)


def test_a_program_is_saved_by_each_rank_that_shares_it(ranks, tmp_path):
    def run(rank):
        ms.set_context(save_graphs=True, save_graphs_path=str(tmp_path / f"rank_{rank}"))
        return built()

    ranks(run, range(3))
    trees = [
        {path.name: path.read_bytes() for path in sorted((tmp_path / f"rank_{rank}").rglob("*.ir"))}
        for rank in range(3)
    ]
    assert trees[0]
    assert trees[0] == trees[1] == trees[2]


def test_unused_contents_are_dropped():
    replicas = Replicas()
    one = replicas.share(np.ones(4, np.uint8))
    assert replicas.share(np.ones(4, np.uint8)) is one
    del one
    assert len(replicas._known) == 0
