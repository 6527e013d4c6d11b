"""Runs a program in lockstep for all ranks of a job: each kernel once for all of them."""

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any, Protocol

import numpy as np

from dumpsim.core.errors import BadInputError, DeviceError, UnsupportedError
from dumpsim.device.chip import OverflowMode
from dumpsim.device.device import Device
from dumpsim.device.overflow import narrow
from dumpsim.device.packed import pack
from dumpsim.graph.conversion import TRANS_DATA
from dumpsim.graph.graph import Constant, Node
from dumpsim.graph.program import Branch, Keep, KernelGraph, Loop, Move, Program, Repeat, Restore, Run, Step
from dumpsim.runtime.compute import compute, stopping_index
from dumpsim.runtime.engine.engine import Computed, Engine
from dumpsim.runtime.plan import Argument, Call, GraphPlan, HostValue
from dumpsim.runtime.segment import Segment, segments, written
from dumpsim.runtime.slot import Array, Slot
from dumpsim.runtime.stack import GROUP, Stack, Value, compute_stack, of_rank, sizes

__all__ = ["Meet", "Meeting", "StackRun"]

_CACHE = 1 << 21  # bytes of one array of a kernel, so that it fits into the processor's cache


class Meeting(Protocol):
    """A collective of all ranks."""

    def take(self, operands: Sequence[Any], count: int) -> None:
        """Take the tensors of the next ranks: a `Stack` of them, or an array that is equal in all."""
        ...

    def reads(self, count: int) -> bool:
        """Whether the tensors of the next ranks are read; a Broadcast reads only the root's."""
        ...

    def skip(self, count: int) -> None:
        """Skip the next ranks, whose tensors are not read."""
        ...

    def results(self) -> list[Value]:
        """Return the results, after the tensors of all ranks were taken: arrays, or stacks of one part."""
        ...


Meet = Callable[[Call], Meeting]


