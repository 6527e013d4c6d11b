"""Small pieces of the transports, called directly."""

import base64
import contextlib
import io
import json
import os
import random
import socket
import sys
from dataclasses import asdict
from types import SimpleNamespace

import numpy as np
import pytest

from dumpsim.core.communicator import Call, Terms
from dumpsim.core.errors import BadInputError, DeviceError, PeerError, UnreadableError
from dumpsim.core.gate import Failure
from dumpsim.core.settings import RunSettings
from dumpsim.device.chip import chip
from dumpsim.device.scheduler import Scheduler
from dumpsim.world import client, process, twister
from dumpsim.world.carrier import SharedTensors
from dumpsim.world.client import Client, RemoteGroup, _Hosts, connect
from dumpsim.world.context import RankContext, World
from dumpsim.world.cost import collective_ns
from dumpsim.world.ending import RankKilled, RankStopped
from dumpsim.world.exchange import Exchange
from dumpsim.world.faulty import _as, _other, _resized
from dumpsim.world.hosts import RankHosts, turns
from dumpsim.world.hub import Hub
from dumpsim.world.mailbox import Mailbox, PairMeeting
from dumpsim.world.membership import check_members
from dumpsim.world.output import PrefixedOutput
from dumpsim.world.reduction import folder
from dumpsim.world.segment import Block, Pool, Reader, open_segment, view
from dumpsim.world.terms import terms_of
from dumpsim.world.twister import NumpyRandom, PythonRandom
from dumpsim.world.wire import Frames, WireError, encode, encode_call, encode_error, encode_failure, rebuild

SUM = Call(op="AllReduce", tensors=(("float32", (2, 3)), ("int8", ())), reduce="sum", name="n", place="p")
HALF = Call(op="AllGather", tensors=(("float16", ()),), name="n", place="p")


@pytest.mark.parametrize(
    ("call", "change", "op", "tensors"),
    [
        (SUM, "op", "Barrier", ()), (SUM, "count", "AllReduce", (("float32", (3, 3)), ("int8", ()))),
        (SUM, "type", "AllReduce", (("float16", (2, 3)), ("int8", ()))),
        (HALF, "type", "AllGather", (("float32", ()),)), (HALF, "count", "AllGather", (("float16", (2,)),)),
        (Call(op="Barrier", name="n", place="p"), "op", "AllReduce", (("float32", (1,)),)),
        (Call(op="Barrier", name="n", place="p"), "count", "AllReduce", (("float32", (1,)),)),
        (Call(op="Receive", name="n", place="p"), "type", "Barrier", ()),
    ],
)  # fmt: skip
def test_a_call_that_differs_keeps_its_place(call, change, op, tensors):
    found = _other(call, change)
    assert (found.op, found.tensors, found.name, found.place) == (op, tensors, "n", "p")
    assert found.reduce == ("sum" if op == "AllReduce" and "AllReduce" in (call.op, op) else "")


def test_values_are_repeated_or_cut_for_another_call():
    x = np.float32([1, 2, 3])
    assert _as(x, "float32", (3,)) is x
    assert _as(x, "float16", (5,)).tolist() == [1, 2, 3, 1, 2]
    assert _as(x, "int8", (2, 1)).tolist() == [[1], [2]]
    call = Call(op="X", tensors=(("float32", (2,)), ("int8", (3,))))
    found = _resized(call, lambda: [x])()
    assert [(one.dtype.name, one.tolist()) for one in found] == [("float32", [1, 2]), ("int8", [0, 0, 0])]
    assert len(_resized(Call(op="X", tensors=(("float32", (2,)),)), lambda: [x, x])()) == 1


def test_an_empty_share_has_no_location():
    one = object.__new__(SharedTensors)
    for start, end in ((3, 3), (4, 3)):
        assert one.reduce(SUM, [], None, start, end, []) == {}


def test_a_share_of_a_sum_is_freed_with_the_tensors_of_its_member():
    told = []
    one = SharedTensors(lambda kind, **fields: told.append(fields["size"]))
    try:
        call = Call(op="AllReduce", tensors=(("float32", (4,)),), reduce="sum")
        places = [{"inline": base64.b64encode(np.arange(4, dtype=np.float32) + at).decode()} for at in range(2)]
        for _ in range(3):
            _, handle = one.publish([np.zeros(2000, np.int8)], None)
            place = one.reduce(call, places, lambda terms, *_, **__: sum(terms), 1, 3, handle)
            assert (len(handle), len(told)) == (2, 2)  # other processes can open both
            found = view(one._pool.segments[place["segment"]].map(), "float32", (2,))
            assert found.tolist() == [3, 5]
            one.free(handle)
        assert len(told) == 2  # the memory of the first round was used again
    finally:
        one.close()


def test_members_join_the_shares_that_they_have_reduced():
    one = SharedTensors(lambda kind, **fields: None)
    try:
        call = Call(op="AllReduce", tensors=(("float32", (2, 3)),), reduce="sum")
        terms = [np.arange(6, dtype=np.float32).reshape(2, 3) * factor for factor in (1, 10)]
        places = [{"inline": base64.b64encode(term.tobytes()).decode()} for term in terms]
        chunks = []
        for start, end in ((4, 6), (0, 4)):
            place = one.reduce(call, places, lambda terms, *_, **__: sum(terms) + 0.5, start, end, [])
            segment = one._pool.segments[place["segment"]]
            chunks.append({"path": segment.path, "size": segment.size, "start": start, "end": end})
        calls = [call, call]
        (found,) = one.collect(calls, places, 1, lambda terms, reduce: sum(terms) - 0.5, chunks)
        assert found.tolist() == (sum(terms) + 0.5).tolist()
        (found,) = one.collect(calls, places, 1, lambda terms, reduce: sum(terms) - 0.5, [])
        assert found.tolist() == (sum(terms) - 0.5).tolist()
    finally:
        one.close()


def rounds(**changes):
    large = Call(op="AllReduce", tensors=(("float32", (1 << 20,)),), reduce="sum")
    found = {"members": (0, 1), "calls": {0: large, 1: large}, "places": {0: {"segment": 1}, 1: {"segment": 2}}}
    return SimpleNamespace(**{**found, **changes})


