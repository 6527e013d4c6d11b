"""Broadcast of the weights of rank 0 before the first step of a data-parallel run. [observed 2.10]"""

from collections.abc import Sequence
from typing import Any

from dumpsim.frontends.mindspore import ops
from dumpsim.frontends.mindspore.common import dtype as mstype
from dumpsim.frontends.mindspore.common.tensor import Tensor
from dumpsim.frontends.mindspore.communication.management import create_group, get_group_size
from dumpsim.frontends.mindspore.context import get_context
from dumpsim.frontends.mindspore.nn.cell import Cell
from dumpsim.frontends.mindspore.ops.operations.comm_ops import Broadcast
from dumpsim.frontends.mindspore.parallel._utils import _reduces_gradients

__all__ = ["broadcast_parameters"]

_GROUP = "BroadcastWorldGroup"


class _BroadCastCell(Cell):
    """A single Broadcast of all weights, in float32."""

    def __init__(self, params: Sequence[Tensor]) -> None:
        super().__init__()
        self.params = tuple(params)
        if get_context("device_target") == "Ascend":
            create_group(_GROUP, list(range(get_group_size())))
            self.broadcast = Broadcast(0, _GROUP)
        else:
            self.broadcast = Broadcast(0)

    def construct(self) -> Any:
        params = tuple(ops.cast(param, mstype.float32) for param in self.params)
        params = self.broadcast(params)
        return tuple(ops.cast(new, param.dtype) for new, param in zip(params, self.params, strict=True))


def broadcast_parameters(cell: Any) -> None:
    """Copy a cell's weights from rank 0 to all ranks, if they train alike.

    A separate graph does this once, after the cell's graph was compiled.

    Parameters
    ----------
    cell : Cell
        Layer-wise parallel parameters keep their values.
    """
    if isinstance(cell, _BroadCastCell) or not _reduces_gradients():
        return
    parameters = [each for each in cell.get_parameters() if not each.layerwise_parallel]
    values = _BroadCastCell([Tensor(parameter.asnumpy()) for parameter in parameters])()
    for parameter, value in zip(parameters, values, strict=True):
        parameter.set_data(value)
