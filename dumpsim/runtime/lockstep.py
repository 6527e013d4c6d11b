"""A job of very many ranks: all of them run in lockstep, and chosen ones also run the script by themselves."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from dumpsim.core.communicator import Array
from dumpsim.core.errors import BadInputError, UnsupportedError
from dumpsim.core.settings import VARIABLE, RunSettings
from dumpsim.device.scheduler import Scheduler
from dumpsim.graph.program import KernelGraph, Program
from dumpsim.ops.table import find
from dumpsim.runtime.gathering import Gathering
from dumpsim.runtime.plan import Call as KernelCall
from dumpsim.runtime.plan import GraphPlan
from dumpsim.runtime.planner import plan_graph
from dumpsim.runtime.session import Session
from dumpsim.runtime.stack import Stack, Value, of_rank
from dumpsim.runtime.stackrun import StackRun
from dumpsim.world.chosen import ChosenCommunicator, Record
from dumpsim.world.context import RankContext, World
from dumpsim.world.terms import terms_of

__all__ = ["Lockstep"]

Step = Callable[..., Any]

_TRIED = 256  # draws of an argument for the capture, until its bits are those of no other one
_DUMPS = ("MINDSPORE_DUMP_CONFIG",)  # belong to the chosen ranks


class Lockstep:
    """Runs one compiled network in all ranks of a job.

    The ranks do not run the script: the compiled network runs for all of them, kernel by kernel, on stacks of their
    tensors. Chosen ranks run the script too, each by itself with its own dump. Their collectives return the results of
    the stacks, after a check that the ranks' own tensors equal those of the stacks.

    Parameters
    ----------
    build : callable
        Creates the network: called without arguments as rank 0, and again in each chosen rank. Returns the step: a
        function of numpy arrays that runs one compiled network. Nothing that it creates may depend on the rank, except
        for parts of chosen ranks that do not affect the network's values.
    ranks : int
    chosen : sequence of int
        Ranks that run the script as well.
    environment : mapping, optional
        See `dumpsim.world.launch`.
    settings : RunSettings, optional
        See `dumpsim.world.launch`.
    group : int
        Number of ranks that are stacked in one array, see `StackRun`.

    Raises
    ------
    BadInputError
        For less than one rank, and a chosen rank outside of the job.

    Examples
    --------
    >>> import dumpsim.frontends.mindspore as ms
    >>> from dumpsim.frontends.mindspore import nn
    >>> def build():
    ...     ms.set_context(mode=ms.GRAPH_MODE)
    ...     network = nn.ReLU()
    ...     return lambda x: network(ms.Tensor(x))
    >>> job = Lockstep(build, 1000)
    >>> job.step(lambda rank: np.full(2, rank, np.float32))
    >>> job.output(0, 999)
    array([999., 999.], dtype=float32)
    """

    def __init__(
        self,
        build: Callable[[], Step],
        ranks: int,
        *,
        chosen: Sequence[int] = (),
        environment: Mapping[str, str] | None = None,
        settings: RunSettings | None = None,
        group: int | None = None,
    ) -> None:
        if ranks < 1:
            raise BadInputError(f"{ranks} is not a number of ranks", where="ranks", allowed=["1 or more"])
        for rank in chosen:
            if not 0 <= rank < ranks:
                raise BadInputError(f"rank {rank} is not in the job", where="chosen", allowed=[f"0 to {ranks - 1}"])
        self.ranks = ranks
        self.chosen = tuple(chosen)
        self.outputs: list[Any] = []
        self._build = build
        self._group = group
        self._shared = {**os.environ, **(environment or {})}
        self._settings = settings or RunSettings.from_environment(self._shared)
        self._shared[VARIABLE] = self._settings.to_text()
        self._record = Record(self.chosen)
        self._run: StackRun | None = None
        self._places: list[int | Array] = []  # by input of the program: index of the step's argument, or a constant
        self._storages: dict[str, int] = {}
        self._alive: list[Any] = []  # objects that must live as long as the job
        self._scripts: dict[int, tuple[RankContext, Step]] = {}

    # ---------------------------------------------------------------- steps
    def step(self, *inputs: Any) -> None:
        """Run one step in all ranks.

        Parameters
        ----------
        *inputs : array_like, callable or Stack
            The arguments of the step: an array is equal in all ranks, a function is called with each rank and returns
            its array.
        """
        run = self._opened(inputs)
        given = [
            run.place(inputs[place], parameter.abstract.shape, parameter.abstract.dtype.numpy, parameter.name)
            if isinstance(place, int)
            else place
            for place, parameter in zip(self._places, run.program.inputs, strict=True)
        ]
        self._record.clear()
        spare = [list(value.parts) for value in self.outputs if isinstance(value, Stack)]
        self.outputs = []  # their memory is reused for the new ones
        self.outputs = run.step(given, spare)
        by_place = {place: value for place, value in zip(self._places, given, strict=True) if isinstance(place, int)}
        for rank in self.chosen:
            context, script = self._script(rank)
            context.run(script, *(of_rank(by_place[at], rank) for at in range(len(inputs))))
            self._record.check_end(rank)

    def output(self, number: int, rank: int) -> Any:
        """Return an output of the network in one rank, after the last step."""
        value, rank = self.outputs[number], self._checked(rank)
        return np.array(of_rank(value, rank)) if isinstance(value, np.ndarray | Stack) else value

    def weight(self, name: str, rank: int) -> Array:
        """Return a weight in one rank, after the last step."""
        return np.array(of_rank(self._weight(name), self._checked(rank)))

    def is_shared(self, name: str) -> bool:
        """Whether a weight is one array, because it is equal in all ranks."""
        return not isinstance(self._weight(name), Stack)

    @property
    def nbytes(self) -> int:
        """Bytes of the weights and outputs of all ranks."""
        run = self._run
        held = [*(run.weights.values() if run is not None else ()), *self.outputs]
        return sum(value.nbytes for value in held if isinstance(value, np.ndarray | Stack))

    def close(self) -> None:
        """End the chosen ranks, as at the end of a script."""
        while self._scripts:
            _, (context, _) = self._scripts.popitem()
            context.run(context.close)

    def __enter__(self) -> "Lockstep":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    # -------------------------------------------------------------- program
    def _opened(self, inputs: Sequence[Any]) -> StackRun:
        """Return the program of all ranks, captured on first use."""
        if self._run is None:
            probes = _probes(inputs)
            context = self._context(0, quiet=True)
            program, arguments, session = context.run(_captured, self._build, probes)
            self._places = _places(program, arguments, probes)
            context.run(self._load, program, session)
            self._alive = [context, session, program]
        assert self._run is not None
        return self._run

    def _load(self, program: Program, session: Session) -> None:
        """Plan the program, and take the weights from the script's Parameters."""
        device, options = session.device, session.options()
        self._terms = terms_of(session.environment, device.chip, session.settings)

        def plan(graph: KernelGraph) -> GraphPlan:
            return plan_graph(graph, device.chip, options, find)

        run = StackRun(program, self.ranks, device, session.engine, plan, self._meet, group=self._group)
        for graph in program.kernel_graphs:
            for parameter in graph.graph.parameters:
                if parameter.is_weight and id(parameter.storage) not in run.weights:
                    kind = parameter.abstract
                    value = np.array(parameter.storage._array, kind.dtype.numpy)
                    run.weights[id(parameter.storage)] = run.place(value, kind.shape, kind.dtype.numpy, parameter.name)
                    self._storages[parameter.name] = id(parameter.storage)
        self._run = run

    def _context(self, rank: int, *, quiet: bool = False) -> RankContext:
        own = {"RANK_ID": str(rank), "RANK_SIZE": str(self.ranks), "DEVICE_ID": str(rank)}
        environment = {**self._shared, **own}
        if quiet:
            environment = {name: value for name, value in environment.items() if name not in _DUMPS}
            environment[VARIABLE] = replace(self._settings, quiet=True, manifest=None).to_text()
        world = World()
        communicator = ChosenCommunicator(rank, self.ranks, self._record, world.get(Scheduler))
        return RankContext(
            rank=rank,
            size=self.ranks,
            device_id=rank,
            environment=environment,
            world=world,
            communicator=communicator,
        )

    def _script(self, rank: int) -> tuple[RankContext, Step]:
        """Return a chosen rank's context and step, created on first use."""
        found = self._scripts.get(rank)
        if found is None:
            context = self._context(rank)
            found = self._scripts[rank] = context, context.run(self._build)
        return found

    # ----------------------------------------------------------- collectives
    def _meet(self, call: KernelCall) -> Gathering:
        """Begin a collective of all ranks."""
        return Gathering(call, self.ranks, self._terms, self._record)

    # ------------------------------------------------------------- look-ups
    def _weight(self, name: str) -> Value:
        if name not in self._storages:
            raise BadInputError("unknown weight", where=name, allowed=self._storages)
        assert self._run is not None
        return self._run.weights[self._storages[name]]

    def _checked(self, rank: int) -> int:
        if not 0 <= rank < self.ranks:
            raise BadInputError(f"rank {rank} is not in the job", where="rank", allowed=[f"0 to {self.ranks - 1}"])
        return rank


