"""``mindspore.nn.wrap``."""

from typing import Any

from dumpsim.frontends.mindspore._standin import vendored
from dumpsim.frontends.mindspore.nn.wrap import _accumulation, cell_wrapper, grad_reducer, loss_scale
from dumpsim.frontends.mindspore.nn.wrap._accumulation import *  # noqa: F403
from dumpsim.frontends.mindspore.nn.wrap.cell_wrapper import *  # noqa: F403
from dumpsim.frontends.mindspore.nn.wrap.grad_reducer import *  # noqa: F403
from dumpsim.frontends.mindspore.nn.wrap.loss_scale import *  # noqa: F403

__all__ = [*_accumulation.__all__, *cell_wrapper.__all__, *grad_reducer.__all__, *loss_scale.__all__]


def __getattr__(name: str) -> Any:
    return vendored("mindspore.nn.wrap", name)
