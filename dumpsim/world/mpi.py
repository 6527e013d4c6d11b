"""The MPI transport: control messages go through the job's hub in the process of rank 0, tensors are MPI messages.

The ranks may run on several machines: ``mpirun -n 4 dumpsim run --transport mpi SCRIPT``.
"""

import socket
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from dumpsim.core.communicator import Call
from dumpsim.core.dtype import dtype
from dumpsim.core.errors import UnsupportedError
from dumpsim.world.client import Client, connect
from dumpsim.world.collective import collective, results
from dumpsim.world.exchange import Ending
from dumpsim.world.hub import Hub

__all__ = ["MpiTensors", "connect_mpi"]

Array = npt.NDArray[Any]
Place = Mapping[str, Any]

_POLL_S = 20e-6  # between two checks for messages, since several ranks may share a core
_CLOSE_S = 5.0  # for pending messages to arrive
_PHASES = 2  # messages of one number from a rank to another one


def connect_mpi() -> Client:
    """Connect this process to the hub of the MPI job that has started it.

    Raises
    ------
    UnsupportedError
        If `mpi4py` or an MPI library is missing.
    DeviceError
        If the hub in the process of rank 0 cannot be reached.
    """
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:  # RuntimeError: there is no MPI library
        raise UnsupportedError(
            f"it needs the extra mpi and an MPI library ({error})", where="--transport mpi"
        ) from error
    world = MPI.COMM_WORLD
    hub = Hub(world.size, address=f"{_address()}:0", spread=True, report=_report) if world.rank == 0 else None
    if hub is not None:
        hub.start()
    address, token = world.bcast(None if hub is None else (hub.address, hub.token))
    names = world.allgather(MPI.Get_processor_name())
    carrier = MpiTensors(world)
    client = connect(address, token=token, rank=world.rank, size=world.size, carrier=carrier, hub=hub)
    client.local_ranks = tuple(rank for rank, name in enumerate(names) if name == names[world.rank])
    carrier.look = client.look
    return client


def _report(rank: int, ending: Ending) -> None:
    """Name a rank whose process is gone, before mpirun ends the others."""
    if ending.kind == "died":
        print(f"dumpsim: rank {rank}: {ending.text}", file=sys.stderr, flush=True)


def _address() -> str:
    """Return an address of this machine that others can reach; the loopback address if it has none."""
    try:
        return socket.gethostbyname(socket.gethostname())
    except OSError:
        return "127.0.0.1"


