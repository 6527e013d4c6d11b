"""What each member of a collective gets, and which calls no group can carry out."""

from dataclasses import replace

import numpy as np
import pytest

from dumpsim.core.communicator import Call
from dumpsim.core.errors import BadInputError
from dumpsim.world.collective import COLLECTIVES, check_call, collective, results

SIZE = 3
PAIR = (("int32", (6, 2)),)


def brought(shape, kind=np.int32):
    """Tensors in which every number says whose it is and where it was: 1000 for each member."""
    return [[np.arange(np.prod(shape), dtype=kind).reshape(shape) + 1000 * at] for at in range(SIZE)]


def summed(terms, reduce):
    return {"sum": np.add, "max": np.maximum}[reduce].reduce(terms)


def got(calls, tensors):
    found = results(calls, tensors, summed)
    for mine in found:
        assert not any(array.flags.writeable for array in mine)
    return [[array.tolist() for array in mine] for mine in found]


def everybody(call):
    return [call] * SIZE


ROWS = np.stack([tensor for (tensor,) in brought((6, 2))])  # member, row, column
OF_ALL = [
    (Call(op="AllReduce", tensors=PAIR, reduce="sum"), [[ROWS.sum(0)]] * SIZE),
    (Call(op="AllReduce", tensors=PAIR, reduce="max"), [[ROWS[2]]] * SIZE),
    (Call(op="AllGather", tensors=PAIR), [[ROWS.reshape(18, 2)]] * SIZE),
    (Call(op="AllGatherV", tensors=PAIR, receives=(12,) * 3), [[ROWS.reshape(-1)]] * SIZE),
    (Call(op="ReduceScatter", tensors=PAIR, reduce="sum"),
     [[ROWS.sum(0)[2 * at : 2 * at + 2]] for at in range(SIZE)]),
    (Call(op="ReduceScatterV", tensors=PAIR, reduce="sum", sends=(0, 5, 7)),
     [[ROWS.sum(0).reshape(-1)[a:b]] for a, b in ((0, 0), (0, 5), (5, 12))]),
    (Call(op="Broadcast", tensors=PAIR, root=1), [[ROWS[1]]] * SIZE),
    (Call(op="Reduce", tensors=PAIR, reduce="sum", root=2), [[], [], [ROWS.sum(0)]]),
    (Call(op="AlltoAll", tensors=PAIR, axes=(3, 0, 1)),
     [[np.hstack([ROWS[of, 2 * at : 2 * at + 2] for of in range(SIZE)])] for at in range(SIZE)]),
    (Call(op="AlltoAllV", tensors=PAIR, sends=(1, 0, 11), receives=()),
     [[ROWS.reshape(3, 12)[:, a:b].reshape(-1)] for a, b in ((0, 1), (1, 1), (1, 12))]),
    (Call(op="CollectiveScatter", tensors=PAIR, root=1), [[ROWS[1, 2 * at : 2 * at + 2]] for at in range(SIZE)]),
    (Call(op="CollectiveGather", tensors=PAIR, root=0), [[ROWS.reshape(18, 2)], [], []]),
    (Call(op="Barrier"), [[], [], []]),
]  # fmt: skip


@pytest.mark.parametrize(("call", "wanted"), OF_ALL, ids=[f"{call.op}-{call.reduce}" for call, _ in OF_ALL])
def test_members_that_call_alike_get_their_shares(call, wanted):
    tensors = brought((6, 2)) if call.tensors else [[]] * SIZE
    check_call(call, SIZE)
    assert got(everybody(call), tensors) == [[array.tolist() for array in mine] for mine in wanted]


@pytest.mark.parametrize("call", [call for call, _ in OF_ALL if call.op not in ("Barrier", "AlltoAllV")], ids=str)
def test_what_the_first_member_says_counts_where_calls_are_not_compared(call):
    other = replace(call, reduce="max" if call.reduce == "sum" else call.reduce, root=0 if call.root != 0 else 1)
    if call.op == "ReduceScatterV":
        other = replace(other, sends=(12, 0, 0))
    if call.op == "AlltoAll":
        other = replace(other, axes=(3, 1, 0))
    assert got([call, other, other], brought((6, 2))) == got(everybody(call), brought((6, 2)))


