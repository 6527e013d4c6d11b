"""Durations of collectives on the virtual clock. [spec parallel 7]"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, log2, prod

from dumpsim.core.communicator import Call
from dumpsim.core.dtype import dtype

__all__ = ["HCCS", "ROCE", "Link", "collective_ns", "cost", "placement"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A link between cards. The figures are assumptions. [spec parallel 7.4]

    Attributes
    ----------
    alpha : float
        Seconds of one step.
    beta : float
        Seconds for one byte.
    gamma : float
        Seconds to reduce one byte.
    """

    alpha: float
    beta: float
    gamma: float = 2e-12


HCCS = Link(alpha=10e-6, beta=1 / 150e9)
ROCE = Link(alpha=20e-6, beta=1 / 22e9)
_SERVER = 8  # cards [spec parallel 7.3]


def cost(op: str, algorithm: str, link: Link, nbytes: float, members: int) -> float:
    """Return the seconds of one collective over equal links.

    Parameters
    ----------
    op : str
        MindSpore's type.
    algorithm : {"mesh", "ring", "halving-doubling", "nhr"}
    link : Link
    nbytes : float
        The full vector of one rank: the input of AllReduce and ReduceScatter, the output of AllGather.
    members : int

    Examples
    --------
    >>> link = Link(alpha=10e-6, beta=1 / 28e9)
    >>> [round(cost("AllReduce", name, link, 64 << 20, 8) * 1e6, 1) for name in ("mesh", "ring")]
    [736.6, 4451.7]
    """
    p, n = members, nbytes
    a, b, g = link.alpha, link.beta, link.gamma
    if p == 1:
        return 0.0
    match op:
        case "Send" | "Receive" | "BatchISendIRecv":
            return a + n * b
        case "Barrier":
            return ceil(log2(p)) * a
        case "CollectiveScatter" | "CollectiveGather":
            return a + b * n
        case "AlltoAll" | "AlltoAllV" | "AlltoAllVC" | "NeighborExchange" | "NeighborExchangeV2":
            return (p - 1) * a + (p - 1) / p * n * b
        case "AllReduce":
            return _scatter(algorithm, a, b, g, n, p) + _gather(algorithm, a, b, n, p)
        case "ReduceScatter" | "ReduceScatterV":
            return _scatter(algorithm, a, b, g, n, p)
        case "AllGather" | "AllGatherV":
            return _gather(algorithm, a, b, n, p)
        case "Broadcast" if algorithm == "mesh":
            return 2 * a + 2 * n / p * b
        case "Broadcast" if algorithm == "ring":
            return (p - 1) * (a + n * b)
        case "Broadcast":
            return ceil(log2(p)) * (a + n * b)
        case _:  # Reduce: a ReduceScatter, then a gather at the root
            return _scatter(algorithm, a, b, g, n, p) + a + b * n


def _scatter(algorithm: str, a: float, b: float, g: float, n: float, p: int) -> float:
    """Seconds of a ReduceScatter."""
    share = (p - 1) / p
    if algorithm == "mesh":
        return a + n / p * b + share * n * g
    if algorithm == "ring":
        return (p - 1) * a + share * n * (b + g)
    if algorithm == "nhr":
        return ceil(log2(p)) * a + share * n * (b + g)
    q = 1 << (p.bit_length() - 1)
    extra = a + n * b + n * g if q != p else 0.0
    return log2(q) * a + (q - 1) / q * n * (b + g) + extra


def _gather(algorithm: str, a: float, b: float, n: float, p: int) -> float:
    """Seconds of an AllGather."""
    share = (p - 1) / p
    if algorithm == "mesh":
        return a + n / p * b
    if algorithm == "ring":
        return (p - 1) * a + share * n * b
    if algorithm == "nhr":
        return ceil(log2(p)) * a + share * n * b
    q = 1 << (p.bit_length() - 1)
    extra = a + n * b if q != p else 0.0
    return log2(q) * a + (q - 1) / q * n * b + extra


def placement(members: Sequence[int]) -> tuple[int, int]:
    """Return how many servers a group of ranks occupies, and the most cards in one of them.

    Examples
    --------
    >>> placement(range(12)), placement([0, 8, 16])
    ((2, 8), (3, 1))
    """
    inside: dict[int, int] = {}
    for rank in members:
        inside[rank // _SERVER] = inside.get(rank // _SERVER, 0) + 1
    return len(inside), max(inside.values())


def collective_ns(call: Call, members: int, place: tuple[int, int]) -> int:
    """Return the nanoseconds of a collective of a group whose ranks fill servers of eight cards in their order.

    Inside a server it runs over a mesh; between servers by halving and doubling, a ring or NHR, on each card's share
    of the message. [spec parallel 7.3]

    Parameters
    ----------
    call : Call
        Of the calling member; members of one collective that send different amounts have different durations.
    members : int
        Size of the group.
    place : tuple of int
        `placement` of the group.

    Examples
    --------
    >>> call = Call(op="AllReduce", tensors=(("float32", (1 << 20,)),), reduce="sum")
    >>> [collective_ns(call, p, placement(range(p))) for p in (1, 2, 8, 64)]
    [0, 52156, 34331, 196953]
    """
    nbytes = float(sum(dtype(kind).nbytes(prod(shape)) for kind, shape in call.tensors or call.expected))
    if call.op in ("AllGather", "AllGatherV", "CollectiveGather"):
        nbytes *= members
    servers, cards = place
    power = servers.bit_count() == 1
    algorithm = "halving-doubling" if power else "ring" if servers <= 32 else "nhr"
    seconds = cost(call.op, "mesh", HCCS, nbytes, cards) + cost(call.op, algorithm, ROCE, nbytes / cards, servers)
    return round(seconds * 1e9)
