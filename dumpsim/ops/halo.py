"""Borders of images that neighbouring ranks exchange in NeighborExchangeV2 and its gradient.

Directions are numbered clockwise from the top: top, top right, right, bottom right, bottom, bottom left, left, top
left. A border sent in one direction arrives from the opposite one.
"""

from collections.abc import Sequence

__all__ = ["DIRECTIONS", "Region", "borders", "halo"]

Region = tuple[slice, slice]

DIRECTIONS = 8
_ROWS = (-1, -1, 0, 1, 1, 1, 0, -1)  # of each direction: above, beside or below
_COLUMNS = (0, 1, 1, 1, 0, -1, -1, -1)  # left, beside or right


def _span(side: int, extent: int, before: int, after: int, *, outside: bool) -> slice:
    """Return the range of a border on one axis of an image of that extent: inside the image, or around it."""
    if side == 0:
        return slice(before, before + extent) if outside else slice(0, extent)
    if side < 0:
        return slice(0, before)
    return slice(before + extent, before + extent + after) if outside else slice(extent - after, extent)


def borders(rows: int, columns: int, lens: Sequence[int]) -> tuple[Region, ...]:
    """Return the border of an image in each direction; `lens` is its width at the top, bottom, left and right.

    Examples
    --------
    >>> borders(4, 5, (1, 2, 0, 0))[4]
    (slice(2, 4, None), slice(0, 5, None))
    """
    top, bottom, left, right = lens
    return tuple(
        (_span(r, rows, top, bottom, outside=False), _span(c, columns, left, right, outside=False))
        for r, c in zip(_ROWS, _COLUMNS, strict=True)
    )


def halo(rows: int, columns: int, lens: Sequence[int]) -> tuple[Region, ...]:
    """Return the parts of an enlarged image around one of that size, by direction.

    Examples
    --------
    >>> halo(4, 5, (1, 2, 0, 3))[3]
    (slice(5, 7, None), slice(5, 8, None))
    """
    top, bottom, left, right = lens
    return tuple(
        (_span(r, rows, top, bottom, outside=True), _span(c, columns, left, right, outside=True))
        for r, c in zip(_ROWS, _COLUMNS, strict=True)
    )
