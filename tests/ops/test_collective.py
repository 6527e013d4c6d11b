"""Collectives in graphs and PYNATIVE: values and gradients against those of the whole data, and what is refused."""

from types import SimpleNamespace

import numpy as np
import pytest

from dumpsim.core.abstract import TensorType
from dumpsim.core.dtype import dtype
from dumpsim.core.errors import ScriptRuntimeError, ScriptTypeError, ScriptValueError, UnsupportedError
from dumpsim.frontends import mindspore as ms
from dumpsim.frontends.mindspore import Parameter, Tensor, nn, ops
from dumpsim.frontends.mindspore._capture.dispatch import call
from dumpsim.ops.table import find
from dumpsim.runtime.session import Session
from dumpsim.world import current, launch

SIZE = 4
MODES = ["pynative", "O0", "O2", "CPU"]


def part(rank, shape=(4, 8)):
    return np.random.default_rng(rank).integers(-3, 4, shape).astype(np.float32)


def choose(mode):
    target = "CPU" if mode == "CPU" else "Ascend"
    graph = ms.PYNATIVE_MODE if mode == "pynative" else ms.GRAPH_MODE
    ms.set_context(mode=graph, device_target=target)
    if mode.startswith("O"):
        ms.set_context(jit_config={"jit_level": mode})


class Net(nn.Cell):
    """A collective between two operators; the weights make the loss of a rank depend on every element."""

    def __init__(self, op, attrs, weight, *more):
        super().__init__()
        self.op, self.attrs, self.weight, self.more = op, attrs, weight, more

    def construct(self, x):
        x = x * 2
        out = call(self.op, [(x,) if self.op in ("Broadcast",) else x, *self.more], self.attrs)
        if isinstance(out, tuple):
            out = out[0]
        return (out * self.weight).sum()


def slopes(mode, op, weights, attrs=lambda rank: {}, more=lambda rank: (), shape=(4, 8)):
    """Each rank's value and gradient of the sum of its weighted outputs."""

    def main():
        choose(mode)
        rank = current().rank
        net = Net(op, attrs(rank), Tensor(weights[rank]), *more(rank))
        value, gradient = ms.value_and_grad(net)(Tensor(part(rank, shape)))
        return value.asnumpy(), gradient.asnumpy()

    return launch(main, ranks=SIZE)


def weights_of(shape):
    return [part(100 + rank, shape) for rank in range(SIZE)]


def expected(forward, weights, shape=(4, 8)):
    """Values, and slopes of the sum over all ranks, of a linear map of all ranks' data, by its columns."""
    parts = [2 * part(rank, shape) for rank in range(SIZE)]
    values = [(out * w).sum() for out, w in zip(forward(parts), weights, strict=True)]
    gradients = []
    for rank in range(SIZE):
        gradient = np.zeros(shape, np.float32)
        for index in np.ndindex(shape):
            bump = [np.zeros(shape, np.float32) for _ in range(SIZE)]
            bump[rank][index] = 2
            gradient[index] = sum((out * w).sum() for out, w in zip(forward(bump), weights, strict=True))
        gradients.append(gradient)
    return values, gradients


def check(mode, op, forward, out_shape, attrs=lambda rank: {}, more=lambda rank: (), shape=(4, 8)):
    weights = weights_of(out_shape)
    got = slopes(mode, op, weights, attrs, more, shape)
    values, gradients = expected(forward, weights, shape)
    for (value, gradient), wanted, slope in zip(got, values, gradients, strict=True):
        np.testing.assert_array_equal(value, np.float32(wanted))
        np.testing.assert_array_equal(gradient, slope)


@pytest.mark.parametrize("mode", MODES)
def test_sum(mode):
    check(mode, "AllReduce", lambda parts: [sum(parts)] * SIZE, (4, 8))


@pytest.mark.parametrize("mode", MODES)
def test_gather_and_scatter_are_each_others_gradients(mode):
    sized = {"rank_size": SIZE}
    check(mode, "AllGather", lambda parts: [np.concatenate(parts)] * SIZE, (16, 8), lambda rank: sized)
    check(mode, "ReduceScatter", lambda parts: np.split(sum(parts), SIZE), (1, 8), lambda rank: sized)