def test_a_large_sum_of_equal_calls_is_shared():
    exchange = Exchange(2, lambda rank, message: 0, lambda rank, ending: None)
    large = rounds().calls[0]
    assert exchange._is_shared(rounds())
    small = Call(op="AllReduce", tensors=(("float32", (4,)),), reduce="sum")
    for changes in (
        {"calls": {0: small, 1: small}}, {"calls": {0: large}}, {"calls": {1: large}}, {"members": (0,)},
        {"calls": {0: large, 1: small}}, {"places": {0: {"parcel": 1}, 1: {"segment": 2}}},
        {"calls": {0: large, 1: Call(op="AllReduce", tensors=large.tensors, reduce="max")}},
        {"calls": dict.fromkeys((0, 1), Call(op="AllGather", tensors=large.tensors))},
    ):  # fmt: skip
        assert not exchange._is_shared(rounds(**changes))
    exchange.endings[1] = object()
    assert not exchange._is_shared(rounds())


def host(error=None):
    return SimpleNamespace(error=error, done=False)


def test_the_end_of_a_rank_stops_the_others_unless_it_was_killed():
    killed = []
    for error, stops, failed in (
        (ValueError("x"), True, [0]), (RankStopped("later"), False, []), (RankKilled("a fault"), False, [0]),
    ):  # fmt: skip
        one = object.__new__(RankHosts)
        one._hosts, one._failed, one._killed, one._stopping = [host()], [], set(), False
        one.scheduler = SimpleNamespace(kill=killed.append)
        one._end(0, error)
        assert (one._stopping, one._failed) == (stops, failed)
        assert (one._killed == {0}) is isinstance(error, RankKilled)
        one._end(0, OSError("at the end"))
        notes = getattr(one._hosts[0].error, "__notes__", [])
        assert notes == ["then, at the end of the rank: OSError: at the end"]
        one._end(0, RankStopped("no note"))
        assert len(one._hosts[0].error.__notes__) == 1
    (failure,) = killed
    assert (failure.rank, str(failure.error)) == (0, "rank 0: its process was killed by SIGKILL (a fault)")
    one._failed = []
    assert one._reason() == "the launch was interrupted"
    one._failed, one._hosts = [0], [host(KeyError("k"))]
    assert one._reason() == "rank 0 has raised KeyError"


def test_a_rank_that_waits_again_after_an_error_between_turns_is_stopped_again():
    class Broken(RankContext):
        def resume(self, state=None):
            raise OSError("its directory is gone")

    def waits():
        for _ in range(2):
            with pytest.raises(RankStopped, match=r"^rank 0 is stopped: the launch was interrupted$"):
                hosts.switch(0)
        done.append(True)

    hosts, world, done = RankHosts(), World(2), []
    hosts.add(RankContext(rank=0, size=2, world=world), waits)
    hosts.add(Broken(rank=1, size=2, world=world), list)
    with pytest.raises(OSError, match="its directory is gone"):
        hosts.run()
    assert done == [True]


def test_a_rank_dies_as_a_killed_process_does(monkeypatch):
    done = []
    one = object.__new__(Client)
    one.rank, one._die = 3, lambda: done.append("told")
    monkeypatch.setattr("os.kill", lambda pid, number: done.append(number))
    with pytest.raises(DeviceError, match="the process of rank 3 has survived SIGKILL: a fault"):
        one.die("a fault")
    assert done == ["told", 9]
    one._die = None
    with pytest.raises(DeviceError, match="has survived"):
        one.die("a fault")
    assert done == ["told", 9, 9]


# ---------------------------------------------------------------- terms
SECOND = 10**9


@pytest.mark.parametrize(
    ("environment", "name", "connect", "execution"),
    [
        ({}, "910B", 150, 1836), ({}, "910A", 150, 1836), ({"HCCL_CONNECT_TIMEOUT": ""}, "910B", 150, 1836),
        ({"HCCL_CONNECT_TIMEOUT": "120"}, "910B", 150, 1836), ({"HCCL_CONNECT_TIMEOUT": "7200"}, "910B", 7230, 1836),
        ({"HCCL_EXEC_TIMEOUT": "0"}, "910B", 150, None), ({"HCCL_EXEC_TIMEOUT": "1"}, "910B", 150, 1),
        ({"HCCL_EXEC_TIMEOUT": "2147483647"}, "910B", 150, 2147483647), ({"HCCL_EXEC_TIMEOUT": "1"}, "910A", 150, 68),
        ({"HCCL_EXEC_TIMEOUT": "135"}, "910A", 150, 68), ({"HCCL_EXEC_TIMEOUT": "136"}, "910A", 150, 136),
        ({"HCCL_EXEC_TIMEOUT": "17340"}, "910A", 150, 17340),
    ],
)  # fmt: skip
def test_times_to_wait_are_those_of_hccl(environment, name, connect, execution):
    """20 s to find who is missing, 10 s for the reason; a timer of the 910 has steps of 68 s. [spec parallel 3.5]"""
    found = terms_of(environment, chip(name), RunSettings())
    assert found.connect_ns == connect * SECOND
    assert found.exec_ns == (None if execution is None else execution * SECOND)
    assert found.saturates is (name == "910A")


@pytest.mark.parametrize(
    ("variable", "text", "name", "low", "high"),
    [
        ("HCCL_CONNECT_TIMEOUT", "119", "910B", 120, 7200), ("HCCL_CONNECT_TIMEOUT", "7201", "910B", 120, 7200),
        ("HCCL_CONNECT_TIMEOUT", "x", "910B", 120, 7200), ("HCCL_EXEC_TIMEOUT", "-1", "910B", 0, 2147483647),
        ("HCCL_EXEC_TIMEOUT", "2147483648", "910B", 0, 2147483647), ("HCCL_EXEC_TIMEOUT", "0", "910A", 1, 17340),
        ("HCCL_EXEC_TIMEOUT", "17341", "910A", 1, 17340), ("HCCL_EXEC_TIMEOUT", "00000000001", "910B", 0, 2147483647),
        ("HCCL_EXEC_TIMEOUT", "\u0663", "910B", 0, 2147483647),
    ],
)  # fmt: skip
def test_times_outside_of_their_range_are_refused_with_the_text_of_hccl(variable, text, name, low, high):
    with pytest.raises(BadInputError) as caught:
        terms_of({variable: text}, chip(name), RunSettings())
    said = f"Value {text} for environment variable {variable} is invalid. Expected value: range[{low}, {high}]"
    assert str(caught.value) == f"{variable}: {said} [EI0001]"
    with pytest.raises(BadInputError, match=f"Value {'9' * 64} for"):
        terms_of({variable: "9" * 100}, chip(name), RunSettings())


