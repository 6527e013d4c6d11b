"""Remarks on an operator that made a difference: its size, and other possible causes."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import isfinite

from dumpsim.analysis.entry import Entry
from dumpsim.analysis.finding import Tensor
from dumpsim.analysis.jump import jump
from dumpsim.analysis.operator import squeezed
from dumpsim.analysis.tolerance import Tolerance
from dumpsim.analysis.verdict import Task, judge, side_of
from dumpsim.tensor.metrics import Distance

__all__ = ["crept", "jumped", "measured", "same", "some"]

_EXACT = Tolerance(rtol=0.0, atol=0.0)
_GROWTH = 10.0  # factor over the difference of the inputs below which the inputs may be the cause


def measured(bad: Tensor) -> str:
    """Describe how bad a tensor is; for a pair, compute the largest difference as well."""
    found = _distance(bad)
    if found is None or not isfinite(found.max_absolute):
        return bad.detail
    measures = (found.max_absolute, found.relative_euclidean, found.cosine)
    return f"{bad.detail}; largest difference {measures[0]:.4g}, relative {measures[1]:.4g}, cosine {measures[2]:.6f}"


def jumped(op_type: str, bad: Tensor, inputs: Sequence[Tensor]) -> str:
    """Return a remark on a discontinuous operator, unless its inputs are known to be bit-equal."""
    said = jump(op_type, bad.entry.dtype)
    if said and inputs and all(one.other is not None and same(one.entry, one.other) for one in inputs):
        return ""
    return said


def crept(bad: Tensor, inputs: Iterable[Tensor]) -> str:
    """Return a remark if the inputs, which agree, differ nearly as much as the result: it began before."""
    result = _distance(bad)
    if result is None or not isfinite(result.relative_euclidean):
        return ""
    found = [_distance(replace(one, task=_task(one))) for one in inputs]
    largest = max((one.relative_euclidean for one in found if one is not None), default=0.0)
    if not isfinite(largest) or result.relative_euclidean > _GROWTH * largest:
        return ""
    return f"its inputs differ too, within the tolerance (relative {largest:.2g}): a smaller one shows where that began"


def same(one: Entry, other: Entry) -> bool:
    """Return whether two tensors are the same."""
    if squeezed(one) != squeezed(other):
        return False
    return judge(Task(left=side_of(one), right=side_of(other), tolerance=_EXACT, measures=False)).verdict == "equal"


def some(names: Sequence[str]) -> str:
    """Join names on one line.

    Examples
    --------
    >>> some(["a", "b", "a", "c", "d"])
    'a, b, c and 1 more'
    """
    unique = list(dict.fromkeys(names))
    return ", ".join(unique[:3]) + (f" and {len(unique) - 3} more" if len(unique) > 3 else "")


def _task(one: Tensor) -> Task | None:
    if one.other is None:
        return None
    return Task(left=side_of(one.entry), right=side_of(one.other), tolerance=_EXACT)


def _distance(one: Tensor) -> Distance | None:
    return None if one.task is None else judge(replace(one.task, measures=True)).distance
