"""The rows of one statistic.csv in the order of time: the first ones in memory, the others by where they are.

A file of 50 MiB has hundreds of thousands of rows, each of which takes two kilobytes as Python objects.
"""

from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from dumpsim.codecs import statcsv
from dumpsim.core.errors import MissingFileError, UnreadableError
from dumpsim.core.record import Record
from dumpsim.core.regular import RegularFile, open_regular

__all__ = ["Row", "StatisticRows"]

Row = tuple[Record, dict[str, Any]]

_KEPT = 8192  # rows in memory
_BLOCK = 1 << 18  # bytes that are read again at once
_MAX_FILE = (1 << 32) - 1
_SORTED = 4096  # rows of one time stamp that are put in the order of their names


class StatisticRows:
    """The rows of a file, some of which `take` claims for their tensor files.

    Parameters
    ----------
    path : Path
        May be absent.
    take : callable
        Called with each row and its number in the order of the file; True where the row belongs to a tensor file.
    broken : callable or None
        Called with the error of a damaged row, which ends the rows; None: it is raised.
    """

    def __init__(
        self, path: Path, take: Callable[[int, Row], bool], broken: Callable[[UnreadableError], None] | None
    ) -> None:
        self._path = path
        self._kept: list[Row] = []
        self._starts = array("L" if array("L").itemsize == 4 else "I")
        self._stamps = array("q")
        self._header = ""
        self.taken: set[int] = set()
        try:
            with open_regular(path, _MAX_FILE) as file:
                self._read(file, take)
        except MissingFileError:
            return
        except UnreadableError as error:
            if broken is None:
                raise
            broken(error)

    def _read(self, file: RegularFile, take: Callable[[int, Row], bool]) -> None:
        at = 0

        def lines() -> Iterator[str]:
            nonlocal at
            for line in file.lines():
                at += len(line)
                if not self._header:
                    self._header = line.decode("utf-8", "replace")
                    self._starts.append(at)
                yield line.decode("utf-8", "replace")

        for number, row in enumerate(statcsv.parse_lines(lines(), str(self._path))):
            self._starts.append(at)  # where the next one starts
            self._stamps.append(row[0].timestamp)
            if take(number, row):
                self.taken.add(number)
            if number < _KEPT:
                self._kept.append(row)

    def __iter__(self) -> Iterator[Row]:
        """The rows that no tensor file took, by time stamp and name."""
        stamps = np.frombuffer(self._stamps, np.int64) if self._stamps else np.empty(0, np.int64)
        if bool((stamps[1:] >= stamps[:-1]).all()):
            rows = self._in_file_order()
        else:
            rows = self._in_order(np.argsort(stamps, kind="stable"))
        for _, same in groupby(rows, key=lambda row: row[0].timestamp):
            group: list[Row] = []
            for row in same:
                group.append(row)
                if len(group) == _SORTED:
                    yield from sorted(group, key=_name)
                    group = []
            yield from sorted(group, key=_name)

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
                for number, row in enumerate(self._again(file, first, last), first):
                    if number not in self.taken:
                        yield row
                first = last

    def _in_order(self, order: "np.ndarray[Any, Any]") -> Iterator[Row]:
        with open_regular(self._path) as file:
            for number in map(int, order):
                if number in self.taken:
                    continue
                yield self._kept[number] if number < len(self._kept) else self._again(file, number, number + 1)[0]

    def _again(self, file: RegularFile, first: int, last: int) -> list[Row]:
        """Read rows again."""
        start = self._starts[first]
        text = file.read_at(start, self._starts[last] - start).decode("utf-8", "replace")
        rows = list(statcsv.parse(self._header + text, str(self._path)))
        if len(rows) != last - first:
            raise UnreadableError("was changed while it was read", where=str(self._path), code="DS-CSV-003")
        return rows


def _name(row: Row) -> str:
    return row[0].op_name
