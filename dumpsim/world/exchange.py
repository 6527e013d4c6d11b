"""The hub's side of a job: matches the calls of the ranks, passes failures on, and finds deadlocks."""

import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from math import prod
from typing import Any

import numpy as np

from dumpsim.core.communicator import Call, Communicator, Meeting, Terms
from dumpsim.core.dtype import dtype
from dumpsim.core.errors import DeviceError, DumpsimError, public_name
from dumpsim.core.gate import Failure
from dumpsim.device.scheduler import Scheduler
from dumpsim.world.collective import collective
from dumpsim.world.local import LocalCommunicator, LocalJob
from dumpsim.world.segment import Segment, open_segment
from dumpsim.world.verdict import not_created
from dumpsim.world.wire import (
    WireError,
    decode_call,
    decode_failure,
    encode_call,
    encode_error,
    encode_failure,
    rebuild,
    take,
)

__all__ = ["Ending", "Exchange"]

_SHARED = 1 << 16  # bytes of an AllReduce from which each member reduces a part of the elements only
_STREAMS = 200  # of a rank, in the report of a deadlock
_GATE = re.compile("\0([0-9]+)\0")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """How a rank has ended.

    Attributes
    ----------
    kind : {"left", "failed", "stopped", "died"}
        It has ended normally; with an error; because another rank has failed; or its process has ended early.
    text : str
        The same in words.
    error : BaseException or None
        The error that it has raised.
    culprit : int or None
        The rank that its error names as the cause.
    time : float
        Time of the end, by `time.monotonic`.
    """

    kind: str
    text: str
    error: BaseException | None = None
    culprit: int | None = None
    time: float = field(default_factory=time.monotonic)


@dataclass(slots=True, eq=False)
class _Round:
    """The members of one collective that have called.

    Attributes
    ----------
    key : tuple
        The group, and the number of the collective in it.
    members : tuple of int
    calls, places, entries : dict by rank
    readers : set of int
        Members that may still read the tensors.
    chunks : list
        Locations of the parts of the sum that members have reduced.
    reducing : set of int or None
        Members that have not reduced their part yet; None before it is decided whether they do.
    """

    key: tuple[str, int]
    members: tuple[int, ...]
    terms: Terms = field(default_factory=Terms)  # of the first member, known when it has called
    calls: dict[int, Call] = field(default_factory=dict)
    places: dict[int, Mapping[str, Any]] = field(default_factory=dict)
    entries: "dict[int, _Entry]" = field(default_factory=dict)
    readers: set[int] = field(default_factory=set)
    chunks: list[dict[str, Any]] = field(default_factory=list)
    reducing: set[int] | None = None


@dataclass(slots=True, eq=False)
class _Letter:
    """A tensor that one member sends to another."""

    sender: "_Entry"
    tensor: dict[str, Any]  # number type, shape and location, as the receiver gets them


class _Entry:
    """A member's part in a collective; the waiter of its gate."""

    __slots__ = ("answered", "exchange", "letters", "meeting", "number", "rank", "round")

    def __init__(self, exchange: "Exchange", rank: int, number: int) -> None:
        self.exchange = exchange
        self.rank = rank
        self.number = number  # of the meeting, as its rank counts
        self.meeting: Meeting
        self.round: _Round | None = None  # None for Send and Receive
        self.letters: set[int] = set()  # that were not read yet
        self.answered = False

    def wake(self) -> None:
        """Notify the exchange that the gate has opened or failed."""
        self.exchange.opened(self)


class _Rank:
    """The exchange's state of a rank."""

    def __init__(self, communicator: Communicator) -> None:
        self.communicator = communicator
        self.pid = 0  # 0 until it has connected
        self.waits: int | None = None  # messages it had received when it began to wait; None: it runs
        self.sent = 0
        self.streams: list[list[Any]] = []  # its waiting streams, see `dumpsim.device.scheduler.Waiting`
        self.asked_entry = False
        self.entries: dict[int, _Entry] = {}
        self.segments: list[Segment] = []
        self.joined: dict[str, int] = {}  # number of collectives, by group


