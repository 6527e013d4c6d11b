"""The free and allocated parts of an address range: the fit rules of an allocator, without any bytes."""

from bisect import bisect_left, insort
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from dumpsim.core.errors import BadInputError, nearest

__all__ = ["BLOCK_RULES", "FITS", "BlockRule", "Space"]

FITS = ("best", "first")


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockRule:
    """The size of a tensor's block, and the position of the tensor in it.

    Attributes
    ----------
    granule : int
        Block sizes are multiples of it.
    spare : int
        Bytes that are always free after the tensor.
    guard : int
        Bytes before and after the granules.
    align : int
        Blocks and tensors begin at multiples of it.

    Examples
    --------
    >>> [BLOCK_RULES["static"].block(n) for n in (1, 480, 481, 512)]
    [512, 512, 1024, 1024]
    >>> BLOCK_RULES["communication"].block(512)
    1536
    """

    name: str
    granule: int
    spare: int = 0
    guard: int = 0
    align: int

    def block(self, size: int) -> int:
        """Return the size of the block of a tensor of `size` bytes; an empty tensor takes one granule."""
        return max(1, -(-(size + self.spare) // self.granule)) * self.granule + 2 * self.guard


BLOCK_RULES: Mapping[str, BlockRule] = MappingProxyType(
    {
        rule.name: rule
        for rule in (
            BlockRule(name="dynamic", granule=512, align=512),  # [spec parallel 4.3: pool blocks 512 B]
            BlockRule(name="static", granule=512, spare=32, align=512),  # [spec parallel 4.3: 2.4 static graph]
            BlockRule(
                name="communication", granule=512, guard=512, align=512
            ),  # [spec parallel 4.3: guard on both sides]
            BlockRule(name="acl", granule=32, spare=32, align=64),  # [spec parallel 4.3: aclrtMalloc, start 64 B]
        )
    }
)


class Space:
    """Allocates and frees ranges of the offsets from 0 to `capacity`.

    Parameters
    ----------
    capacity : int
        Size of the range.
    fit : str
        ``best``: the smallest hole that is large enough; ``first``: the one with the lowest offset.
    reuse : bool
        Whether freed ranges are used again.

    Examples
    --------
    >>> space = Space(4096)
    >>> a, b = space.take(512), space.take(1024)
    >>> space.give(a)
    512
    >>> space.take(256), b
    (0, 512)
    """

    __slots__ = ("_by_offset", "_by_size", "_taken", "capacity", "fit", "peak", "reuse")

    def __init__(self, capacity: int, *, fit: str = "best", reuse: bool = True) -> None:
        if fit not in FITS:
            raise BadInputError(f"{fit!r} is not a fit rule", where="fit", allowed=FITS, nearest=nearest(fit, FITS))
        self.capacity = capacity
        self.fit = fit
        self.reuse = reuse
        self.peak = 0
        self._by_offset: list[tuple[int, int]] = [(0, capacity)]  # holes (offset, size)
        self._by_size: list[tuple[int, int]] = [(capacity, 0)]
        self._taken: dict[int, int] = {}

    @property
    def largest_hole(self) -> int:
        """Size of the largest free range."""
        return self._by_size[-1][0] if self._by_size else 0

    def take(self, size: int, align: int = 1) -> int | None:
        """Allocate `size` bytes at a multiple of `align` and return the offset, None if no hole is large enough."""
        hole = self._find(size, align)
        if hole is None:
            return None
        start, length = hole
        offset = -(-start // align) * align
        self._remove(start, length)
        if offset > start:
            self._insert(start, offset - start)
        if start + length > offset + size:
            self._insert(offset + size, start + length - offset - size)
        self._taken[offset] = size
        self.peak = max(self.peak, offset + size)
        return offset

    def give(self, offset: int) -> int:
        """Free the range that begins at `offset` and return its size; KeyError if no range begins there."""
        size = given = self._taken.pop(offset)
        if not self.reuse:
            return given
        at = bisect_left(self._by_offset, (offset,))
        if at < len(self._by_offset) and self._by_offset[at][0] == offset + size:
            after = self._by_offset[at]
            self._remove(*after)
            size += after[1]
        if at > 0 and sum(self._by_offset[at - 1]) == offset:
            before = self._by_offset[at - 1]
            self._remove(*before)
            offset, size = before[0], before[1] + size
        self._insert(offset, size)
        return given

    def _find(self, size: int, align: int) -> tuple[int, int] | None:
        if self.fit == "first":
            return next((h for h in self._by_offset if -(-h[0] // align) * align + size <= sum(h)), None)
        for length, start in self._by_size[bisect_left(self._by_size, (size,)) :]:
            if -(-start // align) * align + size <= start + length:
                return start, length
        return None

    def _insert(self, offset: int, size: int) -> None:
        insort(self._by_offset, (offset, size))
        insort(self._by_size, (size, offset))

    def _remove(self, offset: int, size: int) -> None:
        del self._by_offset[bisect_left(self._by_offset, (offset, size))]
        del self._by_size[bisect_left(self._by_size, (size, offset))]