def exchanged(split, concat):
    def forward(parts):
        blocks = [np.split(x, SIZE, split) for x in parts]
        return [np.concatenate([theirs[at] for theirs in blocks], concat) for at in range(SIZE)]

    return forward


@pytest.mark.parametrize("mode", MODES)
def test_all_to_all(mode):
    attrs = {"split_count": SIZE, "split_dim": 1, "concat_dim": 0, "rank_size": SIZE}
    check(mode, "AlltoAll", exchanged(1, 0), (16, 2), lambda rank: attrs)


MATRIX = np.array([[1, 2, 0, 3], [0, 4, 1, 1], [2, 2, 0, 2], [0, 3, 2, 1]])


@pytest.mark.parametrize("mode", ["pynative", "O0"])
def test_all_to_all_with_counts(mode):
    square = MATRIX + np.eye(SIZE, dtype=int) * (6 - MATRIX.sum(1))[:, None]  # every rank sends 6, as one shape needs
    counts = square.sum(0)

    def forward(parts):
        pieces = [np.split(x, np.cumsum(row)[:-1]) for x, row in zip(parts, square, strict=True)]
        return [np.concatenate([theirs[at] for theirs in pieces]) for at in range(SIZE)]

    weights = [part(100 + rank, (int(counts[rank]),)) for rank in range(SIZE)]
    values, gradients = expected(forward, weights, (6,))
    rows, columns = square.tolist(), square.T.tolist()
    for op, more, attrs in (
        ("AlltoAllV", lambda rank: (tuple(rows[rank]), tuple(columns[rank])), lambda rank: {}),
        (
            "AlltoAllVC",
            lambda rank: (tuple(square.reshape(-1).tolist()),),
            lambda rank: {"rank_id": rank, "rank_size": SIZE},
        ),
    ):
        got = slopes(mode, op, weights, attrs, more, (6,))
        for (value, gradient), wanted, slope in zip(got, values, gradients, strict=True):
            np.testing.assert_array_equal(value, np.float32(wanted))
            np.testing.assert_array_equal(gradient, slope)


@pytest.mark.parametrize("mode", ["pynative", "O0"])
def test_gather_and_scatter_with_counts(mode):
    counts = (3, 1, 2, 4)
    weights = [part(100 + rank, (n,)) for rank, n in enumerate(counts)]
    got = slopes(mode, "ReduceScatterV", weights, placed, lambda rank: (counts,), (10,))
    values, gradients = expected(lambda parts: np.split(sum(parts), np.cumsum(counts)[:-1]), weights, (10,))
    for (value, gradient), wanted, slope in zip(got, values, gradients, strict=True):
        np.testing.assert_array_equal(value, np.float32(wanted))
        np.testing.assert_array_equal(gradient, slope)
    same = (3,) * SIZE
    check(mode, "AllGatherV", lambda parts: [np.concatenate(parts)] * SIZE, (12,), placed, lambda rank: (same,), (3,))


@pytest.mark.parametrize("mode", MODES)
def test_reduce_gather_and_scatter_have_a_root(mode):
    root = 2

    def only(weights, shape):
        return [w if rank == root else np.zeros((1,), np.float32) for rank, w in enumerate(weights_of(shape))]

    for op, forward, shape, attrs in (
        ("Reduce", sum, (4, 8), lambda rank: {"dest_rank": root, "_rank": rank}),
        ("CollectiveGather", np.concatenate, (16, 8), lambda rank: {"dest_rank": root, **placed(rank)}),
    ):
        weights = only(weights_of(shape), shape)
        values, _ = expected(lambda parts, f=forward: [f(parts)] * SIZE, weights)
        nothing = [0 if rank != root else value for rank, value in enumerate(values)]
        gradients_of_root = expected(
            lambda parts, f=forward: [f(parts) if rank == root else 0 for rank in range(SIZE)], weights
        )[1]
        for rank, (value, gradient) in enumerate(slopes(mode, op, weights, attrs)):
            np.testing.assert_array_equal(value, np.float32(nothing[rank]))
            np.testing.assert_array_equal(gradient, gradients_of_root[rank])
    attrs = {"src_rank": root}
    check(
        mode,
        "CollectiveScatter",
        lambda parts: np.split(parts[root], SIZE),
        (1, 8),
        lambda rank: attrs | placed(rank),
    )


def placed(rank):
    return {"rank_id": rank, "rank_size": SIZE}


