"""The ten measures by which the vendor's comparison tool compares a tensor with a golden one. [spec ge 4.5]

Both tensors are cast to float32, and differences and ratios are computed in float32, as in the tool; sums are in
double. `dumpsim._ext.metrics` works on blocks of a fixed size in two passes (the second one is for the Kullback-Leibler
divergence, which needs the extrema of the first), and blocks are merged in a fixed tree. Therefore the result does not
depend on strides, the number of threads or the SIMD level, and memory is limited to a few blocks per thread.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dumpsim._ext import metrics as _kernel
from dumpsim.core.errors import BadInputError, DtypeError, nearest
from dumpsim.tensor.simd import level_number
from dumpsim.tensor.slab import slabs
from dumpsim.tensor.threads import thread_count

__all__ = ["METRICS", "Distance", "Metric", "distance", "metrics", "selected"]

Array = NDArray[Any]
Floats = NDArray[np.float32]
T = TypeVar("T")

# by index [spec ge 4.5]
METRICS = (
    "CosineSimilarity",
    "MaxAbsoluteError",
    "AccumulatedRelativeError",
    "RelativeEuclideanDistance",
    "KullbackLeiblerDivergence",
    "StandardDeviation",
    "MeanAbsoluteError",
    "RootMeanSquareError",
    "MaxRelativeError",
    "MeanRelativeError",
)
EPS64 = 2.0**-52  # [spec ge 4.5]
BLOCK = 1 << 16  # elements; a block of both tensors and its temporaries fit into the cache
_LEAST_DEVIATION = 0.001  # smaller means and deviations print as 0 [spec ge 4.5]
ZERO_NOTE = "Cannot compare by Cosine Similarity. All the data is zero in {}."
_SCALAR_NOTE = "This tensor is scalar."
_EMPTY_NOTE = "There is no element to compare."


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """A measure as the tool prints it, such as ``1.000000``, and its note, which may be empty.

    Examples
    --------
    >>> metrics([1.0], [1.0], ["CosineSimilarity"])["CosineSimilarity"]
    Metric(text='1.000000', note='This tensor is scalar.')
    """

    text: str
    note: str = ""

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class _Side:
    """Sums of one tensor of the pair; mean and squared deviations can be merged without cancellation."""

    mean: float
    deviations: float
    squares: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class _Moments:
    """Results of the first pass for some elements."""

    count: int
    own: _Side
    golden: _Side
    products: float
    absolute: float
    absolute_max: float
    squares: float
    relative: float
    relative_max: float

    def merge(self, other: "_Moments") -> "_Moments":
        """Return the results for these elements followed by the other ones."""
        return _Moments(
            count=self.count + other.count,
            own=_merge_side(self.own, self.count, other.own, other.count),
            golden=_merge_side(self.golden, self.count, other.golden, other.count),
            products=self.products + other.products,
            absolute=self.absolute + other.absolute,
            absolute_max=_greater(self.absolute_max, other.absolute_max),
            squares=self.squares + other.squares,
            relative=self.relative + other.relative,
            relative_max=_greater(self.relative_max, other.relative_max),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Distance:
    """All measures of a pair as numbers, not rounded.

    Attributes
    ----------
    count : int
        Number of elements.
    own_zero, golden_zero : bool
        Whether a tensor's norm is almost zero, so that the cosine is not defined.
    cosine, max_absolute, accumulated_relative, relative_euclidean, kullback_leibler, mean_absolute, root_mean_square,
    max_relative, mean_relative : float
        NaN if they are not defined without elements; `kullback_leibler` is NaN if it was not requested.
    own_mean, own_deviation, golden_mean, golden_deviation : float
        Mean and deviation of each tensor; the deviation is that of the population.

    Examples
    --------
    >>> found = distance([1.0, 2.0], [1.0, 4.0])
    >>> found.max_absolute, found.max_relative, found.own_mean, found.golden_deviation
    (2.0, 0.5, 1.5, 1.5)
    """

    count: int
    own_zero: bool
    golden_zero: bool
    cosine: float
    max_absolute: float
    accumulated_relative: float
    relative_euclidean: float
    kullback_leibler: float
    own_mean: float
    own_deviation: float
    golden_mean: float
    golden_deviation: float
    mean_absolute: float
    root_mean_square: float
    max_relative: float
    mean_relative: float


def metrics(
    own: ArrayLike,
    golden: ArrayLike,
    names: Sequence[str] = METRICS,
    *,
    threads: int = 1,
    own_name: str = "the own data",
    golden_name: str = "the golden data",
) -> dict[str, Metric]:
    """Compute the measures of a pair of tensors as the vendor's tool prints them.

    Parameters
    ----------
    own, golden : array_like
        Numbers or booleans of the same shape.
    names : sequence of str
        Names of `METRICS`.
    threads : int
        Number of threads; the result does not depend on it.
    own_name, golden_name : str
        Names of the two tensors in notes.

    Returns
    -------
    dict of str to Metric
        Measures in the order of `names`, with six decimals; ``nan`` and ``inf`` for such numbers; ``NaN`` for a measure
        that is not defined, with a note of the reason.

    Raises
    ------
    BadInputError
        For an unknown measure, tensors of different shapes, or an invalid number of threads.
    DtypeError
        For tensors that do not contain numbers.

    Notes
    -----
    Formulas and texts are the tool's [spec ge 4.5]. Complex tensors are compared by real and imaginary parts; the tool
    ignores the imaginary ones.

    Examples
    --------
    >>> for name, metric in metrics([2.0] * 4, [3.0] * 4).items():
    ...     print(f"{name}: {metric}")
    CosineSimilarity: 1.000000
    MaxAbsoluteError: 1.000000
    AccumulatedRelativeError: 1.333333
    RelativeEuclideanDistance: 0.333333
    KullbackLeiblerDivergence: 0.000000
    StandardDeviation: (2.000;0.000),(3.000;0.000)
    MeanAbsoluteError: 1.000000
    RootMeanSquareError: 1.000000
    MaxRelativeError: 0.333333
    MeanRelativeError: 0.333333
    """
    for name in names:
        if name not in _TEXTS:
            raise BadInputError(
                f"{name!r} is not a measure", where="names", allowed=METRICS, nearest=nearest(name, METRICS)
            )
    found = distance(own, golden, divergence="KullbackLeiblerDivergence" in names, threads=threads)
    texts = {name: _TEXTS[name](found) for name in names}
    if "CosineSimilarity" in texts:
        texts["CosineSimilarity"] = _cosine(found, own_name, golden_name)
    return texts


def distance(
    own: ArrayLike, golden: ArrayLike, *, divergence: bool = True, threads: int = 1, _level: str | None = None
) -> Distance:
    """Compute all measures of a pair of tensors as numbers.

    Parameters
    ----------
    own, golden, threads
        As in `metrics`.
    divergence : bool
        Whether to make the second pass, which only the Kullback-Leibler divergence needs.

    Returns
    -------
    Distance

    Raises
    ------
    BadInputError, DtypeError
        As in `metrics`.

    Examples
    --------
    >>> round(distance([1.0, 0.0], [1.0, 1.0]).cosine, 6)
    0.707107
    """
    left, right = np.asarray(own), np.asarray(golden)
    if left.shape != right.shape:
        raise BadInputError(f"{left.shape} and {right.shape} are different shapes", where="own, golden")
    for where, array in (("own", left), ("golden", right)):
        if array.dtype.kind not in "biufcV" or array.dtype.type is np.void:  # V are the types of ml_dtypes, too
            raise DtypeError(f"no measures of {array.dtype}", where=where, code="DS-TYP-002")
    threads = thread_count(threads)
    if left.dtype.kind == "c" or right.dtype.kind == "c":
        left, right = _parts(left), _parts(right)
    level = level_number(_level)
    first = _tree(_spread(lambda a, b: _moments(a, b, level), left, right, threads), _Moments.merge)
    if first is None:
        return _nothing()
    kullback = math.nan
    if divergence:
        kullback = _divergence(left, right, first, threads, level)
    return _finish(first, kullback)


def _parts(array: Array) -> Array:
    """Return real and imaginary parts as separate elements."""
    with np.errstate(over="ignore"):  # as in `_block`
        return np.ascontiguousarray(array, np.complex64).reshape(-1).view(np.float32)


def _block(array: Array, start: int, stop: int) -> Floats:
    """Return elements `start` to `stop` as aligned float32; a view if possible."""
    if array.flags.c_contiguous and array.flags.aligned:
        piece = array.reshape(-1)[start:stop]
    else:
        (piece,) = slabs(array, array.dtype.newbyteorder("="), stop, start, stop)
    with np.errstate(over="ignore"):  # numbers beyond float32 become infinite, as in the tool
        return np.ascontiguousarray(piece, np.float32)


def _spread(work: Callable[[Floats, Floats], T], own: Array, golden: Array, threads: int) -> list[T]:
    """Return the results of `work` for all blocks, in order."""

    def block(start: int) -> T:
        stop = min(start + BLOCK, own.size)
        return work(_block(own, start, stop), _block(golden, start, stop))

    starts = range(0, own.size, BLOCK)
    if threads == 1 or len(starts) < 2:
        return [block(start) for start in starts]
    with ThreadPoolExecutor(min(threads, len(starts)), thread_name_prefix="dumpsim-metrics") as pool:
        return list(pool.map(block, starts))


def _tree(parts: Sequence[T], merge: Callable[[T, T], T]) -> T | None:
    """Merge neighbours in rounds, so that the tree depends only on the number of parts."""
    rest = list(parts)
    while len(rest) > 1:
        paired = [merge(rest[i], rest[i + 1]) for i in range(0, len(rest) - 1, 2)]
        rest = paired + rest[len(paired) * 2 :]
    return rest[0] if rest else None


def _merge_side(left: _Side, count: int, right: _Side, other: int) -> _Side:
    """Merge means and squared deviations by Chan's rule; infinities and NaN propagate."""
    share = other / (count + other)
    step = right.mean - left.mean
    return _Side(
        mean=left.mean + step * share,
        deviations=left.deviations + right.deviations + step * step * count * share,
        squares=left.squares + right.squares,
        low=min(left.low, right.low),  # of numbers with NaN only `high` is used
        high=_greater(left.high, right.high),
    )


