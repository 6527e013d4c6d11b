"""A rank whose process reaches the others through the job's hub."""

import fcntl
import os
import select
import signal
import socket
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from threading import RLock
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from dumpsim.core.communicator import Call, Terms
from dumpsim.core.errors import BadInputError, DeviceError, PeerError
from dumpsim.core.gate import Failure, Waiter
from dumpsim.core.partname import machine
from dumpsim.device.scheduler import Scheduler, Waiting
from dumpsim.world.carrier import Carrier, SharedTensors
from dumpsim.world.collective import check_call
from dumpsim.world.cost import collective_ns, placement
from dumpsim.world.ending import RankStopped
from dumpsim.world.hub import LOCK_BYTES, Hub, endpoint
from dumpsim.world.membership import WORLD, WORLD_GROUPS, check_members
from dumpsim.world.reduction import folder
from dumpsim.world.segment import Segment, open_segment
from dumpsim.world.wire import (
    ADDRESS,
    LONGEST,
    TOKEN,
    Frames,
    WireError,
    decode_call,
    decode_failure,
    encode,
    encode_call,
    encode_error,
    encode_failure,
    rebuild,
)

__all__ = ["Client", "connect"]

Array = npt.NDArray[np.generic]

_RETRY_S = 0.02
_PARTING_S = 10.0


def connect(
    address: str = "",
    *,
    token: str = "",
    rank: int,
    size: int,
    timeout_s: float = 120.0,
    die: Callable[[], None] | None = None,
    carrier: Carrier | None = None,
    hub: Hub | None = None,
) -> "Client":
    """Connect this process to the hub of a job, as one of its ranks.

    Parameters
    ----------
    address, token : str
        By default those of the environment, ``DUMPSIM_HUB`` and ``DUMPSIM_HUB_TOKEN``.
    rank, size : int
    timeout_s : float
        How long to wait for a hub that does not listen yet.
    die : callable, optional
        Ends the process for the fault ``kill``; by default SIGKILL.
    carrier : Carrier, optional
        Carries the tensors; by default they are in shared memory.
    hub : Hub, optional
        The hub of the job, if this process serves it: it does so until all ranks have left.

    Raises
    ------
    BadInputError
        If the address is missing or invalid, or the hub refuses the rank: its token or number is wrong, or the rank is
        connected already.
    DeviceError
        If the hub cannot be reached.
    """
    address = address or os.environ.get(ADDRESS, "")
    token = token or os.environ.get(TOKEN, "")
    if not 0 <= rank < size:
        raise BadInputError(
            f"rank {rank} is outside of a job of {size} ranks", where="RANK_ID", allowed=[f"0 to {size - 1}"]
        )
    family, place = endpoint(address)
    until = time.monotonic() + timeout_s
    while True:
        reached = socket.socket(family, socket.SOCK_STREAM)
        try:
            reached.connect(place)
        except OSError as error:
            reached.close()
            if time.monotonic() > until:
                raise DeviceError(
                    f"cannot reach the hub of the job at {address} within {timeout_s:g} s: {error.strerror}",
                    where=f"rank {rank}",
                ) from error
            time.sleep(_RETRY_S)
        else:
            break
    if family != socket.AF_UNIX:
        reached.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    client = Client(reached, address, rank, size, die, carrier, hub)
    try:
        client._greet(token)
    except BaseException:
        reached.close()
        raise
    return client


