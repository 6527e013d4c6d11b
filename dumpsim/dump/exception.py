"""The exception dump of CANN: a file for a kernel that the hardware stopped. [spec ge 2.9]

It needs no ``MINDSPORE_DUMP_CONFIG``. ::

    {root}/extra-info/data-dump/{device}/exception_info.{stream}.{task}.{YYYYMMDDHHMMSSmmm}      lite
    {root}/extra-info/data-dump/{device}/{op_type}.{op_name}.{task}.{YYYYMMDDHHMMSSmmm}          full

The kernel's object file, which the real one writes beside them, does not exist here.
"""

from collections.abc import Sequence
from dataclasses import replace

from dumpsim.archive.longname import bin_number, store
from dumpsim.archive.naming import exception_info_name, exception_name
from dumpsim.archive.sink import DiskFaults, Sink
from dumpsim.codecs.dumpdata import DumpData, Item, Space, header
from dumpsim.core.clock import Clock
from dumpsim.core.errors import DumpWriteError
from dumpsim.core.events import NO_GRAPH, GraphEvent, RunEvent, TaskEvent, TensorRef
from dumpsim.dump.info import Log
from dumpsim.dump.operatorfiles import describe
from dumpsim.dump.scene import Scene

__all__ = ["ExceptionDump"]


class ExceptionDump:
    """A `Tap` that writes a file when a kernel fails.

    Parameters
    ----------
    scene : Scene
    device_id : int
    clock : Clock
    log : callable
    disk : DiskFaults, optional
    durable : bool
        As of `Sink`.

    Attributes
    ----------
    written : list of str
        Paths of the files that were written.
    """

    def __init__(
        self,
        scene: Scene,
        *,
        device_id: int,
        clock: Clock,
        log: Log,
        disk: DiskFaults | None = None,
        durable: bool = False,
    ) -> None:
        self.scene = scene
        self.written: list[str] = []
        self._directory = f"{scene.root}/extra-info/data-dump/{device_id}"
        self._clock = clock
        self._log = log
        self._sink = Sink(disk=disk, durable=durable)

    def wants(self, event: TaskEvent | GraphEvent | RunEvent) -> bool:
        """Return whether an event may be a failure; of kernels outside of graphs, only failures are reported."""
        return isinstance(event, TaskEvent) and (event.graph_id != NO_GRAPH or event.error is not None)

    def graph_compiled(self, event: GraphEvent) -> None:
        """Do nothing; such events are not wanted."""

    def run_begin(self, event: RunEvent) -> None:
        """Do nothing; such events are not wanted."""

    def run_end(self, event: RunEvent) -> None:
        """Do nothing; such events are not wanted."""

    def before_task(self, event: TaskEvent) -> None:
        """Do nothing before a kernel."""

    def after_task(self, event: TaskEvent) -> None:
        """Save a kernel that failed; a failed write is only logged, since the run ends anyway."""
        if event.error is None:
            return
        stamp = self._clock.stamp_us()
        inputs = [ref for ref in event.operands if ref.origin != "none"]
        if self.scene.kind == "full":
            name = exception_name(event.op_type, event.full_name, event.task_id, stamp)
            data = _full(event, inputs, stamp)
        else:
            name = exception_info_name(event.stream_id, event.task_id, stamp)
            data = _lite(event, inputs, stamp)
        refs = [*inputs, *event.outputs, *event.workspaces]
        parts: list[bytes | memoryview] = [header(data), *(ref.read().data for ref in refs if ref.nbytes)]
        try:
            stored = store(self._sink, self._directory, name, parts, bin_number)
            self._sink.settle()
        except DumpWriteError as error:
            self._log("ERROR", "", str(error))
            return
        self.written.append(f"{self._directory}/{stored}")
        self._log("ERROR", "", f"exception dump of {event.full_name}: {self.written[-1]}")


def _full(event: TaskEvent, inputs: Sequence[TensorRef], stamp: int) -> DumpData:
    """Describe the operator with its shapes."""
    return DumpData(
        op_name=event.full_name,
        dump_time=stamp,
        inputs=tuple(describe(ref) for ref in inputs),
        outputs=tuple(describe(ref) for ref in event.outputs),
        spaces=tuple(Space(type=0, size=ref.nbytes) for ref in event.workspaces),
    )


def _lite(event: TaskEvent, inputs: Sequence[TensorRef], stamp: int) -> DumpData:
    """Describe the kernel's arguments by sizes and addresses, without types and names."""
    first = len(inputs)
    text = (
        f"device error {event.error_code}: kernel_name={event.full_name}, stream_id={event.stream_id}, "
        f"task_id={event.task_id}, arguments={first + len(event.outputs)}"
    )
    return DumpData(
        op_name="",
        dump_time=stamp,
        inputs=tuple(replace(_bare(ref, at), input_type=0) for at, ref in enumerate(inputs)),
        outputs=tuple(_bare(ref, first + at) for at, ref in enumerate(event.outputs)),
        spaces=tuple(Space(type=0, size=ref.nbytes) for ref in event.workspaces),
        dfx_message=text,
    )


def _bare(ref: TensorRef, at: int) -> Item:
    """Describe an argument without type and shape."""
    return Item(dtype=0, format=0, shape=(), size=ref.nbytes, address=ref.address, arg_index=at)
