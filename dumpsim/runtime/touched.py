"""The memory that an operator reads and writes, for the race detector."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from dumpsim.device.races import Touch
from dumpsim.ops.opdef import OpDef
from dumpsim.runtime.binding import Binding
from dumpsim.runtime.plan import Call, slots_of
from dumpsim.runtime.slot import Array, Slot

__all__ = ["touched", "touched_arrays"]


def touched(binding: Binding, call: Call, group: str | None) -> Iterator[Touch]:
    """Yield the device memory of a kernel's tensors, and the links of its `group`."""
    updates = call.definition.updates
    for at, argument in enumerate(call.arguments):
        for slot in slots_of(argument):
            yield _touch(binding, slot, writes=at in updates)
    for slot, stored in zip(call.outputs, call.stored, strict=True):
        if stored:
            yield _touch(binding, slot, writes=True)
    if group is not None:
        yield _links(group)


def touched_arrays(definition: OpDef, operands: Sequence[Any], group: str | None) -> Iterator[Touch]:
    """Yield the operands of a PYNATIVE operator; its outputs are new, so no other operator can use them yet."""
    for at, operand in enumerate(operands):
        name = definition.operands[min(at, len(definition.operands) - 1)] if definition.operands else ""
        for array in _arrays(operand):
            low, high = _bounds(array)
            what = f"{definition.name}'s {name}"
            yield Touch(what=what, low=low, high=high, writes=at in definition.updates, space="host", holder=array)
    if group is not None:
        yield _links(group)


def _touch(binding: Binding, slot: Slot, *, writes: bool) -> Touch:
    low = binding.address(slot)
    return Touch(what=slot.name, low=low, high=low + binding.nbytes(slot), writes=writes)


def _links(group: str) -> Touch:
    return Touch(what=f"group {group!r}", low=0, high=1, writes=True, space=f"group {group}")


def _arrays(operand: Any) -> Iterator[Array]:
    if isinstance(operand, np.ndarray):
        yield operand
    elif isinstance(operand, tuple):
        for item in operand:
            yield from _arrays(item)


def _bounds(array: Array) -> tuple[int, int]:
    """Return the address of an array's first byte, and that after its last."""
    if not array.size:
        return 0, 0
    low = high = array.__array_interface__["data"][0]
    for extent, stride in zip(array.shape, array.strides, strict=True):
        reach = (extent - 1) * stride
        low, high = low + min(reach, 0), high + max(reach, 0)
    return low, high + array.itemsize
