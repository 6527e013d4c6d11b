"""Output of the commands: tables on a terminal, tab-separated lines in a pipe, JSON lines; progress bars on stderr."""

import json
import math
import re
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from itertools import compress
from tempfile import SpooledTemporaryFile
from typing import Any, TypeVar

from dumpsim.cli.table import Table

__all__ = ["echo", "human_bytes", "plain", "print_json", "print_rows", "progress"]

T = TypeVar("T")

_IN_MEMORY = 1 << 24  # bytes of rows to buffer in memory
# control characters, marks of direction, line and paragraph separators, halves of surrogate pairs
_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]")


def plain(value: object) -> str:
    """Return a value as text that is safe to print: control characters become escapes, as in Python literals.

    Names in a dump are untrusted. Control characters, marks that change the direction of text and undecodable bytes are
    replaced; so are newlines and tabs, which would break tables.

    Examples
    --------
    >>> print(plain("conv\\x1b]0;owned\\x07\\n"), plain("relu é"))
    conv\\x1b]0;owned\\x07\\n relu é
    """
    text = str(value)
    return text if text.isprintable() else _UNPRINTABLE.sub(lambda found: ascii(found[0])[1:-1], text)


def echo(text: object, *, err: bool = False) -> None:
    """Print text of one or several lines, each as `plain` gives it, to stdout or stderr."""
    print("\n".join(map(plain, str(text).split("\n"))), file=sys.stderr if err else sys.stdout)


def human_bytes(count: float) -> str:
    """Format a number of bytes with a unit.

    Examples
    --------
    >>> human_bytes(512), human_bytes(2_500_000)
    ('512 B', '2.4 MiB')
    """
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(count) < 1024:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} TiB"


def print_json(value: Any) -> None:
    """Print a value as JSON on one line.

    NaN and infinities, which JSON cannot represent, become the strings "nan", "inf" and "-inf"; a complex number
    becomes a pair.
    """
    text = json.dumps(_plain(value), ensure_ascii=False)
    # json escapes the first 32 control characters only
    print(text if text.isprintable() else _UNPRINTABLE.sub(lambda found: json.dumps(found[0])[1:-1], text))


def _plain(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, complex):
        return [_plain(value.real), _plain(value.imag)]
    if isinstance(value, Mapping):
        return {str(key): _plain(member) for key, member in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(member) for member in value]
    if hasattr(value, "item"):
        return _plain(value.item())
    return value


def print_rows(
    columns: Sequence[str],
    rows: Iterable[Mapping[str, Any]],
    *,
    as_json: bool = False,
    optional: Set[str] = frozenset(),
) -> int:
    """Print rows as a table on a terminal, tab-separated when piped, or as JSON lines; return their number.

    Columns in `optional` that no row has a value for are left out. Rows are kept in a temporary file until their
    widths and columns are known.
    """
    count = 0
    if as_json:
        for count, row in enumerate(rows, 1):  # noqa: B007
            print_json(row)
        return count
    table = Table(columns)
    used = [name not in optional for name in columns]
    terminal = sys.stdout.isatty()
    with SpooledTemporaryFile(_IN_MEMORY, "w+", encoding="utf-8", newline="\n") as spool:
        for count, row in enumerate(rows, 1):  # noqa: B007
            values = [row.get(name) for name in columns]
            cells = [_cell(value) for value in values]
            used = [known or value is not None for known, value in zip(used, values, strict=True)]
            if terminal:
                table.measure(cells)
            spool.write("\t".join(cells) + "\n")
        spool.seek(0)
        lines = (line[:-1].split("\t") for line in spool)
        if terminal:
            for text in table.lines(lines, used, shutil.get_terminal_size().columns):
                print(text)
        else:
            print("\t".join(compress(columns, used)))
            for cells in lines:
                print("\t".join(compress(cells, used)))
    return count


def _cell(value: Any) -> str:
    """Format a value as text on one line."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, list | tuple):
        return f"({','.join(map(plain, value))})"
    return plain(value)


def progress(items: Iterable[T], *, what: str, total: int | Callable[[], int] | None = None) -> Iterator[T]:
    """The items, with a bar on stderr while a terminal watches; nothing otherwise, a callable `total` is not asked."""
    if not sys.stderr.isatty():
        yield from items
        return
    from rich.console import Console
    from rich.progress import track

    count = total() if callable(total) else total
    yield from track(items, description=what, total=count, console=Console(stderr=True), transient=True)
