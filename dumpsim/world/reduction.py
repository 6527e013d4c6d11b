"""Reductions over ranks: the order of the additions, and the rounding after each of them. [spec parallel 3.3]"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any
from zlib import crc32

import numpy as np
import numpy.typing as npt

from dumpsim.core.communicator import Terms
from dumpsim.core.dtype import from_numpy
from dumpsim.core.errors import BadInputError, nearest
from dumpsim.device.chip import OverflowMode
from dumpsim.device.halves import floating, to_single
from dumpsim.device.overflow import narrow

__all__ = ["ORDERS", "REDUCTIONS", "Accumulator", "check_order", "fold", "folder"]

Array = npt.NDArray[Any]
Add = Callable[[Array, Array], Array]

ORDERS = ("rank", "ring", "tree", "fp32acc", "random:SEED")
_UFUNCS: dict[str, np.ufunc] = {
    "sum": np.add,
    "prod": np.multiply,
    "max": np.maximum,
    "min": np.minimum,
}
REDUCTIONS = tuple(_UFUNCS)
_PIECE = 1 << 18  # bytes of terms that are converted at a time


def check_order(order: str, where: str) -> str:
    """Return `order` if it is valid.

    Raises
    ------
    BadInputError
        For any other text.

    Examples
    --------
    >>> check_order("random:7", "--reduce-order")
    'random:7'
    >>> check_order("rings", "--reduce-order")
    Traceback (most recent call last):
        ...
    dumpsim.core.errors.BadInputError: --reduce-order: unknown order of reduction 'rings'; \
