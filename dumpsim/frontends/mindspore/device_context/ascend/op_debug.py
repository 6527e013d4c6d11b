"""``mindspore.device_context.ascend.op_debug``: what scripts tell the runtime about debugging operators."""

from collections.abc import Mapping
from typing import Any

from dumpsim.frontends.mindspore import _dumping
from dumpsim.frontends.mindspore._standin import vendored

__all__ = ["aclinit_config"]


def aclinit_config(config: Mapping[str, Any]) -> None:
    """Hand settings to the runtime at its start; call it before the first network runs.

    Parameters
    ----------
    config : dict
        ``{"dump": {"dump_scene": "lite_exception"}}`` is the default; ``lite_exception:disable`` leaves out the dump
        of a kernel that fails. [spec mindspore 5.4]

    Raises
    ------
    TypeError, ValueError
        For something else.
    UnsupportedError
        For settings that do not change what is dumped.

    Examples
    --------
    >>> aclinit_config({"dump": {"dump_scene": "lite_exception"}})
    """
    _dumping.set_aclinit(config)


def __getattr__(name: str) -> Any:
    return vendored("mindspore.device_context.ascend.op_debug", name)
