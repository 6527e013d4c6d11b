"""What a run or a configuration asks for and graphs of TorchAir do not have here: refused by name."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dumpsim.core.errors import UnsupportedError
from dumpsim.core.regular import read_text
from dumpsim.device.chip import CHIPS
from dumpsim.runtime.session import Session

__all__ = ["check"]

_LARGEST = 1 << 20  # bytes of a switch file


def check(config: Any, session: Session) -> None:
    """Refuse private formats and fusion.

    Parameters
    ----------
    config : CompilerConfig
    session : Session

    Raises
    ------
    UnsupportedError
        For a chip whose kernels take private formats and float16 products only, where the run names it, and for a
        switch file that turns a fusion on.
    """
    if session.settings.chip and session.chip.private_formats("O0"):
        others = (one for one in CHIPS.values() if one.target == "Ascend" and not one.private_formats("O0"))
        raise UnsupportedError(
            f"private formats and float16 products of {session.chip.name} in graphs of TorchAir",
            where="--chip",
            allowed=tuple(one.name for one in others),
        )
    path = config.fusion_config.fusion_switch_file.value
    on = [] if path is None else list(_turned_on(json.loads(read_text(Path(path), _LARGEST))))
    if on:
        raise UnsupportedError(
            f"fusion of operators in graphs of TorchAir ({', '.join(on)})",
            where=f"config.fusion_config.fusion_switch_file: {path}",
            allowed=("off",),
        )


def _turned_on(switches: Any) -> Iterator[str]:
    """Names of the fusions that a switch file turns on."""
    for name, value in switches.items() if isinstance(switches, dict) else ():
        if value == "on":
            yield name
        else:
            yield from _turned_on(value)
