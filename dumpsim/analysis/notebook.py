"""A dump as an HTML table for notebooks: one row per tensor, with a sparkline over its steps."""

import math
from collections.abc import Iterable, Sequence
from html import escape
from itertools import islice
from typing import Any

from dumpsim.analysis.entry import Entry
from dumpsim.core.errors import DumpsimError

__all__ = ["html_table", "sparkline"]

_ENTRIES = 2000  # tensors to examine at most
_ROWS = 30
_BYTES = 1 << 20  # largest tensor to compute statistics of
_COLUMNS = ("operator", "", "type", "shape", "min", "max", "l2norm", "over the steps")
_WIDTH, _HEIGHT = 96, 18


def html_table(title: str, entries: Iterable[Entry]) -> str:
    """Return a table of the first tensors; statistics that were not dumped are computed for small tensors only.

    Parameters
    ----------
    title : str
        Title above the table.
    entries : iterable of Entry
        Only as many are read as the table needs.

    Returns
    -------
    str
        HTML without script or outside links; names are escaped.
    """
    rows: dict[tuple[Any, ...], list[Entry]] = {}
    more = 0
    looked = 0
    for entry in islice(entries, _ENTRIES + 1):
        looked += 1
        key = (entry.rank, entry.graph_id, entry.op_name, entry.io, entry.slot)
        if key in rows or len(rows) < _ROWS:
            rows.setdefault(key, []).append(entry)
        else:
            more += 1
    head = "".join(f"<th style='text-align:left'>{escape(name)}</th>" for name in _COLUMNS)
    body = "".join(_row(found) for found in rows.values())
    end = f"<p>and {'at least ' if looked > _ENTRIES else ''}{more} more tensors</p>" if more else ""
    return f"<p><b>{escape(title)}</b></p><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{end}"


def _row(entries: Sequence[Entry]) -> str:
    last = entries[-1]
    values = {name: [_statistic(entry, name) for entry in entries] for name in ("min", "max", "l2norm")}
    cells = [last.op_name, f"{last.io}.{last.slot}", *_header(last)]
    cells += ["" if column[-1] is None else f"{column[-1]:.6g}" for column in values.values()]
    bad = any(value is not None and not math.isfinite(value) for column in values.values() for value in column)
    style = " style='color:#c00'" if bad else ""
    text = "".join(f"<td style='text-align:left'>{escape(str(cell))}</td>" for cell in cells)
    return f"<tr{style}>{text}<td>{sparkline(values['l2norm'])}</td></tr>"


def _header(entry: Entry) -> tuple[str, str]:
    try:
        return entry.dtype, "×".join(map(str, entry.shape))
    except DumpsimError:
        return "unreadable", ""


def _statistic(entry: Entry, name: str) -> float | None:
    """Return a statistic that was dumped, or that is cheap to compute."""
    try:
        value = entry.row.get(name)
        if value is None and entry.nbytes <= _BYTES:
            value = entry.statistic(name)
        return None if value is None else float(value)
    except (DumpsimError, TypeError, ValueError):
        return None


def sparkline(values: Sequence[float | None]) -> str:
    """Return a line through values as SVG; red dots mark NaN and infinities; empty for fewer than two values.

    Examples
    --------
    >>> sparkline([1.0, 3.0, 2.0])
    "<svg width='96' height='18'><polyline points='2,16 48,2 94,9' fill='none' stroke='#36c'/></svg>"
    >>> sparkline([1.0])
    ''
    """
    if len(values) < 2:
        return ""
    finite = [value for value in values if value is not None and math.isfinite(value)]
    low, high = min(finite, default=0.0), max(finite, default=0.0)
    points, dots = [], []
    for at, value in enumerate(values):
        x = 2 + (_WIDTH - 4) * at / (len(values) - 1)
        if value is None:
            continue
        if not math.isfinite(value):
            dots.append(f"<circle cx='{x:.4g}' cy='{_HEIGHT / 2:.4g}' r='2' fill='#c00'/>")
            continue
        share = 0.5 if high == low else value / (high - low) - low / (high - low)
        points.append(f"{x:.4g},{_HEIGHT - 2 - (_HEIGHT - 4) * share:.4g}")
    line = f"<polyline points='{' '.join(points)}' fill='none' stroke='#36c'/>" if points else ""
    return f"<svg width='{_WIDTH}' height='{_HEIGHT}'>{line}{''.join(dots)}</svg>"
