"""Races: accesses of several streams to the same memory that no event orders."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dumpsim.core.errors import StreamHazard
from dumpsim.device.event import EventGate
from dumpsim.device.task import Task

__all__ = ["Races", "Touch"]

Clock = dict[int, int]  # stream -> number of its last task that is known to have ended


@dataclass(frozen=True, slots=True, kw_only=True)
class Touch:
    """An access of a task to a range of memory.

    Attributes
    ----------
    what : str
        Name of the tensor, or of the group.
    low, high : int
        First byte, and the one after the last.
    writes : bool
    space : str
        ``device``; ``host`` for the tensors of PYNATIVE; ``group NAME`` for the links of a group, which two calls
        cannot use at once. [spec parallel 3.6]
    holder : object
        Object that prevents the memory from being reused meanwhile.
    """

    what: str
    low: int
    high: int
    writes: bool
    space: str = "device"
    holder: Any = None


@dataclass(frozen=True, slots=True)
class _Access:
    touch: Touch
    stream: int
    number: int  # number of the task in its stream
    task: Task


class Races:
    """Detects races: two tasks that no event orders must not access the same bytes.

    There is a vector clock for each stream and for the host. A task happens after the earlier tasks of its stream, the
    tasks that the host had waited for when it launched the task, and the tasks before the events that its stream has
    waited for. Whether tasks really overlap in time does not matter, so that every run reports the same races.

    Examples
    --------
    >>> from dumpsim.device.chip import chip
    >>> from dumpsim.device.device import Device
    >>> from dumpsim.device.task import TaskKind
    >>> device = Device(chip("910B"))
    >>> device.races = Races()
    >>> for stream, writes in ((0, True), (1, False)):
    ...     touch = Touch(what="x", low=64, high=128, writes=writes)
    ...     task = Task(kind=TaskKind.AICORE, name=f"Op{stream}", work=lambda task: None, touches=lambda t=touch: [t])
    ...     task = device.stream(stream).launch(task)
    >>> device.synchronize()
    Traceback (most recent call last):
        ...
    dumpsim.core.errors.StreamHazard: bytes 0x40 to 0x80 of x: Op0 (task 0 of stream 0) writes and Op1 (task 0 of \
stream 1) reads them, and no event orders the two; allowed: an event that stream 0 records after Op0 and stream 1 \
waits for before Op1 [DS-DEV-007]
    """

    def __init__(self) -> None:
        self._host: Clock = {}
        self._streams: dict[int, Clock] = {}
        self._launched: dict[int, Clock] = {}  # by serial: the host's clock at the launch
        self._events: dict[int, list[Clock]] = {}  # by event: the clock of each record
        self._seen: dict[int, list[_Access]] = {}  # by stream

    def launched(self, task: Task) -> None:
        """Note that the host has put a task on its stream."""
        self._launched[task.serial] = self._host

    def run(self, task: Task) -> StreamHazard | None:
        """Note that a task runs; return the error if it races with another one."""
        stream = task.stream_id
        clock = dict(self._streams.get(stream, {}))
        _join(clock, self._launched.pop(task.serial, {}))
        if isinstance(task.gate, EventGate):
            records = self._events.get(task.gate.event.event_id, [])
            if task.gate.count <= len(records):
                _join(clock, records[task.gate.count - 1])
        number = clock[stream] = clock.get(stream, 0) + 1
        self._streams[stream] = clock
        if task.event is not None:
            self._events.setdefault(task.event.event_id, []).append(clock)
        hazard: StreamHazard | None = None
        for touch in task.touches() if task.touches is not None else ():
            access = _Access(touch, stream, number, task)
            hazard = hazard or self._compared(access, clock)
            self._seen.setdefault(stream, []).append(access)
        return hazard

    def synchronized(self, streams: Sequence[int], *, idle: bool) -> None:
        """Note that the host has waited for these streams; `idle` if no stream of the device has a task left."""
        host = dict(self._host)
        for stream in streams:
            _join(host, self._streams.get(stream, {}))
        self._host = host
        if idle:  # later tasks are launched after those that the host has waited for, so that these cannot race
            for stream, accesses in self._seen.items():
                self._seen[stream] = [access for access in accesses if access.number > host.get(stream, 0)]

    def _compared(self, mine: _Access, clock: Clock) -> StreamHazard | None:
        for stream, accesses in self._seen.items():
            if stream == mine.stream:
                continue
            known = clock.get(stream, 0)
            for other in accesses:
                if other.number > known and _collide(mine.touch, other.touch):
                    return _hazard(other, mine)
        return None


def _join(clock: Clock, other: Clock) -> None:
    for stream, number in other.items():
        clock[stream] = max(number, clock.get(stream, number))


def _collide(one: Touch, other: Touch) -> bool:
    return (one.writes or other.writes) and one.low < other.high and other.low < one.high and one.space == other.space


def _hazard(first: _Access, second: _Access) -> StreamHazard:
    one, two = _named(first.task), _named(second.task)
    remedy = (
        f"an event that stream {first.stream} records after {first.task.name} and stream {second.stream} waits for "
        f"before {second.task.name}"
    )
    if first.touch.space.startswith("group"):
        return StreamHazard(
            f"{one} and {two} are calls of {first.touch.what} that no event orders: they would use the same links",
            allowed=[remedy],
        )
    low, high = max(first.touch.low, second.touch.low), min(first.touch.high, second.touch.high)
    names = " and ".join(dict.fromkeys((first.touch.what, second.touch.what)))
    does, too = ("writes" if access.touch.writes else "reads" for access in (first, second))
    return StreamHazard(
        f"bytes {low:#x} to {high:#x} of {names}: {one} {does} and {two} {too} them, and no event orders the two",
        allowed=[remedy],
    )


def _named(task: Task) -> str:
    return f"{task.name} (task {task.task_id} of stream {task.stream_id})"
