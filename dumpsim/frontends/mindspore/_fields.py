"""The fields of the context: defaults, types and checks, with MindSpore's messages. [spec observed 4]"""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from dumpsim.core.errors import DumpsimError, ScriptTypeError, ScriptValueError

__all__ = ["DEFAULTS", "FIELDS", "Field", "checked"]

Check = Callable[[str, Any], Any]


class _IllegalValueError(DumpsimError, RuntimeError):
    """The RuntimeError for a value that MindSpore's C++ side refuses."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One keyword of set_context.

    `check` returns the value to store, or raises as MindSpore does; `deprecated` is the call that a warning recommends
    instead; `idle` is the reason why the keyword has no effect here.
    """

    default: Any
    types: tuple[type, ...] = ()
    check: Check | None = None
    deprecated: str = ""
    idle: str = ""


def checked(name: str, value: Any) -> Any:
    """Return the value to store.

    Raises
    ------
    ScriptTypeError, ScriptValueError
        As in MindSpore, with its messages.

    Examples
    --------
    >>> checked("save_graphs", True)
    2
    """
    row = FIELDS[name]
    if row.types and not _is_one_of(value, row.types):
        wanted = str(row.types[0]) if len(row.types) == 1 else f"({', '.join(map(str, row.types))})"
        raise ScriptTypeError(f"The parameter '{name}' must be {wanted}, but got {type(value)}")
    return row.check(name, value) if row.check else value


def _is_one_of(value: Any, types: tuple[type, ...]) -> bool:
    return isinstance(value, types)


def _bad(text: str) -> ScriptValueError:
    return ScriptValueError(f"For 'context.set_context', {text}")


def _mode(name: str, value: Any) -> int:
    if isinstance(value, (str, float)):
        raise ScriptTypeError(f"The parameter 'mode' must be <class 'int'>, but got {type(value)}")
    if value not in (0, 1):
        raise _bad(
            f"the argument 'mode' should be context.GRAPH_MODE (0) or context.PYNATIVE_MODE (1), but got {value}."
        )
    return int(value)


TARGETS = ("CPU", "GPU", "Ascend", "Davinci")


def _target(name: str, value: str) -> str:
    if value not in TARGETS:
        raise _bad(f"the argument 'device_target' must be one of {list(TARGETS)}, but got {value}.")
    return "Ascend" if value == "Davinci" else value


def _device_id(name: str, value: Any) -> int:
    if value is None:
        raise ScriptTypeError("'<' not supported between instances of 'NoneType' and 'int'")
    if not isinstance(value, int):
        raise ScriptTypeError(f"The parameter 'device_id' must be <class 'int'>, but got {type(value)}")
    if not 0 <= value <= 4095:
        raise _bad(f"the argument 'device_id' must be in range [0, 4095], but got {value}.")
    return value


def _save_graphs(name: str, value: int) -> int:
    if isinstance(value, bool):
        return 2 if value else 0
    if value > 3:
        raise ScriptValueError(f"value for save_graphs should be 0-3 but got '{value}'")
    return value


def _directory(name: str, value: str) -> str:
    if not value.strip():
        raise _bad(
            f"the 'save_graphs_path' or the 'print_file_path' is invalid type, it should be Non-empty string, "
            f"but got '{value}'."
        )
    path = Path(os.path.abspath(value))
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    return str(path)


