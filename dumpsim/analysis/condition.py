"""Counts of NaN and infinities of a tensor, from its statistics row or its values."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dumpsim.analysis.verdict import Side
from dumpsim.core.errors import DumpsimError
from dumpsim.core.statistic import NOT_FINITE, REAL
from dumpsim.tensor.cast import widen

__all__ = ["Condition", "condition", "condition_of_row", "conditions"]

Array = np.ndarray[Any, Any]

_BLOCK = 1 << 20
_WHOLE = ("int", "uint", "bool", "qint")


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """Counts of NaN and infinities by sign; -1 if a statistics row shows that there are some, but not how many.

    Not `known` for a tensor that was dumped without values and statistics.
    """

    nan: int = 0
    positive_inf: int = 0
    negative_inf: int = 0
    error: str = ""
    known: bool = True

    @property
    def bad(self) -> bool:
        """Whether there are any."""
        return bool(self.nan or self.positive_inf or self.negative_inf)


_FINITE = Condition()


def conditions(sides: Sequence[Side]) -> list[Condition]:
    """Return the condition of each tensor; an unreadable file gives its error instead of raising it."""
    return [condition(side) for side in sides]


def condition(side: Side) -> Condition:
    """Return the condition of a tensor; integers are finite and not read."""
    if side.path is None:
        return condition_of_row(side.row, side.dtype, side.shape)
    if side.dtype.startswith(_WHOLE):
        return _FINITE
    if (found := _counted(side.row)) is not None:
        return found
    try:
        return _of_values(side.load())
    except (DumpsimError, OSError) as error:
        return Condition(error=str(error))


def condition_of_row(row: Mapping[str, Any], dtype: str, shape: Sequence[int]) -> Condition:
    """Return the condition from a statistics row: by counts, or else by extrema, average and norm."""
    if dtype.startswith(_WHOLE) or 0 in shape:
        return _FINITE
    if (found := _counted(row)) is not None:
        return found
    values = {name: value for name in REAL if (value := row.get(name)) is not None}
    return Condition(
        nan=-any(map(math.isnan, values.values())),
        positive_inf=-(values.get("max", values.get("avg")) == math.inf),
        negative_inf=-(values.get("min", values.get("avg")) == -math.inf),
        known=bool(values),
    )


def _counted(row: Mapping[str, Any]) -> Condition | None:
    """Return the counts of a row that has all of them."""
    counts = [row.get(name) for name in NOT_FINITE]
    known = [int(count) for count in counts if count is not None]
    if len(known) < len(counts):
        return None
    return Condition(nan=known[0], positive_inf=known[1], negative_inf=known[2])


def _of_values(array: Array) -> Condition:
    if array.dtype.kind in "iub":
        return _FINITE
    flat = array.reshape(-1)
    found = [0, 0, 0]
    for start in range(0, flat.size, _BLOCK):
        block = flat[start : start + _BLOCK]
        if block.dtype.kind == "c":
            block = np.ascontiguousarray(block).view(block.real.dtype)
        elif block.dtype.kind == "V":
            block = widen(block, block.dtype.name)
        if np.isfinite(block).all():
            continue
        found[0] += int(np.count_nonzero(np.isnan(block)))
        found[1] += int(np.count_nonzero(block == math.inf))
        found[2] += int(np.count_nonzero(block == -math.inf))
    return Condition(nan=found[0], positive_inf=found[1], negative_inf=found[2])