class Client:
    """The job as a rank with a process of its own sees it; a `Communicator`, made by `connect`.

    Attributes
    ----------
    rank, size : int
    local_ranks : tuple of int
    scheduler : Scheduler
        Of this process: it waits for other ranks through the hub.
    """

    def __init__(
        self,
        reached: socket.socket,
        address: str,
        rank: int,
        size: int,
        die: Callable[[], None] | None = None,
        carrier: Carrier | None = None,
        hub: Hub | None = None,
    ) -> None:
        self.rank = rank
        self.size = size
        self.local_ranks = tuple(range(size))
        self.address = address
        self.scheduler = Scheduler(_Hosts(self))
        self._socket = reached
        self._frames = Frames(LONGEST)
        self._inbox: list[dict[str, Any]] = []
        self._seen = 0  # messages received from the hub
        self._terms = Terms()
        self._groups: dict[str, RemoteGroup] = {}
        self._created = 0
        self._meetings: dict[int, RemoteMeeting] = {}
        self._count = 0  # of meetings
        self._carrier: Carrier = SharedTensors(self._send) if carrier is None else carrier
        self._hub = hub
        self._dead: dict[int, str] = {}  # of a job on several machines
        self._stop: str | None = None
        self._more = False  # the hub's last message belongs to a batch that is not complete
        self._reducing: set[int] = set()  # meetings for which this rank has reduced its share
        self._elsewhere: list[Waiting] = []  # for the deadlock report
        self._ended: list[str] = []
        self._entered = self._left = False
        self._locks: Segment | None = None
        self._lock = RLock()
        self._die = die
        self._pid = os.getpid()

    def _greet(self, token: str) -> None:
        hello = {"token": token, "rank": self.rank, "size": self.size, "pid": self._pid, "machine": machine()}
        self._send("hello", **hello)
        answer = self._next()
        if answer["kind"] == "refused":
            raise rebuild(answer["error"])
        if answer["locks"]:
            self._locks = open_segment(answer["locks"], LOCK_BYTES + self.size, write=True)
            fcntl.lockf(self._locks.descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, LOCK_BYTES + self.rank)
        self._send("locked")
        self._groups[WORLD] = RemoteGroup(self, WORLD, tuple(range(self.size)), 0)
        self.scheduler.enlist([self.rank], self)

    # ----------------------------------------------------------------- protocol
    @property
    def terms(self) -> Terms:
        """Settings of collectives that follow from the environment and chip of the rank."""
        return self._terms

    @terms.setter
    def terms(self, terms: Terms) -> None:
        if terms != self._terms:
            self._terms = terms
            self._send("terms", **asdict(terms))

    def enter(self) -> None:
        """Wait until all ranks have entered the job; a second call does nothing."""
        if self._entered:
            return
        self._send("enter")
        while not self._entered:
            self._block([])

    def group(self, name: str) -> "RemoteGroup":
        """The group of that name."""
        found = self._groups.get(WORLD_GROUPS.get(name, name))
        if found is None:
            raise BadInputError(
                f"rank {self.rank} has created no group {name!r}", where="group", allowed=[*self._groups]
            )
        return found

    def create(self, name: str, members: Sequence[int]) -> "RemoteGroup":
        """Create a group of which this rank is a member."""
        check_members(name, members, self.rank, self.size, self._groups)
        self._ask("create", name=name, members=list(members))
        self._created += 1
        found = self._groups[name] = RemoteGroup(self, name, tuple(members), self._created)
        return found

    def destroy(self, name: str) -> None:
        """Destroy a group."""
        self._ask("destroy", name=name)
        del self._groups[name]

    def leave(self, error: BaseException | None = None) -> None:
        """End this rank's part in the job; with an error, its groups fail."""
        self.depart(error)

    def depart(self, error: BaseException | None = None, *, result: Any = None) -> Mapping[int, Any] | None:
        """End this rank's part in the job; with an error, its groups fail.

        `result`, a JSON value, is stored by the hub for the launcher of the job. If this process serves the hub, it
        waits for the other ranks and returns their results.
        """
        if self._left or os.getpid() != self._pid:  # a forked child is not the rank
            return None
        self._left = True
        fields: dict[str, Any] = {"result": result, "stopped": isinstance(error, RankStopped)}
        if error is not None and not isinstance(error, RankStopped):
            fields["error"] = encode_error(error, trace=True)
            fields["culprit"] = getattr(error, "rank", None)
        with suppress(DeviceError, OSError):  # the hub may be gone
            self._socket.settimeout(_PARTING_S)
            self._send("bye", **fields)
            while self._next()["kind"] != "bye":
                pass
        self._socket.close()
        self._carrier.close()
        if self._locks is not None:
            self._locks.close()
        if self._hub is not None:
            self._hub.wait(None)
            self._hub.close()
            return self._hub.results
        return None

    def look(self, ranks: Sequence[int]) -> None:
        """Handle the messages that have arrived.

        Raises
        ------
        RankStopped, PeerError
            If the job has ended, or one of these ranks has died.
        """
        with self._lock:
            while select.select([self._socket], [], [], 0)[0]:
                received = self._socket.recv(1 << 18)
                if not received:
                    raise self._lost(None)
                self._inbox += self._frames.feed(received)
            while self._inbox:
                self._take(self._next())
        for rank in ranks:
            if rank in self._dead:
                raise PeerError(f"rank {rank} has died in a collective: {self._dead[rank]}", rank=rank)
        if self._stop is not None:
            raise RankStopped(f"rank {self.rank} is stopped: {self._stop}")

    def finish(self) -> None:
        """Leave the job at the end of the process, after the device's tasks, unless the script has raised an error."""
        error = getattr(sys, "last_value", None)
        try:
            if error is None and not self._left:
                self.scheduler.finish(self.rank)
        except BaseException as raised:
            error = raised
            raise
        finally:
            self.leave(error)

    def wait(self) -> bool:
        """Block until the hub has sent something; False if no rank can progress any longer."""
        return self._block(self.scheduler.waiting())

    def die(self, why: str) -> NoReturn:
        """End the process as a signal would, without notifying the hub."""
        if self._die is not None:
            self._die()
        os.kill(os.getpid(), signal.SIGKILL)
        raise DeviceError(f"the process of rank {self.rank} has survived SIGKILL: {why}")

    def fail(self, failure: Failure) -> None:
        """Notify the hub that the rank's device has stopped, which fails its groups."""
        self._send("fail", failure=encode_failure(failure))

    # ----------------------------------------------------------------- messages
    def _send(self, kind: str, **fields: Any) -> None:
        with self._lock:
            try:
                self._socket.sendall(encode({"kind": kind, **fields}))
            except OSError as error:
                raise self._lost(error) from None

    def _lost(self, error: OSError | None) -> DeviceError:
        reason = "" if error is None else f" ({error.strerror})"
        return DeviceError(
            f"the hub of the job at {self.address} has ended{reason}: rank {self.rank} cannot reach the other ranks"
        )

    def _next(self) -> dict[str, Any]:
        """Wait for the next message and return it."""
        while not self._inbox:
            try:
                received = self._socket.recv(1 << 18)
            except ConnectionError as error:
                raise self._lost(error) from None
            if not received:
                raise self._lost(None)
            self._inbox += self._frames.feed(received)
        self._seen += 1
        return self._inbox.pop(0)

    def _ask(self, kind: str, **fields: Any) -> None:
        """Send, and wait for the answer."""
        self._send(kind, **fields)
        while True:
            message = self._next()
            if message["kind"] == "answer":
                if message["error"] is not None:
                    raise rebuild(message["error"])
                return
            self._take(message)

    def _block(self, waiting: Sequence[Waiting]) -> bool:
        """Report the streams that wait to the hub, and wait for messages."""
        with self._lock:
            if self._stop is None and not self._inbox:
                self._send("wait", seen=self._seen, streams=list(waiting))
            going = True
            if self._stop is None:
                going = self._take(self._next())
                while self._stop is None and (self._inbox or self._more or self._reducing):
                    going = self._take(self._next()) and going
            if self._stop is not None:
                if self.scheduler.failed(self.rank):
                    return True
                raise RankStopped(f"rank {self.rank} is stopped: {self._stop}")
            return going

    def _take(self, message: Mapping[str, Any]) -> bool:
        """Handle a message of the hub; return False for the report of a deadlock."""
        kind = message["kind"]
        self._more = bool(message.get("more"))
        if kind == "turn":
            return True
        if kind in ("open", "gather", "failed", "free"):
            meeting = self._meetings[message["m"]]
            getattr(meeting, f"_take_{kind}")(message)
        elif kind == "entered":
            if message["error"] is not None:
                raise rebuild(message["error"])
            self._entered = True
        elif kind == "stop":
            self._stop = message["why"]
        elif kind == "died":
            self._dead[message["rank"]] = message["why"]
        elif kind == "deadlock":
            self._elsewhere = [(rank, number, text, line) for rank, number, text, line in message["streams"]]
            self._ended = message["ended"]
            for number, missing in message["missing"].items():
                meeting = self._meetings[int(number)]
                meeting.missing, meeting.stuck = missing, message["stuck"].get(number)
            return False
        else:
            raise WireError(f"unknown message {kind!r} of the hub")
        return True


