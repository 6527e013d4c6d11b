"""The order in which the vendor's compiler goes through its hash tables.

It uses open addressing with robin-hood displacement and goes slot by slot, so the order depends on the keys more than
on the order in which they were inserted. It prints attributes in this order, evaluates unused variables, and
redistributes axes. [source robin_hood.h 3.11; observed 2.10: every recorded node, and 50 of 50 functions with several
unused variables]
"""

from collections.abc import Callable, Iterable
from functools import cache
from typing import Generic, TypeVar

__all__ = ["hash_order", "number_order"]

_WORD = (1 << 64) - 1
_MIX = 0xC6A4A7935BD1E995
_SEED = 0xE17A1465
_NUMBER_MIX = 0xFF51AFD7ED558CCD
_MULTIPLIER = 0xC4CEB9FE1A85EC53
_STEP = 32  # one place away from home, in the units of the distance byte
_SMALLEST = 8
_FULL_PERCENT = 80

_Key = TypeVar("_Key")


def hash_order(names: Iterable[str]) -> tuple[str, ...]:
    """Return different names in the order of a hash table into which they are inserted one after the other.

    Examples
    --------
    >>> hash_order(["IsFeatureMapInputList", "dst_type", "IsFeatureMapOutput", "is_backend_cast"])
    ('is_backend_cast', 'IsFeatureMapOutput', 'IsFeatureMapInputList', 'dst_type')
    >>> hash_order(["x", "t0", "t1", "t2"])
    ('t2', 'x', 't1', 't0')
    """
    return _names_in_order(tuple(names))


@cache
def number_order(count: int) -> tuple[int, ...]:
    """Return the numbers below `count` in the order of a hash table into which they are inserted in turn.

    Examples
    --------
    >>> number_order(5)
    (0, 1, 4, 3, 2)
    """
    return _in_order(range(count), _hash_number)


@cache
def _names_in_order(names: tuple[str, ...]) -> tuple[str, ...]:
    return _in_order(names, _hash)


def _in_order(keys: Iterable[_Key], hashed: Callable[[_Key], int]) -> tuple[_Key, ...]:
    table = _Table(_SMALLEST, hashed)
    for key in keys:
        while not table.insert(key):
            larger = _Table(table.size * 2, hashed)
            for kept in table.listed():
                larger.insert(kept)
            table = larger
    return tuple(table.listed())


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


def _hash_number(number: int) -> int:
    """Return the hash of a small number."""
    value = number * _NUMBER_MIX & _WORD
    return value ^ value >> 33


class _Table(Generic[_Key]):
    """Slots with the distance of each entry from its home; `size` is a power of two."""

    def __init__(self, size: int, hashed: Callable[[_Key], int]) -> None:
        self.size = size
        self._hashed = hashed
        self._slots: dict[int, tuple[int, _Key]] = {}

    def listed(self) -> list[_Key]:
        """Return the keys slot by slot."""
        return [self._slots[place][1] for place in sorted(self._slots)]

    def insert(self, key: _Key) -> bool:
        """Insert a new key; return False if the table is full."""
        slots = self._slots
        if len(slots) >= self.size * _FULL_PERCENT // 100:
            return False
        value = self._hashed(key) * _MULTIPLIER & _WORD
        value ^= value >> 33
        place, distance = (value >> 5) & (self.size - 1), _STEP + (value & (_STEP - 1))
        while place in slots and distance <= slots[place][0]:
            place, distance = place + 1, distance + _STEP
        free = place
        while free in slots:
            free += 1
        for at in range(free, place, -1):
            before, moved = slots[at - 1]
            slots[at] = before + _STEP, moved
        slots[place] = distance, key
        return True
