"""The calls of one step of an API dump."""

from collections.abc import Iterable
from dataclasses import dataclass
from math import inf

from dumpsim.analysis.apitree import ApiEntry
from dumpsim.analysis.meaning import Meaning, meaning
from dumpsim.codecs.apidump import LAYER

__all__ = ["Call", "calls", "order", "shapes"]

_NOTHING = (0.0, 0.0, 0.0)  # equal to itself, as calls without inputs are alike in that


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One call of an API: its inputs, its outputs, and the gradients of the outputs.

    Attributes
    ----------
    name : str
        ``NN_Linear_0``.
    kind, api : str
        ``NN`` and ``Linear``.
    meaning : Meaning
    inputs, outputs, grads : tuple of ApiEntry
    """

    name: str
    kind: str
    api: str
    meaning: Meaning
    inputs: tuple[ApiEntry, ...]
    outputs: tuple[ApiEntry, ...]
    grads: tuple[ApiEntry, ...] = ()

    @property
    def is_layer(self) -> bool:
        """Whether this record only marks the call of a module."""
        return self.kind == LAYER

    @property
    def key(self) -> tuple[str, tuple[tuple[int, ...], ...], tuple[tuple[int, ...], ...]]:
        """A key that calls of one API on equal shapes share."""
        return (self.meaning.word, shapes(self.inputs), shapes(self.outputs))

    @property
    def framework(self) -> str:
        """The framework that was dumped."""
        return next(iter((*self.inputs, *self.outputs, *self.grads))).place.api

    @property
    def signature(self) -> list[float]:
        """Six statistics, of the first input and the last output, to compare the values of calls."""
        ends = (self.inputs[:1], self.outputs[-1:])
        return [value for end in ends for value in (end[0].extremes if end else _NOTHING)]


def shapes(entries: Iterable[ApiEntry]) -> tuple[tuple[int, ...], ...]:
    """Return the shapes of some arrays, as in the info file."""
    return tuple(entry.line.shape for entry in entries)


def calls(entries: Iterable[ApiEntry]) -> list[Call]:
    """Return the calls of one step, in the order of their first lines."""
    grads: dict[str, dict[str, ApiEntry]] = {}
    groups: list[tuple[str, list[ApiEntry]]] = []
    for entry in entries:
        call = entry.parts.call
        if entry.parts.direction == "backward":  # after a second backward run, the file has the last gradient
            grads.setdefault(call, {})[entry.line.name] = entry
            continue
        if not groups or groups[-1][0] != call or entry.parts.kind == LAYER:
            groups.append((call, []))
        groups[-1][1].append(entry)
    found = [_call(name, members, grads.pop(name, {})) for name, members in groups]
    return found + [_call(name, [], members) for name, members in reversed(grads.items())]


def _call(name: str, entries: list[ApiEntry], grads: dict[str, ApiEntry]) -> Call:
    """Build a call from its lines."""
    first = (entries or list(grads.values()))[0]
    return Call(
        name=name,
        kind=first.parts.kind,
        api=first.parts.api,
        meaning=meaning(first.place.api, first.parts.kind, first.parts.api),
        inputs=tuple(entry for entry in entries if entry.io == "input"),
        outputs=tuple(entry for entry in entries if entry.io == "output"),
        grads=tuple(sorted(grads.values(), key=lambda entry: tuple(map(order, entry.parts.index)))),
    )


def order(part: int | str) -> tuple[float, str]:
    """Sort positional arguments before keyword arguments."""
    return (part, "") if isinstance(part, int) else (inf, part)
