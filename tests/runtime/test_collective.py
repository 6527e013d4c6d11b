"""Collectives of local ranks as operators: in PYNATIVE, asynchronous, and in graphs."""

from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np
import pytest

from dumpsim.core.dtype import dtype
from dumpsim.core.errors import BadInputError, CollectiveError
from dumpsim.core.settings import RunSettings
from dumpsim.device.faults import make_plan
from dumpsim.ops.table import find
from dumpsim.runtime.collective import Attendance
from dumpsim.runtime.session import Session
from dumpsim.world import current, launch

SIZE = 4
WORLD = "hccl_world_group"


def part(rank, shape=(4, 3), kind=np.float32):
    return np.random.default_rng(rank).integers(-8, 8, shape).astype(kind)


PARTS = [part(rank) for rank in range(SIZE)]


def session():
    return current().get(Session)


def run(kind, /, *operands, **attrs):
    return session().run_op(find(kind), list(operands), attrs)


def collect(kind, bring=lambda rank: (part(rank),), /, size=SIZE, **attrs):
    """Return the result of each rank; attributes may be functions of the rank."""

    def main():
        rank = current().rank
        given = {name: value(rank) if callable(value) else value for name, value in attrs.items()}
        return [np.array(array) for array in run(kind, *bring(rank), **given)]

    return launch(main, ranks=size)


def same(got, wanted):
    assert len(got) == len(wanted)
    for mine, expected in zip(got, wanted, strict=True):
        np.testing.assert_array_equal(mine[0], expected, strict=True)


@pytest.mark.parametrize("op", ["sum", "prod", "max", "min"])
def test_all_reduce(op):
    fold = {"sum": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum}[op].reduce
    same(collect("AllReduce", op=op), [fold(PARTS)] * SIZE)
    same(collect("ReduceScatter", op=op, rank_size=SIZE), np.split(fold(PARTS), SIZE))


@pytest.mark.parametrize("kind", ["bool", "int8", "int64", "float16", "bfloat16", "complex64"])
def test_number_types(kind):
    numbers = dtype(kind).numpy
    parts = [part(rank, kind=np.int8).astype(numbers) for rank in range(SIZE)]
    total = np.any(parts, axis=0) if kind == "bool" else sum(parts[1:], parts[0])
    same(collect("AllReduce", lambda rank: (parts[rank],)), [total] * SIZE)
    same(collect("AllGather", lambda rank: (parts[rank],), rank_size=SIZE), [np.concatenate(parts)] * SIZE)


def test_gather_scatter_broadcast_and_reduce():
    whole = np.concatenate(PARTS)
    same(collect("AllGather", rank_size=SIZE), [whole] * SIZE)
    got = collect("Broadcast", lambda rank: ((part(rank), part(rank, (2,))),), root_rank=2)
    assert all((a == PARTS[2]).all() and (b == part(2, (2,))).all() for a, b in got)
    nothing = np.zeros((1,), np.float32)
    total = [nothing, nothing, nothing, sum(PARTS)]
    same(collect("Reduce", dest_rank=3, _rank=lambda rank: rank), total)
    placed = {"rank_id": lambda rank: rank, "rank_size": SIZE}
    same(collect("CollectiveGather", dest_rank=1, **placed), [nothing, whole, nothing, nothing])
    same(collect("CollectiveScatter", src_rank=1, **placed), np.split(PARTS[1], SIZE))


def test_all_to_all():
    blocks = [np.split(x, SIZE) for x in PARTS]
    wanted = [np.concatenate([theirs[at] for theirs in blocks], axis=1) for at in range(SIZE)]
    same(collect("AlltoAll", split_count=SIZE, split_dim=0, concat_dim=1, rank_size=SIZE), wanted)


MATRIX = np.array([[1, 2, 0, 3], [0, 4, 1, 1], [2, 2, 2, 2], [0, 0, 0, 1]])


