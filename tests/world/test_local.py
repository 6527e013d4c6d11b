"""Collectives of local ranks: results, and the errors of each rank if they do not agree."""

from types import SimpleNamespace

import numpy as np
import pytest

from dumpsim.core.communicator import Call
from dumpsim.core.errors import BadInputError, CollectiveError, DeviceError, UnsupportedError
from dumpsim.core.settings import RunSettings
from dumpsim.device.chip import chip
from dumpsim.device.device import Device
from dumpsim.device.scheduler import Scheduler
from dumpsim.device.task import Task, TaskKind
from dumpsim.world import RankContext, current, launch
from dumpsim.world.hosts import SCHEDULES
from dumpsim.world.local import LocalCommunicator, LocalJob
from dumpsim.world.terms import terms_of

SECOND = 10**9


class Machine:
    """A device of the rank that runs."""

    def __init__(self):
        context = current()
        self.communicator = context.communicator
        self.communicator.terms = terms_of(context.environment, chip("910B"), RunSettings.from_environment())
        scheduler = context.world.get(Scheduler) if context.world.ranks > 1 else None
        self.device = Device(chip("910B"), rank=context.rank, scheduler=scheduler, environment={})

    def start(self, group, call, *arrays):
        group = self.communicator.group(group)
        meeting = group.join(call, lambda: arrays)
        got = []
        stream = self.device.stream(1 + group.number)

        def work(task):
            got.append(meeting.results())

        stream.launch(Task(kind=TaskKind.HCCL, name=call.op, work=work, gate=meeting, cost_ns=group.cost_ns(call)))
        return got

    def run(self, group, op, *arrays, **fields):
        tensors = tuple((array.dtype.name, array.shape) for array in arrays)
        got = self.start(group, Call(op=op, tensors=tensors, **fields), *arrays)
        self.device.synchronize()
        return got[0]


def machine():
    return current().get(Machine)


def collect(op, bring, size=4, **fields):
    """Return the result of each of `size` ranks."""

    def main():
        rank = current().rank
        arrays = bring(rank)
        settings = {name: value(rank) if callable(value) else value for name, value in fields.items()}
        return [array.copy() for array in machine().run("hccl_world_group", op, *arrays, **settings)]

    return launch(main, ranks=size)


def part(rank, shape=(4, 3), kind=np.float32):
    return np.random.default_rng(rank).integers(-8, 8, shape).astype(kind)


@pytest.mark.parametrize("reduce", ["sum", "prod", "max", "min"])
def test_reductions(reduce):
    whole = np.stack([part(rank) for rank in range(4)])
    total = getattr(whole, reduce)(axis=0)
    assert all((got == total).all() for (got,) in collect("AllReduce", lambda rank: [part(rank)], reduce=reduce))
    scattered = collect("ReduceScatter", lambda rank: [part(rank)], reduce=reduce)
    np.testing.assert_array_equal(np.concatenate([got for (got,) in scattered]), total)
    reduced = collect("Reduce", lambda rank: [part(rank)], reduce=reduce, root=2)
    assert [len(got) for got in reduced] == [0, 0, 1, 0]
    np.testing.assert_array_equal(reduced[2][0], total)


def test_a_rank_that_is_alone_may_send_to_itself():
    group, woken = LocalCommunicator(0, 1, LocalJob()).group(""), []
    kinds, waiter = (("float32", (3,)),), SimpleNamespace(wake=lambda: woken.append(True))
    receive = group.join(Call(op="Receive", root=0, expected=kinds), tuple)
    send = group.join(Call(op="Send", tensors=kinds, root=0), lambda: [np.arange(3, dtype=np.float32)])
    receive.enter(waiter, 5)
    assert (receive.open_ns(), woken) == (None, [])
    send.enter(waiter, 9)
    assert (receive.open_ns(), send.open_ns(), woken) == (9, 9, [True])
    assert [array.tolist() for array in receive.results()] == [[0, 1, 2]]


def test_moves():
    parts = [part(rank) for rank in range(4)]
    for (got,) in collect("AllGather", lambda rank: [part(rank)]):
        np.testing.assert_array_equal(got, np.concatenate(parts))
    for one, two in collect("Broadcast", lambda rank: [part(rank), part(rank + 9)], root=3):
        np.testing.assert_array_equal(one, parts[3])
        np.testing.assert_array_equal(two, part(12))
    for rank, (got,) in enumerate(collect("CollectiveScatter", lambda rank: [part(rank)], root=1)):
        np.testing.assert_array_equal(got, parts[1][rank : rank + 1])
    gathered = collect("CollectiveGather", lambda rank: [part(rank)], root=1)
    np.testing.assert_array_equal(gathered[1][0], np.concatenate(parts))
    assert not gathered[0]
    assert collect("Barrier", lambda rank: []) == [[]] * 4


