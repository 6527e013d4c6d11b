"""The tree of cells, and the names of cells and parameters."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, cast

from dumpsim.core.errors import ScriptTypeError, ScriptValueError
from dumpsim.frontends.mindspore._capture.callee import CellBase
from dumpsim.frontends.mindspore.common.parameter import Parameter

if TYPE_CHECKING:
    from dumpsim.frontends.mindspore.nn.cell import Cell

__all__ = ["CellTree"]


class _NameTakenError(ScriptValueError, KeyError):
    """The KeyError for a name that is already in use."""


class CellTree(CellBase):
    """Iteration over the cells below a cell; the base class of Cell."""

    _params: dict[str, Parameter]
    _cells: "dict[str, Cell]"
    _primitives: dict[str, Any]
    _flags: dict[str, Any]
    _auto_prefix: bool
    cls_name: str
    training: bool
    requires_grad: bool

    @property
    def param_prefix(self) -> str:
        """The prefix of the names of the cell's parameters."""
        return cast(str, self.__dict__["_param_prefix"])

    def insert_param_to_cell(
        self, param_name: str, param: Parameter | None, check_name_contain_dot: bool = True
    ) -> None:
        """Add a parameter as an attribute.

        Raises
        ------
        ScriptTypeError, ScriptValueError
            For a name that is not a string, is empty, contains a dot or is already used for another attribute, and for
            a value that is not a Parameter.
        """
        if not isinstance(param_name, str):
            raise ScriptTypeError(
                "For 'insert_param_to_cell', the argument 'param_name' must be string type, but got "
                f"{type(param_name)}."
            )
        if not param_name:
            raise _NameTakenError("For 'insert_param_to_cell', the argument 'param_name' should not be None.")
        if check_name_contain_dot and "." in param_name:
            raise _NameTakenError("For 'insert_param_to_cell', the argument 'param_name' should not contain'.' ")
        if hasattr(self, param_name) and param_name not in self._params:
            raise _NameTakenError(
                f"For 'insert_param_to_cell', the {param_name} parameter already exists in the network."
                "Cannot insert another parameter with the same name."
            )
        if not isinstance(param, Parameter):
            raise ScriptTypeError(
                "For 'insert_param_to_cell', the argument 'param' must be 'Parameter' if not None, "
                f"but got {type(param)}."
            )
        if not param.is_named:
            param.name = param_name
        self._params[param_name] = param

    def insert_child_to_cell(self, child_name: str, child_cell: "Cell | None") -> None:
        """Add a cell as an attribute."""
        if not isinstance(child_name, str):
            raise ScriptTypeError(
                f"For 'insert_child_to_cell', the type of parameter 'child_name' must be str, but got "
                f"{type(child_name)}."
            )
        if not child_name or "." in child_name:
            raise _NameTakenError(
                "For 'insert_child_to_cell', the parameter 'child_name' can not be None and can not contain '.' "
            )
        if hasattr(self, child_name) and child_name not in self._cells:
            raise _NameTakenError(
                f"For 'insert_child_to_cell', the {child_name} child cell already exists in the network."
                "Cannot insert another child cell with the same name."
            )
        if child_cell is not None and not isinstance(child_cell, CellTree):
            raise ScriptTypeError(
                "For 'insert_child_to_cell', the argument 'child_cell' must be 'Cell' if not None, "
                f"but got type {type(child_cell)}."
            )
        self._cells[child_name] = cast(Any, child_cell)  # its parameters keep their names [2.10 observed]

    def name_cells(self) -> "dict[str, Cell]":
        """The direct children of this cell, each once, by attribute name.

        Examples
        --------
        >>> from dumpsim.frontends.mindspore.nn.cell import Cell
        >>> Cell().name_cells()
        {}
        """
        seen: set[int] = set()
        found = {}
        for name, cell in self._cells.items():
            if cell is not None and id(cell) not in seen:
                seen.add(id(cell))
                found[name] = cell
        return found

    _children_scope_recursive = name_cells

    def cells(self) -> "Any":
        """The direct children of this cell."""
        return self.name_cells().values()

    def cells_and_names(self, cells: "set[int] | None" = None, name_prefix: str = "") -> "Iterator[tuple[str, Cell]]":
        """Iterate over this cell and all cells below it, with their paths; each cell once, parents first."""
        seen = set() if cells is None else cells
        pending: list[tuple[str, Any]] = [(name_prefix, self)]
        while pending:
            path, cell = pending.pop()
            if id(cell) in seen:
                continue
            seen.add(id(cell))
            yield path, cell
            for name, child in reversed(list(cell._cells.items())):
                if child is not None:
                    pending.append((f"{path}.{name}" if path else name, child))

    def parameters_and_names(self, name_prefix: str = "", expand: bool = True) -> Iterator[tuple[str, Parameter]]:
        """Iterate over the parameters with their paths, each once, in the order of the cells.

        Examples
        --------
        >>> from dumpsim.frontends.mindspore.nn.cell import Cell
        >>> cell = Cell()
        >>> cell.w = Parameter(1.0)
        >>> [name for name, _ in cell.parameters_and_names()]
        ['w']
        """
        seen: set[int] = set()
        walk: Any = self.cells_and_names(name_prefix=name_prefix) if expand else [(name_prefix, self)]
        for path, cell in walk:
            for name, parameter in cell._params.items():
                if parameter is not None and id(parameter) not in seen:
                    seen.add(id(parameter))
                    yield (f"{path}.{name}" if path else name), parameter

    def get_parameters(self, expand: bool = True) -> Iterator[Parameter]:
        """The parameters of the cell, and of all below it if `expand`."""
        return (parameter for _, parameter in self.parameters_and_names(expand=expand))

    def trainable_params(self, recurse: bool = True) -> list[Parameter]:
        """The parameters that require gradients."""
        return [parameter for parameter in self.get_parameters(expand=recurse) if parameter.requires_grad]

    def untrainable_params(self, recurse: bool = True) -> list[Parameter]:
        """The parameters that do not require gradients."""
        return [parameter for parameter in self.get_parameters(expand=recurse) if not parameter.requires_grad]

    def parameters_dict(self, recurse: bool = True) -> dict[str, Parameter]:
        """The parameters by name."""
        return {parameter.name: parameter for parameter in self.get_parameters(expand=recurse)}

    def update_parameters_name(self, prefix: str = "", recurse: bool = True) -> None:
        """Name every parameter by its path after `prefix`."""
        for name, parameter in self.parameters_and_names(expand=recurse):
            if prefix:
                parameter.is_init = False
            parameter.name = prefix + name

    def update_cell_prefix(self) -> None:
        """Set the parameter prefix of every cell to the cell's path."""
        for path, cell in self.cells_and_names():
            cell.__dict__["_param_prefix"] = path

    def update_cell_type(self, cell_type: str) -> None:
        """Store the type of the cell."""
        self.__dict__["cell_type"] = cell_type

    def check_names(self) -> None:
        """Check that all parameters have different names.

        Raises
        ------
        ScriptValueError
            For two parameters with the same name.
        """
        names: set[str] = set()
        for path, parameter in self.parameters_and_names():
            if parameter.name in names:
                raise ScriptValueError(
                    f"The value of {path} is {parameter}, its name '{parameter.name}' already exists. "
                    "Please set a unique name for the parameter."
                )
            names.add(parameter.name)

    def init_parameters_data(self, auto_parallel_mode: bool = False) -> dict[Parameter, Parameter]:
        """Return the parameters, which are initialized when they are created."""
        return {parameter: parameter for parameter in self.get_parameters()}

    def apply(self, fn: "Callable[[Any], None]") -> Any:
        """Call `fn` on every cell, children first."""
        for cell in self.cells():
            cell.apply(fn)
        fn(self)
        return self