def test_settings_and_the_mode_of_the_chip_are_terms_too():
    settings = RunSettings(reduce_order="tree", collective_check="off")
    found = terms_of({"MS_ASCEND_CHECK_OVERFLOW_MODE": "SATURATION_MODE"}, chip("910B"), settings)
    assert (found.order, found.check, found.saturates) == ("tree", "off", True)


# ---------------------------------------------------------------- groups and turns
@pytest.mark.parametrize(
    ("name", "members", "said"),
    [
        ("old", [0, 1], "rank 1 already has a group of this name"),
        ("", [0, 1], "rank 1 already has a group of this name"),
        ("nccl_world_group", [1], "rank 1 already has a group of this name"),
        ("new", [], "the list of ranks is empty; allowed: 0 to 3"),
        ("new", [1, 4], "rank 4 does not exist; allowed: 0 to 3"),
        ("new", [1, -1], "rank -1 does not exist; allowed: 0 to 3"), ("new", [1, True], "rank True does not exist"),
        ("new", [1, "2"], "rank 2 does not exist"), ("new", [1, 2, 1], r"a rank is repeated: \[1, 2, 1\]"),
        ("new", [0, 2], r"rank 1 creates it, but is not one of its ranks \[0, 2\]"),
    ],
)  # fmt: skip
def test_groups_that_cannot_be_created(name, members, said):
    with pytest.raises(BadInputError, match=f"^group '{name}': {said}"):
        check_members(name, members, 1, 4, ["old"])
    assert check_members("new", [3, 1, 0], 1, 4, ["old"]) == (3, 1, 0)


def test_whose_turn_it_is():
    runnable = [1, 4, 6]
    for last, following, before in ((-1, 1, 6), (0, 1, 6), (1, 4, 6), (4, 6, 1), (5, 6, 4), (6, 1, 4), (7, 1, 6)):
        assert runnable[turns("rank")(runnable, last)] == following
        assert runnable[turns("reverse")(runnable, last)] == before
    one, other = turns("random:7"), turns("random:7")
    drawn = [one(runnable, 0) for _ in range(50)]
    assert drawn == [other(runnable, 0) for _ in range(50)]
    assert set(drawn) == {0, 1, 2}
    assert turns("random:" + "9" * 18)([3], 0) == 0
    for text in ("", "ranks", "random", "random:", "random:x", "random:\u0663", "random:" + "9" * 19, "rank:1"):
        with pytest.raises(
            BadInputError, match=r"--schedule: unknown order of turns .*; allowed: rank, reverse, random:SE"
        ):
            turns(text)


def test_a_waiting_rank_can_run_once_and_in_its_order():
    one = RankHosts()
    one._waiting.update((1, 2, 4, 5))
    for rank in (4, 1, 2, 1, 4, 3, 0, 2):  # 0 and 3 do not wait
        one.wake(rank)
    assert one._runnable == [1, 2, 4]
    assert (one.elsewhere(), one.report()) == ((), [])
    one._hosts = [SimpleNamespace(done=rank != 1) for rank in range(3)]
    assert one.report() == ["  rank 0: its program has ended", "  rank 2: its program has ended"]


def test_the_rank_that_is_blamed():
    one = RankHosts()
    peer = PeerError("rank 2 is late", rank=2)
    for errors, failed, blamed in (
        ([peer, None, None], [0], 0), ([peer, None, ValueError()], [0, 2], 2), ([ValueError(), None, peer], [0, 2], 0),
        ([peer, ValueError(), None], [0, 1], 0),
    ):  # fmt: skip
        one._hosts = [SimpleNamespace(error=error) for error in errors]
        one._failed = failed
        assert one._blamed() == blamed


# ---------------------------------------------------------------- output
def test_lines_of_a_rank_are_written_when_they_are_complete():
    class Stream(io.StringIO):
        encoding, flushed = "latin-1", 0

        def flush(self):
            self.flushed += 1

        def isatty(self):
            return True

        def fileno(self):
            return 77

    output = PrefixedOutput(stream := Stream(), "> ")
    assert [output.write(text) for text in ("a", "b\nc\n\nd", "")] == [1, 6, 0]
    assert stream.getvalue() == "> ab\n> c\n> \n"
    output.flush()
    assert (stream.flushed, stream.getvalue()) == (1, "> ab\n> c\n> \n")
    output.finish()
    output.finish()
    assert stream.getvalue() == "> ab\n> c\n> \n> d\n"
    assert (output.encoding, output.isatty(), output.fileno(), output.writable()) == ("latin-1", True, 77, True)


# ---------------------------------------------------------------- shared memory
def test_blocks_are_powers_of_two_and_used_again():
    pool = Pool()
    try:
        sizes = [pool.reserve(size) for size in (0, 1, 1 << 16, (1 << 16) + 1, 1 << 17)]
        assert sizes == [Block(segment=at, size=size << 16) for at, size in enumerate((1, 1, 1, 2, 2))]
        assert [segment.size for segment in pool.segments] == [block.size for block in sizes]
        pool.free(sizes[1])
        pool.free(sizes[3])
        assert pool.reserve(70_000) == sizes[3]
        assert pool.reserve(7) == sizes[1]
        assert pool.reserve(7).segment == 5
    finally:
        pool.close()


