"""``mindspore.set_seed``."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from dumpsim.core.errors import ScriptTypeError, ScriptValueError
from dumpsim.frontends.mindspore._standin import vendored
from dumpsim.world.context import current

__all__ = ["get_seed", "set_seed"]


@dataclass(slots=True)
class _State:
    """The seed of the rank."""

    seed: int | None = None


def _state() -> _State:
    return current().get(_State)


def set_seed(seed: int) -> None:
    """Seed numpy's generator and everything that draws from it.

    Raises
    ------
    ScriptTypeError, ScriptValueError
        For a seed that is no int or is negative.

    Examples
    --------
    >>> set_seed(7)
    >>> get_seed()
    7
    """
    if not isinstance(seed, int) or isinstance(seed, bool):
        raise ScriptTypeError(f"The argument 'seed' must be type of int, but got {type(seed)}.")
    if seed < 0:
        raise ScriptValueError(
            f"For 'global_seed', the 'seed' must be int and must >= 0, but got '{seed}' with type 'int'."
        )
    np.random.seed(seed)
    _state().seed = seed


def get_seed() -> int | None:
    """The seed that `set_seed` took, None before."""
    return _state().seed


def _get_graph_seed(op_seed: int | None, op_type: str) -> tuple[int, int]:
    """Seeds of a random operator: the global one and its own."""
    return (_state().seed or 0, op_seed or 0)


def __getattr__(name: str) -> Any:
    return vendored("mindspore.common.seed", name)
