"""Run a single operator immediately, as PYNATIVE does."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from dumpsim.core.abstract import Abstract, TensorType
from dumpsim.core.communicator import Group
from dumpsim.core.dtype import DType, dtype, from_numpy
from dumpsim.core.errors import BadInputError, DeviceError
from dumpsim.core.events import TensorRef
from dumpsim.device.device import COMPUTE_STREAM, Device
from dumpsim.device.event import Event
from dumpsim.device.injector import Injector
from dumpsim.device.memory import FILL
from dumpsim.device.overflow import narrow
from dumpsim.device.stream import TaskFailure
from dumpsim.device.task import Task, TaskKind
from dumpsim.graph.builder import constant
from dumpsim.graph.graph import leaves_of
from dumpsim.ops.bounds import OutOfRange
from dumpsim.ops.opdef import OpDef
from dumpsim.runtime.collective import Attendance, Operator, attend, caller
from dumpsim.runtime.compute import AICORE_EXCEPTION, compute, skip, stopping_index
from dumpsim.runtime.engine.engine import Engine
from dumpsim.runtime.kernel import aicore_error
from dumpsim.runtime.observe import Observers, bytes_ref, host_array, host_ref
from dumpsim.runtime.result import finite, spoil
from dumpsim.runtime.slot import Array
from dumpsim.runtime.touched import touched_arrays
from dumpsim.runtime.unknown import HostArray, Unknown

__all__ = ["Pending", "launch_op"]

_NOTHING = np.frombuffer(b"", np.uint8)


class Pending:
    """An operator of PYNATIVE that was launched.

    Parameters
    ----------
    device : Device
    results : list
        Filled when the operator's task has run.
    event : Event, optional
        Recorded after the operator, if it runs on another stream than the compute stream.
    """

    def __init__(self, device: Device, results: list[HostArray], event: Event | None = None) -> None:
        self._device = device
        self._results = results
        self._event = event
        self._waited = False

    @property
    def done(self) -> bool:
        """Whether the operator has run."""
        if self._event is None:
            return not self._device.stream(COMPUTE_STREAM).busy
        return self._event.recorded > 0

    def wait(self) -> list[HostArray]:
        """Wait for the operator and return its outputs; operators launched later run after it.

        Raises
        ------
        DeviceError
            If the device stopped.
        """
        if self._waited and self._event is None:  # by now another thread of the script may use the stream
            return self._results
        stream = self._device.stream(COMPUTE_STREAM)
        if self._event is not None:
            stream.wait(self._event)
        self._device.synchronize([stream])
        self._waited = True
        return self._results


def launch_op(
    device: Device,
    engine: Engine,
    definition: OpDef,
    operands: Sequence[Any],
    attrs: Mapping[str, Any],
    *,
    output: Abstract,
    counter: int,
    private_formats: bool,
    injector: Injector | None,
    observers: Observers,
    failing: Callable[[], object] | None = None,
    group: Group | None = None,
) -> Pending:
    """Launch one operator as a task; the tensors of PYNATIVE are host arrays.

    Parameters
    ----------
    engine : Engine
        Computes the kernel.
    operands : sequence
        Arrays for tensors (number types as on the device), host values, tuples of these.
    output : Abstract
        The inferred type.
    counter : int
        Earlier runs of this operator on such operands, for random kernels.
    private_formats : bool
        Whether the matrix unit computes in the chip's own number type.
    observers : Observers
        Notified of a kernel that the hardware stopped and, if one of them wants it, of every kernel.
    failing : callable, optional
        Called before the observers are notified, so that listeners for failures only can subscribe.
    group : Group, optional
        The group of a collective of several ranks, whose task runs on the group's stream.

    Returns
    -------
    Pending
        Gives the output tensors, tuples flattened; they never share memory with an operand.
    """
    leaves = list(leaves_of(output))
    results: list[HostArray] = []
    cube = _matrix_dtype(device, definition) if private_formats else None
    full_name = f"Default/{definition.name}"

    def stop(task: Task, code: int, index: OutOfRange | None = None) -> TaskFailure:
        error = aicore_error(device, task, code, index)
        if failing is not None:
            failing()
        inputs, outputs = _operand_refs(operands), _output_refs(output)
        observers.failed(definition.name, full_name, inputs, outputs, attrs, task, str(error), code)
        return TaskFailure(error)

    def work(task: Task) -> None:
        faults = injector.launch(definition.name, full_name) if injector is not None else ()
        for fault in faults:
            if fault.kind == "aicore_error":
                raise stop(task, fault.code)
            if fault.kind == "out_of_memory":
                size = sum(leaf.nbytes for leaf in leaves if isinstance(leaf, TensorType))
                raise device.memory.out_of_memory(size, full_name)
            if fault.kind == "stomp":
                raise DeviceError(
                    f"{full_name} runs in PYNATIVE, whose tensors have no device memory to stomp on",
                    where="fault plan: stomp.after",
                    code="DS-FLT-004",
                )
        if not engine.values:
            shapes = [leaf.shape if isinstance(leaf, TensorType) else () for leaf in leaves]
            open_shape = any(-1 in shape for shape in shapes)
            skip(engine, definition, full_name=full_name, open_shape=open_shape, faults=faults)
            results.extend(
                Unknown(full_name, leaf.dtype.numpy, shape) for leaf, shape in zip(leaves, shapes, strict=True)
            )
            return
        if gate is not None:
            made: list[Any] = list(gate.outputs())
            for fault in faults:
                if fault.kind == "overflow":
                    spoil(full_name, made, fault)
            results.extend(made)
            return
        values = [_operand(operand, cube, device, at in definition.updates) for at, operand in enumerate(operands)]
        index = stopping_index(device, definition, values, attrs, full_name=full_name)
        if index is not None:
            raise stop(task, AICORE_EXCEPTION, index)
        shown = observers.single(definition.name, full_name, attrs, task, lambda: _operand_refs(operands))
        computed = compute(
            engine,
            device,
            definition,
            values,
            attrs,
            full_name=full_name,
            counter=counter,
            outputs=len(leaves),
            faults=faults,
        )
        overflow = _update(computed.updated, operands, device)
        for leaf, result in zip(leaves, computed.results, strict=True):
            stored, too_large = _stored(np.asarray(result), leaf.dtype, cube, device)
            overflow |= too_large
            if any(np.may_share_memory(stored, array) for array in _arrays(operands)):
                stored = stored.copy()
            results.append(np.ascontiguousarray(stored).reshape(stored.shape))
        overflow = overflow and finite([value for at, value in enumerate(values) if at not in definition.updates])
        if overflow:
            device.status.set()
        if shown is not None:
            observers.single_ran(
                shown, tuple(_array_ref(array, at) for at, array in enumerate(results)), overflow=overflow
            )

    touches = None
    if device.races is not None:
        touches = partial(touched_arrays, definition, list(operands), None if group is None else group.name)
    stream = device.stream(COMPUTE_STREAM)
    kind = TaskKind.of_engine(definition.engine)
    gate: Attendance | None = None
    if group is not None:
        tensors = list(_arrays(operands))
        operator = Operator(
            type=definition.name,
            attrs=attrs,
            tensors=tuple((from_numpy(array.dtype).name, array.shape) for array in tensors),
            outputs=tuple((leaf.dtype.name, getattr(leaf, "shape", ())) for leaf in leaves),
            host=tuple(operand for operand in operands[1:] if isinstance(operand, tuple)),
            name=full_name,
            place=caller(),
        )
        gate = attend(group, operator, lambda: tensors, injector)
        begin, done = device.event(), device.event()
        stream.record(begin)
        apart = device.stream(COMPUTE_STREAM + 1 + group.number)
        apart.wait(begin)
        apart.launch(Task(kind=kind, name=full_name, work=work, cost_ns=gate.cost_ns, gate=gate, touches=touches))
        apart.record(done)
        return Pending(device, results, done)
    nbytes = sum(array.nbytes for array in _arrays(operands))
    flops = sum(leaf.size for leaf in leaves if isinstance(leaf, TensorType))
    cost = device.chip.prices.kernel_ns(flops, nbytes)
    stream.launch(Task(kind=kind, name=full_name, work=work, cost_ns=cost, touches=touches))
    return Pending(device, results)


def _matrix_dtype(device: Device, definition: OpDef) -> DType | None:
    """Return the number type in which the matrix unit computes the operator; None if it does not change the type."""
    chip = device.chip
    return dtype(chip.cube_dtype) if chip.cube_dtype is not None and definition.name in chip.cube_ops else None


def _update(updated: Mapping[int, Any], operands: Sequence[Any], device: Device) -> bool:
    """Write back the operands that the kernel updates in place; return whether a number did not fit."""
    overflow = False
    for at, value in updated.items():
        operand = operands[at]
        stored, too_large = narrow(value, from_numpy(operand.dtype), device.overflow)
        overflow |= too_large
        if stored is not operand:
            operand[...] = stored
    return overflow


def _stored(array: Array, kind: DType, cube: DType | None, device: Device) -> tuple[Array, bool]:
    """Round a result as the device does, float32 through the matrix unit's type; also whether a number did not fit."""
    overflow = False
    if cube is not None and kind.name == "float32":
        array, overflow = narrow(array, cube, device.overflow)
    stored, too_large = narrow(array, kind, device.overflow)
    return stored, overflow or too_large


