"""Kernel build info in the IR: on which number types and layouts kernels really work, known once a graph is planned."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from dumpsim.core.irdoc import IrDoc, KernelIo
from dumpsim.runtime.plan import Argument, Call
from dumpsim.runtime.slot import Slot

__all__ = ["with_build_info"]


def with_build_info(doc: IrDoc, calls: Iterable[Call]) -> IrDoc:
    """The document with device types, formats and shapes where they are not the host's. [spec mindspore 8.3, seed 001]

    Parameters
    ----------
    doc : IrDoc
    calls : iterable of Call
        The kernels of the graph's plan.
    """
    found = {call.node.ir_name: call for call in calls if any(map(_differs, (*call.arguments, *call.outputs)))}
    if not found:
        return doc
    nodes = list(doc.nodes)
    for at, node in enumerate(nodes):
        call = found.get(node.full_name)
        if call is not None and node.kernel_in is not None and node.kernel_out is not None:
            nodes[at] = replace(
                node,
                kernel_in=_shown(node.kernel_in, call.arguments),
                kernel_out=_shown(node.kernel_out, call.outputs),
            )
    return replace(doc, nodes=tuple(nodes))


def _differs(slot: Argument) -> bool:
    """Whether the device holds a tensor in another layout or number type than the host."""
    return isinstance(slot, Slot) and not (slot.plain and slot.device_dtype == slot.dtype)


def _shown(infos: tuple[KernelIo, ...], slots: Sequence[Argument]) -> tuple[KernelIo, ...]:
    """Build info by position; operands that are tuples have one entry per member, and none of them is private."""
    if len(infos) != len(slots):
        return infos
    return tuple(
        KernelIo(dtype=slot.device_dtype.title, format=slot.device_format, shape=slot.device_shape)
        if isinstance(slot, Slot) and _differs(slot)
        else info
        for info, slot in zip(infos, slots, strict=True)
    )
