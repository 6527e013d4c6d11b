"""The selected operators of a run, and the rules that match no operator."""

from collections.abc import Iterator

from dumpsim.core.events import GraphEvent, TaskEvent
from dumpsim.dump.modelchoice import ModelChoice
from dumpsim.modes.request import Selection

__all__ = ["KernelChoice"]


class KernelChoice:
    """The operators of a run that a request selects; results are cached by name.

    Examples
    --------
    >>> from dumpsim.core.match import KernelRules
    >>> choice = KernelChoice(Selection(rules=KernelRules.parse(["Exp", "Log"])))
    >>> choice.use("Default/Exp-op0")
    >>> list(choice.unused())
    ['Log']
    """

    def __init__(self, selection: Selection) -> None:
        self._selection = selection
        self._selected: dict[tuple[str, str], bool] = {}
        self._used: set[str] = set()  # rules that matched something
        self._models = None if selection.models is None else ModelChoice(selection.models)

    @property
    def selection(self) -> Selection:
        """The request's selection of operators."""
        return self._selection

    def __contains__(self, event: object) -> bool:
        """Return whether an operator is selected."""
        selection = self._selection
        if selection.everything:
            return True
        assert isinstance(event, TaskEvent)
        if self._models is not None:
            key = (f"{event.model_id}", event.full_name)
            if key not in self._selected:
                self._selected[key] = self._models.selects(event)
            return self._selected[key]
        key = (event.full_name, selection.mark(event.attrs))
        found = self._selected.get(key)
        if found is None:
            found = self._selected[key] = selection.selects(event.full_name, event.attrs)
            self.use(event.full_name)
        return found

    def reselect(self, selection: Selection) -> None:
        """Use other rules for operators that have not been looked up yet."""
        self._selection = selection
        if self._models is not None:
            self._models.replace(selection.models or ())

    def loaded(self, event: GraphEvent) -> tuple[str, ...]:
        """Add a loaded model; return warnings."""
        return () if self._models is None else self._models.loaded(event)

    def blocked(self, event: TaskEvent) -> tuple[frozenset[int], frozenset[int]]:
        """Return the slots of inputs and of outputs of an operator that are not dumped."""
        return (frozenset(), frozenset()) if self._models is None else self._models.blocked(event)

    def unknown(self) -> Iterator[str]:
        """Iterate over messages for operators in the request that no loaded model has."""
        if self._models is not None:
            yield from self._models.unused()

    def use(self, name: str) -> None:
        """Record which rule matches a name."""
        rule = None if self._selection.rules is None else self._selection.rules.match(name)
        if rule is not None:
            self._used.add(rule.text)

    def unused(self) -> Iterator[str]:
        """Iterate over the rules that matched nothing."""
        if self._selection.rules is not None:
            yield from sorted({rule.text for rule in self._selection.rules.rules} - self._used)
