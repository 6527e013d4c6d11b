"""Shapes with torch's symbols as numbers."""

from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["Sizes", "extent", "extents"]

Sizes = Mapping[str, int]  # of symbols, by their text


def extents(shape: Sequence[Any], sizes: Sizes) -> tuple[int, ...]:
    """A shape as numbers."""
    return tuple(extent(one, sizes) for one in shape)


def extent(one: Any, sizes: Sizes) -> int:
    """An extent as a number: symbols by their sizes."""
    if isinstance(one, int):
        return one
    expression = one.node.expr
    found = expression.subs({symbol: sizes[str(symbol)] for symbol in expression.free_symbols})
    return int(found)
