"""Device memory: real bytes with addresses, blocks with lifetimes, and writes that may overwrite neighbours."""

from bisect import bisect_right, insort
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Protocol

import numpy as np
import numpy.typing as npt

from dumpsim.core.errors import BadInputError, DeviceError, OutOfMemoryError, UnknownValueError
from dumpsim.device.arena import Arena, Bytes
from dumpsim.device.shared import SharedRanges
from dumpsim.device.space import BLOCK_RULES, BlockRule, Space

__all__ = ["BASE_ADDRESS", "FILL", "Buffer", "Memory"]

BASE_ADDRESS = 0x1240_8000_0000
_REPORTED = 12  # blocks in a report
_NO_PARTS: "Mapping[int, Buffer]" = MappingProxyType({})
FILL = 0xCD  # content of a fresh block, so that reads of uninitialised memory are visible


class Holder(Protocol):
    """The host value of a buffer, which may share its bytes."""

    def publish(self) -> None:
        """Notify that the bytes of the buffer are at another location now."""
        ...


@dataclass(eq=False, slots=True, kw_only=True)
class Buffer:
    """The memory of a tensor on the device.

    Attributes
    ----------
    address, size : int
        Address of the first byte, and number of logical bytes.
    alloc_size : int
        Bytes from `address` to the end of its block's usable part.
    owner : str
        Full name of the producing node, or parameter name.
    kind : str
        ``weight``, ``input``, ``constant``, ``activation``, ``workspace`` or ``tensor``.
    born, dead : int or None
        Lifetime as positions in the execution order (planned buffers) or in ns (blocks); `dead` is
        None while alive.
    version : int
        Serial number of the last write to it, unique in its memory.
    fresh : bool
        Whether the block, or a part of it, was never used before.
    parts : mapping of int to Buffer
        The live buffers planned inside this one (a workspace), by their number in the plan.
    holder : Holder or None
        The host value that shares the bytes; its `publish` is called when they are no longer shared.
    """

    memory: "Memory"
    address: int
    size: int
    alloc_size: int
    owner: str = ""
    kind: str = "tensor"
    born: int = 0
    dead: int | None = None
    version: int = 0
    block: int = -1
    fresh: bool = False
    parts: "Mapping[int, Buffer]" = field(default_factory=lambda: _NO_PARTS)
    holder: Holder | None = None

    @property
    def end(self) -> int:
        """Address after the last logical byte."""
        return self.address + self.size

    @property
    def shared(self) -> Bytes | None:
        """The read-only array that replaces the bytes, None if the buffer has bytes of its own."""
        return self.memory.shared(self.address, self.size)

    def bytes(self) -> Bytes:
        """Return the logical bytes as a view of memory; read-only if they are shared."""
        return self.memory.read(self.address, self.size)

    def share(self, data: Bytes) -> None:
        """Let a read-only array replace the logical bytes until they are written."""
        if data.size != self.size:
            raise BadInputError(f"{data.size} bytes do not fill a buffer of {self.size} bytes", where=self.owner)
        self.memory.share(self.address, data)
        self.touch()

    def own(self) -> None:
        """Copy shared bytes to the buffer's own memory before some of them are written (copy on write)."""
        if self.memory.own(self.address, self.size) and self.holder is not None:
            self.holder.publish()

    def drop(self, nbytes: int) -> None:
        """Stop sharing the first `nbytes` without copying them, because all of them are about to be written."""
        if self.memory.drop(self.address, nbytes) and self.holder is not None:
            self.holder.publish()

    def array(self, dtype: "np.dtype[np.generic]", shape: tuple[int, ...]) -> npt.NDArray[np.generic]:
        """Return the bytes as an array of that type and shape, as a view of memory."""
        return self.bytes().view(dtype).reshape(shape)

    def touch(self) -> None:
        """Start a new version, after the bytes were written through a view."""
        self.version = self.memory.next_version()

    def write(self, data: npt.NDArray[np.generic]) -> None:
        """Overwrite the logical bytes with those of a C-contiguous array."""
        flat = np.ascontiguousarray(data).reshape(-1).view(np.uint8)
        if flat.size != self.size:
            raise BadInputError(f"{flat.size} bytes do not fill a buffer of {self.size} bytes", where=self.owner)
        self.drop(self.size)
        self.bytes()[:] = flat
        self.touch()


