"""Statistics of a tensor in one pass, mergeable over chunks, shards and ranks. [spec mindspore 4.2]"""

import math
import operator
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from threading import Event
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
from numpy.typing import ArrayLike, NDArray

from dumpsim._ext import stats as _stats
from dumpsim.core.errors import DtypeError
from dumpsim.core.statistic import NAMES, STATISTICS, Merge
from dumpsim.tensor.simd import level_number
from dumpsim.tensor.slab import raw, slabs
from dumpsim.tensor.threads import thread_count

__all__ = ["Measures", "Statistics", "measurer", "statistics"]

# data type -> code of _ext/src/stats.h
CODES: dict[np.dtype[Any], int] = {
    np.dtype(t): code
    for code, t in enumerate(
        (
            np.bool_,
            np.int8,
            np.uint8,
            np.int16,
            np.uint16,
            np.int32,
            np.uint32,
            np.int64,
            np.uint64,
            np.float16,
            ml_dtypes.bfloat16,
            np.float32,
            np.float64,
        )
    )
}
# types without a loop -> a type that has each of their values
WIDER: dict[np.dtype[Any], np.dtype[Any]] = {
    np.dtype(ml_dtypes.int4): np.dtype(np.int8),
    np.dtype(ml_dtypes.uint4): np.dtype(np.uint8),
    np.dtype(ml_dtypes.float8_e5m2): np.dtype(np.float16),
    np.dtype(ml_dtypes.float8_e4m3fn): np.dtype(np.float16),
}
# fields that are merged, with their rules
_TOTAL = Merge(0.0, operator.add)
_MERGED: dict[str, Merge] = {
    "sum": _TOTAL,
    "sumsq": _TOTAL,
    **{row.name: row.merge for row in STATISTICS if row.merge is not None},
}
# Number of elements of a block of threads and strided inputs. It is a power of two of chunks, so that each block is one
# node of the merge tree, and the result does not depend on the thread.
BLOCK = _stats.CHUNK * 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistics:
    """Statistics of a tensor from one pass; they can be merged with those of another tensor.

    Attributes
    ----------
    sum, sumsq : float
        Sums of x and of x squared, in double.
    max, min : float
        Extrema; NaN if any element is NaN, and -inf and inf without elements.
    count, negative, zero, nan, positive_inf, negative_inf : int
        Numbers of elements, of elements below zero (with -inf), of zeros of either sign, of NaN, and of infinities by
        sign.
    avg, l2norm, positive : float, float, int
        Computed from the others.

    Examples
    --------
    >>> halves = statistics([3.0, -1.0]), statistics([4.0, 0.0])
    >>> whole = halves[0].merge(halves[1])
    >>> whole.max, whole.avg, whole.negative, whole.zero, whole.positive
    (4.0, 1.5, 1, 1, 2)
    >>> whole == statistics([3.0, -1.0, 4.0, 0.0])
    True
    """

    sum: float
    sumsq: float
    max: float
    min: float
    count: int
    negative: int
    zero: int
    nan: int
    positive_inf: int
    negative_inf: int

    @property
    def avg(self) -> float:
        """Sum / count, with NaN and infinities; NaN without elements (the real systems write no row then)."""
        return self.sum / self.count if self.count else math.nan

    @property
    def l2norm(self) -> float:
        """Square root of the sum of squares, with NaN and infinities."""
        return math.sqrt(self.sumsq)

    @property
    def positive(self) -> int:
        """Number of elements above zero (with +inf, without NaN)."""
        return self.count - self.negative - self.zero - self.nan

    def __repr__(self) -> str:
        return f"Statistics({', '.join(f'{name}={getattr(self, name)!r}' for name in NAMES)})"

    @classmethod
    def empty(cls) -> "Statistics":
        """Return the statistics of no elements; merging them changes nothing.

        Examples
        --------
        >>> one = statistics([1.0])
        >>> one.merge(Statistics.empty()) == one == Statistics.empty().merge(one)
        True
        """
        return cls(**{name: rule.start for name, rule in _MERGED.items()})  # type: ignore[arg-type]

    def merge(self, other: "Statistics") -> "Statistics":
        """Return the statistics of these elements followed by those of `other`.

        Counts and extrema are exact. Sums are rounded once per merge, so that another order of merges may change their
        last bits.

        Examples
        --------
        >>> whole = statistics([1.0, -2.0]).merge(statistics([0.0, 4.0]))
        >>> whole.max, whole.min, whole.avg, whole.negative, whole.zero, whole.positive
        (4.0, -2.0, 0.75, 1, 1, 2)
        """
        pairs = ((name, rule.combine(getattr(self, name), getattr(other, name))) for name, rule in _MERGED.items())
        return Statistics(**{name: _canonical(value) for name, value in pairs})


