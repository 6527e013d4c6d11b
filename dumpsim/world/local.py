"""The local transport: the ranks of a launch, which share a process and a scheduler."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

from dumpsim.core.communicator import Array, Call, Terms
from dumpsim.core.errors import BadInputError, DeviceError, UnsupportedError
from dumpsim.core.gate import Failure, Waiter
from dumpsim.device.rendezvous import Rendezvous
from dumpsim.device.scheduler import Scheduler
from dumpsim.world.collective import check_call, results
from dumpsim.world.cost import collective_ns, placement
from dumpsim.world.ending import RankKilled
from dumpsim.world.mailbox import Mailbox, PairMeeting
from dumpsim.world.membership import WORLD_GROUPS, check_members
from dumpsim.world.reduction import folder
from dumpsim.world.verdict import Entry, gone, judge, stuck

__all__ = ["LocalCommunicator", "LocalJob"]

Offer = Callable[[], Sequence[Array]]


def _at_once(action: Callable[[], None]) -> None:
    action()


class _GroupState:
    """The state of a group that its members share."""

    def __init__(self, key: tuple[str, int], members: tuple[int, ...], scheduler: Scheduler | None) -> None:
        self.key = key
        self.name = name = key[0]
        self.members = members
        self.place = placement(members)
        self.seen: set[str] = set()  # types of collectives for which the members have connected
        self.entries: dict[int, dict[int, Entry]] = {}  # by round and rank
        self.opened: dict[int, list[Entry]] = {}  # by round, until it is computed; one may have failed since
        self.present: set[int] = set()  # ranks that have created it
        self.absent: set[int] = set()  # those of them that have destroyed it
        if scheduler is None:
            self.rendezvous = Rendezvous(members, name, self._judge)
        else:
            self.rendezvous = scheduler.rendezvous(members, name, self._judge)

    def _judge(self, number: int, entered: Mapping[int, int]) -> Mapping[int, Failure]:
        entries = self.opened[number] = self.ordered(number)
        first = entries[0].call.op not in self.seen
        self.seen.update(entry.call.op for entry in entries)
        return judge(entries, group=self.name, index=number, first=first)

    def ordered(self, number: int) -> list[Entry]:
        """The entries of a round that has opened, in the order of the group."""
        round_ = self.entries[number]
        return [round_[rank] for rank in self.members]


class LocalJob:
    """The state that the ranks of a process share: their groups and their messages."""

    def __init__(self) -> None:
        self.groups: dict[tuple[str, int], _GroupState] = {}  # by name, and number of earlier groups of that name
        self.mailboxes: dict[tuple[str, int, int, int, int], Mailbox] = {}


class LocalCommunicator:
    """The job as one of the ranks of a process sees it.

    Parameters
    ----------
    rank, size : int
    job : LocalJob
        Shared with the other ranks of the process.
    scheduler : Scheduler, optional
        That of the ranks; None for a rank that is alone in its process.

    Examples
    --------
    >>> communicator = LocalCommunicator(0, 1, LocalJob())
    >>> communicator.group("hccl_world_group").members
    (0,)
    """

    def __init__(self, rank: int, size: int, job: LocalJob, scheduler: Scheduler | None = None) -> None:
        self.rank = rank
        self.size = size
        self.local_ranks = tuple(range(size))
        self.terms = Terms()
        self._job = job
        self._scheduler = scheduler
        self._groups: dict[str, LocalGroup] = {}
        self._destroyed: dict[str, int] = {}  # number of destroyed groups, by name
        self._created = 0

    def enter(self) -> None:
        """Do nothing: the ranks of a process exist from the start."""

    def leave(self, error: BaseException | None = None) -> None:
        """Do nothing: the ranks of a process end with their programs."""

    def die(self, why: str) -> NoReturn:
        """End the rank's program; other ranks go on until they wait for it."""
        raise RankKilled(why)

    def group(self, name: str) -> "LocalGroup":
        """The group of that name, see `Communicator.group`."""
        name = WORLD_GROUPS.get(name, name)
        found = self._groups.get(name)
        if found is None:
            if name not in WORLD_GROUPS:
                raise BadInputError(
                    f"rank {self.rank} has created no group {name!r}", where="group", allowed=self._groups
                )
            found = self._join(name, tuple(range(self.size)), 0)
        return found

    def create(self, name: str, members: Sequence[int]) -> "LocalGroup":
        """Create a group, see `Communicator.create`."""
        given = check_members(name, members, self.rank, self.size, self._groups)
        state = self._job.groups.get((name, self._destroyed.get(name, 0)))
        if state is not None and state.members != given:
            other = min(state.present)
            text = f"it has the ranks {list(state.members)} at rank {other} and {list(given)} at rank {self.rank}"
            error = DeviceError(text, where=f"group {name!r}")
            state.rendezvous.fail(Failure(rank=self.rank, time_ns=0, error=error))
            raise BadInputError(text, where=f"group {name!r}")
        self._created += 1
        return self._join(name, given, self._created)

    def destroy(self, name: str) -> None:
        """Destroy a group, see `Communicator.destroy`."""
        if WORLD_GROUPS.get(name, name) in WORLD_GROUPS:
            raise BadInputError("the group of all ranks cannot be destroyed", where=f"group {name!r}")
        state = self.group(name).state
        if any(self.rank in entries for entries in state.entries.values()):
            raise BadInputError(f"rank {self.rank} has calls that have not ended", where=f"group {name!r}")
        del self._groups[name]
        key = name, self._destroyed.get(name, 0)
        self._destroyed[name] = key[1] + 1
        state.absent.add(self.rank)
        if len(state.absent) == len(state.members):
            del self._job.groups[key]

    def _join(self, name: str, members: tuple[int, ...], number: int) -> "LocalGroup":
        key = name, self._destroyed.get(name, 0)
        state = self._job.groups.get(key)
        if state is None:
            scheduler = self._scheduler if len(members) > 1 else None
            state = self._job.groups[key] = _GroupState(key, members, scheduler)
        state.present.add(self.rank)
        alone = self._scheduler is None and len(members) > 1
        group = self._groups[name] = LocalGroup(self, state, self._job, self._scheduler, number, alone=alone)
        return group


