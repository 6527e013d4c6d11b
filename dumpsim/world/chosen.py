"""A rank that runs by itself after the collectives of all ranks have been computed."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

import numpy as np

from dumpsim.core.communicator import Array, Call, Meeting, Terms
from dumpsim.core.errors import BadInputError, DeviceError, UnsupportedError
from dumpsim.core.gate import Failure, Waiter
from dumpsim.device.scheduler import Scheduler
from dumpsim.world.collective import check_call, collective
from dumpsim.world.cost import collective_ns, placement
from dumpsim.world.membership import WORLD_GROUPS, check_members
from dumpsim.world.stacked import Shares

__all__ = ["ChosenCommunicator", "Record"]

Offer = Callable[[], Sequence[Array]]


class Record:
    """The collectives of a step: the tensors that chosen ranks bring to them and get from them.

    Parameters
    ----------
    chosen : sequence of int
    """

    def __init__(self, chosen: Sequence[int]) -> None:
        self.chosen = tuple(chosen)
        self._calls: list[tuple[str, Call]] = []
        self._shares: dict[int, list[tuple[list[Array], Sequence[Array]]]]
        self._at: dict[int, int]
        self._counts: dict[str, int] = {}  # collectives of a group, in all steps
        self.clear()

    def clear(self) -> None:
        """Begin a step."""
        self._calls.clear()
        self._shares = {rank: [] for rank in self.chosen}
        self._at = dict.fromkeys(self.chosen, 0)

    def add(self, group: str, call: Call, sent: Mapping[int, list[Array]], shares: Shares) -> None:
        """Add a collective: the tensors that the chosen ranks bring, and those that all ranks get."""
        self._calls.append((group, call))
        self._counts[group] = self.count(group) + 1
        for rank in self.chosen:
            self._shares[rank].append((sent[rank], shares.of(rank)))

    def count(self, group: str) -> int:
        """Return how many collectives a group has had, in all steps."""
        return self._counts.get(group, 0)

    def take(self, rank: int, group: str, call: Call) -> tuple[list[Array], Sequence[Array]]:
        """Return what a chosen rank brings to its next collective, and what it gets.

        Raises
        ------
        UnsupportedError
            If the other ranks call no further collective.
        DeviceError
            If the other ranks call a different one.
        """
        at = self._at[rank]
        if at >= len(self._calls):
            raise UnsupportedError(
                f"rank {rank} calls {call.op}, which the ranks in lockstep do not: outside of the step, or more often",
                where=call.name or call.op,
            )
        self._at[rank] = at + 1
        other_group, other = self._calls[at]
        names = ("op", "tensors", *collective(call.op).agree)
        mine, theirs = ({name: getattr(one, name) for name in names} for one in (call, other))
        if (group, mine) != (other_group, theirs):
            raise DeviceError(
                f"rank {rank} calls {_stated(group, mine)}, the ranks in lockstep {_stated(other_group, theirs)}: its "
                f"network differs",
                where=call.name or call.op,
            )
        return self._shares[rank][at]

    def check_end(self, rank: int) -> None:
        """Raise `DeviceError` unless a rank has called all collectives of the step."""
        at = self._at[rank]
        if at != len(self._calls):
            raise DeviceError(f"rank {rank} has called {at} collectives, the ranks in lockstep {len(self._calls)}")


def _stated(group: str, fields: Mapping[str, Any]) -> str:
    """Return a collective as text: ``AllReduce in 'pair' with tensors (('float32', (2,)),), reduce sum``."""
    further = ", ".join(f"{name} {value}" for name, value in fields.items() if name != "op")
    return f"{fields['op']} in {group!r} with {further}"


class ChosenCommunicator:
    """The job as a chosen rank sees it.

    Parameters
    ----------
    rank, size : int
    record : Record
    scheduler : Scheduler
        That of the rank. As in a job, results of other ranks arrive only when the rank cannot go on without them.

    Examples
    --------
    >>> record = Record([5])
    >>> ChosenCommunicator(5, 10_000, record, Scheduler()).group("hccl_world_group").rank
    5
    """

    def __init__(self, rank: int, size: int, record: Record, scheduler: Scheduler) -> None:
        self.rank = rank
        self.size = size
        self.local_ranks = tuple(range(size))
        self.terms = Terms()
        self._record = record
        self._later = scheduler.later
        self._groups: dict[str, ChosenGroup] = {}
        self._world = ChosenGroup(self, next(iter(WORLD_GROUPS)), self.local_ranks, 0, record, self._later)

    def enter(self) -> None:
        """Do nothing: no other rank has to arrive."""

    def leave(self, error: BaseException | None = None) -> None:
        """Do nothing: no other rank waits for this one."""

    def die(self, why: str) -> NoReturn:
        """Raise: a rank whose collectives have been computed already cannot be killed before them."""
        raise UnsupportedError(f"a chosen rank of ranks in lockstep cannot be killed: {why}", where=f"rank {self.rank}")

    def group(self, name: str) -> "ChosenGroup":
        """The group of that name, see `Communicator.group`."""
        if WORLD_GROUPS.get(name, name) in WORLD_GROUPS:
            return self._world
        found = self._groups.get(name)
        if found is None:
            raise BadInputError(f"rank {self.rank} has created no group {name!r}", where="group", allowed=self._groups)
        return found

    def create(self, name: str, members: Sequence[int]) -> "ChosenGroup":
        """Create a group, see `Communicator.create`."""
        given = check_members(name, members, self.rank, self.size, self._groups)
        self._groups[name] = ChosenGroup(self, name, given, len(self._groups) + 1, self._record, self._later)
        return self._groups[name]

    def destroy(self, name: str) -> None:
        """Destroy a group, see `Communicator.destroy`."""
        if WORLD_GROUPS.get(name, name) in WORLD_GROUPS:
            raise BadInputError("the group of all ranks cannot be destroyed", where=f"group {name!r}")
        self.group(name)
        del self._groups[name]


class ChosenGroup:
    """A group as a chosen rank sees it, see `Group`."""

    def __init__(
        self,
        communicator: ChosenCommunicator,
        name: str,
        members: tuple[int, ...],
        number: int,
        record: Record,
        later: Callable[[Callable[[], None]], None],
    ) -> None:
        self._later = later
        self.name = name
        self.members = members
        self.rank = members.index(communicator.rank)
        self.number = number
        self._world_rank = communicator.rank
        self._record = record
        self._place = placement(members)
        self._calls: dict[str, int] = {}

    def join(self, call: Call, offer: Offer) -> Meeting:
        """Return the gate of the rank's next collective, see `Group.join`."""
        check_call(call, len(self.members))
        index = self._calls.get(call.op, 0)
        self._calls[call.op] = index + 1
        tag = f"{call.op}_{self.name}_{index}"
        return ChosenMeeting(self._world_rank, self.name, call, offer, tag, self._record, self._later)

    def cost_ns(self, call: Call) -> int:
        """Duration on the virtual clock, see `Group.cost_ns`."""
        return collective_ns(call, len(self.members), self._place)