def test_tensors_of_another_rank_are_read_where_they_lie():
    pool, reader = Pool(), Reader()
    tensors = [
        np.arange(17, dtype=np.int8),
        np.float32(2.5).reshape(()),
        np.zeros((0, 3)),
        np.arange(6.0).reshape(2, 3),
    ]
    try:
        block, offsets = pool.put(tensors)
        assert offsets == [0, 64, 128, 128]  # each on a line of the processor's cache
        path = pool.segments[block.segment].path
        for tensor, offset in zip(tensors, offsets, strict=True):
            found = reader.read(path, block.size, tensor.dtype.name, tensor.shape, offset)
            assert (found.dtype, found.shape, found.tolist()) == (tensor.dtype, tensor.shape, tensor.tolist())
            assert not found.flags.writeable
        pool.write(block, 64, np.float32([7]))
        assert reader.read(path, block.size, "float32", (1,), 64).tolist() == [7]
        before = len(os.listdir("/proc/self/fd"))
        reader.read(path, block.size, "int8", (1,), 0)
        assert len(os.listdir("/proc/self/fd")) == before  # it keeps the mapping, and no descriptor
        open_segment(path, block.size).close()
        with pytest.raises(
            UnreadableError, match=f"the shared memory has {block.size} bytes; allowed: {block.size + 1}"
        ):
            open_segment(path, block.size + 1)
        assert len(os.listdir("/proc/self/fd")) == before
        other = open_segment(path, block.size, write=True)
        other.map(write=True)[:1] = b"\x63"
        assert reader.read(path, block.size, "int8", (1,), 0).tolist() == [99]
        other.close()
        other.close()  # once
        assert other.descriptor == -1
    finally:
        pool.close()
    with pytest.raises(UnreadableError, match="shared memory of another rank cannot be opened: No such file"):
        open_segment("/proc/self/fd/99999", 1)


@pytest.mark.parametrize(
    ("sizes", "inline"), [((1024,), True), ((1025,), False), ((1000, 24), True), ((1000, 25), False)]
)
def test_small_tensors_travel_in_the_message(sizes, inline):
    told = []
    one = SharedTensors(lambda kind, **fields: told.append((kind, fields)))
    try:
        place, handle = one.publish([np.arange(size).astype(np.int8) for size in sizes], None)
        if inline:
            joined = b"".join(np.arange(size).astype(np.int8).tobytes() for size in sizes)
            assert (place, handle, told) == ({"inline": base64.b64encode(joined).decode()}, [], [])
        else:
            (segment,) = one._pool.segments
            assert place == {"segment": 0, "offsets": [0] if len(sizes) == 1 else [0, 1024]}
            assert told == [("segment", {"descriptor": segment.descriptor, "size": segment.size})]
            again, _ = one.publish([np.zeros(2000, np.int8)], None)
            assert (again["segment"], len(told)) == (1, 2)  # each segment is announced once
            one.free(handle)
            assert one.publish([np.zeros(2000, np.int8)], None)[0]["segment"] == 0
            assert len(told) == 2
    finally:
        one.close()


def test_a_view_lies_in_its_memory():
    memory = bytes(range(16))
    assert view(memory, "uint8", (2, 8)).tolist() == [[*range(8)], [*range(8, 16)]]
    assert view(memory, "uint16", (2,), 12).tobytes() == memory[12:]
    assert view(memory, "uint8", (0, 7), 16).shape == (0, 7)
    for kind, shape, offset in (("uint8", (17,), 0), ("uint16", (2,), 13), ("uint8", (1,), -1), ("uint8", (-1,), 4)):
        with pytest.raises(BadInputError, match=r"^16 bytes of a rank: uint.* does not fit$"):
            view(memory, kind, shape, offset)


# ---------------------------------------------------------------- messages
class Waiter:
    woken = 0

    def wake(self):
        self.woken += 1


def letter(op, box, rank, *, sends=(), expected=(), place="", waits=()):
    kind = ("float32", (2,))
    call = Call(op=op, tensors=(kind,) * len(sends), expected=expected, place=place)
    return PairMeeting(
        [box] * len(sends), [box] * len(waits), call=call, offer=lambda: sends, terms=Terms(exec_ns=5, connect_ns=20),
        tag="tag 3", rank=rank, group="pair",
    )  # fmt: skip


def test_messages_come_in_the_order_in_which_they_were_sent():
    later = []
    box = Mailbox(source=0, later=later.append)
    arrays = [np.float32([at, at]) for at in range(3)]
    sender, first = letter("Send", box, 0, sends=arrays[:1]), letter("Receive", box, 1, waits=[1])
    waiter = Waiter()
    assert first.open_ns() is None  # has not entered
    first.enter(waiter, 7)
    assert (first.open_ns(), first.waits_for(), first.results()) == (None, "a message from rank 0 (tag 3)", [])
    assert first.give_up("report") is not None
    sender.enter(Waiter(), 9)
    assert (sender.open_ns(), sender.results(), sender.give_up("report")) == (9, [], None)
    assert (first.open_ns(), waiter.woken) == (None, 0)  # until no rank can go on
    later.pop()()
    assert (first.open_ns(), waiter.woken, first.failure) == (9, 1, None)
    arrays[0][:] = -1  # what was sent stays as it was
    (got,) = first.results()
    assert got.tolist() == [0, 0]
    assert not got.flags.writeable
    letter("Send", box, 0, sends=arrays[1:]).enter(Waiter(), 11)
    second = letter("Receive", box, 1, waits=[1, 2], place="net.py:3")
    second.enter(waiter, 20)
    assert second.waits_for() == "a message from rank 0, 0 (tag 3, net.py:3)"
    for action in later:
        action()
    assert [one.tolist() for one in second.results()] == [[1, 1], [2, 2]]
    assert (second.open_ns(), waiter.woken) == (20, 3)


def test_a_sender_that_has_failed_fails_who_waits_for_it():
    box = Mailbox(source=0, later=lambda action: action())
    waiter, failure = Waiter(), Failure(rank=0, time_ns=50, error=OSError("full"))
    one = letter("Receive", box, 1, waits=[1])
    one.enter(waiter, 7)
    box.fail(failure)
    box.fail(Failure(rank=0, time_ns=60, error=OSError("again")))
    assert waiter.woken == 1
    assert "it has failed: full" in str(one.failure.error)
    assert one.failure is one.failure
    assert one.open_ns() == one.failure.time_ns >= 50
    other = letter("Receive", box, 1, waits=[1])
    assert other.failure is None  # before it has entered
    other.enter(waiter, 70)
    assert "full" in str(other.failure.error)


