"""Very many ranks in lockstep: equal to ranks that run by themselves, in values, weights and dump trees."""

import json
import tracemalloc
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import dumpsim.frontends.mindspore as ms
from dumpsim.core.errors import BadInputError, DeviceError, UnsupportedError
from dumpsim.core.settings import RunSettings
from dumpsim.frontends.mindspore import nn, ops
from dumpsim.frontends.mindspore.communication import get_rank, init
from dumpsim.runtime import stackrun
from dumpsim.runtime.lockstep import Lockstep
from dumpsim.runtime.stack import Stack
from dumpsim.world import current, launch

SETTINGS = RunSettings(quiet=True, manifest=None, seed=3)
STEPS = 2


class Net(nn.Cell):
    """A layer with collectives around it: products, halves, axes, a table, and a weight that each rank has alone."""

    def __init__(self):
        super().__init__()
        draws = np.random.RandomState(1)
        self.weight = ms.Parameter(ms.Tensor(draws.randn(6, 5).astype(np.float32)), name="weight")
        self.bias = ms.Parameter(ms.Tensor(draws.randn(5).astype(np.float32)), name="bias")
        self.own = ms.Parameter(ms.Tensor(np.zeros((4, 5), np.float32)), name="own")
        self.total = ops.AllReduce()
        self.largest = ops.AllReduce(ops.ReduceOp.MAX)
        self.gather = ops.AllGather()
        self.scatter = ops.ReduceScatter()
        self.spread = ops.Broadcast(1)

    def construct(self, x, labels):
        y = ops.bias_add(ops.matmul(x, self.weight), self.bias)
        y = ops.gelu(y) + ops.softmax(y, -1)
        half = ops.cast(y, ms.float16)
        y = y + ops.cast(self.total(half), ms.float32)
        (first,) = self.spread((y,))
        whole = self.gather(ops.reduce_mean(y * first, 1))
        part = self.scatter(whole)
        picked = ops.gather(y, labels, 0)
        ops.assign_add(self.own, y)
        ops.assign(self.bias, self.largest(ops.reduce_sum(picked, 0)))
        return y, part, whole


def build():
    ms.set_context(mode=ms.GRAPH_MODE, device_target="Ascend")
    init()
    net = Net()

    def step(x, labels):
        return [out.asnumpy() for out in net(ms.Tensor(x), ms.Tensor(labels))]

    step.net = net
    return step


def picture(rank, at):
    return np.random.RandomState(100 * at + rank).randn(4, 6).astype(np.float32)


LABELS = np.array([3, 0, 2, 2], np.int32)


def alone():
    step, found = build(), []
    for at in range(STEPS):
        found.append(step(picture(current().rank, at), LABELS))
    return found, {name: p.asnumpy() for name, p in step.net.parameters_dict().items()}


@pytest.fixture
def dump(tmp_path, monkeypatch):
    """Let ranks dump; the function gives the files below the dump's directory."""

    def configure(name, ranks):
        config = tmp_path / f"{name}.json"
        common = {"dump_mode": 0, "path": str(tmp_path / name), "net_name": "Net", "iteration": "all"}
        common |= {"input_output": 0, "kernels": [], "support_device": [0, 1, 2, 3, 4, 5, 6, 7]}
        config.write_text(json.dumps({"common_dump_settings": common, "e2e_dump_settings": {"enable": True}}))
        monkeypatch.setenv("MINDSPORE_DUMP_CONFIG", str(config))
        return tmp_path / name

    return configure


