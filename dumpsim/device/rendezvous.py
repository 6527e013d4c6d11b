"""Rendezvous: a barrier of the ranks of a group, used in rounds."""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, TypeVar

from dumpsim.core.errors import BadInputError
from dumpsim.core.gate import Failure, Waiter

__all__ = ["Rendezvous", "RendezvousGate", "numbers"]

T = TypeVar("T")


NO_FAILURES: Mapping[int, Failure] = MappingProxyType({})


class _Round:
    """One round of all members."""

    __slots__ = ("entered", "failures", "left", "offers", "opened_ns", "result", "waiters")

    def __init__(self) -> None:
        self.offers: dict[int, Callable[[], Any]] = {}
        self.entered: dict[int, int] = {}
        self.waiters: list[Waiter] = []
        self.opened_ns: int | None = None
        self.failures: Mapping[int, Failure] = NO_FAILURES
        self.result: list[Any] = []  # empty until the first member has computed it
        self.left: list[int] = []  # when members have left


class Rendezvous:
    """A barrier of the members of a group, used in rounds; created by `Scheduler.rendezvous`.

    A member takes part in each round with one task. It enters when that task is the first of its stream; when all
    members have entered, their tasks start at the time of the latest entry. It leaves when the task has run; the next
    round opens when all members have left. After a member has failed, the rounds that have not opened fail.

    Parameters
    ----------
    members : sequence of int
        Ranks.
    name : str
        Name of the group, for messages.
    judge : callable, optional
        ``judge(number, entered)`` is called when all members have entered a round, with its number and the times of
        entry by rank; it returns the failures by rank.
    later : callable, optional
        ``later(action)`` is called with the action that opens a round; by default it opens as soon as all have entered.

    Examples
    --------
    >>> class Stream:
    ...     def wake(self):
    ...         print("awake")
    >>> group = Rendezvous([0, 1], "pair")
    >>> first, second = group.join(0, lambda: 30), group.join(1, lambda: 4)
    >>> first.enter(Stream(), 100)
    >>> first.open_ns(), first.waits_for()
    (None, "rank 1 to enter round 0 of group 'pair'")
    >>> second.enter(Stream(), 250)
    awake
    >>> first.open_ns(), second.open_ns(), first.exchange(sum), second.exchange(sum)
    (250, 250, 34, 34)
    """

    def __init__(
        self,
        members: Sequence[int],
        name: str = "",
        judge: Callable[[int, Mapping[int, int]], Mapping[int, Failure]] | None = None,
        later: Callable[[Callable[[], None]], None] | None = None,
    ) -> None:
        self.members = tuple(members)
        self.name = name
        self._judge = judge
        self._later = later
        self.failure: Failure | None = None
        self._joined = dict.fromkeys(self.members, 0)
        self._rounds: dict[int, _Round] = {}
        self._number = 0  # of the round that is open or opens next
        self._ended_ns = 0  # end of the round before it

    def join(self, rank: int, offer: Callable[[], Any]) -> "RendezvousGate":
        """Return the gate of the member's task in its next round.

        Parameters
        ----------
        rank : int
        offer : callable
            Returns the member's contribution; called after all have entered.

        Raises
        ------
        BadInputError
            If the rank is not a member.
        """
        if rank not in self._joined:
            raise BadInputError(
                f"rank {rank} is not a member", where=f"group {self.name!r}", allowed=[numbers(self.members)]
            )
        number = self._joined[rank]
        self._joined[rank] += 1
        meeting = self._rounds.get(number)
        if meeting is None:
            meeting = self._rounds[number] = _Round()
        meeting.offers[rank] = offer
        return RendezvousGate(self, meeting, number, rank)

    def fail(self, failure: Failure) -> None:
        """Fail the rounds that have not opened, because a member has failed."""
        if self.failure is not None:
            return
        self.failure = failure
        for meeting in self._rounds.values():
            if meeting.opened_ns is None:
                self._wake(meeting)

    def open(self) -> None:
        """Open the next round if all members have entered it and have left the one before."""
        meeting = self._rounds.get(self._number)
        if meeting is None or meeting.opened_ns is not None or self.failure is not None:
            return
        if len(meeting.entered) == len(self.members):
            if self._later is None:
                self._open(meeting)
            else:
                self._later(lambda: self._open(meeting))

    def _open(self, meeting: _Round) -> None:
        if self.failure is not None:  # since then
            return
        meeting.opened_ns = max(self._ended_ns, *meeting.entered.values())
        if self._judge is not None:
            meeting.failures = self._judge(self._number, meeting.entered)
        self._wake(meeting)

    def end(self, time_ns: int) -> None:
        """End the open round, which all members have left."""
        del self._rounds[self._number]
        self._number += 1
        self._ended_ns = time_ns
        self.open()

    def _wake(self, meeting: _Round) -> None:
        waiters, meeting.waiters = meeting.waiters, []
        for waiter in waiters:
            waiter.wake()