class Memory:
    """The memory of one device.

    Parameters
    ----------
    capacity : int
        Size in bytes; only bytes that are touched use host memory.
    device_id : int
        For messages.
    rule : str
        Block rule of ordinary blocks, a key of `BLOCK_RULES`.
    fit : str
        ``best`` or ``first``.
    reuse : bool
        Whether freed blocks are used again.
    backed : bool
        Whether the addresses have bytes. Without bytes blocks can be allocated, but not read or written.

    Examples
    --------
    >>> memory = Memory(1 << 20)
    >>> buffer = memory.allocate(100, owner="weight")
    >>> buffer.address % 512, buffer.alloc_size, hex(buffer.bytes()[0])
    (0, 512, '0xcd')
    """

    def __init__(
        self,
        capacity: int,
        *,
        device_id: int = 0,
        rule: str = "dynamic",
        fit: str = "best",
        reuse: bool = True,
        backed: bool = True,
    ) -> None:
        self.backed = backed
        self.capacity = capacity
        self.limit = capacity  # a fault plan may lower it
        self.device_id = device_id
        self.rule = BLOCK_RULES[rule]
        self.used = 0
        self.peak = 0
        self._space = Space(capacity, fit=fit, reuse=reuse)
        self._live: list[tuple[int, int]] = []  # (address, block)
        self._blocks: dict[int, Buffer] = {}
        self._version = 0
        self._arena = Arena(capacity, where=f"device {device_id}")
        self._fresh = 0  # offsets from here on were never allocated
        self.ranges = SharedRanges()  # by address; they take precedence over the bytes of the arena

    # ---------------------------------------------------------------- blocks
    def allocate(
        self,
        size: int,
        *,
        owner: str = "",
        kind: str = "tensor",
        born: int = 0,
        rule: str | None = None,
        fill: bool = True,
    ) -> Buffer:
        """Allocate a block for `size` bytes.

        Parameters
        ----------
        size : int
            Logical bytes.
        owner, kind, born
            Shown in reports.
        rule : str, optional
            Another block rule, such as ``communication``.
        fill : bool
            Whether to fill a fresh block with `FILL`; if not, only the padding after `size` bytes is filled.

        Raises
        ------
        OutOfMemoryError
            With the vendor's text and the list of allocated blocks.
        """
        block_rule: BlockRule = self.rule if rule is None else BLOCK_RULES[rule]
        block = block_rule.block(size)
        offset = self._space.take(block, block_rule.align) if self.used + block <= self.limit else None
        if offset is None:
            raise self.out_of_memory(size, owner)
        if self.backed:
            try:
                self._arena.reserve(offset, offset + block, self._fresh)
            except OutOfMemoryError:
                self._space.give(offset)
                raise
        self.used += block
        self.peak = max(self.peak, self.used)
        address = BASE_ADDRESS + offset + block_rule.guard
        buffer = Buffer(
            memory=self,
            address=address,
            size=size,
            alloc_size=block - 2 * block_rule.guard,
            owner=owner,
            kind=kind,
            born=born,
            version=self.next_version(),
            block=offset,
        )
        self._blocks[offset] = buffer
        insort(self._live, (address, offset))
        if offset + block > self._fresh:
            buffer.fresh = True
            start = max(offset, self._fresh)
            if not fill:  # the caller writes these bytes immediately; only the padding keeps its content
                start = max(start, address - BASE_ADDRESS + size)
            self.fill(BASE_ADDRESS + start, offset + block - start)
            self._fresh = offset + block
        return buffer

    def require(self, size: int, *, owner: str = "") -> None:
        """Check that a block for `size` bytes could be allocated now, without touching a byte.

        Raises
        ------
        OutOfMemoryError
            As `allocate`.
        """
        block = self.rule.block(size)
        offset = self._space.take(block, self.rule.align) if self.used + block <= self.limit else None
        if offset is None:
            raise self.out_of_memory(size, owner)
        self._space.give(offset)

    def free(self, buffer: Buffer, *, dead: int = 0) -> None:
        """Free the block of `buffer`; its bytes remain until another buffer overwrites them.

        Raises
        ------
        DeviceError
            If the buffer has been freed already, or is not a block of its own.
        """
        if self._blocks.get(buffer.block) is not buffer:
            raise DeviceError(f"the buffer of {buffer.owner!r} was freed twice", where=hex(buffer.address))
        del self._blocks[buffer.block]
        self._live.remove((buffer.address, buffer.block))
        self.used -= self._space.give(buffer.block)
        buffer.dead = dead

    def discard(self, buffer: Buffer) -> None:
        """Release the pages of bytes that are not read again (they then read as zero)."""
        released = self._arena.discard(buffer.address - BASE_ADDRESS, buffer.end - BASE_ADDRESS)
        for low, high in released if self.ranges else ():
            self.drop(BASE_ADDRESS + low, high - low)
        self.own(buffer.address, buffer.size)  # for parts of pages, which must not keep a shared array alive

    def blocks(self) -> list[Buffer]:
        """Return the live blocks by address."""
        return [self._blocks[offset] for _, offset in self._live]

    # ----------------------------------------------------------------- bytes
    def fill(self, address: int, nbytes: int) -> None:
        """Write `FILL` to bytes that were never written."""
        if nbytes and self.backed:
            self.drop(address, nbytes)
            self.view(address, nbytes)[:] = FILL

    def view(self, address: int, nbytes: int) -> Bytes:
        """Return `nbytes` from `address` on as a writable view; after a write through it, call `Buffer.touch`.

        Shared bytes are copied to the memory first.

        Raises
        ------
        DeviceError
            For addresses outside the device, or of blocks in different steps of its memory.
        UnknownValueError
            If the memory has no bytes (``backed=False``).
        """
        self.own(address, nbytes)
        return self.own_bytes(address, nbytes)

    def own_bytes(self, address: int, nbytes: int) -> Bytes:
        """Return the memory's own bytes at an address, like `view`, even if shared ones replace them now."""
        start = self._offset(address, nbytes)
        return self._arena.view(start, start + nbytes)

    # ---------------------------------------------------------------- shared
    def share(self, address: int, data: Bytes) -> None:
        """Let a read-only array replace the bytes from `address` on, until they are written.

        Earlier views of these bytes become stale.
        """
        self._offset(address, data.size)
        if data.size:
            self.ranges.cut(address, address + data.size)
            self.ranges.add(address, data)

    def shared(self, address: int, nbytes: int) -> Bytes | None:
        """Return the shared array with these bytes, None if there is none; partly shared bytes are copied first."""
        found = self.ranges.find(address, address + nbytes) if self.ranges else None
        if found is None:
            self.own(address, nbytes)
        return found

    def read(self, address: int, nbytes: int) -> Bytes:
        """Return `nbytes` from `address` on for reading: a view of the memory, or of a shared array."""
        found = self.shared(address, nbytes)
        return self.own_bytes(address, nbytes) if found is None else found

    def own(self, address: int, nbytes: int) -> bool:
        """Copy those of these bytes that are shared to the memory; return whether there were any."""
        taken = self.ranges.cut(address, address + nbytes) if self.ranges else []
        for at, data in taken:
            self._arena.write(at - BASE_ADDRESS, data)
        return bool(taken)

    def drop(self, address: int, nbytes: int) -> bool:
        """Stop sharing these bytes without copying them; return whether any was shared. Older bytes reappear."""
        return bool(self.ranges.cut(address, address + nbytes))

    def _offset(self, address: int, nbytes: int) -> int:
        """Return the offset of an address, after checking that it has bytes."""
        if not self.backed:
            raise UnknownValueError(
                f"the {nbytes} bytes at {address:#x} are not known", where=f"device {self.device_id}"
            )
        start = address - BASE_ADDRESS
        if start < 0 or start + nbytes > self.capacity:
            raise DeviceError(
                f"{nbytes} bytes at {address:#x} are outside the device's memory",
                where=f"device {self.device_id}",
                allowed=[f"{BASE_ADDRESS:#x} to {BASE_ADDRESS + self.capacity:#x}"],
            )
        return start

    def write(self, address: int, data: npt.NDArray[np.generic]) -> tuple[Buffer, ...]:
        """Write bytes at any address, like a kernel that writes beyond its output.

        Returns
        -------
        tuple of Buffer
            The live buffers that were overwritten; they get a new version.
        """
        flat = np.ascontiguousarray(data).reshape(-1).view(np.uint8)
        hit = tuple(self.overlapping(address, flat.size))
        for buffer in hit:
            buffer.own()
        self.drop(address, flat.size)
        self._arena.write(self._offset(address, flat.size), flat)
        for buffer in hit:
            buffer.touch()
        return hit

    def overlapping(self, address: int, nbytes: int) -> Iterator[Buffer]:
        """Yield the live buffers that overlap the range; for a workspace also its live parts."""
        at = max(0, bisect_right(self._live, (address, 1 << 62)) - 1)
        for first, offset in self._live[at:]:
            if first >= address + nbytes:
                break
            block = self._blocks[offset]
            if block.end <= address:
                continue
            yield block
            for part in block.parts.values():
                if part.address < address + nbytes and part.end > address:
                    yield part

    def next_version(self) -> int:
        """Return a serial number for the next write."""
        self._version += 1
        return self._version

    # --------------------------------------------------------------- reports
    def out_of_memory(self, size: int, owner: str) -> OutOfMemoryError:
        """Return the error of a failed allocation, which lists the allocated blocks."""
        return OutOfMemoryError(
            # the vendor's text
            f"Memory not enough: Device(id:{self.device_id}) memory isn't enough and alloc failed, "
            f"kernel name: {owner}, alloc size: {size}B.\n{self.report()}",
            code="DS-DEV-001",
        )

    def report(self) -> str:
        """Return a list of the allocated blocks, largest first, and the largest free block."""
        free = min(self._space.largest_hole, max(0, self.limit - self.used))
        lines = [
            f"memory plan of device {self.device_id}: {self.used} of {self.limit} bytes used, "
            f"{self.limit - self.used} free, largest free block {free}"
        ]
        allocated = sorted(self.blocks(), key=lambda b: (-b.alloc_size, b.address))
        for buffer in allocated[:_REPORTED]:
            lines.append(f"  {buffer.address:#x} {buffer.alloc_size:>14} {buffer.kind:<10} {buffer.owner}")
            parts = sorted(buffer.parts.values(), key=lambda b: (-b.alloc_size, b.address))
            lines += [f"    {p.address:#x} {p.alloc_size:>12} {p.kind:<10} {p.owner}" for p in parts[:_REPORTED]]
        if len(allocated) > _REPORTED:
            rest = sum(b.alloc_size for b in allocated[_REPORTED:])
            lines.append(f"  and {len(allocated) - _REPORTED} smaller blocks, {rest} bytes")
        return "\n".join(lines)