class ChosenMeeting:
    """A collective as a chosen rank sees it: the other members arrive together with it."""

    def __init__(
        self,
        rank: int,
        group: str,
        call: Call,
        offer: Offer,
        tag: str,
        record: Record,
        later: Callable[[Callable[[], None]], None],
    ) -> None:
        self._later = later
        self.tag = tag
        self.failure: Failure | None = None
        self._rank = rank
        self._group = group
        self._call = call
        self._offer = offer
        self._record = record
        self._entered: int | None = None

    def enter(self, waiter: Waiter, time_ns: int) -> None:
        """The task is the first of its stream."""

        def arrive() -> None:
            self._entered = time_ns
            waiter.wake()

        self._later(arrive)

    def open_ns(self) -> int | None:
        """Time at which the rank has entered, once it cannot go on without the others."""
        return self._entered

    def results(self) -> Sequence[Array]:
        """Return what the rank gets, if it brings the tensors that were computed for it.

        Raises
        ------
        DeviceError
            If it brings other values.
        """
        expected, given = self._record.take(self._rank, self._group, self._call)
        for at, (mine, theirs) in enumerate(zip(self._offer(), expected, strict=True)):
            if np.ascontiguousarray(mine).tobytes() != theirs.tobytes():
                raise DeviceError(
                    f"rank {self._rank} brings other values of tensor {at} to {self.tag} than it has in lockstep: its "
                    "script or its inputs differ from those of the other ranks",
                    where=self._call.name or self._call.op,
                )
        return given

    def leave(self, time_ns: int) -> None:
        """The task has run."""

    def abandon(self, failure: Failure) -> None:
        """The task was dropped."""

    def waits_for(self) -> str:
        """Return "nothing": all other members have arrived."""
        return "nothing"

    def give_up(self, report: str) -> Failure | None:
        """Return None: no member is missing."""
        return None
