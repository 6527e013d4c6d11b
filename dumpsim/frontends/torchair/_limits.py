"""The fusions that a configuration turns on; those that graphs of TorchAir do not have here are refused by name."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dumpsim.core.errors import UnsupportedError
from dumpsim.core.regular import read_text

__all__ = ["fuses"]

_LARGEST = 1 << 20  # bytes of a switch file
_ALL = "UBFusion", "ALL"  # fusion of kernels: GE's rules are in its compiled half, ours in `graph.ge.fuse` (ours)


def fuses(config: Any) -> bool:
    """Return whether kernels are fused: whether the switch file turns on all fusions of kernels.

    Parameters
    ----------
    config : CompilerConfig

    Raises
    ------
    UnsupportedError
        For a switch file that turns on another fusion, or turns off one of all.
    """
    path = config.fusion_config.fusion_switch_file.value
    if path is None:
        return False
    switches = list(_switches(json.loads(read_text(Path(path), _LARGEST))))
    joined = (_ALL, "on") in switches
    if joined:
        others = [name for name, value in switches if name != _ALL and (value == "on" or name[0] == _ALL[0])]
    else:
        others = [name for name, value in switches if value == "on"]
    if others:
        raise UnsupportedError(
            f"fusion of operators in graphs of TorchAir ({', '.join(name[1] for name in others)})",
            where=f"config.fusion_config.fusion_switch_file: {path}",
            allowed=(f"off, and {_ALL[1]} of {_ALL[0]} alone on",),
        )
    return joined


def _switches(switches: Any, group: str = "") -> "Iterator[tuple[tuple[str, str], Any]]":
    """Iterate over the fusions of a switch file: group and name, and value."""
    for name, value in switches.items() if isinstance(switches, dict) else ():
        if isinstance(value, dict):
            yield from _switches(value, name)
        else:
            yield (group, name), value
