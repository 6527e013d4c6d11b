"""``mindspore.parallel.Layout``: the named dimensions of the devices that slice the axes of a tensor."""

from collections.abc import Iterator
from math import prod
from typing import Any

from dumpsim.core.errors import ScriptTypeError, ScriptValueError, UnsupportedError
from dumpsim.core.tensorlayout import WHOLE, Axis, TensorLayout

__all__ = ["Layout", "check_strategies", "rows_of"]

_INTERLEAVED = "interleaved_parallel"


class Layout:
    """A matrix of devices with named dimensions; calling it with one name per axis gives the layout of a tensor.

    Parameters
    ----------
    device_matrix : tuple of int
    alias_name : tuple of str
    rank_list : list of int, optional
        Stored only: strategies number the ranks from 0, as in MindSpore.

    Raises
    ------
    ScriptTypeError, ScriptValueError
        As in MindSpore, with its messages.

    Examples
    --------
    >>> layout = Layout((2, 2, 2), ("dp", "sp", "mp"))
    >>> layout("dp", ("sp", "mp"), "None").to_dict()["tensor_map"]
    (2, (1, 0), -1)
    """

    def __init__(self, device_matrix: Any, alias_name: Any, rank_list: Any = None) -> None:
        for name, value in (("device_matrix", device_matrix), ("alias_name", alias_name)):
            if not isinstance(value, tuple):
                raise ScriptTypeError(f"{name} must be tuple type, but got:{type(value)}")
        if len(device_matrix) != len(alias_name):
            raise ScriptValueError("device_matrix length should be equal to alias_name length")
        for value in device_matrix:
            if not isinstance(value, int):
                raise ScriptTypeError(f"The element of device_matrix must be int type, but got:{type(value)}")
        for value in alias_name:
            if not isinstance(value, str):
                raise ScriptTypeError(f"The element of alias_name must be str type, but got:{type(value)}")
            if not value:
                raise ScriptValueError("The element of alias_name can not be empty.")
            if value == "None":
                raise ScriptValueError(
                    "The element of alias_name can not set 'None', because 'None' means no sharding."
                )
        if len(set(alias_name)) != len(alias_name):
            raise ScriptValueError(f"Each element of alias_name {alias_name} should be different")
        if _INTERLEAVED in alias_name:
            if alias_name[-1] != _INTERLEAVED:
                raise ScriptValueError(
                    f"When alias_name {alias_name} contains keyword 'interleaved_parallel', it should be at the last "
                    "dim of alias_name, which means the virtual sharding."
                )
            raise UnsupportedError("interleaved_parallel is not emulated", where="Layout.alias_name")
        self._ranks = (
            list(range(prod(device_matrix))) if rank_list is None else _checked_ranks(rank_list, device_matrix)
        )
        self._matrix: tuple[int, ...] = device_matrix
        self._names: tuple[str, ...] = alias_name
        self._map: tuple[Axis, ...] | None = None

    def __call__(self, *tensor_map: Any) -> "Layout":
        used: set[str] = set()
        layout = Layout(self._matrix, self._names, self._ranks)
        layout._map = tuple(
            tuple(self._dim(name, used) for name in axis) if isinstance(axis, tuple) else self._dim(axis, used)
            for axis in tensor_map
        )
        return layout

    def _dim(self, name: Any, used: set[str]) -> int:
        if name == "None":
            return WHOLE
        if name not in self._names:
            raise ScriptValueError(f"The axis {name} is not found in {self._names}")
        if name in used:
            raise ScriptValueError(f"The axis {name} has been set more than one in {self._names}")
        used.add(name)
        return len(self._names) - 1 - self._names.index(name)

    def to_dict(self) -> dict[str, Any]:
        """Return the layout as plain values."""
        if self._map is None:
            raise ScriptValueError("The tensor_map of layout is None")
        return {
            "device_matrix": self._matrix,
            "tensor_map": self._map,
            "interleaved_parallel": False,
            "alias_name": self._names,
            "rank_list": list(self._ranks),
        }

    def as_row(self) -> TensorLayout:
        """Return the layout of an operand of any shape."""
        found = self.to_dict()
        return TensorLayout(found["device_matrix"], found["tensor_map"], ())


