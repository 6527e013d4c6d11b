"""Streams: queues of tasks that run in order."""

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from dumpsim.core.clock import Clock
from dumpsim.core.errors import CollectiveError, DeviceError, PeerError
from dumpsim.core.gate import Failure
from dumpsim.device.chip import Chip
from dumpsim.device.event import Event, EventGate
from dumpsim.device.races import Races
from dumpsim.device.task import Task, TaskIds, TaskKind

__all__ = ["Owner", "Stream", "TaskFailure"]


class Owner(Protocol):
    """A device, as its streams and the scheduler see it."""

    rank: int
    device_id: int
    number: int  # in order of creation
    chip: Chip
    clock: Clock
    streams: "list[Stream]"
    busy: int  # streams with tasks
    suspended: bool  # its rank waits, and other ranks run
    errors: list[BaseException]  # of tasks, to be raised by the rank's next wait
    stopped: Failure | None  # why a stream refuses further work
    raised: BaseException | None  # the error that stopped a stream, once a wait has raised it
    next_serial: Callable[[], int]  # the number of its next task
    trace: Callable[[Task], None] | None  # called with every finished task
    races: Races | None  # the detector of races, if it is on
    schedule: "Callable[[Stream], None]"  # called when the first task of a stream is new, or may have become ready

    def fail(self, failure: Failure) -> None:
        """Notify the device that a stream has dropped its tasks."""
        ...

    def synchronize(self) -> None:
        """Wait until all streams are empty."""
        ...