class MpiTensors:
    """Tensors as messages between the processes of an MPI job, see `dumpsim.world.carrier.Carrier`.

    A reduction takes two steps: each member reduces its share of the elements, which the others have sent to it, and
    sends the result to the members that need it. Data that one member needs is sent to that member only.

    Parameters
    ----------
    world : mpi4py.MPI.Intracomm

    Attributes
    ----------
    look : callable
        ``look(ranks)`` is called repeatedly during a wait for these ranks; it raises if one of them has died.
    """

    def __init__(self, world: Any) -> None:
        from mpi4py import MPI

        self.look: Callable[[Sequence[int]], None] = lambda ranks: None
        self._world = world.Dup()
        self._rank = world.rank
        self._byte = MPI.BYTE
        self._tags = int(world.Get_attr(MPI.TAG_UB)) // _PHASES
        self._published: dict[int, list[Array]] = {}
        self._number = 0
        self._sending: list[tuple[Any, Array]] = []

    def publish(self, tensors: Sequence[Array], target: int | None) -> tuple[Place, int]:
        """Store copies of tensors; send the first one if it has a target."""
        self._number += 1
        copies = [np.array(tensor, order="C") for tensor in tensors]
        self._published[self._number] = copies
        if target is not None:
            self._send(target, self._number, copies[0])
        return {"parcel": self._number, "rank": self._rank}, self._number

    def letter(self, kind: str, shape: tuple[int, ...], place: Place) -> Array:
        """Return the tensor that another rank has sent to this one, read-only."""
        found = np.empty(shape, dtype(kind).numpy)
        self._receive([(place["rank"], place["parcel"], found)])
        found.flags.writeable = False
        return found

    def collect(
        self,
        calls: Sequence[Call],
        places: Sequence[Place],
        own: int,
        fold: Callable[..., Array],
        chunks: Sequence[Mapping[str, Any]],
    ) -> Sequence[Array]:
        """Return what this member gets from a collective."""
        call = calls[own]
        found = collective(call.op)
        mine = self._published[places[own]["parcel"]] if "parcel" in places[own] else []
        agreed = all(each.tensors == call.tensors for each in calls)
        if agreed and found.reduces and len(calls) > 1:
            return [_read_only(array) for array in self._reduced(call, places, own, mine[0], fold)]
        if call.sends and call.receives and not found.reduces:
            return [_read_only(self._exchanged(calls, places, own, mine[0]))]
        sources = [call.root] if call.op in ("Broadcast", "CollectiveScatter") else range(len(calls))
        targets = [call.root] if call.op == "CollectiveGather" else range(len(calls))
        if own in sources:
            for target in targets:
                if target != own:
                    for tensor in mine:
                        self._send(places[target]["rank"], places[own]["parcel"], tensor)
        if own not in targets:
            return []
        tensors = [
            mine if at == own else [_empty(*tensor) for tensor in each.tensors] if at in sources else []
            for at, each in enumerate(calls)
        ]
        self._receive(
            [
                (places[at]["rank"], places[at]["parcel"], tensor)
                for at, each in enumerate(tensors)
                if at != own
                for tensor in each
            ]
        )
        return results(calls, tensors, fold)[own]

    def reduce(
        self, call: Call, places: Sequence[Place], fold: Callable[..., Array], start: int, end: int, handle: Any
    ) -> Place:
        """Never called: the hub asks for shares of tensors in shared memory only."""
        raise AssertionError("the shares of a reduction are MPI messages")

    def free(self, handle: Any) -> None:
        """Free tensors that nobody reads any longer."""
        self._published.pop(handle, None)

    def close(self) -> None:
        """Wait until all messages have arrived, but not for long: ranks may be gone."""
        until = time.monotonic() + _CLOSE_S
        while self._pending() and time.monotonic() < until:
            time.sleep(_POLL_S)
        for request, _ in self._sending:
            request.Cancel()

    # ------------------------------------------------------------------- steps
    def _reduced(
        self, call: Call, places: Sequence[Place], own: int, mine: Array, fold: Callable[..., Array]
    ) -> list[Array]:
        """Reduce this member's share, and exchange the shares with the members that need them."""
        flat, members = mine.reshape(-1), len(places)
        bounds = _shares(call, flat.size, members)
        self._spread(places, own, lambda at: flat[bounds[at] : bounds[at + 1]])
        start, end = bounds[own], bounds[own + 1]
        terms = [flat[start:end] if at == own else np.empty(end - start, flat.dtype) for at in range(members)]
        self._gather(places, own, terms)
        part = np.ascontiguousarray(fold(terms, call.reduce, start=start, total=flat.size))
        if call.op == "ReduceScatterV":
            return [part]
        if call.op == "ReduceScatter":
            return [part.reshape(mine.shape[0] // members, *mine.shape[1:])]
        targets = [call.root] if call.op == "Reduce" else range(members)
        self._spread(places, own, lambda at: part if at in targets else None, phase=1)
        if own not in targets:
            return []
        total = np.empty_like(flat)
        parts = [total[bounds[at] : bounds[at + 1]] for at in range(members)]
        parts[own][:] = part
        self._gather(places, own, parts, phase=1)
        return [total.reshape(mine.shape)]

    def _exchanged(self, calls: Sequence[Call], places: Sequence[Place], own: int, mine: Array) -> Array:
        """Exchange pieces whose sizes the calls state."""
        flat = mine.reshape(-1)
        begins = np.cumsum((0, *calls[own].sends))
        pieces = [flat[begins[at] : begins[at + 1]] for at in range(len(calls))]
        self._spread(places, own, lambda at: pieces[at])
        found = [pieces[own] if at == own else np.empty(each.sends[own], flat.dtype) for at, each in enumerate(calls)]
        self._gather(places, own, found)
        return np.concatenate(found)

    def _spread(
        self, places: Sequence[Place], own: int, piece: Callable[[int], Array | None], *, phase: int = 0
    ) -> None:
        """Send each member its piece."""
        for at, place in enumerate(places):
            content = None if at == own else piece(at)
            if content is not None and content.size:
                self._send(place["rank"], places[own]["parcel"], content, phase=phase)

    def _gather(self, places: Sequence[Place], own: int, into: Sequence[Array], *, phase: int = 0) -> None:
        """Receive each member's piece."""
        expected = [
            (place["rank"], place["parcel"], array)
            for at, (place, array) in enumerate(zip(places, into, strict=True))
            if at != own and array.size
        ]
        self._receive(expected, phase=phase)

    # ---------------------------------------------------------------- messages
    def _send(self, rank: int, number: int, content: Array, *, phase: int = 0) -> None:
        """Start sending `content`, which nobody changes."""
        raw = np.ascontiguousarray(content).reshape(-1).view(np.uint8)
        self._pending()
        request = self._world.Isend([raw, raw.size, self._byte], dest=rank, tag=self._tag(number, phase))
        self._sending.append((request, raw))

    def _receive(self, expected: Sequence[tuple[int, int, Array]], *, phase: int = 0) -> None:
        """Receive messages, given by rank and number, into contiguous arrays."""
        pending = []
        for rank, number, into in expected:
            raw = into.reshape(-1).view(np.uint8)
            request = self._world.Irecv([raw, raw.size, self._byte], source=rank, tag=self._tag(number, phase))
            pending.append((rank, request))
        try:
            while pending := [(rank, request) for rank, request in pending if not request.Test()]:
                self.look([rank for rank, _ in pending])
                time.sleep(_POLL_S)
        except BaseException:
            for _, request in pending:
                request.Cancel()
            raise

    def _pending(self) -> bool:
        """Whether a message has not arrived yet."""
        self._sending = [each for each in self._sending if not each[0].Test()]
        return bool(self._sending)

    def _tag(self, number: int, phase: int) -> int:
        return number % self._tags * _PHASES + phase


def _shares(call: Call, elements: int, members: int) -> list[int]:
    """Return the boundaries of the members' shares of the elements."""
    if call.op == "ReduceScatterV":
        return [int(at) for at in np.cumsum((0, *call.sends))]
    width = -(-elements // members)
    return [min(at * width, elements) for at in range(members + 1)]


def _empty(kind: str, shape: tuple[int, ...]) -> Array:
    return np.empty(prod(shape), dtype(kind).numpy).reshape(shape)


def _read_only(array: Array) -> Array:
    found = array.view()
    found.flags.writeable = False
    return found
