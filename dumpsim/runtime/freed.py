"""Operands whose memory is already freed when a kernel runs, because of how the vendor's CPU backend counts uses."""

from collections.abc import Iterator, Sequence

from dumpsim.runtime.plan import Call, slots_of
from dumpsim.runtime.slot import Slot

__all__ = ["freed"]


def freed(calls: Sequence[Call], results: Sequence[Slot]) -> Iterator[frozenset[Slot]]:
    """Yield for each call the operands whose memory was freed before.

    An operator that computes nothing, such as Reshape, returns its operand's memory, which is freed after the last use
    of the operand. If the reshaped tensor is an output of the graph, its own uses do not count: a later reader finds no
    memory, and a dump writes no file. [observed 2.10: Reshape, ExpandDims and Squeeze in both orders of launch]
    """
    given = {slot.index for slot in results}
    left: dict[int, int] = {}  # uses, by the index of the tensor that owns the memory
    for call in calls:
        for slot in _operands(call):
            if slot.index not in given:
                left[slot.root_index] = left.get(slot.root_index, 0) + 1
    for call in calls:
        yield frozenset(
            slot
            for slot in _operands(call)
            if slot.transparent
            and slot.index in given
            and slot.root_index not in given
            and slot.root.kind == "activation"
            and not left.get(slot.root_index)
        )
        for slot in _operands(call):
            if slot.index not in given:
                left[slot.root_index] -= 1


def _operands(call: Call) -> Iterator[Slot]:
    return (slot for argument in call.arguments for slot in slots_of(argument))
