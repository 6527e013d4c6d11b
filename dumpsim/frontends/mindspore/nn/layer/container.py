"""``mindspore.nn.layer.container``: cells in order."""

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from typing import Any

from dumpsim.core.errors import DumpsimError, ScriptTypeError, UnsupportedError
from dumpsim.frontends.mindspore._standin import vendored
from dumpsim.frontends.mindspore.nn.cell import Cell

__all__ = ["CellDict", "CellList", "SequentialCell"]


class _RangeError(DumpsimError, IndexError):
    """The IndexError for an index out of range."""


class _Numbered(Cell):
    """Cells under the names 0, 1, 2, ..."""

    def __len__(self) -> int:
        return len(self._cells)

    def __iter__(self) -> Iterator[Cell]:
        return iter(list(self._cells.values()))

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return self._part(index)
        return list(self._cells.values())[self._checked(index, "int or slice" if isinstance(self, CellList) else "int")]

    def __setitem__(self, index: int, cell: Cell) -> None:
        position = self._checked(index, "int")
        self._put(list(self._cells)[position], _cell(cell, type(self).__name__))

    def append(self, cell: Cell) -> None:
        """Add a cell at the end."""
        self._put(str(len(self)), _cell(cell, type(self).__name__))

    def set_grad(self, requires_grad: bool = True) -> None:  # type: ignore[override]  # [2.10 observed]
        """Set whether the cell and its members need gradients."""
        super().set_grad(requires_grad)
        for cell in self:
            cell.set_grad(requires_grad)

    def _part(self, index: slice) -> "_Numbered":
        return type(self)(list(self._cells.values())[index])  # type: ignore[arg-type]  # the subclasses take cells

    def _checked(self, index: int, wanted: str, bracket: str = ")") -> int:
        name, count = type(self).__name__, len(self)
        if not isinstance(index, int):
            raise ScriptTypeError(
                f"For '{name}', the type of 'index' must be {wanted}, but got {type(index).__name__}."
            )
        if not -count <= index < count + (bracket == "]"):
            raise _RangeError(
                f"For '{name}', the value of 'index' must be a number in range [{-count}, {count}{bracket}, "
                f"but got {index}."
            )
        return index

    def _replace(self, members: Iterable[tuple[str, Cell]]) -> None:
        self._cells.clear()
        for name, cell in members:
            self._put(name, cell)

    def _put(self, name: str, cell: Cell) -> None:
        if self._auto_prefix:
            cell.update_parameters_name(f"{name}.")
        self._cells[name] = cell


def _cell(value: Any, owner: str) -> Cell:
    if not isinstance(value, Cell):
        raise ScriptTypeError(f"For '{owner}', each cell must be subclass of Cell, but got {type(value).__name__}.")
    return value


class SequentialCell(_Numbered):
    """Cells that run one after the other.

    Parameters
    ----------
    *args : Cell, or one list or OrderedDict of cells

    Examples
    --------
    >>> len(SequentialCell(Cell(), Cell()))
    2
    """

    def __init__(self, *args: Any) -> None:
        super().__init__()
        if len(args) == 1 and isinstance(args[0], (OrderedDict, dict)):
            named = list(args[0].items())
        else:
            if len(args) == 1 and not isinstance(args[0], (Cell, list, tuple)):
                raise ScriptTypeError(
                    f"For '{self.cls_name}', the 'args[0]' must be Cell, list or orderedDict, but got "
                    f"{type(args[0]).__name__}"
                )
            members = args[0] if len(args) == 1 and isinstance(args[0], (list, tuple)) else args
            named = [(str(number), cell) for number, cell in enumerate(members)]
        for name, cell in named:
            if not isinstance(cell, Cell):
                raise ScriptTypeError(
                    "For 'insert_child_to_cell', the argument 'child_cell' must be 'Cell' if not None, "
                    f"but got type {type(cell)}."
                )
            self._put(name, cell)

    def __delitem__(self, index: Any) -> None:
        """Remove cells; names that are not numbers stay. [2.10 observed]"""
        if not isinstance(index, (int, slice)):
            raise ScriptTypeError(
                f"For '{self.cls_name}', the type of index must be int type or slice type, but got "
                f"{type(index).__name__}"
            )
        members = list(self._cells.items())
        del members[index if isinstance(index, slice) else self._checked(index, "int")]
        self._replace((str(n) if name.isdecimal() else name, cell) for n, (name, cell) in enumerate(members))

    def _part(self, index: slice) -> "SequentialCell":
        """Return the cells of a slice under their names."""
        return SequentialCell(OrderedDict(list(self._cells.items())[index]))

    @property
    def cell_list(self) -> tuple[Cell, ...]:
        """The cells in order."""
        return tuple(self._cells.values())

    def construct(self, input_data: Any) -> Any:
        for cell in self.cell_list:
            input_data = cell(input_data)
        return input_data


class CellList(_Numbered):
    """A list of cells, which the script calls one by one.

    Examples
    --------
    >>> len(CellList([Cell()]).extend([Cell()]))
    2
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(auto_prefix=kwargs.get("auto_prefix", True))
        if len(args) == 1:  # several arguments have no effect [2.10 observed]
            self.extend(args[0])

    def __delitem__(self, index: Any) -> None:
        members = list(self._cells.values())
        del members[index if isinstance(index, slice) else self._checked(index, "int or slice")]
        self._replace((str(number), cell) for number, cell in enumerate(members))

    def extend(self, cells: list[Cell]) -> "CellList":
        """Add cells at the end."""
        if not isinstance(cells, list):
            raise ScriptTypeError(
                f"For '{self.cls_name}', the new cells wanted to append should be instance of list, but got "
                f"{type(cells).__name__}."
            )
        for cell in cells:
            self.append(cell)
        return self

    def insert(self, index: int, cell: Cell) -> None:
        """Put a cell before another."""
        position = self._checked(index, "int", "]")
        members = list(self._cells.values())
        members.insert(position, _cell(cell, "CellList"))
        self._replace((str(number), member) for number, member in enumerate(members))

    def construct(self, *inputs: Any) -> Any:
        raise NotImplementedError


class CellDict(Cell):
    """Raise UnsupportedError: not emulated."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise UnsupportedError("CellDict is not emulated", where="nn.CellDict", nearest="nn.CellList")


def __getattr__(name: str) -> Any:
    return vendored("mindspore.nn.layer.container", name)
