"""A kernel graph on a device: its plan, its memory, and one run of it."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from dumpsim.core.errors import BadInputError, DeviceError
from dumpsim.core.options import CompileOptions
from dumpsim.device.device import COMPUTE_STREAM, Device
from dumpsim.device.event import Event
from dumpsim.device.injector import matches
from dumpsim.device.memory import Buffer
from dumpsim.device.space import BLOCK_RULES
from dumpsim.device.task import Task, TaskIds, TaskKind
from dumpsim.graph.program import KernelGraph
from dumpsim.ops.opdef import OpDef
from dumpsim.runtime.kernel import Kernels
from dumpsim.runtime.place import Place
from dumpsim.runtime.plan import Argument, Call, GraphPlan, is_dynamic, plan_graph
from dumpsim.runtime.storage import Weights
from dumpsim.runtime.unknown import HostArray, Unknown

__all__ = ["Lifetime", "LoadedGraph"]

_PLANS = 8  # plans that a graph with open shapes keeps


@dataclass(frozen=True, slots=True, kw_only=True)
class Lifetime:
    """When a tensor holds its memory.

    Attributes
    ----------
    graph_id : int
    owner : str
        Full name of the producing node, or parameter name.
    kind : str
        As in `Place.kind`.
    slot : int
        Output slot of the producer.
    address, nbytes : int
        Of the last run.
    born, dead : str
        Full names of the first and the last kernel that needs it; "" for the begin and the end of the run.
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
    options : CompileOptions
    weights : Weights
    kernels : Kernels
    find : callable
        The definition of an operator type.
    model_id : int
        Number of the model in the process where graphs run whole (O2), else 0.

    Attributes
    ----------
    model_name : str
        Name of the model, "" where graphs do not run whole.
    """

    def __init__(
        self,
        kernel_graph: KernelGraph,
        device: Device,
        options: CompileOptions,
        weights: Weights,
        kernels: Kernels,
        find: Callable[[str], OpDef],
        model_id: int = 0,
    ) -> None:
        self.model_id = model_id
        self.model_name = f"kernel_graph{kernel_graph.graph_id}" if model_id else ""
        self.kernel_graph = kernel_graph
        self.nodes = kernel_graph.order
        self.plan: GraphPlan | None = None
        self._device = device
        self._options = options
        self._weights = weights
        self._kernels = kernels
        self._find = find
        self._dynamic = is_dynamic(kernel_graph)
        self._plans: dict[tuple[tuple[int, ...], ...], GraphPlan] = {}
        self._workspace: Buffer | None = None
        self._owner = f"kernel graph {kernel_graph.graph_id}"

    # ------------------------------------------------------------- memory
    def reserve(self) -> None:
        """Take the memory that lasts, and see whether the workspace fits; open shapes wait for the first run."""
        if not self._dynamic:
            self.plan = self._load(())
            try:
                self._device.memory.require(self.plan.workspace, owner=self._owner)
            except DeviceError as error:
                raise self._with_largest(error, self.plan) from None

    def release(self) -> None:
        """Give all memory back; weights stay."""
        self.unclaim()
        for shapes in list(self._plans):
            self._unload(shapes)
        self.plan = None

    def unclaim(self) -> None:
        """Give the workspace back."""
        if self._workspace is not None:
            self._device.memory.free(self._workspace, dead=self._device.clock.now_ns)
            self._workspace = None

    def _load(self, shapes: tuple[tuple[int, ...], ...]) -> GraphPlan:
        """Plan the graph for these argument shapes, and put its constants on the device."""
        found = self._plans.get(shapes)
        if found is not None:
            return found
        if len(self._plans) >= _PLANS:
            self._unload(next(iter(self._plans)))
        chip = self._device.chip
        plan = plan_graph(self.kernel_graph, chip, self._options, self._find, shapes if self._dynamic else None)
        plan.model_name, plan.model_id = self.model_name, self.model_id
        for place in plan.weights:
            self._weights.bind(place)
        try:
            for place in plan.constants:
                assert place.value is not None
                owner = f"{self._owner} {place.name}"
                place.buffer = self._device.memory.allocate(place.nbytes, owner=owner, kind="constant", fill=False)
                place.put(place.value)
        except DeviceError:
            _free_constants(plan)
            raise
        self._plans[shapes] = plan
        return plan

    def _unload(self, shapes: tuple[tuple[int, ...], ...]) -> None:
        _free_constants(self._plans.pop(shapes))

    def _claim(self, plan: GraphPlan) -> None:
        """Give a plan its workspace."""
        if plan is not self.plan:
            self.unclaim()
            self.plan = plan
        if self._workspace is not None or not plan.planned:
            return
        memory = self._device.memory
        try:
            workspace = memory.allocate(plan.workspace, owner=self._owner, kind="workspace", fill=False)
        except DeviceError as error:
            raise self._with_largest(error, plan) from None
        self._workspace = workspace
        rule = BLOCK_RULES[plan.rule]
        for place in plan.planned:
            place.forget()
            address = workspace.address + place.offset
            if place.buffer is None:
                place.buffer = Buffer(
                    memory=memory,
                    address=address,
                    size=place.nbytes,
                    alloc_size=rule.block(place.nbytes),
                    owner=place.name,
                    kind=place.kind,
                    born=place.born,
                )
            place.buffer.address = address
            place.buffer.fresh = workspace.fresh
            place.buffer.dead = place.dead if place.born >= 0 else None
            workspace.parts.append(place.buffer)

    def _with_largest(self, error: DeviceError, plan: GraphPlan) -> DeviceError:
        """The error with the tensors that make the workspace large."""
        largest = sorted(plan.planned, key=lambda p: (-p.nbytes, p.offset))[:8]
        lines = [f"  {p.offset:>14} {p.nbytes:>14} {p.kind:<10} {p.name}" for p in largest]
        error.add_note(f"largest tensors of {self._owner} (offset, bytes):\n" + "\n".join(lines))
        return error

    # --------------------------------------------------------------- runs
    def run(self, arguments: Sequence[HostArray]) -> list[HostArray]:
        """Upload, launch, wait, copy back; the workspace stays claimed."""
        device = self._device
        prices = device.chip.prices
        plan = self._load(tuple(value.shape for value in arguments) if self._dynamic else ())
        self._claim(plan)
        for place in plan.weights:
            self._weights.upload(place)
        for place, value in zip(plan.inputs, arguments, strict=True):
            self._kernels.begin(place)
            if value.shape != place.shape:
                raise BadInputError(f"the argument has shape {value.shape}", where=place.name, allowed=[place.shape])
            device.clock.advance(prices.copy_duration_ns(place.nbytes))
            place.put(value.astype(place.device_dtype.numpy, copy=False))
        self._launch(plan)
        device.synchronize()
        return [self._result(argument) for argument in plan.results]

    def _launch(self, plan: GraphPlan) -> None:
        """Put the tasks on their streams; a model counts its tasks, events too, anew in each run."""
        device = self._device
        ids = TaskIds() if self.model_id else None
        if ids is not None:
            self._kernels.observers.data(plan, device.clock.now_ns)
        if not self.kernel_graph.launches:
            for call in plan.calls:
                device.stream(COMPUTE_STREAM).launch(self._task(plan, call), ids)
            return
        calls = {id(call.node): call for call in plan.calls}
        events: dict[int, Event] = {}
        for launch in self.kernel_graph.launches:
            stream = device.stream(launch.stream)
            if launch.record is not None:
                events[launch.record] = device.event()
                stream.record(events[launch.record], ids)
            elif launch.wait is not None:
                stream.wait(events[launch.wait], ids)
            elif id(launch.node) in calls:
                stream.launch(self._task(plan, calls[id(launch.node)]), ids)

    def _task(self, plan: GraphPlan, call: Call) -> Task:
        return Task(
            kind=TaskKind.of_engine(call.engine),
            name=call.node.full_name,
            work=partial(self._kernels.run, plan, call),
            cost_ns=call.cost_ns,
        )

    def _result(self, argument: Argument) -> HostArray:
        assert isinstance(argument, Place)
        self._device.clock.advance(self._device.chip.prices.copy_duration_ns(argument.nbytes))
        if not self._device.memory.backed:
            return Unknown(argument.name, argument.dtype.numpy, argument.shape)
        return np.array(argument.array(), dtype=argument.dtype.numpy)

    # ------------------------------------------------------------- reports
    def locate(self, pattern: str, slot: int) -> Buffer | None:
        """The buffer of an operator's output or of a parameter."""
        if self.plan is None:
            return None
        for call in self.plan.calls:
            if matches(pattern, call.node.op_type, call.node.full_name):
                for output in call.outputs:
                    if output.slot == slot and output.root.buffer is not None:
                        return output.memory()
        return next((p.buffer for p in self.plan.parameters if p.name == pattern and p.buffer is not None), None)

    def lifetimes(self) -> Iterator[Lifetime]:
        """Life times of the tensors in the workspace of the last plan, in the order of their births."""
        plan = self.plan
        if plan is None:
            return

        def name(position: int) -> str:
            return plan.calls[position].node.full_name if 0 <= position < len(plan.calls) else ""

        for place in sorted(plan.planned, key=lambda p: (p.born, p.offset)):
            yield Lifetime(
                graph_id=self.kernel_graph.graph_id,
                owner=place.name,
                kind=place.kind,
                slot=place.slot,
                address=place.buffer.address if place.buffer is not None else 0,
                nbytes=place.nbytes,
                born=name(place.born),
                dead=name(place.dead),
            )


def _free_constants(plan: GraphPlan) -> None:
    for place in plan.constants:
        if place.buffer is not None:
            place.buffer.memory.free(place.buffer)
            place.buffer = None
