"""Runs a compiled network on a device: uploads, one task per kernel, control flow, results."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from dumpsim.core.errors import BadInputError, DeviceError
from dumpsim.core.options import CompileOptions
from dumpsim.device.device import COMPUTE_STREAM, Device
from dumpsim.device.injector import Injector, matches
from dumpsim.device.memory import FILL, Buffer
from dumpsim.device.overflow import narrow
from dumpsim.device.stream import TaskFailure
from dumpsim.device.task import Task, TaskIds
from dumpsim.graph.graph import Constant
from dumpsim.graph.program import Branch, Loop, Move, Program, Run, Step
from dumpsim.ops.opdef import OpDef
from dumpsim.runtime.observe import Observers, host_array
from dumpsim.runtime.place import Array, Place
from dumpsim.runtime.plan import Argument, Call, GraphPlan, HostValue, plan_graph
from dumpsim.runtime.storage import Weights

__all__ = ["Executor", "aicore_error"]

_WIDENED = frozenset({"float16", "bfloat16"})
_DISCARD = 1 << 20  # dead buffers of at least this size give their pages back where memory is not reused


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
    find : callable
        The definition of an operator type.

    Raises
    ------
    OutOfMemoryError
        Where the weights, constants and the largest workspace do not fit.
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
        find: Callable[[str], OpDef],
    ) -> None:
        self.program = program
        self.device = device
        self.options = options
        self.observers = observers
        self.plans = tuple(plan_graph(graph, device.chip, options, find) for graph in program.kernel_graphs)
        self.runs = 0
        self._weights = weights
        self._constants: list[Buffer] = []
        self._workspaces: dict[int, Buffer] = {}  # of graphs whose tensors are needed, by their number in the program
        self._injector: Injector | None = None
        self._ids: TaskIds | None = None
        self._reserve()

    # ------------------------------------------------------------- memory
    def _reserve(self) -> None:
        """Take the memory that lasts, and see whether the workspaces will fit."""
        memory = self.device.memory
        try:
            for plan in self.plans:
                for place in plan.weights:
                    self._weights.bind(place)
                for place in plan.constants:
                    assert place.value is not None
                    owner = f"kernel graph {plan.kernel_graph.graph_id} {place.name}"
                    place.buffer = memory.allocate(place.nbytes, owner=owner, kind="constant", fill=False)
                    self._constants.append(place.buffer)
                    place.put(place.value)
            for at, plan in enumerate(self.plans):
                self._claim(at, plan)
                if at:
                    self._yield(at)
        finally:
            for at in list(self._workspaces):
                self._yield(at)

    def release(self) -> None:
        """Give the memory of constants back; the program cannot run again."""
        for buffer in self._constants:
            self.device.memory.free(buffer)
        self._constants.clear()

    def _claim(self, at: int, plan: GraphPlan) -> None:
        """Give a graph its workspace."""
        if at in self._workspaces or not plan.planned:
            return
        memory = self.device.memory
        owner = f"kernel graph {plan.kernel_graph.graph_id}"
        try:
            workspace = memory.allocate(plan.workspace, owner=owner, kind="workspace", fill=False)
        except DeviceError as error:
            largest = sorted(plan.planned, key=lambda p: (-p.nbytes, p.offset))[:8]
            lines = [f"  {p.offset:>14} {p.nbytes:>14} {p.kind:<10} {p.name}" for p in largest]
            error.add_note(f"largest tensors of {owner} (offset, bytes):\n" + "\n".join(lines))
            raise
        self._workspaces[at] = workspace
        for place in plan.planned:
            place.forget()
            address = workspace.address + place.offset
            if place.buffer is None:
                alloc_size = -(-max(1, place.nbytes) // 512) * 512
                place.buffer = Buffer(
                    memory=memory,
                    address=address,
                    size=place.nbytes,
                    alloc_size=alloc_size,
                    owner=place.name,
                    kind=place.kind,
                    born=place.born,
                )
            place.buffer.address = address
            place.buffer.fresh = workspace.fresh
            place.buffer.dead = place.dead if place.born >= 0 else None
            workspace.parts.append(place.buffer)

    def _yield(self, at: int) -> None:
        self.device.memory.free(self._workspaces.pop(at), dead=self.device.clock.now_ns)

    # -------------------------------------------------------------- runs
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
            One per `Program.outputs`, in host layout and type; constants that are no numbers as they are.

        Raises
        ------
        BadInputError
            For arguments that do not fit the network's inputs.
        DeviceError
            Where the device stopped.
        """
        program = self.program
        if len(arguments) != len(program.inputs):
            raise BadInputError(
                f"{len(arguments)} arguments for {len(program.inputs)} inputs", where=program.name or "network"
            )
        self._injector = injector
        self._ids = TaskIds() if self.options.jit_level == "O2" else None
        slots: list[Array | None] = [None] * max(program.slots, len(arguments))
        for at, (parameter, value) in enumerate(zip(program.inputs, arguments, strict=True)):
            array = np.asarray(value)
            wanted = parameter.abstract
            if array.shape != wanted.shape:
                raise BadInputError(
                    f"the argument has shape {array.shape}", where=parameter.name, allowed=[wanted.shape]
                )
            if array.dtype != wanted.dtype.numpy:
                raise BadInputError(f"the argument is {array.dtype}", where=parameter.name, allowed=[wanted.dtype])
            slots[at] = array
        root = self.plans[0] if self.plans else None
        if root is not None and self.observers.taps:
            self.observers.run_begin(root, self.runs, kind)
        try:
            self._steps(program.steps, slots)
            self.runs += 1
            if root is not None and self.observers.taps:
                self.observers.run_end(root, self.runs, kind)
        finally:
            for at in list(self._workspaces):
                self._yield(at)
        return [self._output(output, slots) for output in program.outputs]

    def _output(self, output: "int | Constant", slots: list[Array | None]) -> Any:
        return _constant(output) if isinstance(output, Constant) else _filled(slots, output)

    def _steps(self, steps: Sequence[Step], slots: list[Array | None]) -> None:
        for step in steps:
            match step:
                case Run():
                    results = self._run(step.graph, [_filled(slots, at) for at in step.arguments])
                    for at, result in zip(step.results, results, strict=True):
                        slots[at] = result
                case Move(source=Constant() as constant):
                    slots[step.target] = _constant(constant)
                case Move(source=int() as source):
                    slots[step.target] = _filled(slots, source)
                case Branch():
                    self._steps(step.then if _true(_filled(slots, step.condition)) else step.otherwise, slots)
                case Loop():
                    self._steps(step.head, slots)
                    while _true(_filled(slots, step.condition)):
                        self._steps(step.body, slots)
                        self._steps(step.head, slots)

    def _run(self, at: int, arguments: Sequence[Array]) -> list[Array]:
        """Run one kernel graph: upload, launch, wait, copy back."""
        plan = self.plans[at]
        device = self.device
        prices = device.chip.prices
        self._claim(at, plan)
        for place in plan.weights:
            self._weights.upload(place)
        for place, value in zip(plan.inputs, arguments, strict=True):
            self._begin(place)
            if value.shape != place.shape:
                raise BadInputError(f"the argument has shape {value.shape}", where=place.name, allowed=[place.shape])
            device.clock.advance(prices.copy_duration_ns(place.nbytes))
            place.put(value.astype(place.device_dtype.numpy, copy=False))
        stream = device.stream(COMPUTE_STREAM)
        for call in plan.calls:
            work = partial(self._kernel, plan, call)
            stream.launch(Task(kind=call.kind, name=call.node.full_name, work=work, cost_ns=call.cost_ns), self._ids)
        device.synchronize()
        results = [self._result(argument) for argument in plan.results]
        if at != 0:  # the root's parameters are read at the end of the run
            self._yield(at)
        return results

    def _result(self, argument: Argument) -> Array:
        assert isinstance(argument, Place)
        argument.refresh(self.device.overflow)
        self.device.clock.advance(self.device.chip.prices.copy_duration_ns(argument.nbytes))
        return np.array(argument.array(), dtype=argument.dtype.numpy)

    def _begin(self, place: Place) -> None:
        """A planned tensor's life begins."""
        buffer = place.buffer
        assert buffer is not None
        buffer.dead = None
        if buffer.fresh:
            padding = buffer.alloc_size - buffer.size
            if padding:
                buffer.memory.view(buffer.end, padding)[:] = FILL
            buffer.fresh = False

    def _end(self, place: Place) -> None:
        """A planned tensor's life ends; its bytes stay until the memory is used again."""
        buffer = place.buffer
        assert buffer is not None
        buffer.dead = place.dead
        place.forget()
        if not self.options.memory_reuse and place.nbytes >= _DISCARD:
            buffer.memory.discard(buffer)

    # ------------------------------------------------------------ kernels
    def _kernel(self, plan: GraphPlan, call: Call, task: Task) -> None:
        """The work of one task."""
        device = self.device
        mode = device.overflow
        faults: tuple[Any, ...] = ()
        if self._injector is not None:
            faults = self._injector.launch(call.node.op_type, call.node.full_name)
            self._refuse(call, faults)
        for place in call.births:
            self._begin(place)
        overflow = False
        for place in call.conversions:
            overflow |= place.refresh(mode)
        wanted = self.observers.task(plan, call, task) if self.observers.taps else None
        if wanted is not None:
            self.observers.before(wanted)
        for fault in faults:
            if fault.kind == "aicore_error":
                error = aicore_error(device, task, fault.code)
                if wanted is not None:
                    self.observers.after(wanted, call, plan, error=str(error))
                raise TaskFailure(error)
        operands = [_operand(argument, at in call.definition.updates) for at, argument in enumerate(call.arguments)]
        attrs = {**call.attrs, "counter": call.runs} if call.definition.random else call.attrs
        with np.errstate(all="ignore"):
            results = list(_flat(call.definition.kernel(*operands, **attrs)))
        call.runs += 1
        if len(results) != len(call.outputs):
            raise DeviceError(
                f"the kernel of {call.node.op_type} gave {len(results)} results for {len(call.outputs)} outputs",
                where=call.node.full_name,
            )
        for fault in faults:
            if fault.kind == "overflow":
                _spoil(call, results, fault)
        overflow |= self._store(call, operands, results)
        if overflow and mode is not None:
            overflow = _finite([o for at, o in enumerate(operands) if at not in call.definition.updates])
            if overflow:
                device.status.set()
        for fault in faults:
            if fault.kind == "stomp":
                self._stomp(call, fault)
        if wanted is not None:
            self.observers.after(wanted, call, plan, overflow=overflow)
        for place in call.deaths:
            self._end(place)

    def _store(self, call: Call, operands: Sequence[Any], results: Sequence[Any]) -> bool:
        """Write what a kernel computed; True where a number did not fit its type."""
        mode = self.device.overflow
        overflow = False
        for at in call.definition.updates:
            place = call.arguments[at]
            if not isinstance(place, Place):
                continue
            values, too_large = narrow(operands[at], place.device_dtype, mode)
            overflow |= too_large
            if np.may_share_memory(values, place.device_array()):
                place.memory().touch()
            else:
                place.put(values)
        for place, stored, result in zip(call.outputs, call.stored, results, strict=True):
            if not stored:
                continue
            values, too_large = narrow(np.asarray(result), place.device_dtype, mode)
            overflow |= too_large
            if values.size * values.itemsize != (place.nbytes if place.plain else values.nbytes):
                raise DeviceError(
                    f"the kernel of {call.node.op_type} gave shape {values.shape} for an output of shape {place.shape}",
                    where=call.node.full_name,
                )
            place.put(values)
        return overflow

    # ------------------------------------------------------------- faults
    def _refuse(self, call: Call, faults: Sequence[Any]) -> None:
        if any(fault.kind == "out_of_memory" for fault in faults):
            raise self.device.memory.out_of_memory(sum(p.nbytes for p in call.outputs), call.node.full_name)

    def _stomp(self, call: Call, fault: Any) -> None:
        """Overwrite bytes that are not the operator's own."""
        if fault.address is not None:
            address = fault.address + fault.offset
        elif fault.target is not None:
            address = self._target(fault.target, fault.slot).address + fault.offset
        else:
            if not call.outputs:
                raise DeviceError("an operator without output cannot write behind it", where=call.node.full_name)
            address = call.outputs[0].memory().end + fault.offset
        self.device.memory.write(address, np.full(fault.nbytes, fault.byte, np.uint8))

    def _target(self, pattern: str, slot: int) -> Buffer:
        for plan in self.plans:
            for call in plan.calls:
                if matches(pattern, call.node.op_type, call.node.full_name):
                    for output in call.outputs:
                        if output.slot == slot and output.root.buffer is not None:
                            return output.memory()
            for place in plan.parameters:
                if place.name == pattern and place.buffer is not None:
                    return place.buffer
        raise DeviceError(
            f"no tensor of the program matches {pattern!r}", where="fault plan: stomp.target", code="DS-FLT-004"
        )