class _Hosts:
    """The rank of this process, as its scheduler sees it."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def switch(self, rank: int) -> bool:
        """Wait for the hub."""
        return self._client.wait()

    def wake(self, rank: int) -> None:
        """Do nothing: the rank finds the ready task after its wait."""

    def run_as(self, rank: int, function: Callable[[int], None], argument: int) -> None:
        """Call a function; this process has one rank."""
        function(argument)

    def elsewhere(self) -> Sequence[Waiting]:
        """Waiting streams of the other ranks."""
        return self._client._elsewhere

    def report(self) -> Sequence[str]:
        """Return how the ranks that have ended did so."""
        return self._client._ended


class RemoteGroup:
    """A group, as a rank with a process of its own sees it."""

    def __init__(self, client: Client, name: str, members: tuple[int, ...], number: int) -> None:
        self.name = name
        self.members = members
        self.rank = members.index(client.rank)
        self.number = number
        self._client = client
        self._place = placement(members)
        self._index = 0  # of its next collective
        self._calls: dict[str, int] = {}  # by type

    def join(self, call: Call, offer: Callable[[], Sequence[Array]]) -> "RemoteMeeting":
        """Return the gate of the member's next collective."""
        found = check_call(call, len(self.members))
        client = self._client
        client._count += 1
        number = self._index
        if found.shares is not None:
            self._index += 1
        nth = self._calls[call.op] = self._calls.get(call.op, -1) + 1
        tag = f"{call.op}_{self.name}_{nth}"
        meeting = client._meetings[client._count] = RemoteMeeting(client, self, client._count, number, tag, call, offer)
        return meeting

    def cost_ns(self, call: Call) -> int:
        """Duration on the virtual clock."""
        return collective_ns(call, len(self.members), self._place)


