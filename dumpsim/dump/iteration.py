"""Which number the running iteration has. [spec mindspore 3.3, decisions]"""

__all__ = ["IterationCounter"]


class IterationCounter:
    """The state machine of iteration numbers.

    Parameters
    ----------
    rule : str
        ``process``: every run of a root graph takes the next number of one count; the graph of a data sink takes none.
        ``graph``: a run happens in the present number, and afterwards the number is that of the runs so far of the
        graph that has
        just run.
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
    >>> numbers("graph", "aabaabb"), numbers("process", "abab")
    ([0, 1, 2, 1, 3, 4, 2], [0, 1, 2, 3])
    """

    __slots__ = ("_after_dataset", "_first", "_last", "_rule", "_runs", "current")

    def __init__(self, rule: str, first: int = 0) -> None:
        self.current = first
        self._rule = rule
        self._first = first
        self._last = first - 1  # the number that the process gave out last
        self._runs: dict[object, int] = {}
        self._after_dataset = False

    def begin(self, root: object, *, dataset: bool = False) -> int:
        """The number of the run that begins."""
        if self._rule == "process":
            if not dataset:
                self._last += 1
            self.current = max(self._last, self._first)
        elif self._after_dataset and self.current == self._first + 1:
            self.current = self._first  # the steps of a data sink begin at 0
        return self.current

    def end(self, root: object, *, dataset: bool = False) -> None:
        """The run has ended."""
        runs = self._runs[root] = self._runs.get(root, 0) + 1
        self._after_dataset = dataset
        if self._rule == "graph":
            self.current = runs + self._first
