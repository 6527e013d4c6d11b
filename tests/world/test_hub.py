"""The hub of a job and its ranks: messages, liveness, foreign connections, refusals."""

import gc
import json
import os
import signal
import socket
import struct
import threading
import time

import numpy as np
import pytest

from dumpsim.core.communicator import Call
from dumpsim.core.errors import BadInputError, CollectiveError, DeviceError
from dumpsim.device.chip import chip
from dumpsim.device.device import Device
from dumpsim.device.task import Task, TaskKind
from dumpsim.world.client import connect
from dumpsim.world.hub import Hub, endpoint

WORLD = "hccl_world_group"


class Rank:
    """A rank with a device, in a thread or process of its own."""

    def __init__(self, hub, rank):
        self.client = connect(hub.address, token=hub.token, rank=rank, size=hub.size)
        self.device = Device(chip("910B"), rank=rank, scheduler=self.client.scheduler, environment={})

    def run(self, op, *tensors, group=WORLD, **fields):
        group = self.client.group(group)
        kinds = tuple((array.dtype.name, array.shape) for array in tensors)
        call = Call(op=op, tensors=kinds, **fields)
        meeting = group.join(call, lambda: tensors)
        found = []
        work = Task(
            kind=TaskKind.HCCL,
            name=op,
            work=lambda task: found.extend(meeting.results()),
            gate=meeting,
            cost_ns=group.cost_ns(call),
        )
        self.device.stream(1 + group.number).launch(work)
        self.device.synchronize()
        return found