def test_a_message_of_another_type_fails_who_takes_it():
    for expected, good in (((("float32", (2,)),), True), ((("int8", (2,)),), False), ((), True)):
        box = Mailbox(source=0, later=lambda action: action())
        letter("Send", box, 0, sends=[np.zeros(2, np.float32)]).enter(Waiter(), 9)
        one = letter("Receive", box, 1, waits=[1], expected=expected)
        one.enter(Waiter(), 7)
        assert (one.failure is None) is good


# ---------------------------------------------------------------- random generators
@pytest.fixture(params=["known", "unknown"])
def layout(request, monkeypatch):
    """With the memory layouts that are known, and as on an interpreter where they are not."""
    before = random.getstate(), np.random.get_state()
    if request.param == "unknown":
        monkeypatch.setattr(twister, "_python_is_known", lambda: False)
        monkeypatch.setattr(twister, "_numpy_pair_offset", lambda: 0)
    for cached in (PythonRandom.seeded, NumpyRandom.seeded):
        cached.cache_clear()
    yield request.param
    for cached in (PythonRandom.seeded, NumpyRandom.seeded):
        cached.cache_clear()
    random.setstate(before[0])
    np.random.set_state(before[1])


@pytest.mark.parametrize("draws", range(4))
def test_states_of_generators_go_on_where_they_were_taken(layout, draws):
    for of, draw, normal in (
        (PythonRandom, random.random, lambda: random.gauss(0, 1)),
        (NumpyRandom, np.random.rand, np.random.standard_normal),
    ):  # fmt: skip
        of.install(of.seeded(3))
        for at in range(draws):
            (draw, normal)[at % 2]()  # an odd number of normal values leaves the second one of a pair
        state = of.take()
        wanted = [normal(), draw(), normal(), draw()]
        of.install(of.seeded(4))
        other = [normal(), draw()]
        of.install(state)
        assert [normal(), draw(), normal(), draw()] == wanted
        assert other != wanted[:2]
        if layout == "known":
            assert len(state.words) == 2500  # 624 words and a position
            assert (state.whole, state.generator) == (None, None)
            assert (state.half is not None) is (draws in (2, 3))
            assert of.take(before := of.take()) is before
            draw()
            assert of.take(before) is not before
        else:
            assert (state.words, state.half) == (b"", None)


def test_a_seed_gives_the_numbers_of_the_modules_own(layout):
    python, numpy = random.Random(11), np.random.RandomState(11)
    PythonRandom.install(PythonRandom.seeded(11))
    NumpyRandom.install(NumpyRandom.seeded(11))
    assert [random.random() for _ in range(700)] == [python.random() for _ in range(700)]
    assert np.random.rand(700).tolist() == numpy.rand(700).tolist()


def test_a_generator_of_another_kind_is_kept(layout):
    own = np.random.get_bit_generator()
    try:
        np.random.set_bit_generator(np.random.PCG64(5))
        state = NumpyRandom.take()
        assert state.generator is np.random.get_bit_generator()
        wanted = np.random.rand(3).tolist()
        NumpyRandom.install(NumpyRandom.seeded(2))
        assert isinstance(np.random.get_bit_generator(), np.random.MT19937)
        assert np.random.rand(3).tolist() == np.random.RandomState(2).rand(3).tolist()
        NumpyRandom.install(state)
        assert np.random.rand(3).tolist() == wanted
        NumpyRandom.install(state, state)  # is there already
        assert np.random.rand(3).tolist() != wanted
    finally:
        np.random.set_bit_generator(own)


def test_layouts_are_known_only_where_they_are_as_expected(monkeypatch):
    checks = twister._python_is_known.__wrapped__, twister._numpy_pair_offset.__wrapped__
    assert checks[0]() is (sys.implementation.name == "cpython")
    assert (checks[1]() > 0) is (sys.implementation.name == "cpython")
    monkeypatch.setattr(twister.sys, "implementation", SimpleNamespace(name="other"))
    assert (checks[0](), checks[1]()) == (False, 0)
    monkeypatch.undo()
    monkeypatch.setattr(twister, "_bytes", lambda words: b"")
    assert (checks[0](), checks[1]()) == (False, 0)
    monkeypatch.undo()
    # in this module only: other threads of the process pack their messages meanwhile
    monkeypatch.setattr(twister, "struct", SimpleNamespace(pack=lambda *words: b"no such bytes anywhere"))
    assert checks[1]() == 0


# ---------------------------------------------------------------- a rank and its hub
def over_wire(document):
    return json.loads(json.dumps(document))


class Silent(Client):
    """A rank whose messages are kept here, and whose hub says what it is told to."""

    def __init__(self, *heard):
        self.rank, self.sent, self.heard = 3, [], list(heard)
        self._lock, self._stop, self._inbox, self._more = contextlib.nullcontext(), None, [], False
        self._reducing = set()
        self._seen, self._entered, self._dead, self._meetings = 5, False, {}, {}
        self._elsewhere, self._ended, self._terms = (), (), Terms()
        self.scheduler = SimpleNamespace(failed=lambda rank: False)

    def _send(self, kind, **message):
        self.sent.append({"kind": kind, **message})

    def _next(self):
        return self.heard.pop(0)


def test_a_rank_sends_its_terms_when_they_change():
    one = Silent()
    one.terms = Terms()
    assert one.sent == []
    one.terms = Terms(order="ring")
    assert one.terms == Terms(order="ring")
    assert [(message["kind"], message["order"]) for message in one.sent] == [("terms", "ring")]


