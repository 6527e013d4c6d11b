"""Shared memory without names: one process writes it, and others map it through the owner's descriptor.

A segment is anonymous memory (``memfd_create``). Other processes of the same user open it as ``/proc/PID/fd/N`` of the
owner. The kernel frees it when the last process that has it ends, in whatever way: a killed rank leaves no file.
"""

import mmap
import os
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dumpsim.core.dtype import dtype
from dumpsim.core.errors import BadInputError, UnreadableError

__all__ = ["Block", "Pool", "Reader", "Segment", "open_segment", "view"]

Array = npt.NDArray[np.generic]
_SMALLEST = 1 << 16
_ALIGNMENT = 64


class Segment:
    """Anonymous memory that this process has created or opened.

    Attributes
    ----------
    descriptor, size : int
    path : str
        The path by which other processes of the user can open it while this one runs.

    Examples
    --------
    >>> segment = Segment.create("example", 4096)
    >>> other = open_segment(segment.path, 4096)
    >>> segment.map(write=True)[:2] = b"hi"
    >>> other.map()[:2]
    b'hi'
    """

    def __init__(self, descriptor: int, size: int) -> None:
        self.descriptor = descriptor
        self.size = size
        self.path = f"/proc/{os.getpid()}/fd/{descriptor}"
        self._map: mmap.mmap | None = None

    @classmethod
    def create(cls, name: str, size: int) -> "Segment":
        """Return new memory, filled with zeros; `name` is shown in the list of the process's mappings."""
        descriptor = os.memfd_create(name, os.MFD_CLOEXEC)
        os.ftruncate(descriptor, size)
        return cls(descriptor, size)

    def map(self, *, write: bool = False) -> mmap.mmap:
        """Map the segment, and return the mapping."""
        if self._map is None:
            access = mmap.PROT_READ | (mmap.PROT_WRITE if write else 0)
            self._map = mmap.mmap(self.descriptor, self.size, mmap.MAP_SHARED, access)
        return self._map

    def close(self) -> None:
        """Close the descriptor; arrays in the memory stay valid."""
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1


def open_segment(path: str, size: int, *, write: bool = False) -> Segment:
    """Open a segment of another process.

    Raises
    ------
    UnreadableError
        If the process is gone or belongs to another user, or the segment is smaller.
    """
    try:
        descriptor = os.open(path, (os.O_RDWR if write else os.O_RDONLY) | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    except OSError as error:
        raise UnreadableError(f"shared memory of another rank cannot be opened: {error.strerror}", where=path) from None
    found = os.fstat(descriptor).st_size
    if found < size:
        os.close(descriptor)
        raise UnreadableError(f"the shared memory has {found} bytes", where=path, allowed=[f"{size} or more"])
    return Segment(descriptor, size)


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A part of a segment of a pool.

    Attributes
    ----------
    segment : int
        Number in the pool.
    size : int
    """

    segment: int
    size: int


class Pool:
    """The memory in which a rank publishes tensors: a segment for each message, reused when it is free again.

    Examples
    --------
    >>> pool = Pool()
    >>> block, offsets = pool.put([np.arange(3.0), np.ones(2, np.int8)])
    >>> offsets
    [0, 64]
    >>> pool.free(block)
    >>> pool.put([np.arange(9.0)])[0] == block
    True
    """

    def __init__(self) -> None:
        self.segments: list[Segment] = []
        self._unused: dict[int, list[Block]] = {}  # by size

    def reserve(self, size: int) -> Block:
        """Return a block of at least `size` bytes."""
        rounded = max(_SMALLEST, 1 << (size - 1).bit_length())
        unused = self._unused.setdefault(rounded, [])
        if unused:
            return unused.pop()
        self.segments.append(Segment.create("dumpsim tensors", rounded))
        return Block(segment=len(self.segments) - 1, size=rounded)

    def put(self, tensors: Sequence[Array]) -> tuple[Block, list[int]]:
        """Copy tensors into a block; return the block, and the offset of each tensor."""
        offsets, end = [], 0
        for tensor in tensors:
            offsets.append(end)
            end += -(-tensor.nbytes // _ALIGNMENT) * _ALIGNMENT
        block = self.reserve(end)
        for tensor, offset in zip(tensors, offsets, strict=True):
            self.write(block, offset, tensor)
        return block, offsets

    def write(self, block: Block, offset: int, tensor: Array) -> None:
        """Copy a tensor to an offset of a block."""
        memory = self.segments[block.segment].map(write=True)
        np.frombuffer(memory, tensor.dtype, tensor.size, offset)[:] = tensor.reshape(-1)

    def free(self, block: Block) -> None:
        """Free a block that nobody reads any longer."""
        self._unused[block.size].append(block)

    def close(self) -> None:
        """Free all memory."""
        for segment in self.segments:
            segment.close()


class Reader:
    """The segments of other ranks that this process has mapped."""

    def __init__(self) -> None:
        self._segments: dict[str, Segment] = {}

    def read(self, path: str, size: int, kind: str, shape: tuple[int, ...], offset: int) -> Array:
        """Return a tensor, read-only; it changes when its rank reuses the memory."""
        segment = self._segments.get(path)
        if segment is None:
            segment = self._segments[path] = open_segment(path, size)
            segment.map()
            segment.close()
        return view(segment.map(), kind, shape, offset)


def view(memory: "bytes | mmap.mmap", kind: str, shape: tuple[int, ...], offset: int = 0) -> Array:
    """Return the tensor at an offset of the memory.

    Raises
    ------
    BadInputError
        If it does not fit into the memory.
    """
    numbers = dtype(kind).numpy
    count = 1
    for length in shape:
        count *= length
    if offset < 0 or count < 0 or offset + count * numbers.itemsize > len(memory):
        raise BadInputError(f"{kind}{list(shape)} at {offset} does not fit", where=f"{len(memory)} bytes of a rank")
    found: Array = np.frombuffer(memory, numbers, count, offset).reshape(shape)
    return found
