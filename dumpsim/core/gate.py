"""Gates: conditions that a task waits for, besides the tasks before it on its stream."""

from dataclasses import dataclass
from typing import Protocol

__all__ = ["Failure", "Gate", "Waiter"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Why a gate will never open.

    Attributes
    ----------
    rank : int
        The rank that failed.
    time_ns : int
        When it failed.
    error : BaseException
        What the rank's own synchronisation raises.
    lasting : bool
        Whether the device refuses further work; if not, only the queued tasks were dropped.
    """

    rank: int
    time_ns: int
    error: BaseException
    lasting: bool = True


class Waiter(Protocol):
    """A stream, as a gate sees it."""

    def wake(self) -> None:
        """Notify the stream that the gate has opened or failed."""
        ...


class Gate(Protocol):
    """A condition that a task waits for: an event, the other ranks of a collective."""

    @property
    def failure(self) -> Failure | None:
        """Why the gate will never open; its task then fails instead of running."""
        ...

    def enter(self, waiter: Waiter, time_ns: int) -> None:
        """Notify the gate, once, that its task is the next of its stream; it wakes `waiter` when it opens or fails."""
        ...

    def open_ns(self) -> int | None:
        """Return the time from which the task may run, None while the gate is closed."""
        ...

    def leave(self, time_ns: int) -> None:
        """Notify the gate that its task ended at that time."""
        ...

    def abandon(self, failure: Failure) -> None:
        """Notify the gate that its task was dropped."""
        ...

    def waits_for(self) -> str:
        """Return what is missing, for the deadlock report."""
        ...

    def give_up(self, report: str) -> Failure | None:
        """Notify the gate of a deadlock; return the failure of its task, None for the scheduler's own error.

        Parameters
        ----------
        report : str
            Who waits for what.
        """
        ...
