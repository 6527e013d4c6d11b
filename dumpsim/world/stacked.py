"""A collective whose members all make the same call, with their tensors stacked along a leading axis."""

from collections.abc import Sequence
from dataclasses import dataclass
from zlib import crc32

import numpy as np

from dumpsim.core.communicator import Call, Terms
from dumpsim.core.errors import UnsupportedError
from dumpsim.device.chip import OverflowMode
from dumpsim.world.collective import Array, check_call, results
from dumpsim.world.reduction import Accumulator, folder

__all__ = ["Shares", "StackedCall"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shares:
    """The results of the members of a collective.

    Attributes
    ----------
    arrays : tuple of ndarray
        Read-only.
    equal : bool
        Whether all members get the same arrays; otherwise the leading axis of each array has one item for each member.
    """

    arrays: tuple[Array, ...]
    equal: bool

    def of(self, member: int) -> list[Array]:
        """Return the results of one member."""
        return list(self.arrays) if self.equal else [array[member, ...] for array in self.arrays]


class StackedCall:
    """One collective, computed for all members at once, with the same bytes as `dumpsim.world.collective.results`.

    Parameters
    ----------
    call : Call
        That of each member.
    size : int
        Number of members.
    terms : Terms

    Raises
    ------
    BadInputError
        For an invalid call, see `check_call`.

    Examples
    --------
    >>> call = StackedCall(Call(op="ReduceScatter", tensors=(("int32", (2,)),), reduce="sum"), 2, Terms())
    >>> call.take([np.array([[1, 2], [10, 20]], np.int32)])
    >>> call.results("hccl_world_group", 0).of(1)
    [array([22], dtype=int32)]
    """

    def __init__(self, call: Call, size: int, terms: Terms) -> None:
        check_call(call, size)
        self.call = call
        self._size = size
        self._terms = terms
        self._taken = 0
        self._blocks: list[Sequence[Array]] = []
        self._sum: Accumulator | None = None
        if call.op in ("AllReduce", "ReduceScatter"):
            mode = OverflowMode.SATURATION if terms.saturates else OverflowMode.INFNAN
            self._sum = Accumulator(call.reduce, order=terms.order, mode=mode)

    def take(self, tensors: Sequence[Array]) -> None:
        """Take the tensors of the next members, in the order of the group.

        Parameters
        ----------
        tensors : sequence of ndarray
            Those of `Call.tensors`, each with the members along the leading axis. They must not change until
            `results` was called.
        """
        first, count = self._taken, len(tensors[0]) if tensors else self._size
        self._taken += count
        if self._sum is not None:
            self._sum.add(tensors[0])
        elif self.call.op != "Broadcast":
            self._blocks.append(tensors)
        elif first <= self.call.root < first + count:
            self._blocks.append([tensor[self.call.root - first, ...].copy() for tensor in tensors])

    def reads(self, first: int, count: int) -> bool:
        """Whether the results depend on the tensors of any of these members; otherwise they may be skipped."""
        return self.call.op != "Broadcast" or first <= self.call.root < first + count

    def skip(self, count: int) -> None:
        """Skip the next members."""
        self._taken += count

    def results(self, group: str, index: int) -> Shares:
        """Return the results, after the tensors of all members were taken.

        Parameters
        ----------
        group : str
        index : int
            Number of the collective in the group.

        Raises
        ------
        UnsupportedError
            If the members get tensors of different shapes.
        """
        call, size = self.call, self._size
        if self._sum is not None:
            total = self._sum.total((crc32(group.encode()), index))
            if call.op == "AllReduce":
                return _shares([total], equal=True)
            return _shares([total.reshape(size, len(total) // size, *total.shape[1:])], equal=False)
        if call.op == "Broadcast":
            return _shares(self._blocks[0], equal=True)
        if call.op == "AllGather":
            whole = np.concatenate([mine for (mine,) in self._blocks])
            return _shares([whole.reshape(size * whole.shape[1], *whole.shape[2:])], equal=True)
        if call.op == "AlltoAll" and call.axes[0] == size:
            return _shares([_exchanged(np.concatenate([mine for (mine,) in self._blocks]), call.axes)], equal=False)
        members = [[block[at, ...] for block in blocks] for blocks in self._blocks for at in range(len(blocks[0]))]
        given = results([call] * size, members or [[]] * size, folder(self._terms, group, index))
        if len({tuple(array.shape for array in theirs) for theirs in given}) > 1:
            what = f"the members of {call.op} get tensors of different shapes: ranks in lockstep cannot hold them"
            raise UnsupportedError(what, where=call.name or call.op)
        if all(a is b for theirs in given for a, b in zip(theirs, given[0], strict=True)):
            return _shares(given[0], equal=True)
        return _shares([np.stack(arrays) for arrays in zip(*given, strict=True)], equal=False)


def _shares(arrays: Sequence[Array], *, equal: bool) -> Shares:
    views = [np.asarray(array).view() for array in arrays]  # numpy makes scalars of arrays without axes
    for view in views:
        view.flags.writeable = False
    return Shares(arrays=tuple(views), equal=equal)


def _exchanged(whole: Array, axes: tuple[int, ...]) -> Array:
    """Return the result of an AlltoAll: each member gets the pieces with its own index, joined."""
    count, split, joined = (axes[0], *(axis % (whole.ndim - 1) for axis in axes[1:]))
    _, *shape = whole.shape
    pieces = whole.reshape(count, *shape[:split], count, shape[split] // count, *shape[split + 1 :])
    pieces = np.moveaxis(pieces, split + 1, 0)  # receiver, sender, axes of a piece
    pieces = np.moveaxis(pieces, 1, joined + 1)  # the sender right before the axis along which pieces are joined
    shape[split] //= count
    shape[joined] *= count
    return pieces.reshape(count, *shape)
