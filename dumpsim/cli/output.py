"""How commands speak: tables for people, plain lines for pipes, JSON lines for programs; bars on stderr."""

import json
import math
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

__all__ = ["human_bytes", "print_json", "print_rows", "progress"]

T = TypeVar("T")


def human_bytes(count: float) -> str:
    """Bytes with a unit.

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
    """One JSON value on one line.

    NaN and infinities are the strings "nan", "inf", "-inf", since JSON has none; a complex number is a pair.
    """
    print(json.dumps(_plain(value), ensure_ascii=False))


def _plain(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"
    if isinstance(value, complex):
        return [_plain(value.real), _plain(value.imag)]
    if isinstance(value, Mapping):
        return {str(key): _plain(member) for key, member in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(member) for member in value]
    if hasattr(value, "item"):
        return _plain(value.item())
    return value


def print_rows(columns: Sequence[str], rows: Iterable[Mapping[str, Any]], *, as_json: bool = False) -> int:
    """Rows as a table on a terminal, tab-separated when piped, or JSON lines. Returns their number."""
    if as_json or not sys.stdout.isatty():
        count = 0
        if not as_json:
            print("\t".join(columns))
        for row in rows:
            if as_json:
                print_json(row)
            else:
                print("\t".join(_cell(row.get(name)) for name in columns))
            count += 1
        return count
    cells = [tuple(_cell(row.get(name)) for name in columns) for row in rows]
    widths = [max(map(len, column)) for column in zip(columns, *cells, strict=True)]
    # rich's tables take a millisecond a row
    head, *lines = ("  ".join(map(str.ljust, line, widths)).rstrip() for line in (columns, *cells))
    print(head if os.environ.get("NO_COLOR") else f"\x1b[1m{head}\x1b[0m")
    for line in lines:
        print(line)
    return len(lines)


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, list | tuple):
        return f"({','.join(map(str, value))})"
    return str(value)


def progress(items: Iterable[T], *, what: str, total: int | Callable[[], int] | None = None) -> Iterator[T]:
    """The items, with a bar on stderr while a terminal watches; nothing otherwise, a callable `total` is not asked."""
    if not sys.stderr.isatty():
        yield from items
        return
    from rich.console import Console
    from rich.progress import track

    count = total() if callable(total) else total
    yield from track(items, description=what, total=count, console=Console(stderr=True), transient=True)
