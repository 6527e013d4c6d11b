"""Gates: what a task waits for besides the tasks before it on its stream."""

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
        When.
    error : BaseException
        What the rank's own synchronisation raises.
    lasting : bool
        The device refuses further work; False: only the queued tasks were dropped.
    """

    rank: int
    time_ns: int
    error: BaseException
    lasting: bool = True


class Waiter(Protocol):
    """A stream, as a gate sees it."""

    def wake(self) -> None:
        """The gate has opened or failed."""
        ...


class Gate(Protocol):
    """What keeps a task from running: an event, the other ranks of a collective."""

    @property
    def failure(self) -> Failure | None:
        """Why it will never open; its task then fails instead of running."""
        ...

    def enter(self, waiter: Waiter, time_ns: int) -> None:
        """The task is the first of its stream; called once, the gate wakes `waiter` when it opens or fails later."""
        ...

    def open_ns(self) -> int | None:
        """Time from which the task may run, None while it may not."""
        ...

    def leave(self, time_ns: int) -> None:
        """The task has run and ended then."""
        ...

    def abandon(self, failure: Failure) -> None:
        """The task was dropped."""
        ...

    def waits_for(self) -> str:
        """What is missing, for the deadlock report."""
        ...

    def give_up(self, report: str) -> Failure | None:
        """Nobody can progress any longer: why its task fails; None: with the scheduler's own error.

        Parameters
        ----------
        report : str
            Who waits for what.
        """
        ...