def aicore_error(device: Device, task: Task, code: int) -> DeviceError:
    """What the next synchronisation says of a kernel that the hardware stopped."""
    # the fields of the vendor's message [spec parallel 4.5]
    return DeviceError(
        f"Sync stream failed, error code {code}. EZ9999: Aicore kernel execute failed, device_id={device.device_id}, "
        f"stream_id={task.stream_id}, report_stream_id={task.stream_id}, task_id={task.task_id}, flip_num={task.flip}, "
        f"fault kernel_name={task.name}",
        code="DS-DEV-003",
    )


def _operand(argument: Argument, writable: bool) -> Any:
    """An operand as a kernel takes it: arrays in host layout, low precision widened to float32."""
    if isinstance(argument, Place):
        array = argument.array()
        if argument.scalar:
            return array.item()
        if argument.device_dtype.name in _WIDENED:
            return array.astype(np.float32)
        if not writable:
            array = array.view()
            array.flags.writeable = False
        return array
    if isinstance(argument, HostValue):
        return argument.value
    if argument is None:
        return None
    return tuple(_operand(item, writable) for item in argument)


def _flat(result: Any) -> Iterator[Any]:
    if isinstance(result, (tuple, list)):
        for item in result:
            yield from _flat(item)
    elif result is not None:
        yield result


