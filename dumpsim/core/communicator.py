"""How the ranks of a job communicate: the interface between the code that runs collectives and the transports."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NoReturn, Protocol

import numpy as np
import numpy.typing as npt

from dumpsim.core.gate import Gate

__all__ = ["Call", "Communicator", "Group", "Meeting", "Terms"]

Array = npt.NDArray[np.generic]


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One member's call of a collective: the arguments that the members must agree on, and where the call was made.

    Attributes
    ----------
    op : str
        MindSpore's type of the collective, ``AllReduce``.
    tensors : tuple of (str, tuple of int)
        Number type and shape of each tensor that the member contributes.
    reduce : str
        ``sum``, ``prod``, ``max``, ``min``; empty if nothing is reduced.
    root : int
        The root's position in the group, for Send and Receive that of the other member; -1 for collectives without a
        root.
    tag : int
        The tag of Send and Receive.
    sends, receives : tuple of int
        Number of elements for and from each member, for the collectives that take them as arguments.
    axes : tuple of int
        ``split_count, split_dim, concat_dim`` of AlltoAll.
    expected : tuple of (str, tuple of int)
        Number types and shapes that a member expects if it receives more than it contributes (Receive,
        CollectiveScatter); empty if they follow from the members' tensors.
    name : str
        Full name of the operator, for messages.
    place : str
        ``file:line`` of the script, if known.
    """

    op: str
    tensors: tuple[tuple[str, tuple[int, ...]], ...] = ()
    reduce: str = ""
    root: int = -1
    tag: int = 0
    sends: tuple[int, ...] = ()
    receives: tuple[int, ...] = ()
    axes: tuple[int, ...] = ()
    expected: tuple[tuple[str, tuple[int, ...]], ...] = ()
    name: str = ""
    place: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """Settings of collectives that follow from a rank's environment and chip.

    Attributes
    ----------
    connect_ns : int
        How long a member waits for the others in the first collective of a type in a group. [spec parallel 3.5]
    exec_ns : int or None
        How long it waits in later ones; None waits for ever.
    check : {"all", "first", "off"}
        Which calls are compared: every one, those that are the first of their type in a group, or none.
    order : str
        Order of the reductions, see `dumpsim.world.reduction.fold`.
    saturates : bool
        Whether a 16-bit float that is too large becomes the largest finite number.
    """

    connect_ns: int = 150 * 10**9
    exec_ns: int | None = 1836 * 10**9
    check: str = "all"
    order: str = "rank"
    saturates: bool = False


class Meeting(Gate, Protocol):
    """One collective as one of its members sees it: the gate of its task.

    The gate opens when all members that this one waits for have entered. It fails if a member has failed, is late, or
    calls a different collective.
    """

    @property
    def tag(self) -> str:
        """``<Op>_<group>_<index>``, the same for all members. [spec parallel 3.1]"""
        ...

    def results(self) -> Sequence[Array]:
        """Return the member's results; called once, by its task, after the gate has opened.

        The arrays are read-only and may be shared by all members; empty for a member that receives nothing.
        """
        ...


class Group(Protocol):
    """A group of ranks, as one of its members sees it.

    Attributes
    ----------
    name : str
    members : tuple of int
        Ranks in the world, in the order of the group.
    rank : int
        The member's position in the group.
    number : int
        0 for the group of all ranks; the others are numbered in the order in which the member created them. The stream
        of the group is 1 + number. [spec parallel 4.1]
    """

    name: str
    members: tuple[int, ...]
    rank: int
    number: int

    def join(self, call: Call, offer: Callable[[], Sequence[Array]]) -> Meeting:
        """Return the gate of the member's next collective.

        Parameters
        ----------
        call : Call
        offer : callable
            Returns the member's tensors, C-contiguous, in the device's number types. Called once, when the task is the
            first of its stream or later, and always before the member's own `Meeting.results` returns; what it returns
            may be views of memory that the results overwrite.

        Raises
        ------
        BadInputError
            If no group can execute the call: an unknown operator, an unsupported number type, a root or peer outside
            the group.
        """
        ...

    def cost_ns(self, call: Call) -> int:
        """Return the duration on the virtual clock, from the arrival of the last member. [spec parallel 7]"""
        ...


class Communicator(Protocol):
    """The job as one of its ranks sees it.

    Attributes
    ----------
    rank, size : int
    local_ranks : tuple of int
        The ranks on the same machine.
    terms : Terms
        Set when the rank's device opens; they apply to later calls.
    """

    rank: int
    size: int
    local_ranks: tuple[int, ...]
    terms: Terms

    def enter(self) -> None:
        """Wait until all ranks have entered the job; a second call does nothing.

        Raises
        ------
        DeviceError
            If ranks are still missing after the time-out; the message names them.
        """
        ...

    def group(self, name: str) -> Group:
        """Return the group of that name; the names of the world (``hccl_world_group``) stand for all ranks.

        Raises
        ------
        BadInputError
            If this rank has not created a group of that name.
        """
        ...

    def create(self, name: str, members: Sequence[int]) -> Group:
        """Create a group of which this rank is a member.

        Raises
        ------
        BadInputError
            If the name is in use, members are missing, repeated or outside the world, this rank is not a member, or
            another rank created the group with different members; the message then shows both lists.
        """
        ...

    def destroy(self, name: str) -> None:
        """Remove a group.

        Raises
        ------
        BadInputError
            For an unknown group, the group of all ranks, and a group with unfinished calls.
        """
        ...

    def leave(self, error: BaseException | None = None) -> None:
        """End this rank's part in the job; with an error, its groups fail."""
        ...

    def die(self, why: str) -> NoReturn:
        """End this rank like a killed process, without cleaning up or notifying other ranks (the fault ``kill``)."""
        ...
