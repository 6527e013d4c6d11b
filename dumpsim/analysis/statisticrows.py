"""The rows of one statistic.csv in the order of time: the first ones in memory, the others by file offset.

A file of 50 MiB has hundreds of thousands of rows, each of which takes two kilobytes as Python objects. So each row is
split into cells when the file is opened, for its time stamp, and the values of most rows are read again later.
"""

import io
from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterator
from itertools import groupby, islice
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from dumpsim.codecs import statcsv
from dumpsim.core.errors import MissingFileError, UnreadableError
from dumpsim.core.record import Record
from dumpsim.core.regular import RegularFile, open_regular

__all__ = ["Key", "Owner", "Row", "StatisticRows"]

Key = tuple[str, str, int, int]
Row = tuple[Record, dict[str, Any]]

_CACHED = 8192  # rows in memory
_BLOCK = 1 << 18  # bytes to read again at once
_MAX_FILE = (1 << 32) - 1
_SORTED = 4096  # rows of one time stamp to sort by name


class Owner(Protocol):
    """Tensor files, which take the rows that belong to them."""

    def wants(self, key: Key) -> bool:
        """Return whether a row with this operator type, io, slot and time stamp may belong to a file."""
        ...

    def take(self, number: int, row: Row) -> bool:
        """Take a row, with its index in the file; return whether it belongs to a tensor file."""
        ...


class StatisticRows:
    """The rows of a file that belong to no tensor file.

    Parameters
    ----------
    path : Path
        May be absent.
    owner : Owner
    broken : callable or None
        Called with the error of a damaged row, after which no rows follow; None: raise it.
    """

    def __init__(self, path: Path, owner: Owner, broken: Callable[[UnreadableError], None] | None) -> None:
        self._path = path
        self._broken = broken
        self._kept: list[Row] = []
        self._starts = array("L" if array("L").itemsize == 4 else "I")
        self._stamps = array("q")
        self._header = ""
        self.taken: set[int] = set()
        try:
            with open_regular(path, _MAX_FILE) as file:
                self._read(file, owner)
        except MissingFileError:
            return
        except UnreadableError as error:
            if broken is None:
                raise
            broken(error)

    def _read(self, file: RegularFile, owner: Owner) -> None:
        at = 0

        def lines() -> Iterator[str]:
            nonlocal at
            for line in file.lines():
                at += len(line)
                if not self._header:
                    self._header = line.decode("utf-8", "replace")
                    self._starts.append(at)
                yield line.decode("utf-8", "replace")

        for number, cells in enumerate(statcsv.split_lines(lines(), str(self._path))):
            key = cells.key
            wanted = owner.wants(key)
            row = cells.parsed() if wanted or number < _CACHED else None
            self._starts.append(at)  # where the next one starts
            self._stamps.append(key[-1])
            if row is not None and number < _CACHED:
                self._kept.append(row)
            if row is not None and wanted and owner.take(number, row):
                self.taken.add(number)

    def __iter__(self) -> Iterator[Row]:
        """Yield the rows that no tensor file took, by time stamp and name."""
        stamps = np.frombuffer(self._stamps, np.int64) if self._stamps else np.empty(0, np.int64)
        if bool((stamps[1:] >= stamps[:-1]).all()):
            rows = self._in_file_order()
        else:
            rows = self._in_order(np.argsort(stamps, kind="stable"))
        for _, same in groupby(self._sound(rows), key=lambda row: row[0].timestamp):
            while group := list(islice(same, _SORTED)):
                yield from sorted(group, key=_name)

    def _sound(self, rows: Iterator[Row]) -> Iterator[Row]:
        """Yield the rows before the first damaged one."""
        try:
            yield from rows
        except UnreadableError as error:
            if self._broken is None:
                raise
            self._broken(error)

    def _in_file_order(self) -> Iterator[Row]:
        for number, row in enumerate(self._kept):
            if number not in self.taken:
                yield row
        first, count = len(self._kept), len(self._stamps)
        if first >= count:
            return
        with open_regular(self._path) as file:
            while first < count:
                last = max(first + 1, min(count, bisect_right(self._starts, self._starts[first] + _BLOCK) - 1))
                if not self.taken.issuperset(range(first, last)):
                    yield from self._values(file, first, last)
                first = last

    def _in_order(self, order: "np.ndarray[Any, Any]") -> Iterator[Row]:
        with open_regular(self._path) as file:
            for number in map(int, order):
                if number in self.taken:
                    continue
                if number < len(self._kept):
                    yield self._kept[number]
                else:
                    yield from self._values(file, number, number + 1)

    def _values(self, file: RegularFile, first: int, last: int) -> Iterator[Row]:
        """Read the values of rows that were only split before."""
        start = self._starts[first]
        text = file.read_at(start, self._starts[last] - start).decode("utf-8", "replace")
        rows = list(statcsv.split_lines(io.StringIO(self._header + text), str(self._path)))
        if len(rows) != last - first:
            raise UnreadableError("changed while it was read", where=str(self._path), code="DS-CSV-003")
        for number, cells in enumerate(rows, first):
            if number not in self.taken:
                try:
                    yield cells.parsed()
                except UnreadableError:
                    yield cells._replace(line=self._line(file, number)).parsed()

    def _line(self, file: RegularFile, number: int) -> int:
        """Return the line on which a row ends, counted from 1."""
        end = self._starts[number + 1]
        return sum(file.read_at(at, min(_BLOCK, end - at)).count(b"\n") for at in range(0, end, _BLOCK))


def _name(row: Row) -> str:
    return row[0].op_name
