"""Kernel build info in the IR: the number types and layouts of kernels on the device, known once a graph is planned."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from dumpsim.core.irdoc import IrDoc, KernelIo
from dumpsim.runtime.plan import Argument, Call
from dumpsim.runtime.slot import Slot

__all__ = ["with_build_info"]


def with_build_info(doc: IrDoc, calls: Iterable[Call]) -> IrDoc:
    """Add device types, formats and shapes to a document if they differ from the host's. [spec mindspore 8.3, seed 001]

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
    """Whether a tensor has another layout or number type on the device than on the host."""
    return isinstance(slot, Slot) and not (slot.plain and slot.device_dtype == slot.dtype)


def _shown(infos: tuple[KernelIo, ...], slots: Sequence[Argument]) -> tuple[KernelIo, ...]:
    """Return build info by position; operands that are tuples have an entry per member, never in a private format."""
    if len(infos) != len(slots):
        return infos
    return tuple(
        KernelIo(dtype=slot.device_dtype.title, format=slot.device_format, shape=slot.device_shape)
        if isinstance(slot, Slot) and _differs(slot)
        else info
        for info, slot in zip(infos, slots, strict=True)
    )
