"""Reports to listeners: references to tensors, and the events of graphs, runs and tasks."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import prod
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from dumpsim.codecs.irproto import constants
from dumpsim.core.abstract import Abstract, ScalarType, TensorType, TupleType
from dumpsim.core.dtype import DType, dtype
from dumpsim.core.events import NO_GRAPH, GraphEvent, NodeOutputs, Reader, RunEvent, Tap, TaskEvent, TensorRef
from dumpsim.core.irdoc import ConstRef
from dumpsim.device.arena import Bytes
from dumpsim.device.memory import Buffer
from dumpsim.device.task import UNKNOWN_TASK_ID, Task
from dumpsim.graph.graph import Node, Parameter, Value
from dumpsim.graph.program import KernelGraph
from dumpsim.graph.sequence import is_kernel
from dumpsim.runtime.binding import Binding
from dumpsim.runtime.buildinfo import with_build_info
from dumpsim.runtime.plan import Argument, Call, GraphPlan, HostValue, is_dynamic
from dumpsim.runtime.slot import PLAIN, Array, Slot

__all__ = ["Observers", "ReaderOf", "Wanted", "bytes_ref", "host_array", "host_ref", "slot_ref"]

_NOTHING = np.frombuffer(b"", np.uint8)
_BYTE = dtype("uint8")

Wanted = tuple[list[Tap], dict[str, Any]]  # the taps that want a task's event, and its fields
_Hosts = dict[tuple[int, int], TensorRef]
ReaderOf = Callable[[Slot, int], Reader]  # the reader of a tensor of so many bytes, for every run


class Observers:
    """The taps of a session; references to an event's tensors are created only for taps that want it."""

    def __init__(self, rank: int) -> None:
        self.taps: list[Tap] = []
        self.rank = rank
        self.constants_reported = 0
        self.compiled_root = -1
        self.failing: Callable[[], object] | None = None  # called before taps are notified of a failing kernel
        # references to host constants by identity and slot, cached since a plan's are the same in every run
        self._hosts: WeakKeyDictionary[GraphPlan, _Hosts] = WeakKeyDictionary()

    def graph_compiled(
        self,
        kernel_graph: KernelGraph,
        kernels: Sequence[Node],
        plan: GraphPlan | None = None,
    ) -> None:
        """Report a compiled kernel graph that runs these kernels; graphs with open shapes have no plan yet."""
        if not self.taps:
            return
        doc = kernel_graph.doc
        if doc is not None and plan is not None and not kernel_graph.model_id:
            doc = with_build_info(doc, plan.calls)  # a model's document shows the graph before GE's changes
        event = GraphEvent(
            doc=doc,
            graph_id=kernel_graph.graph_id,
            root_graph_id=kernel_graph.root_graph_id,
            is_root=kernel_graph.is_root,
            execution_order=tuple(node.ir_name for node in kernels),
            lost_marks=tuple(_lost_marks(kernels)),
            rank=self.rank,
            model_name=kernel_graph.model_name,
            model_id=kernel_graph.model_id,
            readers=_readers(kernels) if kernel_graph.model_id else {},
            originals={node.full_name: names for node in kernels if (names := _originals(node))},
            static=plan is not None,
        )
        wanting = [tap for tap in self.taps if tap.wants(event)]
        if wanting:
            if kernel_graph.root_graph_id != self.compiled_root:  # each compilation counts from 0
                self.compiled_root, self.constants_reported = kernel_graph.root_graph_id, 0
            found = constants(doc) if doc is not None else ()
            refs = tuple(_constant_refs(found, self.constants_reported))
            event = replace(event, constants=refs, first_constant=self.constants_reported)
            self.constants_reported += len(found)
            for tap in wanting:
                tap.graph_compiled(event)

    def run_begin(self, kernel_graph: KernelGraph, run_count: int, kind: str) -> None:
        """Report that a root graph begins a run."""
        event = self._run(kernel_graph, run_count, kind)
        for tap in self.taps:
            if tap.wants(event):
                tap.run_begin(event)

    def run_end(self, kernel_graph: KernelGraph, own: Sequence[tuple[int, Binding]], run_count: int, kind: str) -> None:
        """Report that a root graph has ended a run; the event has the parameters of the `own` graphs, by id."""
        event = self._run(kernel_graph, run_count, kind)
        wanting = [tap for tap in self.taps if tap.wants(event)]
        if wanting:
            parameters = {
                graph: tuple(
                    slot_ref(binding, slot, at) for at, slot in enumerate(binding.plan.parameters) if not slot.is_formal
                )
                for graph, binding in own
            }
            event = replace(event, parameters=parameters)
            for tap in wanting:
                tap.run_end(event)

    def _run(self, kernel_graph: KernelGraph, run_count: int, kind: str) -> RunEvent:
        return RunEvent(
            root_graph_id=kernel_graph.root_graph_id,
            graph_id=kernel_graph.graph_id,
            run_count=run_count,
            rank=self.rank,
            kind=kind,
        )

    def task(
        self, binding: Binding, call: Call, task: Task, defer: Callable[[Callable[[], None]], None] | None = None
    ) -> Wanted | None:
        """Return the taps that want the event of a task, and its fields; None if no tap wants it."""
        if not self.taps:
            return None
        fields = self.fields(binding, call, task.task_id, task.stream_id, task.end_ns)
        fields["defer"] = defer
        fields["outputs_of"] = None if is_dynamic(binding.plan.kernel_graph) else partial(_outputs_of, binding, call)
        event = TaskEvent(**fields)
        wanting = [tap for tap in self.taps if tap.wants(event)]
        if not wanting:
            return None
        return wanting, self.gathered(binding, call, fields)

    def fields(self, binding: Binding, call: Call, task_id: int, stream_id: int, time_ns: int = 0) -> dict[str, Any]:
        """Return the fields of a task's event without its tensors."""
        node, graph = call.node, binding.plan.kernel_graph
        return {  # used for up to three events, which is cheaper than `replace`
            "op_type": node.op_type,
            "full_name": node.full_name,
            "graph_id": graph.graph_id,
            "root_graph_id": graph.root_graph_id,
            "operands": (),
            "outputs": (),
            "attrs": {**call.attrs, "dump": node.dump_mark} if node.dump_mark is not None else call.attrs,
            "task_id": task_id,
            "stream_id": stream_id,
            "time_ns": time_ns,
            "flops": call.flops,
            "rank": self.rank,
            "model_name": graph.model_name,
            "model_id": graph.model_id,
            "original_names": _originals(node),
        }

    def gathered(
        self, binding: Binding, call: Call, fields: dict[str, Any], place: "ReaderOf | None" = None
    ) -> dict[str, Any]:
        """Add the tensors of the task to the fields; for `place` see `slot_ref`."""
        fields["operands"] = self._operands(binding, call, place=place)
        fields["outputs"] = _outputs(binding, call, place)
        fields["arguments"] = _arguments(call)
        return fields

    def data(self, binding: Binding, time_ns: int) -> None:
        """Report the inputs of a model: nodes of type Data, whose ids are unknown since no task runs them."""
        for slot in binding.plan.parameters if self.taps else ():
            event = self.data_event(binding, slot, time_ns)
            wanting = [tap for tap in self.taps if tap.wants(event)]
            if wanting:
                event = replace(event, outputs=(slot_ref(binding, slot, 0),))
                for tap in wanting:
                    tap.before_task(event)
                for tap in wanting:
                    tap.after_task(event)

    def data_event(self, binding: Binding, slot: Slot, time_ns: int = 0) -> TaskEvent:
        """Return the event of an input of a model, without its tensor."""
        graph = binding.plan.kernel_graph
        return TaskEvent(
            op_type="Data",
            full_name=slot.name,
            graph_id=graph.graph_id,
            root_graph_id=graph.root_graph_id,
            operands=(),
            outputs=(),
            task_id=UNKNOWN_TASK_ID,
            stream_id=UNKNOWN_TASK_ID,
            time_ns=time_ns,
            rank=self.rank,
            model_name=graph.model_name,
            model_id=graph.model_id,
        )

    def failed(
        self,
        op_type: str,
        full_name: str,
        operands: tuple[TensorRef, ...],
        outputs: tuple[TensorRef, ...],
        attrs: Mapping[str, Any],
        task: Task,
        error: str,
        error_code: int,
    ) -> None:
        """Report that the hardware stopped a PYNATIVE operator, which belongs to no graph."""
        if self.failing is not None:
            self.failing()
        event = TaskEvent(
            op_type=op_type,
            full_name=full_name,
            graph_id=NO_GRAPH,
            root_graph_id=NO_GRAPH,
            operands=operands,
            outputs=outputs,
            attrs=attrs,
            task_id=task.task_id,
            stream_id=task.stream_id,
            time_ns=task.end_ns,
            rank=self.rank,
            error=error,
            error_code=error_code,
        )
        wanting = [tap for tap in self.taps if tap.wants(event)]
        for tap in wanting:
            tap.before_task(event)
        for tap in wanting:
            tap.after_task(event)

    def single(
        self,
        op_type: str,
        full_name: str,
        attrs: Mapping[str, Any],
        task: Task,
        operands: Callable[[], tuple[TensorRef, ...]],
    ) -> Wanted | None:
        """Report that a PYNATIVE operator is about to run; return the taps that want its event, and its fields."""
        if not self.taps:
            return None
        fields: dict[str, Any] = {
            "op_type": op_type,
            "full_name": full_name,
            "graph_id": NO_GRAPH,
            "root_graph_id": NO_GRAPH,
            "operands": (),
            "outputs": (),
            "attrs": attrs,
            "task_id": task.task_id,
            "stream_id": task.stream_id,
            "time_ns": task.end_ns,
            "rank": self.rank,
        }
        event = TaskEvent(**fields)
        wanting = [tap for tap in self.taps if tap.wants(event)]
        if not wanting:
            return None
        fields["operands"] = operands()
        wanted = wanting, fields
        self.before(wanted)
        return wanted

    def single_ran(self, wanted: Wanted, outputs: tuple[TensorRef, ...], *, overflow: bool) -> None:
        """Report that a PYNATIVE operator has run."""
        taps, fields = wanted
        event = TaskEvent(**{**fields, "outputs": outputs, "overflow": overflow})
        for tap in taps:
            tap.after_task(event)

    def before(self, wanted: Wanted) -> None:
        """Report that a kernel is about to run."""
        taps, fields = wanted
        event = TaskEvent(**fields)
        for tap in taps:
            tap.before_task(event)

    def after(self, wanted: Wanted, call: Call, binding: Binding, **changes: Any) -> None:
        """Report that a kernel has run; the tensors that it wrote have new versions."""
        taps, fields = wanted
        operands = self._operands(binding, call, fields["operands"])
        event = TaskEvent(**{**fields, "operands": operands, "outputs": _outputs(binding, call), **changes})
        for tap in taps:
            tap.after_task(event)

    def _operands(
        self,
        binding: Binding,
        call: Call,
        before: tuple[TensorRef, ...] = (),
        place: "ReaderOf | None" = None,
    ) -> tuple[TensorRef, ...]:
        """Return references to a call's current operands, with one slot for each tensor of a tuple.

        In a model, numbers, texts and types are attributes, not operands. `before` has the references made before the
        kernel ran; those whose version has not changed are used again.
        """
        plan = binding.plan
        graph = plan.kernel_graph
        hosts = self._hosts.setdefault(plan, {})
        refs: list[TensorRef] = []
        for at, argument in enumerate(call.arguments[: len(call.arguments) - call.definition.unseen]):
            if graph.model_id and isinstance(argument, HostValue) and not isinstance(argument.abstract, TupleType):
                continue
            written = at in call.definition.updates
            for item in _flat((argument,)):
                number = len(refs)
                if not isinstance(item, Slot):
                    found = hosts.get((id(item), number))
                    if found is None:
                        found = hosts[id(item), number] = host_ref(host_array(item.value, item.abstract), number)
                    refs.append(found)
                elif before and before[number].version == binding.buffer(item).version:
                    refs.append(before[number])
                else:
                    ref = slot_ref(binding, item, number, is_own=graph.is_own, place=place)
                    if item in call.freed:
                        ref = replace(ref, origin="freed")
                    refs.append(replace(ref, written=True) if written else ref)
        return tuple(refs)