def test_a_rank_waits_until_a_batch_of_messages_is_complete():
    one = Silent({"kind": "died", "rank": 1, "why": "killed", "more": True}, {"kind": "turn"}, {"kind": "never"})
    assert one._block([(3, 0, "text", "line")]) is True
    assert one.sent == [{"kind": "wait", "seen": 5, "streams": [(3, 0, "text", "line")]}]
    assert one._dead == {1: "killed"}
    assert one.heard == [{"kind": "never"}]
    report = {"kind": "deadlock", "streams": [], "ended": [], "missing": {}, "stuck": {}}
    for batch in ([report | {"more": True}, {"kind": "turn"}], [{"kind": "turn", "more": True}, report]):
        assert Silent(*batch)._block([]) is False  # wherever the report of a deadlock comes in it
    with pytest.raises(WireError, match="unknown message 'never' of the hub"):
        one._block([])
    stopped = Silent({"kind": "stop", "why": "rank 1 has raised E"})
    with pytest.raises(RankStopped, match=r"^rank 3 is stopped: rank 1 has raised E$"):
        stopped._block([])
    with pytest.raises(RankStopped):  # from now on without a message
        stopped._block([])
    assert len(stopped.sent) == 1
    stopped.scheduler = SimpleNamespace(failed=lambda rank: rank == 3)
    assert stopped._block([]) is True  # its wait raises its own failure


def test_the_report_of_a_deadlock_has_the_streams_of_other_ranks():
    one = Silent({"kind": "deadlock", "streams": [[1, 0, "text", "line"]], "ended": ["  rank 2: gone"],
                  "missing": {"7": "rank 2", "8": "rank 4"}, "stuck": {"8": {"rank": 4}}})  # fmt: skip
    one._meetings = {7: SimpleNamespace(), 8: SimpleNamespace()}
    assert one._block([]) is False
    hosts = _Hosts(one)
    assert (list(hosts.elsewhere()), hosts.report()) == ([(1, 0, "text", "line")], ["  rank 2: gone"])
    assert [(meeting.missing, meeting.stuck) for meeting in one._meetings.values()] == [
        ("rank 2", None), ("rank 4", {"rank": 4})
    ]  # fmt: skip
    called = []
    hosts.run_as(3, called.append, 17)
    assert called == [17]


def test_a_rank_enters_when_the_hub_says_so():
    one = Silent()
    assert one._take({"kind": "entered", "error": None}) is True
    assert one._entered
    with pytest.raises(DeviceError, match="missing"):
        one._take({"kind": "entered", "error": encode_error(DeviceError("missing"))})
    taken = []
    one._meetings = {4: SimpleNamespace(_take_open=taken.append, _take_free=taken.append)}
    for kind in ("open", "free"):
        assert one._take({"kind": kind, "m": 4}) is True
    assert taken == [{"kind": "open", "m": 4}, {"kind": "free", "m": 4}]


def test_a_process_of_a_job_connects_when_its_scheduler_is_asked_for():
    with Hub(1).start() as hub:
        context = RankContext(rank=0, size=1, environment=hub.environment(0), world=World())
        scheduler = context.scheduler
        assert scheduler is context.communicator.scheduler is context.world.get(Scheduler)
        context.close()
        assert hub.wait(10)
    assert hub.endings[0].kind == "left"
    alone = RankContext(rank=0, size=1, environment={}, world=World())
    assert alone.scheduler is None
    alone.close()


def test_variables_of_another_mapping_are_read_too(monkeypatch):
    monkeypatch.setattr(os, "environ", {"NAME": "\u00e9", "OTHER": ""})
    assert process._table() == {b"NAME": "\u00e9".encode(), b"OTHER": b""}


class Line:
    """A connection of which only the end is of interest."""

    limit, closed = None, 0

    def settimeout(self, seconds):
        self.limit = seconds

    def close(self):
        self.closed += 1


def parting(*heard, hub=None):
    one = Silent(*heard)
    one._left, one._pid, one._hub = False, os.getpid(), hub
    one._socket, one._carrier, one._locks = Line(), Line(), Line()
    return one


def test_a_rank_says_how_it_leaves():
    for error, said in (
        (None, {"stopped": False}), (RankStopped("x"), {"stopped": True}),
        (PeerError("late", rank=2), {"stopped": False, "culprit": 2}),
        (ValueError("bad"), {"stopped": False, "culprit": None}),
    ):  # fmt: skip
        one = parting({"kind": "turn"}, {"kind": "bye"}, {"kind": "never"})
        assert one.depart(error, result=5) is None
        (message,) = one.sent
        assert ("error" in message) is ("culprit" in said)
        if "error" in message:
            assert repr(rebuild(message.pop("error"))) == repr(error)
        assert message == {"kind": "bye", "result": 5, **said}
        assert one.heard == [{"kind": "never"}]  # until the hub has answered
        assert [each.closed for each in (one._socket, one._carrier, one._locks)] == [1, 1, 1]
        assert one._socket.limit == 10  # it does not wait for ever
        assert one.depart() is None  # once
        assert len(one.sent) == 1
    child = parting()
    child._pid += 1  # a forked child is not the rank
    child.leave()
    assert (child.sent, child._socket.closed) == ([], 0)


def test_a_rank_that_serves_the_hub_waits_for_the_others():
    called = []
    hub = SimpleNamespace(wait=called.append, close=lambda: called.append("closed"), results={1: 7})
    one = parting({"kind": "bye"}, hub=hub)
    one._locks = None
    assert one.depart() == {1: 7}
    assert called == [None, "closed"]


def test_a_rank_leaves_a_hub_that_is_gone():
    one = parting()

    def gone():
        raise DeviceError("the hub has ended")

    one._next = gone
    one.leave()
    assert one._socket.closed == 1


@pytest.mark.parametrize(("raised", "left"), [(None, False), (ValueError("script"), False), (None, True)])
def test_a_rank_finishes_its_tasks_at_the_end_unless_its_script_has_failed(monkeypatch, raised, left):
    done = []
    one = parting({"kind": "bye"})
    one._left = left
    one.scheduler = SimpleNamespace(finish=done.append)
    if raised is None:
        monkeypatch.delattr(sys, "last_value", raising=False)
    else:
        monkeypatch.setattr(sys, "last_value", raised, raising=False)
    one.finish()
    assert done == ([3] if raised is None and not left else [])
    assert [("error" in message) for message in one.sent] == ([] if left else [raised is not None])

    def fail(rank):
        raise OSError("last task")

    one = parting({"kind": "bye"})
    one.scheduler = SimpleNamespace(finish=fail)
    monkeypatch.delattr(sys, "last_value", raising=False)
    with pytest.raises(OSError, match="last task"):
        one.finish()
    assert "last task" in one.sent[0]["error"]["text"]


