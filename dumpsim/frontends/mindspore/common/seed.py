"""``mindspore.set_seed``."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dumpsim.core.errors import ScriptTypeError, ScriptValueError
from dumpsim.frontends.mindspore._standin import vendored
from dumpsim.world.context import current

__all__ = ["get_seed", "set_seed"]


_INSTEAD_OF_ZERO = 87654321  # [wheel common/seed.py]
_STEP = 3528531795 ^ 3449720151
_LARGEST = 2**31 - 1


@dataclass(slots=True)
class _State:
    """The seed of the rank, and the next seed for each type of operator."""

    seed: int | None = None
    operators: dict[tuple[str, int], int] = field(default_factory=dict)


def _state() -> _State:
    return current().get(_State)


def set_seed(seed: int) -> None:
    """Seed numpy's generator and the initializers and operators that use it.

    Raises
    ------
    ScriptTypeError, ScriptValueError
        For a seed that is not an int or is negative.

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
    _state().operators.clear()


def get_seed() -> int | None:
    """Return the seed set by `set_seed`, or None."""
    return _state().seed


def _get_graph_seed(op_seed: int | None, op_type: str) -> tuple[int, int]:
    """Return the global seed and the seed of a random operator, which changes with every operator. [wheel]"""
    state = _state()
    if state.seed is None and not op_seed:
        return 0, 0
    shared = 0 if state.seed is None else state.seed or _INSTEAD_OF_ZERO
    key = (op_type, op_seed or 0)
    own = state.operators.get(key, key[1])
    state.operators[key] = own + _STEP
    return shared % _LARGEST, own % _LARGEST


def __getattr__(name: str) -> Any:
    return vendored("mindspore.common.seed", name)