def in_threads(hub, main, ranks=None):
    """Run ``main(rank)`` with a connection in each of some threads; return what it gives or raises, and leave."""
    found = {}

    def run(number):
        rank = None
        try:
            rank = Rank(hub, number)
            found[number] = main(rank)
        except BaseException as error:
            found[number] = error
        finally:
            if rank is not None:
                error = found[number]
                rank.client.leave(error if isinstance(error, BaseException) else None)

    threads = [threading.Thread(target=run, args=[number]) for number in (range(hub.size) if ranks is None else ranks)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    return [found[number] for number in sorted(found)]


def forked(main):
    pid = os.fork()
    if pid == 0:
        try:
            main()
        finally:
            os._exit(3)
    return pid


@pytest.mark.parametrize("size", [3, 40_000])  # with the message, and in shared memory
def test_collectives_and_messages(size):
    def main(rank):
        number = rank.client.rank
        rank.client.enter()
        mine = np.arange(size, dtype=np.float32) + number
        found = [rank.run("AllReduce", mine, reduce="sum")[0] for _ in range(3)]
        if number == 0:
            assert rank.run("Send", mine, root=2) == []
        if number == 2:
            found += rank.run("Receive", root=0, expected=(("float32", (size,)),))
        found += rank.run("AllGather", mine[:2]) + rank.run("Broadcast", mine * 2, root=1)
        assert len(rank.client._carrier._pool.segments) <= 5  # memory is used again
        return found

    with Hub(3).start() as hub:
        first, second, third = in_threads(hub, main)
        assert hub.wait(10)
    term = np.arange(size, dtype=np.float32)
    for found in (first, second, third):
        for total in found[:3]:
            np.testing.assert_array_equal(total, term * 3 + 3)
            assert not total.flags.writeable
        np.testing.assert_array_equal(found[-2], [0, 1, 1, 2, 2, 3])
        np.testing.assert_array_equal(found[-1], (term + 1) * 2)
    np.testing.assert_array_equal(third[3], term)
    assert {rank: ending.kind for rank, ending in hub.endings.items()} == {0: "left", 1: "left", 2: "left"}


def test_collectives_of_a_type_are_numbered_in_each_group():
    """As between threads."""

    def main(rank):
        group = rank.client.group(WORLD)
        calls = [Call(op=op, tensors=(("float32", (1,)),), reduce="sum") for op in ("AllReduce", "ReduceScatter")]
        return [group.join(calls[which], lambda: ()).tag for which in (0, 1, 0, 0)]

    with Hub(1).start() as hub:
        (tags,) = in_threads(hub, main)
    numbered = ("AllReduce", 0), ("ReduceScatter", 0), ("AllReduce", 1), ("AllReduce", 2)
    assert tags == [f"{op}_{WORLD}_{number}" for op, number in numbered]


def test_groups():
    def main(rank):
        number = rank.client.rank
        name = "even" if number % 2 == 0 else "odd"
        rank.client.create(name, [2, 0] if name == "even" else [1, 3])
        if number == 3:
            with pytest.raises(BadInputError, match="is not one of its ranks"):
                rank.client.create("other", [0, 1])
        (found,) = rank.run("AllGather", np.array([number]), group=name)
        rank.client.destroy(name)
        with pytest.raises(BadInputError, match="no group"):
            rank.client.group(name)
        return found.tolist()

    with Hub(4).start() as hub:
        assert in_threads(hub, main) == [[2, 0], [1, 3], [2, 0], [1, 3]]


def test_ranks_that_disagree():
    def main(rank):
        kind = "int32" if rank.client.rank == 2 else "float32"
        return rank.run("AllReduce", np.ones(4, kind), reduce="sum")

    with Hub(3).start() as hub:
        found = in_threads(hub, main)
    told = [error for error in found if isinstance(error, CollectiveError)]
    assert told
    assert {(error.code, error.rank) for error in told} == {("EI0005", 2)}


def test_a_deadlock_is_found_immediately_and_names_the_missing_ranks():
    def main(rank):
        if rank.client.rank == 1:
            return None
        return rank.run("Barrier")

    with Hub(3).start() as hub:
        start = time.monotonic()
        first, second, third = in_threads(hub, main)
        assert time.monotonic() - start < 30
    assert second is None
    assert isinstance(first, CollectiveError)
    assert first.rank == 1
    assert "rank 1: its program has ended" in "".join(first.__notes__)
    assert "rank 2 device 0 stream 1" in "".join(first.__notes__)
    assert third is not None


def test_a_killed_rank_is_noticed_within_a_tenth_of_a_second():
    told = []
    hub = Hub(2, report=lambda rank, ending: told.append((rank, ending)))

    def dies():
        hub.abandon()
        rank = Rank(hub, 1)
        rank.run("Barrier")
        if os.fork() == 0:  # a child that keeps the socket open
            time.sleep(5)
            os._exit(0)
        os.kill(os.getpid(), signal.SIGKILL)

    pid = forked(dies)
    with hub.start():

        def main(rank):
            rank.run("Barrier")
            return rank.run("Barrier")

        (error,) = in_threads(hub, main, [0])
        os.waitpid(pid, 0)
        hub.wait(5)
    assert isinstance(error, CollectiveError)
    assert error.rank == 1
    assert error.code == "EI0002"
    assert [(rank, ending.kind) for rank, ending in told] == [(1, "died"), (0, "failed")]


def test_the_end_of_the_hub_ends_the_ranks():
    hub = Hub(2).start()
    rank = Rank(hub, 0)
    threading.Timer(0.2, hub.close).start()
    with pytest.raises(DeviceError, match=r"the hub of the job at .* has ended"):
        rank.run("Barrier")
    rank.client.leave()


def test_refusals():
    with Hub(2).start() as hub:
        reached = {"address": hub.address, "token": hub.token}
        first = connect(rank=0, size=2, **reached)
        with pytest.raises(BadInputError, match="rank 0 is connected already, as process"):
            connect(rank=0, size=2, **reached)
        with pytest.raises(BadInputError, match="rank 1 states 3 ranks, the job has 2"):
            connect(rank=1, size=3, **reached)
        with pytest.raises(BadInputError, match="rank 2 is outside of a job of 2 ranks; allowed: 0 to 1"):
            connect(rank=2, size=3, **reached)
        with pytest.raises(BadInputError, match="RANK_ID: rank -1 is outside"):
            connect(rank=-1, size=2, **reached)
        with pytest.raises(BadInputError, match="DUMPSIM_HUB_TOKEN does not match the token of the job"):
            connect(hub.address, token="guessed", rank=1, size=2)
        first.leave()
        with pytest.raises(BadInputError, match="rank 0 of the job has ended"):
            connect(rank=0, size=2, **reached)


def test_addresses():
    with Hub(1, address="127.0.0.1:0").start() as hub:
        with pytest.raises(BadInputError, match=f"{hub.address} is in use already"):
            Hub(1, address=hub.address)
        assert in_threads(hub, lambda rank: rank.run("Barrier")) == [[]]
    for wrong in ("", "unix:", "unix:name", "host", "host:port", "host:70000", ":1"):
        with pytest.raises(BadInputError, match="is not the address of a hub"):
            endpoint(wrong)
    with pytest.raises(DeviceError, match=r"cannot reach the hub of the job at unix:@dumpsim-nobody within 0.1 s"):
        connect("unix:@dumpsim-nobody", rank=0, size=1, timeout_s=0.1)


def test_missing_ranks_are_named():
    with Hub(3, connect_s=0.3).start() as hub:
        (error,) = in_threads(hub, lambda rank: rank.client.enter(), [1])
    assert isinstance(error, DeviceError)
    assert error.code == "EI0015"
    assert "connected ranks [1], missing ranks [0, 2]" in str(error)
    assert "0.3 s" in hub.endings[2].text


def test_a_rank_that_computes_for_ever_is_given_up():
    with Hub(2, watchdog_s=0.3).start() as hub:
        busy = connect(hub.address, token=hub.token, rank=1, size=2)
        (error,) = in_threads(hub, lambda rank: rank.run("Barrier"), [0])
        busy.leave()
    assert isinstance(error, CollectiveError)
    assert error.rank == 1
    assert "computes, and no rank has sent a message for 0.3 s" in str(error)


def frame(text):
    return struct.pack(">I", len(text)) + text


STRANGE = {
    "nothing": b"",
    "no frame": b"GET / HTTP/1.1\r\n\r\n",
    "a long frame": struct.pack(">I", 1 << 31),
    "no JSON": frame(b"{"),
    "deep JSON": frame(b"[" * 4000),
    "no object": frame(b"[1]"),
    "no hello": frame(b'{"kind":"join"}'),
    "a hello without fields": frame(b'{"kind":"hello"}'),
    "a hello with wrong fields": frame(json.dumps({"kind": "hello", "token": 3, "rank": "0"}).encode()),
    "half a frame": frame(b'{"kind":"hello"}')[:9],
}


@pytest.mark.parametrize("received", STRANGE.values(), ids=STRANGE)
def test_foreign_connections_neither_end_nor_hang_the_job(received):
    with Hub(1).start() as hub:
        strangers = []
        for _ in range(3):
            stranger = socket.socket(socket.AF_UNIX)
            stranger.connect(endpoint(hub.address)[1])
            stranger.sendall(received)
            strangers.append(stranger)
        assert in_threads(hub, lambda rank: rank.run("Barrier")) == [[]]
        assert hub.wait(10)
        for stranger in strangers:
            stranger.close()
    assert hub.endings[0].kind == "left"


def test_a_rank_that_sends_invalid_messages_is_given_up():
    with Hub(2).start() as hub:
        strange = connect(hub.address, token=hub.token, rank=1, size=2)
        strange._send("join", m="x")
        (error,) = in_threads(hub, lambda rank: rank.run("Barrier"), [0])
        strange._socket.close()
    assert isinstance(error, CollectiveError)
    assert "it has sent an invalid message: join.time is None; allowed: int" in str(error)


def test_no_descriptor_or_shared_memory_is_left():
    before = len(os.listdir("/proc/self/fd"))
    with Hub(2).start() as hub:
        in_threads(hub, lambda rank: rank.run("AllReduce", np.ones(50_000, np.float32), reduce="sum"))
    gc.collect()  # a map has a descriptor
    assert not [name for name in os.listdir("/dev/shm") if "dumpsim" in name]
    assert len(os.listdir("/proc/self/fd")) <= before + 1
