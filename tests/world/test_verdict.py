"""Failures of collectives for given calls and times: which rank is blamed, when, and with which message."""

from dataclasses import replace

import pytest

from dumpsim.core.communicator import Call, Terms
from dumpsim.world.collective import COLLECTIVES
from dumpsim.world.verdict import Entry, gone, judge, judge_message, not_created, stuck

SUM = Call(op="AllReduce", tensors=(("float32", (2,)),), reduce="sum")
WIDER = Call(op="AllReduce", tensors=(("float32", (3,)),), reduce="sum", name="Default/AllReduce-op1", place="net.py:7")
GATHER = Call(op="AllGather", tensors=(("float32", (2,)),))
WAITED = "The wait execution of the Notify register times out: no Notify record came from remote rank"
SOCKET = "Getting socket times out: no data came in time from remote rank"
UNEQUAL = "The arguments for collective communication are inconsistent between ranks: parameter"
OF = "Collective 4 of group 'g':"
ONE_S = 10**9


def entries(*calls, times=(), **terms):
    times = times or [0] * len(calls)
    given = zip(calls, times, strict=True)
    return [Entry(rank=2 * r, call=call, time_ns=at, terms=Terms(**terms)) for r, (call, at) in enumerate(given)]


def said(failures):
    """Return for each failing rank the blamed rank, the time, and the error as a user reads it."""
    return {rank: (one.rank, one.time_ns, str(one.error)) for rank, one in failures.items()}


def asked(members, *, first=False):
    return said(judge(members, group="g", index=4, first=first))


@pytest.mark.parametrize(
    ("check", "first", "found"),
    [("all", True, True), ("all", False, True), ("first", True, True), ("first", False, False), ("off", True, False)],
)
def test_the_environment_decides_which_calls_are_compared(check, first, found):
    assert bool(asked(entries(SUM, SUM, WIDER, check=check), first=first)) is found
    assert asked(entries(SUM, SUM, SUM, check=check), first=first) == {}


def test_the_minority_is_blamed():
    assert asked(entries(SUM, SUM, WIDER, times=(0, 5, 3))) == {
        0: (4, 5, f"rank 0: {UNEQUAL} shape, local value (2,), remote value (3,) (rank 4, net.py:7). {OF} AllReduce. "
                  "[EI0005]"),
        2: (4, 5, f"rank 2: {UNEQUAL} shape, local value (2,), remote value (3,) (rank 4, net.py:7). {OF} AllReduce. "
                  "[EI0005]"),
        4: (4, 5, f"rank 4, net.py:7: {UNEQUAL} shape, local value (3,), remote value (2,) (rank 0). "
                  f"{OF} Default/AllReduce-op1. [EI0005]"),
    }  # fmt: skip
    assert {blamed for blamed, _, _ in asked(entries(WIDER, SUM, SUM)).values()} == {0}
    assert {blamed for blamed, _, _ in asked(entries(WIDER, SUM)).values()} == {2}  # of two the second


def test_different_calls_without_comparison_time_out():
    found = asked(entries(SUM, SUM, GATHER, times=(0, 2 * ONE_S, ONE_S), check="off", exec_ns=5 * ONE_S))
    assert found == {
        0: (4, 5 * ONE_S, f"rank 0: {WAITED} 4. {OF} AllReduce. [EI0002]"),
        2: (4, 7 * ONE_S, f"rank 2: {WAITED} 4. {OF} AllReduce. [EI0002]"),
        4: (4, 6 * ONE_S, f"rank 4: {WAITED} 0. {OF} AllGather. [EI0002]"),
    }
    for_ever = asked(entries(SUM, SUM, GATHER, times=(0, 2, 1), check="off", exec_ns=None))
    assert [at for _, at, _ in for_ever.values()] == [2, 2, 2]
    # not before all have come, which the first collective of a type awaits longer
    patient = asked(entries(SUM, GATHER, times=(0, 9), check="off", exec_ns=5, connect_ns=20), first=True)
    assert [at for _, at, _ in patient.values()] == [9, 14]


