"""Streams: queues of tasks that run in order."""

from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING

from dumpsim.core.errors import DeviceError
from dumpsim.device.event import Event, EventGate
from dumpsim.device.task import Task, TaskIds, TaskKind

if TYPE_CHECKING:
    from dumpsim.device.device import Device

__all__ = ["Stream"]


class Stream:
    """A queue of tasks; tasks of one stream run in order, streams are ordered by events only.

    Streams are made by `Device.stream`. A task that fails stops its stream: what is queued behind it is dropped, and
    the error is seen at the next synchronisation. [spec parallel 4.5]
    """

    __slots__ = ("device", "dropped", "error", "ids", "stream_id", "tail_ns", "tasks")

    def __init__(self, device: "Device", stream_id: int) -> None:
        self.device = device
        self.stream_id = stream_id
        self.tasks: deque[Task] = deque()
        self.ids = TaskIds()
        self.tail_ns = 0
        self.error: DeviceError | None = None
        self.dropped = 0

    def launch(self, task: Task, ids: TaskIds | None = None) -> Task:
        """Put a task behind the others; it takes the next task id of the stream, or of `ids` (a model's).

        Raises
        ------
        DeviceError
            Where the stream has stopped.
        """
        device = self.device
        if self.error is not None:
            raise self.error
        task.stream_id = self.stream_id
        task.task_id, task.flip = (self.ids if ids is None else ids).take()
        task.serial = device.next_serial()
        device.clock.advance(device.chip.prices.host_ns)
        task.launched_ns = device.clock.now_ns
        self.tasks.append(task)
        return task

    def follow(self, tasks: Sequence[Task]) -> None:
        """Put tasks in front of the others: behind the one that runs now. They take ids of the stream, never a model's.

        This is how the work of a running kernel, such as its asynchronous dump, has more work done on its stream.

        Raises
        ------
        DeviceError
            Where the stream has stopped.
        """
        if self.error is not None:
            raise self.error
        for task in tasks:
            task.stream_id = self.stream_id
            task.task_id, task.flip = self.ids.take()
            task.serial = self.device.next_serial()
            task.launched_ns = self.device.clock.now_ns
        self.tasks.extendleft(reversed(tasks))

    def record(self, event: Event, ids: TaskIds | None = None) -> Task:
        """Record an event behind everything that was launched so far."""
        event.launched += 1
        task = Task(kind=TaskKind.EVENT_RECORD, name=f"record event {event.event_id}")
        task.work = lambda done: event.record(done.end_ns)
        self.launch(task, ids)
        event.source = f"task {task.task_id} of {self.describe()}"
        return task

    def wait(self, event: Event, ids: TaskIds | None = None) -> Task:
        """Let later tasks wait for the event's last record, or for its first one where there is none yet."""
        gate = EventGate(event=event, count=max(1, event.launched))
        return self.launch(Task(kind=TaskKind.EVENT_WAIT, name=f"wait for event {event.event_id}", gate=gate), ids)

    def ready_ns(self) -> int | None:
        """When the first task could start, None where there is none or it has to wait."""
        if not self.tasks:
            return None
        task = self.tasks[0]
        start = max(self.tail_ns, task.launched_ns)
        if task.gate is not None:
            opened = task.gate.open_ns()
            if opened is None:
                return None
            start = max(start, opened)
        return start

    def step(self, start_ns: int) -> None:
        """Run the first task; a failing one stops the stream."""
        task = self.tasks.popleft()
        clock = self.device.clock
        task.start_ns = start_ns
        task.end_ns = self.tail_ns = start_ns + task.cost_ns
        if task.end_ns > clock.now_ns:
            clock.advance(task.end_ns - clock.now_ns)
            task.end_ns = self.tail_ns = min(task.end_ns, clock.now_ns)  # a wall clock does not jump
        if task.work is None:
            return
        before = clock.now_ns
        try:
            task.work(task)
        except TaskFailure as failure:
            self.error = failure.error
            self.drop()
        except BaseException:
            self.drop()
            raise
        # what the work itself took, such as the copies and files of a synchronous dump, delays the stream
        self.tail_ns += clock.now_ns - before

    def drop(self) -> None:
        """Forget the tasks that wait."""
        self.dropped += len(self.tasks)
        self.tasks.clear()

    def describe(self) -> str:
        """Rank, device and stream for messages."""
        return f"rank {self.device.rank} device {self.device.device_id} stream {self.stream_id}"


class TaskFailure(Exception):
    """Raised by the work of a task that the hardware cannot finish; holds the error of the next synchronisation."""

    def __init__(self, error: DeviceError) -> None:
        super().__init__(str(error))
        self.error = error
