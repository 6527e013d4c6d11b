"""The work of one kernel task: operands, computation, results, overflow, faults and events."""

from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np

from dumpsim.core.errors import DeviceError
from dumpsim.device.device import Device
from dumpsim.device.injector import Injector
from dumpsim.device.overflow import narrow, status_bits
from dumpsim.device.stream import TaskFailure
from dumpsim.device.task import Task, TaskKind
from dumpsim.graph.conversion import TRANS_DATA
from dumpsim.graph.graph import Node
from dumpsim.ops.bounds import OutOfRange
from dumpsim.runtime.binding import Binding
from dumpsim.runtime.collective import Attendance
from dumpsim.runtime.compute import AICORE_EXCEPTION, compute, skip, stopping_index
from dumpsim.runtime.engine.engine import Computed, Engine
from dumpsim.runtime.observe import Observers, Wanted
from dumpsim.runtime.plan import Argument, Call, HostValue
from dumpsim.runtime.preparation import Preparation
from dumpsim.runtime.prepared import Prepared
from dumpsim.runtime.result import finite, spoil
from dumpsim.runtime.slot import Slot
from dumpsim.runtime.unknown import HostArray
from dumpsim.runtime.watched import Watched

__all__ = ["Kernels", "aicore_error"]

_CORES = ("aicore", "aivector")  # engines whose status word overflow detection reads [spec parallel 4.4]
_DISCARD = 1 << 20  # if memory is not reused, the pages of dead buffers of at least this size are freed

_Shown = tuple[Wanted | None, list[Callable[[], None]]]  # the taps that see a kernel, and their deferred callbacks


