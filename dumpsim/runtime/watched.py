"""Runs that are watched, and in which every task does what it did in the run before, with other bytes.

The tasks, their streams, events and times are those of every run. But a kernel's task finds its operands and outputs
bound to memory, and instead of telling listeners what happened it calls what they have planned to do then.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from dumpsim.core.events import Follower, PlannedGraph, Tap, TaskEvent, TensorRef, current
from dumpsim.device.arena import Bytes
from dumpsim.device.device import COMPUTE_STREAM
from dumpsim.device.memory import Buffer
from dumpsim.device.task import Task, TaskIds
from dumpsim.graph.program import Launch
from dumpsim.runtime.boundgraph import BoundGraph
from dumpsim.runtime.observe import Observers, slot_ref
from dumpsim.runtime.plan import Call, GraphPlan
from dumpsim.runtime.slot import Slot
from dumpsim.runtime.unknown import HostArray

__all__ = ["Watched"]

_CORES = ("aicore", "aivector")  # engines whose status word overflow detection reads [spec parallel 4.4]
_Followers = tuple[Follower, ...]


class Watched:
    """A kernel graph that is bound to memory, and the listeners that have planned what they do in its runs.

    Parameters
    ----------
    graph : BoundGraph
    observers : Observers

    Attributes
    ----------
    works : mapping of Call to callable
        The work of each kernel's task.
    """

    def __init__(self, graph: BoundGraph, observers: Observers) -> None:
        self.graph = graph
        self._observers = observers
        self._events: Sequence[TaskEvent] = ()
        self._taps: list[Tap] = []
        self._plans: list[PlannedGraph | None] = []
        self._found: list[Sequence[Follower | None]] = []
        self._followers: list[_Followers] = []  # by event
        binding, device = graph.binding, graph.device
        plan = binding.plan
        for slot in plan.planned:  # their buffers are those of every run
            binding.begin(slot)
        self._first = len(plan.parameters)  # the events before are those of the inputs
        self._inputs = [(slot, binding.buffer(slot)) for slot in plan.inputs]
        copied = dict(graph.copied)
        self._targets = [copied.get(at) for at in range(len(plan.inputs))]
        looked = device.overflow is not None
        self.works: dict[Call, Callable[[Task], None]] = {}
        for at, call in enumerate(plan.calls):
            run = graph.kernels.runs[at]
            assert run is not None, call.node.full_name
            checks = graph.kernels.finite[at] if looked else ()
            buffers = [binding.buffer(slot) for slot in call.outputs]
            self.works[call] = partial(self._work, at, run, checks, buffers)
        self._events = self._made()
        for slot in plan.planned:
            binding.end(slot)

    # ---------------------------------------------------------------- plans
    def begin(self) -> bool:
        """Ask the listeners what follows each task of the run; False where one of them needs events of its own."""
        taps = self._observers.taps
        if taps != self._taps:
            self._taps, self._plans, self._found = list(taps), [None] * len(taps), []
        found: list[Sequence[Follower | None]] = []
        for at, tap in enumerate(taps):
            plan = self._plans[at]
            following = None if plan is None else plan.begin()
            if following is None:
                planning = getattr(tap, "plan", None)
                plan = self._plans[at] = None if planning is None else planning(self._events)
                following = None if plan is None else plan.begin()
            if following is None:
                return False
            found.append(following)
        if len(found) != len(self._found) or any(a is not b for a, b in zip(found, self._found, strict=True)):
            self._found = found
            self._followers = [
                tuple(one for following in found if following and (one := following[at]) is not None)
                for at in range(len(self._events))
            ]
        return True

    def _made(self) -> list[TaskEvent]:
        """The events of inputs, then of kernels."""
        binding = self.graph.binding
        plan = binding.plan
        observers = self._observers
        made: list[TaskEvent] = []
        for slot in plan.parameters:
            event = observers.data_event(binding, slot)
            made.append(replace(event, outputs=self._placed([slot], [slot_ref(binding, slot, 0)])))
        ids = _ids(plan)
        for call in plan.calls:
            fields = observers.gathered(binding, call, observers.fields(binding, call, *ids[call]))
            slots = [argument for argument in call.arguments if isinstance(argument, Slot)]
            fields["operands"] = self._placed(slots, fields["operands"])
            fields["outputs"] = self._placed(call.outputs, fields["outputs"])
            made.append(TaskEvent(**fields))
        return made

    def _placed(self, slots: Sequence[Slot], refs: Sequence[TensorRef]) -> tuple[TensorRef, ...]:
        """References that find the bytes of now; the last operands may have none."""
        binding, arrays = self.graph.binding, self.graph.arrays
        return tuple(
            replace(ref, read=_Place(arrays[slot.index], binding.buffer(slot)))
            for slot, ref in zip(slots, refs, strict=False)
        )

    # ----------------------------------------------------------------- runs
    def upload(self, arguments: Sequence[HostArray]) -> None:
        """Take the arguments."""
        device, binding = self.graph.device, self.graph.binding
        prices = device.chip.prices
        for value, (slot, buffer), target in zip(arguments, self._inputs, self._targets, strict=True):
            binding.begin(slot)
            device.clock.advance(prices.copy_duration_ns(slot.nbytes))
            if target is not None:
                target[...] = value
            buffer.touch()

    def tell_inputs(self) -> None:
        """Call what follows the inputs."""
        for followers in self._followers[: self._first]:
            for follow in followers:
                follow()

    def guard(self) -> AbstractContextManager[Any]:
        """In which the tasks run."""
        return self.graph.kernels.guard()

    def results(self) -> list[HostArray]:
        """Copies of the results, after the tasks have run."""
        device = self.graph.device
        for slot in self.graph.binding.plan.results:
            device.clock.advance(device.chip.prices.copy_duration_ns(slot.nbytes))
        return self.graph.results()

    def _work(
        self,
        at: int,
        run: Callable[[], object],
        checks: Sequence[Callable[[], bool]],
        buffers: Sequence[Buffer],
        task: Task,
    ) -> None:
        """The work of one task."""
        run()
        status = 0
        for is_finite in checks:
            if not is_finite():
                status = self.graph.status(at)
                break
        for buffer in buffers:
            buffer.touch()
        if status:
            self._overflow(at, task, status)
        else:
            for follow in self._followers[self._first + at]:
                follow()

    def _overflow(self, at: int, task: Task, status: int) -> None:
        """Raise the flag, and tell the listeners with an event."""
        self.graph.device.status.set()
        event = self._events[self._first + at]
        on_core = self.graph.binding.plan.calls[at].engine in _CORES
        event = replace(
            event,
            operands=current(event.operands),
            outputs=current(event.outputs),
            time_ns=task.end_ns,
            overflow=True,
            overflow_status=status if on_core else 0,
        )
        for tap in self._taps:
            if tap.wants(event):
                tap.after_task(event)


class _Place:
    """Where the bytes of a tensor are in every run."""

    __slots__ = ("_buffer", "_bytes")

    def __init__(self, array: Any, buffer: Buffer) -> None:
        self._bytes: Bytes = array.reshape(-1).view(np.uint8)
        self._bytes.flags.writeable = False
        self._buffer = buffer

    @property
    def version(self) -> int:
        """The version of the bytes of now."""
        return self._buffer.version

    def __call__(self) -> Bytes:
        """The bytes."""
        return self._bytes


def _ids(plan: GraphPlan) -> dict[Call, tuple[int, int]]:
    """The numbers of task and stream of each kernel: a model counts its tasks, events too, anew in each run."""
    launches = plan.kernel_graph.launches or [Launch(stream=COMPUTE_STREAM, node=call.node) for call in plan.calls]
    calls = {id(call.node): call for call in plan.calls}
    ids = TaskIds()
    found: dict[Call, tuple[int, int]] = {}
    for launch in launches:
        call = calls.get(id(launch.node))
        if launch.record is not None or launch.wait is not None:
            ids.take()
        elif call is not None:
            found[call] = ids.take()[0], launch.stream
    return found
