"""dumpsim: the tensor-dump behaviour of MindSpore and Ascend on an ordinary machine, and readers of real dumps.

Names are loaded when they are first used; ``import dumpsim`` itself loads no third-party package.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from dumpsim.core.version import __version__

if TYPE_CHECKING:
    from dumpsim.analysis.compare import compare
    from dumpsim.analysis.compareglobal import compare_global
    from dumpsim.analysis.convert import convert
    from dumpsim.analysis.dumpset import DumpSet, open
    from dumpsim.core.errors import DumpsimError
    from dumpsim.core.record import Record
    from dumpsim.replay.first import first
    from dumpsim.replay.replay import replay
    from dumpsim.tensor.device_stats import device_statistics
    from dumpsim.tensor.digest import digest
    from dumpsim.tensor.layout import to_device, to_host
    from dumpsim.tensor.simd import simd_levels
    from dumpsim.tensor.stats import Statistics, statistics

__all__ = [
    "DumpSet",
    "DumpsimError",
    "Record",
    "Statistics",
    "__version__",
    "compare",
    "compare_global",
    "convert",
    "device_statistics",
    "digest",
    "first",
    "open",
    "replay",
    "simd_levels",
    "statistics",
    "to_device",
    "to_host",
]


_HOMES = {
    "DumpSet": "dumpsim.analysis.dumpset",
    "DumpsimError": "dumpsim.core.errors",
    "Record": "dumpsim.core.record",
    "Statistics": "dumpsim.tensor.stats",
    "compare": "dumpsim.analysis.compare",
    "compare_global": "dumpsim.analysis.compareglobal",
    "convert": "dumpsim.analysis.convert",
    "device_statistics": "dumpsim.tensor.device_stats",
    "digest": "dumpsim.tensor.digest",
    "first": "dumpsim.replay.first",
    "open": "dumpsim.analysis.dumpset",
    "replay": "dumpsim.replay",
    "simd_levels": "dumpsim.tensor.simd",
    "statistics": "dumpsim.tensor.stats",
    "to_device": "dumpsim.tensor.layout",
    "to_host": "dumpsim.tensor.layout",
}


if not TYPE_CHECKING:  # type checkers know the names above, and report any other

    def __getattr__(name: str) -> Any:
        if name in _HOMES:
            return getattr(import_module(_HOMES[name]), name)
        raise AttributeError(f"module 'dumpsim' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
