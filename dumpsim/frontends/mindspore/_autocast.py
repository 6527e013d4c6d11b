"""Mixed precision of level O1: the cells and operators of a white list compute in 16 bits."""

from collections.abc import Sequence
from typing import Any

from dumpsim.core.dtype import DType
from dumpsim.frontends.mindspore import nn, ops
from dumpsim.frontends.mindspore.common import dtype as mstype
from dumpsim.frontends.mindspore.common.tensor import Tensor

__all__ = ["autocast", "white_list"]

# the emulated cells and operators that compute in 16 bits at level O1 [2.10]
_CELLS = "Conv1d Conv2d Conv2dTranspose Dense LSTMCell RNNCell GRUCell"
_OPERATORS = "Conv2D Conv3D Conv2DBackpropInput MatMul BatchMatMul PReLU ReLU Ger"


def white_list() -> list[type]:
    """Return the classes of the cells and primitives of the white list."""
    from dumpsim.frontends.mindspore.ops.operations import primitive

    return [*(getattr(nn, name) for name in _CELLS.split()), *(primitive(name) for name in _OPERATORS.split())]


def _as(value: Any, dtype: DType) -> Any:
    """Cast float tensors to another type."""
    if isinstance(value, Tensor):
        return ops.cast(value, dtype) if value.dtype.kind == "float" else value
    return type(value)(_as(item, dtype) for item in value) if isinstance(value, (tuple, list)) else value


class _HalvedCell(nn.Cell):
    """A cell that computes in 16 bits and returns float32."""

    def __init__(self, backbone: nn.Cell, dtype: DType) -> None:
        super().__init__(auto_prefix=False)
        self._backbone = backbone.to_float(dtype)
        self._get_attr_from_cell(backbone)

    def construct(self, *args: Any, **kwargs: Any) -> Any:
        return _as(self._backbone(*args, **kwargs), mstype.float32)


class _HalvedOperator:
    """A primitive that computes in 16 bits and returns float32."""

    def __init__(self, primitive: Any, dtype: DType) -> None:
        self.primitive, self.dtype = primitive, dtype

    def __call__(self, *args: Any) -> Any:
        return _as(self.primitive(*(_as(arg, self.dtype) for arg in args)), mstype.float32)

    def __getattr__(self, name: str) -> Any:
        if name == "primitive":  # before __init__, when copying
            raise AttributeError(name)
        return getattr(self.primitive, name)


def autocast(network: nn.Cell, listed: Sequence[type], dtype: DType) -> None:
    """Make the listed kinds of cells and primitives in a network compute in another float type.

    Cells whose type the script has set with `to_float` keep it.
    """
    kinds = tuple(listed)
    for name, operator in list(network._primitives.items()):
        if isinstance(operator, kinds):
            network._primitives[name] = _HalvedOperator(operator, dtype)
    for name, cell in list(network.name_cells().items()):
        if cell.__dict__["_float_type"] is not None:
            continue
        if isinstance(cell, kinds):
            network._cells[name] = _HalvedCell(cell, dtype)
        else:
            autocast(cell, listed, dtype)
