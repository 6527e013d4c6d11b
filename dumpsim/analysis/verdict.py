"""Compares two tensors: element by element, or by statistics if values were not dumped."""

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dumpsim.analysis.bintensor import BinTensor
from dumpsim.analysis.entry import Entry
from dumpsim.analysis.statistic import near, padded, typical, zero_filled
from dumpsim.analysis.tolerance import Tolerance
from dumpsim.codecs import npy
from dumpsim.codecs.binfile import BinFile
from dumpsim.core.dtype import from_numpy
from dumpsim.core.errors import BadInputError, DumpsimError, FormatError
from dumpsim.core.format import FORMATS
from dumpsim.core.statistic import MEASURED
from dumpsim.tensor.layout import to_host
from dumpsim.tensor.metrics import Distance, distance
from dumpsim.tensor.stats import statistics

__all__ = ["AGREEING", "FINDINGS", "Outcome", "Side", "Task", "judge", "judge_all", "judge_arrays", "side_of"]

Array = np.ndarray[Any, Any]

AGREEING = ("equal", "close")
FINDINGS = ("differs", "shape")
_BLOCK = 1 << 18  # elements per block
_BYTES = 1 << 20  # bytes per block
_SMALL = 1 << 20  # largest file to read instead of mapping
_ORDERS = ("NCHW", "NHWC", "HWCN", "NCDHW", "NDHWC", "DHWCN")
_FAR = 10.0  # times the tolerance; a larger difference is not rounding
_OUTLYING = 1e3  # times the typical size; larger elements are constants such as masks
_SAMPLE = 1 << 16  # elements to take the typical size from


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One tensor of a pair, small enough to be sent to another process.

    Attributes
    ----------
    path : str or None
        Its file; None if only statistics were dumped.
    binary : bool
        Whether the file is a bin file with the tensor of `io` and `slot`.
    io : str
    slot : int
    format, dtype : str
        As named in the dump, empty if unknown.
    shape : tuple of int
        As named in the dump; an npy file has its own.
    row : mapping
        Statistics that were dumped.
    """

    path: str | None
    binary: bool
    io: str
    slot: int
    format: str
    dtype: str
    shape: tuple[int, ...]
    row: Mapping[str, Any]

    def load(self) -> Array:
        """Load the values, in the host's layout if the dump names the layout."""
        assert self.path is not None
        if self.binary:
            return BinTensor(file=BinFile.open(self.path), io=self.io, slot=self.slot).array()
        return npy.read(self.path, mmap=os.path.getsize(self.path) > _SMALL)