class _Captured(BaseException):
    """Leaves the script with the program that it wants to run."""

    def __init__(self, program: Program, arguments: Sequence[Any]) -> None:
        super().__init__("captured")
        self.program = program
        self.arguments = list(arguments)


class _Capturing(Session):
    """A session that captures the first program instead of running it."""

    def execute(self, program: Program, arguments: Sequence[Any], *, kind: str = "train") -> list[Any]:
        """Leave the script with the program."""
        raise _Captured(program, arguments)


def _captured(build: Callable[[], Step], probes: Sequence[Array]) -> tuple[Program, list[Any], Session]:
    """Return the program that the step of a script runs for these arguments, its arguments, and the session."""
    session = _Capturing()
    Session.use(session)
    step = build()
    try:
        step(*probes)
    except _Captured as captured:
        return captured.program, captured.arguments, session
    raise BadInputError("the step has run no compiled network", where="build")


def _probes(values: Sequence[Any]) -> list[Array]:
    """Return arguments for the capture: of the ranks' types and shapes, each with bits that no other one has."""
    probes: list[Array] = []
    for value in values:
        array = value[0] if isinstance(value, Stack) else np.asarray(value(0) if callable(value) else value)
        known = {probe.tobytes() for probe in probes if (probe.dtype, probe.shape) == (array.dtype, array.shape)}
        tried = (_noise(array.shape, array.dtype, len(probes) + seed) for seed in range(_TRIED))
        probe = next((one for one in tried if not one.size or one.tobytes() not in known), None)
        if probe is None:
            raise UnsupportedError(
                f"more than {len(known)} arguments of type {array.dtype} and shape {array.shape}, "
                "whose values are too few to tell the arguments apart",
                where="step",
            )
        probes.append(probe)
    return probes


def _noise(shape: tuple[int, ...], kind: "np.dtype[Any]", seed: int) -> Array:
    rng = np.random.default_rng(seed)
    if kind == np.bool_:
        return rng.integers(0, 2, shape).astype(np.bool_)
    raw = np.frombuffer(rng.bytes(int(np.prod(shape)) * kind.itemsize), np.uint8) & 0x3F  # finite numbers
    return raw.view(kind).reshape(shape)


def _places(program: Program, arguments: Sequence[Any], probes: Sequence[Array]) -> list[int | Array]:
    """Return which probe each argument of the program is; an argument that is not a probe is equal in all ranks."""
    free = list(range(len(probes)))
    places: list[int | Array] = []
    for argument in arguments:
        array = np.asarray(argument)
        kind = array.dtype, array.shape, array.tobytes()
        at = next((at for at in free if (probes[at].dtype, probes[at].shape, probes[at].tobytes()) == kind), None)
        places.append(array if at is None else at)
        if at is not None:
            free.remove(at)
    if free:
        raise BadInputError(
            f"argument {free[0]} of the step is not passed to the network",
            where=program.name or "step",
        )
    return places
