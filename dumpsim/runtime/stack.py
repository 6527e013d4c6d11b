"""Tensors of many ranks, stacked along a leading axis in groups, and kernels that compute them."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from dumpsim.core.errors import DeviceError
from dumpsim.ops.opdef import OpDef
from dumpsim.runtime.engine.engine import Computed, Engine
from dumpsim.runtime.slot import Array

__all__ = ["GROUP", "Stack", "Value", "compute_stack", "of_rank", "sizes"]

GROUP = 1024  # ranks that are stacked in one array


class Stack:
    """A tensor whose values differ between ranks.

    Parameters
    ----------
    parts : sequence of ndarray
        One array for each group of ranks, in order; the leading axis has an item for each rank.

    Examples
    --------
    >>> stack = Stack([np.arange(6).reshape(3, 2), np.array([[8, 9]])])
    >>> len(stack), stack[2], stack[3]
    (4, array([4, 5]), array([8, 9]))
    """

    __slots__ = ("_first", "parts")

    def __init__(self, parts: Sequence[Array]) -> None:
        self.parts = tuple(parts)
        self._first = len(self.parts[0])  # all groups but the last one have this size

    def __len__(self) -> int:
        return sum(len(part) for part in self.parts)

    def __getitem__(self, rank: int) -> Array:
        value: Array = self.parts[rank // self._first][rank % self._first, ...]  # an array even without axes
        return value

    def __iter__(self) -> Iterator[Array]:
        for part in self.parts:
            yield from (part[place, ...] for place in range(len(part)))

    def reshape(self, shape: tuple[int, ...]) -> "Stack":
        """Return the tensor with another shape in each rank."""
        return Stack([part.reshape(len(part), *shape) for part in self.parts])

    @property
    def nbytes(self) -> int:
        """Bytes of all ranks."""
        return sum(part.nbytes for part in self.parts)


Value = Array | Stack  # an array is equal in all ranks


def sizes(ranks: int, group: int = GROUP) -> list[int]:
    """Return the sizes of the groups of ranks.

    Examples
    --------
    >>> sizes(2500)
    [1024, 1024, 452]
    """
    return [min(group, ranks - first) for first in range(0, ranks, group)]


def of_rank(value: Any, rank: int) -> Any:
    """Return the value of an operand in one rank."""
    if isinstance(value, Stack):
        return value[rank]
    return tuple(of_rank(item, rank) for item in value) if isinstance(value, tuple) else value


def compute_stack(
    engine: Engine,
    definition: OpDef,
    operands: Sequence[Any],
    attrs: Mapping[str, Any],
    shapes: Sequence[tuple[int, ...]],
) -> Computed:
    """Compute one kernel for all ranks.

    Parameters
    ----------
    engine : Engine
    definition : OpDef
        Unless it is `OpDef.batched`, its kernel runs once for each rank.
    operands : sequence
        As for `Engine.compute`; a `Stack` if the values differ between ranks.
    attrs : mapping
    shapes : sequence of tuple of int
        Of the results in one rank.

    Returns
    -------
    Computed
        Arrays if no operand is a stack, else stacks.
    """
    stacks = list(_stacks(operands))
    if not stacks:
        return engine.compute(definition, operands, attrs)
    counts = [len(part) for part in stacks[0].parts]
    compute = _at_once if definition.batched else _one_by_one
    groups = [compute(engine, definition, operands, attrs, shapes, group, count) for group, count in enumerate(counts)]
    results = [Stack([group.results[at] for group in groups]) for at in range(len(groups[0].results))]
    updated = {at: Stack([group.updated[at] for group in groups]) for at in groups[0].updated}
    return Computed(results, updated)


def _at_once(
    engine: Engine,
    definition: OpDef,
    operands: Sequence[Any],
    attrs: Mapping[str, Any],
    shapes: Sequence[tuple[int, ...]],
    group: int,
    count: int,
) -> Computed:
    """Compute the ranks of a group by one call of the kernel."""
    axes = max(len(shape) for shape in _shapes(operands))
    results = engine.compute(definition, [_grouped(operand, group, axes) for operand in operands], attrs).results
    if len(results) != len(shapes):
        raise DeviceError(f"the kernel gave {len(results)} results for {len(shapes)} outputs", where=definition.name)
    return Computed([np.asarray(r).reshape(count, *shape) for r, shape in zip(results, shapes, strict=True)], {})


def _one_by_one(
    engine: Engine,
    definition: OpDef,
    operands: Sequence[Any],
    attrs: Mapping[str, Any],
    shapes: Sequence[tuple[int, ...]],
    group: int,
    count: int,
) -> Computed:
    """Compute the ranks of a group by one call of the kernel for each."""
    results: list[Array] = []
    updated: dict[int, Array] = {}
    for place in range(count):
        mine = [_placed(operand, group, place) for operand in operands]
        for at in definition.updates:
            mine[at] = mine[at].copy()
        computed = engine.compute(definition, mine, attrs)
        if not place:
            results = [_room(value, count) for value in computed.results]
            updated = {at: _room(value, count) for at, value in computed.updated.items()}
        for stacked, value in zip(results, computed.results, strict=True):
            stacked[place] = value
        for at, value in computed.updated.items():
            updated[at][place] = value
    return Computed(list(results), updated)


def _room(value: Any, count: int) -> Array:
    array = np.asarray(value)
    return np.empty((count, *array.shape), array.dtype)


def _stacks(operands: Sequence[Any]) -> Iterator[Stack]:
    for operand in operands:
        if isinstance(operand, Stack):
            yield operand
        elif isinstance(operand, tuple):
            yield from _stacks(operand)


def _shapes(operands: Sequence[Any]) -> Iterator[tuple[int, ...]]:
    """Yield the shapes of the tensors in one rank."""
    for operand in operands:
        if isinstance(operand, Stack):
            yield operand.parts[0].shape[1:]
        elif isinstance(operand, np.ndarray):
            yield operand.shape
        elif isinstance(operand, tuple):
            yield from _shapes(operand)


def _grouped(operand: Any, group: int, axes: int) -> Any:
    """Return an operand of a group; a tensor with fewer axes than others gets axes of size 1 after the leading one."""
    if isinstance(operand, Stack):
        part = operand.parts[group]
        return part.reshape(len(part), *(1,) * (axes + 1 - part.ndim), *part.shape[1:])
    return tuple(_grouped(item, group, axes) for item in operand) if isinstance(operand, tuple) else operand


def _placed(operand: Any, group: int, place: int) -> Any:
    """Return an operand of one rank of a group."""
    if isinstance(operand, Stack):
        return operand.parts[group][place, ...]
    return tuple(_placed(item, group, place) for item in operand) if isinstance(operand, tuple) else operand