def tree(root: Path):
    return {str(path.relative_to(root)): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


def same(one, other):
    assert one.dtype == other.dtype
    assert one.shape == other.shape
    assert one.tobytes() == other.tobytes()


@pytest.mark.parametrize("group", [1, 3, None])
def test_all_ranks_have_the_bits_that_they_have_by_themselves(group):
    ranks = 8
    expected = launch(alone, ranks=ranks, settings=SETTINGS)
    with Lockstep(build, ranks, settings=SETTINGS, group=group) as job:
        for at in range(STEPS):
            job.step(lambda rank, at=at: picture(rank, at), LABELS)
            for rank in range(ranks):
                for number, wanted in enumerate(expected[rank][0][at]):
                    same(job.output(number, rank), wanted)
        for rank in range(ranks):
            for name, wanted in expected[rank][1].items():
                same(job.weight(name, rank), wanted)
        assert job.is_shared("weight")
        assert job.is_shared("bias")  # written, with what all ranks got
        assert not job.is_shared("own")


class Rounds(nn.Cell):
    """A loop with a branch in it, and a weight in both."""

    def __init__(self):
        super().__init__()
        self.weight = ms.Parameter(ms.Tensor(np.array([0.5, -0.25, 0.75], np.float32)), name="weight")

    def construct(self, x, n):
        y = x * self.weight
        while n > 0:
            if n % 2 == 0:
                y = ops.tanh(y * self.weight) + x
            else:
                y = y * y
            n = n - 1
        return (y * y).sum()


class Slopes(nn.Cell):
    """The gradients of a loop by its input and by a weight, which all ranks add."""

    def __init__(self):
        super().__init__()
        self.net = Rounds()
        self.weights = ms.ParameterTuple(self.net.trainable_params())
        self.slopes = ops.GradOperation(get_all=True, get_by_list=True)
        self.total = ops.AllReduce()

    def construct(self, x, n):
        value = self.net(x, n)
        inputs, weights = self.slopes(self.net, self.weights)(x, n)
        return value, inputs[0], self.total(weights[0])


def build_slopes():
    ms.set_context(mode=ms.GRAPH_MODE, device_target="Ascend")
    init()
    net = Slopes()
    return lambda x, n: [out.asnumpy() for out in net(ms.Tensor(x), ms.Tensor(n))]


@pytest.mark.parametrize("group", [2, None])
def test_loops_and_their_gradients_run_the_rounds_that_the_ranks_agree_on(group):
    """Every round's values are saved for the gradient, and none of another step's are left."""

    def own(rank):
        return np.random.RandomState(rank).randn(2, 3).astype(np.float32)

    counts = [np.array(n, np.int32) for n in (3, 0, 4)]

    def script():
        step = build_slopes()
        return [step(own(current().rank), n) for n in counts]

    expected = launch(script, ranks=3, settings=SETTINGS)
    with Lockstep(build_slopes, 3, settings=SETTINGS, group=group) as job:
        for at, n in enumerate(counts):
            job.step(own, n)
            for rank in range(3):
                for number, wanted in enumerate(expected[rank][at]):
                    same(job.output(number, rank), wanted)


def test_private_formats_and_narrow_numbers_of_the_matrix_unit():
    """Conversions move the values of all ranks; products are computed in half precision."""

    class Product(nn.Cell):
        def construct(self, x, y):
            return ops.matmul(x, y), ops.matmul(x, x.T)

    def build_product():
        ms.set_context(mode=ms.GRAPH_MODE, device_target="Ascend")
        init()
        net = Product()
        return lambda *arguments: [out.asnumpy() for out in net(*map(ms.Tensor, arguments))]

    def own(rank):
        return np.random.RandomState(rank).randn(3, 4).astype(np.float32)

    shared = own(7).T.copy()
    settings = replace(SETTINGS, chip="910A")
    expected = launch(lambda: build_product()(own(current().rank), shared), ranks=3, settings=settings)
    with Lockstep(build_product, 3, settings=settings, group=2) as job:
        job.step(own, shared)
        for rank in range(3):
            for number, wanted in enumerate(expected[rank]):
                same(job.output(number, rank), wanted)
            np.testing.assert_allclose(job.output(0, rank), own(rank) @ shared, rtol=0.01, atol=0.01)


def test_a_mask_as_the_only_argument():
    """The network is captured with a mask of noise."""

    class Count(nn.Cell):
        def construct(self, mask):
            return ops.cast(mask, ms.int32).sum()

    with Lockstep(simple(Count), 3, settings=SETTINGS) as job:
        job.step(lambda rank: np.arange(4) < rank)
        assert [int(job.output(0, rank)) for rank in range(3)] == [0, 1, 2]


def test_arguments_that_the_step_checks_and_passes_in_another_order():
    """The network is captured with finite numbers, which differ between arguments."""

    class Joined(nn.Cell):
        def construct(self, *xs):
            return ops.stack(xs)

    def build_joined():
        ms.set_context(mode=ms.GRAPH_MODE)
        net = Joined()

        def step(*numbers):
            assert np.isfinite(numbers).all()
            return net(*map(ms.Tensor, numbers[::-1])).asnumpy()

        return step

    with Lockstep(build_joined, 2, settings=SETTINGS) as job:
        job.step(*(np.array(at, np.float32) for at in range(20)))
        assert job.output(0, 1).tolist() == list(range(20))[::-1]


class Chosen(nn.Cell):
    """What a mask chooses, and how much of it there is in all ranks."""

    def __init__(self):
        super().__init__()
        self.total = ops.AllReduce()

    def construct(self, mask, x, y):
        return ops.select(mask, x, y), self.total(ops.cast(mask, ms.int32))


def build_chosen():
    ms.set_context(mode=ms.GRAPH_MODE, device_target="Ascend")
    init()
    net = Chosen()
    return lambda *arguments: [out.asnumpy() for out in net(*map(ms.Tensor, arguments))]


def test_arguments_of_several_types_stay_apart():
    ranks, draws = 4, np.random.RandomState(2)
    masks = draws.rand(ranks, 2, 3) < 0.5
    wide = draws.randint(-9, 9, (ranks, 2, 3)).astype(np.int16)
    other = draws.randint(-9, 9, (2, 3)).astype(np.int16)
    with Lockstep(build_chosen, ranks, settings=SETTINGS) as job:
        job.step(lambda rank: masks[rank], lambda rank: wide[rank], other)
        for rank in range(ranks):
            same(job.output(0, rank), np.where(masks[rank], wide[rank], other))
            same(job.output(1, rank), masks.sum(0, dtype=np.int32))


@pytest.mark.parametrize("transport", ["local", "process"])
def test_the_dumps_of_chosen_ranks_are_those_of_a_launch(dump, transport):
    root = dump("launch", 8)
    launch(alone, ranks=8, settings=SETTINGS, transport=transport)
    expected = tree(root)
    root = dump("chosen", 8)
    with Lockstep(build, 8, chosen=[0, 3, 7], settings=SETTINGS) as job:
        for at in range(STEPS):
            job.step(lambda rank, at=at: picture(rank, at), LABELS)
    found = tree(root)
    assert {name.split("/")[0] for name in found} == {"rank_0", "rank_3", "rank_7"}
    assert len(found) > 100
    wanted = {name: data for name, data in expected.items() if name.split("/")[0] in ("rank_0", "rank_3", "rank_7")}
    here, there = (str(root.with_name(name)).encode() for name in ("chosen", "launch"))
    assert found.keys() == wanted.keys()
    for name, data in found.items():
        assert data.replace(here, b"") == wanted[name].replace(there, b""), name


def simple(net):
    def made():
        ms.set_context(mode=ms.GRAPH_MODE)
        init()
        step = net()
        return lambda *arrays: step(*[ms.Tensor(array) for array in arrays]).asnumpy()

    return made


class Sum(nn.Cell):
    def __init__(self):
        super().__init__()
        self.total = ops.AllReduce()

    def construct(self, x):
        return self.total(x * 2)


def test_a_chosen_rank_with_other_tensors_is_refused():
    class Other(Sum):
        def construct(self, x):
            return self.total(x * (2 if get_rank() == 0 else 3))

    job = Lockstep(simple(Other), 4, chosen=[0, 2], settings=SETTINGS)
    with pytest.raises(DeviceError, match="rank 2 brings other values of tensor 0 to AllReduce_hccl_world_group_0"):
        job.step(lambda rank: np.full(3, rank + 1, np.float32))


@pytest.mark.parametrize("apart", [True, False])
def test_random_kernels_draw_what_they_draw_in_ranks_by_themselves(apart):
    class Draw(nn.Cell):
        def __init__(self):
            super().__init__()
            self.draw = ops.Dropout(keep_prob=0.5)

        def construct(self, x):
            return self.draw(x)[0]

    x = np.ones(64, np.float32)

    def script():
        step = simple(Draw)()
        return [step(x) for _ in range(3)]

    expected = launch(script, ranks=2, settings=SETTINGS)
    with Lockstep(simple(Draw), 2, settings=SETTINGS) as job:
        for at in range(3):
            job.step((lambda rank: x) if apart else x)
            for rank in range(2):
                same(job.output(0, rank), expected[rank][at])


def test_differences_between_ranks_are_refused():
    class Rooted(nn.Cell):
        def __init__(self):
            super().__init__()
            self.reduce = ops.Reduce(1)

        def construct(self, x):
            return self.reduce(x)

    class Branches(nn.Cell):
        def construct(self, x):
            if x.sum() > 3:
                return x * 2
            return x

    class Shapes(nn.Cell):
        def construct(self, x):
            return ops.nonzero(x)

    by_rank = lambda rank: np.full(3, rank, np.float32)  # noqa: E731
    for net, text in (
        (Rooted, "Reduce in group 'hccl_world_group': its graph differs between ranks"),
        (Branches, "ranks in lockstep cannot take different branches"),
        (Shapes, "the shape of its result depends on values"),
    ):
        with pytest.raises(UnsupportedError, match=text):
            Lockstep(simple(net), 4, settings=SETTINGS).step(by_rank)
    job = Lockstep(simple(Branches), 4, settings=SETTINGS)
    job.step(lambda rank: np.full(3, rank + 2, np.float32))  # all the same way
    assert job.output(0, 3).tolist() == [10, 10, 10]


def test_bad_input():
    with pytest.raises(BadInputError, match="0 is not a number of ranks"):
        Lockstep(simple(Sum), 0)
    with pytest.raises(BadInputError, match="rank 4 is not in the job"):
        Lockstep(simple(Sum), 4, chosen=[4])
    job = Lockstep(simple(Sum), 4, settings=SETTINGS)
    job.step(np.ones(3, np.float32))
    assert job.output(0, 3).tolist() == [8, 8, 8]
    with pytest.raises(BadInputError, match=r"of rank 2"):
        job.step(lambda rank: np.ones(3 + (rank == 2), np.float32))
    with pytest.raises(BadInputError, match="rank 9 is not in the job"):
        job.output(0, 9)
    with pytest.raises(BadInputError, match="unknown weight"):
        job.weight("weight", 0)


def test_ten_thousand_ranks():
    job = Lockstep(simple(Sum), 10_000, settings=SETTINGS)
    job.step(lambda rank: np.array([rank, 1], np.int32))
    assert job.output(0, 9_999).tolist() == [9_999 * 10_000, 20_000]
    assert job.nbytes == 8  # one sum for all


class Steps(nn.Cell):
    """Collectives of each kind: independent ones, one after another, and operands that are needed later."""

    def __init__(self):
        super().__init__()
        self.own = ms.Parameter(ms.Tensor(np.ones((8, 3), np.float32)), name="own")
        self.total, self.again = ops.AllReduce(), ops.AllReduce(ops.ReduceOp.MIN)
        self.gather, self.scatter = ops.AllGather(), ops.ReduceScatter(ops.ReduceOp.MAX)
        self.spread = ops.Broadcast(2)
        self.swap = ops.AlltoAll(split_count=4, split_dim=0, concat_dim=1)

    def construct(self, x):
        y = x * self.own
        first, second = self.total(y), self.again(x - 3)
        z = self.total(first)  # no kernel between it and its operand
        ops.assign_add(self.own, y)
        parts = self.scatter(ops.cast(y, ms.bfloat16))
        swapped = self.swap(x + second)
        one, two = self.spread((y, x))
        flags = self.gather(x > 0)
        return y + z, ops.cast(parts, ms.float32), swapped, one - two, flags, self.again(self.own)


def steps():
    ms.set_context(mode=ms.GRAPH_MODE)
    init()
    net = Steps()

    def step(x):
        return [out.asnumpy() for out in net(ms.Tensor(x))]

    step.net = net
    return step


def steps_alone():
    step = steps()
    found = [step(table(current().rank, at)) for at in range(STEPS)]
    return found, step.net.own.asnumpy()


def table(rank, at):
    values = np.random.RandomState(50 * at + rank).randn(8, 3).astype(np.float32)
    values[rank] = [0, -0.0, np.inf]
    return values


@pytest.mark.parametrize("group", [1, 3, None])
@pytest.mark.parametrize("order", ["rank", "ring", "tree", "fp32acc", "random:5"])
def test_collectives_of_each_kind(order, group):
    settings = replace(SETTINGS, reduce_order=order)
    expected = launch(steps_alone, ranks=4, settings=settings)
    with Lockstep(steps, 4, settings=settings, group=group, chosen=[1, 3]) as job:
        for at in range(STEPS):
            job.step(lambda rank, at=at: table(rank, at))
            for rank in range(4):
                for number, wanted in enumerate(expected[rank][0][at]):
                    same(job.output(number, rank), wanted)
        for rank in range(4):
            same(job.weight("own", rank), expected[rank][1])


def test_operands_of_a_collective_exist_for_one_group_at_a_time():
    class Sums(nn.Cell):
        def __init__(self):
            super().__init__()
            self.total = ops.AllReduce()

        def construct(self, x):
            y = x * self.total(x)
            return x - self.total(y) * self.total(y * y)

    job = Lockstep(simple(Sums), 1000, settings=SETTINGS, group=50)
    x = Stack([np.ones((1000, 500), np.float32)])
    job.step(x)
    job.step(x)
    tracemalloc.start()
    try:
        job.step(x)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert job.nbytes == x.nbytes
    assert peak < 1.3 * x.nbytes  # the output, and a few groups


def test_only_the_ranks_that_a_broadcast_reads_are_computed(monkeypatch):
    class Spread(nn.Cell):
        def __init__(self):
            super().__init__()
            self.spread = ops.Broadcast(5)

        def construct(self, x):
            (y,) = self.spread((x * 3,))
            return y

    class Picked(Spread):
        def construct(self, x):
            (y,) = self.spread((ops.gather(x, ops.cast(x, ms.int32), 0),))  # an index may stop any rank
            return y

    computed = []
    compute = stackrun.compute_stack

    def spied(engine, definition, operands, attrs, shapes):
        computed.append((definition.name, [int(part[0, 0]) for part in operands[0].parts]))
        return compute(engine, definition, operands, attrs, shapes)

    monkeypatch.setattr(stackrun, "compute_stack", spied)
    for chosen, wanted in (((), [4]), ((9,), [4, 8]), ((8,), [4, 8]), ((5,), [4])):  # the first ranks of the groups
        with Lockstep(simple(Spread), 12, settings=SETTINGS, group=2, chosen=chosen) as job:
            job.step(lambda rank: np.full(3, rank, np.float32))
            assert job.output(0, 11).tolist() == [15, 15, 15]
        assert computed == [("Mul", [first]) for first in wanted]
        computed.clear()
    job = Lockstep(simple(Picked), 12, settings=SETTINGS, group=2)
    with pytest.raises(DeviceError, match="in rank 9"):
        job.step(lambda rank: np.full(3, 7 if rank == 9 else 1, np.float32))


class Picked(nn.Cell):
    """A tensor where the first condition holds and the second does not, else its negative."""

    def construct(self, x, first, second):
        return ops.select(ops.logical_and(first, ops.logical_not(second)), x, -x)


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("shape", [(1,), (2,), ()])
def test_conditions_reach_the_network_in_the_order_of_the_script(shape, turned):
    """A condition has one bit, so that two drawn ones may be equal; they must not be taken for each other."""

    def make():
        ms.set_context(mode=ms.GRAPH_MODE)
        net = Picked()
        turn = (lambda a, b: (b, a)) if turned else (lambda a, b: (a, b))
        return lambda a, x, b: net(ms.Tensor(x), *map(ms.Tensor, turn(a, b)))

    x, one, two = np.full(shape, 3, np.float32), np.full(shape, True), np.full(shape, False)
    with Lockstep(make, 2, settings=SETTINGS) as job:
        job.step(one, x, two)
        assert np.array_equal(job.output(0, 1), -x if turned else x)


def test_more_conditions_than_values_cannot_be_told_apart():
    def make():
        net = nn.ReLU()
        return lambda *conditions: net(ms.Tensor(np.float32([1])))

    with Lockstep(make, 2, settings=SETTINGS) as job, pytest.raises(UnsupportedError, match="too few to tell"):
        job.step(*[np.bool_(True)] * 3)
