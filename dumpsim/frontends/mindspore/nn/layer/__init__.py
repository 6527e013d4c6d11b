"""``mindspore.nn.layer``."""

from typing import Any

from dumpsim.frontends.mindspore._standin import vendored
from dumpsim.frontends.mindspore.nn.layer import (
    activation,
    basic,
    container,
    conv,
    embedding,
    normalization,
    padding,
    pooling,
    rnn_cells,
    rnns,
    transformer,
)
from dumpsim.frontends.mindspore.nn.layer.activation import *  # noqa: F403
from dumpsim.frontends.mindspore.nn.layer.basic import *  # noqa: F403
from dumpsim.frontends.mindspore.nn.layer.container import *  # noqa: F403
from dumpsim.frontends.mindspore.nn.layer.conv import *  # noqa: F403
from dumpsim.frontends.mindspore.nn.layer.embedding import *  # noqa: F403
from dumpsim.frontends.mindspore.nn.layer.normalization import *  # noqa: F403
from dumpsim.frontends.mindspore.nn.layer.padding import *  # noqa: F403
from dumpsim.frontends.mindspore.nn.layer.pooling import *  # noqa: F403
from dumpsim.frontends.mindspore.nn.layer.rnn_cells import *  # noqa: F403
from dumpsim.frontends.mindspore.nn.layer.rnns import *  # noqa: F403
from dumpsim.frontends.mindspore.nn.layer.transformer import *  # noqa: F403

__all__ = [
    *activation.__all__,
    *basic.__all__,
    *container.__all__,
    *conv.__all__,
    *embedding.__all__,
    *normalization.__all__,
    *padding.__all__,
    *pooling.__all__,
    *rnn_cells.__all__,
    *rnns.__all__,
    *transformer.__all__,
]


def __getattr__(name: str) -> Any:
    return vendored("mindspore.nn.layer", name)