class RendezvousGate:
    """The gate of one member's task in one round."""

    __slots__ = ("_group", "_round", "number", "rank")

    def __init__(self, group: Rendezvous, meeting: _Round, number: int, rank: int) -> None:
        self._group = group
        self._round = meeting
        self.number = number
        self.rank = rank

    @property
    def failure(self) -> Failure | None:
        """Why the member fails: by `judge`, or with the group if the round has not opened."""
        if self._round.opened_ns is None:
            return self._group.failure
        return self._round.failures.get(self.rank)

    @property
    def opened(self) -> bool:
        """Whether all members have entered."""
        return self._round.opened_ns is not None

    def enter(self, waiter: Waiter, time_ns: int) -> None:
        """Enter the round, when the member's task is the first of its stream; the last one to enter opens it."""
        self._round.entered[self.rank] = time_ns
        self._group.open()
        if self.open_ns() is None:
            self._round.waiters.append(waiter)

    def open_ns(self) -> int | None:
        """Return the time of the latest entry, or of the failure if the round cannot open; None before."""
        failure = self.failure
        return self._round.opened_ns if failure is None else failure.time_ns

    def exchange(self, combine: Callable[[list[Any]], T]) -> T:
        """Return the result of `combine` on the contributions of all members, in their order.

        Called by the tasks of the round. The first one computes the result for all: no member has continued by then,
        so the contributions may be views of memory that the results overwrite.
        """
        meeting = self._round
        if not meeting.result:
            meeting.result.append(combine([meeting.offers[rank]() for rank in self._group.members]))
        result: T = meeting.result[0]
        return result

    def leave(self, time_ns: int) -> None:
        """Leave the round, after the member's task has run; the last one to leave ends it."""
        meeting = self._round
        meeting.left.append(time_ns)
        if len(meeting.left) == len(self._group.members):
            self._group.end(max(meeting.left))

    def abandon(self, failure: Failure) -> None:
        """Fail the group, because the member's task was dropped."""
        self._group.fail(failure)

    def give_up(self, report: str) -> Failure | None:
        """Return None: the scheduler's own report suffices."""
        return None

    def missing(self) -> list[int]:
        """Return the members that have not entered."""
        return [rank for rank in self._group.members if rank not in self._round.entered]

    def waits_for(self) -> str:
        """Return the members that have not entered, and the round."""
        missing = self.missing()
        where = f"round {self.number} of group {self._group.name!r}"
        if not missing:
            return f"the rounds before {where}"
        return f"rank{'s' if len(missing) > 1 else ''} {numbers(missing)} to enter {where}"


def numbers(ranks: Sequence[int]) -> str:
    """Return a short text of ranks.

    Parameters
    ----------
    ranks : sequence of int

    Examples
    --------
    >>> numbers([0, 2, 3, 4, 7, 8])
    '0, 2-4, 7, 8'
    """
    texts: list[str] = []
    spans: list[list[int]] = []
    for rank in sorted(ranks):
        if spans and rank == spans[-1][-1] + 1:
            spans[-1].append(rank)
        else:
            spans.append([rank])
    for span in spans:
        texts += [f"{span[0]}-{span[-1]}"] if len(span) > 2 else [str(rank) for rank in span]
    return ", ".join(texts)