@pytest.mark.parametrize("mode", ["pynative", "O0"])
def test_a_broadcast_hands_every_rank_its_own_gradient(mode):
    """As MindSpore's rule does, although the root's tensor is what the others compute with."""
    weights = weights_of((4, 8))
    for rank, (value, gradient) in enumerate(slopes(mode, "Broadcast", weights, lambda rank: {"root_rank": 1})):
        np.testing.assert_array_equal(value, (2 * part(1) * weights[rank]).sum())
        np.testing.assert_array_equal(gradient, 2 * weights[rank])


@pytest.mark.parametrize("op", ["max", "min"])
@pytest.mark.parametrize("mode", ["pynative", "O0"])
def test_the_gradient_of_an_extreme_goes_where_it_came_from(mode, op):
    weights = weights_of((4, 8))
    parts = np.array([2 * part(rank) for rank in range(SIZE)])
    extreme = getattr(parts, op)(0)
    got = slopes(mode, "AllReduce", weights, lambda rank: {"op": op})
    for mine, (value, gradient), weight in zip(parts, got, weights, strict=True):
        np.testing.assert_array_equal(value, (extreme * weight).sum())
        np.testing.assert_array_equal(gradient, 2 * sum(weights) * (mine == extreme))


def test_the_gradient_of_a_product():
    def main():
        choose("O0")
        net = Net("AllReduce", {"op": "prod"}, Tensor(np.ones(3, np.float32)))
        return ms.grad(net)(Tensor(np.array([1, 2, 4], np.float32) * 2 ** current().rank)).asnumpy()

    parts = [2 * np.array([1, 2, 4], np.float32) * 2**rank for rank in range(SIZE)]
    for mine, gradient in zip(parts, launch(main, ranks=SIZE), strict=True):
        np.testing.assert_array_equal(gradient, SIZE * np.prod(parts, 0) / mine * 2)


class Exchange(nn.Cell):
    def __init__(self, rank, weight):
        super().__init__()
        left, right = (rank - 1) % SIZE, (rank + 1) % SIZE
        shapes = ((4, 8), (4, 8))
        self.attrs = {
            "send_rank_ids": (left, right),
            "recv_rank_ids": (right, left),
            "send_shapes": shapes,
            "recv_shapes": shapes,
            "recv_type": dtype("float32"),
        }
        self.weight = weight

    def construct(self, x):
        first, second = call("NeighborExchange", [(x, x * 3)], self.attrs)
        return (first * self.weight + second).sum()


@pytest.mark.parametrize("mode", ["pynative", "O0"])
def test_what_neighbours_received_is_what_they_send_back(mode):
    weights = weights_of((4, 8))

    def main():
        choose(mode)
        rank = current().rank
        return ms.grad(Exchange(rank, Tensor(weights[rank])))(Tensor(part(rank))).asnumpy()

    for rank, gradient in enumerate(launch(main, ranks=SIZE)):
        np.testing.assert_array_equal(gradient, weights[(rank - 1) % SIZE] + 3)


class Halo(nn.Cell):
    """Each of two ranks has one half of the rows."""

    def __init__(self, rank, weight):
        super().__init__()
        other = tuple((1 - rank) if at == (4 if rank == 0 else 0) else -1 for at in range(8))
        lens = (0, 1, 0, 0) if rank == 0 else (1, 0, 0, 0)
        self.attrs = {"send_rank_ids": other, "recv_rank_ids": other, "send_lens": lens, "recv_lens": lens}
        self.weight = weight

    def construct(self, x):
        return (call("NeighborExchangeV2", [x], self.attrs) * self.weight).sum()


@pytest.mark.parametrize("mode", ["pynative", "O0"])
def test_the_gradient_of_a_border_comes_back(mode):
    weights = [part(rank, (1, 1, 3, 4)) for rank in range(2)]

    def main():
        choose(mode)
        rank = current().rank
        return ms.grad(Halo(rank, Tensor(weights[rank])))(Tensor(part(rank, (1, 1, 2, 4)))).asnumpy()

    first, second = launch(main, ranks=2)
    np.testing.assert_array_equal(
        first, weights[0][:, :, :2] + np.pad(weights[1][:, :, :1], ((0,), (0,), (0,), (0,))) * np.array([[0], [1]])
    )
    np.testing.assert_array_equal(second, weights[1][:, :, 1:] + weights[0][:, :, 2:] * np.array([[1], [0]]))