allowed: rank, ring, tree, fp32acc, random:SEED (did you mean 'ring'?)
    """
    kind, _, seed = order.partition(":")
    if order in ORDERS[:-1] or (kind == "random" and seed.isascii() and seed.isdigit() and len(seed) <= 18):
        return order
    raise BadInputError(
        f"unknown order of reduction {order!r}", where=where, allowed=ORDERS, nearest=nearest(order, ORDERS)
    )


def fold(
    terms: Sequence[Array],
    reduce: str,
    *,
    order: str = "rank",
    key: Sequence[int] = (),
    mode: OverflowMode | None = None,
    start: int = 0,
    total: int | None = None,
) -> Array:
    """Reduce arrays of equal shapes elementwise, in their own number type.

    Parameters
    ----------
    terms : sequence of array
        One for each member, in the order of the group; complex numbers allow ``sum`` only.
    reduce : {"sum", "prod", "max", "min"}
    order : str
        ``rank``: from the first member to the last; float16 and bfloat16 are rounded after each operation. ``ring``:
        the elements are cut into as many chunks as there are members, and chunk c starts at member c + 1. ``tree``:
        neighbours first, then neighbouring pairs. ``fp32acc``: as ``rank``, but 16-bit floats are rounded once.
        ``random:SEED``: as ``rank``, in a permutation given by seed and `key`.
    key : sequence of int
        What distinguishes this call from others, for ``random``.
    mode : OverflowMode, optional
        How the device handles a 16-bit float that is too large, after each operation.
    start, total : int
        If `terms` are a part of the flat tensors: its first element and the number of all elements, which decide the
        chunks of ``ring``.

    Returns
    -------
    ndarray
        The term itself if there is only one.

    Examples
    --------
    >>> terms = [np.array([value], np.float16) for value in (2048, 1, 1)]
    >>> [int(fold(terms, "sum", order=order)[0]) for order in ("rank", "tree", "ring", "fp32acc")]
    [2048, 2048, 2050, 2050]
    """
    if len(terms) == 1:
        return terms[0]
    ufunc, kind = _UFUNCS[reduce], terms[0].dtype
    add = _operation(ufunc, kind, mode)
    with np.errstate(all="ignore"):
        if order == "ring":
            return _ring(terms, add, start, total)
        if order == "tree":
            return _tree(list(terms), add)
        if order == "fp32acc" and _is_half(kind):
            wide = to_single(terms[0])
            for term in terms[1:]:
                wide = ufunc(wide, to_single(term))
            return narrow(wide, from_numpy(kind), mode)[0]
        if order.startswith("random:"):
            draws = np.random.default_rng([int(order[len("random:") :]), *key])
            terms = [terms[at] for at in draws.permutation(len(terms))]
        return _left(terms, add)


def folder(terms: Terms, group: str, index: int) -> Callable[[Sequence[Array], str], Array]:
    """Return ``fold(terms, reduce)`` for one collective of a group.

    Parameters
    ----------
    terms : Terms
        Of the first member.
    group : str
    index : int
        Number of the collective in the group.

    Examples
    --------
    >>> folder(Terms(), "hccl_world_group", 0)([np.array([3]), np.array([4])], "prod")
    array([12])
    """
    mode = OverflowMode.SATURATION if terms.saturates else OverflowMode.INFNAN
    return partial(fold, order=terms.order, key=(crc32(group.encode()), index), mode=mode)


class Accumulator:
    """A fold whose terms arrive in blocks, with the same bytes as `fold`.

    Parameters
    ----------
    reduce, order, mode
        See `fold`. ``ring`` and ``random:SEED`` store the blocks until the end, the other orders only sums.

    Examples
    --------
    >>> total = Accumulator("sum")
    >>> total.add(np.array([[1, 2], [3, 4]], np.int8))
    >>> total.add(np.array([[100, 124]], np.int8))
    >>> total.total()
    array([ 104, -126], dtype=int8)
    """

    def __init__(self, reduce: str, *, order: str = "rank", mode: OverflowMode | None = None) -> None:
        self._reduce = reduce
        self._ufunc = _UFUNCS[reduce]
        self._order = order
        self._mode = mode if mode is OverflowMode.SATURATION else None  # overflow is not checked
        self._compiled = True  # until a total has a number whose bits depend on numpy, see `_is_settled`
        self._count = 0
        self._total: Array | None = None
        self._first: Array | None = None  # the only term is not rounded
        self._blocks: list[Array] = []
        self._tree: list[tuple[int, Array]] = []  # sums of 2**height terms

    def add(self, block: Array) -> None:
        """Add the next terms, stacked along the leading axis."""
        if not len(block):
            return
        self._count += len(block)
        if self._order == "ring" or self._order.startswith("random:"):
            self._blocks.append(block)
            return
        with np.errstate(all="ignore"):
            if self._order == "tree":
                add = _operation(self._ufunc, block.dtype, self._mode)
                for term in _rows(block):
                    self._climb(term.copy(), add)
            elif _is_half(block.dtype):
                for piece in _pieces(block):
                    self._add_halves(piece)
            else:
                if self._total is None:
                    self._total, block = block[0, ...].copy(), block[1:]
                self._total = self._left(self._total, block, _operation(self._ufunc, block.dtype, self._mode))

    def total(self, key: Sequence[int] = ()) -> Array:
        """Return the result.

        Parameters
        ----------
        key : sequence of int
            See `fold`.
        """
        if self._blocks:
            terms = [term for block in self._blocks for term in _rows(block)]
            total = fold(terms, self._reduce, order=self._order, key=key, mode=self._mode)
            return total.copy() if len(terms) == 1 else total
        if self._count == 1 and self._first is not None:
            return self._first
        with np.errstate(all="ignore"):
            if self._tree:
                *lower, (_, total) = self._tree
                add = _operation(self._ufunc, total.dtype, self._mode)
                for _, sum_ in reversed(lower):
                    total = add(sum_, total)
                self._tree = [(0, total)]
                return total
            assert self._total is not None
            if self._order == "fp32acc" and self._first is not None:
                return narrow(self._total, from_numpy(self._first.dtype), self._mode)[0]
        return self._total

    def _climb(self, term: Array, add: Add) -> None:
        height = 0
        while self._tree and self._tree[-1][0] == height:
            term = add(self._tree.pop()[1], term)
            height += 1
        self._tree.append((height, term))

    def _add_halves(self, block: Array) -> None:
        wide = to_single(block)
        if self._first is None:
            self._first = block[0, ...].copy()
            self._total, wide = (wide[0, ...].copy() if self._order == "fp32acc" else self._first), wide[1:]
        total = self._total
        assert total is not None
        if self._order == "fp32acc":
            self._total = self._left(total, wide, lambda a, b: self._ufunc(a, b))
            return
        target = from_numpy(block.dtype)
        for term in _rows(wide):
            total = narrow(self._ufunc(to_single(total), term), target, self._mode)[0]
        self._total = total

    def _left(self, total: Array, block: Array, add: Add) -> Array:
        """Fold the terms of a block into `total`, in order; `total` may be overwritten."""
        if self._compiled and total.size and len(block):
            wanted = _compiled(total.dtype, self._reduce)
            if wanted is not None:
                from dumpsim._ext import fold as loops

                before = total.copy()
                totals, terms = total.reshape(-1).view(wanted), block.reshape(len(block), -1)
                if terms.strides[1] != terms.itemsize:
                    terms = np.ascontiguousarray(terms)
                nan = loops.left(totals, terms.view(wanted), loops.OPS[self._reduce])
                if wanted.kind == "i" or (not nan and self._is_settled(totals)):
                    return total
                total[...] = before
            self._compiled = False
        for term in _rows(block):
            total = add(total, term)
        return total

    def _is_settled(self, total: Array) -> bool:
        """Whether the bits of the result are unique: which NaN, or which zero, may depend on how numpy is compiled."""
        if self._reduce in ("max", "min"):
            return bool((np.abs(total) > 0).all())
        return not np.isnan(total).any()


def _compiled(kind: "np.dtype[Any]", reduce: str) -> "np.dtype[Any] | None":
    """Return the type as which the compiled loops fold a number type; None if they do not support it."""
    if not kind.isnative:
        return None
    if kind == np.complex64 and reduce == "sum":
        return np.dtype(np.float32)
    return kind if kind.kind == "i" or kind == np.float32 else None


def _rows(block: Array) -> Iterator[Array]:
    """Iterate over the terms of a block, as arrays even if they have no axes."""
    return iter(block) if block.ndim > 1 else (block[at, ...] for at in range(len(block)))


def _pieces(block: Array) -> Iterator[Array]:
    """Split a block into parts that fit into the processor's cache."""
    count = max(1, _PIECE // max(1, block[:1].nbytes))
    return (block[first : first + count] for first in range(0, len(block), count))


def _is_half(kind: "np.dtype[Any]") -> bool:
    return kind.itemsize == 2 and floating(np.empty(0, kind))


def _operation(ufunc: Callable[..., Array], kind: "np.dtype[Any]", mode: OverflowMode | None) -> Add:
    """Return the function of one step of a reduction; it may overwrite its first operand."""
    if _is_half(kind):
        target = from_numpy(kind)

        def half(a: Array, b: Array) -> Array:
            return narrow(ufunc(to_single(a), to_single(b)), target, mode)[0]

        return half

    def plain(a: Array, b: Array) -> Array:
        return ufunc(a, b, out=a)

    return plain


def _left(terms: Sequence[Array], add: Add) -> Array:
    total = terms[0].copy()
    for term in terms[1:]:
        total = add(total, term)
    return total


def _tree(terms: list[Array], add: Add) -> Array:
    pairs = [add(terms[at].copy(), terms[at + 1]) for at in range(0, len(terms) - 1, 2)]
    while len(terms) > 1:
        terms = pairs + terms[len(pairs) * 2 :]
        pairs = [add(terms[at], terms[at + 1]) for at in range(0, len(terms) - 1, 2)]
    return terms[0]


def _ring(terms: Sequence[Array], add: Add, start: int, total: int | None) -> Array:
    count = len(terms)
    flat = [term.reshape(-1) for term in terms]
    first = flat[0]
    result = np.empty_like(first)
    for chunk, begin, end in _chunks(count, start, first.size, first.size if total is None else total):
        turned = [flat[(chunk + 1 + at) % count][begin:end] for at in range(count)]
        result[begin:end] = _left(turned, add)
    return result.reshape(terms[0].shape)


def _chunks(count: int, start: int, size: int, total: int) -> Iterator[tuple[int, int, int]]:
    """Iterate over the chunks of the part that begins at `start`: number, begin and end in the part."""
    width = max(1, -(-total // count))
    for chunk in range(start // width, -(-(start + size) // width)):
        yield chunk, max(chunk * width - start, 0), min((chunk + 1) * width - start, size)
