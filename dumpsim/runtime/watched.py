"""Watched runs in which every task does the same as in the previous run, with other bytes.

The tasks, their streams, events and times are those of any run. But instead of sending events with new references to
the listeners, a task calls the steps that the listeners have planned. If kernels can be bound to memory
(`WatchedBound`), a task does not look up its operands and outputs either.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np

from dumpsim.core.events import Follower, PlannedGraph, Reader, Step, Tap, TaskEvent, current
from dumpsim.device.arena import Bytes
from dumpsim.device.device import COMPUTE_STREAM, Device
from dumpsim.device.memory import Buffer
from dumpsim.device.task import UNKNOWN_TASK_ID, Task, TaskIds
from dumpsim.graph.program import Launch
from dumpsim.runtime.binding import Binding
from dumpsim.runtime.boundgraph import BoundGraph
from dumpsim.runtime.observe import Observers, slot_ref
from dumpsim.runtime.plan import Call, GraphPlan
from dumpsim.runtime.slot import Slot
from dumpsim.runtime.unknown import HostArray

__all__ = ["Compute", "Watched", "WatchedBound"]

_CORES = ("aicore", "aivector")  # engines whose status word overflow detection reads [spec parallel 4.4]


class Compute(Protocol):
    """Computes kernels one by one, see `Kernels`."""

    def compute(self, binding: Binding, call: Call) -> int:
        """Run a kernel, and return AI Core's status word."""
        ...

    def check_index(self, binding: Binding, call: Call, task: Task) -> None:
        """Stop the task of a kernel with an index out of range."""
        ...

    def bury(self, binding: Binding, call: Call) -> None:
        """End the lives of the tensors that are unused after a kernel."""
        ...


class _Steps(NamedTuple):
    """The listeners' steps before and after a task."""

    before: tuple[Step, ...]
    after: tuple[Step, ...]


class Watched:
    """A kernel graph whose tensors have fixed places, and the steps that listeners have planned for its runs.

    Parameters
    ----------
    binding : Binding
    device : Device
    observers : Observers
    compute : Compute

    Attributes
    ----------
    works : mapping of Call to callable
        The work of each kernel's task.
    """

    def __init__(self, binding: Binding, device: Device, observers: Observers, compute: Compute) -> None:
        self._binding = binding
        self._device = device
        self._observers = observers
        self._compute = compute
        self._taps: list[Tap] = []
        self._plans: list[PlannedGraph | None] = []
        self._found: list[Sequence[Follower | None]] = []
        self._steps: list[_Steps] = []  # by event
        plan = binding.plan
        self._data = plan.parameters if plan.kernel_graph.model_id else ()  # the inputs of a model are reported
        for slot in plan.planned:  # their buffers are those of every run
            binding.begin(slot)
        self._events = self._made()
        self.works: dict[Call, Callable[[Task], None]] = {
            call: self._work_of(at, call) for at, call in enumerate(plan.calls)
        }
        for slot in plan.planned:
            binding.end(slot)

    # ---------------------------------------------------------------- plans
    def begin(self) -> bool:
        """Ask the listeners for their steps at each task of the run; return False if one of them needs events."""
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
            self._steps = [
                _steps([one for following in found if following and (one := following[at]) is not None])
                for at in range(len(self._events))
            ]
        return True

    def _made(self) -> list[TaskEvent]:
        """Return the events of a model's inputs, then those of kernels."""
        binding, observers = self._binding, self._observers
        made = [
            replace(observers.data_event(binding, slot), outputs=(slot_ref(binding, slot, 0, place=self._place),))
            for slot in self._data
        ]
        ids = _ids(binding.plan)
        for call in binding.plan.calls:
            fields = observers.fields(binding, call, *ids[call])
            made.append(TaskEvent(**observers.gathered(binding, call, fields, place=self._place)))
        return made

    def _place(self, slot: Slot, nbytes: int) -> Reader:
        """Return the reader of a tensor's bytes."""
        return _Place(self._binding.buffer(slot), nbytes)

    # ----------------------------------------------------------------- runs
    def report_inputs(self) -> None:
        """Report the model's inputs to the listeners."""
        now_ns = self._device.clock.now_ns
        for at in range(len(self._data)):
            before, after = self._steps[at]
            for step in (*before, *after):
                step(UNKNOWN_TASK_ID, now_ns)

    def _work_of(self, at: int, call: Call) -> Callable[[Task], None]:
        """The work of a kernel's task."""
        return partial(self._work, len(self._data) + at, call)

    def _work(self, at: int, call: Call, task: Task) -> None:
        binding, compute = self._binding, self._compute
        before, after = self._steps[at]
        for slot in call.births:
            binding.begin(slot)
        for step in before:
            step(task.task_id, task.end_ns)
        if call.definition.bounds is not None:
            compute.check_index(binding, call, task)
        status = compute.compute(binding, call)
        if status:
            self._overflow(at, call, task, status)
        else:
            for step in after:
                step(task.task_id, task.end_ns)
        compute.bury(binding, call)

    def _overflow(self, at: int, call: Call, task: Task, status: int) -> None:
        """Raise the overflow flag, and send an event to the listeners."""
        self._device.status.set()
        event = self._events[at]
        event = replace(
            event,
            operands=current(event.operands),
            outputs=current(event.outputs),
            task_id=task.task_id,
            time_ns=task.end_ns,
            overflow=True,
            overflow_status=status if call.engine in _CORES else 0,
        )
        for tap in self._taps:
            if tap.wants(event):
                tap.after_task(event)