@pytest.mark.parametrize("op", ["AllReduce", "AllGather", "ReduceScatter", "Broadcast", "Reduce", "CollectiveGather"])
def test_a_group_of_one_gets_its_own_tensor(op):
    tensor = np.arange(4, dtype=np.int32)
    call = Call(op=op, tensors=(("int32", (4,)),), reduce="sum" if "Reduce" in op else "", root=0)
    check_call(call, 1)
    ((found,),) = results([call], [[tensor]], summed)
    assert found.tolist() == [0, 1, 2, 3]
    assert not np.shares_memory(found, tensor)


def test_each_member_of_an_exchange_says_what_it_sends():
    """[spec parallel 3.1]: receiver r gets from each sender, in their order, the piece that it has cut for r."""
    sends = [(2, 0, 1), (0, 1, 1), (3, 0, 0)]
    tensors = [[np.arange(sum(counts)) + 10 * at] for at, counts in enumerate(sends)]
    for op in ("AlltoAllV", "AlltoAllVC", "NeighborExchange"):
        calls = [
            Call(op=op, tensors=(("int64", (sum(counts),)),), sends=counts, receives=tuple(one[at] for one in sends))
            for at, counts in enumerate(sends)
        ]
        assert got(calls, tensors) == [[[0, 1, 20, 21, 22]], [[10]], [[2, 11]]]


def test_shares_of_a_scatter_are_of_the_root_alone():
    root = Call(op="CollectiveScatter", tensors=(("int32", (6, 2)),), root=0)
    other = Call(op="CollectiveScatter", expected=(("int32", (2, 2)),), root=0)
    assert got([root, other, other], [brought((6, 2))[0], [], []]) == [
        [[[0, 1], [2, 3]]], [[[4, 5], [6, 7]]], [[[8, 9], [10, 11]]]
    ]  # fmt: skip


def test_members_that_do_not_agree_read_the_bytes_as_their_own():
    """As on a device that does not check: others' bytes, cut, or with zeros at the end."""
    calls = [
        Call(op="AllReduce", tensors=(("int32", (2,)),), reduce="sum"),
        Call(op="AllReduce", tensors=(("int16", (2, 3)),), reduce="sum"),
    ]
    tensors = [[np.array([1, 0x00030002], np.int32)], [np.array([[1, 2, 3], [4, 5, 6]], np.int16)]]
    first, second = got(calls, tensors)
    assert first == [[1 + 0x00020001, 0x00030002 + 0x00040003]]
    assert second == [[[1 + 1, 0 + 2, 2 + 3], [3 + 4, 5, 6]]]


def test_results_of_all_are_one_array_that_no_member_can_write():
    tensors = brought((6, 2))
    found = results(everybody(Call(op="Broadcast", tensors=PAIR, root=1)), tensors, summed)
    assert found[0][0] is found[1][0] is found[2][0]
    assert not np.shares_memory(found[0][0], tensors[1][0])
    assert tensors[1][0].flags.writeable
    part = results(everybody(Call(op="CollectiveScatter", tensors=PAIR, root=1)), tensors, summed)[0][0]
    assert not np.shares_memory(part, tensors[1][0])
    total = np.zeros((6, 2), np.int32)
    found = results(everybody(Call(op="AllReduce", tensors=PAIR, reduce="sum")), tensors, lambda *_: total)
    assert np.shares_memory(found[0][0], total)  # is not copied
    assert not total.flags.writeable


# ---------------------------------------------------------------- checks
REDUCE = ("AllReduce", "ReduceScatter", "ReduceScatterV", "Reduce")
ROOTED = ("Broadcast", "Reduce", "CollectiveScatter", "CollectiveGather", "Send", "Receive")


def least(op, kind="float32", **fields):
    """A call of three members, with what its operator asks for."""
    fields = {"reduce": "sum" if op in REDUCE else "", "root": 0, **fields}
    return Call(op=op, tensors=((kind, (3,)),), **fields)


