"""``mindspore.profiler``: profiles of the device's tasks on the clock of the run."""

from typing import Any

from dumpsim.frontends.mindspore._standin import vendored
from dumpsim.frontends.mindspore.profiler.common.constant import (
    AicoreMetrics,
    ExportType,
    HostSystem,
    ProfilerActivity,
    ProfilerLevel,
)
from dumpsim.frontends.mindspore.profiler.experimental_config import _ExperimentalConfig
from dumpsim.frontends.mindspore.profiler.profiler import Profile as profile  # noqa: N813
from dumpsim.frontends.mindspore.profiler.profiler import Profiler, tensorboard_trace_handler
from dumpsim.frontends.mindspore.profiler.schedule import Schedule as schedule  # noqa: N813

__all__ = [
    "AicoreMetrics",
    "ExportType",
    "HostSystem",
    "Profiler",
    "ProfilerActivity",
    "ProfilerLevel",
    "_ExperimentalConfig",
    "profile",
    "schedule",
    "tensorboard_trace_handler",
]


def __getattr__(name: str) -> Any:
    return vendored("mindspore.profiler", name)
