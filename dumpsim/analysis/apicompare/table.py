"""A table of text: as CSV bytes, as console text, as a pandas frame."""

import textwrap
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dumpsim.analysis.frame import frames

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Row", "Table"]

_RED, _PLAIN = "\033[1;31m", "\033[0m"


@dataclass(frozen=True, slots=True)
class Row:
    """Cells of one row.

    Attributes
    ----------
    cells : tuple of (str or None)
        None without a counterpart: empty in files, ``None`` on the console.
    marked : frozenset of int
        Indices of columns that the console shows in red.
    """

    cells: tuple[str | None, ...]
    marked: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A titled table.

    Attributes
    ----------
    title : str
    header : tuple of str
    rows : tuple of Row
    ruled : bool
        Whether the console draws a line after every row.
    padding : int
        Blanks on both sides of cells on the console.
    widest : tuple of int
        Largest widths of columns on the console; longer cells are wrapped.
    """

    title: str
    header: tuple[str, ...]
    rows: tuple[Row, ...] = field(repr=False)
    ruled: bool = False
    padding: int = 1
    widest: tuple[int, ...] = ()

    def __len__(self) -> int:
        return len(self.rows)

    def csv(self) -> str:
        r"""Return the text of the file: all cells quoted, newlines kept, an empty line at the end. [spec api_dump 2.3]

        Examples
        --------
        >>> Table(title="t", header=("a", "b"), rows=(Row(("x", None)),)).csv()
        '"a","b"\n"x",""\n\n'
        """
        lines = [self.header, *(tuple(cell or "" for cell in row.cells) for row in self.rows)]
        body = "".join(",".join('"' + cell.replace('"', '""') + '"' for cell in line) + "\n" for line in lines)
        return body + "\n"

    def to_pandas(self) -> "pd.DataFrame":
        """Return a pandas table of text (extra ``report``); unmatched cells are None."""
        rows = [row.cells for row in self.rows]
        table: pd.DataFrame = frames("pandas").DataFrame(rows, columns=list(self.header), dtype=object)
        return table

    def console(self, *, colour: bool = False) -> str:
        """Return the table with rules and centred cells.

        Examples
        --------
        >>> print(Table(title="sums", header=("a", "b"), rows=(Row(("1", None)),)).console())
        +----------+
        |   sums   |
        +---+------+
        | a |  b   |
        +---+------+
        | 1 | None |
        +---+------+
        """
        limits = self.widest or (None,) * len(self.header)
        texts = [
            [_wrapped("None" if cell is None else cell, limit) for cell, limit in zip(row.cells, limits, strict=True)]
            for row in self.rows
        ]
        widths = [_width(name) for name in self.header]
        for cells in texts:
            widths = [max(w, *map(_width, lines)) for w, lines in zip(widths, cells, strict=True)]
        room = _width(self.title) + 2 - (len(widths) + 1) + 2 * self.padding * (1 - len(widths))
        if sum(widths) < room:  # a wide title stretches the columns [prettytable 3.7: seen]
            total = max(sum(widths), 1)
            widths = [width * room // total for width in widths]
            widths[-1] += room - sum(widths)
        return "\n".join(self._lines(texts, widths, colour))

    def _lines(self, texts: Sequence[Sequence[Sequence[str]]], widths: Sequence[int], colour: bool) -> Iterator[str]:
        """The lines of the console."""
        pad = " " * self.padding
        rule = "+" + "+".join("-" * (width + 2 * self.padding) for width in widths) + "+"
        across = len(rule) - 2
        yield "+" + "-" * across + "+"
        yield "|" + pad + _centred(self.title, across - 2 * self.padding) + pad + "|"
        yield rule
        yield self._line([[name] for name in self.header], widths, frozenset(), 0)
        yield rule
        for row, cells in zip(self.rows, texts, strict=True):
            for at in range(max(map(len, cells))):
                yield self._line(cells, widths, row.marked if colour else frozenset(), at)
            if self.ruled:
                yield rule
        if not self.ruled or not self.rows:
            yield rule

    def _line(self, cells: Sequence[Sequence[str]], widths: Sequence[int], marked: frozenset[int], at: int) -> str:
        """One line of the cells of a row."""
        pad = " " * self.padding
        parts = []
        for column, (lines, width) in enumerate(zip(cells, widths, strict=True)):
            text = lines[at] if at < len(lines) else ""
            shown = _centred(text, width)
            if column in marked and text:
                coloured = (_RED if at == 0 else "") + text + (_PLAIN if at == len(lines) - 1 else "")
                shown = shown.replace(text, coloured, 1)
            parts.append(pad + shown + pad)
        return "|" + "|".join(parts) + "|"


def _wrapped(text: str, limit: int | None) -> list[str]:
    """The lines of a cell."""
    if limit is None or len(text) <= limit:
        return text.split("\n")
    return [part for line in text.split("\n") for part in textwrap.wrap(line, limit) or [""]]


def _width(text: str) -> int:
    """Columns that a text takes on the console."""
    return len(text) if text.isascii() else sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def _centred(text: str, width: int) -> str:
    """A text in the middle; of an odd rest, an odd text has more on its right. [prettytable 3.7: seen]"""
    excess = width - _width(text)
    if excess <= 0:
        return text
    left = excess // 2 + (excess % 2 if _width(text) % 2 == 0 else 0)
    return " " * left + text + " " * (excess - left)
