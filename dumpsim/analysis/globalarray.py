"""Assembles a whole tensor from the slices of the ranks, by its layout."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from math import prod
from typing import Any

import numpy as np

from dumpsim.analysis.entry import Entry
from dumpsim.analysis.slicing import Layouts, Sliced
from dumpsim.core.errors import BadInputError, UnreadableError

__all__ = ["Disagreement", "GlobalArray", "Key", "joined", "key_of", "only"]

Array = np.ndarray[Any, Any]
# step, iteration, graph id, type, name, io, slot, and the number of the run in the iteration
Key = tuple[int | None, int | None, int | None, str, str, str, int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Disagreement:
    """Ranks whose copies of one slice differ.

    Attributes
    ----------
    ranks : tuple of int
        The ranks that differ from the majority; all ranks if there is no majority.
    replicas : tuple of int
        All ranks with this slice.
    elements : int
        Elements in which some of them differ.
    """

    ranks: tuple[int, ...]
    replicas: tuple[int, ...]
    elements: int

    def __str__(self) -> str:
        ranks = ", ".join(map(str, self.ranks))
        return f"rank{'s' * (len(self.ranks) > 1)} {ranks} of the replicas {self.replicas} ({self.elements} elements)"


@dataclass(frozen=True, slots=True, kw_only=True)
class GlobalArray:
    """A whole tensor, assembled from the slices of all ranks.

    Attributes
    ----------
    entries : mapping
        The dumped slice by rank.
    sliced : Sliced
        Its layout.
    array : numpy.ndarray
        The whole tensor, read-only. If replicas disagree, it has the slice of the majority, or else of the lowest rank.
    disagreements : tuple of Disagreement
    missing : tuple of int
        Ranks that did not dump their slice. If no replica has it either, its part is zero and listed in `holes`.
    holes : tuple of tuple of slice
        Parts that no rank dumped.
    """

    entries: Mapping[int, Entry]
    sliced: Sliced
    array: Array = field(repr=False)
    disagreements: tuple[Disagreement, ...] = ()
    missing: tuple[int, ...] = ()
    holes: tuple[tuple[slice, ...], ...] = ()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return np.array(self.array, dtype=dtype) if copy or dtype is not None else self.array

    @property
    def entry(self) -> Entry:
        """The slice of the lowest rank."""
        return self.entries[min(self.entries)]

    @property
    def shape(self) -> tuple[int, ...]:
        return self.sliced.layout.shape


def key_of(entry: Entry, run: int = 0) -> Key:
    """Return the key that the slices of one tensor share; `run` numbers the operator's runs in the iteration."""
    place, name = entry.place, entry.name
    return (place.step, place.iteration, place.graph_id, name.op_type, entry.op_name, name.io, name.slot, run)


def joined(entries: Iterable[Entry], layouts: Layouts) -> Iterator[tuple[Key, GlobalArray]]:
    """Yield the tensors of a dump with known layouts, in the order of the lowest rank."""
    for key, slices in _by_rank(entries).items():
        first = slices[min(slices)]
        sliced = layouts.of(first)
        if sliced is not None:
            yield key, _put_together(slices, sliced)


def only(entries: Iterable[Entry], layouts: Layouts, where: str) -> GlobalArray:
    """Return the one tensor that the entries are slices of.

    Raises
    ------
    BadInputError
        For slices of several tensors, or of none.
    UnreadableError
        For a tensor without a layout, or slices that do not fit it.
    """
    found = _by_rank(entries)
    if len(found) != 1:
        several = ", ".join(f"{key[4]}:{key[5]}.{key[6]} (iteration {key[1]})" for key in list(found)[:4])
        more = f" and {len(found) - 4} more" if len(found) > 4 else ""
        raise BadInputError(
            f"slices of {len(found)} tensors, not of one" + (f": {several}{more}" if found else ""),
            where=where,
            allowed=("a dump that filter() has narrowed to one tensor of one iteration",),
        )
    ((_, slices),) = found.items()
    first = slices[min(slices)]
    sliced = layouts.of(first)
    if sliced is None:
        raise UnreadableError(
            f"no manifest and no graph has the layout of {first.label}",
            where=where,
            allowed=tuple(sorted({k[1] for k in layouts})[:4]),
        )
    return _put_together(slices, sliced)


