"""The exchange alone, fed with messages of ranks: when memory is freed, who reduces which part, who is given up."""

import base64
import json
import os
from types import SimpleNamespace

import numpy as np
import pytest

from dumpsim.core.communicator import Call
from dumpsim.core.errors import DeviceError
from dumpsim.core.gate import Failure
from dumpsim.world.carrier import SharedTensors
from dumpsim.world.exchange import Ending, Exchange
from dumpsim.world.faulty import FaultyGroup, FaultyMeeting
from dumpsim.world.segment import Pool
from dumpsim.world.wire import WireError, encode_call, encode_error, encode_failure

WORLD = "hccl_world_group"
FAILURE = Failure(rank=0, time_ns=9, error=DeviceError("broken", where="rank 0"))


class Job:
    """Ranks that are only messages."""

    def __init__(self, size, **options):
        self.sent = []
        self.ended = {}
        self.exchange = Exchange(size, self.post, self.ended.__setitem__, **options)
        self.counts = [1] * size
        for rank in range(size):
            self.exchange.joined(rank, 100 + rank)

    def post(self, rank, message):
        self.counts[rank] += 1
        self.sent.append((rank, message))
        return self.counts[rank]

    def say(self, rank, kind, **message):
        before = len(self.sent)
        self.exchange.receive(rank, json.loads(json.dumps({"kind": kind, **message})))
        return self.sent[before:]

    def join(self, rank, call, m=1, time=0):
        return self.say(rank, "join", time=time, group=WORLD, call=encode_call(call), place={"inline": ""}, m=m)

    def settle(self):
        """All wait: what they have brought is taken up."""
        before = len(self.sent)
        for rank in set(range(len(self.counts))) - set(self.ended):
            self.say(rank, "wait", seen=self.counts[rank], streams=[])
        self.exchange.settle()
        return [(rank, message) for rank, message in self.sent[before:] if message["kind"] != "turn"]


def freed(messages):
    return sorted((rank, message["m"]) for rank, message in messages if message["kind"] == "free")


def reduce_of(size):
    return Call(op="AllReduce", tensors=(("float32", (size,)),), reduce="sum")


@pytest.mark.parametrize("last", ["left", "abandon"])
def test_the_last_reader_of_a_collective_frees_the_memory_of_all(last):
    """Also one whose task was dropped: without that, memory stays until the job ends."""
    job = Job(3)
    assert [job.join(rank, reduce_of(4), m=7) for rank in range(3)] == [[], [], []]
    assert [(rank, message["kind"]) for rank, message in job.settle()] == [(0, "open"), (1, "open"), (2, "open")]
    for rank in (0, 1):
        assert freed(job.say(rank, "left", m=7, time=5)) == []
    if last == "left":
        found = job.say(2, "left", m=7, time=5)
    else:
        found = job.say(2, "abandon", call=None, m=7, failure=encode_failure(FAILURE))
    assert freed(found) == [(0, 7), (1, 7), (2, 7)]


def test_a_member_that_drops_its_task_before_it_called_fails_the_others_and_frees():
    job = Job(2)
    job.join(0, reduce_of(4))
    place = {"time": 0, "group": WORLD, "place": {"inline": ""}}
    before = len(job.sent)
    job.say(1, "abandon", call=encode_call(reduce_of(4)), m=1, failure=encode_failure(FAILURE), **place)
    job.settle()
    found = job.sent[before:]
    assert [(rank, message["kind"]) for rank, message in found if message["kind"] == "failed"] == [(0, "failed")]
    assert freed(found) == []
    assert freed(job.say(0, "left", m=1, time=3)) == [(0, 1), (1, 1)]


def test_a_message_is_freed_when_its_receiver_has_read_it():
    job = Job(2)
    send = Call(op="Send", tensors=(("float32", (4,)),), root=1)
    receive = Call(op="Receive", root=0, expected=(("float32", (4,)),))
    opened = job.join(0, send)
    assert [message["kind"] for _, message in opened] == ["open"]
    assert freed(job.say(0, "left", m=1, time=1)) == []  # not read yet
    assert job.join(1, receive, m=3) == []
    (opened,) = job.settle()
    assert [letter["type"] for letter in opened[1]["letters"]] == ["float32"]
    assert freed(job.say(1, "left", m=3, time=2)) == [(0, 1), (1, 3)]


