"""Indices out of range: how to find them, and the errors of the vendor's kernels.

The CPU's kernels raise [observed 2.10], the GPU's scatters skip such updates, and on Ascend nothing checks them: the
kernel accesses memory outside the tensor. [documents of 2.10, notes of the operators]
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
        Position of the index in the operand.
    value, low, high : int
        The index, and its valid range, `high` excluded.
    text : str or None
        Error text of the CPU's kernel; "" if it gives no reason, None if it skips such indices.
    error : type
        Exception type that the CPU's kernel raises.
    reads : bool
        Whether the kernel reads at its indices; otherwise it writes there.
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


# ``bounds(*operands, **attrs)`` returns the first index that is out of range
Bounds: TypeAlias = Callable[..., OutOfRange | None]


def _first(index: Array, low: int, high: int) -> tuple[int, ...] | None:
    """Return the position of the first index outside a range."""
    if not index.size or (index.min() >= low and index.max() < high):
        return None
    place = np.unravel_index(int(np.argmax((index < low) | (index >= high))), index.shape)
    return tuple(int(n) for n in place)


def legal_vectors(index: Array, shape: Sequence[int]) -> Array:
    """Return which index vectors, along the last axis, are valid for a tensor of this shape.

    Examples
    --------
    >>> legal_vectors(np.array([[0, 2], [1, 3], [-1, 0]]), (4, 3)).tolist()
    [True, False, False]
    """
    extents = np.array([int(n) for n in shape[: index.shape[-1]]], index.dtype)
    return np.asarray(((index >= 0) & (index < extents)).all(axis=-1))


def along(at: int, axis_at: int | None, text: str, *, operand: str, axis: int = 0) -> Bounds:
    """Return the bounds of a kernel that reads along one axis of operand 0; negative indices count from the end.

    Parameters
    ----------
    at : int
        The index operand.
    axis_at : int or None
        The operand that is the axis; None uses `axis`.
    text : str
        Error text of the CPU's kernel, with fields ``{value}``, ``{size}`` and ``{wrapped}``, the index modulo the
        size.
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
        where = axis if axis_at is None else int(operands[axis_at])
        size = x.shape[where]
        place = _first(index, -size, size)
        if place is None:
            return None
        value = int(index[place])
        message = text.format(value=value, size=size, wrapped=value if value >= 0 else value + size)
        return OutOfRange(operand=operand, place=place, value=value, low=-size, high=size, text=message)

    return bounds


def rows(
    at: int, size: Callable[..., int], text: str | None, *, operand: str = "indices", reads: bool = False
) -> Bounds:
    """Return the bounds of a kernel that indexes ``size(*operands, **attrs)`` rows; negative indices are invalid."""

    def bounds(*operands: Any, **attrs: Any) -> OutOfRange | None:
        index, high = operands[at], int(size(*operands, **attrs))
        place = _first(index, 0, high)
        if place is None:
            return None
        value = int(index[place])
        message = None if text is None else text.format(value=value, size=high)
        return OutOfRange(operand=operand, place=place, value=value, low=0, high=high, text=message, reads=reads)

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
    """Return the bounds of a kernel whose indices are vectors into a tensor of ``shape(*operands, **attrs)``.

    Negative indices are invalid.

    Parameters
    ----------
    at : int
        The index operand.
    text, negative : str
        Error text of the CPU's kernel, ``negative`` for an index below 0 if that differs, with fields ``{value}``,
        ``{size}``, the vector's number ``{row}``, and ``{vector}`` and ``{shape}`` as lists of numbers.

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
        message = (negative if negative is not None and value < 0 else text).format(
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
            text=message,
            error=error,
            reads=reads,
        )

    return bounds
