"""Collective operators: their calls to the group, the tensors they send, and their outputs. [spec parallel 3.1]"""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate, pairwise
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from dumpsim.core.communicator import Call, Group, Meeting
from dumpsim.core.dtype import dtype
from dumpsim.core.gate import Failure, Waiter
from dumpsim.device.injector import Injector
from dumpsim.graph.graph import Node
from dumpsim.ops.halo import DIRECTIONS, Region, borders, halo
from dumpsim.ops.opdef import OpDef
from dumpsim.runtime.slot import Array
from dumpsim.world import current

__all__ = ["Attendance", "Kind", "Operator", "attend", "caller", "is_shared", "place_of"]

Attrs = Mapping[str, Any]
Kind = tuple[str, tuple[int, ...]]
Offer = Callable[[], Sequence[Array]]
Finish = Callable[[Sequence[Sequence[Array]]], list[Array]]

_NEIGHBORS = ("NeighborExchange", "NeighborExchangeV2", "NeighborExchangeV2Grad")
_PACKAGE = str(Path(__file__).parents[1])


def is_shared(definition: OpDef, ranks: int) -> bool:
    """Whether an operator runs in several ranks together, in a job of that size."""
    return ranks > 1 and definition.engine == "hccl"


@dataclass(frozen=True, slots=True, kw_only=True)
class Operator:
    """An operator of several ranks, as one of them runs it.

    Attributes
    ----------
    type : str
        MindSpore's type.
    attrs : mapping
        Attributes with their defaults; ranks in them are indexes in the group.
    tensors, outputs : tuple of (str, tuple of int)
        Number types and shapes of its operands and outputs, tuples flattened.
    host : tuple
        Operands after the first one: counts of elements.
    name, place : str
        See `Call`.
    """

    type: str
    attrs: Attrs
    tensors: tuple[Kind, ...]
    outputs: tuple[Kind, ...]
    host: tuple[Any, ...] = ()
    name: str = ""
    place: str = ""

    def calls(self, group: Group) -> list[Call]:
        """Return its calls to the group: one collective, or several messages."""
        fields: dict[str, Any] = {"op": self.type, "tensors": self.tensors, "name": self.name, "place": self.place}
        if self.type == "BatchISendIRecv":
            return [Call(**{**fields, **message}) for message in self._messages()]
        return [Call(**{**fields, **self._fields(group)})]

    def _messages(self) -> list[dict[str, Any]]:
        """Return messages to and from several members: the sends first, so that no receive delays them."""
        directions = self.attrs["op_types"], self.attrs["remote_ranks"], self.outputs
        tensors = iter(self.tensors)
        sends: list[dict[str, Any]] = []
        receives: list[dict[str, Any]] = []
        for op, rank, kind in zip(*directions, strict=True):
            if op == "isend":
                sends.append({"op": "Send", "root": rank, "tensors": (next(tensors),)})
            else:
                receives.append({"op": "Receive", "root": rank, "tensors": (), "expected": (kind,)})
        return sends + receives

    def _fields(self, group: Group) -> dict[str, Any]:
        """Return the fields of the call that follow from the operator's attributes and host operands."""
        attrs = self.attrs
        match self.type:
            case "AllReduce" | "ReduceScatter":
                return self._reduced()
            case "Reduce":
                return {"root": attrs["dest_rank"], **self._reduced()}
            case "ReduceScatterV":
                return {"sends": _counts(self.host[0]), **self._reduced()}
            case "Broadcast":
                return {"root": attrs["root_rank"]}
            case "CollectiveScatter":
                mine = {} if group.rank == attrs["src_rank"] else {"tensors": (), "expected": self.outputs}
                return {"root": attrs["src_rank"], **mine}
            case "CollectiveGather":
                return {"root": attrs["dest_rank"]}
            case "AllGatherV":
                return {"receives": _counts(self.host[0])}
            case "AlltoAll":
                return {"axes": tuple(attrs[name] for name in ("split_count", "split_dim", "concat_dim"))}
            case "AlltoAllV":
                sends, receives = (_counts(counts, attrs["block_size"]) for counts in self.host)
                return {"sends": sends, "receives": receives}
            case "AlltoAllVC":
                size = len(group.members)
                matrix = np.reshape(self.host[0], (size, size)) * attrs["block_size"]
                matrix = matrix.T if attrs["transpose"] else matrix
                return {"sends": _counts(matrix[group.rank]), "receives": _counts(matrix[:, group.rank])}
            case "Send":
                return {"root": attrs["dest_rank"], "tag": attrs["sr_tag"]}
            case "Receive":
                return {"root": attrs["src_rank"], "tag": attrs["sr_tag"], "tensors": (), "expected": self.outputs}
            case op if op in _NEIGHBORS:
                (targets, sent), (sources, received) = self._pieces()
                sends = _totals(targets, sent, len(group.members))
                kind = self.tensors[0][0] if self.tensors else attrs["recv_type"].name
                receives = _totals(sources, received, len(group.members))
                return {"tensors": ((kind, (sum(sends),)),), "sends": sends, "receives": receives}
            case _:
                return {}

    def _reduced(self) -> dict[str, Any]:
        """Return the fields of a reduction; bool values are reduced as int8."""
        tensors = tuple(("int8" if kind == "bool" else kind, shape) for kind, shape in self.tensors)
        return {"reduce": self.attrs["op"], "tensors": tensors}

    def _image(self) -> "_Image":
        (_, shape), (_, enlarged) = self.tensors[0], self.outputs[0]
        if self.type == "NeighborExchangeV2Grad":
            return _Image(shape=enlarged, attrs=self.attrs, backward=True)
        return _Image(shape=shape, attrs=self.attrs, backward=False)

    def _pieces(self) -> tuple[tuple[list[int], list[tuple[int, ...]]], tuple[list[int], list[tuple[int, ...]]]]:
        """Return members and shapes of the pieces sent and of those received, in the order of the attributes."""
        if self.type == "NeighborExchange":
            shapes = [shape for _, shape in self.tensors], [shape for _, shape in self.outputs]
            return (list(self.attrs["send_rank_ids"]), shapes[0]), (list(self.attrs["recv_rank_ids"]), shapes[1])
        return self._image().pieces()

    def brought(self, call: Call, number: int, arrays: Sequence[Any]) -> list[Array]:
        """Return the tensors that it sends in one of its calls; C-contiguous."""
        if not call.tensors:
            return []
        if self.type == "BatchISendIRecv":
            return [np.ascontiguousarray(arrays[number])]
        if self.type in _NEIGHBORS:
            (targets, _), _ = self._pieces()
            pieces = list(arrays) if self.type == "NeighborExchange" else self._image().cut(arrays[0])
            nothing = np.empty(0, dtype(call.tensors[0][0]).numpy)  # gives the type where no piece is sent
            return [np.concatenate([nothing, *(np.ravel(pieces[at]) for at in _by_member(targets))])]
        held = [np.ascontiguousarray(array).reshape(np.shape(array)) for array in arrays]
        if "op" in self.attrs:
            return [array.view(np.int8) if array.dtype == np.bool_ else array for array in held]
        return held

    def made(self, results: Sequence[Sequence[Array]], arrays: Sequence[Any]) -> list[Array]:
        """Return its outputs, from the results of its calls and its tensors; zeros where nothing was received."""
        if self.type == "Send":
            return [np.array(array) for array in arrays[: len(self.outputs)]]
        if self.type in _NEIGHBORS:
            _, (sources, shapes) = self._pieces()
            order = _by_member(sources)
            ends = list(accumulate((prod(shapes[at]) for at in order), initial=0))
            parts = {at: results[0][0][low:high] for at, (low, high) in zip(order, pairwise(ends), strict=True)}
            pieces = [parts[at].reshape(shape) for at, shape in enumerate(shapes)]
            return pieces if self.type == "NeighborExchange" else [self._image().joined(arrays[0], pieces)]
        if self.type == "BatchISendIRecv":
            came = (got for got in results if got)
            sent = [op == "isend" for op in self.attrs["op_types"]]
            return [_shaped(None if own else next(came)[0], kind) for own, kind in zip(sent, self.outputs, strict=True)]
        given = results[0]
        return [_shaped(given[at] if at < len(given) else None, kind) for at, kind in enumerate(self.outputs)]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Image:
    """An image whose borders are sent to neighbours, and whose halo, or gradient of the borders, comes from them."""

    shape: tuple[int, ...]
    attrs: Attrs
    backward: bool

    def _ends(self) -> tuple[list[int], list[int]]:
        """Return the directions to which pieces are sent, and from which they come; no two with the same member."""
        targets, sources = self.attrs["send_rank_ids"], self.attrs["recv_rank_ids"]
        return [d for d in range(DIRECTIONS) if targets[d] >= 0], [d for d in range(DIRECTIONS) if sources[d] >= 0]

    def _regions(self) -> tuple[tuple[Region, ...], tuple[Region, ...]]:
        """Return the regions that are sent, and those that are received, by direction."""
        rows, columns = self.shape[2:]
        sent, received = self.attrs["send_lens"], self.attrs["recv_lens"]
        if self.backward:
            return halo(rows, columns, sent), borders(rows, columns, received)
        return borders(rows, columns, sent), halo(rows, columns, received)

    def pieces(self) -> tuple[tuple[list[int], list[tuple[int, ...]]], tuple[list[int], list[tuple[int, ...]]]]:
        """Return members and shapes of the pieces that are sent, and of those that are received."""
        (out, into), (regions, goals) = self._ends(), self._regions()
        sent = [self.attrs["send_rank_ids"][d] for d in out], [self._extents(regions[d]) for d in out]
        return sent, ([self.attrs["recv_rank_ids"][d] for d in into], [self._extents(goals[d]) for d in into])

    def _extents(self, region: Region) -> tuple[int, ...]:
        rows, columns = region
        return (*self.shape[:2], rows.stop - rows.start, columns.stop - columns.start)

    def cut(self, array: Array) -> list[Array]:
        """Return the pieces for the neighbours."""
        (out, _), (regions, _) = self._ends(), self._regions()
        return [array[:, :, regions[d][0], regions[d][1]] for d in out]

    def joined(self, array: Array, given: Sequence[Array]) -> Array:
        """Return the enlarged image, or the gradient of the image before it was enlarged."""
        (_, into), (_, goals) = self._ends(), self._regions()
        top, bottom, left, right = self.attrs["send_lens"] if self.backward else self.attrs["recv_lens"]
        rows, columns = self.shape[2:]
        middle = (slice(None), slice(None), slice(top, top + rows), slice(left, left + columns))
        if self.backward:
            image = np.array(array[middle])
        else:
            image = np.zeros((*self.shape[:2], rows + top + bottom, columns + left + right), array.dtype)
            image[middle] = array
        for direction, piece in zip(into, given, strict=True):
            goal = image[:, :, goals[direction][0], goals[direction][1]]
            goal[...] = goal + piece if self.backward else piece
        return image


