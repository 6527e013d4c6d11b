"""A session: device, clock, counters, listeners and compiled programs of a process, or of a rank in a process."""

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from threading import RLock
from types import MappingProxyType
from typing import TYPE_CHECKING, Any
from weakref import ref

import numpy as np

from dumpsim.core.abstract import Abstract, NoneType, ScalarType, StringType, TensorType, TupleType, TypeType
from dumpsim.core.clock import Clock, VirtualClock, WallClock
from dumpsim.core.dtype import DType, dtype, from_numpy
from dumpsim.core.errors import BadInputError
from dumpsim.core.events import Tap
from dumpsim.core.options import BACKWARD_GRAPHS, CompileOptions
from dumpsim.core.settings import RunSettings
from dumpsim.device.chip import Chip, chip, chip_for
from dumpsim.device.device import Device
from dumpsim.device.disk import DiskFaults
from dumpsim.device.injector import Injector
from dumpsim.device.memory import Memory
from dumpsim.device.queue import HostQueues
from dumpsim.device.races import Races
from dumpsim.device.scheduler import Scheduler
from dumpsim.device.task import Task
from dumpsim.graph.compilation import Saver
from dumpsim.graph.graph import Graph
from dumpsim.graph.parallel.settings import Settings
from dumpsim.graph.parallel.slices import TensorSlices, slices_of
from dumpsim.graph.pipeline import WHOLE_GRAPH, compile_graph, mindspore_pipeline
from dumpsim.graph.program import KernelGraph, Program
from dumpsim.ops.opdef import OpDef
from dumpsim.ops.table import find
from dumpsim.runtime.collective import is_shared
from dumpsim.runtime.eager import Pending, launch_op
from dumpsim.runtime.engine.engine import Engine
from dumpsim.runtime.engine.table import engine as engine_of
from dumpsim.runtime.executor import Executor
from dumpsim.runtime.gegraph import GeGraphs
from dumpsim.runtime.ids import Ids
from dumpsim.runtime.irsave import GraphSaver
from dumpsim.runtime.loaded import Lifetime, Shapes
from dumpsim.runtime.observe import Observers
from dumpsim.runtime.plan import GraphPlan
from dumpsim.runtime.plans import Plans
from dumpsim.runtime.programs import Programs
from dumpsim.runtime.storage import Replicas, Weights
from dumpsim.runtime.unknown import HostArray, Unknown
from dumpsim.world.context import current
from dumpsim.world.terms import terms_of

if TYPE_CHECKING:
    from dumpsim.device.faults import FaultPlan

__all__ = ["Arrivals", "Session"]

_TARGETS = MappingProxyType({"ascend": "Ascend", "gpu": "GPU", "cpu": "CPU"})


def _found(own: Mapping[str, OpDef], find: Callable[[str], OpDef], op_type: str) -> OpDef:
    """Return the definition of an operator type: the script's, else the table's."""
    return own[op_type] if op_type in own else find(op_type)


def _report_unused(injector: "ref[Injector]") -> None:
    """Print the faults of the plan that never occurred, at the end of a run."""
    found = injector()
    for text in found.unused_text() if found is not None else ():
        print(f"dumpsim: fault plan: {text}", file=sys.stderr)


@dataclass(slots=True)
class Arrivals:
    """Callbacks for a new session of the rank, registered before it exists."""

    observers: "list[Callable[[Session], object]]" = field(default_factory=list)


