"""The statistics of a tensor: one row each, used by all code that computes, writes, reads or shows them.

A new row also needs an attribute of that name in `dumpsim.tensor.stats.Statistics`; everything else follows.
"""

import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = [
    "CATEGORIES",
    "DIGESTS",
    "MEASURED",
    "NAMES",
    "NOT_FINITE",
    "REAL",
    "STATISTICS",
    "TITLES",
    "Digest",
    "GeColumn",
    "Merge",
    "Statistic",
    "printed",
]

DIGITS = 6  # significant digits in files [spec mindspore 4.3]


@dataclass(frozen=True, slots=True)
class Merge:
    """How the value of a tensor follows from those of its two parts; `start` is the value of an empty tensor."""

    start: float
    combine: Callable[[Any, Any], Any]


@dataclass(frozen=True, slots=True)
class GeColumn:
    """A column of the csv file that GE writes for an operator. [spec ge 3.7]

    Attributes
    ----------
    title : str
    processor : bool
        Whether the device's own processor writes it.
    optional : bool
        Whether ``dump_stats`` may name it.
    """

    title: str
    processor: bool = True
    optional: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistic:
    """A statistic.

    Attributes
    ----------
    name : str
        Attribute of `Statistics`, field of rows, column of tables, ``--columns`` of ``dumpsim stat``.
    category : str
        MindSpore's name in ``statistic_category``.
    title : str
        Its column in statistic.csv. [spec mindspore 4.1]
    listed : int
        Position in MindSpore's list of categories, which is also the order of GE's columns.
    count : bool
        A number of elements, an integer; else a real number.
    not_finite : bool
        Counts elements that are NaN or infinite.
    merge : Merge or None
        None if it follows from other statistics.
    ge : GeColumn or None
    device : mapping of str to set of str
        Number types that the device's kernel supports, by precision; empty if there is no kernel. [spec mindspore 4.4]
    """

    name: str
    category: str
    title: str
    listed: int
    count: bool = False
    not_finite: bool = False
    merge: Merge | None = None
    ge: GeColumn | None = None
    device: Mapping[str, frozenset[str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Digest:
    """A digest that ``statistic_category`` may name; `name` is the algorithm and the field of rows."""

    name: str
    category: str
    title: str
    listed: int


def _larger(one: float, other: float) -> float:
    """Return the larger of two numbers, NaN if one of them is, the first if they are equal."""
    return math.nan if one != one or other != other else other if one < other else one


def _smaller(one: float, other: float) -> float:
    """Return the smaller of two numbers, NaN if one of them is, the first if they are equal."""
    return math.nan if one != one or other != other else other if other < one else one


_SUM = Merge(0, operator.add)
_FLOATS = frozenset({"bfloat16", "float16", "float32"})
_NUMBERS = _FLOATS | {"float64", "int8", "int16", "int32", "int64", "uint8"}
_EXTREMA = {"high": _NUMBERS | {"bool"}, "low": _NUMBERS}  # not bool in low: the kernel would widen it to int32
_BOTH = {"high": _NUMBERS, "low": _NUMBERS}
_NORM = {"high": _FLOATS, "low": _FLOATS}

# in display order
STATISTICS: tuple[Statistic, ...] = (
    Statistic(
        name="max", category="max", title="Max Value", listed=0, merge=Merge(-math.inf, _larger),
        ge=GeColumn("Max Value"), device=_EXTREMA,
    ),
    Statistic(
        name="min", category="min", title="Min Value", listed=1, merge=Merge(math.inf, _smaller),
        ge=GeColumn("Min Value"), device=_EXTREMA,
    ),
    Statistic(name="avg", category="avg", title="Avg Value", listed=2, ge=GeColumn("Avg Value"), device=_BOTH),
    Statistic(
        name="l2norm", category="l2norm", title="L2Norm Value", listed=11, ge=GeColumn("l2norm", processor=False),
        device=_NORM,
    ),
    Statistic(
        name="count", category="count", title="Count", listed=3, count=True, merge=_SUM,
        ge=GeColumn("Count", optional=False),
    ),
    Statistic(
        name="negative", category="negative zero count", title="Negative Zero Count", listed=4, count=True, merge=_SUM,
    ),
    Statistic(name="positive", category="positive zero count", title="Positive Zero Count", listed=5, count=True),
    Statistic(name="zero", category="zero count", title="Zero Count", listed=9, count=True, merge=_SUM),
    Statistic(
        name="nan", category="nan count", title="NaN Count", listed=6, count=True, not_finite=True, merge=_SUM,
        ge=GeColumn("Nan Count"),
    ),
    Statistic(
        name="positive_inf", category="positive inf count", title="Positive Inf Count", listed=8, count=True,
        not_finite=True, merge=_SUM, ge=GeColumn("Positive Inf Count"),
    ),
    Statistic(
        name="negative_inf", category="negative inf count", title="Negative Inf Count", listed=7, count=True,
        not_finite=True, merge=_SUM, ge=GeColumn("Negative Inf Count"),
    ),
)  # fmt: skip

# the first in every release, the others since 2.10
DIGESTS: tuple[Digest, ...] = (
    Digest(name="md5", category="md5", title="MD5", listed=10),
    Digest(name="sha1", category="hash", title="SHA1", listed=12),
    Digest(name="sha1", category="hash:sha1", title="SHA1", listed=13),
    Digest(name="md5", category="hash:md5", title="MD5", listed=14),
)

NAMES = tuple(row.name for row in STATISTICS)
REAL = tuple(row.name for row in STATISTICS if not row.count)
NOT_FINITE = tuple(row.name for row in STATISTICS if row.not_finite)
MEASURED = (*REAL, *NOT_FINITE)  # what `stat` shows by default, and what `compare` compares
_COLUMNS: tuple[Statistic | Digest, ...] = (*STATISTICS, *DIGESTS)
CATEGORIES = {row.category: row.name for row in _COLUMNS}
TITLES = {row.name: row.title for row in _COLUMNS}


def printed(value: float | int) -> str:
    """Format a number as a C++ stream does: six significant digits. [spec mindspore 4.3]

    Examples
    --------
    >>> [printed(x) for x in (9.539392, 1e6, 3.4028235e38, float("-inf"), float("nan"), -0.0, 7, True)]
    ['9.53939', '1e+06', '3.40282e+38', '-inf', 'nan', '-0', '7', 'True']
    """
    if isinstance(value, int):  # True and False, too
        return str(value)
    return f"{value:.{DIGITS}g}"