def _outputs(binding: Binding, call: Call, place: "ReaderOf | None" = None) -> tuple[TensorRef, ...]:
    """Return references to a call's current outputs.

    A call that returns the memory of a formal parameter, such as Reshape, has no memory of its own. [spec
    vendor 2.11; observed 2.10]
    """
    is_own = binding.plan.kernel_graph.is_own
    return tuple(
        slot_ref(binding, each, each.slot, is_own=is_own or not each.transparent, produced=True, place=place)
        for each in call.outputs
    )


def _outputs_of(binding: Binding, running: Call, name: str) -> NodeOutputs | None:
    """Return the outputs of a node as they are in memory while `running` runs, or right after it."""
    ran = True
    for call in binding.plan.calls:
        if call.node.full_name == name:
            return NodeOutputs(
                op_type=call.node.op_type,
                full_name=name,
                outputs=tuple(_planned_ref(binding, output) for output in call.outputs),
                ran=ran,
                alive=tuple(binding.is_alive(output) for output in call.outputs),
                owners=tuple(tuple(binding.owners(output)) for output in call.outputs),
            )
        ran = ran and call is not running
    return None


def _planned_ref(binding: Binding, slot: Slot) -> TensorRef:
    """Return the reference to an output, alive or not, by its address."""
    if binding.is_alive(slot):
        return slot_ref(binding, slot, slot.slot, produced=True)
    address, nbytes = binding.address(slot), binding.nbytes(slot)
    return TensorRef(
        slot=slot.slot,
        dtype=slot.dtype,
        shape=binding.shown_shape(slot),
        device_dtype=slot.device_dtype,
        device_format=slot.device_format,
        device_shape=binding.device_shape(slot),
        address=address,
        nbytes=nbytes,
        read=lambda: binding.memory.read(address, nbytes),
        groups=slot.groups,
        producer=slot.name,
    )


