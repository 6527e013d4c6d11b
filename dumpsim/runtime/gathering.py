"""A collective of ranks in lockstep: takes their tensors group by group, and returns their results."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np

from dumpsim.core.communicator import Group, Terms
from dumpsim.core.errors import UnsupportedError
from dumpsim.runtime.collective import Operator, place_of
from dumpsim.runtime.plan import Call, HostValue, slots_of
from dumpsim.runtime.slot import Array, Slot
from dumpsim.runtime.stack import Stack, Value
from dumpsim.world.chosen import Record
from dumpsim.world.membership import WORLD_GROUPS
from dumpsim.world.stacked import StackedCall

__all__ = ["Gathering"]

# collectives in which all members make the same call, so that one graph serves all of them
_EQUAL = ("AllReduce", "AllGather", "ReduceScatter", "Broadcast", "AlltoAll", "Barrier")


class Gathering:
    """A collective of all ranks in lockstep.

    Parameters
    ----------
    call : Call
    ranks : int
    terms : Terms
        Those of all ranks.
    record : Record
        Records what the chosen ranks bring and get.

    Raises
    ------
    UnsupportedError
        For a collective whose graph differs between ranks, and for any group but that of all ranks.
    """

    def __init__(self, call: Call, ranks: int, terms: Terms, record: Record) -> None:
        op, name = call.definition.name, str(call.attrs.get("group", ""))
        if op not in _EQUAL or WORLD_GROUPS.get(name, name) not in WORLD_GROUPS:
            raise UnsupportedError(
                f"{op} in group {name!r}: its graph differs between ranks",
                where=call.node.full_name,
                allowed=[f"{', '.join(_EQUAL)} in the group of all ranks"],
            )
        self._group = WORLD_GROUPS.get(name, name)
        self._operator = _operator(call)
        (asked,) = self._operator.calls(cast(Group, _First(range(ranks))))
        self._call = StackedCall(asked, ranks, terms)
        self._ranks = ranks
        self._taken = 0
        self._record = record
        self._sent: dict[int, list[Array]] = {}

    def take(self, operands: Sequence[Any], count: int) -> None:
        """Take the tensors of the next ranks.

        Parameters
        ----------
        operands : sequence
            Operands of the kernel: a `Stack` of these ranks, or an array that is equal in all of them.
        count : int
            Number of the ranks.
        """
        brought = [self._brought(value, count) for value in _flat(operands) if isinstance(value, np.ndarray | Stack)]
        for rank in self._record.chosen:
            if 0 <= rank - self._taken < count:
                self._sent[rank] = [array[rank - self._taken, ...].copy() for array in brought]
        self._taken += count
        self._call.take(brought)

    def reads(self, count: int) -> bool:
        """Whether the tensors of the next ranks are read."""
        chosen = any(0 <= rank - self._taken < count for rank in self._record.chosen)
        return chosen or self._call.reads(self._taken, count)

    def skip(self, count: int) -> None:
        """Skip the next ranks, whose tensors are not read."""
        self._taken += count
        self._call.skip(count)

    def results(self) -> list[Value]:
        """Return the operator's outputs, after the tensors of all ranks were taken; equal outputs are one array."""
        call, group = self._call.call, self._group
        shares = self._call.results(group, self._record.count(group))
        self._record.add(group, call, self._sent, shares)
        if shares.equal:
            return list(self._operator.made([shares.arrays], ()))
        stacked = tuple((kind, (self._ranks, *shape)) for kind, shape in self._operator.outputs)
        return [Stack([array]) for array in replace(self._operator, outputs=stacked).made([shares.arrays], ())]

    def _brought(self, value: Value, count: int) -> Array:
        if isinstance(value, Stack):
            (array,) = self._operator.brought(self._call.call, 0, value.parts)
            return array
        (array,) = self._operator.brought(self._call.call, 0, [value])
        return np.broadcast_to(array, (count, *array.shape))


class _First:
    """The group of all ranks as its first member sees it."""

    rank = 0

    def __init__(self, members: range) -> None:
        self.members = members


def _operator(call: Call) -> Operator:
    tensors = [slot for argument in call.arguments for slot in slots_of(argument)]
    return Operator(
        type=call.definition.name,
        attrs=call.attrs,
        tensors=tuple(_kind(slot) for slot in tensors),
        outputs=tuple(_kind(slot) for slot in call.outputs),
        host=tuple(argument.value for argument in call.arguments[1:] if isinstance(argument, HostValue)),
        name=call.node.full_name,
        place=place_of(call.node),
    )


def _kind(slot: Slot) -> tuple[str, tuple[int, ...]]:
    return slot.device_dtype.name, slot.shape


def _flat(operands: Sequence[Any]) -> list[Any]:
    return [item for o in operands for item in (_flat(o) if isinstance(o, tuple) else [o])]
