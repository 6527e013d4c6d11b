"""A kernel graph on a device: its plan, its memory, and one run of it."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from dumpsim.core.communicator import Group
from dumpsim.core.errors import BadInputError, DeviceError
from dumpsim.device.device import COMPUTE_STREAM, Device
from dumpsim.device.event import Event
from dumpsim.device.injector import matches
from dumpsim.device.stream import Stream
from dumpsim.device.task import UNKNOWN_TASK_ID, Task, TaskIds, TaskKind
from dumpsim.graph.program import KernelGraph
from dumpsim.runtime.binding import Binding
from dumpsim.runtime.collective import Attendance, Operator, attend, is_shared, place_of
from dumpsim.runtime.kernel import Kernels
from dumpsim.runtime.plan import Call, GraphPlan, HostValue, is_dynamic, slots_of
from dumpsim.runtime.prepared import Prepared
from dumpsim.runtime.slot import Slot
from dumpsim.runtime.storage import Weights
from dumpsim.runtime.touched import touched
from dumpsim.runtime.unknown import HostArray, Unknown
from dumpsim.runtime.watched import Watched, WatchedBound
from dumpsim.world.context import RankContext, current

__all__ = ["Lifetime", "LoadedGraph", "Shapes"]

Shapes: TypeAlias = tuple[tuple[int, ...], ...]

_PLANS = 8  # bindings that are cached for a graph with open shapes


@dataclass(frozen=True, slots=True, kw_only=True)
class Lifetime:
    """The time during which a tensor occupies its memory.

    Attributes
    ----------
    graph_id : int
    owner : str
        Full name of the producing node, or parameter name.
    kind : str
        See `Slot.kind`.
    slot : int
        Output slot of the producer.
    address, nbytes : int
        Of the last run.
    born, dead : str
        Full names of the first and the last kernel that needs it; "" for the beginning and the end of the run.
    """

    graph_id: int
    owner: str
    kind: str
    slot: int
    address: int
    nbytes: int
    born: str
    dead: str


class LoadedGraph:
    """A kernel graph that is ready to run.

    Parameters
    ----------
    kernel_graph : KernelGraph
    device : Device
    plan_of : callable
        ``plan_of(kernel_graph, shapes)`` gives the plan for the shapes of the arguments, None if they are fixed.
    weights : Weights
    storages : sequence
        The rank's `Storage` objects, into which the graph's Parameters have indexes.
    kernels : Kernels
    keep_views : bool
        See `Binding`.
    """

    def __init__(
        self,
        kernel_graph: KernelGraph,
        device: Device,
        plan_of: Callable[[KernelGraph, Shapes | None], GraphPlan],
        weights: Weights,
        storages: Sequence[Any],
        kernels: Kernels,
        *,
        keep_views: bool = False,
    ) -> None:
        self.kernel_graph = kernel_graph
        self.nodes = kernel_graph.order
        self.binding: Binding | None = None
        self._launched: Binding | None = None  # of the run whose results are not yet collected
        self._prepared: Prepared | None = None  # of a run without tasks
        self._watched: Watched | None = None  # of a run whose tasks are planned
        self._streams: set[int] = set()  # with tasks of the last run
        self._device = device
        self._plan_of = plan_of
        self._repeated = replace(kernel_graph, order=kernel_graph.repeats) if kernel_graph.repeats else kernel_graph
        self._ran = False
        self._weights = weights
        self._storages = storages
        self._kernels = kernels
        self._keep_views = keep_views
        self._dynamic = is_dynamic(kernel_graph)
        self._bindings: dict[tuple[Shapes, bool], Binding] = {}
        self._owner = f"kernel graph {kernel_graph.graph_id}"

    @property
    def plan(self) -> GraphPlan | None:
        """The plan of the last run; None before the first run of a graph with open shapes."""
        return None if self.binding is None else self.binding.plan

    # ------------------------------------------------------------- memory
    def reserve(self) -> None:
        """Allocate the constants, and check that the workspace fits; for open shapes the first run does so."""
        if not self._dynamic:
            self.binding = self._load(())
            plan = self.binding.plan
            try:
                self._device.memory.require(plan.workspace, owner=self._owner)
            except DeviceError as error:
                raise self._with_largest(error, plan) from None

    def release(self) -> None:
        """Free all memory but that of weights."""
        self.unclaim()
        for key in list(self._bindings):
            self._unload(key)
        self.binding = None

    def unclaim(self) -> None:
        """Free the workspace; results that were not collected are lost."""
        self._launched = None
        workspace = None if self.binding is None else self.binding.unclaim()
        if workspace is not None:
            self._device.memory.free(workspace, dead=self._device.clock.now_ns)

    def _load(self, shapes: Shapes) -> Binding:
        """Plan the graph for these argument shapes, and put its constants on the device."""
        again = self._ran and bool(self.kernel_graph.repeats)
        found = self._bindings.get((shapes, again))
        if found is not None:
            return found
        if len(self._bindings) >= _PLANS:
            self._unload(next(iter(self._bindings)))
        memory = self._device.memory
        plan = self._plan_of(self._repeated if again else self.kernel_graph, shapes if self._dynamic else None)
        binding = Binding(plan, memory, self._storages, keep_views=self._keep_views)
        for slot in plan.weights:
            self._weights.bind(binding, slot)
        try:
            for slot in plan.constants:
                owner = f"{self._owner} {slot.name}"
                binding.fix(slot, memory.allocate(slot.nbytes, owner=owner, kind="constant", fill=False))
                assert slot.value is not None
                binding.put(slot, slot.value)
        except DeviceError:
            self._free_constants(binding)
            raise
        self._bindings[shapes, again] = binding
        return binding

    def _unload(self, key: tuple[Shapes, bool]) -> None:
        self._free_constants(self._bindings.pop(key))

    def _free_constants(self, binding: Binding) -> None:
        for slot in binding.plan.constants:
            buffer = binding.unfix(slot)
            if buffer is not None:
                self._device.memory.free(buffer)

    def _claim(self, binding: Binding) -> None:
        """Allocate the workspace of a plan."""
        if binding is not self.binding:
            self.unclaim()
            self.binding = binding
        plan = binding.plan
        if binding.workspace is not None or not plan.planned:
            return
        memory = self._device.memory
        try:
            workspace = memory.allocate(plan.workspace, owner=self._owner, kind="workspace", fill=False)
        except DeviceError as error:
            raise self._with_largest(error, plan) from None
        binding.claim(workspace)

    def _with_largest(self, error: DeviceError, plan: GraphPlan) -> DeviceError:
        """Add the largest tensors of the workspace to an error."""
        largest = sorted(plan.planned, key=lambda p: (-p.nbytes, p.offset))[:8]
        lines = [f"  {p.offset:>14} {p.nbytes:>14} {p.kind:<10} {p.name}" for p in largest]
        error.add_note(f"largest tensors of {self._owner} (offset, bytes):\n" + "\n".join(lines))
        return error

    # --------------------------------------------------------------- runs
    def launch(self, arguments: Sequence[HostArray]) -> None:
        """Upload the arguments and put the kernels on their streams, without waiting for them.

        Raises
        ------
        DeviceError
            If the results of the previous launch were not collected: they are in the workspace.
        """
        if self._launched is not None:
            raise DeviceError("the graph is launched again before its results are collected", where=self._owner)
        device = self._device
        prices = device.chip.prices
        binding = self._load(tuple(value.shape for value in arguments) if self._dynamic else ())
        self._claim(binding)
        self._prepared = self._kernels.prepared(binding, arguments)
        if self._prepared is not None:
            self._prepared.launch(arguments)
            self._launched = binding
            return
        for slot in binding.plan.weights:
            self._weights.upload(binding, slot)
        self._watched = self._kernels.watched(binding, arguments)
        if isinstance(self._watched, WatchedBound):
            self._watched.upload(arguments)
            self._enqueue(binding)
            self._launched = binding
            return
        for slot, value in zip(binding.plan.inputs, arguments, strict=True):
            binding.begin(slot)
            if value.shape != slot.shape:
                raise BadInputError(f"the argument has shape {value.shape}", where=slot.name, allowed=[slot.shape])
            device.clock.advance(prices.copy_duration_ns(slot.nbytes))
            binding.share(slot, value.astype(slot.numpy, copy=False))
        self._enqueue(binding)
        self._launched = binding
        self._ran = True

    def collect(self) -> list[HostArray]:
        """Wait for the kernels that were launched, and copy the results back; the workspace stays claimed.

        Raises
        ------
        DeviceError
            If nothing was launched, or the device stopped.
        """
        binding, self._launched = self._launched, None
        if binding is None:
            raise DeviceError("nothing was launched", where=self._owner)
        if self._prepared is not None:
            return self._prepared.collect()
        watched = self._watched
        bound = watched if isinstance(watched, WatchedBound) else None
        with nullcontext() if bound is None else bound.guard():
            self._device.synchronize([stream for stream in self._device.streams if stream.stream_id in self._streams])
        if bound is not None:
            return bound.results()
        return [self._result(binding, slot) for slot in binding.plan.results]

    def _enqueue(self, binding: Binding) -> None:
        """Put the tasks on their streams; a model restarts the count of tasks and events in each run."""
        device = self._device
        ids = TaskIds() if self.kernel_graph.model_id else None
        if ids is not None:
            if self._watched is not None:
                self._watched.report_inputs()
            else:
                self._kernels.observers.data(binding, device.clock.now_ns)
        self._streams = {COMPUTE_STREAM}
        context = current()
        if not self.kernel_graph.launches:
            for call in binding.plan.calls:
                self._launch(binding, call, device.stream(COMPUTE_STREAM), self._group(call, context), ids)
            return
        calls = {id(call.node): call for call in binding.plan.calls}
        events: dict[int, Event] = {}
        for launch in self.kernel_graph.launches:
            kernel = calls[id(launch.node)]
            group = self._group(kernel, context)
            # a model numbers the streams of its groups itself
            number = launch.stream if group is None or ids is not None else COMPUTE_STREAM + 1 + group.number
            self._streams.add(number)
            stream = device.stream(number)
            if launch.record is not None:
                events[launch.record] = device.event()
                stream.record(events[launch.record], ids)
            elif launch.wait is not None:
                stream.wait(events[launch.wait], ids)
            else:
                self._launch(binding, kernel, stream, group, ids)

    @staticmethod
    def _group(call: Call, context: RankContext) -> Group | None:
        """The group of a collective of several ranks; None for every other kernel."""
        return context.communicator.group(call.attrs["group"]) if is_shared(call.definition, context.size) else None

    def _launch(self, binding: Binding, call: Call, stream: Stream, group: Group | None, ids: TaskIds | None) -> None:
        """Put a kernel on a stream."""
        task = Task(
            kind=TaskKind.of_engine(call.engine),
            name=call.node.full_name,
            work=partial(self._kernels.run, binding, call) if self._watched is None else self._watched.works[call],
            cost_ns=call.cost_ns,
        )
        if group is not None and not self._kernels.skips(call.node):
            task.gate = gate = self._attend(binding, call, group)
            task.cost_ns = gate.cost_ns
            inputs = self._kernels.inputs(binding, call, task)
            if inputs is not None:
                stream.launch(inputs, TaskIds())  # ids of other tasks do not depend on listeners
                inputs.task_id = UNKNOWN_TASK_ID
        if self._device.races is not None:
            task.touches = partial(touched, binding, call, None if group is None else group.name)
        stream.launch(task, ids)

    def _attend(self, binding: Binding, call: Call, group: Group) -> Attendance:
        """Join the group of a collective."""
        slots = [slot for argument in call.arguments for slot in slots_of(argument)]
        operator = Operator(
            type=call.definition.name,
            attrs=call.attrs,
            tensors=tuple((slot.device_dtype.name, binding.shape(slot)) for slot in slots),
            outputs=tuple((slot.device_dtype.name, binding.shape(slot)) for slot in call.outputs),
            host=tuple(argument.value for argument in call.arguments[1:] if isinstance(argument, HostValue)),
            name=call.node.full_name,
            place=place_of(call.node),
        )
        return attend(group, operator, lambda: [binding.array(slot) for slot in slots], self._kernels.injector)

    def _result(self, binding: Binding, slot: Slot) -> HostArray:
        self._device.clock.advance(self._device.chip.prices.copy_duration_ns(binding.nbytes(slot)))
        if not self._device.memory.backed:
            return Unknown(slot.name, slot.dtype.numpy, binding.shape(slot))
        values = binding.array(slot)
        if not values.flags.writeable and values.dtype == slot.dtype.numpy:
            return values  # shared, like the results of collectives in PYNATIVE
        return np.array(values, dtype=slot.dtype.numpy)

    # ------------------------------------------------------------- reports
    def locate(self, pattern: str, slot: int) -> int | None:
        """The address of an operator's output or of a parameter."""
        binding = self.binding
        if binding is None:
            return None
        for call in binding.plan.calls:
            if matches(pattern, call.node.op_type, call.node.full_name):
                for output in call.outputs:
                    if output.slot == slot and binding.address(output):
                        return binding.address(output)
        return next((binding.address(p) or None for p in binding.plan.parameters if p.name == pattern), None)

    def lifetimes(self) -> Iterator[Lifetime]:
        """Life times of the tensors in the workspace of the last plan, in the order of their births."""
        binding = self.binding
        if binding is None:
            return
        calls = binding.plan.calls

        def name(position: int) -> str:
            return calls[position].node.full_name if 0 <= position < len(calls) else ""

        for slot in sorted(binding.plan.planned, key=lambda s: (s.born, s.offset)):
            yield Lifetime(
                graph_id=self.kernel_graph.graph_id,
                owner=slot.name,
                kind=slot.kind,
                slot=slot.slot,
                address=binding.address(slot),
                nbytes=binding.nbytes(slot),
                born=name(slot.born),
                dead=name(slot.dead),
            )
