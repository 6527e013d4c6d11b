"""What the runtime tells its listeners: references to tensors, and the events around graphs, runs and tasks."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from dumpsim.codecs.irproto import constants
from dumpsim.core.abstract import Abstract, ScalarType, TensorType, TupleType
from dumpsim.core.dtype import DType, dtype
from dumpsim.core.events import NO_GRAPH, GraphEvent, RunEvent, Tap, TaskEvent, TensorRef
from dumpsim.core.irdoc import ConstRef
from dumpsim.device.memory import Bytes
from dumpsim.device.task import UNKNOWN_TASK_ID, Task
from dumpsim.graph.graph import Node
from dumpsim.graph.program import KernelGraph
from dumpsim.runtime.buildinfo import with_build_info
from dumpsim.runtime.place import PLAIN, Array, Place
from dumpsim.runtime.plan import Argument, Call, GraphPlan, HostValue

__all__ = ["Observers", "bytes_ref", "host_array", "host_ref", "operand_refs", "place_ref"]

_NOTHING = np.zeros(0, np.uint8)
_BYTE = dtype("uint8")

Wanted = tuple[list[Tap], dict[str, Any]]  # the taps that want a task's event, and its fields


class Observers:
    """The taps of a session; an event's tensors are gathered only for taps that want it."""

    def __init__(self, rank: int) -> None:
        self.taps: list[Tap] = []
        self.rank = rank
        self.constants_told = 0
        self.compiled_root = -1

    def graph_compiled(
        self,
        kernel_graph: KernelGraph,
        kernels: Sequence[Node],
        plan: GraphPlan | None = None,
        *,
        model_name: str = "",
        model_id: int = 0,
    ) -> None:
        """Tell of a compiled kernel graph that runs these kernels; graphs of open shapes have no plan yet."""
        if not self.taps:
            return
        event = GraphEvent(
            # the document of a model is of the graph that GE was given
            doc=kernel_graph.doc if plan is None or model_id else with_build_info(kernel_graph.doc, plan.calls),
            graph_id=kernel_graph.graph_id,
            root_graph_id=kernel_graph.root_graph_id,
            is_root=kernel_graph.is_root,
            execution_order=tuple(node.ir_name for node in kernels),
            rank=self.rank,
            model_name=model_name,
            model_id=model_id,
        )
        wanting = [tap for tap in self.taps if tap.wants(event)]
        if wanting:
            if kernel_graph.root_graph_id != self.compiled_root:  # each compilation counts its constants anew
                self.compiled_root, self.constants_told = kernel_graph.root_graph_id, 0
            found = constants(kernel_graph.doc)
            refs = tuple(_constant_refs(found, self.constants_told))
            event = replace(event, constants=refs, first_constant=self.constants_told)
            self.constants_told += len(found)
            for tap in wanting:
                tap.graph_compiled(event)

    def run_begin(self, kernel_graph: KernelGraph, run_count: int, kind: str) -> None:
        """Tell that a root graph begins a run."""
        event = self._run(kernel_graph, run_count, kind)
        for tap in self.taps:
            if tap.wants(event):
                tap.run_begin(event)

    def run_end(self, kernel_graph: KernelGraph, plan: GraphPlan | None, run_count: int, kind: str) -> None:
        """Tell that a root graph has ended a run; its parameters are there to be read."""
        event = self._run(kernel_graph, run_count, kind)
        wanting = [tap for tap in self.taps if tap.wants(event)]
        if wanting:
            parameters = plan.parameters if plan is not None else ()
            refs = tuple(place_ref(place, slot) for slot, place in enumerate(parameters))
            event = replace(event, parameters=refs)
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
        self, plan: GraphPlan, call: Call, task: Task, defer: Callable[[Callable[[], None]], None] | None = None
    ) -> Wanted | None:
        """The taps that want the event of a task and its fields, None where none does."""
        if not self.taps:
            return None
        node = call.node
        fields: dict[str, Any] = {  # an event is made of them up to three times, which is cheaper than `replace`
            "op_type": node.op_type,
            "full_name": node.full_name,
            "graph_id": plan.kernel_graph.graph_id,
            "root_graph_id": plan.kernel_graph.root_graph_id,
            "operands": (),
            "outputs": (),
            "attrs": {**call.attrs, "dump": node.dump_mark} if node.dump_mark is not None else call.attrs,
            "task_id": task.task_id,
            "stream_id": task.stream_id,
            "time_ns": task.end_ns,
            "rank": self.rank,
            "model_name": plan.model_name,
            "model_id": plan.model_id,
            "original_names": _originals(node),
            "defer": defer,
        }
        event = TaskEvent(**fields)
        wanting = [tap for tap in self.taps if tap.wants(event)]
        if not wanting:
            return None
        return wanting, {**fields, **_tensors(plan, call), "arguments": _arguments(call)}

    def data(self, plan: GraphPlan, time_ns: int) -> None:
        """Tell of the inputs of a model: nodes of type Data, which no task runs, so that their ids are unknown."""
        for place in plan.parameters if self.taps else ():
            event = TaskEvent(
                op_type="Data",
                full_name=place.name,
                graph_id=plan.kernel_graph.graph_id,
                root_graph_id=plan.kernel_graph.root_graph_id,
                operands=(),
                outputs=(),
                task_id=UNKNOWN_TASK_ID,
                stream_id=UNKNOWN_TASK_ID,
                time_ns=time_ns,
                rank=self.rank,
                model_name=plan.model_name,
                model_id=plan.model_id,
            )
            wanting = [tap for tap in self.taps if tap.wants(event)]
            if wanting:
                event = replace(event, outputs=(place_ref(place, 0),))
                for tap in wanting:
                    tap.before_task(event)
                for tap in wanting:
                    tap.after_task(event)

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
        """Tell that the hardware stopped an operator that ran at once, in no graph."""
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

    def before(self, wanted: Wanted) -> None:
        """Tell that a kernel is about to run."""
        taps, fields = wanted
        event = TaskEvent(**fields)
        for tap in taps:
            tap.before_task(event)

    def after(self, wanted: Wanted, call: Call, plan: GraphPlan, **changes: Any) -> None:
        """Tell that a kernel has run; the versions of what it wrote are new."""
        taps, fields = wanted
        event = TaskEvent(**{**fields, **_tensors(plan, call), **changes})
        for tap in taps:
            tap.after_task(event)


