"""Refines two layouts to one device matrix and one shape, so that redistribution can compare them axis by axis.

[spec parallel 2.5, steps 1 to 3]
"""

from collections.abc import Sequence
from itertools import pairwise
from math import prod

from dumpsim.core.tensorlayout import WHOLE, TensorLayout

__all__ = ["unified"]

Pair = tuple[TensorLayout, TensorLayout]


class _BrokenChainError(Exception):
    """Two lists of factors without a common refinement."""


def unified(source: TensorLayout, target: TensorLayout) -> Pair | None:
    """Return the layouts with a common device matrix and shape; None if they have no common refinement.

    Examples
    --------
    >>> pair = unified(TensorLayout((2, 2), (1, 0), (16, 32)), TensorLayout((4,), (0, -1), (16, 32)))
    >>> [layout.tensor_map for layout in pair], pair[0].shape
    ([(1, -1, 0), (1, 0, -1)], (2, 8, 32))
    """
    one, two = source.split().squeezed(axes=True), target.split().squeezed(axes=True)
    try:
        one, two = _with_common_matrix(one, two)
        while one.shape != two.shape:
            one, two = _with_shape_of(one, two)
            two, one = _with_shape_of(two, one)
    except _BrokenChainError:
        return None
    return one, two


def _with_common_matrix(one: TensorLayout, two: TensorLayout) -> Pair:
    matrix = _factors(_union(_running(one.device_matrix), _running(two.device_matrix)))
    return _over(one, matrix), _over(two, matrix)


def _over(layout: TensorLayout, matrix: tuple[int, ...]) -> TensorLayout:
    """Return a layout over a finer device matrix."""
    parts = _refinement(layout.device_matrix, matrix)
    new: list[int] = []
    shape: list[int] = []
    last = len(parts) - 1
    for axis, extent in zip(layout.tensor_map, layout.shape, strict=True):
        assert isinstance(axis, int)
        if axis == WHOLE:
            new.append(WHOLE)
            shape.append(extent)
            continue
        factors = parts[last - axis]
        following = sum(map(len, parts[last - axis + 1 :]))
        new += [following + len(factors) - 1 - at for at in range(len(factors))]
        shape += [*factors[:-1], extent // prod(factors[:-1])]
    return TensorLayout(matrix, tuple(new), tuple(shape))


def _with_shape_of(one: TensorLayout, two: TensorLayout) -> Pair:
    """Split the axes of `one` at the boundaries of `two`, too; refine the device matrix of `two` accordingly."""
    shape = tuple(reversed(_factors(_union(_running(one.shape[::-1]), _running(two.shape[::-1])))))
    parts = [part[::-1] for part in _refinement(one.shape[::-1], shape[::-1])][::-1]
    cut: list[tuple[int, list[int]]] = []  # for each cut axis its dimension, and the cuts of the new axes
    for axis, part in zip(one.tensor_map, parts, strict=True):
        assert isinstance(axis, int)
        if axis != WHOLE:
            cut.append((axis, _shared(one.extent(axis), part)))
    finer = dict(cut)
    last = len(one.device_matrix) - 1
    dims = [[n for n in finer.get(last - at, [extent]) if n > 1] for at, extent in enumerate(one.device_matrix)]
    matrix = tuple(n for part in dims for n in part)
    new: list[int] = []
    for axis, part in zip(one.tensor_map, parts, strict=True):
        assert isinstance(axis, int)
        if axis == WHOLE:
            new += [WHOLE] * len(part)
            continue
        number = sum(map(len, dims[last - axis + 1 :])) + len(dims[last - axis])
        for share in finer[axis]:
            number -= share > 1
            new.append(number if share > 1 else WHOLE)
    return TensorLayout(matrix, tuple(new), shape), _over(two, matrix)


def _shared(count: int, part: Sequence[int]) -> list[int]:
    """Distribute the cut of an axis over the axes into which it is split: the leading ones are cut completely."""
    shares = []
    done = 1
    for extent in part:
        if done >= count:
            shares.append(1)
        elif done * extent <= count:
            shares.append(extent)
        else:
            if count % done:
                raise _BrokenChainError
            shares.append(count // done)
        done *= shares[-1]
    if done != count or any(extent % share for extent, share in zip(part, shares, strict=True)):
        raise _BrokenChainError
    return shares


def _running(factors: Sequence[int]) -> list[int]:
    """Return running products.

    Examples
    --------
    >>> _running([2, 4])
    [2, 8]
    """
    return [prod(factors[: at + 1]) for at in range(len(factors))]


def _union(one: Sequence[int], two: Sequence[int]) -> list[int]:
    """Merge two lists of products in ascending order; each must divide the next."""
    products = sorted({*one, *two})
    if any(after % before for before, after in pairwise(products)):
        raise _BrokenChainError
    return products


def _factors(products: Sequence[int]) -> tuple[int, ...]:
    return tuple(after // before for before, after in pairwise([1, *products]))


def _refinement(coarse: Sequence[int], fine: Sequence[int]) -> list[list[int]]:
    """Group the factors of `fine` so that each group's product is a factor of `coarse`."""
    left = iter(fine)
    found = []
    for whole in coarse:
        part = [next(left)]
        while prod(part) < whole:
            part.append(next(left))
        if prod(part) != whole:
            raise _BrokenChainError
        found.append(part)
    return found
