"""The number of the current iteration, and whether it is dumped. [spec mindspore 3.3, decisions]"""

from dataclasses import dataclass

from dumpsim.core.steps import Steps
from dumpsim.dump.control import DumpControl

__all__ = ["Iteration", "IterationCounter", "Moment"]


class IterationCounter:
    """The state machine of iteration numbers.

    Parameters
    ----------
    rule : str
        ``process``: runs of root graphs are numbered consecutively; the graph of a data sink has no number.
        ``model``: the number of earlier runs of the graph.
        ``graph``: a run has the current number; afterwards, the current number becomes the number of runs of the graph
        that has just run.
    first : int
        ``initial_iteration``.

    Examples
    --------
    >>> def numbers(rule, calls):
    ...     counter, found = IterationCounter(rule), []
    ...     for graph in calls:
    ...         found.append(counter.begin(graph))
    ...         counter.end(graph)
    ...     return found
    >>> numbers("graph", "aabaabb"), numbers("process", "abab"), numbers("model", "abaab")
    ([0, 1, 2, 1, 3, 4, 2], [0, 1, 2, 3], [0, 0, 1, 2, 1])
    """

    __slots__ = ("_after_dataset", "_first", "_last", "_rule", "_runs", "current")

    def __init__(self, rule: str, first: int = 0) -> None:
        self.current = first
        self._rule = rule
        self._first = first
        self._last = first - 1  # the last number of rule "process"
        self._runs: dict[object, int] = {}
        self._after_dataset = False

    def coming(self, root: object, *, dataset: bool = False) -> int:
        """Return the number that a run would have if it began now."""
        if self._rule == "process":
            return max(self._last + (not dataset), self._first)
        if self._rule == "model":
            return self._runs.get(root, 0) + self._first
        if self._after_dataset and self.current == self._first + 1:
            return self._first  # the steps of a data sink begin at 0
        return self.current

    def begin(self, root: object, *, dataset: bool = False) -> int:
        """Begin a run, and return its number."""
        self.current = self.coming(root, dataset=dataset)
        if self._rule == "process" and not dataset:
            self._last += 1
        return self.current

    def end(self, root: object, *, dataset: bool = False) -> None:
        """End a run."""
        runs = self._runs[root] = self._runs.get(root, 0) + 1
        self._after_dataset = dataset
        if self._rule == "graph":
            self.current = runs + self._first


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """The iteration and time of a dump, as an immutable value for work that runs later.

    Attributes
    ----------
    number : int
        Number of the iteration, or the script's own step.
    run : int
        Number of earlier runs of the root graph, which GE calls the iteration.
    time_ns : int
        Start of the step.
    """

    number: int
    run: int = 0
    time_ns: int = 0


class Iteration:
    """The current iteration of a dump.

    Parameters
    ----------
    counter : IterationCounter
    steps : Steps
        The iterations that the config selects.
    control : DumpControl
        The script's own starts, stops and steps.
    enabled : bool
        Whether the config dumps anything.

    Attributes
    ----------
    moment : Moment
    capturing : bool
        Whether the current iteration is dumped.
    """

    def __init__(self, counter: IterationCounter, steps: Steps, control: DumpControl, *, enabled: bool) -> None:
        self._counter = counter
        self._steps = steps
        self._control = control
        self._enabled = enabled
        self.moment: Moment
        self.capturing: bool
        self._look(0, 0)

    def coming(self, root: object, *, dataset: bool) -> int:
        """Return the number that a run would have if it began now."""
        number = self._counter.coming(root, dataset=dataset)
        return number if self._control.user_step is None else self._control.user_step

    def begin(self, root: object, *, run: int, time_ns: int, dataset: bool) -> Moment:
        """Begin a run."""
        self._counter.begin(root, dataset=dataset)
        return self._look(run, time_ns)

    def end(self, root: object, *, dataset: bool) -> None:
        """End a run; tasks before the next run belong to the next number."""
        self._counter.end(root, dataset=dataset)
        self._look(self.moment.run, self.moment.time_ns)

    def _look(self, run: int, time_ns: int) -> Moment:
        """Update the number of the next step, and whether its tasks are dumped."""
        control = self._control
        number = self._counter.current if control.user_step is None else control.user_step
        asked = control.running if control.dynamic else number in self._steps
        self.capturing = self._enabled and asked
        self.moment = Moment(number=number, run=run, time_ns=time_ns)
        return self.moment