def test_all_to_all():
    parts = [part(rank, (3, 8)) for rank in range(4)]
    for rank, (got,) in enumerate(collect("AlltoAll", lambda rank: [part(rank, (3, 8))], axes=(4, 1, 0))):
        np.testing.assert_array_equal(got, np.concatenate([each[:, 2 * rank : 2 * rank + 2] for each in parts]))
    counts = np.random.default_rng(0).integers(0, 4, (3, 3))
    flats = [part(rank, int(counts[rank].sum())) for rank in range(3)]
    sent = [np.split(flat, np.cumsum(counts[rank])[:-1]) for rank, flat in enumerate(flats)]
    found = collect(
        "AlltoAllV",
        lambda rank: [flats[rank]],
        size=3,
        sends=lambda rank: tuple(counts[rank].tolist()),
        receives=lambda rank: tuple(counts[:, rank].tolist()),
    )
    for rank, (got,) in enumerate(found):
        np.testing.assert_array_equal(got, np.concatenate([each[rank] for each in sent]))


def test_counts_that_do_not_match():
    def main():
        counts = (1, 2) if current().rank else (2, 1)
        machine().run("hccl_world_group", "AlltoAllV", part(0, 3), sends=counts, receives=(2, 2))

    found, _ = failures(main, ranks=2)
    assert "parameter count from rank 0 to rank 1, local value 1, remote value 2 (rank 1)" in str(found[0])
    assert "local value 2, remote value 1 (rank 0)" in str(found[1])


def test_only_the_root_has_a_tensor():
    def main():
        rank = current().rank
        mine = [part(rank)] if rank == 1 else []
        expected = () if mine else (("float32", (2, 3)),)
        (got,) = machine().run("hccl_world_group", "CollectiveScatter", *mine, root=1, expected=expected)
        return got

    for rank, got in enumerate(launch(main, ranks=2)):
        np.testing.assert_array_equal(got, part(1)[2 * rank : 2 * rank + 2])


def test_results_are_shared_and_read_only():
    def main():
        (got,) = machine().run("hccl_world_group", "AllGather", part(current().rank))
        return got

    first, *others = launch(main, ranks=3)
    assert all(np.shares_memory(first, other) for other in others)
    with pytest.raises(ValueError, match="read-only"):
        first[0] = 1


def test_a_result_does_not_change_when_the_root_writes_its_tensor():
    def main():
        mine = part(current().rank)
        (got,) = machine().run("hccl_world_group", "Broadcast", mine, root=0)
        mine[:] = 99
        machine().run("hccl_world_group", "Barrier")
        return got

    for got in launch(main, ranks=3):
        np.testing.assert_array_equal(got, part(0))


@pytest.mark.parametrize("schedule", [*SCHEDULES[:2], *(f"random:{seed}" for seed in range(6))])
def test_messages_in_any_order_of_turns(schedule):
    def main():
        m, rank = machine(), current().rank
        group = "hccl_world_group"
        for turn in range(2):
            m.run(group, "Send", np.full(3, 10 * turn + rank, np.int32), root=(rank + 1) % 3, tag=turn)
        got = [
            m.run(group, "Receive", root=(rank - 1) % 3, tag=turn, expected=(("int32", (3,)),))[0][0] for turn in (1, 0)
        ]
        return [int(value) for value in got], m.device.clock.now_ns

    found = launch(main, ranks=3, settings=RunSettings(schedule=schedule))
    assert [got for got, _ in found] == [[12, 2], [10, 0], [11, 1]]
    assert [time for _, time in found] == [time for _, time in launch(main, ranks=3)]


def test_groups_of_some_ranks():
    def main():
        m, rank = machine(), current().rank
        for name, members in (("even", [2, 0]), ("odd", [1, 3])):
            if rank in members:
                m.communicator.create(name, members)
        name = "odd" if rank % 2 else "even"
        group = m.communicator.group(name)
        (got,) = m.run(name, "AllGather", np.array([rank]))
        m.communicator.destroy(name)
        return got.tolist(), group.rank, group.number

    assert launch(main, ranks=4) == [([2, 0], 1, 1), ([1, 3], 0, 1), ([2, 0], 0, 1), ([1, 3], 1, 1)]


def test_groups_are_numbered_in_the_order_of_their_creation():
    """The group of all ranks is 0: a collective's stream follows from the number."""

    def main():
        communicator = machine().communicator
        made = [communicator.create(name, [0, 1]) for name in ("a", "b")]
        communicator.destroy("a")
        return [group.number for group in (communicator.group(""), *made, communicator.create("a", [1, 0]))]

    assert launch(main, ranks=2) == [[0, 1, 2, 3]] * 2


