"""Tables on a terminal: lines fit its width, rows with NaN or infinity are red."""

import os
from collections.abc import Iterable, Iterator, Sequence
from itertools import compress, takewhile

__all__ = ["Table", "middle"]

_NAMES = frozenset(
    {"op_name", "other_name", "source", "note", "reason", "place", "path"}
)  # columns that may be shortened
_ALWAYS = frozenset({"op_name", "op_type", "io", "slot"})  # columns to show even if all rows have the same value
_NARROW = 18  # smallest width of such a column
_WORTH = 8  # shortest common scope to take out of the rows
_BAD = frozenset({"nan", "inf", "-inf"})


class Table:
    """Rows of a table that fits the terminal as far as names stay distinguishable.

    Rich's tables take a millisecond per row.
    """

    def __init__(self, columns: Sequence[str]) -> None:
        self.columns = columns
        self.widths = [len(name) for name in columns]
        self.name = columns.index("op_name") if "op_name" in columns else None
        self.scope: list[str] | None = None  # common to all names, part by part
        self.same: list[str | None] = []  # by column: the value that all rows have
        self.rows = 0

    def measure(self, cells: Sequence[str]) -> None:
        """Take note of the widths of a row that is shown later."""
        self.rows += 1
        self.widths = [max(width, len(cell)) for width, cell in zip(self.widths, cells, strict=True)]
        if self.rows == 1:
            self.same = [*cells]
        else:
            self.same = [cell if cell == same else None for cell, same in zip(cells, self.same, strict=True)]
        if self.name is not None:
            scope = cells[self.name].split("/")[:-1]
            if self.scope is not None:
                same = takewhile(lambda pair: pair[0] == pair[1], zip(self.scope, scope, strict=False))
                scope = [part for part, _ in same]
            self.scope = scope

    def lines(self, rows: Iterable[Sequence[str]], used: Sequence[bool], screen: int) -> Iterator[str]:
        """Return the header and the rows; values that all rows share are printed once if lines would be too long."""
        colour = not os.environ.get("NO_COLOR")
        shown, widths, common, cut = [*used], [*self.widths], [], 0
        excess = sum(compress(widths, shown)) + 2 * (sum(shown) - 1) - screen
        if excess > 0 and self.rows > 1:
            for at, (name, same) in enumerate(zip(self.columns, self.same, strict=True)):
                if shown[at] and same is not None and name not in _ALWAYS:
                    common.append(f"{name} {same}")
                    shown[at] = False
                    excess -= widths[at] + 2
            scope = "/".join([*(self.scope or ()), ""])
            if excess > 0 and self.name is not None and len(scope) > _WORTH:
                common.append(f"op_name below {scope}")
                cut = len(scope)
                narrow = max(widths[self.name] - cut, len(self.columns[self.name]))
                excess -= widths[self.name] - narrow
                widths[self.name] = narrow
        self._shorten(widths, shown, excess)
        if common:
            yield f"in all rows: {', '.join(common)}"
        head = self._line(self.columns, shown, widths)
        yield f"\x1b[1m{head}\x1b[0m" if colour else head
        for row in rows:
            cells = [*row]
            if self.name is not None:
                cells[self.name] = cells[self.name][cut:]
            text = self._line(cells, shown, widths)
            yield f"\x1b[31m{text}\x1b[0m" if colour and not _BAD.isdisjoint(row) else text

    def _shorten(self, widths: list[int], shown: Sequence[bool], excess: int) -> None:
        """Shorten columns that hold names, the widest first, until lines fit."""
        named = [at for at, name in enumerate(self.columns) if shown[at] and name in _NAMES]
        for at in sorted(named, key=lambda at: -widths[at]):
            taken = max(min(excess, widths[at] - _NARROW), 0)
            widths[at] -= taken
            excess -= taken

    @staticmethod
    def _line(cells: Sequence[str], used: Sequence[bool], widths: Sequence[int]) -> str:
        """Join the cells of the columns in use, padded to their widths."""
        fitted = (middle(cell, width).ljust(width) for cell, width in zip(cells, widths, strict=True))
        return "  ".join(compress(fitted, used)).rstrip()


def middle(text: str, width: int) -> str:
    """Shorten text in the middle to a width, since names differ at their ends.

    Examples
    --------
    >>> middle("Default/layer3-CellList/5-Block/conv1-Conv2d/Conv2D-op17", 30)
    'Default/la…-Conv2d/Conv2D-op17'
    """
    if len(text) <= width:
        return text
    tail = (width - 1) * 2 // 3
    return f"{text[: width - 1 - tail]}…{text[len(text) - tail :]}"