class Kernels:
    """Runs the kernels of a program.

    Parameters
    ----------
    device : Device
    engine : Engine
        Computes them.
    observers : Observers
    memory_reuse : bool
        If False, the pages of dead tensors are freed, since their memory is not reused.
    skipped : collection of str
        Operator types and full names of kernels to skip, or ``all``.
    """

    def __init__(
        self,
        device: Device,
        engine: Engine,
        observers: Observers,
        *,
        memory_reuse: bool,
        skipped: Collection[str] = (),
    ) -> None:
        self._skipped = frozenset(skipped)
        self.device = device
        self.engine = engine
        self.observers = observers
        self._injector: Injector | None = None
        self._locate: Callable[[str, int], int | None] | None = None
        self._memory_reuse = memory_reuse
        self._counts: dict[Node, int] = {}  # runs of random kernels
        self._preparation = Preparation(device, engine, observers, self)
        self._shown: dict[int, _Shown] = {}  # by task: collectives whose inputs were shown

    def follow(self, injector: Injector | None, locate: Callable[[str, int], int | None] | None) -> None:
        """Follow a fault plan from now on; ``locate(pattern, slot)`` finds the address that a target names."""
        self._injector = injector
        self._locate = locate
        self._shown.clear()

    @property
    def injector(self) -> Injector | None:
        """The fault plan that is followed."""
        return self._injector

    def prepared(self, binding: Binding, arguments: Sequence[HostArray]) -> Prepared | None:
        """Return the graph prepared for a run without tasks, if nobody watches it; None if its kernels run as tasks."""
        if self.observers.taps or self._injector is not None or self._skipped:
            return None
        return self._preparation.of(binding, arguments)

    def watched(self, binding: Binding, arguments: Sequence[HostArray]) -> Watched | None:
        """Return the graph prepared for tasks that are the same in every run; None if it cannot be prepared."""
        if not self.observers.taps or self._injector is not None or self._skipped or not self.engine.values:
            return None
        return self._preparation.watched(binding, arguments)

    def inputs(self, binding: Binding, call: Call, task: Task) -> Task | None:
        """Return a task that shows the inputs of a collective before the rank meets the others; None without taps."""
        if not self.observers.taps:
            return None

        def work(own: Task) -> None:
            for slot in call.births:
                binding.begin(slot)
            later: list[Callable[[], None]] = []
            wanted = self.observers.task(binding, call, task, later.append)
            if wanted is not None:
                wanted[1]["time_ns"] = own.end_ns
                self.observers.before(wanted)
            self._shown[id(task)] = wanted, later

        return Task(kind=TaskKind.CALLBACK, name=f"inputs of {call.node.full_name}", work=work)

    def run(self, binding: Binding, call: Call, task: Task) -> None:
        """Do the work of a kernel's task."""
        device = self.device
        faults: tuple[Any, ...] = ()
        if self._injector is not None:
            faults = self._injector.launch(call.node.op_type, call.node.full_name, call.definition.name)
            self._refuse(call, faults)
        skipped = self.skips(call.node)
        shown = self._shown.pop(id(task), None)
        if shown is None:
            for slot in call.births:
                binding.begin(slot, untouched=skipped)
            shown = self._show(binding, call, task)
        wanted, later = shown
        if wanted is not None:
            wanted[1]["time_ns"] = task.end_ns
        code, index = next((fault.code for fault in faults if fault.kind == "aicore_error"), None), None
        if code is None and call.definition.bounds is not None and not skipped and self.engine.values:
            index = self._index(binding, call)
        if code is not None or index is not None:
            raise self._stopped(binding, call, task, shown, code, index)
        if isinstance(task.gate, Attendance):
            status = self._share(binding, call, task.gate, faults)
        else:
            status = 0 if skipped else self.compute(binding, call, faults)
        if status:
            device.status.set()
        for fault in faults:
            if fault.kind == "stomp":
                self._stomp(binding, call, fault)
        if wanted is not None:
            on_core = call.engine in _CORES
            self.observers.after(wanted, call, binding, overflow=status != 0, overflow_status=status if on_core else 0)
        if later:
            kind, name = TaskKind.CALLBACK, f"callback of {call.node.full_name}"
            following = [Task(kind=kind, name=name, work=_callback(deferred)) for deferred in later]
            # the tensors live until all callbacks have run
            following.append(Task(kind=kind, name=name, work=lambda _: self.bury(binding, call)))
            device.stream(task.stream_id).follow(following)
        else:
            self.bury(binding, call)

    def check_index(self, binding: Binding, call: Call, task: Task) -> None:
        """Stop the task of a kernel with an index out of range.

        Raises
        ------
        TaskFailure
        """
        index = self._index(binding, call)
        if index is not None:
            later: list[Callable[[], None]] = []
            shown = self.observers.task(binding, call, task, later.append), later
            raise self._stopped(binding, call, task, shown, None, index)

    def _index(self, binding: Binding, call: Call) -> OutOfRange | None:
        """Return the index that stops a kernel; None if it runs."""
        operands = [_operand(binding, argument) for argument in call.arguments]
        return stopping_index(self.device, call.definition, operands, call.attrs, full_name=call.node.full_name)

    def _stopped(
        self, binding: Binding, call: Call, task: Task, shown: _Shown, code: int | None, index: OutOfRange | None
    ) -> TaskFailure:
        """Report that the hardware stops a kernel; return the exception for the task to raise."""
        wanted, later = shown
        code = code or AICORE_EXCEPTION
        error = aicore_error(self.device, task, code, index)
        if self.observers.failing is not None:
            self.observers.failing()
            wanted = self.observers.task(binding, call, task, later.append)
        if wanted is not None:
            # the stream stops here: no callback can be deferred
            stop = {"error": str(error), "error_code": code}
            self.observers.after(wanted, call, binding, **stop, defer=None)
            for deferred in later:
                deferred()
        return TaskFailure(error)

    def _show(self, binding: Binding, call: Call, task: Task) -> _Shown:
        """Report that a kernel is about to run; return the taps that want its event, and their deferred callbacks."""
        later: list[Callable[[], None]] = []
        wanted = self.observers.task(binding, call, task, later.append) if self.observers.taps else None
        if wanted is not None:
            self.observers.before(wanted)
        return wanted, later

    def _share(self, binding: Binding, call: Call, gate: Attendance, faults: Sequence[Any]) -> int:
        """Store a collective's outputs; return 0, since it does not touch AI Core's status word."""
        if self.engine.values:
            results: list[Any] = list(gate.outputs())
            for fault in faults:
                if fault.kind == "overflow":
                    spoil(call.node.full_name, results, fault)
            for slot, values in zip(call.outputs, results, strict=False):
                binding.share(slot, values)
        return 0

    def compute(self, binding: Binding, call: Call, faults: Sequence[Any] = ()) -> int:
        """Run the kernel, and return AI Core's status word."""
        if not self.engine.values:
            skip(
                self.engine,
                call.definition,
                full_name=call.node.full_name,
                open_shape=any(slot.settles for slot in call.outputs),
                faults=faults,
            )
            return 0
        if call.definition is TRANS_DATA:
            (source,) = call.arguments
            assert isinstance(source, Slot)
            values = binding.array(source)  # only the layout changes: the bits of the numbers stay
            (output,) = call.outputs
            binding.put(output, values if output.plain else values.copy())  # its readers take the copy
            return 0
        definition = call.definition
        counter = self._counts.get(call.node, 0)
        if definition.random:
            self._counts[call.node] = counter + 1
        for at in definition.updates:
            binding.own(call.arguments[at])
        operands = [_operand(binding, argument) for argument in call.arguments]
        computed = compute(
            self.engine,
            self.device,
            definition,
            operands,
            call.attrs,
            full_name=call.node.full_name,
            counter=counter,
            outputs=len(call.outputs),
            unwritten=definition.unwritten.get(self.device.chip.target, ()),
            faults=faults,
        )
        status = self._store(binding, call, computed)
        if status and not finite([o for at, o in enumerate(operands) if at not in call.definition.updates]):
            return 0
        return status

    def skips(self, node: Node) -> bool:
        """Whether ``MS_KERNEL_LAUNCH_SKIP`` names the kernel. [spec mindspore 1.5]"""
        skipped = self._skipped
        return bool(skipped) and (
            "all" in skipped or "ALL" in skipped or node.op_type in skipped or node.full_name in skipped
        )

    def bury(self, binding: Binding, call: Call) -> None:
        """End the lives of the tensors that are unused after this kernel."""
        for slot in call.deaths:
            buffer = binding.end(slot)
            if not self._memory_reuse and buffer.size >= _DISCARD:
                self.device.memory.discard(buffer)

    def _store(self, binding: Binding, call: Call, computed: Computed) -> int:
        """Write the results of a kernel; return AI Core's status word, 0 if all numbers fit their types."""
        mode = self.device.overflow
        head = call.node.members[0].op_type if call.node.members else call.definition.name
        cube = head in self.device.chip.cube_ops
        status = 0
        for at, value in computed.updated.items():
            slot = call.arguments[at]
            if not isinstance(slot, Slot):
                continue
            values, too_large = narrow(value, slot.device_dtype, mode)
            status |= status_bits(slot.device_dtype, cube=cube) if too_large else 0
            if np.may_share_memory(values, binding.device_array(slot)):
                binding.buffer(slot).touch()
            else:
                binding.put(slot, values)
        for slot, stored, result in zip(call.outputs, call.stored, computed.results, strict=True):
            if slot.settles:
                binding.settle(slot, np.shape(result), _largest(binding, call) if slot.shows_largest else None)
            if not stored:
                continue
            values, too_large = narrow(np.asarray(result), slot.device_dtype, mode)
            status |= status_bits(slot.device_dtype, cube=cube) if too_large else 0
            if slot.plain and slot.device_dtype.nbytes(values.size) != binding.nbytes(slot):
                raise DeviceError(
                    f"the kernel of {call.node.op_type} gave shape {values.shape} for an output of shape "
                    f"{binding.shape(slot)}",
                    where=call.node.full_name,
                )
            binding.put(slot, values)
        return status

    def _refuse(self, call: Call, faults: Sequence[Any]) -> None:
        if any(fault.kind == "out_of_memory" for fault in faults):
            raise self.device.memory.out_of_memory(sum(slot.nbytes for slot in call.outputs), call.node.full_name)

    def _stomp(self, binding: Binding, call: Call, fault: Any) -> None:
        """Overwrite bytes outside of the operator's outputs, for a fault."""
        if fault.address is not None:
            address = fault.address + fault.offset
        elif fault.target is not None:
            address = self._target(fault.target, fault.slot) + fault.offset
        else:
            if not call.outputs:
                raise DeviceError("an operator without outputs cannot write past their end", where=call.node.full_name)
            address = binding.buffer(call.outputs[0]).end + fault.offset
        self.device.memory.write(address, np.full(fault.nbytes, fault.byte, np.uint8))

    def _target(self, pattern: str, slot: int) -> int:
        address = self._locate(pattern, slot) if self._locate is not None else None
        if address is None:
            raise DeviceError(
                f"no tensor of the program matches {pattern!r}", where="fault plan: stomp.target", code="DS-FLT-004"
            )
        return address


