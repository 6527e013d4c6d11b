"""The parameters of a profiler: type checks as in MindSpore, and checks for features that are not emulated.

MindSpore resets a value of a wrong type to its default with a warning. [observed 2.10]
"""

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from dumpsim.core.errors import UnsupportedError
from dumpsim.frontends.mindspore import log as logger
from dumpsim.frontends.mindspore.profiler.common.constant import (
    AicoreMetrics,
    ExportType,
    ProfilerActivity,
    ProfilerLevel,
)
from dumpsim.frontends.mindspore.profiler.experimental_config import _ExperimentalConfig
from dumpsim.frontends.mindspore.profiler.schedule import Schedule
from dumpsim.profiling.options import METRICS

__all__ = ["Parameters", "parameters"]

_ACTIVITIES = (ProfilerActivity.CPU, ProfilerActivity.NPU)
_NOT_EMULATED = (  # switches that can only be off
    "with_stack", "profile_memory", "data_process", "parallel_strategy", "l2_cache", "hbm_ddr", "pcie", "sys_io",
    "sys_interconnection", "record_shapes", "mstx",
)  # fmt: skip
_SWITCHES = (*_NOT_EMULATED, "start_profile", "sync_enable", "data_simplification")
_LISTS = ("host_sys", "mstx_domain_include", "mstx_domain_exclude")
_ON = ("start_profile", "sync_enable", "data_simplification")  # on by default
_DEPRECATED: Mapping[str, str] = MappingProxyType(
    {
        "profile_communication": "please use 'profiler_level=ProfilerLevel.Level1' or "
        "'profiler_level=ProfilerLevel.Level2' instead.",
        "op_time": "please use 'activaties=ProfilerActivity.NPU' instead.",
        "profile_framework": "please use 'activaties=ProfilerActivity.CPU' instead.",
        "host_stack": "please use 'with_stack' instead.",
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters:
    """The checked arguments of a profiler.

    Attributes
    ----------
    output_path : str
    level : ProfilerLevel
    activities : tuple of ProfilerActivity
    metrics : str or None
        The group of AI Core metrics.
    schedule : Schedule or None
        None if the script passes none.
    on_trace_ready : callable or None
    start : bool
        Whether recording starts with the profiler.
    """

    output_path: str
    level: ProfilerLevel
    activities: tuple[ProfilerActivity, ...]
    metrics: str | None
    schedule: Schedule | None
    on_trace_ready: Callable[..., Any] | None
    start: bool

    @property
    def operators(self) -> bool:
        """Whether the device's tasks are collected."""
        return set(self.activities) & {ProfilerActivity.NPU, ProfilerActivity.GPU} != set()

    @property
    def operands(self) -> bool:
        """Whether kernels are reported with their operands."""
        return self.level in (ProfilerLevel.Level1, ProfilerLevel.Level2)

    def settings(self) -> dict[str, Any]:
        """Return the parameters for profiler_info."""
        return {
            "profiler_level": self.level.value,
            "activities": [activity.value for activity in self.activities],
            "aic_metrics": self.metrics or AicoreMetrics.AiCoreNone.value,
            "is_set_schedule": self.schedule is not None,
            "schedule": (self.schedule.to_dict() if self.schedule else None),
            "export_type": [ExportType.Text.value],
        }


def parameters(given: Mapping[str, Any]) -> Parameters:
    """Check the keyword arguments of a profiler.

    Raises
    ------
    UnsupportedError
        For data that the emulation does not collect.
    """
    _warn_of_deprecated(given)
    given = _with_config(given)
    switches = {name: _typed(given, name, bool, name in _ON) for name in _SWITCHES}
    for name in _NOT_EMULATED:
        if switches[name]:
            raise UnsupportedError(f"{name}=True is not emulated", where="mindspore.profiler", allowed=("False",))
    for name in _LISTS:
        if given.get(name):
            raise UnsupportedError(f"{name} is not emulated", where="mindspore.profiler", allowed=("no list",))
    level = _typed(given, "profiler_level", ProfilerLevel, ProfilerLevel.Level0)
    if level is ProfilerLevel.LevelNone:
        level = ProfilerLevel.Level0
        _warn("when 'mstx' is disabled, 'profiler_level' cannot be set to 'ProfilerLevel.LevelNone', reset to "
              "'ProfilerLevel.Level0'.")  # fmt: skip
    _check_format(given.get("export_type"))
    plan = given.get("schedule")
    if plan is not None and not isinstance(plan, Schedule):
        logger.warning(f"For Profiler, schedule value is Invalid, reset to {Schedule(wait=0, active=1)}")
        plan = None
    ready = given.get("on_trace_ready")
    if ready is not None and not callable(ready):
        logger.warning("For Profiler, on_trace_ready value is Invalid, reset to None.")
        ready = None
    path = given.get("output_path")
    return Parameters(
        output_path=path if isinstance(path, str) and path else "./data",
        level=level,
        activities=_activities(given.get("activities")),
        metrics=_metrics(given, level),
        schedule=plan,
        on_trace_ready=ready,
        start=switches["start_profile"],
    )


def _warn(text: str) -> None:
    warnings.warn(text, stacklevel=5)


def _warn_of_deprecated(given: Mapping[str, Any]) -> None:
    for name, instead in _DEPRECATED.items():
        if name in given:
            _warn(f"The parameter '{name}' is deprecated, {instead}")
    if "timeline_limit" in given:
        _warn("The parameter 'timeline_limit' is deprecated and will have no effect")


def _with_config(given: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the arguments, including those of ``experimental_config``."""
    config = given.get("experimental_config")
    if config is None:
        return given
    if not isinstance(config, _ExperimentalConfig):
        logger.warning(
            "For Profiler, experimental_config value must be the 'mindspore.profiler._ExperimentalConfig' class, "
            "reset to default value."
        )
        return given
    return {**given, **vars(config)}


def _typed(given: Mapping[str, Any], name: str, kind: type, default: Any) -> Any:
    value = given.get(name)
    if value is None or isinstance(value, kind):
        return default if value is None else value
    logger.warning(f"For Profiler, the type of {name} should be {kind}, but got {type(value)}, reset to {default}.")
    return default


def _activities(given: Any) -> tuple[ProfilerActivity, ...]:
    if given is None:
        return _ACTIVITIES
    listed = isinstance(given, (list, tuple, set)) and all(isinstance(each, ProfilerActivity) for each in given)
    if not listed:
        logger.warning(f"For Profiler, activities value is Invalid, reset to {list(_ACTIVITIES)}.")
        return _ACTIVITIES
    return tuple(sorted(set(given), key=lambda activity: activity.value))


def _metrics(given: Mapping[str, Any], level: ProfilerLevel) -> str | None:
    wanted = _typed(given, "aic_metrics", AicoreMetrics, AicoreMetrics.AiCoreNone)
    if level is ProfilerLevel.Level0:
        if wanted is not AicoreMetrics.AiCoreNone:
            _warn(
                f"when 'profiler_level' is set to '{level}', 'aic_metrics' cannot be set to other value except "
                "'AicoreMetrics.AiCoreNone', reset to 'AicoreMetrics.AiCoreNone'."
            )
        return None
    if wanted is AicoreMetrics.AiCoreNone:
        _warn(
            f"when 'profiler_level' is set to '{level}', 'aic_metrics' cannot be set to 'AicoreMetrics.AiCoreNone', "
            "reset to 'AicoreMetrics.PipeUtilization'."
        )
        return AicoreMetrics.PipeUtilization.value
    if wanted.value not in METRICS:
        raise UnsupportedError(f"{wanted} is not emulated", where="mindspore.profiler", allowed=METRICS)
    return str(wanted.value)


def _check_format(given: Any) -> None:
    """Raise for databases; MindSpore treats an unknown format as text."""
    listed = given if isinstance(given, list) else [given]
    if any(each in (ExportType.Db, ExportType.Db.value) for each in listed):
        raise UnsupportedError("databases are not emulated", where="mindspore.profiler: export_type", allowed=("text",))
    if given and not all(each in (ExportType.Text, ExportType.Text.value) for each in listed):
        logger.warning("Invalid parameter export_type, reset it to text.")