@pytest.mark.parametrize("op", COLLECTIVES)
def test_number_types_of_collectives(op):
    """[spec parallel 3.2]: sums take integers with a sign and the three floats, other collectives any type but int4."""
    reduced = {"int8", "int16", "int32", "int64", "float16", "float32", "bfloat16", "complex64"}
    moved = reduced | {"uint8", "uint16", "uint32", "uint64", "float64", "bool"}
    taken = reduced if op in REDUCE else moved
    for kind in (*sorted(moved), "int4", "complex128"):
        if kind in taken:
            assert check_call(least(op, kind), SIZE) is collective(op)
        else:
            with pytest.raises(BadInputError) as caught:
                check_call(least(op, kind), SIZE)
            assert str(caught.value).startswith(f"{op}: unsupported number type {kind}; allowed: ")
            assert set(caught.value.allowed) == taken
    with pytest.raises(BadInputError, match="unsupported number type int4"):
        check_call(Call(op=op, expected=(("int4", (3,)),), reduce="sum", root=0), SIZE)


@pytest.mark.parametrize("op", COLLECTIVES)
def test_roots_and_reductions_of_collectives(op):
    for root, good in ((0, True), (2, True), (3, False), (-1, False)):
        if good or op not in ROOTED:
            check_call(least(op, root=root), SIZE)
        else:
            with pytest.raises(BadInputError, match=f"^n: member {root} is not in the group; allowed: 0 to 2$"):
                check_call(least(op, root=root, name="n"), SIZE)
    for reduce in ("sum", "prod", "max", "min"):
        check_call(least(op, reduce=reduce), SIZE)
    if op in REDUCE:
        with pytest.raises(
            BadInputError, match=r"unknown reduction 'su'; allowed: sum, prod, max, min \(did you mean 'su"
        ):
            check_call(least(op, reduce="su"), SIZE)
        with pytest.raises(BadInputError, match="unsupported reduction 'max' of complex64; allowed: sum"):
            check_call(least(op, "complex64", reduce="max"), SIZE)
    else:
        check_call(least(op, "complex64", reduce="max"), SIZE)


def test_counts_of_an_exchange():
    call = Call(op="AlltoAllV", tensors=(("int8", (2, 3)),), sends=(1, 2, 3), receives=(0, 0, 9), name="n")
    check_call(call, SIZE)
    check_call(replace(call, sends=()), SIZE)
    check_call(replace(call, receives=()), SIZE)
    for fields, said in (
        ({"sends": (1, 5)}, r"n: sends: invalid counts \(1, 5\) for 3 members"),
        ({"sends": (7, 0, -1)}, r"n: sends: invalid counts \(7, 0, -1\) for 3 members"),
        ({"receives": (1, 2, 3, 4)}, r"n: receives: invalid counts \(1, 2, 3, 4\) for 3 members"),
        ({"sends": (1, 2, 4)}, "n: 7 of 6 elements are sent"),
        ({"sends": (1, 2, 2), "receives": ()}, "n: 5 of 6 elements are sent"),
    ):
        with pytest.raises(BadInputError, match=f"^{said}$"):
            check_call(replace(call, **fields), SIZE)


@pytest.mark.parametrize("op", ["ReduceScatter", "CollectiveScatter", "AllGather"])
def test_first_axes_that_members_share(op):
    for shape, good in (((6, 5), True), ((0,), True), ((5, 6), False), ((), False)):
        call = replace(least(op), tensors=(("int8", shape),))
        if good or op == "AllGather":
            check_call(call, SIZE)
        else:
            with pytest.raises(BadInputError) as caught:
                check_call(call, SIZE)
            assert str(caught.value) == f"{op}: 3 members cannot share the first axis of shape {shape}"
    check_call(Call(op="CollectiveScatter", expected=(("int8", (5,)),), root=0), SIZE)


def test_what_members_must_state_alike():
    """[spec parallel 3.1]"""
    agree = {each.name: each.agree for each in COLLECTIVES.values() if each.agree}
    assert agree == {
        "AllReduce": ("reduce",), "AllGatherV": ("receives",), "ReduceScatter": ("reduce",),
        "ReduceScatterV": ("reduce", "sends"), "Broadcast": ("root",), "Reduce": ("reduce", "root"),
        "AlltoAll": ("axes",), "CollectiveScatter": ("root",), "CollectiveGather": ("root",),
    }  # fmt: skip
    assert {each.name for each in COLLECTIVES.values() if each.shares is None} == {"Send", "Receive"}
