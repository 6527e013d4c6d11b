"""Messages from one member of a group to another: Send and Receive. [spec parallel 3.7]"""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from dumpsim.core.communicator import Array, Call, Terms
from dumpsim.core.gate import Failure, Waiter
from dumpsim.world.verdict import Entry, gone, judge_message, stuck

__all__ = ["Mailbox", "PairMeeting"]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Message:
    """A tensor that was sent."""

    sender: Entry
    tensor: tuple[str, tuple[int, ...]]
    array: Array
    first: bool


@dataclass(eq=False, slots=True)
class _Claim:
    """A member that waits for the next message."""

    waiter: Waiter
    message: _Message | None = None


@dataclass(eq=False, slots=True)
class Mailbox:
    """The messages of one tag from one member to another, in the order in which they were sent.

    The sender does not wait: a message stays here until it is claimed.

    Attributes
    ----------
    source : int
        The sending rank.
    later : callable
        ``later(action)`` schedules the action that delivers a message.
    failure : Failure or None
        Why no further message comes.
    """

    source: int
    later: Callable[[Callable[[], None]], None]
    failure: Failure | None = None
    _messages: deque[_Message] = field(default_factory=deque)
    _claims: deque[_Claim] = field(default_factory=deque)
    _sent: int = 0

    def put(self, sender: Entry, tensor: tuple[str, tuple[int, ...]], array: Array) -> None:
        """Add a message that was sent."""
        message = _Message(sender=sender, tensor=tensor, array=array, first=not self._sent)
        self._sent += 1
        if self._claims:
            self._deliver(self._claims.popleft(), message)
        else:
            self._messages.append(message)

    def claim(self, waiter: Waiter) -> _Claim:
        """Claim the next message for `waiter`."""
        claim = _Claim(waiter)
        if self._messages:
            self._deliver(claim, self._messages.popleft())
        else:
            self._claims.append(claim)
        return claim

    def _deliver(self, claim: _Claim, message: _Message) -> None:
        """Deliver a message."""

        def take() -> None:
            claim.message = message
            claim.waiter.wake()

        self.later(take)

    def fail(self, failure: Failure) -> None:
        """Fail the claims, because the sender has failed."""
        if self.failure is None:
            self.failure = failure
            claims, self._claims = self._claims, deque()
            for claim in claims:
                claim.waiter.wake()


class PairMeeting:
    """Messages that a member sends and receives in one task, see `dumpsim.core.communicator.Meeting`.

    The messages are sent when the task becomes the first of its stream.

    Parameters
    ----------
    targets, sources : sequence of Mailbox
        The mailboxes for its tensors, one each, and those of the messages that it receives.
    call : Call
    offer : callable
    terms : Terms
    tag : str
    rank : int
        Of the member.
    group : str
    """

    __slots__ = (
        "_claims",
        "_entry",
        "_failure",
        "_group",
        "_offer",
        "_rank",
        "_sources",
        "_targets",
        "_terms",
        "call",
        "tag",
    )

    def __init__(
        self,
        targets: Sequence[Mailbox],
        sources: Sequence[Mailbox],
        *,
        call: Call,
        offer: Callable[[], Sequence[Array]],
        terms: Terms,
        tag: str,
        rank: int,
        group: str,
    ) -> None:
        self.call = call
        self.tag = tag
        self._targets = targets
        self._sources = sources
        self._offer = offer
        self._terms = terms
        self._rank = rank
        self._group = group
        self._claims: list[_Claim] = []
        self._entry: Entry | None = None
        self._failure: Failure | None = None

    @property
    def failure(self) -> Failure | None:
        """Why an expected message will not come, or does not match."""
        if self._failure is None and self._entry is not None:
            self._failure = self._find_failure(self._entry)
        return self._failure

    def enter(self, waiter: Waiter, time_ns: int) -> None:
        """Send the messages, and claim the expected ones."""
        entry = self._entry = Entry(rank=self._rank, call=self.call, time_ns=time_ns, terms=self._terms)
        if self._targets:
            arrays = self._offer()
            for box, tensor, array in zip(self._targets, self.call.tensors, arrays, strict=True):
                copy = np.array(array)
                copy.flags.writeable = False
                box.put(entry, tensor, copy)
        self._claims = [box.claim(waiter) for box in self._sources]

    def open_ns(self) -> int | None:
        """Time at which the last message has come, or that of the failure; None before."""
        failure, entry = self.failure, self._entry
        if failure is not None:
            return failure.time_ns
        if entry is None or any(claim.message is None for claim in self._claims):
            return None
        return max([entry.time_ns, *(c.message.sender.time_ns for c in self._claims if c.message is not None)])

    def results(self) -> Sequence[Array]:
        """Return the received tensors."""
        return [claim.message.array for claim in self._claims if claim.message is not None]

    def leave(self, time_ns: int) -> None:
        """Do nothing: no member waits for the end of this task."""

    def abandon(self, failure: Failure) -> None:
        """Do nothing: messages that were sent stay in their mailboxes."""

    def waits_for(self) -> str:
        """Return the ranks whose messages are missing, as text."""
        missing = ", ".join(map(str, self._missing()))
        return f"a message from rank {missing} ({self.tag}{f', {self.call.place}' if self.call.place else ''})"

    def give_up(self, report: str) -> Failure | None:
        """Return the failure of a deadlock, see `Gate.give_up`."""
        missing = self._missing()
        if self._entry is None or not missing:
            return None
        return stuck(self._entry, missing, report, group=self._group, index=None, first=False)

    def _missing(self) -> list[int]:
        return [box.source for box, claim in zip(self._sources, self._claims, strict=False) if claim.message is None]

    def _find_failure(self, entry: Entry) -> Failure | None:
        expected = self.call.expected or ((),) * len(self._claims)
        for box, claim, wanted in zip(self._sources, self._claims, expected, strict=False):
            message = claim.message
            if message is None and box.failure is not None:
                why, at_ns = f"it has failed: {box.failure.error}", box.failure.time_ns
                return gone(entry, box.source, why, group=self._group, index=None, first=False, at_ns=at_ns)
            if message is not None:
                failure = judge_message(
                    entry,
                    message.sender,
                    [wanted] if wanted else [],
                    [message.tensor],
                    group=self._group,
                    first=message.first,
                )
                if failure is not None:
                    return failure
        return None
