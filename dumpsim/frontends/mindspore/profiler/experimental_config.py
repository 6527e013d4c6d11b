"""``mindspore.profiler.experimental_config``: further parameters of a profiler."""

from dataclasses import dataclass
from typing import Any

from dumpsim.frontends.mindspore._standin import vendored
from dumpsim.frontends.mindspore.profiler.common.constant import AicoreMetrics, ProfilerLevel

__all__ = ["_ExperimentalConfig"]


@dataclass
class _ExperimentalConfig:
    """Parameters for `profile` in one object; `profile` checks them.

    Examples
    --------
    >>> _ExperimentalConfig(profiler_level=ProfilerLevel.Level1).aic_metrics
    <AicoreMetrics.AiCoreNone: 'None'>
    """

    profiler_level: Any = ProfilerLevel.Level0
    aic_metrics: Any = AicoreMetrics.AiCoreNone
    l2_cache: Any = False
    mstx: Any = False
    data_simplification: Any = True
    export_type: Any = None
    mstx_domain_include: Any = None
    mstx_domain_exclude: Any = None
    sys_io: Any = False
    sys_interconnection: Any = False
    host_sys: Any = None


def __getattr__(name: str) -> Any:
    return vendored("mindspore.profiler.experimental_config", name)
