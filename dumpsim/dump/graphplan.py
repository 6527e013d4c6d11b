"""The dump of a graph whose tasks are the same in every run: what is decided and encoded once, and what in each run."""

from collections.abc import Callable, Sequence

from dumpsim.core.events import Follower, TaskEvent
from dumpsim.dump.capture import Capture
from dumpsim.dump.iteration import Iteration

__all__ = ["GraphDump"]


class GraphDump:
    """A `PlannedGraph` that dumps.

    Parameters
    ----------
    capture : Capture
    iteration : Iteration
    wants : callable
        Whether an event is one of those that are dumped; asked in the first run that is.
    holds : callable
        Whether the choice of operators is still that of the plan.
    events : sequence of TaskEvent
    """

    def __init__(
        self,
        capture: Capture,
        iteration: Iteration,
        wants: Callable[[TaskEvent], bool],
        holds: Callable[[], bool],
        events: Sequence[TaskEvent],
    ) -> None:
        self._capture = capture
        self._iteration = iteration
        self._wants = wants
        self._holds = holds
        self._events = events
        self._directory = ""
        self._followers: Sequence[Follower | None] | None = None

    def begin(self) -> Sequence[Follower | None] | None:
        """What writes the tensors of each task in the run that has begun."""
        if not self._holds():
            return None
        if not self._iteration.capturing or not self._events:
            return ()
        moment = self._iteration.moment
        self._directory = self._capture.location.directory(self._events[0], moment)
        if self._followers is None:
            self._followers = [self._follower(event) if self._wants(event) else None for event in self._events]
        return self._followers

    def _follower(self, event: TaskEvent) -> Follower | None:
        """What writes the tensors of one task."""
        planned = self._capture.planned(event, self._iteration.moment)
        if planned is None:
            return None
        write, skipped = planned
        if not skipped:
            return lambda: write(self._directory)
        tally = self._capture.writes.tally

        def follow() -> None:
            for reason in skipped:
                tally.skip(reason)
            write(self._directory)

        return follow