def _readers(kernels: Sequence[Node]) -> dict[str, tuple[str, ...]]:
    """Return the kernels that read each parameter of a graph."""
    found: dict[str, list[str]] = {}
    for node in kernels:
        pending: list[Value] = list(node.operands)
        while pending:
            operand = pending.pop(0)
            if isinstance(operand, Parameter):
                found.setdefault(operand.name, []).append(node.full_name)
            elif isinstance(operand, Node) and not is_kernel(operand):
                pending += operand.operands
    return {name: tuple(dict.fromkeys(readers)) for name, readers in found.items()}


def _lost_marks(kernels: Sequence[Node]) -> Iterator[tuple[str, str]]:
    """Yield operators with a mark of set_dump that were replaced by a node without one, and that node."""
    for node in kernels:
        pending = list(node.members) if node.dump_mark is None else []
        while pending:
            member = pending.pop(0)
            pending[:0] = member.members
            if member.dump_mark == "true":
                yield member.full_name, node.full_name


def _originals(node: Node) -> tuple[str, ...]:
    """Return the full names of the operators that a node replaces: a fused node's members, or the whole of a part."""
    if node.members:
        return tuple(name for member in node.members for name in (_originals(member) or (member.full_name,)))
    return (node.original_name,) if node.original_name else ()


