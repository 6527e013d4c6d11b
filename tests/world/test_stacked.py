"""Collectives of stacked members against those of members that call one by one."""

import itertools

import ml_dtypes
import numpy as np
import pytest

from dumpsim.core.communicator import Call, Terms
from dumpsim.core.dtype import dtype
from dumpsim.core.errors import BadInputError, UnsupportedError
from dumpsim.world.collective import results
from dumpsim.world.reduction import folder
from dumpsim.world.stacked import StackedCall

SIZE = 4
KINDS = {"float32": np.float32, "float16": np.float16, "bfloat16": ml_dtypes.bfloat16, "int8": np.int8}


def brought(kinds, seed=0):
    draws = np.random.default_rng(seed)
    return [(draws.standard_normal((SIZE, *shape)) * 40).astype(dtype(kind).numpy) for kind, shape in kinds]


def both(call, stacks, terms, cuts=(1, 3)):
    """Return the results of all members, computed at once and one by one."""
    stacked = StackedCall(call, SIZE, terms)
    for part in zip(*[np.split(stack, cuts) for stack in stacks], strict=True):
        stacked.take(part)
    members = [[stack[at, ...] for stack in stacks] for at in range(SIZE)]
    wanted = results([call] * SIZE, members, folder(terms, "hccl_world_group", 5))
    shares = stacked.results("hccl_world_group", 5)
    return [shares.of(at) for at in range(SIZE)], wanted, shares


def check(call, stacks, terms):
    found, wanted, shares = both(call, stacks, terms)
    for mine, theirs in zip(found, wanted, strict=True):
        assert [(a.dtype, a.shape, a.tobytes()) for a in mine] == [(a.dtype, a.shape, a.tobytes()) for a in theirs]
        assert not any(array.flags.writeable for array in mine)
    assert shares.equal == all(a is b for theirs in wanted for a, b in zip(theirs, wanted[0], strict=True))
    for stack in stacks:  # later changes of a member's tensors have no effect
        assert not any(np.shares_memory(stack, array) for array in shares.arrays)


@pytest.mark.parametrize("saturates", [False, True])
@pytest.mark.parametrize("order", ["rank", "ring", "tree", "fp32acc", "random:3"])
@pytest.mark.parametrize("kind", KINDS)
def test_reductions(kind, order, saturates):
    terms = Terms(order=order, saturates=saturates)
    for op, shape in (("AllReduce", (3, 5)), ("AllReduce", ()), ("ReduceScatter", (8, 3))):
        for reduce in ("sum", "prod", "max", "min"):
            call = Call(op=op, tensors=((kind, shape),), reduce=reduce)
            check(call, brought(call.tensors), terms)


@pytest.mark.parametrize("kind", [*KINDS, "uint8", "bool", "float64", "complex64"])
def test_collectives_that_move_tensors(kind):
    check(Call(op="AllGather", tensors=((kind, (2, 3)),)), brought([(kind, (2, 3))]), Terms())
    kinds = ((kind, (2,)), ("float32", ()))
    check(Call(op="Broadcast", tensors=kinds, root=2), brought(kinds), Terms())
    for axes in ((4, 0, 1), (4, 1, 0), (4, 0, 0), (4, -1, -2), (4, 1, 2)):
        check(Call(op="AlltoAll", tensors=((kind, (4, 8, 4)),), axes=axes), brought([(kind, (4, 8, 4))]), Terms())
    check(Call(op="Barrier"), [], Terms())


