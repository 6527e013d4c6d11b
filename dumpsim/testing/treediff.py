"""Differences between a dump tree and a golden one: by file, by tensor, by cell of statistics, by line of text."""

import csv
import difflib
import io
import math
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dumpsim.codecs import npy
from dumpsim.codecs.statcsv import COMMON
from dumpsim.core.errors import DumpsimError
from dumpsim.core.statistic import DIGESTS, STATISTICS
from dumpsim.testing.neutral import TEXT, NeutralTree

__all__ = ["Tolerance", "tree_differences"]

_STAMP = re.compile(r"(?<=\.)\d{13,}(?=\.|$)")  # microseconds since 1970 in names
_REAL = frozenset(row.title for row in STATISTICS if not row.count)
_DIGESTS = frozenset(row.title for row in DIGESTS)
_KEY = tuple(COMMON.index(title) for title in ("Op Type", "Op Name", "IO", "Slot"))
_STAMP_COLUMN = "Timestamp"

Array = NDArray[Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tolerance:
    """Differences to accept.

    Attributes
    ----------
    rtol, atol : float
        Elements and real statistics are equal where ``|dump - golden| <= atol + rtol * |golden|``. Where one of them
        is positive, digests are not compared.
    stamps : bool
        Whether to compare time stamps in names and statistics.
    """

    rtol: float = 0.0
    atol: float = 0.0
    stamps: bool = True

    @property
    def exact(self) -> bool:
        """Whether no difference of values is accepted."""
        return self.rtol == 0 and self.atol == 0

    def close(self, value: float, golden: float) -> bool:
        """Return whether two numbers are equal within the tolerance; NaN equals NaN."""
        if value == golden or (math.isnan(value) and math.isnan(golden)):
            return True
        if not (math.isfinite(value) and math.isfinite(golden)):
            return False
        return abs(value - golden) <= self.atol + self.rtol * abs(golden)


def tree_differences(dump: NeutralTree, golden: NeutralTree, tolerance: Tolerance) -> list[str]:
    """Return the differences, in the order of file names; an empty list for equal trees.

    Files whose names differ only in their time stamps belong to the same tensor; if stamps are compared, one
    difference has their number.
    """
    pairs, missing, extra = _paired(dump.names(), golden.names(), stamps=tolerance.stamps)
    found: list[tuple[str, str]] = [(name, f"{name}: missing") for name in missing]
    found += [(name, f"{name}: extra") for name in extra]
    moved = [(mine, theirs) for mine, theirs in pairs if mine != theirs]
    if moved and tolerance.stamps:
        mine, theirs = moved[0]
        text = f"{len(moved)} file{'s' * (len(moved) != 1)} with other time stamps: {theirs} -> {mine}"
        found.append(("", text + (" ..." if len(moved) > 1 else "")))
    for mine, theirs in pairs:
        if dump.same(mine, golden, theirs):
            continue
        texts = list(_file(dump, mine, golden, theirs, tolerance))
        if not texts and tolerance.exact and tolerance.stamps:
            texts = [f"{mine}: its bytes differ, its values are equal"]
        found += [(mine, text) for text in texts]
    return [text for _, text in sorted(found, key=lambda item: item[0])]


def _paired(
    own: Sequence[str], other: Sequence[str], *, stamps: bool
) -> tuple[list[tuple[str, str]], list[str], list[str]]:
    """Return pairs of names, names of the golden tree alone, and names of the dump alone."""
    both = set(own) & set(other) if stamps else set()
    pairs = [(name, name) for name in sorted(both)]
    left: dict[str, tuple[list[str], list[str]]] = defaultdict(lambda: ([], []))
    for at, names in enumerate((own, other)):
        for name in names:
            if name not in both:
                left[_STAMP.sub("*", name)][at].append(name)
    missing: list[str] = []
    extra: list[str] = []
    for mine, theirs in left.values():
        pairs += zip(mine, theirs, strict=False)
        extra += mine[len(theirs) :]
        missing += theirs[len(mine) :]
    return sorted(pairs), missing, extra


def _file(dump: NeutralTree, mine: str, golden: NeutralTree, theirs: str, tolerance: Tolerance) -> Iterator[str]:
    """Return the differences of two files whose bytes differ."""
    suffix = mine[mine.rfind(".") :]
    if suffix == ".npy":
        yield from _npy(dump, mine, golden, theirs, tolerance)
        return
    own, other = dump.data(mine), golden.data(theirs)
    if suffix in TEXT:
        yield from _text(mine, own.decode("utf-8", "replace"), other.decode("utf-8", "replace"), tolerance)
    elif suffix == ".pb":
        yield from _unified(mine, _graph_text(own), _graph_text(other))
    else:
        tensors = _tensors(dump, mine, golden, theirs, tolerance)
        yield from _bytes(mine, own, other) if tensors is None else tensors


# -- tensors -----------------------------------------------------------------------------------------------------------


def _npy(dump: NeutralTree, mine: str, golden: NeutralTree, theirs: str, tolerance: Tolerance) -> Iterator[str]:
    try:
        own, other = npy.read(dump.path / mine, mmap=False), npy.read(golden.path / theirs, mmap=False)
    except DumpsimError as error:
        yield f"{mine}: {error}"
        return
    yield from _arrays(mine, own, other, tolerance)


def _tensors(
    dump: NeutralTree, mine: str, golden: NeutralTree, theirs: str, tolerance: Tolerance
) -> "list[str] | None":
    """Return the differences of two binary dump files by tensor; None if one is not such a file."""
    from dumpsim.analysis.dumpset import open as open_dump

    sides: list[dict[str, Array]] = []
    for path in (dump.path / mine, golden.path / theirs):
        try:
            sides.append({f"{entry.io}.{entry.slot}": entry.array() for entry in open_dump(path)})
        except (DumpsimError, NotImplementedError):
            return None
    own, other = sides
    found = [f"{mine} {label}: missing" for label in other if label not in own]
    found += [f"{mine} {label}: extra" for label in own if label not in other]
    for label in own.keys() & other.keys():
        found += _arrays(f"{mine} {label}", own[label], other[label], tolerance)
    return sorted(found)


def _arrays(name: str, own: Array, other: Array, tolerance: Tolerance) -> Iterator[str]:
    """Return a line on the difference of two tensors, or none if they are equal within the tolerance."""
    if (own.dtype, own.shape) != (other.dtype, other.shape):
        yield f"{name}: {_kind(other)} -> {_kind(own)}"
        return
    if own.dtype.kind not in "biufc":
        if own.tobytes() != other.tobytes():
            yield f"{name}: {_kind(own)}: its bytes differ"
        return
    wide = np.complex128 if own.dtype.kind == "c" else np.float64
    a, b = own.astype(wide).reshape(-1), other.astype(wide).reshape(-1)
    with np.errstate(invalid="ignore", over="ignore"):
        equal = (own.reshape(-1) == other.reshape(-1)) | (np.isnan(a) & np.isnan(b))
        distance = np.abs(a - b)
        if not tolerance.exact:
            near = distance <= tolerance.atol + tolerance.rtol * np.abs(b)
            equal |= near & np.isfinite(a) & np.isfinite(b)
    count = int(equal.size - np.count_nonzero(equal))
    if not count:
        if tolerance.exact and own.tobytes() != other.tobytes():
            yield f"{name}: {_kind(own)}: the signs of zeros or the bits of NaN differ"
        return
    measured = np.where(equal, -math.inf, np.nan_to_num(distance, nan=math.inf, posinf=math.inf))
    at = int(np.argmax(measured))
    place = [int(index) for index in np.unravel_index(at, own.shape)]
    old, new = other.reshape(-1)[at].item(), own.reshape(-1)[at].item()
    text = f"{name}: {_kind(own)}: {count} of {equal.size} elements differ, most at {place}: {old!r} -> {new!r}"
    size = float(abs(b[at]))
    if math.isfinite(measured[at]):
        text += f" (by {measured[at]:.6g}" + (f", relative {measured[at] / size:.3g})" if size else ")")
    for word, bad in (("NaN", np.isnan), ("infinities", np.isinf)):
        counts = [int(np.count_nonzero(bad(side))) for side in (b, a)]
        if counts[0] != counts[1]:
            text += f"; {word}: {counts[0]} -> {counts[1]}"
    yield text


def _kind(array: Array) -> str:
    return f"{array.dtype}{list(array.shape)}"


# -- text --------------------------------------------------------------------------------------------------------------


def _text(name: str, own: str, other: str, tolerance: Tolerance) -> Iterator[str]:
    heads = [text.partition("\n")[0].split(",")[: len(COMMON)] for text in (own, other)]
    if heads[0] == heads[1] == list(COMMON):
        yield from _statistics(name, own, other, tolerance)
    else:
        yield from _unified(name, own, other)


def _unified(name: str, own: str, other: str) -> Iterator[str]:
    """Return one difference: a unified diff."""
    lines = difflib.unified_diff(
        other.splitlines(), own.splitlines(), fromfile=f"golden/{name}", tofile=f"dump/{name}", lineterm="", n=1
    )
    text = "\n".join(lines)
    yield text or f"{name}: line endings differ"


def _statistics(name: str, own: str, other: str, tolerance: Tolerance) -> Iterator[str]:
    """Return the differences of two statistic.csv, by row and cell."""
    (titles, rows), (golden_titles, golden_rows) = _table(own), _table(other)
    for title in golden_titles:
        if title not in titles:
            yield f"{name}: column {title}: missing"
    for title in titles:
        if title not in golden_titles:
            yield f"{name}: column {title}: extra"
    for key in golden_rows:
        if key not in rows:
            yield f"{name}: row {_row_name(key)}: missing"
    for key in rows:
        if key not in golden_rows:
            yield f"{name}: row {_row_name(key)}: extra"
    for key, cells in rows.items():
        if key not in golden_rows:
            continue
        changed = [
            f"{title} {golden_rows[key][title]} -> {cell}"
            for title, cell in cells.items()
            if title in golden_rows[key] and not _same_cell(title, cell, golden_rows[key][title], tolerance)
        ]
        if changed:
            yield f"{name}: row {_row_name(key)}: {'; '.join(changed)}"


def _table(text: str) -> tuple[list[str], dict[tuple[str, ...], Mapping[str, str]]]:
    """Return the titles, and the rows by operator, input or output, slot and occurrence."""
    titles, *lines = list(csv.reader(io.StringIO(text)))
    rows: dict[tuple[str, ...], Mapping[str, str]] = {}
    counts: dict[tuple[str, ...], int] = defaultdict(int)
    for fields in lines:
        cells = dict(zip(titles, fields, strict=False))
        key = tuple(fields[at] for at in _KEY if at < len(fields))
        counts[key] += 1
        rows[(*key, str(counts[key]))] = cells
    return [title for title in titles if title], rows


def _row_name(key: tuple[str, ...]) -> str:
    *cells, nth = key  # a row that is cut has fewer cells
    op_type, op_name, way, slot = (*cells, *[""] * (len(_KEY) - len(cells)))
    return f"{op_type} {op_name} {way}.{slot}" + (f" (number {nth})" if nth != "1" else "")


def _same_cell(title: str, cell: str, golden: str, tolerance: Tolerance) -> bool:
    if cell == golden or (title == _STAMP_COLUMN and not tolerance.stamps):
        return True
    if tolerance.exact:
        return False
    if title in _DIGESTS:
        return True
    if title not in _REAL:
        return False
    try:
        return tolerance.close(float(cell), float(golden))
    except ValueError:
        return False


def _graph_text(data: bytes) -> str:
    """Return a graph file as text."""
    from google.protobuf.message import DecodeError

    from dumpsim.codecs.irschema import messages

    model = messages()["ModelProto"]()
    try:
        model.ParseFromString(data)
    except DecodeError:
        return data.hex(" ", 16)
    return str(model)


def _bytes(name: str, own: bytes, other: bytes) -> Iterator[str]:
    if len(own) != len(other):
        yield f"{name}: {len(other)} -> {len(own)} bytes"
    else:
        at = next(n for n, (a, b) in enumerate(zip(own, other, strict=True)) if a != b)
        yield f"{name}: bytes differ from offset {at} on"