def test_groups_of_a_rank_are_asked_for():
    refused = encode_error(BadInputError("no"))
    one = Silent(*[{"kind": "answer", "error": None}] * 2, {"kind": "died", "rank": 1, "why": "gone"},
                 {"kind": "answer", "error": None}, {"kind": "answer", "error": refused})  # fmt: skip
    one.size, one._groups, one._created = 4, {}, 0
    first, second = one.create("pair", [3, 1]), one.create("all", [0, 1, 2, 3])
    assert [(group.name, group.members, group.rank, group.number) for group in (first, second)] == [
        ("pair", (3, 1), 0, 1), ("all", (0, 1, 2, 3), 3, 2)
    ]  # fmt: skip
    assert one.group("pair") is first
    one.destroy("pair")
    assert one._dead == {1: "gone"}  # what came before the answer
    with pytest.raises(BadInputError, match="group: rank 3 has created no group 'pair'; allowed: all"):
        one.group("pair")
    with pytest.raises(BadInputError, match=r"^no$"):
        one.destroy("all")
    with pytest.raises(BadInputError, match="rank 3 already has a group of this name"):
        one.create("all", [3])
    assert one.sent == [
        {"kind": "create", "name": "pair", "members": [3, 1]},
        {"kind": "create", "name": "all", "members": [0, 1, 2, 3]},
        {"kind": "destroy", "name": "pair"}, {"kind": "destroy", "name": "all"},
    ]  # fmt: skip


class Carried:
    """A carrier that notes what it is asked for."""

    def __init__(self):
        self.calls = []

    def publish(self, tensors, target):
        self.calls.append(("publish", [*tensors], target))
        return {"at": len(self.calls)}, f"handle {len(self.calls)}"

    def reduce(self, call, places, fold, start, end, handle):
        self.calls.append(("reduce", call, places, fold.keywords, start, end, handle))
        return {"segment": 4}

    def collect(self, calls, places, own, fold, chunks):
        self.calls.append(("collect", calls, places, own, fold.keywords, chunks))
        return ["a result"]

    def letter(self, kind, shape, place):
        self.calls.append(("letter", kind, shape, place))
        return "a letter"

    def free(self, handle):
        self.calls.append(("free", handle))


def grouped():
    """A rank in a group with another one, and what it calls there."""
    one = Silent()
    one.size, one._count, one._carrier = 4, 0, Carried()
    return one, RemoteGroup(one, "pair", (3, 1), 2)


REDUCE = Call(op="AllReduce", tensors=(("float32", (2,)),), reduce="sum")


def test_a_rank_tells_the_hub_of_its_collectives_whole():
    one, group = grouped()
    other = Call(op="AllReduce", tensors=(("float32", (3,)),), reduce="sum")
    meeting, waiter = group.join(REDUCE, lambda: ["x"]), Waiter()
    assert (group.rank, group.number, meeting.tag, one._meetings) == (0, 2, "AllReduce_pair_0", {1: meeting})
    assert (meeting.waits_for(), meeting.open_ns(), meeting.give_up("r"), meeting.results()) == (
        "\0001\0",
        None,
        None,
        [],
    )
    meeting.missing = "rank 1"
    assert meeting.waits_for() == "rank 1"
    meeting.enter(waiter, 17)
    terms = Terms(order="ring", saturates=True)
    members = [{"call": None, "place": "p0"}, {"call": over_wire(encode_call(other)), "place": "p1"}]
    shared = {"m": 1, "members": members, "terms": asdict(terms)}
    assert one._take({"kind": "gather", **shared, "start": 1, "end": 2}) is True
    assert (one._reducing, waiter.woken, meeting.open_ns()) == ({1}, 0, None)
    assert one._take({"kind": "open", **shared, "time": 29, "chunks": ["c"]}) is True
    assert (one._reducing, waiter.woken, meeting.open_ns()) == (set(), 1, 29)
    assert meeting.results() == ["a result"]
    meeting.leave(31)
    assert one._take({"kind": "free", "m": 1}) is True
    assert one._meetings == {}
    fold = folder(terms, "pair", 0).keywords
    assert one._carrier.calls == [
        ("publish", ["x"], None), ("reduce", REDUCE, ["p0", "p1"], fold, 1, 2, "handle 1"),
        ("collect", [REDUCE, other], ["p0", "p1"], 0, fold, ["c"]), ("free", "handle 1"),
    ]  # fmt: skip
    assert one.sent == [
        {"kind": "join", "m": 1, "group": "pair", "call": encode_call(REDUCE), "time": 17, "place": {"at": 1}},
        {"kind": "reduced", "m": 1, "start": 1, "end": 2, "segment": 4}, {"kind": "left", "m": 1, "time": 31},
    ]  # fmt: skip


def test_collectives_and_messages_are_counted_apart():
    one, group = grouped()
    send = Call(op="Send", tensors=(("float32", (2,)),), root=1)
    calls = [REDUCE, send, Call(op="Receive", root=1), Call(op="Barrier"), send, REDUCE]
    meetings = [group.join(call, lambda: ["x"]) for call in calls]
    assert [meeting.tag for meeting in meetings] == [
        "AllReduce_pair_0", "Send_pair_0", "Receive_pair_0", "Barrier_pair_0", "Send_pair_1", "AllReduce_pair_1"
    ]  # fmt: skip
    assert list(one._meetings) == [1, 2, 3, 4, 5, 6]
    waiter = Waiter()
    for number, meeting in enumerate(meetings, 1):
        meeting.enter(waiter, 5)
        if number != 3:
            one._take({"kind": "open", "m": number, "time": 7, "members": [{"call": None, "place": "p"}], "terms": {}})
    letters = [{"type": "int8", "shape": [2, 1], "place": "q"}]
    one._take({"kind": "open", "m": 3, "time": 8, "letters": letters})
    assert meetings[2].results() == ["a letter"]
    for meeting in (meetings[0], meetings[3], meetings[5]):
        meeting.results()
    published = [(kind, *given) for kind, *given in one._carrier.calls if kind == "publish"]
    assert published == [("publish", ["x"], target) for target in (None, 1, 1, None)]  # the rank that Send names
    assert [message["place"] for message in one.sent] == [{"at": 1}, {"at": 2}, {}, {}, {"at": 3}, {"at": 4}]
    assert ("letter", "int8", (2, 1), "q") in one._carrier.calls
    folds = [given[3] for kind, *given in one._carrier.calls if kind == "collect"]
    assert folds == [folder(Terms(), "pair", number).keywords for number in (0, 1, 2)]
    assert waiter.woken == 6
    assert group.cost_ns(REDUCE) == collective_ns(REDUCE, 2, (1, 2))


