"""The tensors of one directory, by time: npy files, parts of bin files, rows of statistics."""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from dumpsim.analysis.apitree import api_entries
from dumpsim.analysis.bintensor import BinTensor
from dumpsim.analysis.entry import Entry
from dumpsim.analysis.graphindex import GraphIndex
from dumpsim.analysis.place import Place
from dumpsim.archive.naming import BinName, escape, is_dump_file, parse_bin, parse_npy, parse_tensordump
from dumpsim.codecs import mapping, opcsv, statcsv
from dumpsim.codecs.binfile import BinFile
from dumpsim.core.errors import MissingFileError, UnreadableError
from dumpsim.core.record import Record
from dumpsim.core.regular import read_text

__all__ = ["entries", "files", "small_text"]

_CSV_LIMIT = 1 << 28  # bytes of statistics that are read at once

T = TypeVar("T")
Key = tuple[str, str, int, int]


@dataclass(slots=True)
class _Rows:
    """Rows of statistic.csv that wait for their files."""

    rows: dict[Key, list[tuple[Record, dict[str, Any]]]] = field(default_factory=dict)

    def add(self, record: Record, values: dict[str, Any]) -> None:
        key = (record.op_type, record.io, record.slot, record.timestamp)
        self.rows.setdefault(key, []).append((record, values))

    def take(self, record: Record) -> dict[str, Any]:
        """The row of a tensor: that of its operator's name, or the only one of its type and time."""
        key = (record.op_type, record.io, record.slot, record.timestamp)
        found = self.rows.get(key, [])
        same = [n for n, (row, _) in enumerate(found) if escape(row.op_name) == record.op_name]
        if same or len(found) == 1:
            return found.pop(same[0] if same else 0)[1]
        return {}

    def rest(self) -> Iterator[tuple[Record, dict[str, Any]]]:
        for rows in self.rows.values():
            yield from rows


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """A file or a row, before its header is read."""

    record: Record
    path: Path | None
    values: dict[str, Any] = field(default_factory=dict)
    number: int = 0  # of a tensor that the script dumped by itself
    bin: bool = False

    @property
    def order(self) -> tuple[int, int, str]:
        return (self.record.timestamp, self.number, self.record.op_name)


def files(place: Place) -> Iterator[tuple[Path, str]]:
    """Files of a directory that may be a dump's, and their full names where mapping.csv has them; no links."""
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
    """The tensors of a directory, or of one of its files, by time; rows of statistics joined to their files.

    Parameters
    ----------
    broken : callable
        Called with the error of each file that is not what its name says; what comes before the damage is listed. None:
        it is an error.

    Raises
    ------
    UnreadableError
        With file and offset, where a file is not what its name says.
    """
    if place.api:
        yield from _sound(api_entries(place, broken), broken)
        return
    rows = _Rows()
    csv_path = place.path / "statistic.csv"
    if only is None or only == csv_path:
        for record, values in _sound(_csv_rows(csv_path), broken):
            rows.add(record, values)
    known = dict(files(place))
    wanted = known if only is None else {only: known.get(only, only.name)}
    found: list[_Found] = []
    for path, name in wanted.items():
        found.extend(_sound(_file(path, name, rows, loose=only is not None), broken))
    found.extend(_Found(record=record, path=None, values=values) for record, values in rows.rest())
    for item in sorted(found, key=lambda item: item.order):
        if item.bin:
            yield from _sound(_tensors(item, place, graphs), broken)
        else:
            yield Entry(name=item.record, place=place, path=item.path, row=item.values, graphs=graphs)


def _sound(items: Iterator[T], broken: Callable[[UnreadableError], None] | None) -> Iterator[T]:
    """The items up to the first that cannot be read, whose error goes to `broken`."""
    try:
        yield from items
    except UnreadableError as error:
        if broken is None:
            raise
        broken(error)


def _csv_rows(path: Path) -> Iterator[tuple[Record, dict[str, Any]]]:
    yield from statcsv.parse(small_text(path, _CSV_LIMIT), str(path))


def _file(path: Path, name: str, rows: _Rows, *, loose: bool) -> Iterator[_Found]:
    """What one file holds."""
    if name.endswith(".npy"):
        try:
            record = parse_npy(name, where=str(path))
        except UnreadableError:
            yield _own(path, name)
            return
        yield _Found(record=record, path=path, values=rows.take(record))
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
    """A tensor that the script dumped by itself, or a loose npy file: its name is all there is."""
    try:
        record, number = parse_tensordump(name, where=str(path))
    except UnreadableError:
        record = Record(op_type="", op_name=path.stem, io="output", slot=0, dtype="", shape=(), timestamp=0)
        return _Found(record=record, path=path)
    return _Found(record=record, path=path, number=number)


def _tensors(item: _Found, place: Place, graphs: GraphIndex) -> Iterator[Entry]:
    """The tensors of a bin file: inputs, then outputs."""
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
    """Rows of an operator's own statistics."""
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