class Exchange:
    """Matches the calls of the ranks of a job.

    It uses the groups of ranks that share a process: the exchange joins them on behalf of each rank, and sends the
    outcome to the rank. So the same calls at the same times have the same results and errors.

    Parameters
    ----------
    size : int
        Number of ranks.
    post : callable
        ``post(rank, message)`` sends a message to a rank and returns how many were sent to it so far.
    ended : callable
        ``ended(rank, ending)`` is called for each rank that ends.
    spread : bool
        Whether ranks send tensors to each other directly, and so must be notified when a rank has died.

    Attributes
    ----------
    endings : dict of int to Ending
    results : dict of int to Any
        Results that ranks have sent when they left.
    reasons : dict of int to str
        Why the process of a rank has ended, if that is known.
    over : bool
        Whether all ranks have ended.
    """

    def __init__(
        self,
        size: int,
        post: Callable[[int, dict[str, Any]], int],
        ended: Callable[[int, Ending], None],
        *,
        spread: bool = False,
    ) -> None:
        self._spread = spread
        self.endings: dict[int, Ending] = {}
        self.results: dict[int, Any] = {}
        self.reasons: dict[int, str] = {}
        self._post = post
        self._ended = ended
        self._scheduler = Scheduler()
        job = LocalJob()
        self._ranks = [_Rank(LocalCommunicator(rank, size, job, self._scheduler)) for rank in range(size)]
        self._rounds: dict[tuple[str, int], _Round] = {}
        self._letters: dict[int, _Letter] = {}
        self._posted = 0  # letters so far
        self._releasing = False  # while the outcomes are sent to ranks that all wait
        self._missing_after_s: float | None = None  # the time limit after which ranks were given up as missing
        self._handlers: dict[str, Callable[[int, _Rank, Mapping[str, Any]], None]] = {
            "segment": self._segment,
            "terms": self._terms,
            "enter": self._enter,
            "create": self._create,
            "destroy": self._destroy,
            "join": self._join,
            "reduced": self._reduced,
            "left": self._left,
            "abandon": self._abandon,
            "fail": self._fail,
            "wait": self._wait,
            "bye": self._bye,
        }

    @property
    def over(self) -> bool:
        """Whether all ranks have ended."""
        return len(self.endings) == len(self._ranks)

    def close(self) -> None:
        """Free the memory of the ranks."""
        for rank in self._ranks:
            for segment in rank.segments:
                segment.close()
            rank.segments.clear()

    # ------------------------------------------------------------------ for the hub
    def joined(self, rank: int, pid: int) -> None:
        """Record that the process of a rank has connected."""
        self._ranks[rank].pid = pid
        self._ranks[rank].sent = 1  # the welcome, sent before

    def receive(self, rank: int, message: Mapping[str, Any]) -> None:
        """Handle a message of a rank.

        Raises
        ------
        WireError, KeyError, TypeError, ValueError
            For an invalid one.
        """
        handler = self._handlers.get(message["kind"])
        if handler is None or rank in self.endings:
            raise WireError(f"unexpected message {message['kind']!r:.40}")
        known = self._ranks[rank]
        known.waits = None
        handler(rank, known, message)

    def died(self, rank: int, why: str) -> None:
        """Record that the process of a rank is gone, unless the rank has left before."""
        if rank in self.endings:
            return
        why = self.reasons.get(rank) or why
        self._end(rank, Ending(kind="died", text=why))
        if self._spread:  # others may wait for a message from it
            for at in range(len(self._ranks)):
                if at not in self.endings:
                    self._send(at, kind="died", rank=rank, why=why)
        error = DeviceError(why, where=f"rank {rank}")
        self._scheduler.kill(Failure(rank=rank, time_ns=0, error=error))

    def settle(self) -> None:
        """Report a deadlock if no rank can progress."""
        living = [(number, rank) for number, rank in enumerate(self._ranks) if number not in self.endings]
        if not living or any(rank.waits != rank.sent for _, rank in living):
            return
        if self._release_waiting(living):
            return
        number, rank = living[0]
        streams = [_filled(at, each, stream) for at, each in living[1:] for stream in each.streams]
        ended = [f"  rank {at}: {self.endings[at].text}" for at in sorted(self.endings)]
        missing, stuck = {}, {}
        for at, entry in rank.entries.items():
            missing[str(at)] = entry.meeting.waits_for()
            failure = entry.meeting.give_up("")
            if failure is not None:
                stuck[str(at)] = encode_failure(failure)
        rank.waits = None
        if rank.asked_entry:
            error = not_created(number, [at for at, _ in living], sorted(self.endings), self._missing_after_s)
            self._send(number, kind="entered", error=encode_error(error))
            return
        self._send(number, kind="deadlock", streams=streams, ended=ended, missing=missing, stuck=stuck)

    def _release_waiting(self, living: Sequence[tuple[int, "_Rank"]]) -> bool:
        """Wake the ranks that can go on; each handles its messages as one batch, as ranks of one process do."""
        before = {number: rank.sent for number, rank in living}
        self._releasing = True
        try:
            found = self._scheduler.release()
        finally:
            self._releasing = False
        for number, rank in living:
            if rank.sent != before[number]:
                self._send(number, kind="turn")
        return found

    def missing(self, after_s: float) -> None:
        """Give up the ranks that have not connected within the time limit."""
        absent = [number for number, rank in enumerate(self._ranks) if not rank.pid and number not in self.endings]
        if self._missing_after_s is not None or not absent:
            return
        self._missing_after_s = after_s
        for number in absent:
            self.died(number, f"its process has not connected within {after_s:g} s")

    def silent(self, after_s: float) -> None:
        """Give up the ranks that compute while others wait, because no rank has sent a message for so long."""
        living = [(number, rank) for number, rank in enumerate(self._ranks) if number not in self.endings]
        busy = [(number, rank) for number, rank in living if rank.waits != rank.sent]
        if not busy or len(busy) == len(living):
            return
        for number, rank in busy:
            why = f"its process {rank.pid} computes, and no rank has sent a message for {after_s:g} s"
            self._send(number, kind="stop", why=why)
            self.died(number, why)

    # -------------------------------------------------------------------- messages
    def _send(self, number: int, **message: Any) -> None:
        if self._releasing:
            message["more"] = True
        self._ranks[number].sent = max(self._post(number, message), self._ranks[number].sent)

    def _answer(self, number: int, action: Callable[[], object]) -> None:
        error: DumpsimError | None = None
        try:
            action()
        except DumpsimError as raised:
            error = raised
        self._send(number, kind="answer", error=None if error is None else encode_error(error))

    def _segment(self, number: int, rank: _Rank, message: Mapping[str, Any]) -> None:
        descriptor, size = take(message, "descriptor", int), take(message, "size", int)
        rank.segments.append(open_segment(f"/proc/{rank.pid}/fd/{descriptor}", size))

    def _terms(self, number: int, rank: _Rank, message: Mapping[str, Any]) -> None:
        rank.communicator.terms = Terms(**{name: value for name, value in message.items() if name != "kind"})

    def _enter(self, number: int, rank: _Rank, message: Mapping[str, Any]) -> None:
        rank.asked_entry = True
        if all(each.asked_entry for each in self._ranks):
            for at, each in enumerate(self._ranks):
                each.asked_entry = False
                self._send(at, kind="entered", error=None)

    def _create(self, number: int, rank: _Rank, message: Mapping[str, Any]) -> None:
        name, members = take(message, "name", str), take(message, "members", list)
        self._answer(number, lambda: rank.communicator.create(name, [int(each) for each in members]))

    def _destroy(self, number: int, rank: _Rank, message: Mapping[str, Any]) -> None:
        self._answer(number, lambda: rank.communicator.destroy(take(message, "name", str)))

    def _join(self, number: int, rank: _Rank, message: Mapping[str, Any]) -> None:
        time_ns = take(message, "time", int)
        entry = self._entry(number, rank, message)
        entry.meeting.enter(entry, time_ns)
        if entry.meeting.open_ns() is not None:
            self.opened(entry)

    def _entry(self, number: int, rank: _Rank, message: Mapping[str, Any]) -> _Entry:
        """Join the group on behalf of a rank."""
        group = rank.communicator.group(take(message, "group", str))
        call = decode_call(message["call"])
        place = self._place(rank, take(message, "place", dict))
        entry = _Entry(self, number, take(message, "m", int))

        def offer() -> list[Any]:
            return [np.array(self._post_letter(entry, call, place))]

        entry.meeting = group.join(call, offer)
        rank.entries[entry.number] = entry
        if collective(call.op).shares is not None:
            count = rank.joined[group.name] = rank.joined.get(group.name, 0) + 1
            key = group.name, count
            found = entry.round = self._rounds.setdefault(key, _Round(key, group.members))
            if number == group.members[0]:
                found.terms = rank.communicator.terms
            found.calls[number] = call
            found.places[number] = place
            found.entries[number] = entry
            found.readers.add(number)
        return entry

    def _post_letter(self, entry: _Entry, call: Call, place: Mapping[str, Any]) -> int:
        """Store the tensor that one member sends to another; return its number, which the meeting passes on instead."""
        ((kind, shape),) = call.tensors
        self._posted += 1
        letter = _Letter(entry, {"type": kind, "shape": shape, "place": {"offsets": [0], **place}})
        self._letters[self._posted] = letter
        entry.letters.add(self._posted)
        return self._posted

    def _place(self, rank: _Rank, place: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the location of a rank's tensors for other processes."""
        if "parcel" in place:  # an MPI message, which its rank sends
            return {"parcel": take(place, "parcel", int), "rank": rank.communicator.rank}
        if "segment" not in place:
            return {"inline": str(place.get("inline", "")), "rank": rank.communicator.rank}
        segment = rank.segments[place["segment"]]
        return {"path": segment.path, "size": segment.size, "offsets": list(place["offsets"])}

    # ------------------------------------------------------------------ collectives
    def opened(self, entry: _Entry) -> None:
        """Notify a member that its gate has opened or failed, once all members that reduce shares have done so."""
        if entry.answered or entry.rank in self.endings:
            return
        failure, found = entry.meeting.failure, entry.round
        if failure is not None:
            entry.answered = True
            self._send(entry.rank, kind="failed", m=entry.number, failure=encode_failure(failure))
            return
        time_ns = entry.meeting.open_ns()
        if time_ns is None:  # only some of the messages have come
            return
        if found is None:
            entry.answered = True
            letters = [self._letters[int(number)].tensor for number in self._letters_of(entry)]
            self._send(entry.rank, kind="open", m=entry.number, time=time_ns, letters=letters)
            return
        if found.reducing is None:
            found.reducing = set()
            if self._is_shared(found):
                self._gather(found)
        if not found.reducing:
            entry.answered = True
            members, terms = self._members(found, found.calls[entry.rank]), asdict(found.terms)
            self._send(
                entry.rank,
                kind="open",
                m=entry.number,
                time=time_ns,
                members=members,
                terms=terms,
                chunks=found.chunks,
            )

    def _letters_of(self, entry: _Entry) -> list[int]:
        """Return the numbers of the letters that a member has received."""
        return [int(number) for number in entry.meeting.results()]

    def _is_shared(self, found: _Round) -> bool:
        """Whether each member reduces a share of the elements, which pays for large tensors of equal shapes."""
        calls = [found.calls.get(number) for number in found.members]
        first = calls[0]
        if first is None or first.op != "AllReduce" or len(calls) < 2:
            return False
        if any(each is None or (each.tensors, each.reduce) != (first.tensors, first.reduce) for each in calls):
            return False
        if any("parcel" in place for place in found.places.values()):
            return False
        alive = not any(number in self.endings for number in found.members)
        return alive and _nbytes(first.tensors[0]) >= _SHARED

    def _gather(self, found: _Round) -> None:
        found.reducing = set(found.members)
        elements = prod(found.calls[found.members[0]].tensors[0][1])
        width = -(-elements // len(found.members))
        terms = asdict(found.terms)
        members = self._members(found, found.calls[found.members[0]])
        for at, number in enumerate(found.members):
            start, end = min(at * width, elements), min((at + 1) * width, elements)
            self._send(
                number,
                kind="gather",
                m=found.entries[number].number,
                members=members,
                terms=terms,
                start=start,
                end=end,
            )

    def _members(self, found: _Round, mine: Call) -> list[dict[str, Any]]:
        """Return calls and tensors of the members, for one of them; calls equal to its own are left out."""
        return [
            {
                "call": None if found.calls[number] == mine else encode_call(found.calls[number]),
                "place": found.places[number],
            }
            for number in found.members
        ]

    def _reduced(self, number: int, rank: _Rank, message: Mapping[str, Any]) -> None:
        entry = rank.entries[take(message, "m", int)]
        found = entry.round
        if found is None or found.reducing is None or number not in found.reducing:
            raise WireError("a reduced part that was not requested")
        if "segment" in message:
            segment = rank.segments[message["segment"]]
            place = {"path": segment.path, "size": segment.size}
            found.chunks.append({**place, "start": take(message, "start", int), "end": take(message, "end", int)})
        found.reducing.discard(number)
        self._reduce_ended(found)

    def _reduce_ended(self, found: _Round) -> None:
        if not found.reducing:
            for entry in list(found.entries.values()):
                self.opened(entry)

    def _left(self, number: int, rank: _Rank, message: Mapping[str, Any]) -> None:
        entry = rank.entries.pop(take(message, "m", int))
        entry.meeting.leave(take(message, "time", int))
        self._release(entry)

    def _abandon(self, number: int, rank: _Rank, message: Mapping[str, Any]) -> None:
        if message["call"] is not None:  # the task was dropped before it was the first of its stream
            self._entry(number, rank, message)
        entry = rank.entries.pop(take(message, "m", int))
        entry.answered = True
        entry.meeting.abandon(decode_failure(message["failure"]))
        self._release(entry)

    def _release(self, entry: _Entry) -> None:
        """Record that a member has finished reading; after the last one, free the tensors of all."""
        found = entry.round
        if found is None:
            for number in self._letters_of(entry) if entry.answered else ():
                sender = self._letters.pop(number).sender
                sender.letters.discard(number)
                if not sender.letters and sender.number not in self._ranks[sender.rank].entries:
                    self._free(sender)
            if not entry.letters:
                self._free(entry)
            return
        found.readers.discard(entry.rank)
        if found.readers or any(number not in found.entries and number not in self.endings for number in found.members):
            return
        for each in found.entries.values():
            self._free(each)
        del self._rounds[found.key]

    def _free(self, entry: _Entry) -> None:
        """Notify a member that nobody reads its tensors any longer."""
        if entry.rank not in self.endings:
            self._send(entry.rank, kind="free", m=entry.number)

    def _fail(self, number: int, rank: _Rank, message: Mapping[str, Any]) -> None:
        failure = decode_failure(message["failure"])
        self._scheduler.fail(number, failure)

    # ---------------------------------------------------------------------- ending
    def _wait(self, number: int, rank: _Rank, message: Mapping[str, Any]) -> None:
        rank.waits = take(message, "seen", int)
        rank.streams = take(message, "streams", list)[:_STREAMS]

    def _bye(self, number: int, rank: _Rank, message: Mapping[str, Any]) -> None:
        self.results[number] = message.get("result")
        self._send(number, kind="bye")
        if message.get("error") is None:
            kind = "stopped" if message.get("stopped") else "left"
            text = "its program was stopped" if kind == "stopped" else "its program has ended"
            self._end(number, Ending(kind=kind, text=text))
            return
        error = rebuild(message["error"])
        trace = message["error"].get("traceback")
        if isinstance(trace, str):
            error.add_note(f"the error in rank {number}, process {rank.pid}:\n{trace}")
        culprit = message.get("culprit")
        text = f"its program has raised {public_name(error)}: {error}"
        culprit = culprit if type(culprit) is int else None
        self._end(number, Ending(kind="failed", text=text, error=error, culprit=culprit))

    def _end(self, number: int, ending: Ending) -> None:
        rank = self._ranks[number]
        self.endings[number] = ending
        for entry in list(rank.entries.values()):
            found = entry.round
            if found is not None and found.reducing:  # each of the others reduces all elements itself
                found.reducing.clear()
                found.chunks.clear()
                self._reduce_ended(found)
            self._release(entry)
        rank.entries.clear()
        self._ended(number, ending)
        died = any(each.kind == "died" for each in self.endings.values())
        if ending.kind == "failed" and not (died and ending.culprit is not None):
            why = f"rank {number} has raised {public_name(ending.error)}"
            for at in range(len(self._ranks)):
                if at not in self.endings:
                    self._send(at, kind="stop", why=why)


def _filled(number: int, rank: _Rank, stream: list[Any]) -> list[Any]:
    """Return a waiting stream whose text names what its gate waits for."""

    def missing(match: "re.Match[str]") -> str:
        entry = rank.entries.get(int(match[1]))
        return "other ranks" if entry is None else entry.meeting.waits_for()

    _, stream_id, text, line = stream
    return [number, int(stream_id), _GATE.sub(missing, str(text)), _GATE.sub(missing, str(line))]


def _nbytes(tensor: tuple[str, tuple[int, ...]]) -> int:
    kind, shape = tensor
    return dtype(kind).nbytes(prod(shape))