def _by_rank(entries: Iterable[Entry]) -> dict[Key, dict[int, Entry]]:
    found: dict[Key, dict[int, Entry]] = {}
    runs: Counter[tuple[int, Key]] = Counter()
    for entry in entries:
        plain = key_of(entry)
        run = runs[entry.rank, plain]
        runs[entry.rank, plain] += 1
        found.setdefault(key_of(entry, run), {})[entry.rank] = entry
    return found


def _put_together(slices: Mapping[int, Entry], sliced: Sliced) -> GlobalArray:
    layout = sliced.layout
    arrays = {rank: np.asarray(entry.array()) for rank, entry in slices.items()}
    for rank, array in arrays.items():
        if rank >= layout.devices:
            raise UnreadableError(
                f"rank {rank} is outside of its layout of {layout.devices} devices", where=slices[rank].label
            )
        if array.size != prod(layout.slice_shape):
            raise UnreadableError(
                f"rank {rank} dumped {array.shape}, its layout says {layout.slice_shape}", where=slices[rank].label
            )
    # the result of a Reshape without a kernel is dumped in the shape before [spec observed]
    arrays = {rank: array.reshape(layout.slice_shape) for rank, array in arrays.items()}
    first = next(iter(arrays.values()))
    whole = np.zeros(layout.shape, first.dtype)
    disagreements: list[Disagreement] = []
    holes: list[tuple[slice, ...]] = []
    terms = _terms(sliced)  # of a tensor that is not a sum, one: ()
    for region, ranks in _regions(sliced).items():
        total: Array | None = None
        for replicas in _by_term(sliced, ranks, terms):
            here = [rank for rank in replicas if rank in arrays]
            if not here:
                total = None
                break
            chosen, odd = _majority({rank: arrays[rank] for rank in here})
            if odd is not None:
                disagreements.append(odd)
            total = arrays[chosen] if total is None else total + arrays[chosen]
        if total is None:
            holes.append(tuple(slice(start, stop) for start, stop in region))
        else:
            whole[tuple(slice(start, stop) for start, stop in region)] = total
    whole.flags.writeable = False
    missing = tuple(rank for rank in range(layout.devices) if rank not in arrays)
    return GlobalArray(
        entries=slices, sliced=sliced, array=whole, disagreements=tuple(disagreements), missing=missing,
        holes=tuple(holes),
    )  # fmt: skip


def _regions(sliced: Sliced) -> dict[tuple[tuple[int, int], ...], list[int]]:
    """Group the ranks by the region of the whole tensor that they hold."""
    found: dict[tuple[tuple[int, int], ...], list[int]] = {}
    for rank in range(sliced.layout.devices):
        region = tuple((part.start, part.stop) for part in sliced.layout.region(rank))
        found.setdefault(region, []).append(rank)
    return found


def _terms(sliced: Sliced) -> list[tuple[int, ...]]:
    """Return the coordinates along the summed dimensions."""
    return list(product(*(range(sliced.layout.extent(dim)) for dim in sliced.summed)))


def _by_term(sliced: Sliced, ranks: Sequence[int], terms: Sequence[tuple[int, ...]]) -> Iterator[list[int]]:
    """Group the ranks of a region by the term of the sum that they hold."""
    for term in terms:
        yield [
            rank
            for rank in ranks
            if not term or tuple(sliced.layout.coordinate(rank, dim) for dim in sliced.summed) == term
        ]


def _majority(arrays: Mapping[int, Array]) -> tuple[int, Disagreement | None]:
    """Return a rank with the majority's slice, and the ranks that differ from it."""
    ranks = sorted(arrays)
    groups: dict[bytes, list[int]] = {}
    for rank in ranks:
        groups.setdefault(arrays[rank].tobytes(), []).append(rank)
    if len(groups) == 1:
        return ranks[0], None
    most = max(len(members) for members in groups.values())
    leading = [members for members in groups.values() if len(members) == most]
    chosen = leading[0]
    odd = [rank for rank in ranks if rank not in chosen] if len(leading) == 1 else ranks
    raw = [arrays[rank].reshape(-1).view(np.uint8).reshape(-1, max(arrays[rank].itemsize, 1)) for rank in ranks]
    different = np.logical_or.reduce([(one != raw[0]).any(axis=1) for one in raw[1:]])
    return chosen[0], Disagreement(ranks=tuple(odd), replicas=tuple(ranks), elements=int(different.sum()))
