"""Runs of operators: the tensors of a dump that belong to one execution, in the order of execution."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property

from dumpsim.analysis.apiname import canonical
from dumpsim.analysis.entry import Entry
from dumpsim.archive.naming import OPDEBUG, escape
from dumpsim.codecs.apidump import LAYER
from dumpsim.core.errors import DumpsimError
from dumpsim.core.irdoc import SourceLine

__all__ = ["Operator", "Series", "numbering", "operators", "series", "squeezed"]

# names of fused operators are those of their parts in a row: Default/MatMul-op0Default/BiasAdd-op0 [spec ge 4.6]
_SEAM = re.compile(r"(?<=-op)(\d+)(?=[A-Za-z])", re.ASCII)
_NUMBERED = re.compile(r"(?P<stem>.*-op|.*_)(?P<number>\d+)(?P<rest>_forward|_backward)?", re.ASCII | re.DOTALL)


@dataclass(frozen=True, kw_only=True)
class Operator:
    """The dumped tensors of one execution of an operator.

    Attributes
    ----------
    entries : tuple of Entry
        Its tensors in the order of the dump.
    order : int
        Its index in the iteration.
    layers : tuple of Entry
        Records of modules in an API dump since the call before this one.
    meant : tuple of str
        Operations of another dump that a name map gives for it, in canonical words.
    """

    entries: tuple[Entry, ...]
    order: int
    layers: tuple[Entry, ...] = ()
    meant: tuple[str, ...] = ()

    @property
    def word(self) -> str:
        """The operation; an operator with several counterparts gets a unique word."""
        if len(self.meant) > 1:
            return f"={self.op_type}"
        return self.meant[0] if self.meant else canonical(self.op_type)

    @property
    def call(self) -> tuple[str, str]:
        """Kind and name of the API of a call in an API dump: ``("NN", "Linear")``."""
        return self.op_name.partition("_")[0], self.op_type

    @property
    def op_type(self) -> str:
        return self.entries[0].op_type

    @property
    def op_name(self) -> str:
        return self.entries[0].op_name

    @property
    def rank(self) -> int:
        return self.entries[0].rank

    @property
    def iteration(self) -> int | None:
        return self.entries[0].iteration

    @property
    def api(self) -> bool:
        """Whether this is a call in an API dump."""
        return bool(self.entries[0].place.api)

    @property
    def backward(self) -> bool:
        """Whether this is the backward of a call in an API dump, of which only the incoming gradient is known."""
        return self.api and self.op_name.endswith("_backward")

    @cached_property
    def inputs(self) -> tuple[Entry, ...]:
        return tuple(entry for entry in self.entries if entry.io == "input")

    @cached_property
    def outputs(self) -> tuple[Entry, ...]:
        return tuple(entry for entry in self.entries if entry.io == "output")

    @cached_property
    def name(self) -> str:
        """The name in file names, which is the same with and without graphs."""
        return escape(self.op_name)

    @cached_property
    def parts(self) -> tuple[str, ...]:
        """Names of the operators that were fused into this one, or its own name."""
        return tuple(_SEAM.sub(lambda found: f"{found[1]}\0", self.name).split("\0"))

    @cached_property
    def stem(self) -> str:
        """The name without its number."""
        found = _NUMBERED.fullmatch(self.name)
        return f"{found['stem']}{found['rest'] or ''}" if found else self.name

    @cached_property
    def number(self) -> int:
        """The number in the name, -1 without one."""
        found = _NUMBERED.fullmatch(self.name)
        return int(found["number"][:18]) if found else -1

    @cached_property
    def line(self) -> SourceLine | None:
        """The script's line."""
        return self.entries[0].script_line

    @cached_property
    def shapes(self) -> tuple[tuple[tuple[int, ...], ...], tuple[tuple[int, ...], ...]]:
        """Shapes of inputs and outputs, without dimensions of 1."""
        return tuple(squeezed(entry) for entry in self.inputs), tuple(squeezed(entry) for entry in self.outputs)

    def __repr__(self) -> str:
        return f"<{self.op_type} {self.op_name}, {len(self.inputs)} inputs, {len(self.outputs)} outputs>"


def squeezed(entry: Entry) -> tuple[int, ...]:
    """The shape without dimensions of 1; that of a scalar for a file that cannot be read."""
    try:
        return tuple(dim for dim in entry.shape if dim != 1)
    except (DumpsimError, OSError):
        return ()


@dataclass(slots=True)
class _Open:
    """An execution that may get further tensors."""

    order: int
    layers: tuple[Entry, ...]
    entries: list[Entry] = field(default_factory=list)
    seen: set[tuple[str, int]] = field(default_factory=set)


def operators(entries: Iterable[Entry]) -> list[Operator]:
    """Group tensors by execution; a new one begins when an input or output appears again."""
    found: list[_Open] = []
    running: dict[tuple[object, str, str], _Open] = {}
    layers: tuple[Entry, ...] = ()
    for entry in entries:
        record = entry.name
        if entry.place.api and record.op_type == LAYER:
            layers += (entry,)
            continue
        if (record.op_type, record.op_name) == OPDEBUG:
            continue
        key = (id(entry.place), record.op_type, record.op_name)
        slot = (record.io, record.slot)
        run = running.get(key)
        if run is None or slot in run.seen:
            run = running[key] = _Open(order=len(found), layers=layers)
            found.append(run)
            layers = ()
        run.entries.append(entry)
        run.seen.add(slot)
    return [Operator(entries=tuple(run.entries), order=run.order, layers=run.layers) for run in found]


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """The operators of one rank in one iteration; None if a tree has no iterations."""

    rank: int
    iteration: int | None
    operators: tuple[Operator, ...]


def series(entries: Iterable[Entry]) -> Iterator[Series]:
    """Executions by rank and iteration, in that order.

    If a tree counts both steps and iterations of the device, the one that changes more often is used: a sunk loop runs
    many iterations in a step. [spec mindspore 3.7]
    """
    found: dict[int, dict[tuple[int | None, int | None], list[Entry]]] = {}
    for entry in entries:
        key = (entry.place.step, entry.place.iteration)
        found.setdefault(entry.rank, {}).setdefault(key, []).append(entry)
    for rank, groups in sorted(found.items()):
        numbers = numbering(groups)
        numbered: dict[int | None, list[Entry]] = {}
        for key, members in groups.items():
            numbered.setdefault(numbers[key], []).extend(members)
        for number in dict.fromkeys(numbers.values()):
            yield Series(rank=rank, iteration=number, operators=tuple(operators(_by_time(numbered[number]))))


def numbering(keys: Iterable[tuple[int | None, int | None]]) -> dict[tuple[int | None, int | None], int | None]:
    """Return the number of the series for each step and iteration of one rank, in the order of the series.

    Examples
    --------
    >>> numbering([(None, 2), (None, 0)])
    {(None, 0): 0, (None, 2): 2}
    >>> numbering([(1, 0), (0, 0)])
    {(0, 0): 0, (1, 0): 1}
    """
    pairs = list(dict.fromkeys(keys))
    steps = {step for step, _ in pairs}
    by_step = None not in steps and len(steps) >= len({iteration for _, iteration in pairs})
    numbers = {(step, iteration): step if by_step else iteration for step, iteration in pairs}
    return dict(sorted(numbers.items(), key=lambda pair: (pair[1] is not None, pair[1] or 0)))


def _by_time(entries: list[Entry]) -> list[Entry]:
    """Merge several graphs of one iteration by time."""
    return sorted(entries, key=lambda entry: entry.timestamp)