def _greater(a: float, b: float) -> float:
    """Return the maximum; NaN if one of the numbers is NaN."""
    return max(a, b) if a == a and b == b else math.nan


def _moments(own: Floats, golden: Floats, level: int) -> _Moments:
    """Make the first pass over a block."""
    left, right, products, absolute, absolute_max, squares, relative, relative_max = _kernel.measure(own, golden, level)
    return _Moments(
        count=own.size,
        own=_Side(*left),
        golden=_Side(*right),
        products=products,
        absolute=absolute,
        absolute_max=absolute_max,
        squares=squares,
        relative=relative,
        relative_max=relative_max,
    )


def _divergence(own: Array, golden: Array, first: _Moments, threads: int, level: int) -> float:
    """Compute the Kullback-Leibler divergence of the tensors as distributions, in a second pass. [spec ge 4.5]

    With p = x / X and q = y / Y, it is the sum of x ln(x / y), divided by X, plus ln(Y / X).
    """
    a, b = first.own, first.golden

    def block(left: Floats, right: Floats) -> tuple[float, float, float]:
        return _kernel.diverge(left, right, a.low, a.high, b.low, b.high, level)

    total = _tree(_spread(block, own, golden, threads), lambda a, b: (a[0] + b[0], a[1] + b[1], a[2] + b[2]))
    assert total is not None
    x, y, mixed = total
    with np.errstate(all="ignore"):
        result = float(np.float64(mixed) / x + np.log(np.float64(y) / x))
    return 0.0 if abs(result) < EPS64 else result


