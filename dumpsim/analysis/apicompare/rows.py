"""The documented tables of one step: the mapping of APIs, and the differences of arrays, forward and backward.

Headers, texts, orders and widths are what the real tables have. [spec api_dump 2.3, 2.4]
"""

import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any

from dumpsim.analysis.apicall import Call
from dumpsim.analysis.apicompare.difference import (
    ArrayDifference,
    compare_arrays,
    mean_max_min,
    percent,
    truncated,
)
from dumpsim.analysis.apicompare.source import Dump
from dumpsim.analysis.apicompare.table import Row, Table
from dumpsim.analysis.apitree import ApiEntry
from dumpsim.analysis.callgroup import Group, align_arrays
from dumpsim.analysis.meaning import Framework
from dumpsim.analysis.tolerance import Tolerance
from dumpsim.analysis.verdict import Outcome, Task, judge, side_of
from dumpsim.codecs.apidump import HOMES

__all__ = ["Finding", "Pair", "Style", "compare_table", "findings", "mapping_table", "paired"]

_LABELS: dict[Framework, str] = {"torch": "pytorch", "mindspore": "mindspore", "mindtorch": "mindtorch"}
_SHORT: dict[Framework, str] = {"torch": "pt", "mindspore": "mt", "mindtorch": "mt"}
_NAME_WIDTH, _RATIO_WIDTH, _PAIR_WIDTH, _SHAPE_WIDTH, _DIFFS_WIDTH, _DTYPES_WIDTH = 45, 17, 25, 18, 28, 40
_SUSPECT_RATIO = 0.95  # below it a ratio or a cosine is marked
_SUSPECT_PART = 0.05  # above it a pair of means, maxima or minima is marked
_INCONSISTENT = "Shape is inconsistent"
_NAN = "nan"
_BEFORE_NUMBER = re.compile(r"_(?=\d)")
_FIRST_NUMBER = re.compile(r"(.*?)_(\d)(.?)")