class WatchedBound(Watched):
    """A watched graph whose kernels are bound to memory.

    Parameters
    ----------
    graph : BoundGraph
    observers : Observers
    compute : Compute
    """

    def __init__(self, graph: BoundGraph, observers: Observers, compute: Compute) -> None:
        self.graph = graph
        super().__init__(graph.binding, graph.device, observers, compute)
        plan = graph.binding.plan
        copied = dict(graph.copied)
        self._targets = [copied.get(at) for at in range(len(plan.inputs))]
        for slot in plan.planned:
            graph.binding.begin(slot)
        self._inputs = [(slot, graph.binding.buffer(slot)) for slot in plan.inputs]
        for slot in plan.planned:
            graph.binding.end(slot)

    def _place(self, slot: Slot, nbytes: int) -> Reader:
        return _FixedPlace(self._binding.buffer(slot), self.graph.arrays[slot.index])

    def upload(self, arguments: Sequence[HostArray]) -> None:
        """Upload the arguments."""
        device, binding = self.graph.device, self.graph.binding
        prices = device.chip.prices
        for value, (slot, buffer), target in zip(arguments, self._inputs, self._targets, strict=True):
            binding.begin(slot)
            device.clock.advance(prices.copy_duration_ns(slot.nbytes))
            if target is not None:
                target[...] = value
            buffer.touch()

    def guard(self) -> AbstractContextManager[Any]:
        """Return the context manager in which the tasks run."""
        return self.graph.kernels.guard()

    def results(self) -> list[HostArray]:
        """Return copies of the results, after the tasks have run."""
        device = self.graph.device
        for slot in self.graph.binding.plan.results:
            device.clock.advance(device.chip.prices.copy_duration_ns(slot.nbytes))
        return self.graph.results()

    def _work_of(self, at: int, call: Call) -> Callable[[Task], None]:
        kernels = self.graph.kernels
        run = kernels.runs[at]
        assert run is not None, call.node.full_name
        checks = kernels.finite[at] if self._device.overflow is not None else ()
        buffers = [self._binding.buffer(slot) for slot in call.outputs]
        return partial(self._bound_work, at, call, run, checks, buffers)

    def _bound_work(
        self,
        at: int,
        call: Call,
        run: Callable[[], object],
        checks: Sequence[Callable[[], bool]],
        buffers: Sequence[Buffer],
        task: Task,
    ) -> None:
        before, after = self._steps[len(self._data) + at]
        for step in before:
            step(task.task_id, task.end_ns)
        run()
        status = 0
        for is_finite in checks:
            if not is_finite():
                status = self.graph.status(at)
                break
        for buffer in buffers:
            buffer.touch()
        if status:
            self._overflow(len(self._data) + at, call, task, status)
        else:
            for step in after:
                step(task.task_id, task.end_ns)


def _steps(followers: Sequence[Follower]) -> _Steps:
    """Join the steps of several listeners."""
    return _Steps(
        tuple(one.before for one in followers if one.before is not None),
        tuple(one.after for one in followers if one.after is not None),
    )


class _Place:
    """The place of a tensor's bytes in every run; a shared array may replace them."""

    __slots__ = ("_buffer", "_bytes", "_nbytes", "_ranges")

    def __init__(self, buffer: Buffer, nbytes: int) -> None:
        self._buffer = buffer
        self._nbytes = nbytes
        self._ranges = buffer.memory.ranges
        self._bytes: Bytes = buffer.memory.own_bytes(buffer.address, nbytes)
        self._bytes.flags.writeable = False

    @property
    def version(self) -> int:
        """The current version of the bytes."""
        return self._buffer.version

    def __call__(self) -> Bytes:
        """Return the bytes."""
        return self._buffer.bytes()[: self._nbytes] if self._ranges else self._bytes


class _FixedPlace:
    """The place of a tensor's bytes in every run: an array of the device, or of the host."""

    __slots__ = ("_buffer", "_bytes")

    def __init__(self, buffer: Buffer, array: Any) -> None:
        self._bytes: Bytes = array.reshape(-1).view(np.uint8)
        self._bytes.flags.writeable = False
        self._buffer = buffer

    @property
    def version(self) -> int:
        """The current version of the bytes."""
        return self._buffer.version

    def __call__(self) -> Bytes:
        """Return the bytes."""
        return self._bytes


def _ids(plan: GraphPlan) -> dict[Call, tuple[int, int]]:
    """Return the task and stream ids of each kernel: a model restarts the count of tasks and events in each run."""
    launches = plan.kernel_graph.launches or [Launch(stream=COMPUTE_STREAM, node=call.node) for call in plan.calls]
    calls = {id(call.node): call for call in plan.calls}
    ids = TaskIds()
    found: dict[Call, tuple[int, int]] = {}
    for launch in launches:
        number, _ = ids.take()
        if launch.record is None and launch.wait is None:
            found[calls[id(launch.node)]] = number, launch.stream
    return found
