"""How tensors reach other processes: through shared memory, read in place."""

from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from dumpsim.core.communicator import Call
from dumpsim.world.collective import results
from dumpsim.world.segment import Block, Pool, Reader, view

__all__ = ["Carrier", "SharedTensors"]

Array = npt.NDArray[np.generic]
Place = Mapping[str, Any]

_INLINE = 1 << 10  # bytes of tensors that travel with the message


class Carrier(Protocol):
    """Carries the tensors of a rank's collectives; the hub passes on their locations only."""

    def publish(self, tensors: Sequence[Array], target: int | None) -> tuple[Place, Any]:
        """Make tensors available to one rank or to all; return their location, and a handle for `free`."""
        ...

    def letter(self, kind: str, shape: tuple[int, ...], place: Place) -> Array:
        """Return the tensor that another rank has sent to this one, read-only."""
        ...

    def collect(
        self,
        calls: Sequence[Call],
        places: Sequence[Place],
        own: int,
        fold: Callable[..., Array],
        chunks: Sequence[Mapping[str, Any]],
    ) -> Sequence[Array]:
        """Return what this member gets from a collective.

        Parameters
        ----------
        calls, places : sequence
            Of all members, in the order of the group.
        own : int
            The member's index in the group.
        fold : callable
            See `dumpsim.world.reduction.folder`.
        chunks : sequence of mapping
            Locations of the parts of the sum that the members have reduced; empty if they have reduced none.
        """
        ...

    def reduce(
        self, call: Call, places: Sequence[Place], fold: Callable[..., Array], start: int, end: int, handle: Any
    ) -> Place:
        """Reduce a share of the elements of all members and publish it; return its location."""
        ...

    def free(self, handle: Any) -> None:
        """Free tensors that nobody reads any longer."""
        ...

    def close(self) -> None:
        """Free all memory."""
        ...


class SharedTensors:
    """Tensors in memory that the processes of a machine share.

    Parameters
    ----------
    send : callable
        ``send(kind, **fields)`` notifies the hub of a new segment.
    """

    def __init__(self, send: Callable[..., None]) -> None:
        self._send = send
        self._pool = Pool()
        self._announced = 0
        self._reader = Reader()

    def publish(self, tensors: Sequence[Array], target: int | None) -> tuple[Place, list[Block]]:
        """Copy tensors to memory that other processes can read, small ones into the message itself."""
        if sum(tensor.nbytes for tensor in tensors) <= _INLINE:
            joined = b"".join(np.ascontiguousarray(tensor).tobytes() for tensor in tensors)
            return {"inline": b64encode(joined).decode()}, []
        block, offsets = self._pool.put(tensors)
        self._announce()
        return {"segment": block.segment, "offsets": offsets}, [block]

    def letter(self, kind: str, shape: tuple[int, ...], place: Place) -> Array:
        """Return the tensor that another rank has sent to this one, read-only."""
        offset = place["offsets"][0]
        if "inline" in place:
            found = view(b64decode(place["inline"]), kind, shape, offset).copy()
        else:
            found = self._reader.read(place["path"], place["size"], kind, shape, offset).copy()
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

        def whole(terms: Sequence[Array], reduce: str) -> Array:
            """Join the parts of the sum that the members have computed."""
            found = np.empty_like(terms[0])
            flat = found.reshape(-1)
            kind = calls[own].tensors[0][0]
            for chunk in chunks:
                start, end = chunk["start"], chunk["end"]
                flat[start:end] = self._reader.read(chunk["path"], chunk["size"], kind, (end - start,), 0)
            return found

        tensors = [self._read(call, place) for call, place in zip(calls, places, strict=True)]
        return results(calls, tensors, whole if chunks else fold)[own]

    def reduce(
        self, call: Call, places: Sequence[Place], fold: Callable[..., Array], start: int, end: int, handle: Any
    ) -> Place:
        """Reduce a share of the elements of all members and publish it; return its location."""
        if start >= end:
            return {}
        terms = [self._read(call, place)[0].reshape(-1)[start:end] for place in places]
        part = fold(terms, call.reduce, start=start, total=prod(call.tensors[0][1]))
        block, _ = self._pool.put([part])
        handle.append(block)
        self._announce()
        return {"segment": block.segment}

    def free(self, handle: Any) -> None:
        """Free tensors that nobody reads any longer."""
        for block in handle or ():
            self._pool.free(block)

    def close(self) -> None:
        """Free all memory."""
        self._pool.close()

    def _announce(self) -> None:
        """Notify the hub of new segments."""
        while self._announced < len(self._pool.segments):
            segment = self._pool.segments[self._announced]
            self._send("segment", descriptor=segment.descriptor, size=segment.size)
            self._announced += 1

    def _read(self, call: Call, place: Place) -> list[Array]:
        """The tensors of a member."""
        if "inline" in place:
            memory, found, at = b64decode(place["inline"]), [], 0
            for kind, shape in call.tensors:
                found.append(view(memory, kind, shape, at))
                at += found[-1].nbytes
            return found
        return [
            self._reader.read(place["path"], place["size"], kind, shape, offset)
            for (kind, shape), offset in zip(call.tensors, place["offsets"], strict=True)
        ]