class Message(nn.Cell):
    def __init__(self, rank):
        super().__init__()
        self.rank = rank

    def construct(self, x):
        if self.rank == 0:
            sent = call("Send", [x * 5], {"dest_rank": 1, "sr_tag": 3})
            return call("Depend", [x, sent])
        came = call("Receive", [None], {"src_rank": 0, "sr_tag": 3, "shape": (4, 8), "dtype": dtype("float32")})
        return came + x


@pytest.mark.parametrize("mode", MODES)
def test_messages(mode):
    def main():
        choose(mode)
        return Message(current().rank)(Tensor(part(current().rank))).asnumpy()

    first, second = launch(main, ranks=2)
    np.testing.assert_array_equal(first, part(0))
    np.testing.assert_array_equal(second, part(0) * 5 + part(1))


class Noted:
    """A builder that returns what it is asked for."""

    def emit(self, op_type, *operands, **attrs):
        return op_type, operands, attrs


def test_the_gradient_of_a_message_goes_back():
    x = SimpleNamespace(abstract=TensorType(dtype=dtype("float16"), shape=(2, 3)))
    attrs = {"sr_tag": 3, "dest_rank": 1, "group": "go", "group_back": "back"}
    (came,) = find("Send").grad(Noted(), [x], None, "slope", attrs)
    back = {"sr_tag": 3, "group": "back", "group_back": "go"}
    assert came == ("Receive", ("slope",), back | {"src_rank": 1, "shape": (2, 3), "dtype": dtype("float16")})
    attrs = {"sr_tag": 3, "src_rank": 1, "group": "go", "group_back": "back", "shape": (2, 3)}
    assert find("Receive").grad(Noted(), [None], None, "slope", attrs) == [None]
    ((op_type, (zeros, sent), _),) = find("Receive").grad(Noted(), [x], None, "slope", attrs)
    assert (op_type, zeros.tolist(), zeros.dtype) == ("Depend", [[0] * 3] * 2, np.float16)
    assert sent == ("Send", ("slope",), back | {"dest_rank": 1})


def test_parts_of_one_rank_are_copies():
    x = np.float32([1, 2])
    for name in ("AllGatherV", "ReduceScatterV"):
        made = find(name).kernel(x, (2,), **find(name).attrs)
        assert made.tolist() == [1, 2]
        assert not np.shares_memory(made, x)
        assert find(name).kernel(x[:0], (0,), **find(name).attrs).shape == ()  # what is empty is a number
    assert find("Barrier").kernel(group="x") == ()


class Twice(nn.Cell):
    """The group of all ranks, then a group of two."""

    def __init__(self, group):
        super().__init__()
        self.group = group

    def construct(self, x):
        x = call("AllReduce", [x * 2], {})
        return call("AllGather", [x], {"group": self.group, "rank_size": 2}) + 1


