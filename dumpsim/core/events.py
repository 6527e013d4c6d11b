"""What the emulated machine tells to whoever listens: the Tap protocol and its events.

The runtime raises events, `dump` listens. Neither knows the other.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from dumpsim.core.dtype import DType
from dumpsim.core.irdoc import IrDoc

if TYPE_CHECKING:
    import numpy as np

__all__ = ["GraphEvent", "RunEvent", "Tap", "TaskEvent", "TensorRef"]


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
        Grows with every write to the buffer, so that a converted copy can be kept per version.
    origin : str
        ``device``, ``constant``, ``segment`` (input handed over by a control-flow segment) or ``none`` (no address, as
        for an empty tuple).
    producer : str
        Full name of the producing node, parameter name, or "".
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


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphEvent:
    """A kernel graph was compiled; `first_constant` is the number of constants of its compilation before its own."""

    doc: IrDoc
    graph_id: int
    root_graph_id: int
    is_root: bool
    execution_order: tuple[str, ...]
    constants: tuple[TensorRef, ...] = ()
    first_constant: int = 0
    rank: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEvent:
    """A root graph begins or ends one run; `parameters` are its graph inputs in order (filled at the end)."""

    root_graph_id: int
    graph_id: int
    run_count: int  # runs of this root graph finished so far
    rank: int = 0
    kind: str = "train"  # "dataset" for the graph of a data sink
    parameters: tuple[TensorRef, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskEvent:
    """A kernel is about to run, or has run."""

    op_type: str
    full_name: str  # the name in files and `kernels`
    graph_id: int
    root_graph_id: int
    operands: tuple[TensorRef, ...]
    outputs: tuple[TensorRef, ...]
    attrs: Mapping[str, Any] = field(default_factory=dict)
    arguments: Mapping[str, Any] = field(default_factory=dict)  # init arguments by name, for save_kernel_args
    task_id: int = 0
    stream_id: int = 0
    time_ns: int = 0
    rank: int = 0
    error: str | None = None  # text of an AI Core error
    overflow: bool = False  # the device raised its overflow flag in this task


class Tap(Protocol):
    """A listener; every method is called on the thread that runs the device."""

    def graph_compiled(self, event: GraphEvent) -> None: ...
    def run_begin(self, event: RunEvent) -> None: ...
    def run_end(self, event: RunEvent) -> None: ...
    def before_task(self, event: TaskEvent) -> None: ...
    def after_task(self, event: TaskEvent) -> None: ...
    def wants(self, event: "TaskEvent | GraphEvent | RunEvent") -> bool:
        """Cheap question before operands are gathered; False makes the idle path free."""
        ...