@pytest.mark.parametrize(("first", "code", "waited", "variable"), [
    (True, "EI0006", SOCKET, "HCCL_CONNECT_TIMEOUT"), (False, "EI0002", WAITED, "HCCL_EXEC_TIMEOUT")
])  # fmt: skip
def test_a_late_rank_is_blamed_by_the_waiting_ones(first, code, waited, variable):
    limits = {"connect_ns": 3 * ONE_S, "exec_ns": 3 * ONE_S}
    remedy = f"If writing dumps makes rank 4 slow, raise {variable}"
    assert asked(entries(SUM, SUM, SUM, times=(0, 2 * ONE_S, 3 * ONE_S), **limits), first=first) == {}
    found = asked(entries(SUM, SUM, SUM, times=(ONE_S // 2, 0, 3 * ONE_S + 1), **limits), first=first)
    assert found == {
        0: (4, ONE_S // 2, f"rank 0: rank 2 has given up: rank 4 came 3.000000001 s after it. {OF} AllReduce. {remedy} "
                           f"[{code}]"),
        2: (4, 3 * ONE_S, f"rank 2: {waited} 4 within 3 s ({variable}): it came 3.000000001 s after rank 2. "
                          f"{OF} AllReduce. {remedy} [{code}]"),
        4: (4, 3 * ONE_S + 1, f"rank 4: rank 2 has given up: rank 4 came 3.000000001 s after it. {OF} AllReduce. "
                              f"{remedy} [{code}]"),
    }  # fmt: skip
    if not first:
        assert asked(entries(SUM, SUM, times=(0, 10**15), exec_ns=None)) == {}


def test_counts_that_do_not_match_blame_the_sender():
    def call(sends, receives):
        return Call(op="AlltoAllV", tensors=(("float32", (sum(sends),)),), sends=sends, receives=receives)

    good = entries(call((1, 2), (1, 3)), call((3, 4), (2, 4)))
    assert asked(good) == {}
    found = asked(entries(call((1, 2), (1, 5)), call((3, 4), (2, 4)), times=(7, 1)))
    name = f"{UNEQUAL} count from rank 2 to rank 0, local value"
    assert found == {
        0: (2, 7, f"rank 0: {name} 5, remote value 3 (rank 2). {OF} AlltoAllV. [EI0005]"),
        2: (2, 7, f"rank 2: {name} 3, remote value 5 (rank 0). {OF} AlltoAllV. [EI0005]"),
    }
    assert asked(entries(call((1, 2), ()), call((3, 4), ()))) == {}  # one side states all counts


@pytest.mark.parametrize(("counts", "agree"), [((1, 1), True), ((2, 2), True), ((1, 2), False), ((0, 3), False)])
def test_counts_of_equal_calls_are_compared_too(counts, agree):
    """A member sends as much to each, so that each must expect the same of all."""
    one = Call(op="AlltoAllV", tensors=(("float32", (sum(counts),)),), sends=counts, receives=counts)
    assert (asked(entries(one, one)) == {}) is agree


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("op", ["AllReduce", "AllGather"])
def test_times_are_relative(order, first, op):
    """Later calls fail later by as much, for the same reasons."""
    call = replace(SUM, op=op)
    times = [(0, ONE_S, 9 * ONE_S)[at] for at in order]
    limits = {"connect_ns": 3 * ONE_S, "exec_ns": 4 * ONE_S}
    found = asked(entries(call, call, call, times=times, **limits), first=first)
    later = asked(entries(call, call, call, times=[at + 77 * ONE_S for at in times], **limits), first=first)
    assert later == {rank: (blamed, at + 77 * ONE_S, text) for rank, (blamed, at, text) in found.items()}
    assert len(found) == 3


def called(op, **changes):
    """A call of three members that differs from a valid one in the given fields."""
    fields = {"tensors": (("float32", (3, 4)),), "reduce": "sum", "root": 1, "axes": (3, 0, 1)}
    if op in ("AllGatherV", "AlltoAllV", "AlltoAllVC", "ReduceScatterV") or op.startswith("NeighborExchange"):
        fields |= {"sends": (4, 4, 4), "receives": (4, 4, 4)}
    return Call(op=op, **fields | changes)


@pytest.mark.parametrize("op", [op for op, found in COLLECTIVES.items() if found.shares is not None])
def test_the_arguments_that_members_must_agree_on(op):
    """[spec parallel 3.2]: type, shape, reduction, root, axes and counts; but no shape where parts differ in size."""
    found = COLLECTIVES[op]
    alone = found.same_tensors == "root"
    shape = "data type and shape of a part" if alone else "shape"
    changes = {
        "data type": {"tensors": (("int32", (3, 4)),)},
        "shape": {"tensors": (("float32", (3, 5)),)},
        "length": {"tensors": (("float32", (6, 4)),)},
        "reduce": {"reduce": "max"},
        "root": {"root": 2},
        "axes": {"axes": (3, 1, 0)},
        "sends": {"sends": (4, 3, 5)},
        "receives": {"receives": (4, 3, 5)},
    }
    told = {"data type": shape if alone else "data type", "shape": shape, "length": "shape"}
    wanted = {"data type", *found.agree} | ({"shape", "length"} if found.same_tensors == "all" else set())
    wanted |= {"root", "shape"} if alone else set()
    for name, change in changes.items():
        one, other = called(op), called(op, **change)
        failures = asked(entries(one, one, other))
        texts = [text for _, _, text in failures.values() if f"{UNEQUAL} {told.get(name, name)}, local" in text]
        if name in wanted:
            assert {blamed for blamed, _, _ in failures.values()} == {4}, name
            assert len(texts) == 3, name
        else:
            assert not texts, name


def test_the_root_alone_brings_what_is_scattered():
    """The others expect a part of it; all axes but the first are those of the whole."""

    def asked_of(part, *, root=0, kind="float32"):
        whole = Call(op="CollectiveScatter", tensors=(("float32", (4, 3, 5)),), root=0)
        return asked(entries(whole, Call(op="CollectiveScatter", expected=((kind, part),), root=root)))

    assert asked_of((2, 3, 5)) == {}
    for part, more in (((2, 5, 5), {}), ((2, 3, 4), {}), ((2, 3, 5), {"root": 1}), ((2, 3, 5), {"kind": "int32"})):
        assert sorted(asked_of(part, **more)) == [0, 2]


HALVES, SINGLES = (("float16", (2,)),), (("float32", (2,)),)


@pytest.mark.parametrize(
    ("wanted", "sent", "check", "first", "fails"),
    [
        (SINGLES, SINGLES, "all", True, False), (SINGLES, HALVES, "all", False, True), ((), HALVES, "all", True, False),
        (SINGLES, HALVES, "first", True, True), (SINGLES, HALVES, "first", False, False),
        (SINGLES, HALVES, "off", True, False),
    ],
)  # fmt: skip
def test_a_message_must_match_the_receive(wanted, sent, check, first, fails):
    receiver, sender = entries(Call(op="Receive"), Call(op="Send", place="s.py:1"), times=(3, 8), check=check)
    found = judge_message(receiver, sender, wanted, sent, group="g", first=first)
    assert (found is not None) is fails
    if found is not None:
        text = f"{UNEQUAL} data type and shape, local value ('float32', (2,)), remote value ('float16', (2,))"
        text += " (rank 2, s.py:1)"
        assert said({0: found}) == {0: (2, 8, f"rank 0: {text}. Message of group 'g': Receive. [EI0005]")}


def test_a_message_that_comes_too_late_fails_its_receiver_alone():
    receiver, sender = entries(Call(op="Receive"), Call(op="Send"), times=(1, 12), exec_ns=10, connect_ns=20)
    assert judge_message(receiver, sender, SINGLES, SINGLES, group="g", first=True) is None
    found = judge_message(receiver, sender, SINGLES, SINGLES, group="g", first=False)
    assert (found.rank, found.time_ns, found.error.code) == (2, 11, "EI0002")
    assert "it came 1.1e-08 s after rank 0. Message of group 'g': Receive." in str(found.error)


def test_the_end_of_a_rank_is_noticed_at_the_time_limit():
    (one,) = entries(SUM, times=(4,), exec_ns=10, connect_ns=20)
    for first, at, until, code, waited in (
        (False, 9, 14, "EI0002", WAITED), (False, 40, 40, "EI0002", WAITED), (True, 9, 24, "EI0006", SOCKET)
    ):  # fmt: skip
        found = gone(one, 6, "it was killed", group="g", index=4, first=first, at_ns=at)
        assert said({0: found}) == {0: (6, until, f"rank 0: {waited} 6: it was killed. {OF} AllReduce. [{code}]")}
    (one,) = entries(SUM, times=(4,), exec_ns=None)
    assert gone(one, 6, "why", group="g", index=4, first=False, at_ns=9).time_ns == 9


def test_a_deadlock_names_the_missing_ranks():
    (one,) = entries(SUM, times=(4,), exec_ns=None, connect_ns=20)
    for first, until, code, waited in ((False, 4, "EI0002", WAITED), (True, 24, "EI0006", SOCKET)):
        found = stuck(one, [6, 8], "rank 6 sleeps", group="g", index=None, first=first)
        text = f"rank 0: {waited} 6, 8, which will never call it. Message of group 'g': AllReduce. [{code}]"
        assert said({0: found}) == {0: (6, until, text)}
        assert found.error.__notes__ == ["rank 6 sleeps"]


def test_a_failed_start_names_connected_and_missing_ranks():
    error = not_created(1, [1], [0, 2], None)
    text = "rank 1: The creation of the communicator fails: connected ranks [1], missing ranks [0, 2] [EI0015]"
    assert (str(error), error.rank) == (text, 0)