def _largest(binding: Binding, call: Call) -> tuple[int, ...]:
    """Return the upper bound of a result's shape that the values decide."""
    assert call.definition.largest is not None
    return call.definition.largest([binding.shape(slot) for slot in call.arguments if isinstance(slot, Slot)])


def _callback(deferred: Callable[[], None]) -> Callable[[Task], None]:
    """Return a listener's deferred callback as the work of a task."""
    return lambda _: deferred()


def aicore_error(device: Device, task: Task, code: int, index: OutOfRange | None = None) -> DeviceError:
    """Return the error that the next synchronisation raises for a kernel that the hardware stopped."""
    # the fields of the vendor's message [spec parallel 4.5]
    error = DeviceError(
        f"Sync stream failed, error code {code}. EZ9999: Aicore kernel execute failed, device_id={device.device_id}, "
        f"stream_id={task.stream_id}, report_stream_id={task.stream_id}, task_id={task.task_id}, flip_num={task.flip}, "
        f"fault kernel_name={task.name}",
        code="DS-DEV-003",
    )
    if index is not None:
        error.add_note(f"dumpsim: {task.name}: {index}")
    return error


def _operand(binding: Binding, argument: Argument) -> Any:
    """Return an operand for an engine."""
    if isinstance(argument, Slot):
        array = binding.array(argument)
        return array.item() if argument.scalar else array
    if isinstance(argument, HostValue):
        return argument.value
    if argument is None:
        return None
    return tuple(_operand(binding, item) for item in argument)
