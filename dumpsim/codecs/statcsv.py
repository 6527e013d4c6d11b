"""statistic.csv: one row per tensor. [spec mindspore 4.1, 4.3]"""

import csv
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple

from dumpsim.codecs.lines import whole_lines
from dumpsim.core.errors import UnreadableError
from dumpsim.core.record import Record
from dumpsim.core.statistic import DIGESTS, STATISTICS, TITLES, printed

__all__ = [
    "COMMON",
    "Cells",
    "Dialect",
    "dimensions",
    "header",
    "number",
    "parse",
    "parse_lines",
    "row",
    "split_lines",
    "whole",
]

COMMON = ("Op Type", "Op Name", "Task ID", "Stream ID", "Timestamp", "IO", "Slot", "Data Size", "Data Type", "Shape")

_SPECIAL = re.compile(r'[,"\r\n]').search
_BY_TITLE = {row.title: row for row in STATISTICS}
_TOO_LARGE = 1 << 63
_LONGEST = 40  # characters of an integer, with spaces
_LARGEST = 1 << 48
_MAX_DIMENSIONS = 32
_DIGESTS = {row.title: row.name for row in DIGESTS}


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """The form of rows in a release.

    Attributes
    ----------
    brackets : str
        Brackets around the shape: ``()`` or ``[]``.
    trailing_field : bool
        Whether every row ends with an empty field. [spec mindspore 4.1]
    """

    brackets: str = "()"
    trailing_field: bool = False


def number(value: float | int | None) -> str:
    """Format the cell of a number; None is ``null``. [spec mindspore 4.3]

    Examples
    --------
    >>> number(9.539392), number(None)
    ('9.53939', 'null')
    """
    return "null" if value is None else printed(value)


def header(names: Sequence[str]) -> str:
    """Format the first line, for statistics and digests by name.

    Examples
    --------
    >>> header(["max", "l2norm"]).rstrip().removeprefix(",".join(COMMON))
    ',Max Value,L2Norm Value'
    """
    return ",".join((*COMMON, *(TITLES[name] for name in names))) + "\n"


def row(record: Record, op_name: str, cells: Sequence[str], dialect: Dialect) -> str:
    r"""Format one line: the common columns and the cells of the statistics, in the header's order.

    Names are not quoted, as in real files, unless that would break the row: then they are quoted as in csv, with
    newlines as ``\n`` and ``\r``, so that a row is always one line.
    """
    dims = ",".join(str(dim) for dim in record.shape)
    shape = f'"{dialect.brackets[0]}{dims}{dialect.brackets[1]}"'
    common = (
        _name(record.op_type),
        _name(op_name),
        str(record.task_id),
        str(record.stream_id),
        str(record.timestamp),
        record.io,
        str(record.slot),
        str(record.nbytes),
        record.dtype,
        shape,
    )
    return ",".join((*common, *cells)) + (",\n" if dialect.trailing_field else "\n")


def _name(name: str) -> str:
    """Format a name as a cell."""
    if _SPECIAL(name) is None:
        return name
    return '"' + name.replace("\n", "\\n").replace("\r", "\\r").replace('"', '""') + '"'


def parse(text: str, where: str = "statistic.csv") -> Iterator[tuple[Record, dict[str, Any]]]:
    """Parse records and their statistics by field name; digests have the names ``md5`` and ``sha1``.

    Both kinds of brackets, a trailing empty field and any set of statistics are accepted. An unfinished last line is
    left out with a warning.

    Raises
    ------
    UnreadableError
        For a row that is not that of a tensor, with the line.
    """
    return parse_lines(io.StringIO(text), where)


def parse_lines(lines: Iterable[str], where: str = "statistic.csv") -> Iterator[tuple[Record, dict[str, Any]]]:
    """Parse lines with their newlines, as `parse`."""
    return (one.parsed() for one in split_lines(lines, where))