Pair = tuple[ApiEntry | None, ApiEntry | None]
Middle = Callable[[Call], Iterable[ApiEntry]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A pair of arrays and their difference; one of them may be missing.

    Attributes
    ----------
    origin, target : ApiEntry or None
    outcome : Outcome or None
        Whether they agree; None without a counterpart.
    difference : ArrayDifference or None
        None without a counterpart, and where statistics are compared.
    values : tuple
        Mean, maximum and minimum of both sides, if the table shows them.
    shapes : tuple
        The shapes that the table shows.
    dtypes : tuple
    """

    origin: ApiEntry | None
    target: ApiEntry | None
    outcome: Outcome | None = None
    difference: ArrayDifference | None = None
    values: tuple[tuple[Any, Any], ...] = ()
    shapes: tuple[Any, Any] = (None, None)
    dtypes: tuple[str | None, str | None] = (None, None)

    @property
    def is_layer(self) -> bool:
        """Whether this record only names a module."""
        return any(item is not None and item.parts.count is None for item in (self.origin, self.target))

    @property
    def passes(self) -> bool | None:
        """Whether the two agree; None without a counterpart or values."""
        return None if self.outcome is None or self.outcome.verdict == "unknown" else self.outcome.agrees


@dataclass(frozen=True, slots=True, kw_only=True)
class Style:
    """The kind of table, its frameworks, and whether to compute numbers exactly as 1.0.17 does."""

    frameworks: tuple[Framework, Framework]
    arrays: bool
    exact: bool = False
    tolerance: Tolerance = field(default=Tolerance(rtol=1e-4, atol=1e-4))
    equal_nan: bool = False

    @property
    def mindtorch(self) -> bool:
        """Whether one side is MindTorch, which has other tables."""
        return "mindtorch" in self.frameworks

    @property
    def sides(self) -> tuple[str, str]:
        """The headers of the two nets."""
        return f"ORIGIN NET ({_LABELS[self.frameworks[0]]})", f"TARGET NET ({_LABELS[self.frameworks[1]]})"

    @property
    def header(self) -> tuple[str, ...]:
        """The headers of the forward and backward tables."""
        pair = "({}, {})".format(*(_SHORT[framework] for framework in self.frameworks))
        middle: tuple[str, ...]
        if not self.mindtorch:
            middle = ("result of allclose", "ratio of allclose", "cosine similarity", "mean & max diffs")
            return (*self.sides, "shape of orig", "shape of target", *(middle if self.arrays else (_DIFFS,)))
        middle = ("ratio of allclose", "cosine similarity", *(f"{word} cmp {pair}" for word in ("mean", "max", "min")))
        return (*self.sides, *(middle if self.arrays else (_DIFFS,)), f"shape cmp {pair}", f"dtype cmp {pair}")

    @property
    def widths(self) -> tuple[int, ...]:
        """Largest widths of MindTorch's columns."""
        middle = (_RATIO_WIDTH, _RATIO_WIDTH, *(_PAIR_WIDTH,) * 3, _SHAPE_WIDTH, _SHAPE_WIDTH)
        widths = middle if self.arrays else (_DIFFS_WIDTH, _SHAPE_WIDTH, _DTYPES_WIDTH)
        return (_NAME_WIDTH, _NAME_WIDTH, *widths)

    @property
    def rule(self) -> tuple[str, ...]:
        """Dashes as wide as MindTorch's columns."""
        return tuple("-" * width for width in self.widths)


_DIFFS = "max, min, mean diffs"


def mapping_table(groups: Iterable[Group], style: Style, step: int) -> Table:
    """Build the mapping table; several calls of one group share a cell."""
    rows = (
        Row(tuple("\n".join(call.name for call in side) for side in (group.origin, group.target)))
        for group in groups
        if any(call.inputs or call.outputs for call in (*group.origin, *group.target))
    )
    title = f"The APIs mapping results of the two frameworks (step {step})"
    return Table(title=title, header=style.sides, rows=tuple(rows), ruled=True)


def paired(groups: Sequence[Group], direction: str, dumps: tuple[Dump, Dump], style: Style) -> list[Pair]:
    """Pair the arrays of all groups, in the order of the table."""
    if direction == "forward":
        middles = (dumps[0].as_listed, dumps[1].as_listed) if style.exact and style.arrays else (_in_turn, _in_turn)
        return [pair for group in groups for pair in _forward(group, middles)]
    backward = _backward_of_heads if style.exact else _backward
    return [pair for group in groups for pair in backward(group)][::-1]


def _forward(group: Group, middles: tuple[Middle, Middle]) -> Iterator[Pair]:
    """Pair first inputs and last outputs; arrays between them stand alone."""
    between = [_between(side, middle) for side, middle in zip((group.origin, group.target), middles, strict=True)]
    yield from _aligned(_inputs(group.origin[:1]), _inputs(group.target[:1]))
    for origin, target in zip(*between, strict=True):
        yield from ((item, None) for item in origin)
        yield from ((None, item) for item in target)
    yield from _aligned(_outputs(group.origin[-1:]), _outputs(group.target[-1:]))


def _backward(group: Group) -> Iterator[Pair]:
    """Pair the gradients of the last outputs; the rest stands alone."""
    if not group.origin or not group.target:
        yield from ((item, None) for call in group.origin for item in call.grads)
        yield from ((None, item) for call in group.target for item in call.grads)
        return
    yield from ((item, None) for call in group.origin[:-1] for item in call.grads)
    yield from ((None, item) for call in group.target[:-1] for item in call.grads)
    yield from _aligned(group.origin[-1].grads, group.target[-1].grads)


def _backward_of_heads(group: Group) -> Iterator[Pair]:
    """As 1.0.17 does: gradients of the first calls against each other, though those of the last are their peers."""
    sides = group.origin, group.target
    parts = [(side[:1], side[1:-1], side[1:][-1:]) for side in sides]
    heads, *others = (
        [[item for call in calls for item in call.grads] for calls in part] for part in zip(*parts, strict=True)
    )
    yield from _aligned(*heads)
    for origin, target in others:
        yield from ((item, None) for item in origin)
        yield from ((None, item) for item in target)


def _aligned(origin: Sequence[ApiEntry], target: Sequence[ApiEntry]) -> list[Pair]:
    """Pair arrays by shape."""
    return align_arrays(origin, target, lambda item: item.line.shape)


def _inputs(calls: Sequence[Call]) -> list[ApiEntry]:
    return [item for call in calls for item in call.inputs]


def _outputs(calls: Sequence[Call]) -> list[ApiEntry]:
    return [item for call in calls for item in call.outputs]


def _between(calls: Sequence[Call], middle: Middle) -> tuple[list[ApiEntry], list[ApiEntry], list[ApiEntry]]:
    """Outputs of the first call, arrays of those in the middle, inputs of the last."""
    if len(calls) < 2:
        return [], [], []
    return _outputs(calls[:1]), [item for call in calls[1:-1] for item in middle(call)], _inputs(calls[-1:])


def _in_turn(call: Call) -> Iterator[ApiEntry]:
    """Pair inputs and outputs by index."""
    for pair in zip_longest(call.inputs, call.outputs):
        yield from (item for item in pair if item is not None)


def findings(pairs: Iterable[Pair], style: Style, tick: Callable[[], None]) -> Iterator[Finding]:
    """Compare the arrays, or their statistics, of every pair."""
    for pair in pairs:
        yield _finding(pair, style)
        tick()


def _finding(pair: Pair, style: Style) -> Finding:
    origin, target = pair
    if any(item is not None and item.parts.count is None for item in pair) and (style.arrays or style.mindtorch):
        return Finding(origin=origin, target=target)
    if style.arrays:
        return _array_finding(pair, style)
    outcome = None
    if origin is not None and target is not None:
        sides = side_of(origin), side_of(target)
        outcome = judge(Task(left=sides[0], right=sides[1], tolerance=style.tolerance, equal_nan=style.equal_nan))
    shown = [None if item is None else list(item.line.shape) for item in pair]
    types = [None if item is None else item.line.dtype for item in pair]
    return Finding(
        origin=origin, target=target, outcome=outcome, shapes=(shown[0], shown[1]), dtypes=(types[0], types[1])
    )


def _array_finding(pair: Pair, style: Style) -> Finding:
    """Compare two npy files; a record without a file counts as missing."""
    arrays = [None if item is None or item.path is None else side_of(item).load() for item in pair]
    one, other = arrays
    difference: ArrayDifference | None = None
    values: tuple[tuple[Any, Any], ...] = ()
    if one is not None and other is not None:
        difference = compare_arrays(one, other, style.tolerance, equal_nan=style.equal_nan, exact=style.exact)
        if style.mindtorch:
            values = tuple(zip(*(mean_max_min(array, exact=style.exact) for array in (one, other)), strict=True))
    shown = [
        array.shape if array is not None else item.line.shape if item is not None else None
        for array, item in zip(arrays, pair, strict=True)
    ]
    types = [None if array is None else array.dtype.name for array in arrays]
    return Finding(
        origin=pair[0],
        target=pair[1],
        outcome=None if difference is None else difference.outcome,
        difference=difference,
        values=values,
        shapes=(shown[0], shown[1]),
        dtypes=(types[0], types[1]),
    )


def compare_table(
    found: Sequence[Finding], direction: str, style: Style, step: int, *, ignore_unmatched: bool
) -> Table:
    """Build the forward or backward table."""
    kept = [finding for finding in found if finding.is_layer or finding.outcome is not None or not ignore_unmatched]
    if ignore_unmatched:
        kept = [f for f in kept if not f.is_layer or (f.origin is not None and f.target is not None)]
    rows: list[Row] = []
    for at, finding in enumerate(kept):
        if finding.is_layer and style.arrays and not style.mindtorch:
            continue
        rows.append(_row(finding, style))
        if style.mindtorch and _ends_call(finding) and at + 1 < len(kept) and not kept[at + 1].is_layer:
            rows.append(Row(style.rule))
    return Table(
        title=f"The {direction} comparison results (step {step})",
        header=style.header,
        rows=tuple(rows),
        padding=0 if style.mindtorch else 1,
        widest=style.widths if style.mindtorch else (),
    )


def _ends_call(finding: Finding) -> bool:
    """Return whether a line of dashes follows: after outputs."""
    return any(item is not None and item.parts.io == "output" for item in (finding.origin, finding.target))


def _row(finding: Finding, style: Style) -> Row:
    """Return a finding as a row of its table."""
    sides = (finding.origin, finding.target)
    if style.mindtorch:
        return _mindtorch_row(finding, style)
    names = tuple(None if item is None else item.line.name for item in sides)
    shown = tuple(None if shape is None else str(shape) for shape in finding.shapes)
    return Row((*names, *shown, *(_array_cells(finding) if style.arrays else (_statistics_cell(finding),))))


def _array_cells(finding: Finding) -> tuple[str, ...]:
    """Verdict, ratio, cosine and differences."""
    found = finding.difference
    if found is None:
        return "False", "0.00%", _NAN, f"{_NAN}, {_NAN}"
    if not found.same_shape:
        return (_INCONSISTENT,) * 4
    return (
        str(found.outcome.agrees),
        percent(found.ratio),
        truncated(found.cosine),
        f"{truncated(found.mean)}, {truncated(found.max)}",
    )


def _statistics_cell(finding: Finding) -> str:
    """Differences of maximum, minimum and mean."""
    if finding.origin is None or finding.target is None:
        return f"{_NAN}, {_NAN}, {_NAN}"
    one, other = finding.origin.line, finding.target.line
    pairs = (one.max, other.max), (one.min, other.min), (one.mean, other.mean)
    return ", ".join(truncated(abs(a - b)) for a, b in pairs)  # NaN for equal infinities, as the tables have it


def _mindtorch_row(finding: Finding, style: Style) -> Row:
    """Return MindTorch's columns; suspicious values are marked."""
    sides = (finding.origin, finding.target)
    if finding.is_layer:
        names = tuple(
            None if item is None else f"LAYER: {_module(item, style)}".center(_NAME_WIDTH, "-") for item in sides
        )
        return Row((*names, *style.rule[2:]))
    names = tuple(None if item is None else _torch_name(item) for item in sides)
    shape, same_shape = _both(finding.shapes)
    if not style.arrays:
        marks = frozenset() if same_shape else frozenset({3})
        return Row((*names, _statistics_cell(finding), shape, str(finding.dtypes)), marks)
    kind, same_kind = _both(finding.dtypes)
    found = finding.difference
    marked: set[int] = set()
    if not same_shape:
        marked.add(7)
    if not same_kind:
        marked.add(8)
    if found is None:
        cells = ("0.00%", _NAN, *(f"{_NAN}, {_NAN}",) * 3)
        return Row((*names, *cells, shape, kind), frozenset(marked | {2}))
    if not found.same_shape:
        return Row((*names, *(_INCONSISTENT,) * 5, shape, kind), frozenset(marked))
    if found.ratio < _SUSPECT_RATIO:
        marked.add(2)
    if found.cosine < _SUSPECT_RATIO:
        marked.add(3)
    marked |= {4 + at for at, values in enumerate(finding.values) if _far(*values)}
    pairs = (f"{truncated(one)}, {truncated(other)}" for one, other in finding.values)
    return Row((*names, percent(found.ratio), truncated(found.cosine), *pairs, shape, kind), frozenset(marked))


def _far(one: Any, other: Any) -> bool:
    """Return whether two numbers differ by more than 5 %; infinities do, unless they are equal."""
    one, other = float(one), float(other)
    if one == other or math.isnan(one) or math.isnan(other):
        return False
    if math.isinf(one) or math.isinf(other):
        return True
    return bool(abs(one - other) > _SUSPECT_PART * abs(other))


def _both(pair: tuple[Any, Any]) -> tuple[str, bool]:
    """Return one text if both sides agree, else both."""
    same = pair[0] == pair[1]
    return (str(pair[0]) if same else f"{pair[0]}, {pair[1]}"), same


def _module(item: ApiEntry, style: Style) -> str:
    """The module's name on a line of dashes: numbers follow a dot again; 1.0.17 ends after the first. [observed]"""
    path = item.parts.api
    if style.exact and (start := _FIRST_NUMBER.match(path)):
        return "{}.{}{}".format(*start.groups())
    return _BEFORE_NUMBER.sub(".", path)


def _torch_name(item: ApiEntry) -> str:
    """``torch.nn.Linear(0) input[0]``."""
    name = item.parts
    index = "".join(f"[{part}]" for part in name.index)
    return f"{HOMES.get(name.kind, name.kind + '.')}{name.api}({name.count}) {name.io}{index}"