def test_a_collective_that_fails_wakes_its_task_and_a_dropped_one_is_told():
    one, group = grouped()
    failure = Failure(rank=1, time_ns=44, error=DeviceError("gone"))
    first, second = (group.join(REDUCE, lambda: ["x"]) for _ in range(2))
    first.enter(waiter := Waiter(), 5)
    one._reducing.add(1)
    one._take({"kind": "failed", "m": 1, "failure": over_wire(encode_failure(failure))})
    assert (waiter.woken, first.open_ns(), first.failure.rank, str(first.failure.error)) == (1, 44, 1, "gone")
    assert one._reducing == set()
    one.sent.clear()
    first.abandon(failure)
    second.abandon(failure)
    told = encode_failure(failure)
    assert one.sent == [
        {"kind": "abandon", "m": 1, "failure": told, "call": None},
        {"kind": "abandon", "m": 2, "failure": told, "call": encode_call(REDUCE), "group": "pair", "place": {}},
    ]  # fmt: skip
    second.stuck = over_wire(told)
    found = second.give_up("the report")
    assert (found.rank, found.time_ns, found.error.__notes__) == (1, 44, ["the report"])


def test_a_rank_enters_once():
    one = Silent({"kind": "died", "rank": 1, "why": "gone"}, {"kind": "entered", "error": None}, {"kind": "never"})
    one.enter()
    one.enter()
    assert [message["kind"] for message in one.sent] == ["enter", "wait", "wait"]
    assert one.heard == [{"kind": "never"}]


def test_a_rank_tries_to_connect_until_its_time_is_over(monkeypatch):
    """A second goes by at each try; a hub that comes in time is found."""
    waits, now = [], [100.0]

    def sleep(seconds):
        waits.append(seconds)
        now[0] += 1
        if len(waits) == comes:
            hubs.append(Hub(2, address=address).start())

    monkeypatch.setattr(client, "time", SimpleNamespace(monotonic=lambda: now[0], sleep=sleep))
    address, comes, hubs = f"unix:@dumpsim-test-{os.getpid()}-later", 0, []
    with pytest.raises(DeviceError) as caught:
        connect(address, rank=1, size=2, timeout_s=3)
    said = f"rank 1: cannot reach the hub of the job at {address} within 3 s: Connection refused"
    assert (str(caught.value), len(waits)) == (said, 4)
    waits.clear()
    comes = 2
    try:
        with pytest.raises(BadInputError, match="DUMPSIM_HUB_TOKEN does not match"):
            connect(address, token="another", rank=1, size=2, timeout_s=3)
        assert len(waits) == 2
        monkeypatch.setenv("DUMPSIM_HUB", address)
        monkeypatch.setenv("DUMPSIM_HUB_TOKEN", hubs[0].token)
        one = connect(rank=1, size=2)  # as the environment says
        assert (one.address, one.rank, one.size, one.local_ranks) == (address, 1, 2, (0, 1))
        assert one.group("").members == (0, 1)
        one.leave()
    finally:
        hubs[0].close()
    for rank in (-1, 2):
        with pytest.raises(
            BadInputError, match=rf"RANK_ID: rank {rank} is outside of a job of 2 ranks; allowed: 0 to 1"
        ):
            connect(address, rank=rank, size=2)


def test_a_rank_on_the_net_does_not_wait_to_fill_packets():
    with Hub(1, address="127.0.0.1:0").start() as hub:
        one = connect(hub.address, token=hub.token, rank=0, size=1)
        assert one._socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        one.leave()
        assert hub.wait(10)


def connected():
    """A rank with a real connection, and the other end of it."""
    one = parting()
    one._socket, other = socket.socketpair()
    one._frames, one.address = Frames(1 << 20), "unix:@job"
    one._send, one._next = (getattr(Client, name).__get__(one) for name in ("_send", "_next"))
    return one, other


def test_messages_that_have_come_are_handled_without_waiting():
    one, other = connected()
    with one._socket, other:
        one.look([0, 1])
        other.sendall(encode({"kind": "died", "rank": 1, "why": "killed"}) + encode({"kind": "turn"}))
        one.look([0, 2])
        assert one._seen == 5 + 2
        with pytest.raises(PeerError, match=r"rank 1 has died in a collective: killed") as caught:
            one.look([0, 1])
        assert caught.value.rank == 1
        other.sendall(encode({"kind": "stop", "why": "rank 0 has raised E"}))
        with pytest.raises(RankStopped, match=r"^rank 3 is stopped: rank 0 has raised E$"):
            one.look([0])
        other.close()
        said = "the hub of the job at unix:@job has ended: rank 3 cannot reach the other ranks"
        for action in (lambda: one.look([]), one._next):
            with pytest.raises(DeviceError) as ended:
                action()
            assert str(ended.value) == said
        with pytest.raises(DeviceError, match=r"has ended \(Broken pipe\): rank 3"):
            one._send("wait")


def test_messages_come_one_by_one_however_their_bytes_do():
    one, other = connected()
    with one._socket, other:
        data = encode({"kind": "turn"}) + encode({"kind": "free", "m": 1})
        other.sendall(data[:-2])
        assert one._next() == {"kind": "turn"}
        other.sendall(data[-2:])
        assert one._next() == {"kind": "free", "m": 1}
        assert one._seen == 7
        one._send("left", m=4)
        assert other.recv(100) == encode({"kind": "left", "m": 4})


def test_ranks_of_one_process_share_a_scheduler():
    for ranks, shared in ((1, False), (2, True), (3, True)):
        world = World(ranks=ranks)
        one, other = (RankContext(rank=rank, size=ranks, environment={}, world=world) for rank in (0, ranks - 1))
        assert (one.scheduler is not None) is shared
        assert one.scheduler is other.scheduler