class RemoteMeeting:
    """One collective of a group whose members are processes."""

    def __init__(
        self,
        client: Client,
        group: RemoteGroup,
        number: int,
        index: int,
        tag: str,
        call: Call,
        offer: Callable[[], Sequence[Array]],
    ) -> None:
        self.tag = tag
        self.missing = ""
        self.stuck: Mapping[str, Any] | None = None
        self.failure: Failure | None = None
        self._client = client
        self._group = group
        self._number = number
        self._index = index
        self._call = call
        self._offer = offer
        self._waiter: Waiter | None = None
        self._handle: Any = None  # of the published tensors, until nobody reads them
        self._opened_ns: int | None = None
        self._members: Sequence[Mapping[str, Any]] = ()
        self._letters: Sequence[Mapping[str, Any]] = ()
        self._chunks: Sequence[Mapping[str, Any]] = ()
        self._terms = Terms()
        self._entered = False

    # --------------------------------------------------------------------- gate
    def enter(self, waiter: Waiter, time_ns: int) -> None:
        """Publish the member's tensors, and notify the hub."""
        self._waiter = waiter
        self._entered = True
        tensors = self._offer() if self._call.tensors else ()
        fields: Mapping[str, Any] = {}
        if tensors:
            target = self._group.members[self._call.root] if self._call.op == "Send" else None
            fields, self._handle = self._client._carrier.publish(tensors, target)
        call = encode_call(self._call)
        self._client._send("join", m=self._number, group=self._group.name, call=call, time=time_ns, place=fields)

    def open_ns(self) -> int | None:
        """Time at which the last member has entered, or that of the failure."""
        return self._opened_ns if self.failure is None else self.failure.time_ns

    def leave(self, time_ns: int) -> None:
        """The member's task has run."""
        self._client._send("left", m=self._number, time=time_ns)

    def abandon(self, failure: Failure) -> None:
        """The member's task was dropped."""
        fields: dict[str, Any] = {"m": self._number, "failure": encode_failure(failure), "call": None}
        if not self._entered:
            fields |= {"call": encode_call(self._call), "group": self._group.name, "place": {}}
        self._client._send("abandon", **fields)

    def waits_for(self) -> str:
        """Return what is missing; a placeholder that the hub replaces, unless it has reported it."""
        return self.missing or f"\0{self._number}\0"

    def give_up(self, report: str) -> Failure | None:
        """Return the failure of a deadlock, if the hub has reported one."""
        if self.stuck is None:
            return None
        failure = decode_failure(self.stuck)
        failure.error.__notes__ = [report]
        return failure

    # ------------------------------------------------------------------ results
    def results(self) -> Sequence[Array]:
        """Return what the member gets."""
        carrier = self._client._carrier
        if self._letters:
            return [carrier.letter(each["type"], tuple(each["shape"]), each["place"]) for each in self._letters]
        if not self._members:
            return []
        calls = [self._call if each["call"] is None else decode_call(each["call"]) for each in self._members]
        places = [each["place"] for each in self._members]
        return carrier.collect(calls, places, self._group.rank, self._fold(), self._chunks)

    def _fold(self) -> Callable[..., Array]:
        return folder(self._terms, self._group.name, self._index)

    # ----------------------------------------------------------------- messages
    def _take_gather(self, message: Mapping[str, Any]) -> None:
        """Reduce this member's share of the elements, after all members have published theirs."""
        start, end = message["start"], message["end"]
        self._terms = Terms(**message["terms"])
        places = [each["place"] for each in message["members"]]
        fields = self._client._carrier.reduce(self._call, places, self._fold(), start, end, self._handle)
        self._client._reducing.add(self._number)
        self._client._send("reduced", m=self._number, start=start, end=end, **fields)

    def _take_open(self, message: Mapping[str, Any]) -> None:
        self._client._reducing.discard(self._number)
        self._opened_ns = message["time"]
        self._letters = message.get("letters", ())
        self._members = message.get("members", ())
        self._chunks = message.get("chunks", ())
        self._terms = Terms(**message.get("terms", {}))
        assert self._waiter is not None
        self._waiter.wake()

    def _take_failed(self, message: Mapping[str, Any]) -> None:
        self._client._reducing.discard(self._number)
        self.failure = decode_failure(message["failure"])
        assert self._waiter is not None
        self._waiter.wake()

    def _take_free(self, message: Mapping[str, Any]) -> None:
        """Free the member's tensors, which nobody reads any longer."""
        self._client._carrier.free(self._handle)
        del self._client._meetings[self._number]
