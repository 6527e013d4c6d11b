"""Redistribution between layouts: on data of all ranks, and operator by operator. [spec parallel 2.5, 2.6]"""

import random
from math import prod

import numpy as np
import pytest

from dumpsim.core.tensorlayout import TensorLayout
from dumpsim.graph.parallel.redistribution import redistribution
from dumpsim.graph.parallel.transfer import Cut, Exchange, Join, Reshape, group_of


def layout(shape, cuts, devices):
    """The layout of a strategy; what it does not use is repeated calculation."""
    repeats = devices // prod(cuts)
    matrix = (*cuts, repeats) if repeats > 1 else tuple(cuts)
    behind = int(repeats > 1)
    dims = tuple(len(shape) - 1 - axis + behind for axis in range(len(shape)))
    return TensorLayout(matrix, dims, tuple(shape)).squeezed()


def strategy(chosen, shape, devices):
    cuts, left = [1] * len(shape), devices
    for axis in chosen.sample(range(len(shape)), len(shape)):
        cuts[axis] = chosen.choice([n for n in (1, 2, 4, 8, 16) if left % n == 0 and shape[axis] % n == 0])
        left //= cuts[axis]
    return tuple(cuts)


def shape_of(chosen, total):
    """A random shape of so many elements."""
    found = []
    while total > 1 and len(found) < 3:
        found.append(chosen.choice([n for n in range(2, total + 1) if total % n == 0][:6]))
        total //= found[-1]
    return (*found, total)


def run(parts, programs):
    """The steps of all ranks on their parts, all ranks in step."""
    for steps in zip(*programs, strict=True):
        assert len({type(step) for step in steps}) == 1
        after = []
        for rank, step in enumerate(steps):
            match step:
                case Reshape(shape=shape):
                    after.append(parts[rank].reshape(shape))
                case Cut(axis=axis, count=count, index=index):
                    after.append(np.split(parts[rank], count, axis)[index])
                case Join(axis=axis):
                    after.append(np.concatenate([parts[other] for other in group_of(step, rank)], axis))
                case Exchange(cut=cut, joined=joined, count=count):
                    members = group_of(step, rank)
                    own = members.index(rank)
                    pieces = [np.split(parts[other], count, cut)[own] for other in members]
                    after.append(np.concatenate(pieces, joined))
        parts = after
    return parts


def compared(source, target):
    """Whether the parts of all ranks become those of the target, both ways."""
    whole = np.arange(prod(source.shape)).reshape(source.shape)
    for all_to_all in (False, True):
        programs = [redistribution(source, target, rank, all_to_all=all_to_all) for rank in range(source.devices)]
        got = run([whole[source.region(rank)] for rank in range(source.devices)], programs)
        for rank in range(source.devices):
            np.testing.assert_array_equal(got[rank], whole.reshape(target.shape)[target.region(rank)])


def any_layout(chosen, shape, devices):
    """A layout that a script may give itself: any dimensions on any axes, several on one."""
    matrix = chosen.choice([m for m in MATRICES if prod(m) == devices])
    axes = [[] for _ in shape]
    for dim in chosen.sample(range(len(matrix)), len(matrix)):
        at = chosen.randrange(len(shape))
        if chosen.random() < 0.8 and shape[at] % (prod(matrix[-1 - d] for d in axes[at]) * matrix[-1 - dim]) == 0:
            axes[at].append(dim)
    found = [tuple(dims) if len(dims) > 1 else dims[0] if dims else -1 for dims in axes]
    return TensorLayout(matrix, tuple(found), tuple(shape))


MATRICES = [(2,), (4,), (2, 2), (8,), (2, 4), (4, 2), (2, 2, 2), (6,), (2, 3), (3, 2), (16,), (2, 2, 4), (4, 4)]


@pytest.mark.parametrize("seed", range(0, 120, 20))
def test_parts_of_any_layouts_are_the_slices_of_the_whole_tensor(seed):
    for one in range(seed, seed + 20):
        chosen = random.Random(one)
        devices = chosen.choice([2, 4, 8, 6, 16])
        sizes = [2, 4, 8, 16] if devices != 6 else [1, 6, 12]
        shape = tuple(chosen.choice(sizes) for _ in range(chosen.randint(1, 3)))
        after = shape_of(chosen, prod(shape)) if chosen.random() < 0.3 else shape
        compared(any_layout(chosen, shape, devices), any_layout(chosen, after, devices))


def test_parts_that_two_axes_exchange():
    """The axes swap their device dimensions: both are joined, the last one first. [spec parallel 2.5, steps 4, 7]"""
    source, target = TensorLayout((2, 2), (0, 1), (8, 8)), TensorLayout((2, 2), (1, 0), (8, 8))
    compared(source, target)
    assert texts(redistribution(source, target, 2), 2) == "G1(0,2) G0(2,3) S0:1/2 S1:0/2"


def check(seed):
    chosen = random.Random(seed)
    devices = chosen.choice([2, 4, 8, 16])
    shape = tuple(chosen.choice([1, 2, 4, 6, 8, 12, 16, 48]) for _ in range(chosen.randint(1, 4)))
    after = shape_of(chosen, prod(shape)) if chosen.random() < 0.4 else shape
    source, target = (layout(s, strategy(chosen, s, devices), devices) for s in (shape, after))
    whole = np.arange(prod(shape)).reshape(shape)
    for all_to_all in (False, True):
        programs = [redistribution(source, target, rank, all_to_all=all_to_all) for rank in range(devices)]
        got = run([whole[source.region(rank)] for rank in range(devices)], programs)
        for rank in range(devices):
            np.testing.assert_array_equal(got[rank], whole.reshape(after)[target.region(rank)])