def test_large_sums_are_shared_by_their_members():
    elements = (1 << 16) // 4 + 3
    job = Job(3)
    for rank in range(3):
        job.join(rank, reduce_of(elements))
    told = job.settle()
    parts = [(message["start"], message["end"]) for _, message in told]
    assert [message["kind"] for _, message in told] == ["gather"] * 3
    width = -(-elements // 3)
    assert parts == [(0, width), (width, 2 * width), (2 * width, elements)]
    assert job.say(0, "reduced", m=1) == []
    assert job.say(1, "reduced", m=1) == []
    assert [message["kind"] for _, message in job.say(2, "reduced", m=1)] == ["open"] * 3
    with pytest.raises(WireError, match="was not requested"):
        job.say(2, "reduced", m=1)
    small = Job(3)
    for rank in range(3):
        small.join(rank, reduce_of((1 << 16) // 4 - 1))
    assert {message["kind"] for _, message in small.settle()} == {"open"}


@pytest.mark.parametrize(
    ("given", "passed"),
    [
        ({"parcel": 7}, {"parcel": 7, "rank": 1}), ({"inline": "AA=="}, {"inline": "AA==", "rank": 1}),
        ({}, {"inline": "", "rank": 1}), ({"segment": 0, "offsets": [64]}, {"offsets": [64], "path": "x", "size": 9}),
    ],
)  # fmt: skip
def test_other_members_get_the_locations_of_tensors(given, passed):
    """With the rank that sends them itself, or the path of its memory."""
    job = Job(2)
    job.exchange._ranks[1].segments.append(SimpleNamespace(path="x", size=9, close=lambda: None))
    job.join(0, reduce_of(4))
    place = {"time": 0, "group": WORLD, "call": encode_call(reduce_of(4)), "m": 1}
    job.say(1, "join", place=given, **place)
    assert [message["members"][1]["place"] for _, message in job.settle()] == [passed] * 2


def test_parts_of_a_sum_are_passed_on_with_their_places():
    job, pools = Job(2), [Pool(), Pool()]
    try:
        for rank, pool in enumerate(pools):
            pool.reserve(1)
            job.exchange._ranks[rank].pid = os.getpid()
            job.say(rank, "segment", descriptor=pool.segments[0].descriptor, size=1 << 16)
            job.join(rank, reduce_of(1 << 14))  # 64 KiB: the smallest that is shared
        assert [message["kind"] for _, message in job.settle()] == ["gather"] * 2
        half = 1 << 13
        job.say(1, "reduced", m=1, segment=0, start=half, end=2 * half)
        told = job.say(0, "reduced", m=1, segment=0, start=0, end=half)
        paths = [f"/proc/{os.getpid()}/fd/" for _ in pools]
        chunks = [message["chunks"] for _, message in told]
        assert [[(one["start"], one["end"], one["size"]) for one in each] for each in chunks] == [
            [(half, 2 * half, 1 << 16), (0, half, 1 << 16)]
        ] * 2
        assert all(one["path"].startswith(path) for each in chunks for one, path in zip(each, paths, strict=True))
        assert len({one["path"] for one in chunks[0]}) == 2
        with pytest.raises(WireError, match=r"reduced\.m is None; allowed: int"):
            job.say(0, "reduced")
    finally:
        job.exchange.close()
        for pool in pools:
            pool.close()


def test_nothing_is_left_of_collectives_and_messages_that_have_ended():
    """The memory of a hub does not grow with the job."""
    job = Job(2)
    call = {0: Call(op="Send", tensors=(("int8", (2,)),), root=1), 1: Call(op="Receive", root=0)}
    for turn in range(3):
        for rank in (0, 1):
            job.join(rank, reduce_of(1 << 14), m=10 * turn)
            job.join(rank, call[rank], m=10 * turn + 1)
        job.settle()
        for rank in (0, 1):
            if turn < 2:
                job.say(rank, "reduced", m=10 * turn)
        if turn == 2:
            job.exchange.died(1, "gone")
        for rank in (0, 1)[: 2 - (turn == 2)]:
            for number in (0, 1):
                job.say(rank, "left", m=10 * turn + number, time=1)
    assert (job.exchange._rounds, job.exchange._letters) == ({}, {})
    assert not any(rank.entries for rank in job.exchange._ranks)
    assert [letter for *_, message in job.sent for letter in message.get("letters", ())] == [
        {"type": "int8", "shape": (2,), "place": {"inline": "", "rank": 0, "offsets": [0]}}
    ] * 3


def test_who_dies_fails_the_others_at_once_where_they_wait_for_ever():
    job = Job(3)
    for rank in range(3):
        job.say(rank, "terms", order="rank", exec_ns=None, connect_ns=0, check="all", saturates=False)
        job.join(rank, Call(op="Barrier"), m=1)
    job.settle()
    for rank in range(3):
        job.say(rank, "left", m=1, time=0)
    job.join(0, Call(op="Barrier"), m=2)
    before = len(job.sent)
    job.exchange.died(2, "its process was killed by SIGKILL")
    ((rank, message),) = [(rank, message) for rank, message in job.sent[before:] if message["kind"] == "failed"]
    assert (rank, message["m"], message["failure"]["rank"], message["failure"]["time"]) == (0, 2, 2, 0)
    assert "rank 2: its process was killed by SIGKILL" in message["failure"]["error"]["text"]


def test_a_member_that_ends_while_parts_are_reduced_leaves_the_sum_to_each():
    job = Job(3)
    for rank in range(3):
        job.join(rank, reduce_of(1 << 15))
    job.settle()
    job.say(0, "reduced", m=1)
    before = len(job.sent)
    job.exchange.died(2, "gone")
    found = [(rank, message["kind"], message.get("chunks")) for rank, message in job.sent[before:]]
    assert found[:2] == [(0, "open", []), (1, "open", [])]
    assert job.ended[2].kind == "died"


def test_parts_that_came_before_a_member_ended_are_not_used():
    """The members that are left reduce all elements, and must not take some of them from the parts."""
    job, pool = Job(3), Pool()
    try:
        pool.reserve(1)
        job.exchange._ranks[0].pid = os.getpid()
        job.say(0, "segment", descriptor=pool.segments[0].descriptor, size=1 << 16)
        for rank in range(3):
            job.join(rank, reduce_of(1 << 15))
        job.settle()
        job.say(0, "reduced", m=1, segment=0, start=0, end=5)
        before = len(job.sent)
        job.exchange.died(2, "gone")
        opened = [(rank, message["chunks"]) for rank, message in job.sent[before:] if message["kind"] == "open"]
        assert opened == [(0, []), (1, [])]
    finally:
        job.exchange.close()
        pool.close()


def test_a_member_learns_once_that_its_collective_has_failed():
    job = Job(3)
    for rank in range(2):
        job.join(rank, reduce_of(4))
    job.exchange.died(2, "gone")
    job.settle()
    for rank in range(2):
        (entry,) = job.exchange._ranks[rank].entries.values()
        entry.wake()
        entry.wake()
    failed = [rank for rank, message in job.sent if message["kind"] == "failed"]
    assert sorted(failed) == [0, 1]


def test_the_ends_of_ranks():
    job = Job(4)
    assert (0, {"kind": "bye"}) in job.say(0, "bye", result=5)  # the program waits for it
    job.say(1, "bye", stopped=True)
    assert job.exchange.results == {0: 5, 1: None}
    assert [(job.ended[rank].kind, job.ended[rank].text) for rank in (0, 1)] == [
        ("left", "its program has ended"), ("stopped", "its program was stopped"),
    ]  # fmt: skip
    with pytest.raises(WireError, match="unexpected message"):
        job.say(0, "enter")
    with pytest.raises(WireError, match="unexpected message 'nothing'"):
        job.say(2, "nothing")
    before = len(job.sent)
    job.exchange.reasons[2] = "killed by signal 9"
    job.exchange.died(2, "its connection is gone")
    job.exchange.died(2, "again")
    assert job.ended[2].text == "killed by signal 9"
    assert not any(message["kind"] == "died" for _, message in job.sent[before:])
    assert not job.exchange.over
    job.say(3, "bye")
    assert job.exchange.over
    spread = Job(3, spread=True)
    spread.exchange.died(1, "gone")
    assert [(rank, m["rank"], m["why"]) for rank, m in spread.sent if m["kind"] == "died"] == [
        (0, 1, "gone"), (2, 1, "gone"),
    ]  # fmt: skip


def test_ranks_that_never_connect_or_never_answer():
    job = Job(3)
    job.exchange._ranks[1].pid = 0
    job.exchange.missing(2.5)
    job.exchange.missing(7.0)
    assert job.ended[1].text == "its process has not connected within 2.5 s"
    assert set(job.ended) == {1}
    quiet = Job(3)
    quiet.exchange.silent(4)  # all ranks compute: none can be blamed
    assert quiet.ended == {}
    for rank in (0, 2):
        quiet.say(rank, "wait", seen=1, streams=[])
    quiet.exchange.silent(4)
    assert {rank: ending.text for rank, ending in quiet.ended.items()} == {
        1: "its process 101 computes, and no rank has sent a message for 4 s"
    }
    assert (1, "stop") in [(rank, message["kind"]) for rank, message in quiet.sent]


def test_an_error_stops_the_others_unless_it_follows_from_a_death():
    job = Job(3)
    job.say(1, "bye", error={**encode_error(ValueError("wrong")), "traceback": "line 7"})
    assert [(rank, m["why"]) for rank, m in job.sent if m["kind"] == "stop"] == [
        (0, "rank 1 has raised ValueError"), (2, "rank 1 has raised ValueError"),
    ]  # fmt: skip
    ending = job.ended[1]
    assert (ending.kind, ending.text, ending.culprit) == ("failed", "its program has raised ValueError: wrong", None)
    assert ending.error.__notes__ == ["the error in rank 1, process 101:\nline 7"]
    job = Job(3)
    job.exchange.died(0, "gone")
    job.say(1, "bye", error=encode_error(ValueError("wrong")), culprit=0)
    assert not any(message["kind"] == "stop" for _, message in job.sent)
    assert job.ended[1].culprit == 0
    assert isinstance(job.ended[1], Ending)


def test_inline_tensors_of_a_message_are_contiguous():
    carrier = SharedTensors.__new__(SharedTensors)
    carrier._reader = None
    call = Call(op="AllGather", tensors=(("float16", (3,)), ("int32", (2, 2)), ("float32", ())))
    tensors = [np.float16([1, 2, 3]), np.int32([[4, 5], [6, 7]]), np.float32(8)]
    place = {"inline": base64.b64encode(b"".join(one.tobytes() for one in tensors)).decode()}
    for own, found in zip(tensors, carrier._read(call, place), strict=True):
        assert found.dtype == own.dtype
        np.testing.assert_array_equal(found, own)
    offsets = [0, 6, 22]
    for own, offset, (kind, shape) in zip(tensors, offsets, call.tensors, strict=True):
        letter = carrier.letter(kind, shape, {**place, "offsets": [offset]})
        np.testing.assert_array_equal(letter, own)
        assert not letter.flags.writeable


# -- whole messages


def one_at_a_time(job):
    """Let every rank wait and settle; all messages, whole."""
    before = len(job.sent)
    for rank in range(len(job.counts)):
        job.say(rank, "wait", seen=job.counts[rank], streams=[])
    job.exchange.settle()
    return job.sent[before:]


def test_a_collective_that_opens_is_told_whole():
    job = Job(2)
    job.say(0, "terms", order="ring", exec_ns=5_000, connect_ns=7_000, check="off", saturates=True)
    job.say(1, "terms", order="tree", exec_ns=5_000, connect_ns=7_000, check="off", saturates=True)
    other = Call(op="AllReduce", tensors=(("float32", (5,)),), reduce="sum")
    assert job.join(0, reduce_of(4), m=7, time=3) == job.join(1, other, m=9, time=8) == []
    places = [{"inline": "", "rank": rank} for rank in range(2)]
    terms = {"connect_ns": 7_000, "exec_ns": 5_000, "check": "off", "order": "ring", "saturates": True}
    shared = {"kind": "open", "time": 8, "terms": terms, "chunks": [], "more": True}
    assert one_at_a_time(job) == [
        (0, {**shared, "m": 7, "members": [
            {"call": None, "place": places[0]}, {"call": encode_call(other), "place": places[1]}]}),
        (1, {**shared, "m": 9, "members": [
            {"call": encode_call(reduce_of(4)), "place": places[0]}, {"call": None, "place": places[1]}]}),
        (0, {"kind": "turn"}), (1, {"kind": "turn"}),
    ]  # fmt: skip


def test_letters_are_told_whole():
    job = Job(2)
    send = Call(op="Send", tensors=(("float16", (4,)),), root=1)
    receive = Call(op="Receive", root=0, expected=(("float16", (4,)),))
    assert job.join(0, send, m=2, time=6) == [(0, {"kind": "open", "m": 2, "time": 6, "letters": []})]
    assert job.join(1, receive, m=3, time=4) == []
    letter = {"type": "float16", "shape": (4,), "place": {"inline": "", "rank": 0, "offsets": [0]}}
    assert one_at_a_time(job) == [
        (1, {"kind": "open", "m": 3, "time": 6, "letters": [letter], "more": True}), (1, {"kind": "turn"}),
    ]  # fmt: skip


def test_a_message_that_waits_for_nobody_is_freed_when_its_task_has_gone():
    """The sender may end before or after its receiver has read."""
    for sender_first in (True, False):
        job = Job(2)
        job.join(0, Call(op="Send", tensors=(("float32", (4,)),), root=1), m=5)
        job.join(1, Call(op="Receive", root=0, expected=(("float32", (4,)),)), m=6)
        job.settle()
        told = []
        for rank, m in ((0, 5), (1, 6)) if sender_first else ((1, 6), (0, 5)):
            told.append(freed(job.say(rank, "left", m=m, time=1)))
        assert told == ([[], [(0, 5), (1, 6)]] if sender_first else [[(1, 6)], [(0, 5)]])


def test_ranks_enter_together_as_often_as_they_ask():
    job = Job(3)
    for _ in range(2):
        assert job.say(2, "enter") == job.say(0, "enter") == []
        assert job.say(1, "enter") == [(rank, {"kind": "entered", "error": None}) for rank in range(3)]


def test_a_rank_that_waits_to_enter_learns_who_is_missing():
    job = Job(3)
    job.exchange._ranks[2].pid = 0
    job.exchange.missing(2.5)
    for rank in (0, 1):
        job.say(rank, "enter")
        job.say(rank, "wait", seen=job.counts[rank], streams=[])
    before = len(job.sent)
    job.exchange.settle()
    ((rank, message),) = job.sent[before:]
    assert (rank, message["kind"], message["error"]["code"]) == (0, "entered", "EI0015")
    assert message["error"]["text"] == (
        "rank 0: The creation of the communicator times out after 2.5 s (HCCL_CONNECT_TIMEOUT, MS_TOPO_TIMEOUT): "
        "connected ranks [0, 1], missing ranks [2] [EI0015]"
    )


def test_groups_are_answered_for():
    job = Job(3)
    assert job.say(1, "create", name="pair", members=[1, 2]) == [(1, {"kind": "answer", "error": None})]
    ((rank, message),) = job.say(1, "create", name="pair", members=[1, 2])
    assert (rank, message["kind"]) == (1, "answer")
    assert message["error"]["text"] == "group 'pair': rank 1 already has a group of this name"
    assert job.say(1, "destroy", name="pair") == [(1, {"kind": "answer", "error": None})]
    ((_, message),) = job.say(1, "destroy", name="pair")
    assert message["error"]["text"].startswith("group: rank 1 has created no group 'pair'")
    with pytest.raises(WireError, match=r"create\.members is 3; allowed: list"):
        job.say(0, "create", name="pair", members=3)


def test_a_deadlock_is_reported_by_the_first_rank_that_is_left():
    job = Job(4)
    job.join(1, reduce_of(4), m=7, time=3)
    job.join(2, reduce_of(4), m=8, time=3)
    job.say(0, "bye")
    streams = [[1, 0, "waits for \0007\000", "  rank 1: waits for \0007\000"]]
    job.say(1, "wait", seen=job.counts[1], streams=streams)
    job.say(3, "wait", seen=job.counts[3], streams=[[3, 5, "waits for \00099\000", "x"]])
    before = len(job.sent)
    job.exchange.settle()
    assert job.sent[before:] == []  # rank 2 has not said that it waits
    job.say(2, "wait", seen=job.counts[2], streams=[[2, 1, "waits for \0008\000", "  rank 2: waits for \0008\000"]])
    job.exchange.settle()
    ((rank, message),) = job.sent[before:]
    gate = "ranks 0, 3 to enter round 0 of group 'hccl_world_group'"
    assert (rank, message["kind"]) == (1, "deadlock")
    assert message["streams"] == [
        [2, 1, f"waits for {message['missing']['7']}", f"  rank 2: waits for {message['missing']['7']}"],
        [3, 5, "waits for other ranks", "x"],
    ]
    assert message["missing"] == {"7": message["missing"]["7"]}
    assert "ranks 0, 3" in message["missing"]["7"] or gate in message["missing"]["7"]
    assert message["ended"] == ["  rank 0: its program has ended"]
    assert {at: failure["rank"] for at, failure in message["stuck"].items()} == {"7": 0}
    before = len(job.sent)
    job.exchange.settle()  # rank 1 goes on with its report
    assert job.sent[before:] == []


def test_a_report_holds_so_many_streams_of_a_rank():
    job = Job(1)
    job.say(0, "wait", seen=1, streams=[[0, at, "", ""] for at in range(300)])
    assert len(job.exchange._ranks[0].streams) == 200


def test_a_failure_fails_the_groups_of_its_rank():
    job = Job(3)
    job.join(0, reduce_of(4), m=1)
    job.join(1, reduce_of(4), m=2)
    told = job.say(2, "fail", failure=encode_failure(FAILURE))
    assert [(rank, m["kind"], m["m"]) for rank, m in told] == [(0, "failed", 1), (1, "failed", 2)]
    assert ["broken" in m["failure"]["error"]["text"] for _, m in told] == [True, True]


def test_memory_of_ranks_is_opened_and_closed(tmp_path):
    pool = Pool()
    try:
        pool.reserve(1)
        job = Job(2)
        job.exchange._ranks[0].pid = os.getpid()
        before = len(os.listdir("/proc/self/fd"))
        job.say(0, "segment", descriptor=pool.segments[0].descriptor, size=1 << 16)
        assert len(os.listdir("/proc/self/fd")) == before + 1
        opened = job.exchange._ranks[0].segments[0]
        call = Call(op="Broadcast", tensors=(("int8", (2,)),), root=0)
        place = {"segment": 0, "offsets": [64]}
        job.say(0, "join", time=1, group=WORLD, call=encode_call(call), place=place, m=1)
        job.join(1, call, m=1)
        members = [message["members"] for _, message in job.settle()]
        assert members[0][0]["place"] == {"path": opened.path, "size": 1 << 16, "offsets": [64]}
        assert members[0] == members[1]
        job.exchange.close()
        job.exchange.close()
        assert len(os.listdir("/proc/self/fd")) == before
    finally:
        pool.close()


# -- results of a member with a fault


def faulty(own, called, given, *, delay=0, hangs=False):
    calls = []
    meeting = SimpleNamespace(
        tag="t", failure=None, results=lambda: given, open_ns=lambda: 7, give_up=lambda report: report,
        waits_for=lambda: "rank 1", enter=lambda waiter, time: calls.append(time), leave=calls.append,
        abandon=calls.append,
    )  # fmt: skip
    return FaultyMeeting(meeting, own, called, delay, hangs=hangs), calls


def test_a_member_with_a_diverging_call_gets_its_own_shape_and_type():
    own = Call(op="AllGather", tensors=(("float32", (2, 3)),))
    longer = Call(op="AllGather", tensors=(("float32", (3, 3)),))
    given = [np.arange(36, dtype=np.float32).reshape(12, 3)]
    meeting, _ = faulty(own, longer, given)
    (found,) = meeting.results()
    assert found.shape == (8, 3)  # of four members
    assert faulty(own, own, given)[0].results() is given
    assert faulty(own, Call(op="Barrier"), given)[0].results() is given
    narrow = Call(op="AllReduce", tensors=(("float16", ()),), reduce="sum")
    wide = Call(op="AllReduce", tensors=(("float32", ()),), reduce="sum")
    (found,) = faulty(wide, narrow, [np.float16([3])])[0].results()
    assert (found.dtype, found.shape, float(found)) == (np.float32, (), 3)


def test_a_member_that_hangs_or_is_late():
    own = Call(op="Barrier")
    late, calls = faulty(own, own, [], delay=5)
    late.enter(None, 100)
    late.leave(9)
    late.abandon("dropped")
    assert calls == [105, 9, "dropped"]
    assert (late.open_ns(), late.waits_for(), late.give_up("r")) == (7, "rank 1", "r")
    hung, calls = faulty(own, own, [], hangs=True)
    hung.enter(None, 100)
    assert calls == []
    assert (hung.open_ns(), hung.give_up("r")) == (None, None)
    assert hung.waits_for() == "nothing: it hangs by the fault plan (t)"
    assert FaultyGroup.cost_ns(SimpleNamespace(_group=SimpleNamespace(cost_ns=lambda call: 3)), own) == 3
