"""A device: one chip with its memory, streams, events, clock and overflow register."""

import os
from collections.abc import Callable, Mapping, Sequence
from itertools import count

from dumpsim.core.clock import Clock, VirtualClock
from dumpsim.core.errors import DeviceError
from dumpsim.core.gate import Failure
from dumpsim.device.chip import Chip
from dumpsim.device.event import Event
from dumpsim.device.memory import Memory
from dumpsim.device.overflow import StatusRegister, overflow_mode
from dumpsim.device.queue import HostQueues
from dumpsim.device.races import Races
from dumpsim.device.scheduler import Scheduler
from dumpsim.device.stream import Stream
from dumpsim.device.task import Task

__all__ = ["COMPUTE_STREAM", "Device"]

COMPUTE_STREAM = 0  # [spec parallel 4.1: 0 compute, 1 communication, then one per group, last dump]


class Device:
    """One emulated chip.

    Parameters
    ----------
    chip : Chip
    device_id, rank : int
    clock : Clock, optional
        The rank's clock, by default a virtual one.
    scheduler : Scheduler, optional
        Shared by devices that wait for each other, by default its own.
    environment : mapping, optional
        Environment variables, which set the overflow mode; by default those of the process.
    memory : Memory, optional
        By default one of the chip's size.
    queues : HostQueues, optional
        Queues from kernels to the host, by default queues of its own.

    Attributes
    ----------
    errors : list of BaseException
        Exceptions raised in tasks, mostly by listeners; each is raised again by one of the next synchronisations.
    stopped : Failure or None
        The first failure after which a stream refuses further work.
    trace : callable or None
        Called with every finished task, for a profiler.
    races : Races or None
        Detects unordered accesses of several streams to the same memory.

    Examples
    --------
    >>> from dumpsim.device.chip import chip
    >>> from dumpsim.device.task import Task, TaskKind
    >>> device = Device(chip("910B"))
    >>> done = []
    >>> task = device.stream(0).launch(Task(kind=TaskKind.AICORE, name="Default/Add-op0", work=done.append))
    >>> len(done)
    0
    >>> device.synchronize()
    >>> done[0].name, done[0].task_id
    ('Default/Add-op0', 0)
    """

    __slots__ = (
        "__weakref__",
        "_events",
        "busy",
        "chip",
        "clock",
        "device_id",
        "errors",
        "memory",
        "next_serial",
        "number",
        "overflow",
        "queues",
        "races",
        "raised",
        "rank",
        "schedule",
        "scheduler",
        "status",
        "stopped",
        "streams",
        "suspended",
        "trace",
    )

    def __init__(
        self,
        chip: Chip,
        *,
        device_id: int = 0,
        rank: int = 0,
        clock: Clock | None = None,
        scheduler: Scheduler | None = None,
        environment: Mapping[str, str] | None = None,
        memory: Memory | None = None,
        queues: HostQueues | None = None,
    ) -> None:
        self.chip = chip
        self.device_id = device_id
        self.rank = rank
        self.clock: Clock = VirtualClock() if clock is None else clock
        self.memory = Memory(chip.memory, device_id=device_id) if memory is None else memory
        environment = os.environ if environment is None else environment
        self.overflow = overflow_mode(chip, environment)
        self.queues = HostQueues(environment, self.clock.advance) if queues is None else queues
        self.status = StatusRegister()
        self.streams: list[Stream] = []
        self.scheduler = Scheduler() if scheduler is None else scheduler
        self.schedule: Callable[[Stream], None] = self.scheduler.schedule
        self.number = self.scheduler.add(self)
        self.busy = 0
        self.suspended = False
        self.errors: list[BaseException] = []
        self.stopped: Failure | None = None
        self.raised: BaseException | None = None  # the error that stopped the device, once a wait has raised it
        self.trace: Callable[[Task], None] | None = None
        self.races: Races | None = None
        self._events = 0
        self.next_serial: Callable[[], int] = count().__next__

    def stream(self, stream_id: int = COMPUTE_STREAM) -> Stream:
        """Return the stream of that number; streams with lower numbers are created too.

        Raises
        ------
        DeviceError
            If the chip does not have that many streams.
        """
        if not 0 <= stream_id < self.chip.streams:
            raise DeviceError(
                f"stream {stream_id} does not exist on a {self.chip.name}", allowed=[f"0 to {self.chip.streams - 1}"]
            )
        while len(self.streams) <= stream_id:
            self.streams.append(Stream(self, len(self.streams)))
        return self.streams[stream_id]

    def event(self) -> Event:
        """Return a new event."""
        self._events += 1
        return Event(event_id=self._events - 1)

    def fail(self, failure: Failure) -> None:
        """Fail the groups of this rank if a stream has stopped for good."""
        if failure.lasting or failure.rank != self.rank:
            self.stopped = self.stopped or failure
            self.scheduler.fail(self.rank, failure)

    def synchronize(self, streams: Sequence[Stream] | None = None) -> None:
        """Wait until all streams are empty, and deliver the messages of kernels to the host.

        While no task is ready, other ranks of the process run.

        Parameters
        ----------
        streams : sequence of Stream, optional
            Wait for these only.

        Raises
        ------
        DeviceError
            The error of a task that failed since the last synchronisation, or the deadlock report.
        PeerError
            If a task waited for another rank, which has failed.
        """
        try:
            self.scheduler.wait(self, streams)
        finally:
            self.queues.deliver()
        if self.races is not None:
            waited = self.streams if streams is None else streams
            self.races.synchronized([stream.stream_id for stream in waited], idle=not self.busy)
        if self.errors:
            raise self.errors.pop(0)
        for stream in self.streams:
            if stream.error is not None:
                self.raised = stream.error
                raise stream.error
