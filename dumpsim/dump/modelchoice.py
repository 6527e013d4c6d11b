"""The operators of loaded models that a request selects by name and execution order. [spec ge 2.6]"""

from collections.abc import Iterable, Iterator, Sequence

from dumpsim.core.errors import nearest
from dumpsim.core.events import GraphEvent, TaskEvent
from dumpsim.modes.request import ModelRule

__all__ = ["ModelChoice", "Names"]


class Names:
    """The operators of the loaded models, for messages about unknown names."""

    def __init__(self) -> None:
        self._all: dict[str, None] = {}
        self._fused: dict[str, str] = {}  # operators that a fused one replaced

    def add(self, event: GraphEvent) -> None:
        """Add the names of a loaded model."""
        self._all.update(dict.fromkeys((*event.execution_order, *event.readers)))
        self._fused.update({name: fused for fused, names in event.originals.items() for name in names})

    def missing(self, wanted: Iterable[str], *, fused: bool) -> Iterator[str]:
        """Iterate over messages for the names that no model has.

        Parameters
        ----------
        wanted : iterable of str
        fused : bool
            Whether names of operators that were fused are allowed.
        """
        for name in wanted:
            if name in self._all or (fused and name in self._fused):
                continue
            if name in self._fused:
                yield f"{name!r} was fused into {self._fused[name]!r}: use that name"
                continue
            meant = nearest(name, (*self._all, *self._fused)) if self._all else None
            yield f"no loaded model has an operator {name!r}" + (f" (did you mean {meant!r}?)" if meant else "")


class ModelChoice:
    """The operators that `ModelRule` objects select.

    Parameters
    ----------
    rules : sequence of ModelRule

    Examples
    --------
    >>> event = GraphEvent(doc=None, graph_id=0, root_graph_id=0, is_root=True, execution_order=tuple("abcde"),
    ...                    model_name="graph_1", model_id=1)
    >>> choice = ModelChoice([ModelRule(model="graph_1", names=("e",), ranges=(("b", "c"),))])
    >>> choice.loaded(event)
    ()
    >>> [name for name in "abcde" if choice.selects(TaskEvent(op_type="Add", full_name=name, graph_id=0,
    ...     root_graph_id=0, operands=(), outputs=(), model_name="graph_1", model_id=1))]
    ['b', 'c', 'e']
    """

    def __init__(self, rules: Sequence[ModelRule]) -> None:
        self._rules = tuple(rules)
        self._ranged: dict[tuple[int, str], None] = {}  # model and operator
        self._readers: dict[tuple[int, str], tuple[str, ...]] = {}  # operators that read an input of the model
        self.names = Names()

    def replace(self, rules: Sequence[ModelRule]) -> None:
        """Use other rules for the models that are loaded from now on."""
        self._rules = tuple(rules)

    def loaded(self, event: GraphEvent) -> tuple[str, ...]:
        """Add a loaded model; return warnings."""
        self.names.add(event)
        for data, readers in event.readers.items():
            self._readers[event.model_id, data] = readers
        warnings = []
        for rule in self._of(event.model_name):
            for begin, end in rule.ranges:
                chosen, good = _between(event.execution_order, begin, end)
                self._ranged.update(dict.fromkeys((event.model_id, name) for name in chosen))
                if not good:
                    text = f"opname_range {begin} to {end} of {event.model_name} is out of order or starts again"
                    warnings.append(f"{text}: nothing after that is dumped")
        return tuple(warnings)

    def selects(self, event: TaskEvent) -> bool:
        """Return whether an operator of a model is selected."""
        rules = tuple(self._of(event.model_name))
        if any(rule.whole for rule in rules):
            return True
        names = {name for rule in rules for name in rule.names or ()}
        readers = self._readers.get((event.model_id, event.full_name))
        found = readers or (event.full_name, *event.original_names)
        ranged = readers or (event.full_name,)
        return not names.isdisjoint(found) or any((event.model_id, name) in self._ranged for name in ranged)

    def blocked(self, event: TaskEvent) -> tuple[frozenset[int], frozenset[int]]:
        """Return the slots of inputs and of outputs of an operator that are not dumped."""
        inputs: frozenset[int] = frozenset()
        outputs: frozenset[int] = frozenset()
        for rule in self._of(event.model_name):
            for entry in rule.blocked:
                if entry.name == (event.op_type if entry.by_type else event.full_name):
                    inputs, outputs = inputs | entry.inputs, outputs | entry.outputs
        return inputs, outputs

    def unused(self) -> Iterator[str]:
        """Iterate over messages for names in rules that no loaded model has."""
        wanted = [
            name for rule in self._rules for name in (*(rule.names or ()), *(n for pair in rule.ranges for n in pair))
        ]
        yield from self.names.missing(dict.fromkeys(wanted), fused=True)

    def _of(self, model: str) -> Iterator[ModelRule]:
        return (rule for rule in self._rules if rule.model in ("", model))


def _between(order: Sequence[str], begin: str, end: str) -> tuple[list[str], bool]:
    """Return the operators of a range, and whether the range is valid, by GE's state machine. [spec ge 2.6]

    Examples
    --------
    >>> _between("abcd", "b", "c"), _between("abcd", "c", "b"), _between("abcb", "b", "b")
    ((['b', 'c'], True), ([], False), (['b', 'b'], True))
    """
    chosen: list[str] = []
    state = "init"
    for name in order:
        if name == begin:
            if state == "stop":
                return chosen, False
            state = "stop" if begin == end else "start"
            chosen.append(name)
        elif name == end:
            if state == "init":
                return chosen, False
            state = "stop"
            chosen.append(name)
        elif state == "start":
            chosen.append(name)
        elif state == "stop":
            state = "init"
    return chosen, True
