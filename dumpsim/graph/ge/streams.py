"""Assigns kernels to streams, with events between the streams.

Stream 0 is the compute stream. Collectives of the world group run on stream 1, those of other groups on the next
streams in order of first use. For whole graphs, the stream of the AI CPU comes after these. The schedule depends only
on the graph. [spec parallel 4.1]
"""

from collections.abc import Callable, Mapping, Sequence

from dumpsim.graph.engine import engine_of
from dumpsim.graph.graph import Node, Value, definition_of
from dumpsim.graph.program import Launch
from dumpsim.ops.opdef import OpDef

__all__ = ["COMMUNICATION", "COMPUTE", "schedule"]

COMPUTE = 0
COMMUNICATION = 1
_WORLD = frozenset({"", "hccl_world_group", "nccl_world_group", "mccl_world_group"})


def schedule(order: Sequence[Node], find: Callable[[str], OpDef], *, engines: bool) -> tuple[Launch, ...]:
    """Put kernels on streams, with events where one stream needs a result of another.

    Parameters
    ----------
    order : sequence of Node
        Kernels in execution order.
    find : callable
        The definition of an operator type.
    engines : bool
        Whether kernels of the AI CPU have their own stream; otherwise only communication has separate streams.

    Returns
    -------
    tuple of Launch
        Kernels in order, each after the waits that it needs; empty if all of them run on the compute stream.
    """
    streams = _streams(order, find, engines)
    if not any(streams.values()):
        return ()
    position = {id(node): at for at, node in enumerate(order)}
    waits: list[dict[int, int]] = []  # by kernel: other stream -> last kernel there to wait for
    seen: list[dict[int, int]] = []  # by kernel: stream -> position up to which it is known to have run
    last: dict[int, int] = {}  # stream -> its last kernel so far
    for at, node in enumerate(order):
        own = streams[id(node)]
        known = dict(seen[last[own]]) if own in last else {}
        needed: dict[int, int] = {}
        for before in sorted(position[id(n)] for n in _needs(node, position)):
            stream = streams[id(order[before])]
            if stream != own and known.get(stream, -1) < before:
                needed[stream] = before
        for before in needed.values():
            for stream, until in seen[before].items():
                known[stream] = max(known.get(stream, -1), until)
        known[own] = at
        waits.append(needed)
        seen.append(known)
        last[own] = at
    return _launches(order, streams, waits)


def _streams(order: Sequence[Node], find: Callable[[str], OpDef], engines: bool) -> dict[int, int]:
    kinds = [engine_of(node, find) if engines else definition_of(node, find).engine for node in order]
    groups: dict[str, int] = {}
    for node, engine in zip(order, kinds, strict=True):
        group = str(node.attrs.get("group", ""))
        if engine == "hccl" and group not in _WORLD:
            groups.setdefault(group, COMMUNICATION + 1 + len(groups))
    aicpu = COMMUNICATION + 1 + len(groups)
    return {
        id(node): groups.get(str(node.attrs.get("group", "")), COMMUNICATION)
        if engine == "hccl"
        else aicpu
        if engine == "aicpu" and engines
        else COMPUTE
        for node, engine in zip(order, kinds, strict=True)
    }


def _needs(node: Node, kernels: Mapping[int, int]) -> list[Node]:
    """Return the kernels that must run before a kernel: producers of its operands and of its tokens."""
    found: list[Node] = []
    seen: set[int] = set()
    pending: list[Value] = list(node.operands)
    while pending:
        value = pending.pop()
        if not isinstance(value, Node) or id(value) in seen:
            continue
        seen.add(id(value))
        if id(value) in kernels:
            found.append(value)
        else:
            pending += value.operands
    return found


def _launches(order: Sequence[Node], streams: Mapping[int, int], waits: Sequence[dict[int, int]]) -> tuple[Launch, ...]:
    recorded = sorted({before for needed in waits for before in needed.values()})
    events = {before: event for event, before in enumerate(recorded)}
    launches: list[Launch] = []
    for at, (node, needed) in enumerate(zip(order, waits, strict=True)):
        stream = streams[id(node)]
        for _, before in sorted(needed.items()):
            launches.append(Launch(stream=stream, wait=events[before], node=node))
        launches.append(Launch(stream=stream, node=node))
        if at in events:
            launches.append(Launch(stream=stream, record=events[at], node=node))
    return tuple(launches)
