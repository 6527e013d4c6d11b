"""Events: what one stream records and another waits for."""

from dataclasses import dataclass

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
    """

    event_id: int
    launched: int = 0
    recorded: int = 0
    time_ns: int = 0
    source: str = ""

    def record(self, time_ns: int) -> None:
        """The device has reached a record."""
        self.recorded += 1
        self.time_ns = time_ns


@dataclass(frozen=True, slots=True, kw_only=True)
class EventGate:
    """Opens when the event was recorded `count` times: the last record before the wait, or the first one to come."""

    event: Event
    count: int

    def open_ns(self) -> int | None:
        """Time of the record, None before it."""
        return self.event.time_ns if self.event.recorded >= self.count else None

    def waits_for(self) -> str:
        """Names the event and who should record it."""
        if self.event.launched < self.count:
            return f"event {self.event.event_id}, which no stream records"
        return f"event {self.event.event_id}, recorded by {self.event.source}"
