"""The fields of `DumpSet.filter`, and the values that a dump has if nothing matches them."""

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, fields
from difflib import SequenceMatcher
from fnmatch import translate
from functools import cached_property
from heapq import nsmallest

from dumpsim.analysis.entry import Entry
from dumpsim.analysis.place import Place
from dumpsim.archive.naming import escape
from dumpsim.core.errors import BadInputError, UnreadableError, nearest
from dumpsim.core.irdoc import SourceLine

__all__ = ["Choice", "absent", "missing", "named", "ranges"]

_SHOWN = 5  # names or values to list in a message
_WILD = re.compile(r"[*?\[]")


def named(pattern: str) -> Callable[[str], bool]:
    """Return whether a pattern matches an operator's name, ignoring case, as written with ``/`` or in file names.

    A pattern with a wildcard is a glob on the whole name. A word without one is a part of the name; where it ends or
    begins with a digit, a whole number.

    Examples
    --------
    >>> names = ["Default/conv1-Conv2d/Conv2D-op0", "Default/conv10-Conv2d/Conv2D-op1", "Default_fc-Dense_MatMul-op0"]
    >>> [name for name in names if named("conv1")(name)]
    ['Default/conv1-Conv2d/Conv2D-op0']
    >>> [name for name in names if named("default/*MatMul-op0")(name)]
    ['Default_fc-Dense_MatMul-op0']
    """
    word = escape(pattern.lower())
    if _WILD.search(word):
        expression = re.compile(translate(word))
    else:
        left = r"(?<![0-9])" if word[:1].isdigit() else ""
        right = r"(?![0-9])" if word[-1:].isdigit() else ""
        expression = re.compile(f".*{left}{re.escape(word)}{right}", re.DOTALL)
    return lambda name: expression.match(escape(name.lower())) is not None


@dataclass(frozen=True, kw_only=True)
class Choice:
    """The arguments of `DumpSet.filter`, where they are documented; None does not filter.

    Raises
    ------
    BadInputError
        For an invalid `io` or `source`.
    """

    op: str | None = None
    op_type: str | None = None
    io: str | None = None
    slot: int | None = None
    dtype: str | None = None
    rank: int | None = None
    graph: int | None = None
    iteration: int | None = None
    step: int | None = None
    source: str | None = None
    where: Callable[[Entry], bool] | None = None

    def __post_init__(self) -> None:
        if self.io is not None and self.io.lower() not in ("input", "output"):
            raise BadInputError(f"{self.io!r} is neither", where="io", allowed=("input", "output"))
        if self.source is not None:
            _line(self.source)

    @cached_property
    def _tests(self) -> dict[str, Callable[[Entry], bool]]:
        """Return a test for each given field of an entry, the cheapest first."""
        found: dict[str, Callable[[Entry], bool]] = {}
        if self.op_type is not None:
            op_type = self.op_type.lower()
            found["op_type"] = lambda entry: entry.op_type.lower() == op_type
        if self.io is not None:
            io = self.io.lower()
            found["io"] = lambda entry: entry.io == io
        if self.slot is not None:
            found["slot"] = lambda entry: entry.slot == self.slot
        if self.op is not None:
            answers = named(self.op)
            found["op"] = lambda entry: answers(entry.op_name)
        if self.dtype is not None:
            dtype = self.dtype.lower()
            found["dtype"] = lambda entry: entry.dtype == dtype
        if self.source is not None:
            found["source"] = _made_by(self.source)
        if self.where is not None:
            found["where"] = self.where
        return found

    @cached_property
    def _places(self) -> dict[str, int]:
        """Return the requested values of a directory's attributes."""
        asked = {"rank": self.rank, "graph_id": self.graph, "iteration": self.iteration, "step": self.step}
        return {name: value for name, value in asked.items() if value is not None}

    def near(self, place: Place) -> bool:
        """Return whether a directory can hold matching tensors."""
        return all(getattr(place, name) == value for name, value in self._places.items())

    def __call__(self, entry: Entry) -> bool:
        """Return whether a tensor of such a directory matches."""
        return all(test(entry) for test in self._tests.values())

    @property
    def asked(self) -> dict[str, object]:
        """The given fields."""
        values = {one.name: getattr(self, one.name) for one in fields(self)}
        return {name: value for name, value in values.items() if value is not None}

    def answered(self, entry: Entry) -> Iterator[str]:
        """Return the fields that match a tensor, each tested separately."""
        for name, value in self._places.items():
            if getattr(entry.place, name) == value:
                yield "graph" if name == "graph_id" else name
        for name, test in self._tests.items():
            if test(entry):
                yield name


