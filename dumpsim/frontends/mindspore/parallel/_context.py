"""The auto-parallel settings of the context: defaults and checks with MindSpore's messages. [spec observed 4]"""

import copy
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from dumpsim.core.errors import DumpsimError, ScriptTypeError, ScriptValueError, UnsupportedError
from dumpsim.world.context import current

__all__ = [
    "ParallelMode",
    "check_dataset_strategy",
    "get_auto_parallel_context",
    "is_set",
    "optimizer_threshold",
    "reset_auto_parallel_context",
    "set_auto_parallel_context",
    "setting",
    "slices",
]


class ParallelMode:
    """Names of the parallel modes."""

    STAND_ALONE = "stand_alone"
    DATA_PARALLEL = "data_parallel"
    HYBRID_PARALLEL = "hybrid_parallel"
    SEMI_AUTO_PARALLEL = "semi_auto_parallel"
    AUTO_PARALLEL = "auto_parallel"
    MODE_LIST = (STAND_ALONE, DATA_PARALLEL, HYBRID_PARALLEL, SEMI_AUTO_PARALLEL, AUTO_PARALLEL)


class _UnknownFusionError(DumpsimError, KeyError):
    """The KeyError for an unknown kind of communication fusion."""


_FUSIONS = ("allreduce", "allgather", "reducescatter")


def _defaults() -> dict[str, Any]:
    """Return the initial settings of a process."""
    return {
        "device_num": 1,
        "global_rank": 0,
        "gradients_mean": False,
        "gradient_fp32_sync": True,
        "loss_repeated_mean": True,
        "parallel_mode": "stand_alone",
        "search_mode": "recursive_programming",
        "auto_parallel_search_mode": "recursive_programming",
        "parameter_broadcast": False,
        "strategy_ckpt_load_file": "",
        "strategy_ckpt_save_file": "",
        "full_batch": False,
        "dataset_strategy": "data_parallel",
        "enable_parallel_optimizer": False,
        "force_fp32_communication": False,
        "enable_alltoall": False,
        "all_reduce_fusion_config": [],
        "pipeline_stages": 1,
        "pipeline_result_broadcast": False,
        "grad_accumulation_step": 1,
        "comm_fusion": {"openstate": True, **{kind: {"mode": "auto", "config": None} for kind in _FUSIONS}},
        "strategy_ckpt_config": {"load_file": "", "save_file": "", "only_trainable_params": True},
        "dump_local_norm": False,
        "communi_parallel_mode": "all_group_parallel",
        "optimizer_weight_shard_size": -1,
    }


_SET_ONLY = MappingProxyType({"parallel_optimizer_config": dict, "pipeline_config": dict, "fusion_threshold": int})
_TYPES = MappingProxyType(
    {name: type(value) for name, value in _defaults().items() if name not in ("dataset_strategy", "comm_fusion")}
)
_NAMES = frozenset(_defaults())
# names of one setting, with the name in the message [2.10 observed]
_SEARCH_NAMES = MappingProxyType(
    {"search_mode": "auto_parallel_search_mode", "auto_parallel_search_mode": "search_mode"}
)
_SEARCH_MODES = ("recursive_programming", "dynamic_programming", "sharding_propagation")


@dataclass(slots=True)
class _State:
    """The settings of the rank."""

    values: dict[str, Any] = field(default_factory=_defaults)
    given: set[str] = field(default_factory=set)  # settings made by the script


def _state() -> _State:
    return current().get(_State)


def get_auto_parallel_context(attr_key: str) -> Any:
    """Return a setting of parallel training.

    Examples
    --------
    >>> get_auto_parallel_context("parallel_mode")
    'stand_alone'
    """
    if attr_key not in _NAMES:
        raise ScriptValueError(f"Get context keyword {attr_key} is not recognized!")
    found = copy.deepcopy(_state().values[attr_key])
    return [list(row) for row in found] if isinstance(found, tuple) else found


def setting(name: str) -> Any:
    """Return a setting of parallel training, including those that scripts cannot read.

    Examples
    --------
    >>> setting("parallel_optimizer_config")
    {}
    """
    return copy.deepcopy(_state().values.get(name, {}))


def set_auto_parallel_context(**kwargs: Any) -> None:
    """Change settings of parallel training.

    Raises
    ------
    ScriptTypeError, ScriptValueError
        As in MindSpore, with its messages.

    Examples
    --------
    >>> set_auto_parallel_context(device_num=0)
    Traceback (most recent call last):
        ...
    dumpsim.core.errors.ScriptValueError: The context configuration parameter 'device_num' must be a positive integer, \
but got the value of device_num : 0.
    """
    for key, value in kwargs.items():
        if key not in _NAMES and key not in _SET_ONLY:
            raise ScriptValueError(f"Set context keyword {key} is not recognized!")
        _check(key, value)
        _state().values[key] = copy.deepcopy(value)
        _state().given.add(key)


def is_set(key: str) -> bool:
    """Whether the script has made a setting, which then overrides the value found by `init`.

    Examples
    --------
    >>> is_set("device_num")
    False
    """
    return key in _state().given


def slices() -> bool:
    """Whether the parallel mode slices the tensors of a network over devices.

    Examples
    --------
    >>> slices()
    False
    """
    return _state().values["parallel_mode"] in (ParallelMode.SEMI_AUTO_PARALLEL, ParallelMode.AUTO_PARALLEL)


def reset_auto_parallel_context() -> None:
    """Reset the settings to their defaults.

    Examples
    --------
    >>> reset_auto_parallel_context()
    >>> get_auto_parallel_context("dataset_strategy")
    []
    """
    _state().values, _state().given = _defaults() | {"dataset_strategy": []}, set()