def _tensors(plan: GraphPlan, call: Call) -> dict[str, Any]:
    """References to a call's tensors as they are now."""
    outputs = tuple(place_ref(output, output.slot) for output in call.outputs)
    return {"operands": _operands(plan, call), "outputs": outputs}


def _originals(node: Node) -> tuple[str, ...]:
    """Full names of what a node replaced: the members of a fused one, the whole of a part."""
    if node.members:
        return tuple(name for member in node.members for name in (_originals(member) or (member.full_name,)))
    return (node.original_name,) if node.original_name else ()


def place_ref(place: Place, slot: int, *, is_root: bool = True, is_own: bool = True) -> TensorRef:
    """The reference to a tensor in device memory."""
    buffer = place.memory()
    kind = place.root.kind
    origin = "device"
    if kind == "constant":
        origin = "constant"
    elif (kind == "input" and not is_root) or (kind == "weight" and not is_own):  # [observed 2.10]
        origin = "segment"
    return TensorRef(
        slot=slot,
        dtype=place.dtype,
        shape=place.shown_shape,
        device_dtype=place.device_dtype,
        device_format=place.device_format,
        device_shape=place.shown_shape if place.transparent or place.largest is not None else place.device_shape,
        address=buffer.address,
        nbytes=place.shown_nbytes,
        read=_reader(place),
        version=buffer.version,
        groups=place.groups,
        origin=origin,
        producer="" if kind == "constant" else place.name,
        name=place.name if kind in ("input", "weight") and not place.is_element else "",
    )


def _operands(plan: GraphPlan, call: Call) -> tuple[TensorRef, ...]:
    """References to a call's operands; numbers, texts and types are attributes in a model, not operands."""
    kept = list(enumerate(call.arguments))
    if plan.model_id:
        kept = [(at, a) for at, a in kept if not isinstance(a, HostValue) or isinstance(a.abstract, TupleType)]
    written = [number for number, (at, _) in enumerate(kept) if at in call.definition.updates]
    graph = plan.kernel_graph
    return operand_refs([a for _, a in kept], is_root=graph.is_root, is_own=graph.is_own, written=written)


def operand_refs(
    arguments: Sequence[Argument], *, is_root: bool = True, is_own: bool = True, written: Sequence[int] = ()
) -> tuple[TensorRef, ...]:
    """References to a kernel's operands; operands that are tuples of tensors take one slot per tensor.

    `written` are the arguments that the kernel writes.
    """
    refs: list[TensorRef] = []
    for at, argument in enumerate(arguments):
        for item in _flat((argument,)):
            slot = len(refs)
            if isinstance(item, Place):
                ref = place_ref(item, slot, is_root=is_root, is_own=is_own)
                refs.append(replace(ref, written=True) if at in written else ref)
            else:
                refs.append(host_ref(host_array(item.value, item.abstract), slot))
    return tuple(refs)


def host_array(value: Any, abstract: Abstract) -> tuple[Array, DType] | None:
    """A host constant as the array that a device would be given, None where it is no number.

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
    """The reference to a tensor that lies on the host, as those of PYNATIVE do: it has no address on the device."""
    return TensorRef(
        slot=slot,
        dtype=kind,
        shape=shape,
        device_dtype=kind,
        device_format=PLAIN,
        device_shape=shape,
        address=0,
        nbytes=flat.size,
        read=lambda: flat,
        origin=origin,
        name=name,
    )


def host_ref(content: tuple[Array, DType] | None, slot: int, name: str = "") -> TensorRef:
    """The reference to a constant that lies in no device memory."""
    array, kind = content if content is not None else (_NOTHING, _BYTE)
    flat: Bytes = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    return bytes_ref(flat, kind, tuple(array.shape), slot, origin="none" if content is None else "constant", name=name)


def _constant_refs(found: Sequence[ConstRef], first: int) -> Iterator[TensorRef]:
    """Constants that are numbers, named by their number in the compilation."""
    for number, constant in enumerate(found, first):
        content = host_array(constant.value, constant.abstract)
        if content is not None:
            yield host_ref(content, 0, f"data-{number}")


def _arguments(call: Call) -> dict[str, Any]:
    """Host operands by the name that the operator's definition gives them."""
    names = call.definition.operands
    return {
        name: argument.value
        for name, argument in zip(names, call.arguments, strict=False)
        if isinstance(argument, HostValue)
    }


def _flat(arguments: Sequence[Argument]) -> Iterator[Place | HostValue]:
    for argument in arguments:
        if isinstance(argument, tuple):
            yield from _flat(argument)
        elif argument is not None:
            yield argument


def _reader(place: Place) -> Callable[[], Bytes]:
    buffer = place.memory()
    memory, address, nbytes = buffer.memory, buffer.address, place.shown_nbytes

    def read() -> Bytes:
        view = memory.view(address, nbytes)
        view.flags.writeable = False
        return view

    return read