class StackRun:
    """Runs a program for many ranks on stacks of their tensors.

    A tensor that is equal in all ranks is stored once; a weight until a kernel writes it with operands that differ.

    Parameters
    ----------
    program : Program
    ranks : int
    device : Device
        Its chip and overflow mode are those of all ranks.
    engine : Engine
    plan_of : callable
        The plan of a kernel graph.
    meet : callable
        Begins a collective.
    group : int
        Number of ranks that are stacked in one array; by default as many as fit into the cache, at most 1,024.

    Attributes
    ----------
    sizes : list of int
        Ranks in each group.
    weights : dict of int to ndarray or Stack
        By the id of the weight's `Storage` on the host; set by the caller, from `place`.
    """

    def __init__(
        self,
        program: Program,
        ranks: int,
        device: Device,
        engine: Engine,
        plan_of: Callable[[KernelGraph], GraphPlan],
        meet: Meet,
        *,
        group: int | None = None,
    ) -> None:
        self.program = program
        self.ranks = ranks
        self.weights: dict[int, Value] = {}
        self._device = device
        self._engine = engine
        self._meet = meet
        self._plans = tuple(plan_of(graph) for graph in program.kernel_graphs)
        self._cuts = tuple(segments(plan) for plan in self._plans)
        self._counts: dict[Node, int] = {}  # runs of random kernels
        self._first = 0  # first rank of the group that is being computed
        mode = device.overflow
        self._mode = None if mode is OverflowMode.INFNAN else mode  # overflow is not checked
        self._stacks: list[list[Any]] = []
        self._spare: Sequence[list[Array]] = ()
        for plan in self._plans:
            _check(plan)
        largest = max((slot.nbytes for plan in self._plans for slot in plan.planned), default=1)
        fitting = max(1, min(GROUP, _CACHE // max(1, largest)))
        self.sizes = sizes(ranks, fitting if group is None else group)

    def place(self, value: Any, shape: tuple[int, ...], kind: "np.dtype[Any]", where: str) -> Value:
        """Return an argument or a weight in the form that kernels take.

        Parameters
        ----------
        value : array_like, callable or Stack
            An array is equal in all ranks; a function is called with each rank and returns its array.
        shape, kind
            Shape and type of the tensor in one rank.
        where : str
            Name of the tensor, for messages.
        """
        if callable(value):
            parts, first = [], 0
            for count in self.sizes:
                part = np.empty((count, *shape), kind)
                for at in range(count):
                    mine = np.asarray(value(first + at))
                    _expect(mine, shape, kind, f"{where} of rank {first + at}")
                    part[at] = mine
                parts.append(part)
                first += count
            return Stack(parts)
        if isinstance(value, Stack) and [len(part) for part in value.parts] != self.sizes:
            whole = value.parts[0] if len(value.parts) == 1 else np.concatenate(value.parts)
            _expect(whole, (self.ranks, *shape), kind, where)
            return self._grouped(whole)
        if isinstance(value, Stack):
            for part in value.parts:
                _expect(part, (len(part), *shape), kind, where)
            return value
        array = np.asarray(value)
        _expect(array, shape, kind, where)
        return array

    def _grouped(self, whole: Array) -> Stack:
        """Split a tensor of all ranks into the groups of this run."""
        return Stack(np.split(whole, np.cumsum(self.sizes)[:-1]))

    def step(self, arguments: Sequence[Any], spare: Sequence[list[Array]] = ()) -> list[Any]:
        """Run the program once in all ranks.

        Parameters
        ----------
        arguments : sequence
            One per `Program.inputs`, see `place`.
        spare : sequence of list of ndarray
            Unused parts of stacks, which are removed from the lists when new parts need memory.

        Returns
        -------
        list of ndarray or Stack
            One per `Program.outputs`; constants that are not numbers as they are.
        """
        program = self.program
        if len(arguments) != len(program.inputs):
            raise BadInputError(
                f"{len(arguments)} arguments for {len(program.inputs)} inputs", where=program.name or "network"
            )
        slots: list[Any] = [None] * max(program.slots, len(arguments))
        for at, (parameter, value) in enumerate(zip(program.inputs, arguments, strict=True)):
            kind = parameter.abstract
            slots[at] = self.place(value, kind.shape, kind.dtype.numpy, parameter.name)
        self._stacks = [[] for _ in range(program.stacks)]
        self._spare = spare
        self._steps(program.steps, slots)
        return [o.value if isinstance(o, Constant) else slots[o] for o in program.outputs]

    # ------------------------------------------------------------- control
    def _steps(self, steps: Sequence[Step], slots: list[Any]) -> None:
        for step in steps:
            match step:
                case Run():
                    results = self._run(step.graph, [slots[at] for at in step.arguments])
                    for at, result in zip(step.results, results, strict=True):
                        slots[at] = result
                case Move(source=Constant() as constant):
                    slots[step.target] = np.asarray(constant.value)
                case Move(source=int() as source):
                    slots[step.target] = slots[source]
                case Branch():
                    self._steps(step.then if _true(slots[step.condition]) else step.otherwise, slots)
                case Loop():
                    rounds = 0
                    self._steps(step.head, slots)
                    while _true(slots[step.condition]):
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

    # ------------------------------------------------------------- kernels
    def _run(self, graph: int, arguments: Sequence[Value]) -> list[Value]:
        """Run a kernel graph."""
        plan = self._plans[graph]
        values: dict[int, Value] = {}
        for slot, argument in zip(plan.inputs, arguments, strict=True):
            values[slot.index] = _as_kind(argument, slot.numpy)
        for slot in plan.constants:
            assert slot.value is not None
            values[slot.index] = self._stored(slot, slot.value)
        for slot in plan.weights:
            if id(slot.storage) not in self.weights:
                raise BadInputError("the weight has no value", where=slot.name)
            values[slot.index] = self.weights[id(slot.storage)]
        meetings: dict[Call, Meeting] = {}
        for segment in self._cuts[graph]:
            taken = [(call, self._meet(call)) for call in segment.taken]
            meetings.update(taken)
            values = self._segment(segment, taken, values)
            for call in segment.met:
                for slot, result in zip(call.outputs, meetings.pop(call).results(), strict=True):
                    self._put(slot, self._grouped(result.parts[0]) if isinstance(result, Stack) else result, values)
        for slot in plan.weights:
            self.weights[id(slot.storage)] = values[slot.index]
        return [_as_kind(_get(values, slot), slot.dtype.numpy) for slot in plan.results]

    def _segment(
        self, segment: Segment, taken: Sequence[tuple[Call, Meeting]], values: dict[int, Value]
    ) -> dict[int, Value]:
        """Run the kernels between two collectives, one group of ranks after the other; return the values needed later.

        Values that are unused after these kernels and their collectives exist for one group at a time, and values that
        are read for the last time are dropped group by group; `values` is emptied. Values that are equal in all ranks
        are computed once, with the first group.
        """
        if not any(isinstance(value, Stack) for value in values.values()):
            self._kernels(segment.kernels, taken, values, self.ranks)
            self._count(segment.kernels)
            return {at: value for at, value in values.items() if at in segment.needed}
        roots = {slot.root_index for call in segment.kernels for slot in written(call)}
        known: dict[Call, dict[int, Value]] = {}  # results of kernels that are equal in all ranks
        passing = segment.needed - roots
        lasting = {at: value for at, value in values.items() if at in passing}
        dying = {at: list(_parts(value))[::-1] for at, value in values.items() if at not in lasting}
        equal = {at: value for at, value in values.items() if not isinstance(value, Stack)}
        shared = [(at, value) for at, value in lasting.items() if isinstance(value, Stack)]
        values.clear()
        parts: dict[int, list[Array]] = {}
        last: dict[int, Value] = {}
        results = bool(segment.needed & roots)
        silent = not results and all(_is_silent(call) for call in segment.kernels)
        for group, count in enumerate(self.sizes):
            last = dict(equal)
            last.update((at, Stack([stack.parts[group]])) for at, stack in shared)
            last.update((at, Stack([found.pop()])) for at, found in dying.items() if found)
            if taken and silent and not any(meeting.reads(count) for _, meeting in taken):
                for _, meeting in taken:
                    meeting.skip(count)
                self._first += count
                continue
            if results:
                for spare in self._spare:
                    del spare[-1:]
            self._kernels(segment.kernels, taken, last, count, known)
            last = {at: value for at, value in last.items() if at in segment.needed}
            for at in roots & last.keys():
                parts.setdefault(at, []).extend(_parts(last[at]))
            self._first += count
        self._first = 0
        self._count(segment.kernels)
        return last | lasting | {at: Stack(found) for at, found in parts.items() if found}

    def _kernels(
        self,
        calls: Sequence[Call],
        taken: Sequence[tuple[Call, Meeting]],
        values: dict[int, Value],
        count: int,
        known: dict[Call, dict[int, Value]] | None = None,
    ) -> None:
        """Run kernels for `count` ranks, and let collectives take their results.

        `known` has the results of kernels that are equal in all ranks; the first group fills it.
        """
        for call in calls:
            if self._first and known is not None and call in known:
                values.update(known[call])
            else:
                self._run_call(call, values)
            if not self._first and known is not None:
                wrote = {
                    slot.root_index: values[slot.root_index] for slot in written(call) if slot.root_index in values
                }
                if not any(isinstance(value, Stack) for value in wrote.values()):
                    known[call] = wrote
            _bury(call, values)
        for call, meeting in taken:
            meeting.take([_operand(values, argument) for argument in call.arguments], count)

    def _count(self, calls: Sequence[Call]) -> None:
        """Count the runs of random kernels."""
        for call in calls:
            if call.definition.random:
                self._counts[call.node] = self._counts.get(call.node, 0) + 1

    def _run_call(self, call: Call, values: dict[int, Value]) -> None:
        try:
            self._kernel(call, values)
        except DeviceError as error:
            error.add_note(f"in the kernel of {call.node.full_name}")
            raise

    def _kernel(self, call: Call, values: dict[int, Value]) -> None:
        definition = call.definition
        operands = [_operand(values, argument) for argument in call.arguments]
        if definition.view:
            return  # no kernel runs: the output is the operand's memory
        if definition is TRANS_DATA:
            self._put(call.outputs[0], operands[0], values)
            return
        if definition.device:
            if definition.side_effect == "io" and not call.outputs:
                return  # only chosen ranks send data to the host
            raise UnsupportedError(
                f"{definition.name} needs a device, which ranks in lockstep do not have",
                where=call.node.full_name,
            )
        attrs = call.attrs
        if definition.random:
            attrs = {**attrs, "counter": self._counts.get(call.node, 0)}
        if definition.bounds is not None:
            self._look(call, operands)
        computed = self._compute(call, operands, attrs)
        for at, value in computed.updated.items():
            target = call.arguments[at]
            if isinstance(target, Slot):
                self._put(target, value, values)
        for slot, stored, result in zip(call.outputs, call.stored, computed.results, strict=True):
            if stored:
                self._put(slot, result, values)

    def _compute(self, call: Call, operands: Sequence[Any], attrs: Mapping[str, Any]) -> Computed:
        definition = call.definition
        if not any(isinstance(value, Stack) for value in _flat(operands)):
            operands = [
                value.copy() if at in definition.updates and isinstance(value, np.ndarray) else value
                for at, value in enumerate(operands)
            ]
        engine = _Whole(self._engine, self._device, call)
        return compute_stack(engine, definition, operands, attrs, [slot.shape for slot in call.outputs])

    def _look(self, call: Call, operands: Sequence[Any]) -> None:
        """Raise `DeviceError` for an index that is out of range in any rank."""
        stacks = [len(value) for value in _flat(operands) if isinstance(value, Stack)]
        for rank in range(stacks[0] if stacks else 1):
            mine = [of_rank(value, rank) for value in operands]
            found = stopping_index(self._device, call.definition, mine, call.attrs, full_name=call.node.full_name)
            if found is not None:
                raise DeviceError(f"{found}, in rank {self._first + rank}", where=call.node.full_name)

    # -------------------------------------------------------------- values
    def _put(self, slot: Slot, value: Any, values: dict[int, Value]) -> None:
        """Store a kernel's result as the device does."""
        root = slot.root
        if isinstance(value, Stack):
            values[root.index] = Stack(
                [self._stored(slot, part, len(part)).reshape(len(part), *root.shape) for part in value.parts]
            )
        else:
            values[root.index] = self._stored(slot, np.asarray(value)).reshape(root.shape)

    def _stored(self, slot: Slot, values: Array, ranks: int = 1) -> Array:
        """Return a tensor of some ranks as the device stores it."""
        stored, _ = narrow(values, slot.device_dtype, self._mode)
        if slot.device_dtype.bits == 1:
            pack(stored, slot.device_dtype.name)  # refuses numbers that do not fit into a bit
        if stored.size != ranks * prod(slot.shape):
            raise DeviceError(f"the kernel gave shape {values.shape} for an output of shape {slot.shape}")
        return stored


class _Whole:
    """An engine that computes one kernel with `dumpsim.runtime.compute.compute`."""

    name = "lockstep"
    values = True

    def __init__(self, engine: Engine, device: Device, call: Call) -> None:
        self._engine = engine
        self._device = device
        self._call = call

    def compute(self, definition: Any, operands: Sequence[Any], attrs: Mapping[str, Any]) -> Computed:
        """Compute one kernel, see `Engine.compute`."""
        return compute(
            self._engine,
            self._device,
            definition,
            operands,
            attrs,
            full_name=self._call.node.full_name,
            counter=attrs.get("counter", 0),
            outputs=len(self._call.outputs),
            unwritten=definition.unwritten.get(self._device.chip.target, ()),
        )


def _expect(array: Array, shape: tuple[int, ...], kind: "np.dtype[Any]", where: str) -> None:
    if array.shape != shape or array.dtype != kind:
        raise BadInputError(f"{array.dtype} of shape {array.shape}", where=where, allowed=[f"{kind} of shape {shape}"])


def _check(plan: GraphPlan) -> None:
    """Raise for a graph whose shapes depend on values, since they could differ between ranks."""
    for call in plan.calls:
        for slot in call.outputs:
            if slot.settles:
                raise UnsupportedError(
                    "the shape of its result depends on values, which ranks in lockstep do not support",
                    where=call.node.full_name,
                )


def _is_silent(call: Call) -> bool:
    """Whether a kernel has no effect but its results, and no value stops it."""
    return call.definition.view or (call.definition.batched and call.definition.bounds is None)


def _bury(call: Call, values: dict[int, Value]) -> None:
    """Drop the tensors that are unused after a kernel."""
    for slot in call.deaths:
        values.pop(slot.index, None)


def _parts(value: Value) -> tuple[Array, ...]:
    """Return the parts of a stack; nothing for an array."""
    return value.parts if isinstance(value, Stack) else ()


def _get(values: Mapping[int, Value], slot: Slot) -> Value:
    """Return the values of a tensor; those of a view come from the tensor that owns the bytes."""
    value = values[slot.root_index]
    return value if slot.base is None else value.reshape(slot.shape)


def _operand(values: Mapping[int, Value], argument: Argument) -> Any:
    """Return an operand for an engine."""
    if isinstance(argument, Slot):
        value = _get(values, argument)
        if argument.scalar:
            if isinstance(value, Stack):
                raise UnsupportedError("a number operand differs between ranks in lockstep", where=argument.name)
            return value.item()
        return value
    if isinstance(argument, HostValue):
        return argument.value
    if argument is None:
        return None
    return tuple(_operand(values, item) for item in argument)


def _as_kind(value: Value, kind: "np.dtype[Any]") -> Value:
    """Convert a tensor, in all ranks."""
    if isinstance(value, Stack):
        return Stack([part.astype(kind, copy=False) for part in value.parts])
    return value.astype(kind, copy=False)


def _flat(operands: Sequence[Any]) -> list[Any]:
    return [item for o in operands for item in (_flat(o) if isinstance(o, tuple) else [o])]


def _true(condition: Any) -> bool:
    """Whether a condition holds; it must be equal in all ranks."""
    if isinstance(condition, Stack):
        found = {bool(value.reshape(-1)[0]) for value in condition}
        if len(found) > 1:
            raise UnsupportedError("ranks in lockstep cannot take different branches")
        return found.pop()
    return bool(np.asarray(condition).reshape(-1)[0])