def side_of(entry: Entry) -> Side:
    """Return the description of a tensor for another process, which may run in another directory."""
    path = str(entry.path) if entry.path is not None else None
    return Side(
        path=path if path is None or os.path.isabs(path) else os.path.join(os.getcwd(), path),
        binary=entry.part is not None,
        io=entry.io,
        slot=entry.slot,
        format=entry.format,
        dtype=entry.name.dtype,
        shape=entry.name.shape,
        row=entry.row,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A pair to compare."""

    left: Side
    right: Side
    tolerance: Tolerance
    equal_nan: bool = True
    measures: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The result of comparing a pair.

    Attributes
    ----------
    verdict : str
        ``equal`` (the same values), ``close`` (within the tolerance), ``differs``, ``shape`` (shapes that no layout
        explains), ``unknown`` (nothing to compare was dumped) or ``unreadable``.
    basis : str
        ``values`` or ``statistics``.
    dtypes, shapes : pair
    outside, count : int
        Elements or statistics beyond the tolerance, and their total number.
    tolerance : Tolerance or None
        The tolerance that was used; None if none was needed.
    distance : Distance or None
        Measures of spec D 4.5; None if they were not requested, or without values.
    relative : float
        The Euclidean norm of the difference, divided by that of the right side: 0 for the same values, infinite if they
        cannot be subtracted, NaN if unknown. For statistics, the largest difference, divided by the size of the
        elements.
    note : str
        Further remarks.
    """

    verdict: str
    basis: str = "values"
    dtypes: tuple[str, str] = ("", "")
    shapes: tuple[tuple[int, ...], tuple[int, ...]] = ((), ())
    outside: int = 0
    count: int = 0
    tolerance: Tolerance | None = None
    distance: Distance | None = None
    relative: float = math.nan
    note: str = ""

    @property
    def agrees(self) -> bool:
        """Whether the two are equal or close."""
        return self.verdict in AGREEING


def judge_all(tasks: Sequence[Task]) -> list[Outcome]:
    """Judge pairs one by one."""
    return [judge(task) for task in tasks]


def judge(task: Task) -> Outcome:
    """Compare a pair; a file that cannot be read is a verdict, not an error."""
    left, right = task.left, task.right
    try:
        if left.path is not None and right.path is not None:
            return _by_values(task, left.load(), right.load())
        return _by_statistics(task)
    except (DumpsimError, OSError) as error:
        return Outcome(verdict="unreadable", dtypes=(left.dtype, right.dtype), note=str(error))


def judge_arrays(own: Array, other: Array, tolerance: Tolerance, *, equal_nan: bool) -> Outcome:
    """Compare two arrays without further information."""
    side = Side(path=None, binary=False, io="", slot=0, format="", dtype="", shape=(), row={})
    task = Task(left=side, right=side, tolerance=tolerance, equal_nan=equal_nan, measures=False)
    return _by_values(task, own, other)


def _by_values(task: Task, own: Array, other: Array) -> Outcome:
    left, right = task.left, task.right
    dtypes = (left.dtype or from_numpy(own.dtype).name, right.dtype or from_numpy(other.dtype).name)
    found = Outcome(verdict="equal", dtypes=dtypes, shapes=(own.shape, other.shape), count=own.size)
    notes: list[str] = []
    if own.shape != other.shape or _orders(left, right):
        pair = _reconciled(left, own, right, other)
        if pair is None:
            return replace(found, verdict="shape", relative=math.inf, note=f"{own.shape} and {other.shape}")
        own, other, said = pair
        notes.append(said)
        found = replace(found, count=own.size)
    if _identical(own, other):
        nans = _nans(own)
        if task.equal_nan or not nans:
            notes += [f"{nans} NaN on both sides"] if nans else []
            return replace(found, relative=0.0, note="; ".join(notes))
    same, outside, odd, worst = True, 0, [0, 0], 0.0
    apart = False  # by more than a number
    squares = [0.0, 0.0]  # sums of squares of the difference and of the right side
    size = _typical(other)
    tolerance = task.tolerance.at(size) if task.tolerance.scaled else task.tolerance
    for a, b in _blocks(own, other):
        equal, inside, unpaired = _inside(a, b, tolerance, task.equal_nan)
        same &= bool(equal.all())
        if not inside.all():
            a_outside, b_outside = a[~inside], b[~inside]
            outside += a_outside.size
            worst = max(worst, _excess(a_outside, b_outside, tolerance))
            with np.errstate(all="ignore"):
                apart |= not np.isfinite(a_outside - b_outside).all()
        odd = [odd[0] + unpaired[0], odd[1] + unpaired[1]]
        squares = [total + more for total, more in zip(squares, _squares(a, b, _OUTLYING * size), strict=True)]
    notes += [f"{count} NaN or Inf in {name} only" for count, name in zip(odd, "AB", strict=True) if count]
    few = outside <= task.tolerance.few * own.size and worst <= _FAR
    verdict = "equal" if same else "close" if not outside or few else "differs"
    if outside and few:
        notes.append(f"few, and at most {worst:.1f} times the tolerance")
    measured = None
    if task.measures and not same and own.dtype.kind in "biufcV":
        with np.errstate(all="ignore"):
            measured = distance(own, other)
    return replace(
        found,
        verdict=verdict,
        outside=outside,
        tolerance=tolerance,
        distance=measured,
        relative=0.0 if same else math.inf if apart else _ratio(*squares),
        note="; ".join(notes),
    )


def _squares(a: Array, b: Array, outlying: float) -> tuple[float, float]:
    """Return the sums of squares of the difference and of the right side, without masks of -1e9."""
    if a.dtype.kind in "iu":
        a, b = a.astype(np.float64), b.astype(np.float64)
    with np.errstate(all="ignore"):
        difference, size = np.abs(a - b), np.abs(b)
        difference = np.where(np.isfinite(difference), difference, 0.0)
        size = np.where(size <= outlying, size, 0.0)
        return float(np.dot(difference, difference)), float(np.dot(size, size))


def _ratio(difference: float, size: float) -> float:
    """Return the ratio of the roots of two sums of squares."""
    return math.sqrt(difference / size) if size > 0 else math.inf if difference > 0 else 0.0


def _identical(own: Array, other: Array) -> bool:
    """Return whether two tensors of one shape have the same bytes, if that is cheap to find out."""
    if own.dtype != other.dtype or not (own.flags.c_contiguous and other.flags.c_contiguous):
        return False
    a, b = own.reshape(-1).view(np.uint8), other.reshape(-1).view(np.uint8)
    return all(np.array_equal(a[n : n + _BYTES], b[n : n + _BYTES]) for n in range(0, a.size, _BYTES))


def _nans(array: Array) -> int:
    if array.dtype.kind in "iub":
        return 0
    flat = array.reshape(-1)
    blocks = (flat[n : n + _BLOCK] for n in range(0, flat.size, _BLOCK))
    return sum(int(np.count_nonzero(block != block)) for block in blocks)


def _excess(a: Array, b: Array, tolerance: Tolerance) -> float:
    """Return the largest difference as a multiple of the tolerance; infinite for NaN and infinities."""
    with np.errstate(all="ignore"):
        found = float(np.max(np.abs(a - b) / (tolerance.atol + tolerance.rtol * np.abs(b))))
    return found if found == found else math.inf


def _typical(golden: Array) -> float:
    """Return the typical size of nonzero elements: the median, which masks of -1e9 do not change; 1 without any."""
    flat = golden.reshape(-1)
    sample = np.abs(_wide(flat[:: max(1, flat.size // _SAMPLE) | 1]))
    sample = sample[np.isfinite(sample) & (sample > 0)]
    if not sample.size:
        return 1.0
    middle = sample.size // 2
    sample.partition(middle)  # np.median costs several times as much for a small tensor
    upper = float(sample[middle])
    return upper if sample.size % 2 else (float(sample[:middle].max()) + upper) / 2


def _blocks(own: Array, other: Array) -> Iterator[tuple[Array, Array]]:
    a, b = own.reshape(-1), other.reshape(-1)
    for start in range(0, a.size, _BLOCK):
        yield _wide(a[start : start + _BLOCK]), _wide(b[start : start + _BLOCK])


def _wide(block: Array) -> Array:
    """Convert to float64, except integers, so that large ones stay exact."""
    if block.dtype.kind in "iu" and block.dtype.type.__module__ == "numpy":
        return block
    return block.astype(np.complex128 if block.dtype.kind == "c" else np.float64)


def _inside(a: Array, b: Array, tolerance: Tolerance, equal_nan: bool) -> tuple[Array, Array, tuple[int, int]]:
    """Return which elements are equal, which are within the tolerance, and the NaN and infinities of one side."""
    equal = a == b
    if a.dtype.kind in "iu" and b.dtype.kind in "iu":
        if tolerance.rtol == tolerance.atol == 0 or equal.all():
            return equal, equal, (0, 0)
        a, b = a.astype(np.float64), b.astype(np.float64)
    if equal_nan:
        equal |= np.isnan(a) & np.isnan(b)
    finite = np.isfinite(a), np.isfinite(b)
    with np.errstate(all="ignore"):
        near = np.abs(a - b) <= tolerance.atol + tolerance.rtol * np.abs(b)
    odd = (int(np.count_nonzero(~finite[0] & finite[1])), int(np.count_nonzero(finite[0] & ~finite[1])))
    return equal, equal | (near & finite[0] & finite[1]), odd


def _orders(left: Side, right: Side) -> bool:
    """Return whether the two have known and different orders of axes."""
    return left.format != right.format and left.format in _ORDERS and right.format in _ORDERS and not left.binary


def _reconciled(left: Side, own: Array, right: Side, other: Array) -> tuple[Array, Array, str] | None:
    """Return the pair in one shape, with a remark; None if no layout explains the difference."""
    if _orders(left, right) and own.ndim == other.ndim == len(left.format) == len(right.format):
        turned = other.transpose([right.format.index(axis) for axis in left.format])
        if turned.shape == own.shape:
            return own, turned, f"{right.format} as {left.format}"
    host = _unblocked(right, other, own.shape)
    if host is not None:
        return own, host, f"{right.format} as on the host"
    host = _unblocked(left, own, other.shape)
    if host is not None:
        return host, other, f"{left.format} as on the host"
    if own.size == other.size and _merges(own.shape, other.shape):
        return own, other.reshape(own.shape), f"{other.shape} as {own.shape}"
    return None


def _unblocked(side: Side, array: Array, shape: tuple[int, ...]) -> Array | None:
    """Convert a tensor from a device layout to this shape on the host."""
    layout = FORMATS.get(side.format)
    if side.binary or layout is None or not layout.known or not layout.blocked or not shape:
        return None
    order = layout.c0 is None and array.ndim > 0
    for dialect in ("mindspore", "ge"):
        try:
            return to_host(array, side.format, shape, dialect=dialect, c0=array.shape[-1] if order else None)
        except (FormatError, BadInputError):
            continue
    return None


def _merges(one: tuple[int, ...], other: tuple[int, ...]) -> bool:
    """Return whether one shape is the other with neighbouring axes merged: (2, 20, 4, 4) and (2, 320).

    Examples
    --------
    >>> _merges((2, 20, 4, 4), (2, 320)), _merges((2, 3, 1), (2, 3)), _merges((5, 320), (320, 5))
    (True, True, False)
    """
    short, long = sorted(([dim for dim in shape if dim != 1] for shape in (one, other)), key=len)
    at = 0
    for dim in short:
        product = 1
        while at < len(long) and product < dim:
            product *= long[at]
            at += 1
        if product != dim:
            return False
    return at == len(long)


def _by_statistics(task: Task) -> Outcome:
    """Compare by statistics, since one side has no values."""
    rows, shapes, dtypes = [], [], []
    for side in (task.left, task.right):
        row, shape, dtype = dict(side.row), side.shape, side.dtype
        if side.path is not None:
            array = side.load()
            shape, dtype = array.shape, dtype or from_numpy(array.dtype).name
            if array.dtype.kind != "c":
                measured = statistics(array)
                row = {name: getattr(measured, name) for name in MEASURED}
        rows.append(row)
        shapes.append(shape)
        dtypes.append(dtype)
    found = Outcome(verdict="equal", basis="statistics", dtypes=(dtypes[0], dtypes[1]), shapes=(shapes[0], shapes[1]))
    counts = [math.prod(shape) for shape in shapes]
    notes = []
    if counts[0] != counts[1] and shapes[0] and shapes[1]:
        small, large = sorted((0, 1), key=lambda side: counts[side])
        if not padded(shapes[small], shapes[large]):
            return replace(found, verdict="shape", relative=math.inf, note=f"{shapes[0]} and {shapes[1]}")
        rows[small] = zero_filled(rows[small], counts[small], counts[large])
        notes.append(f"{shapes[small]} is {shapes[large]} on the device")
    differing = []
    for digest in ("md5", "sha1"):
        if rows[0].get(digest) and rows[1].get(digest) and dtypes[0] == dtypes[1]:
            if rows[0][digest] == rows[1][digest]:
                return replace(found, count=1, relative=0.0, note=f"the same {digest}")
            differing.append(f"another {digest}")
    names = [name for name in MEASURED if rows[0].get(name) is not None and rows[1].get(name) is not None]
    if not names:
        return replace(found, verdict="unknown", note="neither values nor common statistics were dumped")
    count = max(counts)
    tolerance = task.tolerance.at(min(typical(rows[1], count), 1.0))
    nans = [name for name in names if rows[0][name] != rows[0][name] or rows[1][name] != rows[1][name]]
    far = [name for name in names if not near(name, rows[0], rows[1], count, tolerance)]
    if not task.equal_nan:
        far = [name for name in names if name in far or name in nans]
    same = not differing and all(_same(rows[0][name], rows[1][name]) for name in names)
    notes += [f"{name} {rows[0][name]:.6g} and {rows[1][name]:.6g}" for name in far] or differing
    verdict = "differs" if far else "equal" if same else "close"
    return replace(
        found,
        verdict=verdict,
        outside=len(far),
        count=len(names),
        tolerance=tolerance,
        relative=0.0 if same else _apart(rows[0], rows[1], names, count),
        note=", ".join(notes),
    )


def _apart(own: Mapping[str, Any], other: Mapping[str, Any], names: Sequence[str], count: int) -> float:
    """Return the largest difference of statistics that scale with the elements, divided by the largest of them."""
    scales = {"max": 1.0, "min": 1.0, "avg": 1.0, "l2norm": 1 / math.sqrt(max(count, 1))}
    pairs = [(float(own[name]) * by, float(other[name]) * by) for name, by in scales.items() if name in names]
    if not pairs:
        return math.nan
    if any(math.isfinite(a) != math.isfinite(b) for a, b in pairs):
        return math.inf
    finite = [(a, b) for a, b in pairs if math.isfinite(a)]
    size = max((abs(b) for _, b in finite), default=0.0)
    difference = max((abs(a - b) for a, b in finite), default=0.0)
    return difference / size if size else math.inf if difference else 0.0


def _same(a: float, b: float) -> bool:
    return a == b or (a != a and b != b)
