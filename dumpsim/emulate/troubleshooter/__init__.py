"""What ``import troubleshooter`` gives under ``dumpsim run``: its migrator; the other rooms are refused by name."""

from typing import Any

from dumpsim.core.errors import UnsupportedError
from dumpsim.emulate.troubleshooter import migrator

__all__ = ["migrator"]

# [recorded: dir() of troubleshooter 1.0.17]
_ABSENT = frozenset({"fix_random", "proposal", "proposer", "save", "save_grad", "tracker", "tracking", "widget"})


def __getattr__(name: str) -> Any:
    if name in _ABSENT:
        raise UnsupportedError(f"troubleshooter.{name} is not emulated", code="DS-EMU-002")
    raise AttributeError(f"module 'troubleshooter' has no attribute {name!r}")
