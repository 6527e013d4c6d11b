"""What the emulated machine reports to listeners: the Tap protocol and its events.

The runtime raises events, `dump` listens. Neither knows the other.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, cast

from dumpsim.core.dtype import DType
from dumpsim.core.irdoc import IrDoc

if TYPE_CHECKING:
    import numpy as np

NO_GRAPH = -1  # graph id of an operator that runs outside a graph

__all__ = [
    "NO_GRAPH",
    "Follower",
    "GraphEvent",
    "NodeOutputs",
    "PlannedGraph",
    "Reader",
    "RunEvent",
    "Step",
    "Tap",
    "TaskEvent",
    "TensorRef",
    "current",
    "reader_of",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorRef:
    """Where a tensor's bytes are, and what they mean.

    Attributes
    ----------
    slot : int
        Operand index in the node, or output index.
    dtype, shape : host number type and host shape
    device_dtype, device_format, device_shape : the layout of the bytes in device memory
    groups : int
        Groups of a grouped FRACTAL_Z weight.
    address, nbytes : int
        Device address and logical size; address 0 for host constants.
    read : callable
        Returns the bytes as a one-dimensional uint8 array that views memory; valid only during the event.
    version : int
        Grows with every write to the buffer, so that converted copies can be cached per version.
    origin : str
        ``device``, ``constant``, ``segment`` (input passed by a control-flow segment), ``freed`` (its memory is no
        longer in use, by the vendor's reference count) or ``none`` (no address, as for an empty tuple).
    written : bool
        An operand that the kernel writes.
    producer : str
        Full name of the producing node, parameter name, or "".
    is_weight : bool
        A Parameter of the network, which has memory of its own from run to run.
    """

    slot: int
    dtype: DType
    shape: tuple[int, ...]
    device_dtype: DType
    device_format: str
    device_shape: tuple[int, ...]
    address: int
    nbytes: int
    read: "Callable[[], np.ndarray[Any, Any]]"
    version: int = 0
    groups: int = 1
    origin: str = "device"
    producer: str = ""
    name: str = ""  # parameter name for graph inputs
    written: bool = False
    is_weight: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphEvent:
    """A kernel graph was compiled.

    `first_constant` is the number of constants that other graphs of the same compilation have before this one.
    `lost_marks` contains pairs of names: an operator chosen by ``set_dump``, and the fused node that replaced it, which
    has no mark. For a model, `readers` maps each input to the operators that read it, `originals` each fused operator
    to those that it replaced; `static` is true if all shapes are known before the model runs.
    """

    doc: IrDoc | None  # None where the compiler makes no IR text
    graph_id: int
    root_graph_id: int
    is_root: bool
    execution_order: tuple[str, ...]
    constants: tuple[TensorRef, ...] = ()
    first_constant: int = 0
    lost_marks: tuple[tuple[str, str], ...] = ()
    rank: int = 0
    model_name: str = ""  # the model that a whole graph was loaded as (O2)
    model_id: int = 0
    readers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    originals: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    static: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeOutputs:
    """The outputs of a node while another one runs, as they are in device memory at that time.

    Attributes
    ----------
    op_type, full_name : str
    outputs : tuple of TensorRef
        Their bytes are read from where the plan has put the outputs, even if another operator has overwritten them.
    ran : bool
        The node has run in this run.
    alive : tuple of bool
        For each output, whether its memory still belongs to it, because a later kernel needs it.
    owners : tuple of tuple of str
        For each output, the other tensors that now occupy a part of its memory, as ``name:slot``.
    """

    op_type: str
    full_name: str
    outputs: tuple[TensorRef, ...]
    ran: bool
    alive: tuple[bool, ...]
    owners: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEvent:
    """A root graph begins or ends one run.

    `parameters` is set at the end of the run. For each graph that is a segment of the network's main function, by graph
    id, it contains the inputs that have memory of their own.
    """

    root_graph_id: int
    graph_id: int
    run_count: int  # runs of this root graph finished so far
    rank: int = 0
    kind: str = "train"  # "dataset" for the graph of a data sink
    parameters: Mapping[int, tuple[TensorRef, ...]] = field(default_factory=dict)
    model_name: str = ""
    model_id: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskEvent:
    """A kernel is about to run, or has run.

    Attributes
    ----------
    op_type, full_name : str
        The name as files and `kernels` show it; in whole graphs (O2) the node name of the model.
    graph_id, root_graph_id : int
        `NO_GRAPH` for an operator of dynamic graph mode, which is reported only if it failed.
    model_name, model_id : the loaded model, where graphs run whole; "" and 0 elsewhere
    original_names : tuple of str
        Full names of the operators that a fused one replaced.
    operands, outputs, workspaces : tuple of TensorRef
    attrs : mapping
    arguments : mapping
        Init arguments by name, for `save_kernel_args`.
    task_id, stream_id, time_ns, rank : int
    flops : int
        Operations of the kernel.
    error : str or None
        Text of the device error that this task ended with; `error_code` is its number.
    overflow : bool
        The device raised its overflow flag in this task; `overflow_status` holds the AI Core status bits.
    defer : callable or None
        Queues work on the kernel's stream, after the kernel; the tensors of the event stay alive until it has run. None
        if the target has no such tasks: the work is then done immediately.
    outputs_of : callable or None
        ``outputs_of(full_name)`` returns the outputs of a node of the same graph as they are in memory now, None for an
        unknown name; valid only during the event. None in graphs whose shapes are known only at run time.
    """

    op_type: str
    full_name: str
    graph_id: int
    root_graph_id: int
    operands: tuple[TensorRef, ...]
    outputs: tuple[TensorRef, ...]
    attrs: Mapping[str, Any] = field(default_factory=dict)
    arguments: Mapping[str, Any] = field(default_factory=dict)
    task_id: int = 0
    stream_id: int = 0
    time_ns: int = 0
    flops: int = 0
    rank: int = 0
    error: str | None = None
    error_code: int = 0
    overflow: bool = False
    overflow_status: int = 0
    model_name: str = ""
    model_id: int = 0
    original_names: tuple[str, ...] = ()
    workspaces: tuple[TensorRef, ...] = ()
    defer: "Callable[[Callable[[], None]], None] | None" = None
    outputs_of: "Callable[[str], NodeOutputs | None] | None" = None


class Tap(Protocol):
    """A listener; every method is called on the thread that runs the device."""

    def graph_compiled(self, event: GraphEvent) -> None: ...
    def run_begin(self, event: RunEvent) -> None: ...
    def run_end(self, event: RunEvent) -> None: ...
    def before_task(self, event: TaskEvent) -> None: ...
    def after_task(self, event: TaskEvent) -> None: ...
    def wants(self, event: "TaskEvent | GraphEvent | RunEvent") -> bool:
        """Whether the tap wants the event; asked before operands are gathered, so that unwanted events cost nothing."""
        ...


class Reader(Protocol):
    """Reads a tensor of a planned graph: returns its current bytes in every run."""

    @property
    def version(self) -> int:
        """The version of the current bytes, see `TensorRef.version`."""
        ...

    def __call__(self) -> "np.ndarray[Any, Any]":
        """Return the bytes."""
        ...


def reader_of(ref: TensorRef) -> Reader:
    """Return the reader of a tensor of a planned event."""
    return cast("Reader", ref.read)


def current(refs: Sequence[TensorRef]) -> tuple[TensorRef, ...]:
    """Return the tensors of a planned event with their current versions."""
    return tuple(replace(ref, version=reader_of(ref).version) for ref in refs)


Step = Callable[[int, int], None]  # called with a task's number and the time on the device's clock


class Follower(NamedTuple):
    """Callbacks of a tap for one task, called each time it runs.

    Attributes
    ----------
    before, after : callable or None
        Called right before and right after the task's kernel.
    """

    before: Step | None
    after: Step | None


class PlannedGraph(Protocol):
    """What a tap does in the runs of a graph whose tasks are the same in every run.

    A tap may have a method ``plan(events)``. It is called with the events that `Tap.after_task` would get, with a
    `Reader` as the `read` of each tensor, and returns a `PlannedGraph`, or None if the tap needs the events of every
    run. Task numbers and times are those of one run. If a task overflows or fails, `Tap.after_task` is called instead
    of `Follower.after`.
    """

    def begin(self) -> Sequence[Follower | None] | None:
        """Return the followers of the tasks for the run that has just begun, None to plan again.

        An empty sequence means that the tap does nothing in this run.
        """
        ...
