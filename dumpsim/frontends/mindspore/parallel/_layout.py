"""``mindspore.parallel.Layout``: which named dimension of the devices cuts which axis of a tensor."""

from collections.abc import Iterator
from math import prod
from typing import Any

from dumpsim.core.errors import ScriptTypeError, ScriptValueError, UnsupportedError
from dumpsim.core.tensorlayout import WHOLE, Axis, TensorLayout

__all__ = ["Layout", "rows_of"]

_INTERLEAVED = "interleaved_parallel"


class Layout:
    """Devices in a matrix with names for its dimensions; called with one name for each axis it lays a tensor out.

    Parameters
    ----------
    device_matrix : tuple of int
    alias_name : tuple of str
    rank_list : list of int, optional
        Accepted in ascending order only.

    Raises
    ------
    ScriptTypeError, ScriptValueError
        As MindSpore does, with its text.

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
            raise UnsupportedError("interleaved_parallel is not emulated", where="Layout.alias_name")
        ranks = list(range(prod(device_matrix)))
        if rank_list not in (None, ranks):
            raise UnsupportedError("another order of the ranks is not emulated", where="Layout.rank_list")
        self._matrix: tuple[int, ...] = device_matrix
        self._names: tuple[str, ...] = alias_name
        self._map: tuple[Axis, ...] | None = None

    def __call__(self, *tensor_map: Any) -> "Layout":
        used: set[str] = set()
        placed = Layout(self._matrix, self._names)
        placed._map = tuple(
            tuple(self._dim(name, used) for name in axis) if isinstance(axis, tuple) else self._dim(axis, used)
            for axis in tensor_map
        )
        return placed

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
        """The layout as plain values."""
        if self._map is None:
            raise ScriptValueError("The tensor_map of layout is None")
        return {
            "device_matrix": self._matrix,
            "tensor_map": self._map,
            "interleaved_parallel": False,
            "alias_name": self._names,
            "rank_list": list(range(prod(self._matrix))),
        }

    def as_row(self) -> TensorLayout:
        """The layout of an operand, whatever its shape."""
        found = self.to_dict()
        return TensorLayout(found["device_matrix"], found["tensor_map"], ())


def rows_of(strategy: tuple[Any, ...]) -> Iterator[Any]:
    """The rows of a strategy, layouts as the compiler takes them; tuples of rows are flattened."""
    for row in strategy:
        if isinstance(row, Layout):
            yield row.as_row()
        elif isinstance(row, tuple) and row and all(isinstance(item, (tuple, Layout)) for item in row):
            yield from rows_of(row)
        else:
            yield row