def slot_ref(
    binding: Binding,
    slot: Slot,
    number: int,
    *,
    is_own: bool = True,
    produced: bool = False,
    place: ReaderOf | None = None,
) -> TensorRef:
    """Return the reference to a tensor in device memory.

    Parameters
    ----------
    number : int
        Slot of the operand or output.
    is_own : bool
        Whether the graph is a segment of the network's own function.
    produced : bool
        Whether the tensor is shown as an output of the kernel that computed it.
    place : callable, optional
        ``place(slot, nbytes)`` returns the function that reads the bytes in every run; by default the reference is
        valid as long as the tensor lives.
    """
    buffer = binding.buffer(slot)
    kind = slot.root.kind
    origin = "device"
    if kind == "constant":
        origin = "constant"
    elif slot.root.is_formal or (kind in ("input", "weight") and not is_own):  # [spec vendor 2.10, 2.11]
        origin = "segment"
    shown = binding.shown_shape(slot, produced=produced)
    largest = produced and slot.shows_largest
    nbytes = slot.device_dtype.nbytes(prod(shown)) if largest else binding.nbytes(slot)
    return TensorRef(
        slot=number,
        dtype=slot.dtype,
        shape=shown,
        device_dtype=slot.device_dtype,
        device_format=slot.device_format,
        device_shape=shown if slot.transparent or largest else binding.device_shape(slot),
        address=buffer.address,
        nbytes=nbytes,
        read=_reader(buffer, nbytes) if place is None else place(slot, nbytes),
        version=buffer.version,
        groups=slot.groups,
        origin=origin,
        producer="" if kind == "constant" else slot.name,
        name=slot.name if kind in ("input", "weight") and not slot.is_element else "",
        is_weight=kind == "weight",
    )


