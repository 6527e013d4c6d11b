"""``mindspore.tools.set_dump``. [spec mindspore 2.3]"""

import warnings
from typing import Any

from dumpsim.core.errors import ScriptValueError
from dumpsim.core.settings import RunSettings
from dumpsim.frontends.mindspore._standin import vendored
from dumpsim.frontends.mindspore.context import get_context
from dumpsim.frontends.mindspore.nn.cell import Cell
from dumpsim.frontends.mindspore.ops.primitive import Primitive

__all__ = ["set_dump"]


def set_dump(target: Any, enabled: bool = True) -> None:
    """Mark a cell or a primitive for dump with ``dump_mode`` 2.

    For a cell, the flag ``dump`` is set on the cell and all cells below it, and the marks of their primitives are
    updated if they already have one; for a primitive, the attribute ``dump`` is set.

    Parameters
    ----------
    target : Cell or Primitive
    enabled : bool

    Raises
    ------
    ScriptValueError
        For another target, or for an `enabled` that is not a bool.

    Warns
    -----
    UserWarning
        On devices other than Ascend, where the release in use ignores the mark.

    Examples
    --------
    >>> cell = Cell()
    >>> set_dump(cell)
    >>> cell.get_flags()
    {'dump': True}
    """
    if not isinstance(target, (Cell, Primitive)):
        raise ScriptValueError(
            f'The "target" parameter must be an instance of Cell or Primitive, but got an instance of {type(target)}.'
        )
    if not isinstance(enabled, bool):
        raise ScriptValueError('The "enabled" parameter must be bool.')
    device = get_context("device_target")
    if device != "Ascend" and RunSettings.from_environment().mindspore != "seed":  # the seed supports every device
        warnings.warn(
            f"Current device_target is {device}, which is not supported by set_dump. Only Ascend device target is "
            "supported currently. If you have Ascend device, consider set device_target to Ascend before calling "
            "set_dump.",
            stacklevel=2,
        )
    mark = "true" if enabled else "false"
    if isinstance(target, Primitive):
        target.add_prim_attr("dump", mark)
        return
    for cell in target._all():
        cell.add_flags(dump=enabled)
        for primitive in cell._primitives.values():
            if "dump" in primitive.attrs:
                primitive.add_prim_attr("dump", mark)


def __getattr__(name: str) -> Any:
    return vendored("mindspore.tools.data_dump", name)
