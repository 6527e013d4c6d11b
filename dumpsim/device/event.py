"""Events: one stream records them and another waits for them."""

from dataclasses import dataclass, field

from dumpsim.core.gate import Failure, Waiter

__all__ = ["Event", "EventGate"]


@dataclass(eq=False, slots=True, kw_only=True)
class Event:
    """A point in a stream.

    Attributes
    ----------
    event_id : int
    launched : int
        Number of records that were put on a stream.
    recorded : int
        Number of records that the device has reached.
    time_ns : int
        Time of the last one.
    source : str
        The task that records the event, for messages.
    failure : Failure or None
        Why a record on a stream will not be reached.
    """

    event_id: int
    launched: int = 0
    recorded: int = 0
    time_ns: int = 0
    source: str = ""
    failure: Failure | None = None
    waiters: list[tuple[int, Waiter]] = field(default_factory=list)

    def record(self, time_ns: int) -> None:
        """Note that the device has reached a record, and wake the streams that wait for it."""
        self.recorded += 1
        self.time_ns = time_ns
        waiters, self.waiters = self.waiters, []
        for count, waiter in waiters:
            if count <= self.recorded:
                waiter.wake()
            else:
                self.waiters.append((count, waiter))

    def fail(self, failure: Failure) -> None:
        """Drop a record: every waiter for it fails."""
        if self.failure is None:
            self.failure = failure
        waiters, self.waiters = self.waiters, []
        for _, waiter in waiters:
            waiter.wake()


@dataclass(frozen=True, slots=True, kw_only=True)
class EventGate:
    """Opens when the event was recorded `count` times, i.e. at the last record before the wait, else at the first."""

    event: Event
    count: int

    @property
    def failure(self) -> Failure | None:
        """Why the record will not be reached."""
        return self.event.failure if self.event.recorded < self.count else None

    def enter(self, waiter: Waiter, time_ns: int) -> None:
        """Wake `waiter` when the record is reached, unless it has been."""
        if self.open_ns() is None:
            self.event.waiters.append((self.count, waiter))

    def open_ns(self) -> int | None:
        """Return the time of the record, None before it."""
        if self.event.recorded >= self.count:
            return self.event.time_ns
        failure = self.event.failure
        return None if failure is None else failure.time_ns

    def leave(self, time_ns: int) -> None:
        """Do nothing: others may wait for the same record."""

    def abandon(self, failure: Failure) -> None:
        """Do nothing: no other task depends on a waiting one."""

    def give_up(self, report: str) -> Failure | None:
        """Return None: the scheduler's own report suffices."""
        return None

    def waits_for(self) -> str:
        """Return the event and the task that should record it."""
        if self.event.launched < self.count:
            return f"event {self.event.event_id}, which no stream records"
        return f"event {self.event.event_id}, recorded by {self.event.source}"