def _profiling_options(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise ScriptTypeError(
            f"For 'context.set_context', the argument 'profiling_option' must be string, but got {type(value)}."
        )
    return value


def _enable_profiling(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise _IllegalValueError(f"Got illegal param 13 and value with type {type(value)}")
    return value


def _aoe_tune_mode(name: str, value: str) -> str:
    if value not in ("online", "offline"):
        raise _bad(f"the argument 'aoe_tune_mode' must be in ['online', 'offline'], but got {value}.")
    return value


def _aoe_config(name: str, value: dict[str, Any]) -> dict[str, Any]:
    for key, setting in value.items():
        if key != "job_type":
            legal = {"job_type": ["1", "2"]}
            raise _bad(f"the key of argument 'aoe_config' must be one of {legal}, but got {key}.")
        if setting not in ("1", "2"):
            raise ScriptValueError(
                f"For 'aoe_config', the value of argument {key} must be one of ['1', '2'], but got {setting}."
            )
    return dict(value)


def _support_binary(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise ScriptTypeError(f"The attribute 'support_binary' should be a bool, but got {type(value)}.")
    return value


LEVELS = ("O0", "O1", "O2")
_JIT_CONFIG = MappingProxyType({"jit_level": LEVELS, "infer_boost": ("on", "off")})


def _jit_level(name: str, value: str) -> str:
    if value not in LEVELS:
        raise ScriptValueError(f"For 'jit_level', the value must be one of {list(LEVELS)}, but got {value}.")
    return value


def _jit_config(name: str, value: dict[str, Any]) -> dict[str, Any]:
    for key, setting in value.items():
        if key not in _JIT_CONFIG:
            legal = {name: list(values) for name, values in _JIT_CONFIG.items()}
            raise _bad(f"the key of argument 'jit_config' must be one of {legal}, but got {key}.")
        if setting not in _JIT_CONFIG[key]:
            raise ScriptValueError(
                f"For 'jit_config', the value of argument {key} must be one of {list(_JIT_CONFIG[key])}, "
                f"but got {setting}."
            )
    return dict(value)


# allowed values in ``ascend_config``, or types of which every value is allowed [observed 2.10]
_ASCEND: Mapping[str, tuple[str, ...] | tuple[type, ...]] = MappingProxyType(
    {
        "precision_mode": (
            "force_fp16",
            "allow_fp32_to_fp16",
            "allow_mix_precision",
            "must_keep_origin_dtype",
            "force_fp32",
            "allow_fp32_to_bf16",
            "allow_mix_precision_fp16",
            "allow_mix_precision_bf16",
        ),
        "jit_compile": (bool,),
        "atomic_clean_policy": (int,),
        "matmul_allow_hf32": (bool,),
        "conv_allow_hf32": (bool,),
        "op_precision_mode": (str,),
        "op_debug_option": ("oom",),
        "ge_options": (dict,),
        "parallel_speed_up_json_path": (str,),
        "host_scheduling_max_threshold": (int,),
        "hccl_watchdog": (bool,),
        "topo_order": (dict,),
        "exception_dump": ("0", "1", "2"),
    }
)


def _ascend_config(name: str, value: dict[str, Any]) -> dict[str, Any]:
    for key, setting in value.items():
        if key not in _ASCEND:
            raise _bad(f"the key of argument 'ascend_config' must be one of {tuple(_ASCEND)}, but got {key}.")
        legal = _ASCEND[key]
        types = tuple(each for each in legal if isinstance(each, type))
        if not types and setting not in legal:
            raise ScriptValueError(
                f"For 'ascend_config', the value of argument {key} must be one of {list(legal)}, but got {setting}."
            )
        if types and not isinstance(setting, types):
            raise ScriptTypeError(
                f"For 'ascend_config', the type of argument {key} must be one of {legal}, but got {type(setting)}."
            )
    return dict(value)


def _max_call_depth(name: str, value: int) -> int:
    if value <= 0:
        raise _bad(f"the argument 'max_call_depth' must be greater than 0, but got {value}.")
    return value


def _deterministic(name: str, value: str) -> str:
    if value not in ("ON", "OFF"):
        raise _bad(f"the argument 'deterministic' must be one of ['ON', 'OFF'], but got {value}.")
    return value


def _count(what: str) -> Check:
    def check(name: str, value: int) -> int:
        if value < 0:
            raise ScriptValueError(f"The {what} must bigger than or equal to 0.")
        return value

    return check


def _one_of(*values: str) -> Check:
    def check(name: str, value: Any) -> Any:
        if value not in values:
            raise _bad(f"the argument '{name}' must be one of {list(values)}, but got {value}.")
        return value

    return check


def _level(first: str, second: str, values: tuple[int, int]) -> Check:
    def check(name: str, value: int) -> int:
        if value not in values:
            raise ScriptValueError(
                f"For '{name}', the value should be context.{first} or context.{second}, but got {value}."
            )
        return value

    return check


def _memory_level(name: str, value: Any) -> int:
    _one_of("O0", "O1")(name, value)
    return int(value == "O1")


FIELDS: Mapping[str, Field] = MappingProxyType(
    {
        "device_target": Field(default="", types=(str,), check=_target, deprecated="mindspore.set_device()"),
        "mode": Field(default=1, check=_mode),
        "device_id": Field(default=0, check=_device_id, deprecated="mindspore.set_device()"),
        "save_graphs": Field(default=0, types=(bool, int), check=_save_graphs),
        "save_graphs_path": Field(default=".", types=(str,), check=_directory),
        "print_file_path": Field(default="", types=(str,)),
        "enable_profiling": Field(default=False, check=_enable_profiling),
        "profiling_options": Field(default="training_trace", check=_profiling_options),
        "reserve_class_name_in_scope": Field(default=True, types=(bool,)),
        "jit_level": Field(default="", types=(str,), check=_jit_level),
        "jit_config": Field(default=MappingProxyType({}), types=(dict,), check=_jit_config),
        "ascend_config": Field(default=MappingProxyType({}), types=(dict,), check=_ascend_config),
        "gpu_config": Field(default=MappingProxyType({}), types=(dict,)),
        "max_call_depth": Field(default=1000, types=(int,), check=_max_call_depth),
        "max_device_memory": Field(default=1024.0),
        "deterministic": Field(default="OFF", types=(str,), check=_deterministic),
        "pynative_synchronize": Field(default=False, types=(bool,)),
        "jit_syntax_level": Field(default=2, types=(int,), check=_level("STRICT", "LAX", (0, 2))),
        "debug_level": Field(default=0, types=(int,), check=_level("DEBUG", "RELEASE", (0, 1))),
        "memory_optimize_level": Field(default=0, check=_memory_level),
        "inter_op_parallel_num": Field(default=0, types=(int,), check=_count("num of parallel thread")),
        "op_timeout": Field(default=900, types=(int,), check=_count("num of op exe timeout")),
        "exec_order": Field(default="bfs", types=(str,), check=_one_of("bfs", "dfs")),
        "env_config_path": Field(default="", types=(str,)),
        "check_bprop": Field(default=False, types=(bool,)),
        "variable_memory_max_size": Field(default="0", types=(str,)),
        "mempool_block_size": Field(default=1.0),
        "aoe_tune_mode": Field(
            default="",
            types=(str,),
            check=_aoe_tune_mode,
            deprecated="mindspore.device_context.ascend.op_tuning.aoe_tune_mode()",
            idle="its operators are not tuned",
        ),
        "aoe_config": Field(
            default=MappingProxyType({}),
            types=(dict,),
            check=_aoe_config,
            deprecated="mindspore.device_context.ascend.op_tuning.aoe_job_type()",
            idle="its operators are not tuned",
        ),
        "disable_format_transform": Field(
            default=False, types=(bool,), idle="no layout is transformed on the emulated GPU"
        ),
        "support_binary": Field(
            default=False, check=_support_binary, idle="it reads the source of a network, not its byte code"
        ),
        # stored without effect: there are no graph kernels and no compile cache here
        "runtime_num_threads": Field(default=0, types=(int,), check=_count("num of thread")),
        "enable_graph_kernel": Field(default=False, types=(bool,)),
        "graph_kernel_flags": Field(default="", types=(str,)),
        "enable_compile_cache": Field(default=None, types=(bool,)),
        "compile_cache_path": Field(default="", types=(str,)),
        "enable_reduce_precision": Field(default=True, types=(bool,)),
    }
)

DEFAULTS: Mapping[str, Any] = MappingProxyType({name: row.default for name, row in FIELDS.items()})
