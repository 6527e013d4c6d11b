"""Shapes with torch's symbols as numbers."""

from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["Sizes", "extent", "extents", "fraction"]

Sizes = Mapping[str, int]  # of symbols, by their text


def extents(shape: Sequence[Any], sizes: Sizes) -> tuple[int, ...]:
    """A shape as numbers."""
    return tuple(extent(one, sizes) for one in shape)


def extent(one: Any, sizes: Sizes) -> int:
    """An extent as a number: symbols by their sizes."""
    return one if isinstance(one, int) else int(_with_sizes(one, sizes))


def fraction(one: Any, sizes: Sizes) -> float:
    """What torch computes of extents in floating point."""
    return float(_with_sizes(one, sizes))


def _with_sizes(one: Any, sizes: Sizes) -> Any:
    expression = one.node.expr
    return expression.subs({symbol: sizes[str(symbol)] for symbol in expression.free_symbols})
