"""The records of an API dump as entries: lines of the info file, joined to npy files and call stacks."""

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from dumpsim.analysis.entry import Entry
from dumpsim.analysis.graphindex import GraphIndex
from dumpsim.analysis.place import Place
from dumpsim.codecs.apidump import (
    LAYER,
    ApiName,
    ApiRecord,
    file_name,
    is_statistics_free,
    parse_name,
    read_info,
    read_stack,
    stack_keys,
)
from dumpsim.core.dtype import DTYPES
from dumpsim.core.errors import DumpsimError, MissingFileError, UnreadableError
from dumpsim.core.irdoc import IrDoc, SourceLine
from dumpsim.core.record import Record
from dumpsim.core.regular import regular_names

__all__ = ["ApiEntry", "StackIndex", "api_entries"]

_TITLES = {row.title: row.name for row in DTYPES.values()}
_SCALARS = {"int": "int64", "float": "float64", "bool": "bool"}  # of Python [spec api_dump 1.4]
_STATISTICS = {"max": "max", "min": "min", "mean": "avg"}  # of a line -> of a row
_FRAME = re.compile(r"File (?P<path>.*?), line (?P<line>\d{1,9}), in (?P<func>.*?), \n ?(?P<code>.*)", re.DOTALL)


class StackIndex(GraphIndex):
    """The stack file, in the role of graphs: it has the script lines of calls, but no nodes.

    Parameters
    ----------
    directory : Path
        ``{framework}_api_dump_stack.json`` (a file, in spite of the name); may be absent.
    broken : callable
        See `GraphIndex`.
    """

    @cached_property
    def documents(self) -> dict[int, IrDoc]:
        """No graphs."""
        return {}

    @cached_property
    def _stacks(self) -> Mapping[str, tuple[str, ...]]:
        try:
            return read_stack(self.directory)
        except MissingFileError:
            return {}
        except UnreadableError as error:
            if self.broken is None:
                raise
            self.broken(error)
            return {}

    def lines(self, op_name: str, graph_id: int | None) -> tuple[SourceLine, ...]:
        """Return the script lines of a call, outermost first; a backward call has those of its forward call."""
        frames = self.frames(parse_name(f"{op_name}_input"))
        return tuple(line for frame in reversed(frames) if (line := _line(frame)) is not None)

    def frames(self, name: ApiName) -> tuple[str, ...]:
        """Return the frames of a call from the file, innermost first; empty if they were not recorded."""
        return next((frames for key in stack_keys(name) if (frames := self._stacks.get(key))), ())


@dataclass(frozen=True, kw_only=True)
class ApiEntry(Entry):
    """A tensor of an API dump.

    Attributes
    ----------
    line : ApiRecord
        The record in the info file.
    parts : ApiName
        The parts of the record's name.
    graphs : StackIndex
    """

    line: ApiRecord
    parts: ApiName
    graphs: StackIndex

    @property
    def extremes(self) -> tuple[float, float, float]:
        """Maximum, minimum and mean from the record, or else from the file; NaN if unknown."""
        if is_statistics_free(self.line) and self.measurable and 0 not in self.line.shape:
            try:
                return float(self.statistics.max), float(self.statistics.min), float(self.statistics.avg)
            except (DumpsimError, OSError):
                return math.nan, math.nan, math.nan
        return self.line.max, self.line.min, self.line.mean

    @property
    def stack(self) -> tuple[str, ...]:
        """The stack of the call, innermost frame first; for a gradient, that of the forward call."""
        return self.graphs.frames(self.parts)


def _line(frame: str) -> SourceLine | None:
    found = _FRAME.fullmatch(frame)
    if found is None:
        return None
    line = int(found["line"])
    return SourceLine(path=found["path"], line=line, end_line=line, column=-1, end_column=-1, code=found["code"])