def statistics(array: ArrayLike, *, threads: int = 1, _level: str | None = None) -> Statistics:
    """Compute the statistics of an array in one pass.

    Parameters
    ----------
    array : array_like
        bool, (u)int8 to 64, float16, bfloat16, float32 or float64, of any shape, strides, alignment and byte order;
        int4, uint4 and float8 of ml_dtypes are widened. The array is never copied as a whole: one that is not
        contiguous in native byte order goes through a buffer of less than 1 MiB per thread.
    threads : int
        Number of threads; the result does not depend on it.

    Returns
    -------
    Statistics
        Each integer is converted to double, as the vendor does, so that 64-bit values beyond 2**53 are rounded. The
        result is bit-identical for any number of threads, any SIMD level and any strides.

    Raises
    ------
    DtypeError
        For complex, string, object and other types; the message names those allowed.
    BadInputError
        If `threads` is not an integer from 1 to 256.

    Notes
    -----
    Definitions are those of the host mode of statistic.csv [spec mindspore 4.2]: one NaN makes max and min NaN; avg and
    l2norm propagate NaN and infinities; of equal extrema the first is taken, so that the sign of a zero is that of the
    first zero.

    Examples
    --------
    >>> s = statistics(np.array([3.0, -4.0, 0.0, np.inf], np.float32))
    >>> s.max, s.min, s.l2norm, s.count, s.negative, s.positive, s.zero, s.positive_inf
    (inf, -4.0, inf, 4, 1, 2, 1, 1)
    """
    values = np.asarray(array)
    code, dtype = _code(values.dtype)
    level = level_number(_level)
    threads = thread_count(threads)
    if dtype == values.dtype and values.dtype.isnative and values.flags.c_contiguous and values.flags.aligned:
        data = raw(values)
        if threads == 1 or values.size <= BLOCK:
            return _row(_stats.measure(data, code, level))
        step = BLOCK * dtype.itemsize
        blocks = [(i, min(i + step, data.size)) for i in range(0, data.size, step)]

        def contiguous(begin: int, end: int) -> Statistics:
            return _row(_stats.measure(data[begin:end], code, level))

        return _tree(_spread(contiguous, blocks, threads))

    def strided(begin: int, end: int) -> Statistics:
        return _tree(
            [_row(_stats.measure(raw(s), code, level)) for s in slabs(values, dtype, _stats.CHUNK, begin, end)]
        )

    blocks = [(i, min(i + BLOCK, values.size)) for i in range(0, values.size, BLOCK)]
    return _tree(_spread(strided, blocks, threads))


class Measures(NamedTuple):
    """Results of one pass, as in `Statistics`, whose `count` is `elements` here."""

    sum: float
    sumsq: float
    max: float
    min: float
    elements: int
    negative: int
    zero: int
    nan: int
    positive_inf: int
    negative_inf: int


def measurer(dtype: np.dtype[Any]) -> Callable[[NDArray[np.uint8]], Measures]:
    """Prepare `statistics` for many contiguous tensors of one data type.

    Parameters
    ----------
    dtype : numpy.dtype
        A type in native byte order that `statistics` does not widen.

    Returns
    -------
    callable
        A function of the bytes of a tensor, which must be aligned for the type.

    Examples
    --------
    >>> measure = measurer(np.dtype(np.float32))
    >>> found = measure(np.array([1, 2, 6], np.float32).view(np.uint8))
    >>> found.sum, found.max, found.elements
    (9.0, 6.0, 3)
    """
    code, native = _code(dtype)
    if native != dtype:
        raise DtypeError(
            f"{dtype} is not supported without widening",
            where="dtype",
            allowed=[str(t) for t in CODES],
            code="DS-TYP-002",
        )
    measure, level, made = _stats.measure, level_number(None), Measures._make
    return lambda data: made(measure(data, code, level))


def _code(dtype: np.dtype[Any]) -> tuple[int, np.dtype[Any]]:
    """Return the code of the loop for a data type, and the type that the loop reads."""
    native = dtype.newbyteorder("=")
    native = WIDER.get(native, native)
    if native not in CODES:
        raise DtypeError(
            f"no statistics of {dtype.name}",
            where="array",
            allowed=[str(t) for t in (*CODES, *WIDER)],
            code="DS-TYP-002",
        )
    return CODES[native], native


def _spread(
    measure: Callable[[int, int], Statistics], blocks: Sequence[tuple[int, int]], threads: int
) -> list[Statistics]:
    """Return the results of `measure(*block)` in the order of the blocks."""
    if threads == 1 or len(blocks) < 2:
        return [measure(*block) for block in blocks]
    stop = Event()
    indices = iter(range(len(blocks)))  # shared: every thread takes the next one
    found = [Statistics.empty()] * len(blocks)

    def work() -> None:
        for index in indices:
            if stop.is_set():
                return
            found[index] = measure(*blocks[index])

    count = min(threads, len(blocks))
    with ThreadPoolExecutor(count, thread_name_prefix="dumpsim-stats") as pool:
        try:
            for done in [pool.submit(work) for _ in range(count)]:
                done.result()
        except BaseException:  # Ctrl-C, too: stop the threads, since the pool waits for them
            stop.set()
            raise
    return found


def _tree(parts: Sequence[Statistics]) -> Statistics:
    """Merge in the order of the kernels' tree: the left part is the largest power of two below the number of parts."""
    if not parts:
        return Statistics.empty()
    if len(parts) == 1:
        return parts[0]
    left = 1 << (len(parts) - 1).bit_length() - 1
    return _tree(parts[:left]).merge(_tree(parts[left:]))


def _row(row: tuple[float, float, float, float, int, int, int, int, int, int]) -> Statistics:
    total, squares, high, low, count, negative, zero, nan, positive_inf, negative_inf = row
    return Statistics(
        sum=_canonical(total),
        sumsq=_canonical(squares),
        max=_canonical(high),
        min=_canonical(low),
        count=count,
        negative=negative,
        zero=zero,
        nan=nan,
        positive_inf=positive_inf,
        negative_inf=negative_inf,
    )


def _canonical(value: Any) -> Any:
    """Replace NaN by the same NaN object, so that equal statistics compare equal."""
    return math.nan if value != value else value
