"""Reduces the number of operators of a redistribution. [spec parallel 2.5, step 7]"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby

from dumpsim.graph.parallel.transfer import Cut, Exchange, Join, Reshape, Transfer, shapes_after

__all__ = ["shortened"]

Shape = tuple[int, ...]
_OPERATORS_OF_JOIN = 3  # along any axis but the first: AllGather, Split, Concat


def shortened(steps: Sequence[Transfer], shape: Shape) -> list[Transfer]:
    """Return a redistribution of parts of `shape` with fewer operators; one with exchanges is not changed.

    Examples
    --------
    >>> shortened([Reshape((1, 4, 32)), Join(1, 2, 1), Cut(2, 2, 1), Reshape((8, 16))], (4, 32))
    [Join(axis=0, count=2, stride=1), Reshape(shape=(1, 8, 32)), Cut(axis=2, count=2, index=1), Reshape(shape=(8, 16))]
    """
    operators = sum(_OPERATORS_OF_JOIN if isinstance(s, Join) and s.axis else 1 for s in steps)
    if operators < 2 or any(isinstance(step, Exchange) for step in steps):
        return list(steps)
    found = _merged_reshapes(steps, shape)
    found = _sorted(found)
    found = _joins_at_front(found, shape)
    found = _cuts_at_front(found, shape)
    found = _merged_reshapes(found, shape)
    found = _merged_joins(found)
    return _merged_cuts(found)


def _merged_reshapes(steps: Sequence[Transfer], shape: Shape) -> list[Transfer]:
    """Merge consecutive reshapes, and drop those that do not change the shape."""
    found: list[Transfer] = []
    before = shape
    for step, after in zip(steps, shapes_after(steps, shape), strict=True):
        if isinstance(step, Reshape):
            if found and isinstance(found[-1], Reshape):
                found.pop()
                before = _shape_of(found, shape)
            if after != before:
                found.append(step)
        else:
            found.append(step)
        before = after
    return found


def _shape_of(steps: Sequence[Transfer], shape: Shape) -> Shape:
    return [shape, *shapes_after(steps, shape)][-1]


def _sorted(steps: Sequence[Transfer]) -> list[Transfer]:
    """Put joins first, from the last axis on, then cuts, from the first axis on."""
    found: list[Transfer] = []
    for is_reshape, run in groupby(steps, lambda step: isinstance(step, Reshape)):
        members = list(run)
        if not is_reshape:
            joins = [step for step in members if isinstance(step, Join)]
            cuts = [step for step in members if isinstance(step, Cut)]
            members = [*sorted(joins, key=lambda step: -step.axis), *sorted(cuts, key=lambda step: step.axis)]
        found += members
    return found


def _joins_at_front(steps: Sequence[Transfer], shape: Shape) -> list[Transfer]:
    """Join along axis 0 if the axes before are 1, which takes only one operator."""
    found: list[Transfer] = []
    before = shape
    working: Shape | None = None  # the shape after the latest step that is not a reshape
    for step, after in zip(steps, shapes_after(steps, shape), strict=True):
        if isinstance(step, Join) and step.axis and all(n == 1 for n in before[: step.axis]):
            front = working or before[step.axis :]
            found += [Reshape(front), replace(step, axis=0), Reshape(after)]
            working = (front[0] * step.count, *front[1:])
        else:
            found.append(step)
            if not isinstance(step, Reshape):
                working = after
        before = after
    return found


def _cuts_at_front(steps: Sequence[Transfer], shape: Shape) -> list[Transfer]:
    """Cut axis 0 of the following shape if the axes before are 1."""
    found = list(steps)
    for at in range(len(found) - 2, -1, -1):
        step, after = found[at], found[at + 1]
        before = _shape_of(found[:at], shape)
        if isinstance(step, Cut) and isinstance(after, Reshape) and all(n == 1 for n in before[: step.axis]):
            wider = (after.shape[0] * step.count, *after.shape[1:])
            found[at : at + 2] = [Reshape(wider), replace(step, axis=0)]
    return found


def _merged_joins(steps: Sequence[Transfer]) -> list[Transfer]:
    found: list[Transfer] = []
    for step in steps:
        last = found[-1] if found else None
        if (
            isinstance(step, Join)
            and isinstance(last, Join)
            and step.axis == last.axis
            and last.stride * last.count == step.stride
        ):
            found[-1] = replace(last, count=last.count * step.count)
        else:
            found.append(step)
    return found


def _merged_cuts(steps: Sequence[Transfer]) -> list[Transfer]:
    """Merge cuts of one axis that have only reshapes between them."""
    found: list[Transfer] = []
    for step in steps:
        last = next((at for at in range(len(found) - 1, -1, -1) if not isinstance(found[at], Reshape)), None)
        before = found[last] if last is not None else None
        if isinstance(step, Cut) and isinstance(before, Cut) and step.axis == before.axis:
            del found[last:]
            found.append(Cut(step.axis, before.count * step.count, before.index * step.count + step.index))
        else:
            found.append(step)
    return found