@pytest.mark.parametrize("cuts", [(), (1,), (2,), (1, 3), (1, 2, 3)])
@pytest.mark.parametrize("root", range(SIZE))
def test_the_tensors_of_the_root_are_taken_wherever_it_is_and_the_others_may_be_skipped(root, cuts):
    kinds = (("float32", (2,)), ("int8", ()))
    call, stacks = Call(op="Broadcast", tensors=kinds, root=root), brought(kinds)
    found, wanted, _ = both(call, stacks, Terms(), cuts)
    skipping, other = StackedCall(call, SIZE, Terms()), StackedCall(Call(op="AllGather", tensors=kinds), SIZE, Terms())
    for first, end in itertools.pairwise([0, *cuts, SIZE]):
        assert skipping.reads(first, end - first) is (root in range(first, end))
        assert other.reads(first, end - first) is True
        if root in range(first, end):
            skipping.take([stack[first:end] for stack in stacks])
        else:
            skipping.skip(end - first)
    shares = skipping.results("hccl_world_group", 5)
    for mine in (*found, *wanted, *(shares.of(at) for at in range(SIZE))):
        assert [array.tolist() for array in mine] == [stack[root].tolist() for stack in stacks]


def test_equal_tensors_of_all_members():
    (one,) = brought([("float32", (40,))])
    for op in ("AllReduce", "AllGather", "ReduceScatter"):
        call = Call(op=op, tensors=(("float32", (40,)),), reduce="sum" if "Reduce" in op else "")
        check(call, [np.broadcast_to(one[0], one.shape)], Terms())


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (Call(op="AllReduces"), "unknown collective"),
        (Call(op="AllReduce", tensors=(("float64", (2,)),), reduce="sum"), "unsupported number type float64"),
        (Call(op="AllReduce", tensors=(("int8", (2,)),), reduce="mean"), "unknown reduction 'mean'"),
        (Call(op="Broadcast", tensors=(("int8", (2,)),), root=SIZE), "member 4 is not in the group"),
        (Call(op="ReduceScatter", tensors=(("int8", (6,)),), reduce="sum"), "4 members cannot share the first axis"),
    ],
)
def test_invalid_calls_are_refused(call, text):
    with pytest.raises(BadInputError, match=text):
        StackedCall(call, SIZE, Terms())


FLOATS = ("float32", (8,))
SOME = {"sends": (2, 2, 2, 2), "receives": (2, 2, 2, 2)}


@pytest.mark.parametrize(
    ("op", "kind", "fields"),
    [
        ("CollectiveScatter", ("float32", (8, 3)), {"root": 1}), ("AllGatherV", FLOATS, {"receives": (8, 8, 8, 8)}),
        ("ReduceScatterV", FLOATS, {"reduce": "sum", "sends": (2, 2, 2, 2)}), ("AlltoAllV", FLOATS, SOME),
    ],
)  # fmt: skip
def test_other_collectives_are_computed_for_each_member(op, kind, fields):
    call = Call(op=op, tensors=(kind,), **fields)
    check(call, brought([kind]), Terms())


@pytest.mark.parametrize(
    ("op", "fields"),
    [("Reduce", {"reduce": "sum", "root": 1}), ("CollectiveGather", {"root": 1}),
     ("ReduceScatterV", {"reduce": "sum", "sends": (1, 2, 2, 3)})],
)  # fmt: skip
def test_members_that_get_different_shapes_cannot_be_stacked(op, fields):
    stacked = StackedCall(Call(op=op, tensors=(FLOATS,), **fields), SIZE, Terms())
    stacked.take(brought([FLOATS]))
    with pytest.raises(UnsupportedError, match=f"^{op}: the members of {op} get tensors of different shapes"):
        stacked.results("hccl_world_group", 0)


@pytest.mark.parametrize("op", ["AllReduce", "ReduceScatter", "AllGather", "Broadcast", "AlltoAll", "Barrier"])
def test_a_member_that_is_alone(op):
    """Also of a group of one, where there is no second member to compare with."""
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    tensors = () if op == "Barrier" else (("float32", x.shape),)
    call = Call(op=op, tensors=tensors, reduce="sum", root=0, axes=(1, 0, 0))
    stacked = StackedCall(call, 1, Terms())
    if tensors:
        stacked.take([x[np.newaxis]])
    found = stacked.results("hccl_world_group", 0).of(0)
    assert [array.tolist() for array in found] == ([x.tolist()] if tensors else [])
