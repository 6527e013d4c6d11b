"""The workspace of a plan: life times and offsets of its tensors."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from dumpsim.device.space import BLOCK_RULES, BlockRule, Space
from dumpsim.runtime.slot import Slot

__all__ = ["Span", "Use", "arrange"]

_ENDLESS = 1 << 62


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """The tensors that one kernel uses.

    Attributes
    ----------
    reads, writes : tuple of Slot
    stream : int
    engine : str
    """

    reads: tuple[Slot, ...]
    writes: tuple[Slot, ...]
    stream: int = 0
    engine: str = ""


@dataclass(slots=True, kw_only=True)
class Span:
    """The life time of a tensor, as positions in the execution order, and its offset in the workspace."""

    born: int = -1
    dead: int = -1
    offset: int = field(init=False)


def arrange(
    planned: Sequence[Slot], uses: Sequence[Use], results: Sequence[Slot], rule: BlockRule, *, reuse: bool
) -> tuple[Mapping[int, Span], int]:
    """Assign a life time and an offset to every planned tensor.

    Returns
    -------
    mapping of int to Span
        By the index of the slot.
    int
        Bytes of the workspace.
    """
    end = len(uses)
    spans = {slot.index: Span() for slot in planned}
    for slot in planned:
        if slot.kind == "input":
            spans[slot.index].dead = end  # `Parameter` files are written after the last kernel
    for position, use in enumerate(uses):
        for slot in use.writes:
            if slot.base is None:
                spans[slot.index].born = position
        for slot in (*use.writes, *use.reads):
            _keep(spans, slot, position)
    for slot in results:
        _keep(spans, slot, end)
    apart = _apart(uses, rule)
    for index in apart:
        if index in spans:
            spans[index].dead = end
    return spans, _place(planned, spans, apart, rule, Space(_ENDLESS, reuse=reuse))


def _keep(spans: Mapping[int, Span], slot: Slot, position: int) -> None:
    """Keep a tensor alive until `position`."""
    span = spans.get(slot.root.index)
    if span is not None:
        span.dead = max(span.dead, position)


def _apart(uses: Sequence[Use], rule: BlockRule) -> dict[int, BlockRule]:
    """Return the tensors used on streams other than the compute stream: they live to the end, in memory of their own.

    The order of launch does not tell when another stream has finished with them. Tensors of collectives have guards on
    both sides. [spec parallel 4.3]
    """
    apart: dict[int, BlockRule] = {}
    for use in uses:
        if use.stream:
            wanted = BLOCK_RULES["communication"] if use.engine == "hccl" else rule
            for slot in (*use.writes, *use.reads):
                index = slot.root.index
                if apart.get(index, wanted).guard <= wanted.guard:
                    apart[index] = wanted
    return apart


def _place(
    planned: Sequence[Slot],
    spans: Mapping[int, Span],
    apart: Mapping[int, BlockRule],
    rule: BlockRule,
    space: Space,
) -> int:
    """Allocate each tensor at its birth and free it at its death; return the size of the workspace."""
    births: dict[int, list[Slot]] = {}
    deaths: dict[int, list[Slot]] = {}
    for slot in planned:
        births.setdefault(spans[slot.index].born, []).append(slot)
        deaths.setdefault(spans[slot.index].dead, []).append(slot)
    for position in sorted(births.keys() | deaths.keys()):
        for slot in births.get(position, ()):
            if slot.index not in apart:
                offset = space.take(rule.block(slot.nbytes), rule.align)
                assert offset is not None
                spans[slot.index].offset = offset
        for slot in deaths.get(position, ()):
            if slot.index not in apart:
                space.give(spans[slot.index].offset)
    size = space.peak
    for slot in planned:
        if slot.index in apart:
            spans[slot.index].offset = size + apart[slot.index].guard
            size += apart[slot.index].block(slot.nbytes)
    return size
