"""The order in which the vendor's compiler prints attributes.

It stores them in an open-addressed hash table with robin-hood displacement and prints them slot by slot, so the order
depends only on the names, not on the order in which they were set. [observed 2.10: every recorded node]
"""

from collections.abc import Iterable
from functools import cache

__all__ = ["printing_order"]

_WORD = (1 << 64) - 1
_MIX = 0xC6A4A7935BD1E995
_SEED = 0xE17A1465
_MULTIPLIER = 0xC4CEB9FE1A85EC53
_STEP = 32  # one place away from home, in the units of the distance byte
_SMALLEST = 8
_FULL_PERCENT = 80


def _hash(name: str) -> int:
    """Return MurmurHash64A without its last round."""
    data = name.encode()
    value = _SEED ^ (len(data) * _MIX & _WORD)
    whole = len(data) // 8 * 8
    for place in range(0, whole, 8):
        block = int.from_bytes(data[place : place + 8], "little") * _MIX & _WORD
        block = (block ^ block >> 47) * _MIX & _WORD
        value = (value ^ block) * _MIX & _WORD
    if whole < len(data):
        value = (value ^ int.from_bytes(data[whole:], "little")) * _MIX & _WORD
    return value ^ value >> 47


class _Table:
    """Slots with the distance of each entry from its home."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.names: list[str | None] = [None] * (2 * size)
        self.distances = [0] * (2 * size)
        self.count = 0

    def insert(self, name: str) -> bool:
        """Insert a name; return False if the table is full."""
        value = _hash(name) * _MULTIPLIER & _WORD
        value ^= value >> 33
        place, distance = (value >> 5) & (self.size - 1), _STEP + (value & (_STEP - 1))
        while distance <= self.distances[place]:
            if self.names[place] == name:
                return True
            place, distance = place + 1, distance + _STEP
        if self.count >= self.size * _FULL_PERCENT // 100:
            return False
        free = place
        while self.distances[free]:
            free += 1
        for slot in range(free, place, -1):
            self.names[slot], self.distances[slot] = self.names[slot - 1], self.distances[slot - 1] + _STEP
        self.names[place], self.distances[place] = name, distance
        self.count += 1
        return True


@cache
def _ordered(names: tuple[str, ...]) -> tuple[str, ...]:
    table = _Table(_SMALLEST)
    for name in names:
        while not table.insert(name):
            larger = _Table(table.size * 2)
            for kept in table.names:
                if kept is not None:
                    larger.insert(kept)
            table = larger
    return tuple(name for name in table.names if name is not None)


def printing_order(names: Iterable[str]) -> tuple[str, ...]:
    """Return attribute names in the vendor's order.

    Examples
    --------
    >>> printing_order(["IsFeatureMapInputList", "dst_type", "IsFeatureMapOutput", "is_backend_cast"])
    ('is_backend_cast', 'IsFeatureMapOutput', 'IsFeatureMapInputList', 'dst_type')
    """
    return _ordered(tuple(names))