@pytest.mark.parametrize("seed", range(50))
def test_parts_are_the_slices_of_the_whole_tensor(seed):
    check(seed)


@pytest.mark.slow
def test_parts_are_the_slices_of_the_whole_tensor_for_500_pairs():
    for seed in range(500):
        check(seed)


def test_a_layout_is_its_own_redistribution():
    for seed in range(100):
        chosen = random.Random(seed)
        shape = tuple(chosen.choice([2, 4, 8, 16]) for _ in range(chosen.randint(1, 4)))
        one = layout(shape, strategy(chosen, shape, 8), 8)
        assert redistribution(one, one, chosen.randrange(8)) == []


def texts(steps, rank):
    """Steps as the examples of the specification write them."""
    found = []
    for step in steps:
        match step:
            case Reshape(shape=shape):
                found.append(f"R{shape}")
            case Cut(axis=axis, count=count, index=index):
                found.append(f"S{axis}:{index}/{count}")
            case Join(axis=axis):
                found.append(f"G{axis}{group_of(step, rank)}")
            case Exchange(cut=cut, joined=joined):
                found.append(f"A{cut}>{joined}{group_of(step, rank)}")
    return " ".join(found).replace(", ", ",").replace(",)", ")")


EXAMPLES = [  # devices, rank, shape, strategy, shape, strategy, steps, steps with AlltoAll
    (2, 1, (16, 32), (2, 1), (16, 32), (1, 2), "G0(0,1) S1:1/2", "A1>0(0,1)"),
    (2, 1, (16, 32), (1, 2), (16, 32), (2, 1), "G1(0,1) S0:1/2", "A0>1(0,1)"),
    (4, 3, (16, 32), (2, 2), (16, 32), (4, 1), "R(1,8,16) G2(2,3) R(8,32) S0:1/2", "R(1,8,16) A1>2(2,3) R(4,32)"),
    (4, 3, (16, 32), (4, 1), (16, 32), (2, 2), "G0(2,3) R(1,8,32) S2:1/2 R(8,16)", "R(1,4,32) A2>1(2,3) R(8,16)"),
    (4, 2, (16, 32), (2, 1), (16, 32), (1, 2), "G0(0,2) S1:1/2", "A1>0(0,2)"),
    (4, 3, (16, 32), (2, 2), (16, 32), (1, 1), "G1(2,3) G0(1,3)", "G1(2,3) G0(1,3)"),
    (4, 3, (16, 32), (1, 1), (16, 32), (2, 2), "S0:1/2 S1:1/2", "S0:1/2 S1:1/2"),
    (4, 3, (16, 32), (2, 2), (16, 32), (1, 4), "R(8,1,16) G1(2,3) G0(1,3) S1:1/2 S2:1/2 R(16,8)",
     "R(8,1,16) A2>1(2,3) A1>0(1,3) R(16,8)"),
    (4, 3, (16, 32), (4, 1), (16, 32), (1, 4), "G0(0,1,2,3) S1:3/4", "A1>0(0,1,2,3)"),
    (8, 5, (16, 32), (2, 4), (16, 32), (8, 1), "R(1,8,8) G2(4,5,6,7) R(8,32) S0:1/4", "R(1,8,8) A1>2(4,5,6,7) R(2,32)"),
    (8, 5, (16, 32), (8, 1), (16, 32), (2, 4), "G0(4,5,6,7) R(1,8,32) S2:1/4 R(8,8)", "R(1,2,32) A2>1(4,5,6,7) R(8,8)"),
    (8, 6, (8, 16, 32), (2, 2, 2), (8, 16, 32), (4, 1, 2), "R(1,4,8,16) G2(4,6) R(4,16,16) S0:1/2",
     "R(1,4,8,16) A1>2(4,6) R(2,16,16)"),
    (8, 7, (16, 32), (2, 2), (16, 32), (2, 4), "R(8,1,16) S2:1/2 R(8,8)", "R(8,1,16) S2:1/2 R(8,8)"),
    (4, 1, (16, 32), (2, 2), (16, 4, 8), (2, 1, 2), "R(8,2,8) G1(0,1) S2:1/2", "R(8,2,8) A2>1(0,1)"),
    (4, 0, (16, 32), (4, 1), (8, 2, 32), (4, 1, 1), "R(2,2,32)", "R(2,2,32)"),
    (8, 6, (48, 16, 16, 32), (8, 1, 1, 1), (48, 16, 16, 32), (1, 2, 2, 1),
     "G0(4,5,6,7) R(1,2,12,16,16,32) G0(2,6) S3:1/2 S4:1/2 R(48,8,8,32)",
     "R(1,1,6,16,16,32) A4>1(4,6) A3>0(2,6) G2(6,7) R(48,8,8,32)"),
    (8, 5, (128, 64), (4, 1), (128, 64), (2, 4), "R(32,2,32) G0(5,7) R(1,64,2,32) S2:0/2 S3:1/2 R(64,16)",
     "R(1,32,2,32) S3:1/2 A2>1(5,7) R(64,16)"),
    (2, 1, (1, 16), (1, 2), (1, 16), (1, 1), "R(8) G0(0,1) R(1,16)", "R(8) G0(0,1) R(1,16)"),
]  # fmt: skip


@pytest.mark.parametrize("example", EXAMPLES)
def test_the_operators_are_those_of_the_real_compiler(example):
    devices, rank, shape, cuts, after, wanted, plain, exchanged = example
    source, target = layout(shape, cuts, devices), layout(after, wanted, devices)
    assert texts(redistribution(source, target, rank), rank) == plain
    assert texts(redistribution(source, target, rank, all_to_all=True), rank) == exchanged