class Session:
    """The emulated machine as one process sees it.

    Parameters
    ----------
    settings : RunSettings, optional
        The settings of `dumpsim run`, by default the environment's.
    rank, device_id : int, optional
        Global rank, and number of the device in its server; by default those of the current rank context.
    environment : mapping, optional
        Environment variables, by default the rank's, copied now.
    scheduler : Scheduler, optional
        Shared with other ranks of the same process; by default the world's if it has several ranks.
    find : callable
        The definition of an operator type, by default `dumpsim.ops.table.find`.
    engine : Engine, optional
        Computes the kernels; by default the engine of the settings.

    Attributes
    ----------
    ids : Ids
        Graph ids, operator numbers, CNode numbers.
    clock : Clock
        The rank's clock.
    queues : HostQueues
        Data that kernels send to the host: TensorDump, Print.
    seed : int
        Seed of all random numbers that the script does not seed itself.
    memory_reuse : bool
        Whether programs compiled from now on reuse the memory of dead tensors; a synchronous dump turns it off.
        [spec mindspore 12.1]

    Examples
    --------
    >>> from dumpsim.core.settings import RunSettings
    >>> session = Session(RunSettings(chip="910A"), environment={})
    >>> session.chip.name, session.target, session.ids.graph()
    ('910A', 'Ascend', 0)
    """

    def __init__(
        self,
        settings: RunSettings | None = None,
        *,
        rank: int | None = None,
        device_id: int | None = None,
        environment: Mapping[str, str] | None = None,
        scheduler: Scheduler | None = None,
        find: Callable[[str], OpDef] = find,
        engine: Engine | None = None,
    ) -> None:
        context = current()
        self.environment = dict(context.environment if environment is None else environment)
        self.settings = RunSettings.from_environment(self.environment) if settings is None else settings
        self.rank = context.rank if rank is None else rank
        self._device_id = device_id
        self.clock: Clock = WallClock() if self.settings.clock == "wall" else VirtualClock()
        self.ids = Ids()
        self.queues = HostQueues(self.environment, self.clock.advance)
        self.seed = self.settings.seed
        self.observers = Observers(self.rank)
        self._world = context.world
        self._scheduler = context.scheduler if scheduler is None else scheduler
        self._find = find
        self._own: dict[str, OpDef] = {}  # operators that only scripts define
        self.engine = engine_of(self.settings.engine) if engine is None else engine
        self._context_target: str | None = None
        self._jit_level = "O0"  # "" follows the chip
        self._exec_order = "bfs"
        self._skipped = frozenset(filter(None, self.environment.get("MS_KERNEL_LAUNCH_SKIP", "").split(",")))
        self.ge_graphs = GeGraphs.from_environment(self.environment)
        self.memory_reuse = True  # a synchronous dump turns it off before the first compile [spec mindspore 12.1]
        self._device: Device | None = None
        self._weights: Weights | None = None
        self._executors: dict[int, Executor] = {}  # by id of their program, which they keep alive
        self._storages: dict[int, tuple[Program, Sequence[Any]]] = {}  # this rank's storages of a program's weights
        self._eager_runs: dict[tuple[str, tuple[str, ...]], int] = {}
        self._injector: Injector | None = None
        self._busy = RLock()  # threads of a script share the device: one runs at a time
        self.graph_saver: GraphSaver | None = None  # set by the front end to save its graphs
        self._trace: Callable[[Task], None] | None = None
        self.backward_passes: Any = None  # the front end's cache of gradient graphs
        self._closers: list[Callable[[], object]] = []
        for observe in context.get(Arrivals).observers:
            observe(self)
        if self.settings.faults:
            from dumpsim.device.faults import load_plan

            injector = self.inject(load_plan(self.settings.faults))
            if not self.settings.quiet:
                context.at_close(partial(_report_unused, ref(injector)))

    def __repr__(self) -> str:
        try:
            name, level = self.chip.name, self._level
        except BadInputError:  # the settings contradict each other: opening the device raises
            name, level = str(self.settings.chip), self._jit_level
        machine = f"{self.target} {name}, device {self.device_id}, rank {self.rank}"
        run = f"MindSpore {self.settings.mindspore}, {level}, {self.settings.clock} clock, seed {self.seed}"
        faults = "" if self._injector is None else f", {self._injector!r}"
        return f"<Session on {machine} ({'open' if self.is_open else 'not used yet'}): {run}{faults}>"

    # ----------------------------------------------------------- which one
    @classmethod
    def current(cls) -> "Session":
        """The session of the running rank, created from its environment on first use."""
        return current().get(Session)

    @classmethod
    def has_values(cls) -> bool:
        """Whether tensors of the current session have values; does not create a session, which would be expensive."""
        made = current().has(Session)
        return (cls.current().engine if made else engine_of(RunSettings.from_environment().engine)).values

    @classmethod
    def use(cls, session: "Session | None") -> "Session | None":
        """Make `session` the current one (None: the next use creates a new one) and return the previous one."""
        return current().put(Session, session)

    @classmethod
    def reset(cls) -> None:
        """Drop the current session, for tests."""
        cls.use(None)

    # -------------------------------------------------------------- device
    @property
    def device_id(self) -> int:
        """The number of the device in its server: the given one, else the rank's when the device opens."""
        if self._device_id is None:
            return current().device_id if self._device is None else self._device.device_id
        return self._device_id

    @property
    def is_open(self) -> bool:
        """Whether the device is in use."""
        return self._device is not None

    @property
    def target(self) -> str:
        """``Ascend``, ``GPU`` or ``CPU``: from `dumpsim run`, the script or the chip, else Ascend. [decisions]"""
        if self.settings.device is not None:
            return _TARGETS[self.settings.device]
        if self._context_target is not None:
            return self._context_target
        return chip(self.settings.chip).target if self.settings.chip else "Ascend"

    @property
    def chip(self) -> Chip:
        """The chip of the target; ``--chip`` chooses among the target's own.

        Raises
        ------
        BadInputError
            If ``--device`` and ``--chip`` contradict each other.
        """
        name = self.settings.chip
        if name and self.settings.device is None and chip(name).target != self.target:
            name = None  # the script chose another target than the chip's
        return chip_for(self.target, name)

    @property
    def device(self) -> Device:
        """The device, created on first use."""
        if self._device is None:
            self._device = Device(
                self.chip,
                device_id=self.device_id,
                rank=self.rank,
                clock=self.clock,
                scheduler=self._scheduler,
                environment=self.environment,
                memory=Memory(self.chip.memory, device_id=self.device_id, backed=self.engine.values),
                queues=self.queues,
            )
            self._device.races = Races() if self.settings.check_races else None
            self._device.trace = self._trace
            context = current()
            if context.size > 1:
                context.communicator.terms = terms_of(self.environment, self.chip, self.settings)
            if self._injector is not None and self._injector.memory_limit is not None:
                self._device.memory.limit = min(self._device.memory.limit, self._injector.memory_limit)
            self._weights = Weights(self._device, self._world.get(Replicas) if self._world.ranks > 1 else None)
        return self._device

    def configure(
        self, *, target: str | None = None, jit_level: str | None = None, exec_order: str | None = None
    ) -> None:
        """Apply settings of the script's context.

        A script that changes its device target starts with an empty device: programs are planned again on their next
        run.

        Raises
        ------
        BadInputError
            For an unknown target.
        """
        if target is not None:
            before = self.target
            self._context_target = chip_for(target).target
            if self.target != before and self._device is not None:
                self._device.synchronize()
                if self._weights is not None:
                    self._weights.retire()
                self._device = self._weights = None
                self._executors.clear()
        if jit_level is not None:
            self._jit_level = jit_level
        if exec_order is not None:
            self._exec_order = exec_order

    @property
    def _level(self) -> str:
        """The jit_level of graphs; by default the chip's in the documented releases, O0 in later ones. [decisions]"""
        return self._jit_level or (self.chip.default_level if self.settings.mindspore == "seed" else "O0")

    def options(self, *, jit_level: str | None = None) -> CompileOptions:
        """The options of compilation that follow from the settings, the context and the chip."""
        level = jit_level or self._level
        private = self.chip.private_formats(level)
        pipeline = mindspore_pipeline(self.target, level, private_formats=private)
        whole = pipeline == WHOLE_GRAPH
        return CompileOptions(
            release=self.settings.mindspore,
            target=self.target,
            jit_level=level,
            exec_order=self._exec_order,
            pipeline=pipeline,
            cube_ops=self.chip.cube_ops,
            cube_dtype=self.chip.cube_dtype,
            ge_graph=self.ge_graphs.mode if whole else "",
            ge_level=self.ge_graphs.level,
            memory_reuse=self.memory_reuse or whole,  # the device dumps each operator of a model right after it ran
            backward_graphs=self.settings.mindspore in BACKWARD_GRAPHS,
        )

    # ------------------------------------------------------------ listeners
    def add_tap(self, tap: Tap) -> None:
        """Notify `tap` of all further events."""
        self.observers.taps.append(tap)

    def remove_tap(self, tap: Tap) -> None:
        """Unsubscribe `tap`."""
        self.observers.taps.remove(tap)

    def trace_tasks(self, trace: "Callable[[Task], None] | None") -> None:
        """Call `trace` with every task that the device has run, from now on; None ends this."""
        self._trace = trace
        if self._device is not None:
            self._device.trace = trace

    # --------------------------------------------------------------- faults
    def inject(self, plan: "FaultPlan") -> Injector:
        """Follow a fault plan from now on, instead of the previous one."""
        self._injector = Injector(plan, self.clock, rank=self.rank)
        if self._device is not None:
            memory = self._device.memory
            limit = self._injector.memory_limit
            memory.limit = memory.capacity if limit is None else min(memory.capacity, limit)
        return self._injector

    @property
    def disk(self) -> DiskFaults | None:
        """Disk faults, which writers of files ask before they write; None if there are none."""
        return None if self._injector is None else self._injector.disk

    # ------------------------------------------------------------- programs
    @property
    def find(self) -> Callable[[str], OpDef]:
        """The function that returns the definition of an operator type, including those of the script."""
        return self._find

    def define(self, definition: OpDef) -> None:
        """Add an operator that the table does not have: a primitive of the script."""
        if not self._own:  # else keep the function, whose identity is a key of shared plans
            self._find = partial(_found, self._own, self._find)
        self._own[definition.name] = definition

    def build(
        self,
        captured: Graph,
        options: CompileOptions | None = None,
        saved: Saver | None = None,
        *,
        parallel: Settings | None = None,
    ) -> Program:
        """Compile a captured network; ranks that capture equal networks get one program.

        Parameters
        ----------
        captured : Graph
            It is modified.
        options : CompileOptions, optional
            By default `options()`.
        saved : callable, optional
            ``saved(stage, documents)`` is called with the IR text at each stage.
        parallel : Settings, optional
            Split the network over devices; each rank has a program of its own then.
        """
        options = self.options() if options is None else options
        if self._world.ranks == 1 or parallel is not None:
            return compile_graph(captured, self.ids, self._find, options, saved, parallel=parallel)
        program, storages = self._world.get(Programs).build(captured, self.ids, self._find, options, saved)
        self._storages[id(program)] = program, storages
        return program

    def storages(self, program: Program) -> list[Any]:
        """This rank's storages of the weights of a program."""
        own = self._storages.get(id(program), (program, ()))[1]
        used = [p.storage for graph in program.kernel_graphs for p in graph.graph.parameters if p.is_weight]
        found = [own[storage] if isinstance(storage, int) else storage for storage in used]
        return list({id(storage): storage for storage in found}.values())

    def compile(self, program: Program, options: CompileOptions | None = None) -> Executor:
        """Plan a program on the device, and report its kernel graphs to the taps; a program is compiled once.

        Parameters
        ----------
        program : Program
        options : CompileOptions, optional
            By default `options()`.

        Raises
        ------
        OutOfMemoryError
            If its weights and tensors do not fit.
        UnsupportedError
            For an operator that is not emulated.
        """
        found = self._executors.get(id(program))
        if found is not None:
            return found
        device = self.device
        assert self._weights is not None
        self._weights.sweep()
        options = self.options() if options is None else options
        executor = Executor(
            program,
            device,
            options,
            self._weights,
            self.observers,
            self.engine if options.engine in ("", self.engine.name) else engine_of(options.engine),
            partial(self._plan, options),
            self._storages.get(id(program), (program, ()))[1],
            self._skipped,
            keep_views=self._world.ranks == 1,  # with many ranks memory matters more than time
        )
        self.ge_graphs.save(program.kernel_graphs)
        self._executors[id(program)] = executor
        executor.announce()
        return executor

    def _plan(self, options: CompileOptions, kernel_graph: KernelGraph, shapes: Shapes | None) -> GraphPlan:
        return self._world.get(Plans).plan(kernel_graph, self.device.chip, options, self._find, shapes)

    def execute(self, program: Program, arguments: Sequence[Any], *, kind: str = "train") -> list[Any]:
        """Run a program once; compile it first if necessary.

        Parameters
        ----------
        arguments : sequence of array_like
            One per `Program.inputs`.
        kind : str
            ``train``, or ``dataset`` for the graph of a data sink.

        Returns
        -------
        list of ndarray
            One per `Program.outputs`.
        """
        with self._busy:
            return self.compile(program).execute(arguments, kind=kind, injector=self._injector)

    def release(self, program: Program) -> None:
        """Drop a compiled program and free its memory."""
        self._storages.pop(id(program), None)
        executor = self._executors.pop(id(program), None)
        if executor is not None:
            executor.release()

    def run_op(
        self,
        definition: OpDef,
        operands: Sequence[Any],
        attrs: Mapping[str, Any] | None = None,
        *,
        output: Abstract | None = None,
        failing: Callable[[], object] | None = None,
    ) -> list[HostArray]:
        """Run one operator immediately (PYNATIVE): one task on the compute stream, or on that of its group.

        Parameters
        ----------
        definition : OpDef
        operands : sequence
            Arrays, host values, tuples of these.
        attrs : mapping, optional
            Keywords of the kernel; missing ones have the definition's defaults.
        output : Abstract, optional
            The inferred type, if the caller knows it already.
        failing : callable, optional
            Called if the hardware stops the kernel, before listeners are notified.

        Returns
        -------
        list of ndarray
            Output tensors, tuples flattened. Those of a collective are read-only, and other ranks may share them.
        """
        return self.start_op(definition, operands, attrs, output=output, failing=failing).wait()

    def start_op(
        self,
        definition: OpDef,
        operands: Sequence[Any],
        attrs: Mapping[str, Any] | None = None,
        *,
        output: Abstract | None = None,
        failing: Callable[[], object] | None = None,
    ) -> Pending:
        """Start one operator, see `run_op`; a collective of several ranks runs while others are launched.

        Returns
        -------
        Pending
            `Pending.wait` gives the outputs. Until then the operands must not be written.
        """
        shared = is_shared(definition, current().size)
        keywords = {**definition.attrs, **(attrs or {})}
        if output is None:
            output = definition.output_type([_abstract(operand) for operand in operands], keywords)
        with self._busy:
            device = self.device
            runs = 0
            if definition.random:  # each operator has a kernel per types of operands [observed 2.10]
                key = definition.name, tuple(repr(_abstract(operand)) for operand in operands)
                runs = self._eager_runs.get(key, 0)
                self._eager_runs[key] = runs + 1
            if definition.updates and self._weights is not None:
                operands = list(operands)
                for at in definition.updates:
                    operands[at] = self._weights.writable(operands[at])
            pending = launch_op(
                device,
                self.engine,
                definition,
                operands,
                keywords,
                output=output,
                counter=runs,
                private_formats=device.chip.private_formats("O0"),  # no graph, no level
                injector=self._injector,
                observers=self.observers,
                failing=failing,
                group=current().communicator.group(keywords["group"]) if shared else None,
            )
            if shared:
                return pending
            pending.wait()
            if definition.updates and self._weights is not None:
                self._weights.touch()
        return pending

    def writable(self, array: HostArray) -> HostArray:
        """Return an array that a PYNATIVE operator can write instead of `array`, which other ranks may share."""
        if self._weights is not None:
            array = self._weights.writable(array)
        return array if isinstance(array, Unknown) or array.flags.writeable else array.copy()

    def at_close(self, action: Callable[[], object]) -> None:
        """Call `action` when the session is closed; the last action added is called first."""
        self._closers.append(action)

    def close(self) -> None:
        """Call the actions given to `at_close`, each once, even if one of them fails; then raise the first error."""
        first: BaseException | None = None
        while self._closers:
            try:
                self._closers.pop()()
            except BaseException as error:
                first = first or error
        if first is not None:
            raise first

    def synchronize(self) -> None:
        """Wait for the device."""
        if self._device is not None:
            self._device.synchronize()

    def generator(self, *key: int) -> np.random.Generator:
        """Return a random generator that depends only on the session's seed, its rank and `key`."""
        return np.random.default_rng([self.seed, self.rank, *key])

    def lifetimes(self) -> Iterator[Lifetime]:
        """Life times of the tensors of all compiled programs, as of their last runs, for reports."""
        for executor in self._executors.values():
            yield from executor.lifetimes()

    def slices(self) -> Iterator[TensorSlices]:
        """Yield how the tensors of all compiled programs are distributed over the ranks, for reports."""
        for executor in self._executors.values():
            yield from slices_of(executor.program)

    def executors(self) -> Iterable[Executor]:
        """Compiled programs in the order of their compilation."""
        return self._executors.values()


def _abstract(operand: Any) -> Abstract:
    """Return the type of a PYNATIVE operand."""
    if isinstance(operand, (np.ndarray, Unknown)):
        return TensorType(dtype=from_numpy(operand.dtype), shape=operand.shape)
    if operand is None:
        return NoneType()
    if isinstance(operand, bool):
        return ScalarType(dtype=dtype("bool"), value=operand)
    if isinstance(operand, int):
        return ScalarType(dtype=dtype("int64"), value=operand)
    if isinstance(operand, float):
        return ScalarType(dtype=dtype("float32"), value=operand)
    if isinstance(operand, str):
        return StringType(value=operand)
    if isinstance(operand, DType):
        return TypeType(value=operand)
    items = tuple(_abstract(item) for item in operand)
    constant = not any(isinstance(item, (TensorType, TupleType)) for item in items)
    return TupleType(items=items, value=tuple(operand) if constant else None)