def _finish(first: _Moments, kullback: float) -> Distance:
    """Compute the measures from the sums."""
    own, golden, count = first.own, first.golden, first.count
    own_norm, golden_norm = math.sqrt(own.squares), math.sqrt(golden.squares)
    own_zero, golden_zero = own_norm <= EPS64**2, golden_norm <= EPS64**2
    cosine = math.nan
    if not (own_zero or golden_zero):
        with np.errstate(all="ignore"):
            cosine = float(np.float64(first.products) / own_norm / golden_norm)
        cosine = min(cosine, 1.0)  # NaN stays
    return Distance(
        count=count,
        own_zero=own_zero,
        golden_zero=golden_zero,
        cosine=cosine,
        max_absolute=first.absolute_max,
        accumulated_relative=first.relative,
        relative_euclidean=_euclidean(first.squares, golden.squares),
        kullback_leibler=kullback,
        own_mean=own.mean,
        own_deviation=math.sqrt(own.deviations / count),
        golden_mean=golden.mean,
        golden_deviation=math.sqrt(golden.deviations / count),
        mean_absolute=first.absolute / count,
        root_mean_square=math.sqrt(first.squares / count),
        max_relative=first.relative_max,
        mean_relative=first.relative / count,
    )


def _euclidean(squares: float, golden: float) -> float:
    if math.sqrt(golden) <= EPS64:
        return 0.0
    return math.sqrt(squares / golden)


