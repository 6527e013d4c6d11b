"""The statistics file of one operator, which GE writes instead of its data. [spec ge 3.7]

``{bin name}.csv`` has a row for each input, then for each output. If the device's own processor computes the
statistics, it has all columns; if a kernel does, the columns after Shape are Count and the selected ones.
"""

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dumpsim.codecs.lines import whole_lines
from dumpsim.codecs.protonumber import DTYPES_PROTO, FORMATS
from dumpsim.codecs.statcsv import dimensions, whole
from dumpsim.core.errors import BadInputError, UnreadableError
from dumpsim.core.statistic import STATISTICS, printed

__all__ = [
    "ALL",
    "COLUMNS",
    "ITEMS",
    "Row",
    "dtype_text",
    "format_text",
    "header",
    "line",
    "number",
    "parse",
    "row_end",
    "row_start",
]

COLUMNS = ("Input/Output", "Index", "Data Size", "Data Type", "Format", "Shape")

_GE = sorted((row for row in STATISTICS if row.ge is not None), key=lambda row: row.listed)
TITLES = {row.name: row.ge.title for row in _GE if row.ge is not None}
ALL = tuple(row.name for row in _GE if row.ge is not None and row.ge.processor)  # of the device's processor
ITEMS = tuple(
    row.name for row in _GE if row.ge is not None and row.ge.optional
)  # statistics that can be selected, in their order
_COUNTS = frozenset(row.name for row in _GE if row.count)
_BY_TITLE = {title.lower(): name for name, title in TITLES.items()}