def _by_member(ranks: Sequence[int]) -> list[int]:
    """Return the order of the pieces in the messages: by member."""
    return sorted(range(len(ranks)), key=lambda at: ranks[at])


def _totals(ranks: Sequence[int], shapes: Sequence[tuple[int, ...]], members: int) -> tuple[int, ...]:
    """Return the number of elements by member; an index outside of the group makes the result longer than the group."""
    totals = [0] * max([members, *(rank + 1 for rank in ranks)])
    for rank, shape in zip(ranks, shapes, strict=True):
        totals[rank] += prod(shape)
    return tuple(totals)


def _counts(numbers: Any, factor: int = 1) -> tuple[int, ...]:
    return tuple(int(number) * factor for number in numbers)


def _shaped(array: Array | None, kind: Kind) -> Array:
    """Return a received array as an output; zeros if nothing was received."""
    name, shape = kind
    if array is None or array.size != prod(shape):
        return np.zeros(shape, dtype(name).numpy)
    return (array != 0 if name == "bool" and array.dtype != np.bool_ else array).reshape(shape)


class Attendance:
    """The gate of a collective's task: its meetings, usually one, and the operator's outputs.

    Parameters
    ----------
    meetings : sequence of Meeting
    finish : callable
        Computes the operator's outputs from the results of the meetings.
    cost_ns : int
        Duration from the arrival of the last member.
    """

    __slots__ = ("_finish", "_meetings", "cost_ns")

    def __init__(self, meetings: Sequence[Meeting], finish: Finish, cost_ns: int) -> None:
        self._meetings = meetings
        self._finish = finish
        self.cost_ns = cost_ns

    def outputs(self) -> list[Array]:
        """Return the operator's outputs, tuples flattened; read-only arrays, which other ranks may share."""
        return self._finish([meeting.results() for meeting in self._meetings])

    @property
    def failure(self) -> Failure | None:
        """Why the collective cannot be carried out."""
        return next((failure for m in self._meetings if (failure := m.failure) is not None), None)

    def enter(self, waiter: Waiter, time_ns: int) -> None:
        """The task is the first of its stream."""
        for meeting in self._meetings:
            meeting.enter(waiter, time_ns)

    def open_ns(self) -> int | None:
        """Time at which the last meeting has opened, or that of a failure; None if a meeting is not open."""
        failure = self.failure
        if failure is not None:
            return failure.time_ns
        latest = 0
        for meeting in self._meetings:
            opened = meeting.open_ns()
            if opened is None:
                return None
            latest = max(latest, opened)
        return latest

    def leave(self, time_ns: int) -> None:
        """The task has run, until `time_ns`."""
        for meeting in self._meetings:
            meeting.leave(time_ns)

    def abandon(self, failure: Failure) -> None:
        """The task was dropped."""
        for meeting in self._meetings:
            meeting.abandon(failure)

    def waits_for(self) -> str:
        """Return what is missing."""
        return "; ".join(meeting.waits_for() for meeting in self._meetings if meeting.open_ns() is None)

    def give_up(self, report: str) -> Failure | None:
        """Return the failure of a deadlock, see `Gate.give_up`."""
        return next((failure for m in self._meetings if (failure := m.give_up(report)) is not None), None)