class Stream:
    """A queue of tasks; tasks of one stream run in order, streams are ordered by events only.

    Streams are created by `Device.stream`. A task that fails stops its stream: the tasks queued after it are dropped,
    and the error is raised at the next synchronisation. [spec parallel 4.5]

    Attributes
    ----------
    tail_ns : int
        When the last task ended.
    error : DeviceError or None
        Why the stream has stopped.
    dropped : int
        Number of dropped tasks.
    order : int
        Orders the streams of all devices by rank, device and stream.
    busy : bool
        Whether there are tasks, or one is running.
    entry : tuple or None
        The stream's valid entry in the scheduler's heap; all others are stale.
    """

    __slots__ = (
        "_entered",
        "busy",
        "clock",
        "device",
        "dropped",
        "entry",
        "error",
        "ids",
        "number",
        "order",
        "stream_id",
        "tail_ns",
        "tasks",
    )

    def __init__(self, device: Owner, stream_id: int) -> None:
        self.device = device
        self.clock = device.clock
        self.number = device.number
        self.stream_id = stream_id
        self.tasks: deque[Task] = deque()
        self.ids = TaskIds()
        self.tail_ns = 0
        self.busy = False
        self.error: DeviceError | None = None
        self.dropped = 0
        self.order = (device.rank << 48) + (device.device_id << 16) + stream_id
        self.entry: tuple[Any, ...] | None = None
        self._entered: Task | None = None  # the task that has entered its gate

    def launch(self, task: Task, ids: TaskIds | None = None) -> Task:
        """Append a task; it takes the next task id of the stream, or of `ids` (a model's).

        Raises
        ------
        DeviceError
            If the stream has stopped.
        """
        device = self.device
        if self.error is not None:
            raise self.error
        task.stream_id = self.stream_id
        task.task_id, task.flip = (self.ids if ids is None else ids).take()
        task.serial = device.next_serial()
        clock = self.clock
        clock.advance(device.chip.prices.host_ns)
        task.launched_ns = clock.now_ns
        if device.races is not None:
            device.races.launched(task)
        self.tasks.append(task)
        if not self.busy:
            self.busy = True
            device.busy += 1
            device.schedule(self)
        return task

    def follow(self, tasks: Sequence[Task]) -> None:
        """Insert tasks right after the running one. They take ids of the stream, never those of a model.

        A running kernel queues more work on its stream in this way, such as its asynchronous dump.
        """
        for task in tasks:
            task.stream_id = self.stream_id
            task.task_id, task.flip = self.ids.take()
            task.serial = self.device.next_serial()
            task.launched_ns = self.clock.now_ns
        self.tasks.extendleft(reversed(tasks))

    def record(self, event: Event, ids: TaskIds | None = None) -> Task:
        """Record an event after all tasks launched so far."""
        event.launched += 1
        task = Task(kind=TaskKind.EVENT_RECORD, name=f"record event {event.event_id}", event=event)
        self.launch(task, ids)
        event.source = f"task {task.task_id} of {self.describe()}"
        return task

    def wait(self, event: Event, ids: TaskIds | None = None) -> Task:
        """Let later tasks wait for the event's last record, or for its first one if there is none yet."""
        gate = EventGate(event=event, count=max(1, event.launched))
        return self.launch(Task(kind=TaskKind.EVENT_WAIT, name=f"wait for event {event.event_id}", gate=gate), ids)

    def ready_ns(self) -> int | None:
        """Return when the first task can start, None if there is no task or its gate is closed; enter the gate."""
        if not self.tasks:
            return None
        task = self.tasks[0]
        start = max(task.launched_ns, self.tail_ns)
        gate = task.gate
        if gate is not None:
            if self._entered is not task:
                self._entered = task
                gate.enter(self, start)
            opened = gate.open_ns()
            if opened is None:
                return None
            start = max(start, opened)
        return start

    def wake(self) -> None:
        """Schedule the stream again, because the gate of the first task has opened or failed."""
        self.device.schedule(self)

    def step(self, start_ns: int) -> None:
        """Run the first task; if it fails, the stream stops."""
        task = self.tasks[0]
        gate = task.gate
        if gate is not None and (failure := gate.failure) is not None:
            self.fail_with(failure)
            return
        self.tasks.popleft()
        clock = self.clock
        task.start_ns = start_ns
        end = start_ns + task.cost_ns
        clock.advance(max(0, end - clock.now_ns))
        task.end_ns = self.tail_ns = min(end, clock.now_ns)  # a wall clock does not jump
        races = self.device.races
        if task.work is not None or races is not None:
            before = clock.now_ns
            try:
                if races is not None and (hazard := races.run(task)) is not None:
                    raise TaskFailure(hazard)
                if task.work is not None:
                    task.work(task)
            except TaskFailure as stopped:
                self.error = stopped.error
                self.drop(Failure(rank=self.device.rank, time_ns=self.tail_ns, error=stopped.error))
            except BaseException as error:
                self.drop(Failure(rank=self.device.rank, time_ns=self.tail_ns, error=error, lasting=False))
                raise
            # the time that the work itself took, such as the copies and files of a synchronous dump, delays the stream
            self.tail_ns += clock.now_ns - before
        if task.event is not None:
            task.event.record(task.end_ns)
        if gate is not None:
            gate.leave(task.end_ns)
        if (trace := self.device.trace) is not None:
            trace(task)

    def drop(self, failure: Failure) -> None:
        """Drop the queued tasks; all tasks that wait for them fail."""
        tasks = tuple(self.tasks)
        self.tasks.clear()
        self.dropped += len(tasks)
        for task in tasks:
            if task.event is not None:
                task.event.fail(failure)
            if task.gate is not None:
                task.gate.abandon(failure)
        self.device.fail(failure)

    def fail_with(self, failure: Failure) -> None:
        """Stop, because the gate of the first task has failed."""
        task = self.tasks[0]
        if isinstance(failure.error, CollectiveError):  # its message is specific to this member
            self.error = failure.error
        elif failure.rank != self.device.rank:
            self.error = PeerError(
                f"{task.name} waited for rank {failure.rank}, which has failed: {failure.error}",
                rank=failure.rank,
                where=self.describe(),
            )
            self.error.__cause__ = failure.error
        elif failure.lasting and isinstance(failure.error, DeviceError):
            failure.error.add_note(f"streams that waited for it:\n{self.waits()}")
            self.error = failure.error
        else:
            error = DeviceError(
                f"{task.name} waited for a task that was dropped: {failure.error}", where=self.describe()
            )
            error.__cause__ = failure.error
            self.device.errors.append(error)
        self.drop(failure)

    def waits(self) -> str:
        """Return a line of the deadlock report: what the first task waits for."""
        return f"  {self.describe()}: {self.waits_for()}"

    def waits_for(self) -> str:
        """Return what the first task waits for."""
        task = self.tasks[0]
        missing = task.gate.waits_for() if task.gate is not None else "nothing"
        return (
            f"task {task.task_id} ({task.kind}, {task.name}) waits for {missing}; "
            f"{len(self.tasks) - 1} tasks queued after it"
        )

    def describe(self) -> str:
        """Return rank, device and stream for messages."""
        return f"rank {self.device.rank} device {self.device.device_id} stream {self.stream_id}"


class TaskFailure(Exception):
    """Raised by the work of a task that the hardware cannot finish; `error` is raised at the next synchronisation."""

    def __init__(self, error: DeviceError) -> None:
        super().__init__(str(error))
        self.error = error
