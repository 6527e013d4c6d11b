"""Messages from one member of a group to another one: Send and Receive. [spec parallel 3.7]"""

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
    """A tensor on its way."""

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
    """The messages of one tag from one member to another one, in the order in which they were sent.

    A message waits until it is asked for: the sender goes on.

    Attributes
    ----------
    source : int
        The rank that sends.
    later : callable
        ``later(action)`` is given what hands a message over.
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
        """A message has been sent."""
        message = _Message(sender=sender, tensor=tensor, array=array, first=not self._sent)
        self._sent += 1
        if self._claims:
            self._hand(self._claims.popleft(), message)
        else:
            self._messages.append(message)

    def claim(self, waiter: Waiter) -> _Claim:
        """Take the place of the next one who gets a message."""
        claim = _Claim(waiter)
        if self._messages:
            self._hand(claim, self._messages.popleft())
        else:
            self._claims.append(claim)
        return claim

    def _hand(self, claim: _Claim, message: _Message) -> None:
        """Hand a message over."""

        def take() -> None:
            claim.message = message
            claim.waiter.wake()

        self.later(take)

    def fail(self, failure: Failure) -> None:
        """The sender has failed."""
        if self.failure is None:
            self.failure = failure
            claims, self._claims = self._claims, deque()
            for claim in claims:
                claim.waiter.wake()


class PairMeeting:
    """Messages that a member sends and waits for in one task, see `dumpsim.core.communicator.Meeting`.

    The messages are sent when the task is the first of its stream.

    Parameters
    ----------
    targets, sources : sequence of Mailbox
        Where its tensors go, one each, and where those come from that it waits for.
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
        """Why what it waits for will not come, or is not what it expects."""
        if self._failure is None and self._entry is not None:
            self._failure = self._find_failure(self._entry)
        return self._failure

    def enter(self, waiter: Waiter, time_ns: int) -> None:
        """Send the messages, and wait for those that are expected."""
        entry = self._entry = Entry(rank=self._rank, call=self.call, time_ns=time_ns, terms=self._terms)
        if self._targets:
            arrays = self._offer()
            for box, tensor, array in zip(self._targets, self.call.tensors, arrays, strict=True):
                kept = np.array(array)
                kept.flags.writeable = False
                box.put(entry, tensor, kept)
        self._claims = [box.claim(waiter) for box in self._sources]

    def open_ns(self) -> int | None:
        """When the last message has come."""
        failure, entry = self.failure, self._entry
        if failure is not None:
            return failure.time_ns
        if entry is None or any(claim.message is None for claim in self._claims):
            return None
        return max([entry.time_ns, *(c.message.sender.time_ns for c in self._claims if c.message is not None)])

    def results(self) -> Sequence[Array]:
        """The tensors that came."""
        return [claim.message.array for claim in self._claims if claim.message is not None]

    def leave(self, time_ns: int) -> None:
        """Nobody waits for one who has got his message."""

    def abandon(self, failure: Failure) -> None:
        """What was sent before stays sent."""

    def waits_for(self) -> str:
        """Names the ranks whose messages are missing."""
        missing = ", ".join(map(str, self._missing()))
        return f"a message from rank {missing} ({self.tag}{f', {self.call.place}' if self.call.place else ''})"

    def give_up(self, report: str) -> Failure | None:
        """Nobody can progress any longer."""
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
