"""statistic.csv: one row a tensor. [spec mindspore 4.1, 4.3]"""

import csv
import io
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from dumpsim.core.errors import UnreadableError
from dumpsim.core.record import Record

__all__ = ["COMMON", "FIELDS", "TITLES", "Dialect", "header", "number", "parse", "row"]

COMMON = ("Op Type", "Op Name", "Task ID", "Stream ID", "Timestamp", "IO", "Slot", "Data Size", "Data Type", "Shape")

# statistic_category -> column title [spec mindspore 4.1]
TITLES = {
    "max": "Max Value",
    "min": "Min Value",
    "avg": "Avg Value",
    "count": "Count",
    "negative zero count": "Negative Zero Count",
    "positive zero count": "Positive Zero Count",
    "nan count": "NaN Count",
    "negative inf count": "Negative Inf Count",
    "positive inf count": "Positive Inf Count",
    "zero count": "Zero Count",
    "l2norm": "L2Norm Value",
    "md5": "MD5",
    "hash": "SHA1",
    "hash:sha1": "SHA1",
    "hash:md5": "MD5",
}

# statistic_category -> field of Statistics
FIELDS = {
    "max": "max",
    "min": "min",
    "avg": "avg",
    "count": "count",
    "negative zero count": "negative",
    "positive zero count": "positive",
    "nan count": "nan",
    "negative inf count": "negative_inf",
    "positive inf count": "positive_inf",
    "zero count": "zero",
    "l2norm": "l2norm",
}
_COUNTS = frozenset(FIELDS.values()) - {"max", "min", "avg", "l2norm"}
_BY_TITLE = {title: name for name, title in TITLES.items() if name in FIELDS}


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """How a release writes rows.

    Attributes
    ----------
    brackets : str
        ``()`` or ``[]`` around the shape.
    trailing_field : bool
        Every row ends with an empty field. [spec mindspore 4.1]
    """

    brackets: str = "()"
    trailing_field: bool = False


def number(value: float | int | None) -> str:
    """A number as a C++ stream prints it: six significant digits. [spec mindspore 4.3]

    Examples
    --------
    >>> [number(x) for x in (9.539392, 1e6, 3.4028235e38, float("-inf"), float("nan"), -0.0, 7, None)]
    ['9.53939', '1e+06', '3.40282e+38', '-inf', 'nan', '-0', '7', 'null']
    """
    if value is None:
        return "null"
    if isinstance(value, int):  # True and False, too
        return str(value)
    if math.isnan(value):
        return "nan"
    return f"{value:.6g}"


def header(categories: Sequence[str]) -> str:
    """The first line.

    Examples
    --------
    >>> header(["max", "l2norm"]).rstrip().removeprefix(",".join(COMMON))
    ',Max Value,L2Norm Value'
    """
    return ",".join((*COMMON, *(TITLES[name] for name in categories))) + "\n"


def row(record: Record, op_name: str, cells: Sequence[str], dialect: Dialect) -> str:
    """One line: the common columns and the cells of the categories, in the header's order."""
    dims = ",".join(str(dim) for dim in record.shape)
    shape = f'"{dialect.brackets[0]}{dims}{dialect.brackets[1]}"'
    common = (
        record.op_type,
        op_name,
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


def parse(text: str, where: str = "statistic.csv") -> Iterator[tuple[Record, dict[str, Any]]]:
    """Records and their statistics by field name; digests appear under ``md5`` and ``sha1``.

    Both bracket styles, a trailing empty field and any set of categories are accepted.

    Raises
    ------
    UnreadableError
        With the line, for a row that is not a tensor's.
    """
    rows = csv.reader(io.StringIO(text))
    try:
        titles = next(rows, None)
        if titles is None:
            return
        if tuple(titles[: len(COMMON)]) != COMMON:
            raise UnreadableError(
                "first line is not the header of a statistic.csv", where=f"{where}:1", code="DS-CSV-001"
            )
        extra = titles[len(COMMON) :]
        for fields in rows:
            place = f"{where}:{rows.line_num}"
            if len(fields) < len(titles):
                raise UnreadableError(f"{len(fields)} fields for {len(titles)} columns", where=place, code="DS-CSV-002")
            try:
                found = _record(fields), dict(_value(*pair) for pair in zip(extra, fields[len(COMMON) :], strict=False))
            except ValueError as error:
                raise UnreadableError(str(error), where=place, code="DS-CSV-003") from None
            yield found
    except csv.Error as error:
        raise UnreadableError(str(error), where=f"{where}:{rows.line_num}", code="DS-CSV-003") from None


def _record(fields: Sequence[str]) -> Record:
    """The tensor of a row."""
    op_type, op_name, task, stream, stamp, io_name, slot, size, kind, shape = fields[: len(COMMON)]
    return Record(
        op_type=op_type,
        op_name=op_name,
        task_id=int(task),
        stream_id=int(stream),
        timestamp=int(stamp),
        io=io_name,
        slot=int(slot),
        nbytes=int(size),
        dtype=kind,
        shape=tuple(int(dim) for dim in shape.strip("()[]").split(",") if dim.strip()),
    )


def _value(title: str, cell: str) -> tuple[str, Any]:
    """Field name and Python value of one cell."""
    if title in ("MD5", "SHA1"):
        return title.lower(), cell
    name = FIELDS.get(_BY_TITLE.get(title, ""), title)
    if cell in ("null", ""):
        return name, None
    if cell in ("True", "False"):
        return name, cell == "True"
    return name, int(cell) if name in _COUNTS else float(cell)