def api_entries(place: Place, broken: Callable[[UnreadableError], None] | None = None) -> Iterator[ApiEntry]:
    """Yield the tensors of a rank's API dump, in the order of the info file.

    A step begins with the first forward record after a backward one; the place's iteration counts the steps, the time
    stamp the records. [spec api_dump 2.1] `broken` is called with the error of an unreadable stack file.

    Raises
    ------
    UnreadableError
        For an invalid line, with file and line number, after the tensors of the lines before it.
    """
    stem = f"{place.api}_api_dump"
    listed = regular_names(place.path, below=place.path)
    info = next((place.path / f"{stem}_info.{end}" for end in ("pkl", "csv") if f"{stem}_info.{end}" in listed), None)
    if info is None:
        raise MissingFileError("does not exist", where=str(place.path / f"{stem}_info.pkl"), code="DS-FIL-003")
    records: list[tuple[ApiRecord, ApiName]] = []
    damage: UnreadableError | None = None
    try:
        for number, record in enumerate(read_info(info), 1):
            records.append((record, _name(record, info, number)))
    except UnreadableError as error:
        damage = error
    asked = _measured(record for record, name in records if name.kind != LAYER)
    arrays = _arrays(place.path, stem, broken)
    stacks = StackIndex(place.path / f"{stem}_stack.json", broken)
    slots = _slots([name for _, name in records])
    step, backward, here = 0, False, replace(place, iteration=0)
    for number, (record, name) in enumerate(records):
        if backward and name.direction == "forward":
            step += 1
            here = replace(place, iteration=step)
        backward = name.direction == "backward"
        path = arrays.get(file_name(record.name))
        fields = Record(
            op_type=name.api if name.kind != LAYER else LAYER,
            op_name=f"{name.call}_{name.direction}",
            io=name.io,
            slot=slots[name],
            dtype=_dtype(record.dtype),
            shape=record.shape,
            timestamp=number,
        )
        row = _row(record, measured=asked) if name.kind != LAYER else {}
        yield ApiEntry(name=fields, place=here, path=path, row=row, graphs=stacks, line=record, parts=name)
    if damage is not None:
        raise damage


def _name(record: ApiRecord, info: Path, number: int) -> ApiName:
    """Parse a record's name."""
    try:
        return parse_name(record.name)
    except UnreadableError as error:
        raise UnreadableError(error.what, where=f"{info}: record {number}", code=error.code) from None


def _arrays(place: Path, stem: str, broken: Callable[[UnreadableError], None] | None) -> dict[str, Path]:
    """Return the npy files of a rank by name; a link in the place of their directory is refused."""
    directory = place / stem
    try:
        return {name: directory / name for name in regular_names(directory, below=place)}
    except UnreadableError as error:
        if broken is None:
            raise
        broken(error)
        return {}


def _slots(names: Sequence[ApiName]) -> dict[ApiName, int]:
    """Return indices of arguments and results: positions, or their order in the call if one is nested."""
    calls: dict[tuple[str, str, str], dict[tuple[int | str, ...], ApiName]] = {}
    for name in names:
        calls.setdefault((name.call, name.direction, name.io), {}).setdefault(name.index, name)
    slots: dict[ApiName, int] = {}
    for found in calls.values():
        flat = all(len(index) <= 1 and all(isinstance(part, int) for part in index) for index in found)
        for rank, (index, name) in enumerate(found.items()):
            slots[name] = int(index[0]) if flat and index else 0 if flat else rank
    return slots


def _dtype(text: str) -> str:
    """``torch.float32``, ``Float32`` and ``<class 'int'>`` as names of ours."""
    if text.startswith("<class '"):
        return _SCALARS.get(text[8:-2], text[8:-2])
    word = text.removeprefix("torch.").removeprefix("mindtorch.torch.")
    return _TITLES.get(word, word.lower())


def _measured(records: Iterable[ApiRecord]) -> frozenset[str]:
    """Which statistics were asked for: NaN stands in every line for one that was not. [spec api_dump 1.4]"""
    found: set[str] = set()
    for record in records:
        found.update(name for name in _STATISTICS if (value := getattr(record, name)) == value)
        if len(found) == len(_STATISTICS):
            break
    return frozenset(found)


def _row(record: ApiRecord, *, measured: frozenset[str]) -> dict[str, Any]:
    """Return the statistics of a record; empty if it has none, which is also written as NaN."""
    if is_statistics_free(record) and ("loat" not in record.dtype or 0 in record.shape):
        measured = frozenset()
    row: dict[str, Any] = {ours: getattr(record, name) for name, ours in _STATISTICS.items() if name in measured}
    if record.l2norm is not None:
        row["l2norm"] = record.l2norm
    if record.md5 is not None:
        row["md5"] = record.md5
    return row
