"""``mindspore.device_context.ascend.op_debug``: the runtime's settings for debugging operators."""

from collections.abc import Mapping
from typing import Any

from dumpsim.frontends.mindspore import _dumping
from dumpsim.frontends.mindspore._standin import vendored

__all__ = ["aclinit_config"]


def aclinit_config(config: Mapping[str, Any]) -> None:
    """Set options of the runtime; call this before the first network runs.

    Parameters
    ----------
    config : dict
        ``{"dump": {"dump_scene": "lite_exception"}}`` is the default; ``lite_exception:disable`` turns off the dump of
        a failed kernel. [spec mindspore 5.4]

    Raises
    ------
    TypeError, ValueError
        For another type or value.
    UnsupportedError
        For settings that do not affect dumps.

    Examples
    --------
    >>> aclinit_config({"dump": {"dump_scene": "lite_exception"}})
    """
    _dumping.set_aclinit(config)


def __getattr__(name: str) -> Any:
    return vendored("mindspore.device_context.ascend.op_debug", name)
