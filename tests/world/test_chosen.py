"""A rank that runs by itself after the others: groups, and collectives that have been computed already."""

import os
from dataclasses import replace

import numpy as np
import pytest

from dumpsim.core.communicator import Call
from dumpsim.core.errors import BadInputError, DeviceError, UnsupportedError
from dumpsim.device.scheduler import Scheduler
from dumpsim.world.chosen import ChosenCommunicator, Record
from dumpsim.world.stacked import Shares

X = np.float32([1, 2])
SUM = Call(op="AllReduce", tensors=(("float32", (2,)),), reduce="sum")


@pytest.fixture
def record():
    record = Record([5])
    record.clear()
    return record


@pytest.fixture
def job(record):
    return ChosenCommunicator(5, 8, record, Scheduler())


class Waiter:
    woken = 0

    def wake(self):
        self.woken += 1


def test_groups_are_created_and_destroyed(job):
    world = job.group("hccl_world_group")
    assert (world.members, world.rank, world.number) == (tuple(range(8)), 5, 0)
    first, second = job.create("pair", [2, 5]), job.create("four", [5, 0, 1, 2])
    assert [(each.name, each.members, each.rank, each.number) for each in (first, second)] == [
        ("pair", (2, 5), 1, 1), ("four", (5, 0, 1, 2), 0, 2)
    ]  # fmt: skip
    assert job.group("pair") is first
    with pytest.raises(BadInputError, match="rank 5 already has a group of this name"):
        job.create("pair", [5, 6])
    job.destroy("pair")
    with pytest.raises(BadInputError, match="rank 5 has created no group 'pair'; allowed: four"):
        job.group("pair")
    with pytest.raises(BadInputError, match="no group 'pair'"):
        job.destroy("pair")
    with pytest.raises(BadInputError, match="group 'hccl_world_group': the group of all ranks cannot be destroyed"):
        job.destroy("hccl_world_group")
    with pytest.raises(UnsupportedError, match="rank 5: a chosen rank of ranks in lockstep cannot be killed: a fault"):
        job.die("a fault")


def test_a_collective_returns_the_computed_result_for_equal_tensors(job, record):
    group = job.group("hccl_world_group")
    for number in range(2):
        record.add(group.name, SUM, {5: [X]}, Shares(arrays=(8 * X,), equal=True))
        assert record.count(group.name) == number + 1
    assert record.count("pair") == 0
    meeting, waiter = group.join(SUM, lambda: [X]), Waiter()
    assert (meeting.tag, meeting.open_ns(), meeting.failure) == ("AllReduce_hccl_world_group_0", None, None)
    meeting.enter(waiter, 70)
    assert waiter.woken == 0  # results of others arrive only when the rank cannot go on
    job._later.__self__.release()
    assert (meeting.open_ns(), waiter.woken, meeting.waits_for(), meeting.give_up("")) == (70, 1, "nothing", None)
    assert [array.tolist() for array in meeting.results()] == [[8, 16]]
    with pytest.raises(DeviceError, match=r"rank 5 has called 1 collectives, the ranks in lockstep 2$"):
        record.check_end(5)
    other = group.join(SUM, lambda: [X + 1])
    assert other.tag == "AllReduce_hccl_world_group_1"
    with pytest.raises(DeviceError, match="rank 5 brings other values of tensor 0 to AllReduce_hccl_world_group_1"):
        other.results()
    record.check_end(5)
    with pytest.raises(UnsupportedError, match="rank 5 calls AllReduce, which the ranks in lockstep do not"):
        group.join(SUM, lambda: [X]).results()
    record.clear()
    record.check_end(5)
    assert record.count(group.name) == 2  # of all steps


@pytest.mark.parametrize(
    "call",
    [
        Call(op="AllGather", tensors=SUM.tensors), Call(op="AllReduce", tensors=SUM.tensors, reduce="max"),
        Call(op="AllReduce", tensors=(("float32", (1, 2)),), reduce="sum"),
    ],
)  # fmt: skip
def test_a_call_that_differs_from_the_other_ranks_is_refused(job, record, call):
    record.add("hccl_world_group", SUM, {5: [X]}, Shares(arrays=(X,), equal=True))
    with pytest.raises(DeviceError, match="its network differs"):
        job.group("hccl_world_group").join(call, lambda: [X]).results()
    record.clear()
    record.add("pair", SUM, {5: [X]}, Shares(arrays=(X,), equal=True))
    with pytest.raises(DeviceError, match="the ranks in lockstep AllReduce in 'pair'"):
        job.group("hccl_world_group").join(SUM, lambda: [X]).results()


def test_arguments_that_all_ranks_must_state_alike_are_compared(job, record):
    exchange = Call(op="AlltoAll", tensors=(("float32", (8, 2)),), axes=(8, 0, 1))
    world = job.group("hccl_world_group")
    record.add(world.name, exchange, {5: [X]}, Shares(arrays=(X,), equal=True))
    text = r"calls AlltoAll in 'hccl_world_group' with .*axes \(8, 0, 0\), the ranks .*, axes \(8, 0, 1\): its"
    with pytest.raises(DeviceError, match=text):
        world.join(replace(exchange, axes=(8, 0, 0)), lambda: [X]).results()


def test_the_output_of_a_rank_is_that_of_its_stream_with_a_prefix(tmp_path):
    from dumpsim.world.output import PrefixedOutput

    with open(tmp_path / "out", "w", encoding="latin-1") as stream:
        output = PrefixedOutput(stream, "[3] ")
        assert (output.encoding, output.writable(), output.isatty()) == ("latin-1", True, False)
        assert output.fileno() == stream.fileno()
        assert [output.write(text) for text in ("a", "b\nc\n\nd", "")] == [1, 6, 0]
        output.flush()
        assert os.path.getsize(tmp_path / "out") == len("[3] ab\n[3] c\n[3] \n")
    assert (tmp_path / "out").read_text() == "[3] ab\n[3] c\n[3] \n"
