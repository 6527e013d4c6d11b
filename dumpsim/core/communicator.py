"""How the ranks of a job reach each other: the seam between what runs collectives and what carries them."""

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
    """What one member asks of its group: what members must agree on, and where the call comes from.

    Attributes
    ----------
    op : str
        MindSpore's type of the collective, ``AllReduce``.
    tensors : tuple of (str, tuple of int)
        Number type and shape of each tensor that the member brings.
    reduce : str
        ``sum``, ``prod``, ``max``, ``min``; empty where nothing is reduced.
    root : int
        Of a collective with a root: its place in the group. Of Send and Receive: the place of the other member. -1
        where there is none.
    tag : int
        Of Send and Receive.
    sends, receives : tuple of int
        Elements for and from each member, for the collectives that state them.
    axes : tuple of int
        ``split_count, split_dim, concat_dim`` of AlltoAll.
    expected : tuple of (str, tuple of int)
        Of a member that brings less than it gets (Receive, CollectiveScatter): number type and shape of what it
        expects; empty where both follow from the members' tensors.
    name : str
        Full name of the operator, for messages.
    place : str
        ``file:line`` of the script, where it is known.
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
    """What a rank's environment and chip say of collectives.

    Attributes
    ----------
    connect_ns : int
        How long a member waits for the others in the first collective of a type in a group. [spec parallel 3.5]
    exec_ns : int or None
        How long it waits in the further ones; None: for ever.
    check : {"all", "first", "off"}
        Which calls are compared: every one, those that are the first of their type in a group, or none.
    order : str
        Of the reductions, see `dumpsim.world.reduction.fold`.
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

    The gate opens when all that the member waits for have entered. It fails where a member has failed, is late, or
    calls something else.
    """

    @property
    def tag(self) -> str:
        """``<Op>_<group>_<index>``, the same for all members. [spec parallel 3.1]"""
        ...

    def results(self) -> Sequence[Array]:
        """What the member gets; asked for once, by the work of its task, after the gate has opened.

        The arrays are read-only and may be shared by all members; empty for a member that gets nothing.
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
        The member's place in the group.
    number : int
        0 for the group of all ranks, then in the order in which the member has created its groups: the group's stream
        is 1 + number. [spec parallel 4.1]
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
            For a call that no group can carry out: an unknown operator, a number type that it does not take, a root or
            peer outside of the group.
        """
        ...

    def cost_ns(self, call: Call) -> int:
        """Duration on the virtual clock, from the arrival of the last member. [spec parallel 7]"""
        ...


class Communicator(Protocol):
    """The job as one of its ranks sees it.

    Attributes
    ----------
    rank, size : int
    local_ranks : tuple of int
        The ranks on the same machine.
    terms : Terms
        Set when the rank's device opens; they hold for the calls that follow.
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
            Where ranks are missing after the time for it: the text names them.
        """
        ...

    def group(self, name: str) -> Group:
        """The group of that name; of the world's names (``hccl_world_group``) the group of all ranks.

        Raises
        ------
        BadInputError
            Where this rank has created no such group.
        """
        ...

    def create(self, name: str, members: Sequence[int]) -> Group:
        """Create a group of which this rank is a member.

        Raises
        ------
        BadInputError
            For a name in use, no or repeated members, a member outside of the world, a group that does not contain this
            rank, or one that another member has created with other members; the text names both.
        """
        ...

    def destroy(self, name: str) -> None:
        """Forget a group.

        Raises
        ------
        BadInputError
            For an unknown group, the group of all ranks, and a group with calls that have not ended.
        """
        ...

    def leave(self, error: BaseException | None = None) -> None:
        """End this rank's part in the job; with an error, its groups fail."""
        ...

    def die(self, why: str) -> NoReturn:
        """End this rank as a killed process ends: it finishes nothing and tells nobody. For the fault ``kill``."""
        ...
