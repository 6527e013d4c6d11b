"""Rendezvous: what a collective needs, with a sum over ranks as the kernel."""

from types import SimpleNamespace

import numpy as np
import pytest

from dumpsim.core.errors import BadInputError, DeviceError, PeerError
from dumpsim.core.gate import Failure
from dumpsim.device.chip import chip
from dumpsim.device.device import Device
from dumpsim.device.rendezvous import Rendezvous
from dumpsim.device.scheduler import Scheduler
from dumpsim.device.stream import TaskFailure
from dumpsim.device.task import Task, TaskKind


class Rank:
    """A device with a tensor that is summed over the group, in place."""

    def __init__(self, rank, scheduler, group):
        self.device = Device(chip("910B"), rank=rank, device_id=rank, scheduler=scheduler, environment={})
        self.group = group
        self.buffer = self.device.memory.allocate(8)
        self.tasks = []

    @property
    def values(self):
        return self.buffer.array(np.dtype(np.float32), (2,))

    def compute(self, value, cost_ns, stream=0):
        def work(task):
            self.values[:] = value

        return self.device.stream(stream).launch(Task(kind=TaskKind.AICORE, name="Fill", work=work, cost_ns=cost_ns))

    def all_reduce(self, stream=0):
        gate = self.group.join(self.device.rank, lambda: self.values)

        def work(task):
            self.values[:] = gate.exchange(sum)

        task = Task(kind=TaskKind.HCCL, name="AllReduce", work=work, cost_ns=0, gate=gate)
        self.tasks.append(self.device.stream(stream).launch(task))
        return task

    def fail(self, error, stream=0):
        def work(task):
            raise error

        self.device.stream(stream).launch(Task(kind=TaskKind.AICORE, name="bad", work=work))


def make(count):
    scheduler = Scheduler()
    group = scheduler.rendezvous(range(count), "world")
    return [Rank(rank, scheduler, group) for rank in range(count)]


@pytest.mark.parametrize("count", [1, 2, 4])
def test_a_sum_starts_at_the_latest_entry_for_all_and_everybody_reads_what_all_entered(count):
    ranks = make(count)
    for rank in ranks:
        number = rank.device.rank
        rank.compute(10**number, 1000 * 7 ** ((number + 2) % 4))
        rank.all_reduce()
    for rank in reversed(ranks):
        rank.device.synchronize()
    assert len({rank.tasks[0].start_ns for rank in ranks}) == 1
    for rank in ranks:
        assert rank.values.tolist() == [sum(10**n for n in range(count))] * 2


def test_the_start_is_the_end_of_the_slowest_task_before():
    ranks = make(3)
    before = [rank.compute(1, cost) for rank, cost in zip(ranks, (10, 10**6, 1000), strict=True)]
    for rank in ranks:
        rank.all_reduce()
    for rank in ranks:
        rank.device.synchronize()
    assert {rank.tasks[0].start_ns for rank in ranks} == {max(task.end_ns for task in before)}
    assert len({rank.device.clock.now_ns for rank in ranks}) == 1


def test_rounds_follow_each_other_without_a_wait_between():
    ranks = make(2)
    for _ in range(5):
        for rank in ranks:
            if not rank.tasks:
                rank.compute(rank.device.rank + 1, 100 * (rank.device.rank + 1))
            rank.all_reduce()
    for rank in ranks:
        rank.device.synchronize()
        assert rank.values.tolist() == [3 * 2**4] * 2
    assert [t.start_ns for t in ranks[0].tasks] == [t.start_ns for t in ranks[1].tasks]
    assert ranks[0].group._rounds == {}  # nothing is kept of rounds that all have left


def test_rounds_open_in_order_also_over_streams():
    ranks = make(2)
    for rank in ranks:
        rank.compute(1, 10**6)
        rank.all_reduce(stream=0)  # enters after a millisecond
        rank.all_reduce(stream=1)  # enters at once
    for rank in ranks:
        rank.device.synchronize()
        assert rank.tasks[1].start_ns >= rank.tasks[0].start_ns
    assert [rank.values.tolist() for rank in ranks] == [[4, 4], [4, 4]]


