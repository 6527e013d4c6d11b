"""The dump of a graph whose tasks are the same in every run; most decisions and encodings are made only once."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol

from dumpsim.core.events import Follower, Step, TaskEvent, current
from dumpsim.dump.capture import Capture, Planned
from dumpsim.dump.iteration import Iteration
from dumpsim.dump.trigger import Every

__all__ = ["GraphDump", "Listener"]


class Listener(Protocol):
    """The methods of the dump that a plan calls."""

    def wants(self, event: TaskEvent) -> bool:
        """Return whether an event is dumped."""
        ...

    def kernel_begins(self, event: TaskEvent) -> None:
        """Handle the start of a dumped kernel."""
        ...

    def before_task(self, event: TaskEvent) -> None:
        """Handle the start of a dumped kernel, and dump its inputs if needed."""
        ...

    def after_task(self, event: TaskEvent) -> None:
        """Handle the end of a dumped kernel."""
        ...


class GraphDump:
    """A `PlannedGraph` that dumps.

    Parameters
    ----------
    listener : Listener
        Receives the events of operators that cannot be planned.
    capture : Capture
    trigger : Every
    iteration : Iteration
    holds : callable
        Returns whether the selection of operators is still that of the plan.
    events : sequence of TaskEvent
    """

    def __init__(
        self,
        listener: Listener,
        capture: Capture,
        trigger: Every,
        iteration: Iteration,
        holds: Callable[[], bool],
        events: Sequence[TaskEvent],
    ) -> None:
        self._listener = listener
        self._capture = capture
        self._trigger = trigger
        self._iteration = iteration
        self._holds = holds
        self._events = events
        self._directory = ""
        self._number = 0
        self._followers: Sequence[Follower | None] | None = None

    def begin(self) -> Sequence[Follower | None] | None:
        """Return the functions that dump the tensors of each task in the current run; None to end the plan."""
        if not self._holds():
            return None
        if not self._iteration.capturing or not self._events:
            return ()
        moment = self._iteration.moment
        self._directory = self._capture.location.directory(self._events[0], moment)
        self._number = moment.number
        if self._followers is None:
            self._followers = self._planned()
        return self._followers

    def _planned(self) -> list[Follower | None]:
        """Make the functions that dump the tensors of each task; the first one also reports the start of a run."""
        found: list[Follower | None] = []
        begun = False
        for event in self._events:
            follower = None
            if self._listener.wants(event):
                follower = self._follower(event, begins=not begun)
                begun = True
            found.append(follower)
        return found

    def _follower(self, event: TaskEvent, *, begins: bool) -> Follower:
        """Make the functions that dump the tensors of one task."""
        listener = self._listener
        if not self._trigger.plans(event):
            return Follower(
                lambda task_id, time_ns: listener.before_task(_now(event, task_id, time_ns)),
                lambda task_id, time_ns: listener.after_task(_now(event, task_id, time_ns)),
            )
        before, after = (self._step(part) for part in self._trigger.parts(event, self._iteration.moment))
        if not begins:
            return Follower(before, after)

        def begin(task_id: int, time_ns: int) -> None:
            listener.kernel_begins(event)
            if before is not None:
                before(task_id, time_ns)

        return Follower(begin, after)

    def _step(self, planned: Planned) -> Step | None:
        """Make one such function, which also counts the skipped tensors."""
        write, skipped = planned
        tally = self._capture.writes.tally

        def step(task_id: int, time_ns: int) -> None:
            for reason in skipped:
                tally.skip(reason)
            if write is not None:
                write(self._directory, self._number, task_id)

        return step if skipped or write is not None else None


def _now(event: TaskEvent, task_id: int, time_ns: int) -> TaskEvent:
    """Return the event of the current run."""
    return replace(
        event,
        operands=current(event.operands),
        outputs=current(event.outputs),
        task_id=task_id,
        time_ns=time_ns,
    )
