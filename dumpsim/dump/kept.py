"""What was made from a version of a buffer, kept for its next reader: an output is often the next operator's input."""

from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

__all__ = ["Kept"]

T = TypeVar("T")


class Kept(Generic[T]):
    """The values used last, within a budget.

    Parameters
    ----------
    budget : int
        Sum of the costs of what is kept; a value that costs more than half of it is not kept at all.

    Examples
    --------
    >>> kept = Kept(10)
    >>> for name in "abc":
    ...     kept.put(name, name.upper(), 4)
    >>> kept.get("a"), kept.get("b"), kept.get("c")
    (None, 'B', 'C')
    """

    __slots__ = ("_budget", "_spent", "_values")

    def __init__(self, budget: int) -> None:
        self._budget = budget
        self._spent = 0
        self._values: OrderedDict[Hashable, tuple[T, int]] = OrderedDict()

    def get(self, key: Hashable) -> T | None:
        """The value, None where it is not kept (any more)."""
        found = self._values.get(key)
        if found is None:
            return None
        self._values.move_to_end(key)
        return found[0]

    def put(self, key: Hashable, value: T, cost: int) -> None:
        """Keep a value; the oldest ones make room."""
        if 2 * cost > self._budget:
            return
        if key in self._values:
            self._spent -= self._values.pop(key)[1]
        self._values[key] = (value, cost)
        self._spent += cost
        while self._spent > self._budget:
            _, (_, gone) = self._values.popitem(last=False)
            self._spent -= gone