def _finite(operands: Sequence[Any]) -> bool:
    """Whether all operands were finite: only then is a result that does not fit an overflow."""
    for operand in operands:
        if isinstance(operand, tuple):
            if not _finite(operand):
                return False
        elif isinstance(operand, np.ndarray) and operand.dtype.kind in "fV" and not np.isfinite(operand).all():
            return False
    return True


def _spoil(call: Call, results: list[Any], fault: Any) -> None:
    """Put the fault's value into the exact result."""
    if fault.output >= len(results):
        raise DeviceError(
            f"{call.node.full_name} has {len(results)} outputs, not an output {fault.output}",
            where="fault plan: overflow.output",
            code="DS-FLT-004",
        )
    exact = np.array(results[fault.output])
    if exact.dtype.kind != "f" or fault.index >= exact.size:
        raise DeviceError(
            f"output {fault.output} of {call.node.full_name} is {exact.dtype} of {exact.size} elements",
            where="fault plan: overflow.index",
            code="DS-FLT-004",
        )
    exact.reshape(-1)[fault.index] = float(fault.value)
    results[fault.output] = exact


def _constant(constant: Constant) -> Any:
    """A constant as a call returns it: an array where it is made of numbers, else the value itself."""
    content = host_array(constant.value, constant.abstract)
    return constant.value if content is None else content[0]


def _filled(slots: Sequence[Array | None], at: int) -> Array:
    value = slots[at]
    if value is None:
        raise DeviceError(f"slot {at} is read before a graph has filled it")
    return value


def _true(condition: Array) -> bool:
    return bool(condition.reshape(-1)[0])
