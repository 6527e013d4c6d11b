"""Kernel build info in the IR: on which number types and layouts kernels really work, known once a graph is planned."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from dumpsim.core.irdoc import IrDoc, KernelIo
from dumpsim.runtime.place import Place
from dumpsim.runtime.plan import Argument, Call

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


def _differs(place: Argument) -> bool:
    """Whether the device holds a tensor in another layout or number type than the host."""
    return isinstance(place, Place) and not (place.plain and place.device_dtype == place.dtype)


def _shown(infos: tuple[KernelIo, ...], places: Sequence[Argument]) -> tuple[KernelIo, ...]:
    """Build info by position; operands that are tuples have one entry per member, and none of them is private."""
    if len(infos) != len(places):
        return infos
    return tuple(
        KernelIo(dtype=place.device_dtype.title, format=place.device_format, shape=place.device_shape)
        if isinstance(place, Place) and _differs(place)
        else info
        for info, place in zip(infos, places, strict=True)
    )