def test_nobody_overwrites_what_another_still_has_to_read():
    """A task that costs nothing runs right after the sum, at the same time, before the sums of higher ranks."""
    ranks = make(4)
    for rank in ranks:
        rank.compute(1, 10)
        rank.all_reduce()
        rank.compute(100, 0)
    copies = []
    for rank in ranks:
        rank.device.synchronize()
        copies.append(rank.group.members)
        assert rank.values.tolist() == [100, 100]
    for rank in ranks:
        rank.compute(1, 10)
        rank.all_reduce()
        rank.device.stream(0).launch(
            Task(kind=TaskKind.AICORE, name="Copy", work=lambda _, r=rank: copies.append(r.values.tolist()))
        )
        rank.compute(100, 0)
    for rank in ranks:
        rank.device.synchronize()
    assert copies[4:] == [[4, 4]] * 4


def test_a_missing_rank_is_named():
    ranks = make(4)
    for rank in ranks[:2]:
        rank.all_reduce()
        rank.compute(1, 10)
    with pytest.raises(DeviceError) as caught:
        ranks[1].device.synchronize()
    assert str(caught.value).splitlines() == [
        "deadlock: no stream can progress and work is left",
        "  rank 0 device 0 stream 0: task 0 (KERNEL_HCCL, AllReduce) waits for ranks 2, 3 to enter round 0 of group "
        "'world'; 1 tasks queued after it",
        "  rank 1 device 1 stream 0: task 0 (KERNEL_HCCL, AllReduce) waits for ranks 2, 3 to enter round 0 of group "
        "'world'; 1 tasks queued after it [DS-DEV-002]",
    ]
    # rank 1 has given up: rank 0 learns it at its own wait
    with pytest.raises(PeerError, match=r"rank 0 .*AllReduce waited for rank 1, which has failed: deadlock"):
        ranks[0].device.synchronize()


@pytest.mark.parametrize("lasting", [True, False])
def test_a_rank_that_fails_before_it_enters_fails_its_peers(lasting):
    ranks = make(4)
    cause = DeviceError("aicore error") if lasting else OSError("disk full")
    for rank in ranks:
        if rank.device.rank == 2:
            rank.fail(TaskFailure(cause) if lasting else cause)
        rank.all_reduce()
        rank.compute(1, 10)
    for rank in (ranks[3], ranks[0], ranks[1]):
        with pytest.raises(PeerError, match="AllReduce waited for rank 2, which has failed: ") as caught:
            rank.device.synchronize()
        assert caught.value.__cause__ is cause
    with pytest.raises(type(cause), match=r"error|full"):
        ranks[2].device.synchronize()


def test_a_group_outlives_an_exception_that_drops_none_of_its_tasks():
    ranks = make(2)
    ranks[0].fail(OSError("disk full"))
    with pytest.raises(OSError, match="disk full"):
        ranks[0].device.synchronize()
    for rank in ranks:
        rank.compute(1, 10)
        rank.all_reduce()
    for rank in ranks:
        rank.device.synchronize()
        assert rank.values.tolist() == [2, 2]


def test_a_group_that_the_own_rank_has_left_is_an_error_for_it_too():
    ranks = make(2)
    ranks[0].fail(OSError("disk full"))
    ranks[0].all_reduce()
    with pytest.raises(OSError, match="disk full"):
        ranks[0].device.synchronize()
    ranks[0].all_reduce()
    with pytest.raises(DeviceError, match="AllReduce waited for a task that was dropped: disk full"):
        ranks[0].device.synchronize()


def test_a_rank_that_fails_fails_groups_whose_round_it_has_not_launched():
    ranks = make(2)
    ranks[0].all_reduce()
    ranks[1].fail(TaskFailure(DeviceError("aicore error")))
    with pytest.raises(PeerError, match="rank 1, which has failed: aicore error"):
        ranks[0].device.synchronize()


def test_rounds_that_have_opened_end_well_though_a_member_fails_later():
    ranks = make(2)
    for rank in ranks:
        rank.compute(1, 10)
        rank.all_reduce()
    ranks[0].fail(TaskFailure(DeviceError("aicore error")))  # costs nothing: before the sum of rank 1 runs
    with pytest.raises(DeviceError, match="aicore error"):
        ranks[0].device.synchronize()
    ranks[1].device.synchronize()
    assert ranks[1].values.tolist() == [2, 2]
    ranks[1].all_reduce()
    with pytest.raises(PeerError):
        ranks[1].device.synchronize()


