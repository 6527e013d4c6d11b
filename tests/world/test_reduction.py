"""Reductions over ranks against numpy, one operation at a time."""

import itertools
from zlib import crc32

import ml_dtypes
import numpy as np
import pytest

from dumpsim.core.communicator import Terms
from dumpsim.core.errors import BadInputError
from dumpsim.device.chip import OverflowMode
from dumpsim.world.reduction import REDUCTIONS, Accumulator, check_order, fold, folder

KINDS = [np.float16, ml_dtypes.bfloat16, np.float32, np.float64, np.int8, np.int64]
ORDERS = ["rank", "ring", "tree", "fp32acc", "random:3"]


def terms(kind, count, size=23):
    draws = np.random.default_rng(count)
    return [(draws.standard_normal(size) * 50).astype(kind) for _ in range(count)]


def same(a, b):
    return a.dtype == b.dtype and np.array_equal(a.view(np.uint8), b.view(np.uint8))


@pytest.mark.parametrize("count", [1, 2, 3, 4, 7])
@pytest.mark.parametrize("kind", KINDS)
def test_orders(kind, count):
    each = terms(kind, count)
    total = each[0]
    for term in each[1:]:
        total = (total + term).astype(kind)
    assert same(fold(each, "sum"), total)

    ring, width = np.empty_like(total), -(-23 // count)
    for chunk in range(count):
        part = slice(chunk * width, (chunk + 1) * width)
        turned = [each[(chunk + 1 + at) % count][part] for at in range(count)]
        ring[part] = turned[0]
        for term in turned[1:]:
            ring[part] = (ring[part] + term).astype(kind)
    assert same(fold(each, "sum", order="ring"), ring)

    level = each
    while len(level) > 1:
        pairs = [(a + b).astype(kind) for a, b in zip(level[::2], level[1::2], strict=False)]
        level = pairs + level[len(pairs) * 2 :]
    assert same(fold(each, "sum", order="tree"), level[0])


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("kind", KINDS)
def test_parts_are_parts_of_the_whole(kind, order):
    each = terms(kind, 5)
    whole = fold(each, "sum", order=order)
    cuts = [0, 5, 6, 20, 23]
    parts = [
        fold([term[a:b] for term in each], "sum", order=order, start=a, total=23) for a, b in itertools.pairwise(cuts)
    ]
    assert same(np.concatenate(parts), whole)


def rough(kind, count, shape, plain=False):
    """Terms with zeros of both signs, infinities and several NaNs among them."""
    draws = np.random.default_rng([count, *shape])
    if np.dtype(kind).kind == "i":
        return draws.integers(np.iinfo(kind).min, np.iinfo(kind).max, (count, *shape), kind, endpoint=True)
    block = (draws.standard_normal((count, *shape)) * 50).astype(kind)
    if not plain:
        values = np.array([0, -0.0, np.inf, -np.inf, np.nan, 60000], kind)
        values = np.append(values, -values[4:5])
        where = draws.random(block.shape) < 0.2
        block[where] = values[draws.integers(0, len(values), int(where.sum()))]
    return block


@pytest.mark.parametrize("plain", [True, False])
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("kind", [*KINDS, np.int16, np.int32, np.complex64])
def test_blocks_give_the_bytes_of_the_terms(kind, order, plain):
    for count, shape in ((1, (3,)), (2, ()), (7, (1,)), (9, (2, 3)), (6, (0,)), (5, (2100,))):
        block = rough(kind, count, shape, plain)
        before = block.copy()
        for reduce in ("sum",) if kind is np.complex64 else REDUCTIONS:
            for mode in OverflowMode:
                wanted = fold([block[at, ...] for at in range(count)], reduce, order=order, key=(4, 2), mode=mode)
                for cuts in ([], [1], [2, 3, 5]):
                    total = Accumulator(reduce, order=order, mode=mode)
                    for part in np.split(block, [cut for cut in cuts if cut < count]):
                        total.add(part)
                    found = total.total((4, 2))
                    assert found.shape == wanted.shape
                    assert found.dtype == wanted.dtype
                    assert found.tobytes() == wanted.tobytes(), (count, shape, reduce, mode, cuts)
        assert block.tobytes() == before.tobytes()


@pytest.mark.parametrize("order", ["rank", "tree"])
@pytest.mark.parametrize("kind", [np.float16, np.float32, np.int8, np.float64])
def test_blocks_may_have_any_memory_layout(kind, order):
    block = rough(kind, 8, (4, 40), plain=True)
    flat = block.reshape(8, -1)[:, ::-1]
    for given in (np.asfortranarray(block), block[..., ::-1], flat, np.broadcast_to(block[3], block.shape), block[::2]):
        total = Accumulator("sum", order=order)
        total.add(given)
        assert same(total.total(), fold([np.array(term) for term in given], "sum", order=order))


def test_one_rounding_is_nearer_than_many():
    each = [np.array([value], np.float16) for value in [2048] + [1] * 7]
    assert [float(fold(each, "sum", order=order)[0]) for order in ("rank", "fp32acc")] == [2048, 2056]


def test_a_permutation_belongs_to_its_call():
    each = terms(np.float16, 7, 200)
    found = [fold(each, "sum", order=f"random:{seed}", key=(1, call)) for seed in (0, 1) for call in (0, 1)]
    assert len({part.tobytes() for part in found}) == 4
    assert same(found[0], fold(each, "sum", order="random:0", key=(1, 0)))


def test_too_large_sums():
    each = [np.array([60000, 1], np.float16)] * 2 + [np.array([-60000, 1], np.float16)]
    assert fold(each, "sum", mode=OverflowMode.INFNAN).tolist() == [np.inf, 3]
    assert fold(each, "sum", mode=OverflowMode.SATURATION).tolist() == [5504, 3]


def test_terms_are_not_modified():
    each = terms(np.float32, 4)
    before = [term.copy() for term in each]
    for order in ORDERS:
        fold(each, "prod", order=order)
    assert all(same(a, b) for a, b in zip(each, before, strict=True))


@pytest.mark.parametrize("saturates", [True, False])
def test_a_collective_is_folded_by_its_terms_its_group_and_its_number(saturates):
    each = terms(np.float16, 7, 200)
    each[0][:3] = each[1][:3] = 60_000  # their sum is too large
    mode = OverflowMode.SATURATION if saturates else OverflowMode.INFNAN
    found = {}
    for group, index in (("g", 4), ("g", 5), ("h", 4)):
        wanted = fold(each, "sum", order="random:3", key=(crc32(group.encode()), index), mode=mode)
        got = folder(Terms(order="random:3", saturates=saturates), group, index)(each, "sum")
        assert same(got, wanted)
        found[got.tobytes()] = got
    assert len(found) == 3
    assert all(np.isfinite(got[:3]).all() for got in found.values()) is saturates


@pytest.mark.parametrize("order", ["rank", "ring", "tree", "fp32acc", "random:0", "random:" + "9" * 18])
def test_known_orders(order):
    assert check_order(order, "--reduce-order") == order


@pytest.mark.parametrize(
    "order", ["", "random", "random:", "random:-1", "random:x", "ranks", "random:" + "9" * 19, "rank:1"]
)
def test_unknown_orders(order):
    with pytest.raises(BadInputError, match="random:SEED"):
        check_order(order, "--reduce-order")


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("kind", [np.float16, np.float32])
def test_a_total_has_memory_of_its_own(kind, order, count):
    """Later changes of a member's tensor do not change the result."""
    block = rough(kind, count, (3,), plain=True)
    total = Accumulator("sum", order=order)
    total.add(block)
    found = total.total()
    before = found.copy()
    assert not np.shares_memory(found, block)
    block[...] = 0
    assert same(found, before)