def vectors(counts):
    return [np.arange(n, dtype=np.float32) + 100 * rank for rank, n in enumerate(counts)]


@pytest.mark.parametrize("transpose", [False, True])
def test_all_to_all_with_counts(transpose):
    matrix = MATRIX.T if transpose else MATRIX
    sent = vectors(matrix.sum(1) * 2)
    pieces = [np.split(x, np.cumsum(row * 2)[:-1]) for x, row in zip(sent, matrix, strict=True)]
    wanted = [np.concatenate([theirs[at] for theirs in pieces]) for at in range(SIZE)]
    rows, columns = matrix.tolist(), matrix.T.tolist()
    same(collect("AlltoAllV", lambda r: (sent[r], tuple(rows[r]), tuple(columns[r])), block_size=2), wanted)
    placed = {"rank_id": lambda rank: rank, "rank_size": SIZE, "block_size": 2, "transpose": transpose}
    same(collect("AlltoAllVC", lambda r: (sent[r], tuple(MATRIX.reshape(-1).tolist())), **placed), wanted)


def test_a_member_that_gets_no_element_gets_a_scalar():
    counts = [((0, 2), (0, 0)), ((0, 0), (2, 0))]
    sent = [np.array([1, 2], np.float32), np.zeros(0, np.float32)]
    first, second = collect("AlltoAllV", lambda r: (sent[r], *counts[r]), size=2)
    assert first[0].shape == ()
    assert second[0].tolist() == [1, 2]


def test_gather_and_scatter_with_counts():
    counts = (3, 0, 2, 4)
    sent = vectors(counts)
    placed = {"rank_id": lambda rank: rank, "rank_size": SIZE}
    same(collect("AllGatherV", lambda r: (sent[r], counts), **placed), [np.concatenate(sent)] * SIZE)
    parts = [part(rank, (9,)) for rank in range(SIZE)]
    shares = np.split(sum(parts), np.cumsum(counts)[:-1])
    shares[1] = np.zeros((), np.float32)
    same(collect("ReduceScatterV", lambda r: (parts[r], counts), **placed), shares)


def test_messages():
    def main():
        rank = current().rank
        if rank == 0:
            (back,) = run("Send", part(0), dest_rank=1, sr_tag=7)
            return back
        return run("Receive", None, src_rank=0, sr_tag=7, shape=(4, 3), dtype=dtype("float32"))[0]

    first, second = launch(main, ranks=2)
    assert (first == part(0)).all()
    assert (second == part(0)).all()


def test_messages_in_a_batch():
    def main():
        rank, left, right = current().rank, (current().rank - 1) % SIZE, (current().rank + 1) % SIZE
        return run(
            "BatchISendIRecv",
            (part(rank), part(rank, (2,))),
            op_types=("irecv", "isend", "isend", "irecv"),
            remote_ranks=(left, right, left, right),
            receive_shapes=((4, 3), (2,)),
            receive_dtypes=(dtype("float32"),) * 2,
        )

    for rank, (from_left, dummy, _, from_right) in enumerate(launch(main, ranks=SIZE)):
        assert dummy.shape == ()
        np.testing.assert_array_equal(from_left, PARTS[(rank - 1) % SIZE])
        np.testing.assert_array_equal(from_right, part((rank + 1) % SIZE, (2,)))


def test_neighbours_exchange_tensors():
    def main():
        rank, left, right = current().rank, (current().rank - 1) % SIZE, (current().rank + 1) % SIZE
        return run(
            "NeighborExchange",
            (part(rank), part(rank, (2,))),
            send_rank_ids=(left, right),
            recv_rank_ids=(left, right),
            send_shapes=((4, 3), (2,)),
            recv_shapes=((2,), (4, 3)),
            recv_type=dtype("float32"),
        )

    for rank, (from_left, from_right) in enumerate(launch(main, ranks=SIZE)):
        np.testing.assert_array_equal(from_left, part((rank - 1) % SIZE, (2,)))
        np.testing.assert_array_equal(from_right, PARTS[(rank + 1) % SIZE])