class Cells(NamedTuple):
    """The cells of one row as text, which are parsed on request.

    Attributes
    ----------
    fields : list of str
    extra : list of str
        Titles of the columns after the common ones.
    where : str
    line : int
    """

    fields: list[str]
    extra: list[str]
    where: str
    line: int

    @property
    def key(self) -> tuple[str, str, int, int]:
        """Operator type, io, slot and time stamp.

        Raises
        ------
        UnreadableError
        """
        try:
            return self.fields[0], self.fields[5], whole(self.fields[6], "slot"), whole(self.fields[4], "time stamp")
        except ValueError as error:
            raise self._unreadable(error) from None

    def parsed(self) -> tuple[Record, dict[str, Any]]:
        """Parse the record and its statistics by field name.

        Raises
        ------
        UnreadableError
            For a row that is not that of a tensor.
        """
        try:
            return _record(self.fields), dict(map(_value, self.extra, self.fields[len(COMMON) :]))
        except ValueError as error:
            raise self._unreadable(error) from None

    def _unreadable(self, error: ValueError) -> UnreadableError:
        return UnreadableError(str(error), where=f"{self.where}:{self.line}", code="DS-CSV-003")


def split_lines(lines: Iterable[str], where: str = "statistic.csv") -> Iterator[Cells]:
    """Split lines with their newlines into the cells of each row.

    Raises
    ------
    UnreadableError
        For a row with too few cells, with the line.
    """
    rows = csv.reader(whole_lines(lines, where))
    try:
        titles = next(rows, None)
        if titles is None:
            return
        if tuple(titles[: len(COMMON)]) != COMMON or rows.line_num != 1:
            raise UnreadableError(
                "first line is not the header of a statistic.csv", where=f"{where}:1", code="DS-CSV-001"
            )
        extra = titles[len(COMMON) :]
        for fields in rows:
            if len(fields) < len(titles):
                place = f"{where}:{rows.line_num}"
                raise UnreadableError(f"{len(fields)} fields for {len(titles)} columns", where=place, code="DS-CSV-002")
            yield Cells(fields, extra, where, rows.line_num)
    except csv.Error as error:
        raise UnreadableError(str(error), where=f"{where}:{rows.line_num}", code="DS-CSV-003") from None


def _record(fields: Sequence[str]) -> Record:
    """Parse the tensor of a row."""
    op_type, op_name, task, stream, stamp, io_name, slot, size, kind, shape = fields[: len(COMMON)]
    return Record(
        op_type=op_type,
        op_name=op_name,
        task_id=whole(task, "task id", signed=True),
        stream_id=whole(stream, "stream id", signed=True),
        timestamp=whole(stamp, "time stamp"),
        io=io_name,
        slot=whole(slot, "slot"),
        nbytes=whole(size, "size"),
        dtype=kind,
        shape=dimensions(dim for dim in shape.strip("()[]").split(",") if dim.strip()),
    )


def whole(text: str, what: str, *, signed: bool = False) -> int:
    """Parse an integer of at most 63 bits, which all readers of tables support.

    Raises
    ------
    ValueError

    Examples
    --------
    >>> whole("12", "slot")
    12
    """
    number = int(text) if len(text) <= _LONGEST else _TOO_LARGE
    if not (-_TOO_LARGE if signed else 0) <= number < _TOO_LARGE:
        low = "-2**63" if signed else "0"
        raise ValueError(f"{what} {text[:_LONGEST]} is not possible; allowed: {low} to 2**63 - 1")
    return number


def dimensions(texts: Iterable[str]) -> tuple[int, ...]:
    """Parse a shape.

    Raises
    ------
    ValueError
        For more than 32 dimensions, or one that is negative or not below 2**48.
    """
    shape = tuple(whole(text, "dimension") for text in islice(texts, _MAX_DIMENSIONS + 1))
    if len(shape) > _MAX_DIMENSIONS or any(dim >= _LARGEST for dim in shape):
        shown = str(shape[:_MAX_DIMENSIONS])[:200]
        raise ValueError(f"shape {shown} is not possible; allowed: {_MAX_DIMENSIONS} dimensions, each below 2**48")
    return shape


def _value(title: str, cell: str) -> tuple[str, Any]:
    """Return field name and value of one cell."""
    if title in _DIGESTS:
        return _DIGESTS[title], cell
    row = _BY_TITLE.get(title)
    name = title if row is None else row.name
    if cell in ("null", ""):
        return name, None
    if cell in ("True", "False"):
        return name, cell == "True"
    return name, whole(cell, title) if row is not None and row.count else float(cell)
