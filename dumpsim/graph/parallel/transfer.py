"""Steps of a redistribution, applied by one rank to its part of a tensor.

A step cuts an axis (`Cut`), joins the parts of a group along an axis (`Join`), exchanges parts (`Exchange`) or changes
the shape (`Reshape`). [spec parallel 2.5, steps 4 and 8]
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import prod

__all__ = ["Cut", "Exchange", "Join", "Reshape", "Transfer", "group_of", "shape_after", "shapes_after"]


@dataclass(frozen=True, slots=True)
class Reshape:
    """Reshape the part."""

    shape: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Cut:
    """Take part number `index` of `count` along an axis."""

    axis: int
    count: int
    index: int


@dataclass(frozen=True, slots=True)
class Join:
    """Concatenate the parts of `count` ranks, `stride` apart, along an axis."""

    axis: int
    count: int
    stride: int


@dataclass(frozen=True, slots=True)
class Exchange:
    """Exchange pieces of axis `cut` in a group of ranks, and concatenate them along axis `joined`."""

    cut: int
    joined: int
    count: int
    stride: int


Transfer = Reshape | Cut | Join | Exchange


def group_of(step: Join | Exchange, rank: int) -> tuple[int, ...]:
    """Return the participating ranks in ascending order.

    Examples
    --------
    >>> group_of(Join(0, 2, 4), 5)
    (1, 5)
    """
    first = rank - rank // step.stride % step.count * step.stride
    return tuple(first + place * step.stride for place in range(step.count))


def shape_after(step: Transfer, shape: Sequence[int]) -> tuple[int, ...]:
    """Return the shape of the part after a step.

    Examples
    --------
    >>> shape_after(Join(1, 2, 1), (8, 16)), shape_after(Exchange(1, 0, 2, 1), (8, 16))
    ((8, 32), (16, 8))
    """
    found = list(shape)
    match step:
        case Reshape(shape=after):
            assert prod(after) == prod(shape), (step, shape)
            return after
        case Cut(axis=axis, count=count):
            found[axis] //= count
        case Join(axis=axis, count=count):
            found[axis] *= count
        case Exchange(cut=cut, joined=joined, count=count):
            found[cut] //= count
            found[joined] *= count
    return tuple(found)


def shapes_after(steps: Iterable[Transfer], shape: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Yield the shape of the part after each step."""
    now = tuple(shape)
    for step in steps:
        now = shape_after(step, now)
        yield now
