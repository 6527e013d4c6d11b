"""A plan split at its collectives, for ranks that run it group by group."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dumpsim.runtime.plan import Call, GraphPlan, slots_of
from dumpsim.runtime.slot import Slot

__all__ = ["Segment", "segments", "written"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """Kernels without a collective between them, and the collectives after them.

    Attributes
    ----------
    kernels : tuple of Call
    taken : tuple of Call
        Collectives of this and of later segments whose operands the kernels have completed.
    met : tuple of Call
        Collectives whose results are available after the kernels.
    needed : frozenset of int
        Root indexes of the tensors that are read later, except by collectives that have taken them.
    """

    kernels: tuple[Call, ...]
    taken: tuple[Call, ...]
    met: tuple[Call, ...]
    needed: frozenset[int]


def segments(plan: GraphPlan) -> tuple[Segment, ...]:
    """Return the segments of a plan, in order.

    Parameters
    ----------
    plan : GraphPlan
    """
    cut = _cut(plan.calls)
    taken: list[list[Call]] = [[] for _ in cut]
    complete: dict[int, int] = {}  # by root index: the segment whose kernels complete the tensor
    for at, (kernels, met) in enumerate(cut):
        for call in kernels:
            complete.update((slot.root_index, at) for slot in written(call))
        for call in met:
            taken[max((complete.get(slot.root_index, 0) for slot in _read(call)), default=at)].append(call)
        for call in met:
            complete.update((slot.root_index, at + 1) for slot in written(call))
    needed = {slot.root_index for slot in (*plan.results, *plan.weights)}
    found: list[Segment] = []
    for (kernels, met), early in zip(reversed(cut), reversed(taken), strict=True):
        found.append(
            Segment(kernels=tuple(kernels), taken=tuple(early), met=tuple(met), needed=frozenset(needed)),
        )
        needed |= {slot.root_index for call in (*kernels, *early) for slot in _read(call)}
    return tuple(reversed(found))


def written(call: Call) -> Iterator[Slot]:
    """Yield the tensors that a kernel writes."""
    yield from call.outputs
    for at in call.definition.updates:
        yield from slots_of(call.arguments[at])


def _read(call: Call) -> Iterator[Slot]:
    for argument in call.arguments:
        yield from slots_of(argument)


def _cut(calls: Sequence[Call]) -> list[tuple[list[Call], list[Call]]]:
    """Split calls into kernels and the collectives after them, which do not depend on each other."""
    cut: list[tuple[list[Call], list[Call]]] = []
    given: set[int] = set()
    for call in calls:
        meets = call.definition.engine == "hccl"
        if not cut or (cut[-1][1] and (not meets or any(slot.root_index in given for slot in _read(call)))):
            cut.append(([], []))
            given.clear()
        cut[-1][meets].append(call)
        if meets:
            given.update(slot.root_index for slot in written(call))
    return cut
