"""Runs a compiled network on a device: its kernel graphs, the control flow between them, and the events of a run."""

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

import numpy as np

from dumpsim.core.errors import BadInputError, DeviceError, UnknownValueError
from dumpsim.core.options import CompileOptions
from dumpsim.device.device import Device
from dumpsim.device.injector import Injector
from dumpsim.graph.graph import Constant
from dumpsim.graph.program import Branch, Keep, KernelGraph, Loop, Move, Program, Repeat, Restore, Run, Step
from dumpsim.runtime.engine.engine import Engine
from dumpsim.runtime.kernel import Kernels
from dumpsim.runtime.loaded import Lifetime, LoadedGraph, Shapes
from dumpsim.runtime.observe import Observers, host_array
from dumpsim.runtime.plan import GraphPlan
from dumpsim.runtime.storage import Weights
from dumpsim.runtime.unknown import HostArray, Unknown

__all__ = ["Executor"]


class Executor:
    """A program on a device, planned and ready to run.

    Parameters
    ----------
    program : Program
    device : Device
    options : CompileOptions
    weights : Weights
        Shared by all programs of the device.
    observers : Observers
    engine : Engine
        Computes the kernels.
    plan_of : callable
        The plan of a kernel graph, see `LoadedGraph`.
    storages : sequence
        The rank's `Storage` objects, into which the program's Parameters have indexes.
    skipped : collection of str
        Kernels to skip, see `Kernels`.
    keep_views : bool
        See `Binding`.

    Attributes
    ----------
    graphs : tuple of LoadedGraph
        One per kernel graph.
    runs : int
        Runs that were finished.

    Raises
    ------
    OutOfMemoryError
        If the weights, constants and the largest workspace do not fit.
    UnsupportedError
        For an operator that is not emulated.
    """

    def __init__(
        self,
        program: Program,
        device: Device,
        options: CompileOptions,
        weights: Weights,
        observers: Observers,
        engine: Engine,
        plan_of: Callable[[KernelGraph, Shapes | None], GraphPlan],
        storages: Sequence[Any] = (),
        skipped: Collection[str] = (),
        *,
        keep_views: bool = False,
    ) -> None:
        self.program = program
        self.options = options
        self.runs = 0
        self._observers = observers
        self._kernels = Kernels(device, engine, observers, memory_reuse=options.memory_reuse, skipped=skipped)
        self._stacks: list[list[Any]] = []  # values that loops save for their gradients
        self.graphs = tuple(
            LoadedGraph(graph, device, plan_of, weights, storages, self._kernels, keep_views=keep_views)
            for graph in program.kernel_graphs
        )
        try:
            for graph in self.graphs:
                graph.reserve()
        except DeviceError:
            self.release()
            raise

    def announce(self) -> None:
        """Report the kernel graphs to the taps."""
        for graph in self.graphs:
            self._observers.graph_compiled(graph.kernel_graph, graph.nodes, graph.plan)

    def release(self) -> None:
        """Free the memory of constants; the program cannot run again."""
        for graph in self.graphs:
            graph.release()

    def lifetimes(self) -> Iterator[Lifetime]:
        """Life times of all planned tensors, as of the last run."""
        for graph in self.graphs:
            yield from graph.lifetimes()

    def execute(self, arguments: Sequence[Any], *, kind: str = "train", injector: Injector | None = None) -> list[Any]:
        """Run the network once.

        Parameters
        ----------
        arguments : sequence of array_like
            One per `Program.inputs`.
        kind : str
            ``train``, or ``dataset`` for the graph of a data sink.
        injector : Injector, optional
            The fault plan.

        Returns
        -------
        list of ndarray
            One per `Program.outputs`, in host layout and type; constants that are not numbers as they are.

        Raises
        ------
        BadInputError
            For arguments that do not fit the network's inputs.
        DeviceError
            If the device stopped.
        """
        slots = self._checked(arguments)
        self._stacks = [[] for _ in range(self.program.stacks)]
        self._kernels.follow(injector, self._locate)
        root = self.graphs[0] if self.graphs and self._observers.taps else None
        if root is not None:
            self._observers.run_begin(root.kernel_graph, self.runs, kind)
        try:
            self._steps(self.program.steps, slots)
            self.runs += 1
            if root is not None:
                own = [
                    (graph.kernel_graph.graph_id, graph.binding)
                    for graph in self.graphs
                    if graph.kernel_graph.is_own and graph.binding is not None
                ]  # others have formal parameters [spec vendor 2.10]
                self._observers.run_end(root.kernel_graph, own, self.runs, kind)
        finally:
            self._kernels.follow(None, None)
            for graph in self.graphs:
                graph.unclaim()
            self._stacks.clear()
        return [_constant(o) if isinstance(o, Constant) else _filled(slots, o) for o in self.program.outputs]

    def _checked(self, arguments: Sequence[Any]) -> list[HostArray | None]:
        """Check the arguments, and return the slots filled with them."""
        program = self.program
        if len(arguments) != len(program.inputs):
            raise BadInputError(
                f"{len(arguments)} arguments for {len(program.inputs)} inputs", where=program.name or "network"
            )
        slots: list[HostArray | None] = [None] * max(program.slots, len(arguments))
        for at, (parameter, value) in enumerate(zip(program.inputs, arguments, strict=True)):
            array = value if isinstance(value, Unknown) else np.asarray(value)
            wanted = parameter.abstract
            if array.shape != wanted.shape and (
                array.ndim != len(wanted.shape)
                or any(w not in (-1, given) for w, given in zip(wanted.shape, array.shape, strict=True))
            ):
                raise BadInputError(
                    f"the argument has shape {array.shape}", where=parameter.name, allowed=[wanted.shape]
                )
            if array.dtype != wanted.dtype.numpy:
                raise BadInputError(f"the argument is {array.dtype}", where=parameter.name, allowed=[wanted.dtype])
            slots[at] = array
        return slots

    def _steps(self, steps: Sequence[Step], slots: list[HostArray | None]) -> None:
        for step in steps:
            match step:
                case Run():
                    graph = self.graphs[step.graph]
                    graph.launch([_filled(slots, at) for at in step.arguments])
                    results = graph.collect()  # immediately, since an event's time is that of the graph's launch
                    if not graph.kernel_graph.is_own:  # the others' parameters are read at the end of the run
                        graph.unclaim()
                    for at, result in zip(step.results, results, strict=True):
                        slots[at] = result
                case Move(source=Constant() as constant):
                    slots[step.target] = _constant(constant)
                case Move(source=int() as source):
                    slots[step.target] = _filled(slots, source)
                case Branch():
                    self._steps(step.then if _true(_filled(slots, step.condition)) else step.otherwise, slots)
                case Loop():
                    rounds = 0
                    self._steps(step.head, slots)
                    while _true(_filled(slots, step.condition)):
                        rounds += 1
                        self._steps(step.body, slots)
                        self._steps(step.head, slots)
                    for stack in step.counted:
                        self._stacks[stack].append(rounds)
                case Keep():
                    self._stacks[step.stack].append([slots[at] for at in step.sources])
                case Restore():
                    for target, value in zip(step.targets, self._stacks[step.stack].pop(), strict=True):
                        slots[target] = value
                case Repeat():
                    for _ in range(self._stacks[step.counter].pop()):
                        self._steps(step.body, slots)

    def _locate(self, pattern: str, slot: int) -> int | None:
        for graph in self.graphs:
            found = graph.locate(pattern, slot)
            if found is not None:
                return found
        return None


def _constant(constant: Constant) -> Any:
    """Return a constant as a call does: an array if it consists of numbers, else the value itself."""
    content = host_array(constant.value, constant.abstract)
    return constant.value if content is None else content[0]


def _filled(slots: Sequence[HostArray | None], at: int) -> HostArray:
    value = slots[at]
    if value is None:
        raise DeviceError(f"slot {at} is read before a graph has filled it")
    return value


def _true(condition: HostArray) -> bool:
    if isinstance(condition, Unknown):
        raise UnknownValueError("the branch that the network takes is not known", where=condition.name)
    return bool(condition.reshape(-1)[0])