class LocalGroup:
    """A group as one of its members sees it, see `Group`."""

    def __init__(
        self,
        communicator: LocalCommunicator,
        state: _GroupState,
        job: LocalJob,
        scheduler: Scheduler | None,
        number: int,
        *,
        alone: bool,
    ) -> None:
        self.name = state.name
        self.members = state.members
        self.rank = state.members.index(communicator.rank)
        self.number = number
        self.state = state
        self._communicator = communicator
        self._job = job
        self._scheduler = scheduler
        self._alone = alone
        self._calls: dict[str, int] = {}

    def join(self, call: Call, offer: Offer) -> "LocalMeeting | PairMeeting":
        """Return the gate of the member's next collective, see `Group.join`."""
        found = check_call(call, len(self.members))
        if self._alone:
            raise UnsupportedError(
                f"rank {self._communicator.rank} of {self._communicator.size} is alone in its job: start all ranks "
                "together, with 'dumpsim msrun' or 'dumpsim run --ranks'",
                where=call.name or call.op,
            )
        index = self._calls.get(call.op, 0)
        self._calls[call.op] = index + 1
        tag = f"{call.op}_{self.name}_{index}"
        rank, terms = self._communicator.rank, self._communicator.terms
        if found.shares is None:
            boxes = self._mailboxes(call)
            return PairMeeting(*boxes, call=call, offer=offer, terms=terms, tag=tag, rank=rank, group=self.name)
        return LocalMeeting(self.state, call, offer, terms, tag, rank, self.rank)

    def cost_ns(self, call: Call) -> int:
        """Duration on the virtual clock, see `Group.cost_ns`."""
        return collective_ns(call, len(self.members), self.state.place)

    def _mailboxes(self, call: Call) -> tuple[list[Mailbox], list[Mailbox]]:
        """Return the mailboxes to which a call sends, and those from which it receives."""
        sends = (call.root,) if call.op == "Send" else ()
        receives = (call.root,) if call.op == "Receive" else ()
        return (
            [self._mailbox(self.rank, place, call.tag) for place in sends],
            [self._mailbox(place, self.rank, call.tag) for place in receives],
        )

    def _mailbox(self, source: int, target: int, tag: int) -> Mailbox:
        """Return the mailbox for the messages of one tag from one member to another."""
        key = *self.state.key, source, target, tag
        found = self._job.mailboxes.get(key)
        if found is None:
            later = _at_once if self._scheduler is None else self._scheduler.later
            found = self._job.mailboxes[key] = Mailbox(self.members[source], later)
            if self._scheduler is not None:
                self._scheduler.enlist([self.members[source]], found)
        return found


