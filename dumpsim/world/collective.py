"""Collectives: the arguments that members must agree on, and the results of each member. [spec parallel 3.1, 3.2]"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from dumpsim.core.communicator import Call
from dumpsim.core.dtype import dtype
from dumpsim.core.errors import BadInputError, nearest
from dumpsim.world.reduction import REDUCTIONS

__all__ = ["COLLECTIVES", "Collective", "Fold", "check_call", "collective", "results"]

Array = npt.NDArray[Any]
Tensors = Sequence[Array]
Fold = Callable[[Sequence[Array], str], Array]

_INTEGERS = ("int8", "int16", "int32", "int64")
_FLOATS = ("float16", "float32", "bfloat16")
_REDUCED = frozenset({*_INTEGERS, *_FLOATS, "complex64"})
_MOVED = _REDUCED | {"uint8", "uint16", "uint32", "uint64", "float64", "bool"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Collective:
    """A collective.

    Attributes
    ----------
    name : str
        MindSpore's type.
    shares : callable
        ``shares(calls, tensors, fold) -> one sequence of arrays for each member``; None for Send and Receive.
    agree : tuple of str
        Fields of `Call` that must be equal for all members.
    same_tensors : {"all", "types", "root"}
        What must be equal in the members' tensors: number types and shapes, or number types only. ``root``: only the
        root brings a tensor, of which the others expect a part.
    reduces, rooted : bool
        Whether it has a reduction, a root.
    """

    name: str
    shares: "Callable[[Sequence[Call], Sequence[Tensors], Fold], list[Tensors]] | None"
    agree: tuple[str, ...] = ()
    same_tensors: str = "all"
    reduces: bool = False
    rooted: bool = False


def _all_reduce(calls: Sequence[Call], tensors: Sequence[Tensors], fold: Fold) -> list[Tensors]:
    total = fold([mine for (mine,) in tensors], calls[0].reduce)
    return [[total]] * len(tensors)


def _all_gather(calls: Sequence[Call], tensors: Sequence[Tensors], fold: Fold) -> list[Tensors]:
    return [[np.concatenate([mine for (mine,) in tensors])]] * len(tensors)


def _all_gather_v(calls: Sequence[Call], tensors: Sequence[Tensors], fold: Fold) -> list[Tensors]:
    return [[np.concatenate([mine.reshape(-1) for (mine,) in tensors])]] * len(tensors)


def _reduce_scatter(calls: Sequence[Call], tensors: Sequence[Tensors], fold: Fold) -> list[Tensors]:
    total = fold([mine for (mine,) in tensors], calls[0].reduce)
    return [[part] for part in np.split(total, len(tensors))]


def _reduce_scatter_v(calls: Sequence[Call], tensors: Sequence[Tensors], fold: Fold) -> list[Tensors]:
    total = fold([mine.reshape(-1) for (mine,) in tensors], calls[0].reduce)
    return [[part] for part in np.split(total, np.cumsum(calls[0].sends)[:-1])]


def _broadcast(calls: Sequence[Call], tensors: Sequence[Tensors], fold: Fold) -> list[Tensors]:
    return [tensors[calls[0].root]] * len(tensors)


def _reduce(calls: Sequence[Call], tensors: Sequence[Tensors], fold: Fold) -> list[Tensors]:
    total = fold([mine for (mine,) in tensors], calls[0].reduce)
    return [[total] if at == calls[0].root else [] for at in range(len(tensors))]


def _all_to_all(calls: Sequence[Call], tensors: Sequence[Tensors], fold: Fold) -> list[Tensors]:
    count, split, joined = calls[0].axes
    pieces = [np.split(mine, count, axis=split) for (mine,) in tensors]
    return [[np.concatenate([theirs[at] for theirs in pieces], axis=joined)] for at in range(len(tensors))]


def _all_to_all_v(calls: Sequence[Call], tensors: Sequence[Tensors], fold: Fold) -> list[Tensors]:
    pieces = [
        np.split(mine.reshape(-1), np.cumsum(call.sends)[:-1]) for call, (mine,) in zip(calls, tensors, strict=True)
    ]
    return [[np.concatenate([theirs[at] for theirs in pieces])] for at in range(len(tensors))]


def _scatter(calls: Sequence[Call], tensors: Sequence[Tensors], fold: Fold) -> list[Tensors]:
    (whole,) = tensors[calls[0].root]
    return [[part] for part in np.split(whole, len(tensors))]


def _gather(calls: Sequence[Call], tensors: Sequence[Tensors], fold: Fold) -> list[Tensors]:
    joined = np.concatenate([mine for (mine,) in tensors])
    return [[joined] if at == calls[0].root else [] for at in range(len(tensors))]


def _nothing(calls: Sequence[Call], tensors: Sequence[Tensors], fold: Fold) -> list[Tensors]:
    return [[]] * len(tensors)


_TABLE = (
    Collective(name="AllReduce", shares=_all_reduce, agree=("reduce",), reduces=True),
    Collective(name="AllGather", shares=_all_gather),
    Collective(name="AllGatherV", shares=_all_gather_v, agree=("receives",), same_tensors="types"),
    Collective(name="ReduceScatter", shares=_reduce_scatter, agree=("reduce",), reduces=True),
    Collective(name="ReduceScatterV", shares=_reduce_scatter_v, agree=("reduce", "sends"), reduces=True),
    Collective(name="Broadcast", shares=_broadcast, agree=("root",), rooted=True),
    Collective(name="Reduce", shares=_reduce, agree=("reduce", "root"), reduces=True, rooted=True),
    Collective(name="AlltoAll", shares=_all_to_all, agree=("axes",)),
    Collective(name="AlltoAllV", shares=_all_to_all_v, same_tensors="types"),
    Collective(name="AlltoAllVC", shares=_all_to_all_v, same_tensors="types"),
    Collective(name="NeighborExchange", shares=_all_to_all_v, same_tensors="types"),
    Collective(name="NeighborExchangeV2", shares=_all_to_all_v, same_tensors="types"),
    Collective(name="NeighborExchangeV2Grad", shares=_all_to_all_v, same_tensors="types"),
    Collective(name="CollectiveScatter", shares=_scatter, agree=("root",), same_tensors="root", rooted=True),
    Collective(name="CollectiveGather", shares=_gather, agree=("root",), rooted=True),
    Collective(name="Barrier", shares=_nothing),
    Collective(name="Send", shares=None),
    Collective(name="Receive", shares=None),
)
COLLECTIVES: Mapping[str, Collective] = MappingProxyType({each.name: each for each in _TABLE})


def collective(op: str) -> Collective:
    """Return the collective of a type.

    Examples
    --------
    >>> collective("AllGather").same_tensors
    'all'
    >>> collective("AllGathers")
    Traceback (most recent call last):
        ...
    dumpsim.core.errors.BadInputError: AllGathers: unknown collective (did you mean 'AllGather'?)
    """
    found = COLLECTIVES.get(op)
    if found is None:
        raise BadInputError("unknown collective", where=op, nearest=nearest(op, COLLECTIVES))
    return found


def check_call(call: Call, size: int) -> Collective:
    """Return the collective of a call that a group of `size` members can carry out.

    Raises
    ------
    BadInputError
        For an unknown operator or reduction, a number type that the operator does not take, and a member that is not
        in the group.

    Examples
    --------
    >>> check_call(Call(op="Broadcast", tensors=(("float32", (2,)),), root=4), 4)
    Traceback (most recent call last):
        ...
    dumpsim.core.errors.BadInputError: Broadcast: member 4 is not in the group; allowed: 0 to 3
    """
    found = collective(call.op)
    where = call.name or call.op
    legal = _REDUCED if found.reduces else _MOVED
    for kind, _ in (*call.tensors, *call.expected):
        if kind not in legal:
            raise BadInputError(f"unsupported number type {kind}", where=where, allowed=sorted(legal))
        if found.reduces and kind == "complex64" and call.reduce != "sum":
            raise BadInputError(f"unsupported reduction {call.reduce!r} of complex64", where=where, allowed=["sum"])
    if found.reduces and call.reduce not in REDUCTIONS:
        raise BadInputError(
            f"unknown reduction {call.reduce!r}",
            where=where,
            allowed=REDUCTIONS,
            nearest=nearest(call.reduce, REDUCTIONS),
        )
    if (found.rooted or found.shares is None) and not 0 <= call.root < size:
        what = f"member {call.root} is not in the group"
        raise BadInputError(what, where=where, allowed=[f"0 to {size - 1}"])
    if call.sends or call.receives:
        _check_counts(call, size, where)
    if call.op in ("ReduceScatter", "CollectiveScatter") and call.tensors:
        shape = call.tensors[0][1]
        if not shape or shape[0] % size:
            raise BadInputError(f"{size} members cannot share the first axis of shape {shape}", where=where)
    return found


def _check_counts(call: Call, size: int, where: str) -> None:
    elements = prod(call.tensors[0][1])
    for name, counts in (("sends", call.sends), ("receives", call.receives)):
        if counts and (len(counts) != size or min(counts) < 0):
            raise BadInputError(f"invalid counts {counts} for {size} members", where=f"{where}: {name}")
    if call.sends and sum(call.sends) != elements:
        raise BadInputError(f"{sum(call.sends)} of {elements} elements are sent", where=where)


def results(calls: Sequence[Call], tensors: Sequence[Tensors], fold: Fold) -> list[Tensors]:
    """Return what each member gets, in the order of the group.

    Parameters
    ----------
    calls : sequence of Call
        One for each member, of the same operator.
    tensors : sequence of sequence of array
        Of each member. They need not agree: each member then reads the others' bytes as its own type and shape, padded
        with zeros, as on a device that does not check.
    fold : callable
        ``fold(terms, reduce)``, see `dumpsim.world.reduction.fold`.

    Returns
    -------
    list of sequence of ndarray
        Read-only; a result of all members is one array.

    Examples
    --------
    >>> calls = [Call(op="AllReduce", tensors=(("int32", (2,)),), reduce="max")] * 2
    >>> tensors = [[np.array([1, 9], np.int32)], [np.array([5, 6], np.int32)]]
    >>> results(calls, tensors, lambda terms, reduce: np.max(terms, axis=0))[1]
    [array([5, 9], dtype=int32)]
    """
    found = collective(calls[0].op)
    shares = found.shares
    assert shares is not None, found.name
    kinds = {kind for call in calls for kind, _ in call.tensors}
    agreed = all(call.tensors == calls[0].tensors for call in calls)
    if agreed or found.same_tensors == "root" or (found.same_tensors == "types" and len(kinds) == 1):
        given = shares(calls, tensors, fold)
    else:
        given = [
            shares([call] * len(calls), [list(_read_as(call, theirs)) for theirs in tensors], fold)[at]
            for at, call in enumerate(calls)
        ]
    owners = {id(_owner(array)) for mine in tensors for array in mine}
    unique: dict[int, Array] = {}  # a result of several members stays one array
    for mine in given:
        for array in mine:
            if id(array) not in unique:
                unique[id(array)] = _read_only(array, copied=id(_owner(array)) in owners)
    return [[unique[id(array)] for array in mine] for mine in given]


def _owner(array: Array) -> Any:
    """Return the object that owns the bytes of an array."""
    return array if array.base is None else array.base


def _read_only(array: Array, *, copied: bool) -> Array:
    """Return a read-only array whose bytes nobody can write: a copy if a member may overwrite them."""
    owner = _owner(array)
    array = array.copy() if copied else np.asarray(array).view()  # numpy makes scalars of arrays without axes
    array.flags.writeable = False
    if not copied and isinstance(owner, np.ndarray):
        owner.flags.writeable = False
    return array


def _read_as(call: Call, tensors: Tensors) -> Iterator[Array]:
    """Another member's bytes as this member's types and shapes."""
    raw = b"".join(np.ascontiguousarray(tensor).tobytes() for tensor in tensors)
    at = 0
    for kind, shape in call.tensors:
        numbers = dtype(kind).numpy
        size = prod(shape) * numbers.itemsize
        yield np.frombuffer(raw[at : at + size].ljust(size, b"\0"), numbers).reshape(shape)
        at += size