def _nothing() -> Distance:
    """Return the measures of empty tensors: sums are 0, means are NaN. [spec ge 4.5]"""
    nan = math.nan
    return Distance(
        count=0,
        own_zero=True,
        golden_zero=True,
        cosine=nan,
        max_absolute=nan,
        accumulated_relative=0.0,
        relative_euclidean=0.0,
        kullback_leibler=0.0,
        own_mean=nan,
        own_deviation=nan,
        golden_mean=nan,
        golden_deviation=nan,
        mean_absolute=nan,
        root_mean_square=nan,
        max_relative=nan,
        mean_relative=nan,
    )


def _cosine(found: Distance, own_name: str, golden_name: str) -> Metric:
    """Format the cosine: 1 for scalars and for two zero tensors, NaN if only one is zero. [spec ge 4.5]"""
    if found.count == 1:
        return Metric(text="1.000000", note=_SCALAR_NOTE)
    if found.own_zero and found.golden_zero:
        return Metric(text="1.0")
    if found.own_zero or found.golden_zero:
        return Metric(text="NaN", note=ZERO_NOTE.format(own_name if found.own_zero else golden_name))
    return Metric(text=_six(found.cosine))


def _six(value: float) -> str:
    return f"{value:.6f}"


def _extreme(value: float, count: int) -> Metric:
    return Metric(text=_six(value)) if count else Metric(text="NaN", note=_EMPTY_NOTE)


def _deviations(found: Distance) -> Metric:
    """Format ``(mean;deviation),(mean;deviation)`` with three decimals."""
    values = (found.own_mean, found.own_deviation, found.golden_mean, found.golden_deviation)
    a, b, c, d = (f"{0.0 if abs(value) < _LEAST_DEVIATION else value:.3f}" for value in values)
    return Metric(text=f"({a};{b}),({c};{d})")


def _plain(field: str) -> Callable[[Distance], Metric]:
    return lambda found: Metric(text=_six(getattr(found, field)))


_TEXTS: MappingProxyType[str, Callable[[Distance], Metric]] = MappingProxyType(
    {
        "CosineSimilarity": _plain("cosine"),
        "MaxAbsoluteError": lambda found: _extreme(found.max_absolute, found.count),
        "AccumulatedRelativeError": _plain("accumulated_relative"),
        "RelativeEuclideanDistance": _plain("relative_euclidean"),
        "KullbackLeiblerDivergence": _plain("kullback_leibler"),
        "StandardDeviation": _deviations,
        "MeanAbsoluteError": _plain("mean_absolute"),
        "RootMeanSquareError": _plain("root_mean_square"),
        "MaxRelativeError": lambda found: _extreme(found.max_relative, found.count),
        "MeanRelativeError": _plain("mean_relative"),
    }
)


def selected(choice: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Parse a list of measures such as ``0,MaxAbsoluteError,4`` or ``all``; return the known and the unknown names.

    Parameters
    ----------
    choice : str
        Names and indices of `METRICS`, separated by commas, or ``all``.

    Returns
    -------
    (tuple of str, tuple of str)
        Each name once, in the order of the list.

    Examples
    --------
    >>> selected("0,MaxAbsoluteError,MyOwn")
    (('CosineSimilarity', 'MaxAbsoluteError'), ('MyOwn',))
    """
    if choice.strip().lower() == "all":
        return METRICS, ()
    known: list[str] = []
    unknown: list[str] = []
    for word in _words(choice):
        name = METRICS[int(word)] if word.isdecimal() and int(word) < len(METRICS) else word
        target = known if name in METRICS else unknown
        if name not in target:
            target.append(name)
    return tuple(known), tuple(unknown)


def _words(choice: str) -> Iterable[str]:
    return (word.strip() for word in choice.split(",") if word.strip())