@pytest.mark.parametrize("senders", [1, SIZE // 2])
def test_a_member_may_only_send_to_its_neighbours_or_only_receive_or_neither(senders):
    """Senders are the first ranks, and the last ones receive."""

    def main():
        rank = current().rank
        sends, receives = rank < senders, rank >= SIZE - senders
        return run(
            "NeighborExchange",
            (part(rank, kind=np.float16),) if sends else None,
            send_rank_ids=(SIZE - 1 - rank,) if sends else (),
            recv_rank_ids=(SIZE - 1 - rank,) if receives else (),
            send_shapes=((4, 3),) if sends else (),
            recv_shapes=((4, 3),) if receives else (),
            recv_type=dtype("float16"),
        )

    for rank, got in enumerate(launch(main, ranks=SIZE)):
        same([got], [part(SIZE - 1 - rank, kind=np.float16)]) if rank >= SIZE - senders else same(got, [])


ROUND = ((-1, 0), (-1, 1), (0, 1), (1, 1), (1, 0), (1, -1), (0, -1), (-1, -1))


def test_neighbours_exchange_borders():
    """A grid of 2 x 2 ranks holds one image; each gets the lines around its quarter, zeros where the image ends."""
    image = np.arange(2 * 1 * 8 * 12, dtype=np.float32).reshape(2, 1, 8, 12)
    top, bottom, left, right = 1, 2, 3, 1
    padded = np.pad(image, ((0, 0), (0, 0), (top, bottom), (left, right)))

    def main():
        row, column = divmod(current().rank, 2)
        ranks = []
        for down, over in ROUND:
            inside = 0 <= row + down < 2 and 0 <= column + over < 2
            ranks.append((row + down) * 2 + column + over if inside else -1)
        mine = image[:, :, row * 4 : row * 4 + 4, column * 6 : column * 6 + 6]
        settings = {
            "send_rank_ids": tuple(ranks),
            "recv_rank_ids": tuple(ranks),
            "send_lens": (bottom, top, right, left),  # what a neighbour wants of the other side
            "recv_lens": (top, bottom, left, right),
            "data_format": "NCHW",
        }
        (out,) = run("NeighborExchangeV2", mine, **settings)
        turned = {**settings, "send_lens": settings["recv_lens"], "recv_lens": settings["send_lens"]}
        (slope,) = run("NeighborExchangeV2Grad", np.ones_like(out), **turned)
        return out, slope

    counted = np.zeros((8, 12))  # how often the four enlarged quarters show each element
    for rank, (out, _) in enumerate(launch(main, ranks=4)):
        row, column = divmod(rank, 2)
        rows, columns = slice(row * 4, row * 4 + 4 + top + bottom), slice(column * 6, column * 6 + 6 + left + right)
        np.testing.assert_array_equal(out, padded[:, :, rows, columns])
        view = np.zeros_like(padded[0, 0])
        view[rows, columns] = 1
        counted += view[top : top + 8, left : left + 12]
    for rank, (_, slope) in enumerate(launch(main, ranks=4)):
        row, column = divmod(rank, 2)
        np.testing.assert_array_equal(slope[0, 0], counted[row * 4 : row * 4 + 4, column * 6 : column * 6 + 6])


def test_an_operator_of_several_messages_passes_everything_on():
    calls = []
    meetings = [
        SimpleNamespace(
            failure=None, open_ns=lambda at=at: at, waits_for=lambda at=at: f"rank {at}",
            **{
                name: lambda *given, name=name, at=at: calls.append((at, name, *given))
                for name in ("enter", "leave", "abandon", "give_up")
            },
        )
        for at in (None, 4, None)
    ]  # fmt: skip
    gate = Attendance(meetings, list, 1)
    assert gate.waits_for() == "rank None; rank None"  # the open one waits for nothing
    gate.enter("waiter", 3)
    gate.leave(5)
    gate.abandon("why")
    assert gate.give_up("report") is None
    for name, *given in (("enter", "waiter", 3), ("leave", 5), ("abandon", "why"), ("give_up", "report")):
        assert [call for call in calls if call[1] == name] == [(at, name, *given) for at in (None, 4, None)]
    meetings[1].failure = SimpleNamespace(time_ns=17)
    assert (gate.failure, gate.open_ns()) == (meetings[1].failure, 17)


def test_a_barrier_gives_nothing_and_brings_the_clocks_together():
    def main():
        made = session()
        made.clock.advance(10**6 * (1 + current().rank))
        assert run("Barrier") == []
        return made.clock.now_ns

    first, second = launch(main, ranks=2)
    assert abs(first - second) < 10**5


def test_equal_results_are_one_read_only_array():
    def main():
        return run("AllGather", part(current().rank), rank_size=SIZE)[0]

    arrays = launch(main, ranks=SIZE)
    assert len({array.__array_interface__["data"][0] for array in arrays}) == 1
    assert not any(array.flags.writeable for array in arrays)


def test_an_overflow_strikes_a_collective_of_one_rank():
    """Only that rank's result has the value; the ranks do not share their arrays then."""

    def main():
        rank = current().rank
        if rank == 1:
            session().inject(make_plan([{"kind": "overflow", "op": "AllReduce", "nth": 2, "index": 4, "value": 9.5}]))
        return [np.array(run("AllReduce", part(rank), op="sum")[0]) for _ in range(3)]

    total = sum(PARTS[1:], PARTS[0])
    struck = total.copy()
    struck.flat[4] = 9.5
    for rank, results in enumerate(launch(main, ranks=SIZE)):
        for nth, result in enumerate(results):
            np.testing.assert_array_equal(result, struck if (rank, nth) == (1, 1) else total)


@pytest.mark.parametrize("groups", [1, 2])
def test_an_asynchronous_collective_lets_others_run(groups):
    """A group has one stream: later messages of the group wait until the awaited one has arrived."""

    def main():
        rank, made = current().rank, session()
        back = WORLD if groups == 1 else current().communicator.create("pair", (0, 1)).name
        if rank == 0:
            wanted = {"src_rank": 1, "shape": (2,), "dtype": dtype("float32"), "group": back}
            pending = made.start_op(find("Receive"), [None], wanted)
            (doubled,) = run("Add", part(0, (2,)), part(0, (2,)))  # does not wait for the message
            assert not pending.done
            run("Send", doubled, dest_rank=1, sr_tag=1)
            (answer,) = pending.wait()
            assert pending.done
            return answer
        (asked,) = run("Receive", None, src_rank=0, sr_tag=1, shape=(2,), dtype=dtype("float32"))
        run("Send", asked + 1, dest_rank=0, group=back)
        return asked

    if groups == 1:
        with pytest.raises(CollectiveError):
            launch(main, ranks=2)
    else:
        answer, asked = launch(main, ranks=2)
        assert (answer == asked + 1).all()


def test_a_collective_that_one_rank_does_not_call_names_it_and_the_line():
    def main():
        if current().rank != 2:
            run("AllReduce", part(0))

    with pytest.raises(CollectiveError) as caught:
        launch(main, ranks=3)
    assert caught.value.rank == 2
    notes = "\n".join(caught.value.__notes__)
    assert "test_collective.py" in notes or "test_collective.py" in str(caught.value)


def test_a_collective_of_a_graph_that_one_rank_does_not_call_names_the_line_of_the_network():
    import dumpsim.frontends.mindspore as ms
    from dumpsim.frontends.mindspore import nn, ops
    from dumpsim.frontends.mindspore.communication import init

    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.total = ops.AllReduce()

        def construct(self, x):
            return self.total(x + 1)  # the line

    def main():
        ms.set_context(mode=ms.GRAPH_MODE)
        init()
        if current().rank != 2:
            Net()(ms.Tensor(part(0)))

    with open(__file__) as source:
        (line,) = (at for at, text in enumerate(source, 1) if text.endswith("# the line\n"))
    with pytest.raises(CollectiveError) as caught:
        launch(main, ranks=3)
    assert f"{__file__}:{line}" in "\n".join([str(caught.value), *caught.value.__notes__])


class Inputs:
    """A tap that keeps what tasks read."""

    def __init__(self):
        self.seen = []

    def wants(self, event):
        return getattr(event, "op_type", "") == "AllReduce"

    def before_task(self, event):
        self.seen.append(np.array(event.operands[0].read()).view(np.float32).reshape(4, 3))

    def after_task(self, event):
        self.seen.append("after")


@pytest.mark.parametrize("calls", [2, 3])
def test_what_a_collective_of_a_graph_reads_is_seen_before_the_others_arrive(calls):
    import dumpsim.frontends.mindspore as ms
    from dumpsim.frontends.mindspore import nn, ops
    from dumpsim.frontends.mindspore.communication import init

    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.total = ops.AllReduce()

        def construct(self, x):
            return self.total(x + 1)

    taps = [Inputs() for _ in range(3)]

    def main():
        ms.set_context(mode=ms.GRAPH_MODE)
        init()
        rank = current().rank
        session().add_tap(taps[rank])
        if rank < calls:
            Net()(ms.Tensor(part(rank))).asnumpy()

    with pytest.raises(CollectiveError) if calls < 3 else nullcontext():
        launch(main, ranks=3)
    for rank, tap in enumerate(taps[:calls]):
        np.testing.assert_array_equal(tap.seen[0], part(rank) + 1)
        assert tap.seen[1:] == (["after"] if calls == 3 else [])


def test_a_single_rank_computes_the_collective_itself():
    made = Session(RunSettings(), environment={})
    (out,) = made.run_op(find("AllReduce"), [part(0)])
    assert (out == part(0)).all()
    assert out.flags.writeable
    with pytest.raises(BadInputError, match="no other rank"):
        made.run_op(find("Send"), [part(0)])


def test_without_values_the_clock_is_the_same():
    def main():
        (out,) = run("AllGather", np.ones((2, 3), np.float32), rank_size=SIZE)
        run("Barrier")
        return out.shape, session().clock.now_ns

    quiet = {"quiet": True, "manifest": None}
    with_values = launch(main, ranks=SIZE, settings=RunSettings(**quiet))
    assert launch(main, ranks=SIZE, settings=RunSettings(engine="null", **quiet)) == with_values
    assert with_values[0][0] == (8, 3)


def test_tasks_of_a_group_lie_between_events_on_its_stream():
    def main():
        made, tasks = session(), []
        pair = current().communicator.create("pair", (0, 1)).name
        made.trace_tasks(lambda task: tasks.append((task.stream_id, task.name)))
        run("AllReduce", part(0))
        run("AllReduce", part(0), group=pair)
        run("Add", part(0), part(0))
        return tasks

    (tasks, others) = launch(main, ranks=2)
    assert tasks == others
    assert tasks == [
        (0, "record event 0"),
        (1, "wait for event 0"),
        (1, "Default/AllReduce"),
        (1, "record event 1"),
        (0, "wait for event 1"),
        (0, "record event 2"),
        (2, "wait for event 2"),
        (2, "Default/AllReduce"),
        (2, "record event 3"),
        (0, "wait for event 3"),
        (0, "Default/Add"),
    ]


@pytest.mark.parametrize(
    ("times", "opened"), [((0,), 0), ((0, 0), 0), ((3, 8, 5), 8), ((3, None, 5), None), ((None,), None), ((), 0)]
)
def test_an_operator_of_several_messages_opens_with_the_last_of_them(times, opened):
    meetings = [SimpleNamespace(failure=None, open_ns=lambda time=time: time) for time in times]
    assert Attendance(meetings, list, 1).open_ns() == opened