class LocalMeeting:
    """One collective as one of its members sees it, see `Meeting`."""

    __slots__ = ("_entry", "_failure", "_gate", "_place", "_state", "call", "rank", "tag", "terms")

    def __init__(
        self, state: _GroupState, call: Call, offer: Offer, terms: Terms, tag: str, rank: int, place: int
    ) -> None:
        self._place = place
        self.call = call
        self.tag = tag
        self.terms = terms
        self.rank = rank
        self._state = state
        self._gate = state.rendezvous.join(rank, offer)
        self._entry: Entry | None = None
        self._failure: Failure | None = None

    @property
    def failure(self) -> Failure | None:
        """Why the collective cannot be carried out, with this member's error."""
        found = self._gate.failure
        if found is None or self._entry is None or self._gate.opened:
            return found
        if self._failure is None:
            why = f"it has failed: {found.error}"
            self._failure = gone(
                self._entry, found.rank, why, **self._where(), first=self._first(), at_ns=found.time_ns
            )
        return self._failure

    def enter(self, waiter: Waiter, time_ns: int) -> None:
        """The member's task is the first of its stream."""
        self._entry = Entry(rank=self.rank, call=self.call, time_ns=time_ns, terms=self.terms)
        self._state.entries.setdefault(self._gate.number, {})[self.rank] = self._entry
        self._gate.enter(waiter, time_ns)

    def open_ns(self) -> int | None:
        """Time at which the task may run or fails; None while it waits."""
        failure = self.failure
        return self._gate.open_ns() if failure is None else failure.time_ns

    def results(self) -> Sequence[Array]:
        """What the member gets."""
        shares: list[Sequence[Array]] = self._gate.exchange(self._combine)
        return shares[self._place]

    def leave(self, time_ns: int) -> None:
        """The member's task has run."""
        self._forget()
        self._gate.leave(time_ns)

    def abandon(self, failure: Failure) -> None:
        """The member's task was dropped."""
        self._forget()
        self._gate.abandon(failure)

    def waits_for(self) -> str:
        """Return the members that have not entered, and the collective, as text."""
        return f"{self._gate.waits_for()} ({self.tag}{f', {self.call.place}' if self.call.place else ''})"

    def give_up(self, report: str) -> Failure | None:
        """Return the failure of a deadlock, see `Gate.give_up`."""
        missing = self._gate.missing()
        if self._entry is None or not missing:
            return None
        return stuck(self._entry, missing, report, **self._where(), first=self._first())

    def _combine(self, offers: list[Any]) -> list[Sequence[Array]]:
        entries = self._state.opened.pop(self._gate.number)
        fold = folder(entries[0].terms, self._state.name, self._gate.number)
        return results([entry.call for entry in entries], offers, fold)

    def _first(self) -> bool:
        return self.call.op not in self._state.seen

    def _where(self) -> dict[str, Any]:
        return {"group": self._state.name, "index": self._gate.number}

    def _forget(self) -> None:
        entries = self._state.entries.get(self._gate.number)
        if entries is not None and entries.pop(self.rank, None) is not None and not entries:
            del self._state.entries[self._gate.number]