def host_array(value: Any, abstract: Abstract) -> tuple[Array, DType] | None:
    """Return a host constant as the array that a device would get; None if it does not consist of numbers.

    Examples
    --------
    >>> from dumpsim.core.dtype import dtype
    >>> host_array(True, ScalarType(dtype=dtype("bool")))[0]
    array(True)
    >>> items = (ScalarType(dtype=dtype("int64")),) * 2
    >>> host_array((2, 3), TupleType(items=items))[0]
    array([2, 3])
    >>> host_array((), TupleType(items=())) is None
    True
    """
    if isinstance(abstract, (ScalarType, TensorType)) and value is not None:
        return np.asarray(value, dtype=abstract.dtype.numpy), abstract.dtype
    if isinstance(abstract, TupleType) and abstract.items:
        kinds = {item.dtype for item in abstract.items if isinstance(item, ScalarType)}
        if len(kinds) == 1 and all(isinstance(item, ScalarType) for item in abstract.items):
            kind = kinds.pop()
            return np.asarray(value, dtype=kind.numpy), kind
    return None


def bytes_ref(
    flat: Bytes, kind: DType, shape: tuple[int, ...], slot: int, *, origin: str = "device", name: str = ""
) -> TensorRef:
    """Return the reference to a tensor on the host, such as those of PYNATIVE: it has no address on the device."""
    return TensorRef(
        slot=slot,
        dtype=kind,
        shape=shape,
        device_dtype=kind,
        device_format=PLAIN,
        device_shape=shape,
        address=0,
        nbytes=flat.size,
        read=_Still(flat),
        origin=origin,
        name=name,
    )


def host_ref(content: tuple[Array, DType] | None, slot: int, name: str = "") -> TensorRef:
    """Return the reference to a constant that is not in device memory."""
    array, kind = content if content is not None else (_NOTHING, _BYTE)
    flat: Bytes = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    return bytes_ref(flat, kind, tuple(array.shape), slot, origin="none" if content is None else "constant", name=name)


class _Still:
    """The place of constant bytes."""

    __slots__ = ("_bytes", "version")

    def __init__(self, data: Bytes) -> None:
        self._bytes = data.view()
        self._bytes.flags.writeable = False
        self.version = 0

    def __call__(self) -> Bytes:
        return self._bytes


def _constant_refs(found: Sequence[ConstRef], first: int) -> Iterator[TensorRef]:
    """Yield references to numeric constants, named by their index in the compilation."""
    for number, constant in enumerate(found, first):
        content = host_array(constant.value, constant.abstract)
        if content is not None:
            yield host_ref(content, 0, f"data-{number}")


def _arguments(call: Call) -> dict[str, Any]:
    """Return host operands by the names in the operator's definition."""
    names = call.definition.operands
    return {
        name: argument.value
        for name, argument in zip(names, call.arguments, strict=False)
        if isinstance(argument, HostValue)
    }


def _flat(arguments: Sequence[Argument]) -> Iterator[Slot | HostValue]:
    for argument in arguments:
        if isinstance(argument, tuple):
            yield from _flat(argument)
        elif argument is not None:
            yield argument


def _reader(buffer: Buffer, nbytes: int) -> Callable[[], Bytes]:
    def read() -> Bytes:
        view = buffer.bytes()[:nbytes]
        view.flags.writeable = False
        return view

    return read