@pytest.mark.parametrize("level", ["O0", "O2"])
def test_groups_in_jit_in_a_graph_and_in_pynative_meet_alike(level):
    """Ranks 0 and 1 create their pair first, the others another group before it."""

    def main():
        rank = current().rank
        communicator = current().communicator
        if rank >= 2:
            communicator.create("more", (2, 3))
        group = communicator.create(f"pair{rank // 2}", (rank // 2 * 2, rank // 2 * 2 + 1)).name
        net, x = Twice(group), Tensor(part(rank))
        choose("pynative")

        @ms.jit
        def compiled(x):
            return net(x)

        results = [net(x).asnumpy(), compiled(x).asnumpy()]
        streams = []
        choose(level)
        Session.current().trace_tasks(lambda task: streams.append((task.kind.value, task.stream_id)))
        results.append(net(x).asnumpy())
        return results, {stream for kind, stream in streams if kind == "KERNEL_HCCL"}

    wanted = np.concatenate([2 * sum(part(rank) for rank in range(SIZE))] * 2) + 1
    for rank, (results, streams) in enumerate(launch(main, ranks=SIZE)):
        for result in results:
            np.testing.assert_array_equal(result, wanted)
        assert streams == ({1, 3} if rank >= 2 and level == "O0" else {1, 2})


def test_what_ranks_share_is_copied_when_one_writes_it():
    def gathered():
        return call("AllGather", [Tensor(np.ones(2, np.float32))], {"rank_size": 2})

    def main():
        choose("pynative")
        rank = current().rank
        shared = gathered()
        updated, indexed, read = gathered(), gathered(), gathered()
        call("AssignAdd", [updated, Tensor(np.full(4, rank + 1, np.float32))])
        indexed[1] = rank + 5
        read.asnumpy()[2] = rank + 7
        parameter = Parameter(shared, name="parameter")
        ops.assign_add(parameter, Tensor(np.full(4, rank, np.float32)))
        return [tensor.asnumpy().tolist() for tensor in (updated, indexed, read, parameter, shared)]

    for rank, (updated, indexed, read, parameter, shared) in enumerate(launch(main, ranks=2)):
        assert updated == [rank + 2] * 4
        assert indexed == [1, rank + 5, 1, 1]
        assert read == [1, 1, rank + 7, 1]
        assert parameter == [rank + 1] * 4
        assert shared == [1] * 4


def refused(kind, /, *operands, error, match, **attrs):
    definition = find(kind)
    with pytest.raises(error, match=match):
        Session.current().run_op(definition, list(operands), attrs)


def test_what_is_refused():
    x, one = np.ones((3, 2), np.float32), np.ones((), np.float32)
    types = r"For primitive\[AllReduce\], the input argument\[x\] must be a type of {Tensor\[BFloat16\], Tensor\[Bool\]"
    refused("AllReduce", x.astype(np.float64), error=ScriptTypeError, match=types)
    refused("AllGather", x.astype(np.complex128), error=ScriptTypeError, match=r"but got Tensor\[Complex128\]")
    refused("AllReduce", x.astype(np.complex64), op="max", error=ScriptTypeError, match="complex64 can be summed only")
    refused("AllReduce", x, op="avg", error=ScriptValueError, match="the 'op' must be one of")
    text = r"the first dimension for 'input_shape' must be divided by 'rank_size', but got input_shape\[0\]: 3"
    refused("ReduceScatter", x, rank_size=2, error=ScriptValueError, match=text)
    refused("CollectiveScatter", x, rank_size=2, error=ScriptValueError, match=text)
    refused(
        "ReduceScatter",
        one,
        rank_size=2,
        error=ScriptValueError,
        match="the shape is empty",
    )
    refused(
        "AllGather",
        one,
        rank_size=2,
        error=ScriptValueError,
        match="'x shape' must be int and must > 0",
    )
    sized = {"rank_size": 2, "split_dim": 0, "concat_dim": 1}
    match = r"must be divisible by 'split_count', but got 'x_shape\[split_dim\]' 3, 'split_count' 2"
    refused("AlltoAll", x, split_count=2, **sized, error=ScriptValueError, match=match)
    refused("AlltoAll", x, split_count=3, **sized, error=ScriptValueError, match="must be equal to 'rank_size'")
    far = {**sized, "split_dim": 5}
    refused("AlltoAll", x, split_count=2, **far, error=ScriptValueError, match="Invalid split dim 5 is greater than")
    flat = x.reshape(-1)
    refused("AlltoAllV", flat, (1, 2), (1, 2), error=ScriptValueError, match="sum of 'send_numel_list'")
    refused("AlltoAllV", x, (3, 3), (1, 2), error=ScriptValueError, match="must have one dimension")
    refused("AlltoAllV", flat, (3, 3), (1, 2, 3), error=ScriptValueError, match="must have 2 numbers >= 0")
    refused("AlltoAllV", flat, np.array([3, 3]), (1, 2), error=UnsupportedError, match="a tuple of int")
    batch = {"op_types": ("isend", "irecv"), "remote_ranks": (0, 0)}
    refused("BatchISendIRecv", (x,), **batch, error=ScriptRuntimeError, match="1 'isend' and 1 'irecv' need")
    refused("NeighborExchangeV2", x, error=ScriptValueError, match="must have 4 dimensions in 'NCHW'")
    image = np.ones((1, 1, 4, 4), np.float32)
    twice = {"send_rank_ids": (1, 1) + (-1,) * 6}
    refused(
        "NeighborExchangeV2", image, **twice, error=ScriptValueError, match="can not be repeated, but got id :1 rep"
    )