def absent(choice: Choice, entries: Iterable[Entry]) -> Iterator[str]:
    """Describe what a dump has instead of the requested values, one line for each field without a match.

    Parameters
    ----------
    choice : Choice
    entries : iterable of Entry
        All tensors of the dump; they are read once.

    Yields
    ------
    str
        ``no iteration 7; there are 0-3``. If each field matches separately, one line that says so; for an empty dump,
        nothing.
    """
    asked = choice.asked
    answered: set[str] = set()
    there: dict[str, set[int | str]] = {name: set() for name in asked}
    empty = True
    for entry in entries:
        empty = False
        with suppress(UnreadableError):  # reported where the file itself is read
            answered.update(choice.answered(entry))
            for name in asked:
                if name not in answered:
                    there[name].update(_values(name, entry))
        if len(answered) == len(asked):
            break
    if empty:
        return
    unanswered = [name for name in asked if name not in answered]
    for name in unanswered:
        yield missing(name, asked[name], there[name])
    if not unanswered and len(asked) > 1:
        yield f"each of {', '.join(asked)} matches some tensor, but no tensor matches all of them"


def _values(name: str, entry: Entry) -> Iterator[int | str]:
    """Return the values of an entry in a field."""
    if name == "where":
        return
    if name == "source":
        yield from (f"{line.path.rpartition('/')[2]}:{line.line}" for line in entry.source)
        return
    value = getattr(entry, {"op": "op_name", "graph": "graph_id"}.get(name, name), None)
    if name == "step":
        value = entry.place.step
    if value is not None and value != "":
        yield value


def missing(name: str, asked: object, there: Collection[int | str]) -> str:
    """Report that nothing matches a field, with all values of the dump if they are few, else the nearest ones."""
    if name == "where":
        return "no tensor passes the test"
    word = {"op": "operator called", "op_type": "operator of type", "source": "operator made by"}.get(name, name)
    head = f"no {word} {asked!r}"
    if not there:
        return f"{head}; the dump {'counts' if isinstance(asked, int) else 'names'} none"
    numbers = [value for value in there if isinstance(value, int)]
    if numbers:
        return f"{head}; there {'is' if len(numbers) == 1 else 'are'} {ranges(numbers)}"
    words = [value for value in there if isinstance(value, str)]
    if len(words) <= _SHOWN:
        near = nearest(asked, words)
        return f"{head}; there {'is' if len(words) == 1 else 'are'} {', '.join(sorted(words))}" + (
            f" (did you mean {near!r}?)" if near is not None and len(words) > 1 else ""
        )
    best = nsmallest(_SHOWN, words, key=lambda value: (_far(str(asked), value), value))
    known = nearest(asked, words) if name == "dtype" else None
    if known is not None:
        best = [known, *(value for value in best if value != known)][:_SHOWN]
    return f"{head}; nearest of {len(words)}: {', '.join(best)}"


def _far(asked: str, name: str) -> float:
    """Return the distance between a name and a pattern: that of the nearest part."""
    word = re.sub(r"[*?\[\]]", "", escape(asked.lower()))
    parts = {name.lower(), *re.split(r"[/_-]", name.lower())}
    return 1 - max(SequenceMatcher(None, word, part).ratio() for part in parts)


def ranges(numbers: Iterable[int]) -> str:
    """Format numbers as text, with ranges.

    Examples
    --------
    >>> ranges([5, 0, 1, 2, 9])
    '0-2, 5, 9'
    """
    found: list[list[int]] = []
    for number in sorted(set(numbers)):
        if found and number == found[-1][1] + 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    texts = [str(first) if first == last else f"{first}-{last}" for first, last in found]
    more = f" and {len(texts) - 8} more" if len(texts) > 8 else ""
    return ", ".join(texts[:8]) + more


def _line(source: str) -> tuple[str, str]:
    """Split ``train.py:175`` into file and line; ``train.py`` has no line."""
    name, colon, number = source.rpartition(":")
    if not colon:
        return source, ""
    if not number.isdigit():
        raise BadInputError(f"{number!r} is not a line", where="source", allowed=("train.py:175", "train.py"))
    return name, number


def _made_by(source: str) -> Callable[[Entry], bool]:
    """``train.py:175``: a line inside the range that the graph gives, of a file whose path ends so."""
    name, number = _line(source)

    def test(entry: Entry) -> bool:
        return any(
            (line.path == name or line.path.endswith("/" + name.removeprefix("./")))
            and (
                not number
                or line.line == int(number)
                or (line.line <= int(number) <= line.end_line and not _frame(line))
            )
            for line in entry.source
        )

    return test


def _frame(line: SourceLine) -> bool:
    """Return whether a source line stands for a whole function, not for the operator's own lines."""
    return line.code.lstrip().startswith(("def ", "class ", "@"))