def _operand(operand: Any, cube: DType | None, device: Device, updated: bool) -> Any:
    """Return an operand for an engine: float32 is rounded to the number type of the matrix unit."""
    if isinstance(operand, tuple):
        return tuple(_operand(item, cube, device, updated) for item in operand)
    if not isinstance(operand, np.ndarray):
        return operand
    if updated and not operand.flags.writeable:
        raise BadInputError("the operand is updated in place, but its array is read-only")
    if cube is not None and operand.dtype == np.float32 and not updated:
        return narrow(operand, cube, device.overflow)[0]
    return operand


def _operand_refs(operands: Sequence[Any]) -> tuple[TensorRef, ...]:
    """References to operands, one for each tensor of a tuple."""
    refs: list[TensorRef] = []
    for operand in operands:
        items = list(_arrays([operand]))
        for item in items:
            refs.append(_array_ref(item, len(refs)))
        if not items:
            refs.append(host_ref(host_array(operand, constant(operand).abstract), len(refs)))
    return tuple(refs)


def _array_ref(array: HostArray, slot: int) -> TensorRef:
    """Return the reference to an operand; that of an unknown value cannot be read."""
    kind = from_numpy(array.dtype)
    if isinstance(array, Unknown):
        return replace(bytes_ref(_NOTHING, kind, array.shape, slot), nbytes=array.nbytes, read=array.refuse)
    return bytes_ref(np.ascontiguousarray(array).reshape(-1).view(np.uint8), kind, array.shape, slot)


def _output_refs(output: Abstract) -> tuple[TensorRef, ...]:
    """Return references to outputs that were never written."""
    kinds = [leaf for leaf in leaves_of(output) if isinstance(leaf, TensorType)]
    return tuple(
        bytes_ref(np.full(kind.nbytes, FILL, np.uint8), kind.dtype, kind.shape, slot) for slot, kind in enumerate(kinds)
    )


def _arrays(operands: Sequence[Any]) -> Iterator[Any]:
    for operand in operands:
        if isinstance(operand, (np.ndarray, Unknown)):
            yield operand
        elif isinstance(operand, tuple):
            yield from _arrays(operand)