def test_a_name_that_is_used_again():
    def main():
        m, rank = machine(), current().rank
        found = []
        for members in ([0, 1], [1, 0]):  # creating and destroying wait for nobody
            m.communicator.create("g", members)
            (got,) = m.run("g", "AllGather", np.array([rank]))
            m.communicator.destroy("g")
            found.append(got.tolist())
        return found

    assert launch(main, ranks=2) == [[[0, 1], [1, 0]]] * 2

    def alone():
        communicator = machine().communicator
        for members in ([0, 1], [1, 0]):
            communicator.create("g", members)
            communicator.destroy("g")

    launch(alone, ranks=2)


def failures(main, ranks=3, **settings):
    """Return the error of each rank, and that of the launch."""
    found = {}

    def run():
        try:
            return main()
        except Exception as error:
            found[current().rank] = error
            raise

    with pytest.raises((DeviceError, BadInputError)) as raised:
        launch(run, ranks=ranks, settings=RunSettings(**settings))
    return found, raised.value


@pytest.mark.parametrize(
    ("mine", "theirs", "words"),
    [
        ({"op": "AllReduce", "reduce": "sum"}, {"op": "AllGather"}, "parameter op, local value AllReduce"),
        ({"op": "AllReduce", "reduce": "sum"}, {"op": "AllReduce", "reduce": "max"}, "parameter reduce"),
        ({"op": "Broadcast", "root": 0}, {"op": "Broadcast", "root": 1}, "parameter root, local value 0"),
    ],
)
def test_different_calls(mine, theirs, words):
    def main():
        fields = dict(theirs if current().rank == 1 else mine)
        machine().run("hccl_world_group", fields.pop("op"), part(0), place=f"step.py:{current().rank}", **fields)

    found, raised = failures(main)
    assert {error.code for error in found.values()} == {"EI0005"}
    assert {error.rank for error in found.values()} == {1}
    assert words in str(found[0])
    assert "rank 0, step.py:0" in str(found[0])
    assert "(rank 1, step.py:1)" in str(found[0])
    assert "(rank 0, step.py:0)" in str(found[1])
    assert isinstance(raised, CollectiveError)


def test_an_error_that_every_rank_catches_ends_no_rank():
    def main():
        with pytest.raises(CollectiveError, match="parameter reduce"):
            machine().run("hccl_world_group", "AllReduce", part(0), reduce=("sum", "max")[current().rank])
        return current().rank

    assert launch(main, ranks=2) == [0, 1]


