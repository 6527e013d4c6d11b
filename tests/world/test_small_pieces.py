"""Small pieces of the transports, called directly."""

from types import SimpleNamespace

import numpy as np
import pytest

from dumpsim.core.communicator import Call
from dumpsim.core.errors import DeviceError
from dumpsim.world.carrier import SharedTensors
from dumpsim.world.client import Client
from dumpsim.world.ending import RankKilled, RankStopped
from dumpsim.world.exchange import Exchange
from dumpsim.world.faulty import _as, _other, _resized
from dumpsim.world.hosts import RankHosts

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
