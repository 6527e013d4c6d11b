"""Which fusions a configuration asks for, and which of them graphs of TorchAir do not have here: refused by name."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dumpsim.core.errors import UnsupportedError
from dumpsim.core.regular import read_text

__all__ = ["fuses"]

_LARGEST = 1 << 20  # bytes of a switch file
_ALL = "UBFusion", "ALL"  # kernels are joined; which ones is in GE's compiled half, here in `graph.ge.fuse` (ours)


def fuses(config: Any) -> bool:
    """Whether kernels are joined: the switch file turns all fusions of kernels on.

    Parameters
    ----------
    config : CompilerConfig

    Raises
    ------
    UnsupportedError
        For a switch file that turns another fusion on, or one of all off.
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
    """Groups and names of the fusions of a switch file, with what they are set to."""
    for name, value in switches.items() if isinstance(switches, dict) else ():
        if isinstance(value, dict):
            yield from _switches(value, name)
        else:
            yield (group, name), value
