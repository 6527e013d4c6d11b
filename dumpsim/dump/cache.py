"""A cache of values computed from versions of buffers: an output is often the next operator's input."""

from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

__all__ = ["Cache"]

T = TypeVar("T")


class Cache(Generic[T]):
    """The most recently used values, within a budget.

    Parameters
    ----------
    budget : int
        Upper bound of the costs of all values; a value that costs more than half of it is not stored.

    Examples
    --------
    >>> cache = Cache(10)
    >>> for name in "abc":
    ...     cache.put(name, name.upper(), 4)
    >>> cache.get("a"), cache.get("b"), cache.get("c")
    (None, 'B', 'C')
    """

    __slots__ = ("_budget", "_spent", "_values")

    def __init__(self, budget: int) -> None:
        self._budget = budget
        self._spent = 0
        self._values: OrderedDict[Hashable, tuple[T, int]] = OrderedDict()

    def get(self, key: Hashable) -> T | None:
        """Return the value, None if it is missing or was dropped."""
        found = self._values.get(key)
        if found is None:
            return None
        self._values.move_to_end(key)
        return found[0]

    def put(self, key: Hashable, value: T, cost: int) -> None:
        """Store a value, and drop the least recently used ones if the budget is exceeded."""
        if 2 * cost > self._budget:
            return
        if key in self._values:
            self._spent -= self._values.pop(key)[1]
        self._values[key] = (value, cost)
        self._spent += cost
        while self._spent > self._budget:
            _, (_, gone) = self._values.popitem(last=False)
            self._spent -= gone
