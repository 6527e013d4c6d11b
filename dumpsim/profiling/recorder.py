"""The recorder of a session's tasks and runs."""

from collections.abc import Mapping, Sequence
from typing import Any

from dumpsim.core.events import NO_GRAPH, GraphEvent, RunEvent, TaskEvent, TensorRef
from dumpsim.device.task import Task
from dumpsim.profiling.record import KERNELS, Iteration, Operand, Profile, Step, TaskRecord
from dumpsim.runtime.session import Session

__all__ = ["Recorder"]

_BACKWARD = "Gradients/"


class Recorder:
    """A listener of a session that keeps one record per task.

    Parameters
    ----------
    fp_point, bp_point : str
        Full names of the operators where the forward pass starts and the backward pass ends. By default the forward
        pass starts with the first kernel of a run and the backward pass ends with the last one below ``Gradients/``;
        a run without such a kernel has neither.
    """

    def __init__(self, fp_point: str = "", bp_point: str = "") -> None:
        self.fp_point, self.bp_point = fp_point, bp_point
        self._session: Session | None = None
        self._tasks: list[TaskRecord] = []
        self._iterations: list[Iteration] = []
        self._steps: list[Step] = []
        self._runs: dict[int, int] = {}
        self._ends: dict[int, int] = {}
        self._first_task: int | None = None  # index of the run's first task while a root graph runs
        self._events: dict[tuple[int, int], Mapping[str, Any]] = {}  # events of running kernels, by stream and task
        self._step_start: int | None = None
        self._step_waits = False
        self._start_ns: int

    @property
    def is_on(self) -> bool:
        """Whether the recorder is on."""
        return self._session is not None

    def start(self, session: Session) -> None:
        """Start to record."""
        self._session = session
        self._start_ns = session.clock.now_ns
        if self._step_waits:
            self._step_start = self._start_ns
        session.add_tap(self)
        session.trace_tasks(self._trace)

    def stop(self) -> Profile:
        """Stop, and return the records since the start; they are dropped here."""
        session = self._session
        assert session is not None
        session.remove_tap(self)
        session.trace_tasks(None)
        self._session = None
        chip = session.chip
        profile = Profile(
            chip=chip.name,
            target=session.target,
            rank=session.rank,
            device_id=session.device_id,
            start_ns=self._start_ns,
            end_ns=session.clock.now_ns,
            launch_ns=chip.prices.launch_ns,
            bandwidth=chip.prices.bandwidth,
            matrix_flops=chip.prices.flops,
            tasks=tuple(self._tasks),
            iterations=tuple(self._iterations),
            steps=tuple(self._steps),
            cube_ops=frozenset(chip.cube_ops),
        )
        self._tasks, self._iterations, self._steps = [], [], []
        self._events.clear()
        self._first_task, self._step_start, self._step_waits = None, None, False
        return profile

    def begin_step(self) -> None:
        """Begin a step of the script; without a session yet, the step begins when the session does."""
        self._step_waits = self._session is None
        self._step_start = None if self._session is None else self._session.clock.now_ns

    def end_step(self, number: int) -> None:
        """End the step that the script began."""
        if self._session is not None and self._step_start is not None:
            self._steps.append(Step(number, self._step_start, self._session.clock.now_ns))
            self._step_start = None

    # --------------------------------------------------------------- events
    def wants(self, event: TaskEvent | GraphEvent | RunEvent) -> bool:
        if isinstance(event, TaskEvent) and event.graph_id == NO_GRAPH:
            return event.error is not None  # the task itself reports an operator that runs at once
        return not isinstance(event, GraphEvent)

    def graph_compiled(self, event: GraphEvent) -> None:
        """Ignore the event: graphs are not part of a profile."""

    def run_begin(self, event: RunEvent) -> None:
        if event.kind != "train":
            return
        model = event.model_id if event.model_name else event.root_graph_id
        number = self._runs[model] = self._runs.get(model, 0) + 1
        self._iterations.append(Iteration(model_id=model, number=number, previous_end_ns=self._ends.get(model)))
        self._first_task = len(self._tasks)

    def run_end(self, event: RunEvent) -> None:
        if event.kind != "train" or self._first_task is None:
            return
        iteration, tasks = self._iterations[-1], self._tasks[self._first_task :]
        self._first_task = None
        if tasks:
            iteration.first_ns = min(task.start_ns for task in tasks)
            iteration.end_ns = self._ends[iteration.model_id] = max(task.end_ns for task in tasks)
        iteration.fp_start_ns, iteration.bp_end_ns = self._points([task for task in tasks if task.is_kernel])

    def _points(self, kernels: Sequence[TaskRecord]) -> tuple[int | None, int | None]:
        """Return the start of the forward pass and the end of the backward pass."""
        backward = [task.end_ns for task in kernels if task.name.startswith(_BACKWARD)]
        if self.fp_point:
            starts = [task.start_ns for task in kernels if task.name == self.fp_point]
        else:
            starts = [task.start_ns for task in kernels] if backward or self.bp_point else []
        ends = [task.end_ns for task in kernels if task.name == self.bp_point] if self.bp_point else backward
        return min(starts, default=None), max(ends, default=None)

    def before_task(self, event: TaskEvent) -> None:
        details = {
            "op_type": event.op_type,
            "model_id": event.model_id if event.model_name else event.root_graph_id,
            "inputs": tuple(_operand(ref) for ref in event.operands if ref.address),  # numbers are attributes
            "outputs": tuple(map(_operand, event.outputs)),
            "flops": event.flops,
        }
        self._events[event.stream_id, event.task_id] = details

    def after_task(self, event: TaskEvent) -> None:
        """Ignore the event: the task itself reports its end."""

    def _trace(self, task: Task) -> None:
        """Add the record of a task that has run."""
        kind = task.kind.value
        details: Mapping[str, Any] = {"op_type": task.name.rpartition("/")[2] if kind in KERNELS else ""}
        if kind in KERNELS:  # a collective is announced before other tasks that run until all ranks are there
            details = self._events.pop((task.stream_id, task.task_id), details)
        self._tasks.append(
            TaskRecord(
                name=task.name,
                kind=kind,
                stream_id=task.stream_id,
                task_id=task.task_id,
                serial=task.serial,
                launched_ns=task.launched_ns,
                start_ns=task.start_ns,
                end_ns=task.end_ns,
                iteration=-1 if self._first_task is None else len(self._iterations) - 1,
                **details,
            )
        )


def _operand(ref: TensorRef) -> Operand:
    return Operand(ref.device_shape, ref.device_dtype.name, ref.device_format, ref.nbytes)