def test_a_failed_rank_fails_who_waits_in_another_group_for_its_peer():
    scheduler = Scheduler()
    left, right = scheduler.rendezvous([0, 1], "left"), scheduler.rendezvous([1, 2], "right")
    ranks = [Rank(rank, scheduler, left) for rank in range(3)]
    ranks[0].fail(TaskFailure(DeviceError("aicore error")))
    ranks[1].all_reduce()
    ranks[1].group = ranks[2].group = right
    ranks[1].all_reduce()
    ranks[2].all_reduce()
    with pytest.raises(PeerError, match=r"rank 2 .* waited for rank 0, which has failed: aicore error"):
        ranks[2].device.synchronize()


def test_a_round_waits_for_the_one_before():
    group = Rendezvous([0, 1], "pair")
    first = [group.join(rank, lambda: 1) for rank in (0, 1)]
    second = [group.join(rank, lambda: 2) for rank in (0, 1)]
    woken = []
    waiters = [SimpleNamespace(wake=lambda at=at: woken.append(at)) for at in range(4)]
    for gate, waiter, time in zip(second, waiters, (40, 10), strict=False):
        gate.enter(waiter, time)
    assert second[0].waits_for() == "the rounds before round 1 of group 'pair'"
    assert (second[0].open_ns(), second[0].opened, second[0].missing()) == (None, False, [])
    assert first[1].missing() == [0, 1]
    assert first[1].waits_for() == "ranks 0, 1 to enter round 0 of group 'pair'"
    for gate, waiter, time in zip(first, waiters[2:], (5, 7), strict=True):
        gate.enter(waiter, time)
    assert ([gate.open_ns() for gate in first], woken) == ([7, 7], [2])  # the last one to enter does not wait
    assert [gate.exchange(sum) for gate in first] == [2, 2]
    first[0].leave(100)
    assert second[1].open_ns() is None
    first[1].leave(90)
    assert ([gate.open_ns() for gate in second], woken) == ([100, 100], [2, 0, 1])  # not before the latest end
    assert [gate.number for gate in (*first, *second)] == [0, 0, 1, 1]
    assert group._rounds.keys() == {1}


def test_what_a_judge_says_fails_its_members_alone():
    asked = []
    failure = Failure(rank=1, time_ns=70, error=OSError("late"))

    def judge(number, entered):
        asked.append((number, dict(entered)))
        return {1: failure}

    group = Rendezvous([0, 1], "pair", judge)
    gates = [group.join(rank, lambda: 1) for rank in (0, 1)]
    assert (group.failure, gates[0].failure) == (None, None)
    for gate, time in zip(gates, (5, 9), strict=True):
        gate.enter(SimpleNamespace(wake=lambda: None), time)
    assert asked == [(0, {0: 5, 1: 9})]
    assert [gate.failure for gate in gates] == [None, failure]
    assert [gate.open_ns() for gate in gates] == [9, 70]
    group.fail(failure)
    group.fail(Failure(rank=0, time_ns=80, error=OSError("again")))
    assert group.failure is failure  # the first
    assert gates[0].open_ns() == 9  # its round has opened before
    assert group.join(0, lambda: 1).open_ns() == 70


def test_a_round_opens_once_at_any_time_and_not_after_a_failure():
    asked, later = [], []
    group = Rendezvous([0, 1], "pair", lambda number, entered: asked.append(number) or {}, later.append)
    waiter = SimpleNamespace(wake=lambda: None)
    rounds = [[group.join(rank, lambda: 1) for rank in (0, 1)] for _ in range(3)]
    for gate in rounds[0]:
        gate.enter(waiter, 0)
    assert [gate.open_ns() for gate in rounds[0]] == [None, None]
    later.pop()()
    assert [gate.open_ns() for gate in rounds[0]] == [0, 0]
    for gate in rounds[1]:  # while the round before is open
        gate.enter(waiter, 0)
    assert (asked, later) == ([0], [])
    for gate in rounds[0]:
        gate.leave(0)
    later.pop()()
    assert [gate.open_ns() for gate in rounds[1]] == [0, 0]
    for gate in (*rounds[2], *rounds[1]):
        gate.enter(waiter, 3) if gate in rounds[2] else gate.leave(3)
    group.fail(failure := Failure(rank=1, time_ns=70, error=OSError("late")))
    later.pop()()
    assert [gate.failure for gate in rounds[2]] == [failure, failure]
    assert (asked, later) == ([0, 1], [])


def test_only_members_join():
    with pytest.raises(BadInputError, match="group 'world': rank 4 is not a member; allowed: 0-3"):
        make(4)[0].group.join(4, lambda: None)