def test_different_shapes_and_types():
    def main():
        machine().run(
            "hccl_world_group", "AllReduce", part(0, kind=np.int8 if current().rank else np.int16), reduce="sum"
        )

    found, _ = failures(main, ranks=2)
    assert "parameter data type, local value int16, remote value int8" in str(found[0])

    def shapes():
        machine().run("hccl_world_group", "AllReduce", part(0, (2, 1 + current().rank // 2)), reduce="sum")

    found, _ = failures(shapes)
    assert "parameter shape, local value (2, 2), remote value (2, 1)" in str(found[2])


def test_unchecked_calls_read_the_bytes_of_the_others():
    def main():
        mine = np.arange(2 + current().rank, dtype=np.int32)
        m = machine()
        m.run("hccl_world_group", "AllReduce", np.zeros(1, np.int32), reduce="sum")
        (got,) = m.run("hccl_world_group", "AllReduce", mine, reduce="sum")
        return got.tolist()

    assert launch(main, ranks=2, settings=RunSettings(collective_check="first")) == [[0, 2], [0, 2, 2]]
    found, _ = failures(main, ranks=2)
    assert "shape" in str(found[0])


@pytest.mark.parametrize(("late_s", "fails"), [(1836, False), (1837, True)])
def test_a_late_rank(late_s, fails):
    def main():
        m = machine()
        for turn in range(2):
            if turn and current().rank == 1:
                m.device.clock.advance(late_s * SECOND)
            m.run("hccl_world_group", "AllReduce", part(0), reduce="sum")
        return m.device.clock.now_ns

    if not fails:
        assert len(set(launch(main, ranks=3))) == 1
        return
    found, _ = failures(main)
    assert [error.code for error in found.values()] == ["EI0002"] * 3
    assert "from remote rank 1 within 1836 s (HCCL_EXEC_TIMEOUT): it came 1837" in str(found[0])
    assert "rank 0 has given up" in str(found[1])
    assert all("If writing dumps makes rank 1 slow, raise HCCL_EXEC_TIMEOUT" in str(error) for error in found.values())


def test_the_first_collective_connects(monkeypatch):
    def main():
        m = machine()
        m.device.clock.advance(151 * SECOND * current().rank)
        m.run("hccl_world_group", "AllReduce", part(0), reduce="sum")

    found, _ = failures(main, ranks=2)
    assert found[0].code == "EI0006"
    assert "HCCL_CONNECT_TIMEOUT" in str(found[0])
    monkeypatch.setenv("HCCL_CONNECT_TIMEOUT", "121")
    launch(main, ranks=2)


def test_a_rank_that_never_calls():
    def main():
        m = machine()
        m.run("hccl_world_group", "AllReduce", part(0), reduce="sum")
        if current().rank != 2:
            m.run("hccl_world_group", "AllReduce", part(0), reduce="sum", place="train.py:7")

    found, raised = failures(main)
    assert sorted(found) == [0, 1]
    assert found[0].code == "EI0002"
    assert "rank 2, which will never call it" in str(raised)
    report = "\n".join(raised.__notes__)
    assert "rank 2: its program has ended" in report
    assert "AllReduce_hccl_world_group_1, train.py:7" in report


def test_a_message_that_is_not_what_was_expected():
    def main():
        m = machine()
        if current().rank:
            m.run("hccl_world_group", "Receive", root=0, expected=(("int32", (3,)),))
        else:
            m.run("hccl_world_group", "Send", np.zeros(4, np.int32), root=1)

    found, _ = failures(main, ranks=2)
    assert "(rank 0)" in str(found[1])
    assert "local value ('int32', (3,)), remote value ('int32', (4,))" in str(found[1])


def test_invalid_groups():
    def main():
        communicator = machine().communicator
        for members in ([], [0, 0], [0, 3], [1 - current().rank]):
            with pytest.raises(BadInputError, match="group 'g'"):
                communicator.create("g", members)
        with pytest.raises(BadInputError, match="created no group 'h'"):
            communicator.group("h")
        with pytest.raises(BadInputError, match="of all ranks"):
            communicator.destroy("hccl_world_group")
        communicator.create("g", [0, 1] if current().rank else [1, 0])

    found, _ = failures(main, ranks=2)
    assert "[1, 0] at rank 0 and [0, 1] at rank 1" in str(found[1])


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"op": "AllReduces", "tensors": (("int8", (1,)),)}, "AllReduce"),
        ({"op": "AllReduce", "tensors": (("uint8", (1,)),), "reduce": "sum"}, "uint8"),
        ({"op": "AllReduce", "tensors": (("int8", (1,)),), "reduce": "mean"}, "mean"),
        ({"op": "ReduceScatter", "tensors": (("int8", (3,)),), "reduce": "sum"}, "first axis"),
        ({"op": "Send", "tensors": (("int8", (3,)),), "root": 2}, "member 2 is not in the group"),
        ({"op": "AlltoAllV", "tensors": (("int8", (3,)),), "sends": (1, 1), "receives": (1, 1)}, "2 of 3 elements"),
    ],
)
def test_invalid_calls(fields, words):
    def main():
        with pytest.raises(BadInputError, match=words):
            current().communicator.group("").join(Call(**fields), list)

    launch(main, ranks=2)


def test_a_rank_that_is_alone():
    context = RankContext(rank=1, size=2)
    with pytest.raises(UnsupportedError, match="dumpsim msrun"):
        context.communicator.group("").join(Call(op="Barrier"), list)


def test_a_message_that_comes_too_late():
    """The receiver's time is over before the sender's message is sent."""

    def main():
        m = machine()
        if current().rank:
            m.run("hccl_world_group", "Receive", root=0, expected=(("int32", (4,)),))
        else:
            m.device.clock.advance(4_000_000_000_000)
            m.run("hccl_world_group", "Send", np.zeros(4, np.int32), root=1)

    found, _ = failures(main, ranks=2)
    assert isinstance(found[1], CollectiveError)
    assert found[1].rank == 0


def test_a_receiver_whose_sender_is_killed():
    """It learns why no message comes, instead of that the ranks wait for each other."""

    def main():
        m = machine()
        if not current().rank:
            m.communicator.die("a fault killed it")
        m.run("hccl_world_group", "Receive", root=0, expected=(("int32", (4,)),))

    found, _ = failures(main, ranks=2)
    assert found[1].rank == 0
    assert "rank 0: it has failed: " in str(found[1])
    assert "a fault killed it" in str(found[1])


def test_a_group_with_other_members_fails_for_the_ranks_that_wait_in_it():
    def main():
        m, rank = machine(), current().rank
        members = [0, 1] if rank else [1, 0]
        if not rank:
            m.communicator.create("g", members)
            m.run("g", "AllReduce", part(0), reduce="sum")
        else:
            with pytest.raises(BadInputError, match="group 'g'"):
                m.communicator.create("g", members)

    found, _ = failures(main, ranks=2)
    assert list(found) == [0]
    assert found[0].rank == 1
    assert "it has failed: group 'g': it has the ranks [1, 0] at rank 0 and [0, 1] at rank 1" in str(found[0])