# the writer does not know larger numbers of types and writes them as "-" [spec ge 3.7]
_LAST_DTYPE = next(row.number for row in DTYPES_PROTO.values() if row.name == "DUAL")
_DTYPE_BY_TEXT = {f"DT_{row.name}": row.dtype for row in DTYPES_PROTO.values()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One tensor.

    Attributes
    ----------
    io : str
        ``input`` or ``output``.
    slot, nbytes : int
    dtype, format : str
        Our name of the type, and the vendor's name of the format; empty if the file does not have them.
    shape : tuple of int
    values : tuple of pairs
        Statistics by field name; None if they were not computed.
    """

    io: str
    slot: int
    nbytes: int
    dtype: str
    format: str
    shape: tuple[int, ...]
    values: tuple[tuple[str, "float | int | None"], ...] = ()


def dtype_text(number: int) -> str:
    """Return the text of a type, by its number in dump files.

    Examples
    --------
    >>> dtype_text(1), dtype_text(27)
    ('DT_FLOAT', '-')
    """
    return f"DT_{DTYPES_PROTO[number].name}" if 0 <= number <= _LAST_DTYPE else "-"


def format_text(number: int) -> str:
    """Return the text of a format, by its number."""
    return FORMATS.get(number, "-")


def number(value: float | int | None) -> str:
    """Format a number as a C++ stream does; None is an empty text.

    Examples
    --------
    >>> [number(x) for x in (1234567.0, 65504.0, float("-inf"), 12, None)]
    ['1.23457e+06', '65504', '-inf', '12', '']
    """
    return "" if value is None else printed(value)


def header(chosen: Sequence[str] | None = None) -> str:
    """Format the first line: all columns, or Count and the selected statistics in their fixed order.

    Examples
    --------
    >>> header(["l2norm", "max"]).rstrip().removeprefix(",".join(COLUMNS))
    ',Count,Max Value,l2norm'
    """
    return ",".join((*COLUMNS, *(TITLES[name] for name in _fields(chosen)))) + "\n"


def _fields(chosen: Sequence[str] | None) -> tuple[str, ...]:
    if chosen is None:
        return ALL
    if unknown := [name for name in chosen if name not in ITEMS]:
        raise BadInputError(f"{unknown[0]!r} is not a statistic of GE", allowed=ITEMS, code="DS-CSV-011")
    return ("count", *(name for name in ITEMS if name in chosen))


def line(row: Row, *, dtype: int, format: int, chosen: Sequence[str] | None = None, failed: str = "") -> str:
    """Format one row; types and formats are given as numbers, since some have no text.

    Parameters
    ----------
    row : Row
    dtype, format : int
        Numbers in dump files.
    chosen : sequence of str, optional
        As for `header`.
    failed : str
        Text of a value that was not computed: empty, or ``NA`` for the statistics of a kernel.

    Examples
    --------
    >>> row = Row(io="input", slot=0, nbytes=8, dtype="float32", format="ND", shape=(2, 1),
    ...           values=(("max", 2.5), ("count", 2)))
    >>> line(row, dtype=1, format=2, chosen=["max"])
    'Input,0,8,DT_FLOAT,ND,2x1,2,2.5\\n'
    """
    return row_start(row, dtype=dtype, format=format) + row_end(dict(row.values), chosen, failed)


def row_start(row: Row, *, dtype: int, format: int) -> str:
    """Format the cells of a row before the statistics."""
    shape = "x".join(map(str, row.shape)) or "-"
    common = (row.io.capitalize(), str(row.slot), str(row.nbytes), dtype_text(dtype), format_text(format), shape)
    return ",".join(common) + ","


def row_end(values: Mapping[str, "float | int | None"], chosen: Sequence[str] | None = None, failed: str = "") -> str:
    """Format the statistics of a row, see `line`."""
    cells = [failed if values.get(name) is None else number(values[name]) for name in _fields(chosen)]
    return ",".join(cells) + "\n"


def parse(text: str, where: str = "csv") -> Iterator[Row]:
    """Parse the rows of a file of either writer; an unfinished last line is left out with a warning.

    Raises
    ------
    UnreadableError
        For a row that is not that of a tensor, with the line.

    Examples
    --------
    >>> [row.shape for row in parse(header() + "Output,0,8,DT_FLOAT,ND,2x1,2.5,1,1.75,2,0,0,0\\n")]
    [(2, 1)]
    """
    rows = csv.reader(whole_lines(io.StringIO(text), where))
    try:
        titles = next(rows, [])
        if text and not titles:  # the header itself is unfinished
            return
        if tuple(titles[: len(COLUMNS)]) != COLUMNS:
            raise UnreadableError(
                "first line is not the header of an operator's statistics", where=f"{where}:1", code="DS-CSV-012"
            )
        names = [_BY_TITLE.get(title.lower(), title) for title in titles[len(COLUMNS) :]]
        for cells in rows:
            place = f"{where}:{rows.line_num}"
            if len(cells) != len(titles):
                raise UnreadableError(f"{len(cells)} fields for {len(titles)} columns", where=place, code="DS-CSV-012")
            try:
                yield _row(cells, names)
            except ValueError as error:
                raise UnreadableError(str(error), where=place, code="DS-CSV-012") from None
    except csv.Error as error:
        raise UnreadableError(str(error), where=f"{where}:{rows.line_num}", code="DS-CSV-012") from None


def _row(cells: Sequence[str], names: Sequence[str]) -> Row:
    io_name, slot, size, kind, layout, shape = cells[: len(COLUMNS)]
    if io_name not in ("Input", "Output"):
        raise ValueError(f"{io_name!r} is neither Input nor Output")
    values = tuple((name, _value(name, cell)) for name, cell in zip(names, cells[len(COLUMNS) :], strict=True))
    return Row(
        io=io_name.lower(),
        slot=whole(slot, "slot"),
        nbytes=whole(size, "size"),
        dtype=_DTYPE_BY_TEXT.get(kind, ""),
        format="" if layout in ("-", "UNKNOW") else layout,
        shape=() if shape == "-" else dimensions(shape.split("x")),
        values=values,
    )


def _value(name: str, cell: str) -> Any:
    if cell in ("", "NA"):
        return None
    return whole(cell, name) if name in _COUNTS else float(cell)
