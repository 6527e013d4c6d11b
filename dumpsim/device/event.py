"""Events: what one stream records and another waits for."""

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
        Records that were put on a stream.
    recorded : int
        Records that the device has reached.
    time_ns : int
        When the last one was reached.
    source : str
        Who records it, for messages.
    failure : Failure or None
        Why a record that was put on a stream will not be reached.
    """

    event_id: int
    launched: int = 0
    recorded: int = 0
    time_ns: int = 0
    source: str = ""
    failure: Failure | None = None
    waiters: list[tuple[int, Waiter]] = field(default_factory=list)

    def record(self, time_ns: int) -> None:
        """The device has reached a record; streams that wait for it wake."""
        self.recorded += 1
        self.time_ns = time_ns
        if self.waiters:
            open_now = [waiter for count, waiter in self.waiters if count <= self.recorded]
            self.waiters = [(count, waiter) for count, waiter in self.waiters if count > self.recorded]
            for waiter in open_now:
                waiter.wake()

    def fail(self, failure: Failure) -> None:
        """Drop a record: every waiter for it fails."""
        if self.failure is None:
            self.failure = failure
        waiters, self.waiters = self.waiters, []
        for _, waiter in waiters:
            waiter.wake()


@dataclass(frozen=True, slots=True, kw_only=True)
class EventGate:
    """Opens when the event was recorded `count` times: the last record before the wait, or the first one to come."""

    event: Event
    count: int

    @property
    def failure(self) -> Failure | None:
        """Why the record will not be reached."""
        return self.event.failure if self.event.recorded < self.count else None

    def enter(self, waiter: Waiter, time_ns: int) -> None:
        """Wake `waiter` when the record is reached, unless it was."""
        if self.open_ns() is None:
            self.event.waiters.append((self.count, waiter))

    def open_ns(self) -> int | None:
        """Time of the record, None before it."""
        if self.event.recorded >= self.count:
            return self.event.time_ns
        failure = self.event.failure
        return None if failure is None else failure.time_ns

    def leave(self, time_ns: int) -> None:
        """Others may wait for the same record."""

    def abandon(self, failure: Failure) -> None:
        """Nobody waits for one who waits."""

    def give_up(self, report: str) -> Failure | None:
        """The scheduler's own report says it all."""
        return None

    def waits_for(self) -> str:
        """Names the event and who should record it."""
        if self.event.launched < self.count:
            return f"event {self.event.event_id}, which no stream records"
        return f"event {self.event.event_id}, recorded by {self.event.source}"