def _checked_ranks(ranks: Any, matrix: tuple[int, ...]) -> list[int]:
    if not isinstance(ranks, list):
        raise ScriptTypeError(f"The rank_list should be a list, but got {type(ranks).__name__}.")
    for rank in ranks:
        if not isinstance(rank, int):
            raise ScriptTypeError(f"The element of rank_list should be int, but got {type(rank).__name__}.")
    if len(ranks) != prod(matrix):
        raise ScriptValueError(
            "The length of rank_list should be equal to the product of device_matrix, "
            f"but got {len(ranks)} and {prod(matrix)}."
        )
    return ranks


_NESTED = frozenset({"GroupedMatmul", "FusedInferAttentionScore", "Custom", "Index"})  # accept tuples in their rows


def check_strategies(name: str, given: Any, result: Any, *, own: bool = False) -> None:
    """Check the strategies of a primitive, as in MindSpore.

    Parameters
    ----------
    name : str
        Name of the primitive.
    given, result : tuple or None
        Strategies of the operands and of the results.
    own : bool
        Whether the primitive defines the layouts of its results.

    Raises
    ------
    ScriptTypeError, ScriptValueError
    """
    nests = name in _NESTED or own
    kinds = [
        None if strategy is None else _kind_of(name, strategy, argument, nests=nests)
        for strategy, argument in ((given, "in_strategy"), (result, "out_strategy"))
    ]
    is_layout = kinds[0] if kinds[0] is not None else kinds[1]
    if kinds[1] is not None and is_layout != kinds[1] and not nests:
        raise ScriptValueError(
            "The in_strategy type must equal to the out_strategy type, one using tuple(tuple) and the other using "
            "tuple(Layout) is not allowed."
        )
    if given is None and result is not None:
        raise ScriptValueError(f"The out_strategy of {name} is {result}, need to set in_strategy, but got none")
    for strategy, argument in ((given, "in_strategy"), (result, "out_strategy")):
        if is_layout and strategy is not None and not all(isinstance(row, (Layout, tuple)) for row in strategy):
            raise ScriptTypeError(f"The {argument} item should be a object of class Layout or a tuple.")
        rows = [row for row in strategy or () if isinstance(row, tuple)] if is_layout else []
        if not all(isinstance(item, Layout) for row in rows for item in row):
            raise ScriptTypeError(f"The {argument} item should be a object of class Layout.")


def _kind_of(name: str, strategy: Any, argument: str, *, nests: bool) -> bool | None:
    """Return whether a strategy begins with a layout, or None for an empty one."""
    if not isinstance(strategy, tuple):
        raise ScriptTypeError(f"{argument} must be tuple type, but got:{type(strategy)}")
    for row in strategy:
        if not isinstance(row, (tuple, Layout)):
            raise ScriptTypeError(f"The element of strategy must be tuple/Layout type, but got:{type(row)}")
        for value in row if isinstance(row, tuple) else ():
            if not isinstance(value, int) and not nests:
                raise ScriptTypeError(
                    f"The {argument}: {strategy} of {name} is not valid, the value of strategy must be int type, "
                    f"but got:{type(value)}"
                )
    first = strategy[0] if strategy else None
    if isinstance(first, tuple):
        return any(isinstance(value, Layout) for value in first)
    return None if first is None else True


def rows_of(strategy: tuple[Any, ...]) -> Iterator[Any]:
    """Yield the rows of a strategy, with layouts converted for the compiler and tuples of rows flattened."""
    for row in strategy:
        if isinstance(row, Layout):
            yield row.as_row()
        elif isinstance(row, tuple) and row and all(isinstance(item, (tuple, Layout)) for item in row):
            yield from rows_of(row)
        else:
            yield row
