"""Edit distances of names, divided by the longer length; one name against all others at once."""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["name_distances"]


def name_distances(names: Sequence[str]) -> Callable[[int], NDArray[np.float64]]:
    """Return a function that maps the index of a name to its distances from all names, 0 (equal) to 1.

    Examples
    --------
    >>> name_distances(["relu", "relu6", "add"])(0)
    array([0. , 0.2, 1. ])
    """
    lengths = np.array([len(name) for name in names], np.int64)
    width = int(lengths.max(initial=0))
    letters = np.array([[ord(c) for c in name.ljust(width)] for name in names], np.int32)
    found: dict[int, NDArray[np.float64]] = {}

    def distances(index: int) -> NDArray[np.float64]:
        if index not in found:
            own = letters[index, : lengths[index]]
            found[index] = _edits(own, letters, lengths) / np.maximum(np.maximum(lengths, len(own)), 1)
        return found[index]

    return distances


def _edits(own: NDArray[np.int32], letters: NDArray[np.int32], lengths: NDArray[np.int64]) -> NDArray[np.int32]:
    """Return the edit distances from one name to each of the others."""
    count, width = letters.shape
    steps = np.arange(width + 1, dtype=np.int32)
    line = np.broadcast_to(steps, (count, width + 1)).copy()
    for at, letter in enumerate(own, 1):
        best = np.empty_like(line)
        best[:, 0] = at
        np.minimum(line[:, :-1] + (letters != letter), line[:, 1:] + 1, out=best[:, 1:])
        # an insertion comes from the left: the running minimum of what stands there, less its column
        line = np.minimum.accumulate(best - steps, axis=1) + steps
    return line[np.arange(count), lengths]