def _check(key: str, value: Any) -> None:
    wanted = _TYPES.get(key) or _SET_ONLY.get(key)
    if wanted is not None and (not isinstance(value, wanted) or (key == "pipeline_stages" and isinstance(value, bool))):
        raise ScriptTypeError(f"The parameter '{key}' must be {wanted}, but got {type(value)}")
    name = f"The context configuration parameter '{key}'"
    if key == "device_num" and value < 1:
        raise ScriptValueError(f"{name} must be a positive integer, but got the value of device_num : {value}.")
    if key == "global_rank" and not 0 <= value <= 4095:
        raise ScriptValueError(f"{name} must be in [0, 4095], but got the value of global_rank : {value}.")
    if key == "pipeline_stages" and value < 1:
        raise ScriptValueError(
            "For 'set_auto_parallel_context', the argument 'pipeline_stages' should be greater or equal 1, "
            f"but got the value of stages : {value}."
        )
    if key == "parallel_mode" and value not in ParallelMode.MODE_LIST:
        raise ScriptValueError(
            f"{name} only support 'stand_alone', 'data_parallel', 'hybrid_parallel', 'semi_auto_parallel' and "
            f"'auto_parallel', but got the value : {value}."
        )
    if key in _SEARCH_NAMES and value not in _SEARCH_MODES:
        raise ScriptValueError(
            f"The context configuration parameter '{_SEARCH_NAMES[key]}' only support 'recursive_programming', "
            f"'dynamic_programming' and 'sharding_propagation', but got the value: {value}."
        )
    if key == "grad_accumulation_step" and value > 1:
        raise ScriptValueError(
            "The interface is deprecated. To use gradient accumulation, please use GradAccumulationCell in "
            "mindspore.nn.wrap.cell_wrapper."
        )
    if key == "parallel_optimizer_config":
        _check_optimizer(value)
    if key == "comm_fusion":
        _check_fusion(value)
    if key == "dataset_strategy":
        check_dataset_strategy(value, "For 'set_auto_parallel_context', the argument 'dataset_strategy'")


def _check_fusion(value: Any) -> None:
    if not isinstance(value, dict):
        raise ScriptTypeError(f"The parameter 'comm_fusion' must be <class 'dict'>, but got {type(value)}")
    for kind in value:
        if kind not in ("openstate", *_FUSIONS):
            raise _UnknownFusionError(
                f"comm fusion type must be openstate,allreduce, allgather or reducescatter, but got {kind}"
            )


_LEVELS = ("level1", "level2", "level3")


def _check_optimizer(config: dict[str, Any]) -> None:
    for name in config:
        if name not in (
            "gradient_accumulation_shard",
            "parallel_optimizer_threshold",
            "optimizer_weight_shard_size",
            "optimizer_level",
        ):
            raise ScriptValueError(f"Unknown config: {[name]}")
    threshold = config.get("parallel_optimizer_threshold", 0)
    name = "For 'parallel_optimizer_threshold', the input value must be int"
    if not isinstance(threshold, int):
        raise ScriptTypeError(f"{name}, but got '{type(threshold).__name__}'")
    if isinstance(threshold, bool) or threshold < 0:
        kind = ScriptTypeError if isinstance(threshold, bool) else ScriptValueError
        raise kind(f"{name} and must >= 0, but got '{threshold}' with type '{type(threshold).__name__}'.")
    level = config.get("optimizer_level", "level1")
    if level not in _LEVELS:
        raise ScriptValueError(f"Optimizer level should in {list(_LEVELS)}, but got {level}")
    if level != "level1" or config.get("gradient_accumulation_shard"):
        raise UnsupportedError(
            "gradient_accumulation_shard and optimizer_level above level1 are not emulated",
            where="set_auto_parallel_context.parallel_optimizer_config",
            allowed=("level1",),
        )
    size = config.get("optimizer_weight_shard_size", -1)
    if size != -1:
        raise UnsupportedError(
            f"optimizer_weight_shard_size={size} is not emulated",
            where="set_auto_parallel_context.parallel_optimizer_config.optimizer_weight_shard_size",
            allowed=(-1,),
        )


def optimizer_threshold() -> int:
    """Return the size in bytes of the smallest weight that the parallel optimizer slices.

    Examples
    --------
    >>> optimizer_threshold()
    65536
    """
    config = _state().values.get("parallel_optimizer_config", {})
    kilobytes: int = config.get("parallel_optimizer_threshold", 64)
    return kilobytes * 1024


def check_dataset_strategy(value: Any, name: str) -> None:
    """Check a strategy of data sets; the messages start with `name`.

    Raises
    ------
    ScriptTypeError, ScriptValueError
    """
    if isinstance(value, str):
        if value not in ("full_batch", "data_parallel"):
            raise ScriptValueError(f"{name} must be 'full_batch' or 'data_parallel', but got the value : {value}.")
        return
    if not isinstance(value, tuple):
        raise ScriptTypeError(f"{name} must be str or tuple type, but got the type : {type(value)}.")
    for row in value:
        if not isinstance(row, tuple):
            raise ScriptTypeError(
                f"For 'set_auto_parallel_context', the element of argument 'dataset_strategy' must be tuple, "
                f"but got the type : {type(row)} ."
            )
        for item in row:
            if not isinstance(item, int):
                raise ScriptTypeError(
                    "For 'set_auto_parallel_context', the element of argument 'dataset_strategy' must be int type, "
                    f"but got the type : {type(item)} ."
                )
