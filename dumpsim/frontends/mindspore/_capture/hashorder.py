"""The order in which the vendor's compiler walks over the variables of a function.

It keeps them in a hash table of strings: Robin Hood hashing with linear probing, and murmur hashing. The order of the
slots decides which unused variable is evaluated first. [source robin_hood.h 3.11; observed 2.10: 50 of 50 functions
with several unused variables]
"""

from collections.abc import Iterable

__all__ = ["hash_order"]

_WORD = (1 << 64) - 1
_SEED, _FACTOR, _SHIFT = 0xE17A1465, 0xC6A4A7935BD1E995, 47
_SPREAD = 0xC4CEB9FE1A85EC53
_DISTANCE = 32  # one step away from an element's own slot; the bits below are bits of its hash


def hash_order(names: Iterable[str]) -> list[str]:
    """Return different names in the order of a hash table into which they are put one after the other.

    Examples
    --------
    >>> hash_order(["x", "t0", "t1", "t2"])
    ['t2', 'x', 't1', 't0']
    """
    table = _Table(8)
    for name in names:
        if table.is_full:
            table = table.doubled()
        table.put(name)
    return table.names()


def _hashed(data: bytes) -> int:
    value = _SEED ^ (len(data) * _FACTOR & _WORD)
    whole = len(data) - len(data) % 8
    for at in range(0, whole, 8):
        word = int.from_bytes(data[at : at + 8], "little") * _FACTOR & _WORD
        word = (word ^ word >> _SHIFT) * _FACTOR & _WORD
        value = (value ^ word) * _FACTOR & _WORD
    if whole < len(data):
        value = (value ^ int.from_bytes(data[whole:], "little")) * _FACTOR & _WORD
    value = (value ^ value >> _SHIFT) * _SPREAD & _WORD
    return value ^ value >> 33


class _Table:
    """A hash table of strings; `size` is a power of two."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._slots: list[tuple[int, str] | None] = []  # distance and bits of the hash, and the string

    @property
    def is_full(self) -> bool:
        """Whether the table grows before the next element."""
        return len(self.names()) >= self._size * 80 // 100

    def doubled(self) -> "_Table":
        """Return a table of twice the size, filled in the order of this one."""
        made = _Table(2 * self._size)
        for name in self.names():
            made.put(name)
        return made

    def put(self, name: str) -> None:
        """Put a string before the first one that is nearer to its own slot."""
        value = _hashed(name.encode())
        at, info = (value >> 5) & (self._size - 1), _DISTANCE + (value & 31)
        while self._info(at) >= info:
            at, info = at + 1, info + _DISTANCE
        self._slots += [None] * (at + 1 - len(self._slots))
        free = at
        while free < len(self._slots) and self._slots[free] is not None:
            free += 1
        self._slots += [None] * (free + 1 - len(self._slots))
        for place in range(free, at, -1):
            before = self._slots[place - 1]
            assert before is not None
            self._slots[place] = before[0] + _DISTANCE, before[1]
        self._slots[at] = info, name

    def _info(self, at: int) -> int:
        slot = self._slots[at] if at < len(self._slots) else None
        return 0 if slot is None else slot[0]

    def names(self) -> list[str]:
        """Return the strings in the order of their slots."""
        return [slot[1] for slot in self._slots if slot is not None]
