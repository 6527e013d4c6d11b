"""``mindspore.dataset.config``: the seed of shuffles, and settings of parallel pipelines, without effect here."""

from dataclasses import dataclass

from dumpsim.core.errors import ScriptTypeError, ScriptValueError
from dumpsim.core.settings import RunSettings
from dumpsim.world.context import current

__all__ = [
    "get_num_parallel_workers",
    "get_prefetch_size",
    "get_seed",
    "set_num_parallel_workers",
    "set_prefetch_size",
    "set_seed",
]


@dataclass(slots=True)
class _Config:
    """The settings of the rank."""

    seed: int | None = None
    workers: int = 8
    prefetch: int = 16


def _config() -> _Config:
    return current().get(_Config)


def _number(value: int, name: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise ScriptTypeError(f"{name} isn't of type int.")
    if value < 0 or value > 2**32 - 1:
        raise ScriptValueError(f"{name} given is not within the required range [0, UINT32_MAX(4294967295)].")
    return value


def _count(value: int, name: str, title: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise ScriptTypeError(f"{name} isn't of type int.")
    if not 0 < value < 2**31:
        raise ScriptValueError(f"{title} is not within the required range (0, INT32_MAX(2147483647)].")
    return value


def set_seed(seed: int) -> None:
    """Seed the shuffles.

    Examples
    --------
    >>> set_seed(5)
    >>> get_seed()
    5
    """
    _config().seed = _number(seed, "seed")


def get_seed() -> int:
    """Return the seed of shuffles: that of `set_seed`, of ``mindspore.set_seed``, or of the run."""
    from dumpsim.frontends.mindspore.common.seed import get_seed as get_global_seed

    seed = _config().seed
    if seed is None:
        seed = get_global_seed()
    return RunSettings.from_environment().seed if seed is None else seed


def set_num_parallel_workers(num: int) -> None:
    """Store the number of workers; rows are always produced one after the other, in order."""
    _config().workers = _count(num, "num", "Number of parallel workers given")


def get_num_parallel_workers() -> int:
    """Return the value of `set_num_parallel_workers`."""
    return _config().workers


def set_prefetch_size(size: int) -> None:
    """Store the prefetch size; rows are always produced on demand."""
    _config().prefetch = _count(size, "size", "size")


def get_prefetch_size() -> int:
    """Return the value of `set_prefetch_size`."""
    return _config().prefetch