def attend(
    group: Group, operator: Operator, operands: Callable[[], Sequence[Any]], injector: Injector | None = None
) -> Attendance:
    """Join a group for an operator; all collectives go through this function.

    Parameters
    ----------
    group : Group
    operator : Operator
    operands : callable
        Returns the operator's tensors as arrays, tuples flattened. It is called when the task of this member or of
        another one runs.
    injector : Injector, optional
        The fault plan.

    Raises
    ------
    BadInputError
        For an invalid call, see `dumpsim.world.collective.check_call`.
    """
    if injector is not None and injector.has_collectives:
        from dumpsim.world.faulty import FaultyGroup  # most runs have no faults

        group = FaultyGroup(group, injector, current().communicator)
    calls = operator.calls(group)
    meetings = [
        group.join(call, partial(_brought, operator, call, number, operands)) for number, call in enumerate(calls)
    ]
    cost_ns = max((group.cost_ns(call) for call in calls), default=0)
    return Attendance(meetings, lambda results: operator.made(results, operands()), cost_ns)


def _brought(operator: Operator, call: Call, number: int, operands: Callable[[], Sequence[Any]]) -> Sequence[Array]:
    return operator.brought(call, number, operands())


def place_of(node: Node) -> str:
    """Return the innermost line of the script that created a node, as ``file:line``."""
    sources = node.text.sources if node.text is not None else ()
    found = next((source for source in reversed(sources) if not source.path.startswith(_PACKAGE)), None)
    return f"{found.path}:{found.line}" if found is not None else ""


def caller() -> str:
    """Return the line of the script that runs an operator: the innermost frame outside of this package."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"
