"""A plan in a rank: the memory of its tensors, and their state during a run."""

import mmap
from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from dumpsim.core.errors import DeviceError
from dumpsim.device.arena import Bytes
from dumpsim.device.memory import Buffer, Memory
from dumpsim.device.packed import pack, unpack
from dumpsim.device.space import BLOCK_RULES
from dumpsim.runtime.plan import Argument, GraphPlan, slots_of
from dumpsim.runtime.slot import Array, Slot
from dumpsim.runtime.unknown import HostArray, Unknown

__all__ = ["Binding"]

_SHARED = mmap.PAGESIZE  # bytes from which sharing a tensor saves memory


class Binding:
    """The tensors of one plan in one rank.

    The objects of a tensor in the workspace (its buffer, converted copies) are created when its life begins and dropped
    when it ends, so an idle plan costs a rank no memory per tensor.

    Parameters
    ----------
    plan : GraphPlan
    memory : Memory
        Of the rank's device.
    storages : sequence
        The rank's `Storage` objects, into which the slots of weights have indexes.
    keep_views : bool
        Cache buffers and views of memory between runs, which saves time and costs some 400 bytes for each tensor.

    Attributes
    ----------
    plan : GraphPlan
    base : int
        Address of the workspace in the last run; 0 before the first one.
    workspace : Buffer or None
    fixes : int
        How often memory was assigned to a weight or a constant.
    """

    __slots__ = (
        "__weakref__",
        "_alive",
        "_buffers",
        "_bytes",
        "_converted",
        "_fixed",
        "_keep_views",
        "_largest",
        "_place",
        "_rule",
        "_settled",
        "_storages",
        "_views",
        "base",
        "fixes",
        "memory",
        "plan",
        "workspace",
    )

    def __init__(self, plan: GraphPlan, memory: Memory, storages: Sequence[Any], *, keep_views: bool) -> None:
        self.plan = plan
        self.memory = memory
        self._storages = storages
        self._keep_views = keep_views
        self.base = 0
        self.fixes = 0
        self.workspace: Buffer | None = None
        self._bytes: Bytes | None = None  # of the workspace
        self._rule = BLOCK_RULES[plan.rule]
        self._buffers: dict[int, Buffer] = {}  # buffers of the last run
        self._place = 0, 0  # address of the workspace on the device, and in the process
        self._fixed: dict[int, Buffer] = {}  # of weights and constants
        self._alive: dict[int, Buffer] = {}  # of the tensors in the workspace
        self._views: dict[int, Array] = {}
        self._converted: dict[int, tuple[int, Array]] = {}  # by the version of the bytes
        self._settled: dict[int, tuple[int, ...]] = {}  # shapes that kernels decided
        self._largest: dict[int, tuple[int, ...]] = {}  # upper bounds of these shapes

    @property
    def place(self) -> tuple[int, int]:
        """The address of the workspace on the device and in the process; views are valid while it does not change."""
        return self._place

    @property
    def keeps_views(self) -> bool:
        """Whether buffers and views of memory are cached between runs."""
        return self._keep_views

    # ------------------------------------------------------------- workspace
    def claim(self, workspace: Buffer | None) -> None:
        """Place the planned tensors in a workspace."""
        self.workspace = workspace
        if workspace is not None:
            self.base = workspace.address
            workspace.parts = self._alive
            pointer = 0
            if self.memory.backed:
                self._bytes = self.memory.own_bytes(workspace.address, workspace.size)
                pointer = self._bytes.__array_interface__["data"][0]
            if (workspace.address, pointer) != self._place:
                self._place = workspace.address, pointer
                self._buffers.clear()
                self._views.clear()

    def unclaim(self) -> Buffer | None:
        """Drop the state of a run, and return the workspace."""
        workspace, self.workspace = self.workspace, None
        self._alive = {}
        if not self._keep_views:
            self._views.clear()
        self._bytes = None
        self._converted.clear()
        return workspace

    def begin(self, slot: Slot, *, untouched: bool = False) -> None:
        """Begin the life of a planned tensor; if no kernel writes it (`untouched`), a fresh block is filled."""
        workspace = self.workspace
        assert workspace is not None, slot.name
        buffer = self._buffers.get(slot.index)
        if buffer is None:
            buffer = Buffer(
                memory=self.memory,
                address=self.base + slot.offset,
                size=slot.nbytes,
                alloc_size=self._rule.block(slot.nbytes),
                owner=slot.name,
                kind=slot.kind,
                born=slot.born,
            )
            if self._keep_views:
                self._buffers[slot.index] = buffer
        self._alive[slot.index] = buffer
        if workspace.fresh:
            self.memory.fill(buffer.end, buffer.alloc_size - slot.nbytes)
            if untouched:
                self.memory.fill(buffer.address, slot.nbytes)
                buffer.touch()

    def end(self, slot: Slot) -> Buffer:
        """End the life of a planned tensor; its bytes stay until the memory is reused."""
        if not self._keep_views:
            self._views.pop(slot.index, None)
        self._converted.pop(slot.index, None)
        return self._alive.pop(slot.index)

    # --------------------------------------------------------------- buffers
    def fix(self, slot: Slot, buffer: Buffer) -> None:
        """Assign memory to a weight or a constant."""
        self._fixed[slot.index] = buffer
        self.fixes += 1
        self._views.clear()

    def storage(self, slot: Slot) -> Any:
        """The rank's `Storage` of a weight."""
        return self._storages[slot.storage] if isinstance(slot.storage, int) else slot.storage

    def is_fixed(self, slot: Slot, buffer: Buffer) -> bool:
        """Whether a weight has this memory."""
        return self._fixed.get(slot.index) is buffer

    def unfix(self, slot: Slot) -> Buffer | None:
        """Take the memory of a constant away, and return its buffer."""
        return self._fixed.pop(slot.index, None)

    def own(self, argument: Argument) -> None:
        """Copy shared tensors of an argument to the rank's own memory, before a kernel writes them in place."""
        for slot in slots_of(argument) if self.memory.ranges else ():
            self.buffer(slot).own()

    def buffer(self, slot: Slot) -> Buffer:
        """The buffer with the bytes of a live tensor."""
        return self._fixed[slot.root_index] if slot.root_offset < 0 else self._alive[slot.root_index]

    def is_alive(self, slot: Slot) -> bool:
        """Whether a tensor occupies its memory now."""
        return slot.root_offset < 0 or slot.root_index in self._alive

    def owners(self, slot: Slot) -> list[str]:
        """Other tensors that occupy a part of a tensor's memory now, as ``name:slot``."""
        if slot.root_offset < 0:
            return []
        first = slot.root_offset
        end = first + self.nbytes(slot)
        return [
            f"{other.name}:{other.slot}"
            for other in self.plan.planned
            if other.index in self._alive
            and other.index != slot.root_index
            and other.offset < end
            and first < other.offset + other.nbytes
        ]

    def address(self, slot: Slot) -> int:
        """The address of a tensor's bytes, alive or not; 0 if the workspace was never claimed."""
        if slot.root_offset < 0:
            return self._fixed[slot.root_index].address
        return self.base + slot.root_offset if self.base else 0

    # ---------------------------------------------------------------- shapes
    def settle(self, slot: Slot, shape: tuple[int, ...], largest: tuple[int, ...] | None = None) -> None:
        """Set the shape that a kernel has decided in this run, and its upper bound.

        Raises
        ------
        DeviceError
            If the result is larger than planned.
        """
        if prod(shape) > slot.bound:
            raise DeviceError(f"a result of shape {shape} has more than {slot.bound} elements", where=slot.name)
        self._settled[slot.index] = shape
        self._views.pop(slot.index, None)
        if slot.shows_largest and largest is not None:
            self._largest[slot.index] = largest
            address, nbytes = self.address(slot), slot.device_dtype.nbytes(prod(largest))
            self.memory.drop(address, nbytes)
            self.memory.view(address, nbytes)[:] = 0

    def shape(self, slot: Slot) -> tuple[int, ...]:
        """The shape on the host; if a kernel decides it, that of the last run."""
        return self._settled.get(slot.index, slot.shape) if slot.settles else slot.shape

    def device_shape(self, slot: Slot) -> tuple[int, ...]:
        """The shape on the device."""
        return self._settled.get(slot.index, slot.device_shape) if slot.settles else slot.device_shape

    def nbytes(self, slot: Slot) -> int:
        """Logical bytes on the device."""
        shape = self._settled.get(slot.index) if slot.settles else None
        if shape is None:
            return slot.nbytes
        return slot.device_dtype.nbytes(prod(shape))

    def shown_shape(self, slot: Slot, *, produced: bool = False) -> tuple[int, ...]:
        """The shape that listeners see; `produced`: as the output of its kernel. [spec observed 1.2]"""
        if produced and slot.shows_largest:
            return self._largest.get(slot.index, self.shape(slot))
        return self.shown_shape(slot.base) if slot.transparent and slot.base is not None else self.shape(slot)

    # ---------------------------------------------------------------- values
    def device_array(self, slot: Slot) -> Array:
        """The bytes as an array of device type and device shape (uint1: in one dimension): a view of memory."""
        shared = self.memory.shared(self.address(slot), self.nbytes(slot)) if self.memory.ranges else None
        view = self._views.get(slot.index) if shared is None else None
        if view is None:
            shape = self.device_shape(slot)
            flat = slot.settles or slot.device_dtype.bits == 1
            extents = (self.nbytes(slot) // slot.numpy.itemsize,) if flat else shape
            if shared is not None:
                view = np.ndarray(extents, slot.numpy, shared)
            elif slot.root_offset >= 0:
                view = np.ndarray(extents, slot.numpy, self._bytes, slot.root_offset)
            else:
                fixed = self._fixed[slot.root_index]
                view = np.ndarray(extents, slot.numpy, self.memory.own_bytes(fixed.address, fixed.size))
            if flat and slot.device_dtype.bits != 1:
                view = view.reshape(shape)
            if shared is None:
                self._views[slot.index] = view
        return view

    def array(self, slot: Slot) -> Array:
        """The values in host layout and the device's number type; a view of memory if the layout is plain.

        A private layout is converted, and bits are unpacked, once per version of the buffer.
        """
        if slot.viewable:
            return self.device_array(slot)
        version = self.buffer(slot).version
        found = self._converted.get(slot.index)
        if found is None or found[0] != version:
            found = self._converted[slot.index] = version, self._host_array(slot)
        return found[1]

    def _host_array(self, slot: Slot) -> Array:
        if slot.plain:
            return unpack(self.device_array(slot), slot.device_dtype.name, self.shape(slot))
        from dumpsim.tensor.layout import to_host

        return to_host(self.device_array(slot), slot.device_format, self.shape(slot), groups=slot.groups)

    def share(self, slot: Slot, values: HostArray) -> None:
        """Use `values`, which other ranks may share, as the bytes of a tensor until it is written.

        They are copied if they are writable, small, a part of a larger array, or in another layout than on the device.
        """
        if not isinstance(values, Unknown) and not values.flags.writeable and self._can_share(slot, values):
            self.memory.share(self.address(slot), values.reshape(-1).view(np.uint8))
            self.buffer(slot).touch()
        else:
            self.put(slot, values)

    def _can_share(self, slot: Slot, values: Array) -> bool:
        owner = values if values.base is None else values.base
        return (
            isinstance(owner, np.ndarray)
            and not owner.flags.writeable
            and owner.nbytes == values.nbytes == self.nbytes(slot) >= _SHARED
            and values.flags.c_contiguous
            and values.dtype == slot.numpy
            and slot.viewable
            and slot.root_offset >= 0
        )

    def put(self, slot: Slot, values: HostArray) -> None:
        """Write values (host layout, device number type) to memory, and end the version of the buffer."""
        buffer = self.buffer(slot)
        if not self.memory.backed:
            buffer.touch()
            return
        assert not isinstance(values, Unknown)
        if self.memory.ranges:
            buffer.drop(self.nbytes(slot))
        target = self.device_array(slot)
        if slot.viewable:
            target[...] = values if values.shape == target.shape else values.reshape(target.shape)
            buffer.touch()
        elif slot.plain:
            target[...] = pack(values, slot.device_dtype.name)
            buffer.touch()
        else:
            from dumpsim.tensor.layout import to_device

            values, view = values.reshape(self.shape(slot)), values.base is not None
            to_device(values, slot.device_format, groups=slot.groups, out=target)
            buffer.touch()
            if not view:  # the memory of a view may be written later
                self._converted[slot.index] = buffer.version, values
