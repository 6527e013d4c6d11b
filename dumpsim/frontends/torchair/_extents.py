"""Shapes whose symbols are replaced by numbers."""

from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["Sizes", "extent", "extents", "fraction"]

Sizes = Mapping[str, int]  # sizes of symbols by name


def extents(shape: Sequence[Any], sizes: Sizes) -> tuple[int, ...]:
    """Return a shape as numbers."""
    return tuple(extent(one, sizes) for one in shape)


def extent(one: Any, sizes: Sizes) -> int:
    """Return an extent as a number, with the sizes of its symbols."""
    return one if isinstance(one, int) else int(_with_sizes(one, sizes))


def fraction(one: Any, sizes: Sizes) -> float:
    """Return the value of a floating-point expression of extents."""
    return float(_with_sizes(one, sizes))


def _with_sizes(one: Any, sizes: Sizes) -> Any:
    expression = one.node.expr
    return expression.subs({symbol: sizes[str(symbol)] for symbol in expression.free_symbols})
