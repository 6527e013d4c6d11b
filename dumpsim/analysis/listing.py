"""The tensors of one directory, by time: npy files, parts of bin files, rows of statistics."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from heapq import merge
from pathlib import Path
from typing import Any, TypeVar

from dumpsim.analysis.apitree import api_entries
from dumpsim.analysis.bintensor import BinTensor
from dumpsim.analysis.entry import Entry
from dumpsim.analysis.graphindex import GraphIndex
from dumpsim.analysis.place import Place
from dumpsim.analysis.statisticrows import Key, Row, StatisticRows
from dumpsim.archive.naming import BinName, escape, is_dump_file, parse_bin, parse_npy, parse_tensordump
from dumpsim.codecs import mapping, opcsv
from dumpsim.codecs.binfile import BinFile
from dumpsim.core.errors import MissingFileError, UnreadableError
from dumpsim.core.record import Record
from dumpsim.core.regular import read_text

__all__ = ["entries", "files", "small_text"]

_CSV_LIMIT = 1 << 20  # bytes of the statistics of one operator

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """A file or a row, before its header is read."""

    record: Record
    path: Path | None
    values: dict[str, Any] = field(default_factory=dict)
    number: int = 0  # index of a tensor that the script dumped itself
    bin: bool = False

    @property
    def key(self) -> Key:
        """The key that a row of statistics shares with the file of its tensor."""
        return (self.record.op_type, self.record.io, self.record.slot, self.record.timestamp)

    @property
    def order(self) -> tuple[int, int, str]:
        return (self.record.timestamp, self.number, self.record.op_name)


class _Waiting:
    """Tensor files that wait for their rows of statistic.csv."""

    def __init__(self, found: Sequence[_Found]) -> None:
        self._files: dict[Key, list[_Found]] = {}
        self._others: dict[Key, list[tuple[int, dict[str, Any]]]] = {}  # rows of other names, two at most
        for item in found:
            if not item.bin and item.path is not None:
                self._files.setdefault(item.key, []).append(item)

    def wants(self, key: Key) -> bool:
        """Return whether a file of this type, io, slot and time stamp waits."""
        return bool(self._files.get(key))

    def take(self, number: int, row: Row) -> bool:
        """Assign a row to the waiting file of its operator; return whether there is one."""
        record, values = row
        key = (record.op_type, record.io, record.slot, record.timestamp)
        waiting = self._files.get(key)
        if not waiting:
            return False
        name = escape(record.op_name)
        for item in waiting:
            if item.record.op_name == name:
                item.values.update(values)
                waiting.remove(item)
                return True
        others = self._others.setdefault(key, [])
        if len(others) < 2:
            others.append((number, values))
        return False

    def rest(self) -> set[int]:
        """Assign to files with other names the only row of their type and time; return the indices of these rows."""
        taken = set()
        for key, rows in self._others.items():
            if len(rows) == 1 and self._files[key]:
                self._files[key][0].values.update(rows[0][1])
                taken.add(rows[0][0])
        return taken


def files(place: Place) -> Iterator[tuple[Path, str]]:
    """Return files that may belong to a dump, with their full names from mapping.csv; links are skipped."""
    with os.scandir(place.path) as found:
        names = sorted(entry.name for entry in found if entry.is_file(follow_symlinks=False))
    pairs = place.path / "mapping.csv"
    originals = mapping.read(pairs, frozenset(names)) if pairs.name in names else {}
    for name in names:
        original = originals.get(name, name)
        if is_dump_file(original) and "/" not in original:
            yield place.path / name, original


def entries(
    place: Place,
    graphs: GraphIndex,
    only: Path | None = None,
    broken: Callable[[UnreadableError], None] | None = None,
) -> Iterator[Entry]:
    """Yield the tensors of a directory, or of one of its files, by time; statistics are joined to their files.

    Parameters
    ----------
    broken : callable
        Called with the error of each damaged file; tensors before the damage are listed. None: raise it.

    Raises
    ------
    UnreadableError
        For a damaged file, with its name and the offset.
    """
    if place.api:
        yield from _sound(api_entries(place, broken), broken)
        return
    known = dict(files(place))
    wanted = known if only is None else {only: known.get(only, only.name)}
    found: list[_Found] = []
    for path, name in wanted.items():
        found.extend(_sound(_file(path, name, loose=only is not None), broken))
    found.sort(key=_order)
    items: Iterable[_Found] = found
    csv_path = place.path / "statistic.csv"
    if csv_path in wanted:
        waiting = _Waiting(found)
        rows = StatisticRows(csv_path, waiting, broken)
        rows.taken |= waiting.rest()
        items = merge(found, (_Found(record=record, path=None, values=values) for record, values in rows), key=_order)
    for item in items:
        if item.bin:
            yield from _sound(_tensors(item, place, graphs), broken)
        else:
            yield Entry(name=item.record, place=place, path=item.path, row=item.values, graphs=graphs)


def _sound(items: Iterator[T], broken: Callable[[UnreadableError], None] | None) -> Iterator[T]:
    """Yield the items before the first unreadable one, whose error goes to `broken`."""
    try:
        yield from items
    except UnreadableError as error:
        if broken is None:
            raise
        broken(error)


def _order(item: _Found) -> tuple[int, int, str]:
    return item.order


def _file(path: Path, name: str, *, loose: bool) -> Iterator[_Found]:
    """Yield the tensors of one file."""
    if name.endswith(".npy"):
        try:
            record = parse_npy(name, where=str(path))
        except UnreadableError:
            yield _own(path, name)
            return
        yield _Found(record=record, path=path)
    elif name.endswith(".csv"):
        if name != "statistic.csv" and name != "mapping.csv":
            yield from _statistics(path, parse_bin(name.removesuffix(".csv"), where=str(path)))
    elif not name.endswith(".json"):
        try:
            record = parse_bin(name, where=str(path)).record("output", 0)
        except UnreadableError:
            if not loose:
                raise
            record = Record(op_type="", op_name=path.name, io="output", slot=0, dtype="", shape=(), timestamp=0)
        yield _Found(record=record, path=path, bin=True)


def _own(path: Path, name: str) -> _Found:
    """Return a tensor that the script dumped itself, or a single npy file, of which only the name is known."""
    try:
        record, number = parse_tensordump(name, where=str(path))
    except UnreadableError:
        record = Record(op_type="", op_name=path.stem, io="output", slot=0, dtype="", shape=(), timestamp=0)
        return _Found(record=record, path=path)
    return _Found(record=record, path=path, number=number)


def _tensors(item: _Found, place: Place, graphs: GraphIndex) -> Iterator[Entry]:
    """Yield the tensors of a bin file: inputs, then outputs."""
    assert item.path is not None
    file = BinFile.open(item.path)
    name = file.data.op_name or item.record.op_name
    stamp = item.record.timestamp or file.data.dump_time
    for io, count in (("input", len(file.data.inputs)), ("output", len(file.data.outputs))):
        for slot in range(count):
            part = BinTensor(file=file, io=io, slot=slot)
            record = replace(
                item.record,
                op_name=name,
                timestamp=stamp,
                io=io,
                slot=slot,
                dtype=part.dtype,
                format=part.format,
                shape=part.shape,
                nbytes=part.item.size,
            )
            yield Entry(name=record, place=place, path=item.path, row={}, graphs=graphs, part=part)


def _statistics(path: Path, name: BinName) -> Iterator[_Found]:
    """Yield the rows of an operator's statistics file."""
    for row in opcsv.parse(small_text(path, _CSV_LIMIT), str(path)):
        record = replace(
            name.record(row.io, row.slot), dtype=row.dtype, format=row.format, shape=row.shape, nbytes=row.nbytes
        )
        yield _Found(record=record, path=None, values=dict(row.values))


def small_text(path: Path, limit: int) -> str:
    """Return the text of a file of the tree, empty where it does not exist.

    Raises
    ------
    UnreadableError
        For anything that is not a regular file, and for a file above the limit.
    """
    try:
        return read_text(path, limit)
    except MissingFileError:
        return ""
