"""Decides which graphs have their kernels bound to memory, and when."""

import weakref
from collections.abc import Sequence
from typing import Any

from dumpsim.device.chip import OverflowMode
from dumpsim.device.device import Device
from dumpsim.graph.conversion import TRANS_DATA
from dumpsim.ops.opdef import OpDef
from dumpsim.runtime.binding import Binding
from dumpsim.runtime.boundgraph import BoundGraph, bound_graph
from dumpsim.runtime.engine.engine import BindingEngine, Engine
from dumpsim.runtime.observe import Observers
from dumpsim.runtime.plan import Call, GraphPlan
from dumpsim.runtime.prepared import Prepared
from dumpsim.runtime.slot import Slot
from dumpsim.runtime.unknown import HostArray
from dumpsim.runtime.watched import Compute, Watched, WatchedBound

__all__ = ["Preparation"]

_RUNS = 2  # runs with tasks before a graph is prepared: many graphs run once


class Preparation:
    """Prepares a kernel graph, once it has run a few times.

    Parameters
    ----------
    device : Device
    engine : Engine
    observers : Observers
    compute : Compute
        For kernels that the engine does not bind.
    """

    def __init__(self, device: Device, engine: Engine, observers: Observers, compute: Compute) -> None:
        self._device = device
        self._engine = engine if isinstance(engine, BindingEngine) else None
        self._observers = observers
        self._compute = compute
        self._seen: weakref.WeakKeyDictionary[Binding, _Seen] = weakref.WeakKeyDictionary()

    def of(self, binding: Binding, arguments: Sequence[HostArray]) -> Prepared | None:
        """Return the prepared graph for an unwatched run with these arguments; None if it has to run tasks."""
        seen = self._look(binding)
        if seen is None or not self._binds(seen, binding):
            return None
        if seen.prepared is None or not seen.prepared.graph.takes(arguments):
            seen.prepared = None
            graph = self._bind(seen, binding, arguments, moves=True)
            seen.prepared = None if graph is None else Prepared(graph)
        return seen.prepared

    def watched(self, binding: Binding, arguments: Sequence[HostArray]) -> Watched | None:
        """Return the prepared graph for a watched run, whether or not the engine binds kernels; None if unprepared."""
        seen = self._look(binding) if binding.keeps_views else None
        if seen is None or not seen.fixed:
            return None
        if seen.plain and not self._binds(seen, binding):
            return None
        watched = seen.watched
        if watched is None or (isinstance(watched, WatchedBound) and not watched.graph.takes(arguments)):
            watched = seen.watched = self._watch(seen, binding, arguments)
        return watched if watched is not None and watched.begin() else None

    def _watch(self, seen: "_Seen", binding: Binding, arguments: Sequence[HostArray]) -> Watched | None:
        """Plan the watched runs of a graph, once it has run a few times."""
        if seen.plain:
            graph = self._bind(seen, binding, arguments, moves=False)
            return None if graph is None else WatchedBound(graph, self._observers, self._compute)
        seen.runs += 1
        return None if seen.runs < _RUNS else Watched(binding, self._device, self._observers, self._compute)

    def _look(self, binding: Binding) -> "_Seen | None":
        """Return the state of a plan; None if it has to run like the first time."""
        device = self._device
        if (
            device.busy
            or device.errors
            or device.stopped is not None
            or device.trace is not None
            or device.races is not None
            or any(stream.tail_ns > device.clock.now_ns for stream in device.streams)
        ):
            return None
        seen = self._seen.get(binding)
        if seen is None:
            plan = binding.plan
            seen = self._seen[binding] = _Seen(self._engine is not None and _is_plain(plan, device), _is_fixed(plan))
        place = *binding.place, binding.fixes
        if seen.place != place:
            seen.prepared = seen.watched = None
            seen.place = place
        return seen

    def _binds(self, seen: "_Seen", binding: Binding) -> bool:
        """Whether kernels may be bound to memory in its current state."""
        workspace = binding.workspace
        return seen.plain and not self._device.memory.ranges and (workspace is None or not workspace.fresh)

    def _bind(
        self, seen: "_Seen", binding: Binding, arguments: Sequence[HostArray], *, moves: bool
    ) -> BoundGraph | None:
        """Bind the kernels, once the graph has run a few times."""
        again = seen.again(arguments)
        if seen.runs < _RUNS:
            return None
        assert self._engine is not None
        graph = bound_graph(binding, self._device, self._engine, arguments, again, moves=moves)
        seen.plain = graph is not None
        return graph


class _Seen:
    """The state of a plan: how often it ran, and with which arguments."""

    def __init__(self, plain: bool, fixed: bool) -> None:
        self.plain = plain
        self.fixed = fixed
        self.runs = 0
        self.place: tuple[int, ...] = ()
        self.prepared: Prepared | None = None
        self.watched: Watched | None = None
        self._arguments: list[weakref.ref[Any]] = []

    def again(self, arguments: Sequence[HostArray]) -> list[bool]:
        """Return which arguments are the same arrays as in the previous run; count a run."""
        before = [one() for one in self._arguments] or [None] * len(arguments)
        self._arguments = [weakref.ref(one) for one in arguments]
        self.runs += 1
        return [one is other for one, other in zip(arguments, before, strict=True)]


def _is_fixed(plan: GraphPlan) -> bool:
    """Whether the tensors of a plan have the same shapes and addresses in every run, and it has no collectives."""
    slots = (*plan.parameters, *plan.planned, *(slot for call in plan.calls for slot in call.outputs))
    return all(call.engine != "hccl" for call in plan.calls) and not any(slot.settles for slot in slots)


def _is_plain(plan: GraphPlan, device: Device) -> bool:
    """Whether the runs of a plan differ only in the values of its arguments."""
    if not plan.kernel_graph.model_id or device.overflow is OverflowMode.SATURATION or plan.weights:
        return False
    return all(_is_plain_call(call, device.chip.target) for call in plan.calls) and all(
        slot.viewable and not slot.settles and not slot.scalar for slot in (*plan.planned, *plan.results)
    )


def _is_plain_call(call: Call, target: str) -> bool:
    """Whether a kernel computes its outputs from tensors, and does nothing else."""
    definition: OpDef = call.definition
    return (
        not definition.device
        and not definition.random
        and not definition.updates
        and not definition.unwritten.get(target)
        and definition.bounds is None
        and definition is not TRANS_DATA
        and call.engine != "hccl"
        and all(call.stored)
        and all(isinstance(argument, Slot) and argument.viewable for argument in call.arguments)
    )
