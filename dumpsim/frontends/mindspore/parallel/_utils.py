"""``mindspore.parallel._utils``: the parallel settings used by training. [observed 2.10]"""

from typing import Any

from dumpsim.core.errors import ScriptValueError
from dumpsim.frontends.mindspore._standin import vendored
from dumpsim.frontends.mindspore.communication.management import get_group_size, get_rank
from dumpsim.frontends.mindspore.parallel._context import ParallelMode, get_auto_parallel_context, is_set

__all__: list[str] = []


def _get_parallel_mode() -> str:
    mode: str = get_auto_parallel_context("parallel_mode")
    return mode


def _is_in_data_parallel_mode() -> bool:
    return _get_parallel_mode() == ParallelMode.DATA_PARALLEL


def _is_in_hybrid_parallel_mode() -> bool:
    return _get_parallel_mode() == ParallelMode.HYBRID_PARALLEL


def _is_in_auto_parallel_mode() -> bool:
    return _get_parallel_mode() in (ParallelMode.SEMI_AUTO_PARALLEL, ParallelMode.AUTO_PARALLEL)


def _reduces_gradients() -> bool:
    """Whether training steps reduce their gradients over all ranks."""
    return _is_in_data_parallel_mode() or _is_in_hybrid_parallel_mode()


def _get_gradients_mean() -> bool:
    mean: bool = get_auto_parallel_context("gradients_mean")
    return mean


def _get_device_num() -> int:
    """Return the number of devices: the script's setting, else the number of ranks; 1 in stand-alone mode."""
    if _get_parallel_mode() == ParallelMode.STAND_ALONE:
        return 1
    number: int = get_auto_parallel_context("device_num") if is_set("device_num") else get_group_size()
    return number


def _get_global_rank() -> int:
    """Return the rank: the script's setting, else the rank of the process; 0 in stand-alone mode."""
    if _get_parallel_mode() == ParallelMode.STAND_ALONE:
        return 0
    number: int = get_auto_parallel_context("global_rank") if is_set("global_rank") else get_rank()
    return number


def _get_parameter_broadcast() -> bool:
    broadcast: bool = get_auto_parallel_context("parameter_broadcast")
    return broadcast


def _parameter_broadcast_check(parallel_mode: str, parameter_broadcast: bool) -> None:
    """Raise for a broadcast of parameters in modes that do not support it."""
    if parameter_broadcast is True and parallel_mode not in (
        ParallelMode.DATA_PARALLEL,
        ParallelMode.HYBRID_PARALLEL,
    ):
        raise ScriptValueError(
            "stand_alone, semi_auto_parallel and auto_parallel do not support parameter broadcast, "
            f"parallel_mode: {parallel_mode}, parameter_broadcast:{parameter_broadcast}"
        )


def __getattr__(name: str) -> Any:
    return vendored("mindspore.parallel._utils", name)
