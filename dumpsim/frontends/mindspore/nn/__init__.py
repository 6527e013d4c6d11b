"""``mindspore.nn``: cells, losses, optimizers and training wrappers."""

from typing import Any

from dumpsim.frontends.mindspore._standin import vendored
from dumpsim.frontends.mindspore.nn import layer, learning_rate_schedule, loss, optim, wrap
from dumpsim.frontends.mindspore.nn.cell import Cell, GraphCell
from dumpsim.frontends.mindspore.nn.dynamic_lr import *  # noqa: F403
from dumpsim.frontends.mindspore.nn.layer import *  # noqa: F403
from dumpsim.frontends.mindspore.nn.learning_rate_schedule import *  # noqa: F403
from dumpsim.frontends.mindspore.nn.loss import *  # noqa: F403
from dumpsim.frontends.mindspore.nn.metrics import *  # noqa: F403
from dumpsim.frontends.mindspore.nn.optim import *  # noqa: F403
from dumpsim.frontends.mindspore.nn.wrap import *  # noqa: F403

__all__ = [
    "Cell",
    "GraphCell",
    *layer.__all__,
    *learning_rate_schedule.__all__,
    *loss.__all__,
    *optim.__all__,
    *wrap.__all__,
]


def __getattr__(name: str) -> Any:
    return vendored("mindspore.nn", name)
