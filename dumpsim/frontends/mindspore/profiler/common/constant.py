"""``mindspore.profiler.common.constant``: levels, activities, metrics and formats."""

from enum import Enum
from typing import Any

from dumpsim.frontends.mindspore._standin import vendored

__all__ = ["AicoreMetrics", "ExportType", "HostSystem", "ProfilerActivity", "ProfilerLevel"]


class ProfilerLevel(Enum):
    """Amount of collected data; level 1 and above include operands and AI Core metrics."""

    LevelNone = "LevelNone"
    Level0 = "Level0"
    Level1 = "Level1"
    Level2 = "Level2"


class ProfilerActivity(Enum):
    """Activities that are collected."""

    NPU = "NPU"
    GPU = "GPU"
    CPU = "CPU"


class AicoreMetrics(Enum):
    """A group of AI Core metrics."""

    PipeUtilization = "PipeUtilization"
    ArithmeticUtilization = "ArithmeticUtilization"
    Memory = "Memory"
    MemoryL0 = "MemoryL0"
    MemoryUB = "MemoryUB"
    ResourceConflictRatio = "ResourceConflictRatio"
    L2Cache = "L2Cache"
    MemoryAccess = "MemoryAccess"
    AiCoreNone = "None"


class ExportType(Enum):
    """The format of results."""

    Db = "db"
    Text = "text"


class HostSystem(Enum):
    """Data of the host's system."""

    CPU = "cpu"
    MEM = "mem"
    DISK = "disk"
    NETWORK = "network"
    OSRT = "osrt"


def __getattr__(name: str) -> Any:
    return vendored("mindspore.profiler.common.constant", name)
