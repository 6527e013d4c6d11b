"""Costs of collectives, compared with the sum over the steps of their algorithms."""

from math import ceil, log2

import pytest

from dumpsim.core.communicator import Call
from dumpsim.world.cost import HCCS, ROCE, Link, collective_ns, cost, placement

LINK = Link(alpha=3e-6, beta=5e-9, gamma=7e-10)
BYTES = 1000.0


def steps(algorithm, p, *, reduces):
    """Bytes of each step of a ReduceScatter, or of an AllGather backwards."""
    if algorithm == "ring":
        return [BYTES / p] * (p - 1)
    if algorithm == "halving-doubling":
        q = 2 ** int(log2(p))
        return [BYTES / 2**k for k in range(1, int(log2(q)) + 1)] + [BYTES] * (q != p)  # the others hand theirs over
    sizes, left = [], p - 1  # nhr: as few steps, of as many shares as there are left
    while left:
        take = (left + 1) // 2
        sizes.append(take * BYTES / p)
        left -= take
    return sizes


def spent(algorithm, p, *, reduces):
    if p == 1:
        return 0.0
    if algorithm == "mesh":  # all at once, over links of their own
        return LINK.alpha + BYTES / p * LINK.beta + reduces * (p - 1) * BYTES / p * LINK.gamma
    sizes = steps(algorithm, p, reduces=reduces)
    return sum(LINK.alpha + size * (LINK.beta + reduces * LINK.gamma) for size in sizes)


@pytest.mark.parametrize("algorithm", ["mesh", "ring", "halving-doubling", "nhr"])
@pytest.mark.parametrize("p", [1, 2, 3, 4, 6, 8, 16, 33])
def test_a_collective_costs_its_steps(algorithm, p):
    def found(op):
        return cost(op, algorithm, LINK, BYTES, p)

    scatter, gather = (spent(algorithm, p, reduces=reduces) for reduces in (True, False))
    for op in ("ReduceScatter", "ReduceScatterV"):
        assert found(op) == pytest.approx(scatter)
    for op in ("AllGather", "AllGatherV"):
        assert found(op) == pytest.approx(gather)
    assert found("AllReduce") == pytest.approx(scatter + gather)
    one = LINK.alpha + BYTES * LINK.beta if p > 1 else 0.0
    assert found("Reduce") == pytest.approx(scatter + one)
    for op in ("Send", "Receive", "CollectiveScatter", "CollectiveGather"):
        assert found(op) == pytest.approx(one)
    for op in ("AlltoAll", "AlltoAllV", "NeighborExchange"):
        assert found(op) == pytest.approx((p - 1) * (LINK.alpha + BYTES / p * LINK.beta))
    assert found("Barrier") == pytest.approx(ceil(log2(p)) * LINK.alpha)
    broadcast = {"mesh": 2 * spent("mesh", p, reduces=False), "ring": (p - 1) * one}
    assert found("Broadcast") == pytest.approx(broadcast.get(algorithm, ceil(log2(p)) * one))


def call(op, size):
    return Call(op=op, tensors=(("float16", (size,)),), reduce="sum")


@pytest.mark.parametrize(("servers", "algorithm"), [
    (2, "halving-doubling"), (3, "ring"), (31, "ring"), (32, "halving-doubling"), (33, "nhr"), (64, "halving-doubling"),
])  # fmt: skip
def test_traffic_between_servers_is_each_card_s_share(servers, algorithm):
    ranks = servers * 8
    place = placement(range(ranks))
    assert place == (servers, 8)
    for op, size in (("AllReduce", 1 << 20), ("AllGather", 1 << 14), ("Broadcast", 1 << 20)):
        nbytes = 2 * size * (ranks if op == "AllGather" else 1)
        wanted = cost(op, "mesh", HCCS, nbytes, 8) + cost(op, algorithm, ROCE, nbytes / 8, servers)
        assert collective_ns(call(op, size), ranks, place) == round(wanted * 1e9)


def test_the_cost_of_a_receive_follows_from_the_expected_tensor():
    receive = Call(op="Receive", root=0, expected=(("float32", (250,)),))
    assert collective_ns(receive, 2, placement([0, 1])) == round((HCCS.alpha + 1000 * HCCS.beta) * 1e9)
    assert collective_ns(call("AllReduce", 5), 1, placement([4])) == 0
    assert placement([7, 8, 9]) == (2, 2)


def test_links_are_those_of_the_assumptions():
    """[spec parallel 7.4]: 10 us and 150 GB/s in a server, 20 us and 22 GB/s between them; 0.5 TB/s to reduce."""
    assert (HCCS.alpha, 1 / HCCS.beta, 1 / HCCS.gamma) == pytest.approx((10e-6, 150e9, 0.5e12), rel=1e-12)
    assert (ROCE.alpha, 1 / ROCE.beta, 1 / ROCE.gamma) == pytest.approx((20e-6, 22e9, 0.5e12), rel=1e-12)
    assert Link(alpha=1.0, beta=2.0).gamma == 2e-12


@pytest.mark.parametrize(
    ("members", "place"),
    [([0], (1, 1)), (range(8), (1, 8)), (range(9), (2, 8)), (range(7, 9), (2, 1)), ([8, 9, 15, 16], (2, 3))],
)
def test_servers_have_eight_cards(members, place):
    assert placement(members) == place  # [spec parallel 7.3]
