"""Indices that name no element of a tensor: which they are, and what the vendor's kernels say of them.

The CPU's kernels raise [observed 2.10], the GPU's scatters leave such updates out, and on Ascend nothing checks them:
the kernel accesses memory that is not the tensor's. [documents of 2.10, notes of the operators]
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from dumpsim.core.errors import DumpsimError, ScriptRuntimeError

__all__ = ["Bounds", "OutOfRange", "along", "legal_vectors", "rows", "vectors"]

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class OutOfRange:
    """The first index of a kernel that is out of range.

    Attributes
    ----------
    operand : str
        Name of the index operand.
    place : tuple of int
        Where the index stands in it.
    value, low, high : int
        The index, and the range that it should be in, `high` excluded.
    text : str or None
        What the CPU's kernel says; "" where it names no reason, None where it leaves such indices out.
    error : type
        What the CPU's kernel raises.
    reads : bool
        The kernel reads at its indices; False: it writes there.
    """

    operand: str
    place: tuple[int, ...]
    value: int
    low: int
    high: int
    text: str | None = ""
    error: type[DumpsimError] = ScriptRuntimeError
    reads: bool = True

    def __str__(self) -> str:
        return f"index {self.value} at {list(self.place)} of {self.operand!r} is outside [{self.low}, {self.high})"


# ``bounds(*operands, **attrs)``: the first index that is out of range
Bounds: TypeAlias = Callable[..., OutOfRange | None]


def _first(index: Array, low: int, high: int) -> tuple[int, ...] | None:
    """The place of the first index outside of a range."""
    if not index.size or (index.min() >= low and index.max() < high):
        return None
    place = np.unravel_index(int(np.argmax((index < low) | (index >= high))), index.shape)
    return tuple(int(n) for n in place)


def legal_vectors(index: Array, shape: Sequence[int]) -> Array:
    """Which vectors of indices, those of the last axis, name an element of a tensor of this shape.

    Examples
    --------
    >>> legal_vectors(np.array([[0, 2], [1, 3], [-1, 0]]), (4, 3)).tolist()
    [True, False, False]
    """
    extents = np.array([int(n) for n in shape[: index.shape[-1]]], index.dtype)
    return np.asarray(((index >= 0) & (index < extents)).all(axis=-1))


def along(at: int, axis_at: int | None, text: str, *, operand: str, axis: int = 0) -> Bounds:
    """Of kernels that read along one axis of operand 0, from its end for negative indices.

    Parameters
    ----------
    at : int
        The index operand.
    axis_at : int or None
        The operand that holds the axis; None: it is `axis`.
    text : str
        What the CPU's kernel says: ``{value}``, ``{size}`` and ``{wrapped}``, a negative index counted from the end.
    operand : str
        Name of the index operand.

    Examples
    --------
    >>> gather = along(1, 2, "{value} of {size}", operand="input_indices")
    >>> print(gather(np.zeros((4, 3)), np.array([1, 4]), 0))
    index 4 at [1] of 'input_indices' is outside [-4, 4)
    >>> gather(np.zeros((4, 3)), np.array([1, -4]), 0) is None
    True
    """

    def bounds(*operands: Any, **attrs: Any) -> OutOfRange | None:
        x, index = operands[0], operands[at]
        where = axis if axis_at is None else int(operands[axis_at]) if axis_at < len(operands) else 0
        size = x.shape[where]
        place = _first(index, -size, size)
        if place is None:
            return None
        value = int(index[place])
        said = text.format(value=value, size=size, wrapped=value if value >= 0 else value + size)
        return OutOfRange(operand=operand, place=place, value=value, low=-size, high=size, text=said)

    return bounds


def rows(
    at: int, size: Callable[..., int], text: str | None, *, operand: str = "indices", reads: bool = False
) -> Bounds:
    """Of kernels that take rows by number, ``size(*operands, **attrs)`` of them; no index may be negative."""

    def bounds(*operands: Any, **attrs: Any) -> OutOfRange | None:
        index, high = operands[at], int(size(*operands, **attrs))
        place = _first(index, 0, high)
        if place is None:
            return None
        value = int(index[place])
        said = None if text is None else text.format(value=value, size=high)
        return OutOfRange(operand=operand, place=place, value=value, low=0, high=high, text=said, reads=reads)

    return bounds


def vectors(
    at: int,
    shape: Callable[..., Sequence[int]],
    text: str,
    *,
    negative: str | None = None,
    error: type[DumpsimError] = ScriptRuntimeError,
    reads: bool = False,
) -> Bounds:
    """Of kernels whose indices are vectors into a tensor of ``shape(*operands, **attrs)``; none may be negative.

    Parameters
    ----------
    at : int
        The index operand.
    text, negative : str
        What the CPU's kernel says, ``negative`` of an index below 0 where it differs: ``{value}``, ``{size}``, the
        vector's number ``{row}``, and ``{vector}`` and ``{shape}`` as lists of numbers.

    Examples
    --------
    >>> update = vectors(1, lambda x, index, updates: x.shape, "vector {row}: {{{vector}}} in {{{shape}}}")
    >>> found = update(np.zeros((4, 3)), np.array([[0, 2], [1, 3]]), None)
    >>> print(found, "|", found.text)
    index 3 at [1, 1] of 'indices' is outside [0, 3) | vector 1: {1, 3} in {4, 3}
    """

    def bounds(*operands: Any, **attrs: Any) -> OutOfRange | None:
        index = operands[at]
        full = tuple(int(n) for n in shape(*operands, **attrs))
        found: list[tuple[tuple[int, ...], int]] = []
        for column in range(index.shape[-1]):
            place = _first(index[..., column], 0, full[column])
            if place is not None:
                found.append((place, column))
        if not found:
            return None
        place, column = min(found)
        value, size = int(index[place][column]), full[column]
        said = (negative if negative is not None and value < 0 else text).format(
            value=value,
            size=size,
            row=int(np.ravel_multi_index(place, index.shape[:-1])) if place else 0,
            vector=", ".join(str(int(n)) for n in index[place]),
            shape=", ".join(map(str, full)),
        )
        return OutOfRange(
            operand="indices",
            place=(*place, column),
            value=value,
            low=0,
            high=size,
            text=said,
            error=error,
            reads=reads,
        )

    return bounds
