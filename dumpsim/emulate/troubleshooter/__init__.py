"""What ``import troubleshooter`` gives under ``dumpsim run``: its migrator; the other rooms are refused by name."""

from typing import Any

from dumpsim.core.errors import UnsupportedError
from dumpsim.emulate.troubleshooter import migrator

__all__ = ["migrator"]

__version__ = "1.0.17"  # the release whose functions these are

# [recorded: dir() of troubleshooter 1.0.17]
_ABSENT = frozenset(
    [
        "FRAMEWORK_TYPE",
        "common",
        "fix_random",
        "log",
        "proposal",
        "proposer",
        "save",
        "save_grad",
        "tracker",
        "tracking",
        "version",
        "widget",
    ]
)


def __getattr__(name: str) -> Any:
    if name in _ABSENT:
        raise UnsupportedError(f"troubleshooter.{name} is not emulated", code="DS-EMU-002")
    raise AttributeError(f"module 'troubleshooter' has no attribute {name!r}")
