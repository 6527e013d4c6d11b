"""The engine that computes nothing: shapes, addresses and the virtual clock are known without values."""

from collections.abc import Mapping, Sequence
from typing import Any

from dumpsim.core.errors import UnknownValueError
from dumpsim.ops.opdef import OpDef
from dumpsim.runtime.engine.engine import Computed

__all__ = ["NullEngine"]


class NullEngine:
    """Plans and times a network without values.

    The memory of the device has addresses and no bytes. Results that the script gets know type and shape, and raise
    where they are read; so do tensors of events, branch conditions, and operators whose shape or effect depends on
    values.

    Examples
    --------
    >>> from dumpsim.ops.table import find
    >>> NullEngine().compute(find("Mul"), [2.0, 3.0], {})
    Traceback (most recent call last):
    ...
    dumpsim.core.errors.UnknownValueError: Mul: the null engine computes no values [DS-ENG-001]
    """

    name = "null"
    values = False

    def compute(self, definition: OpDef, operands: Sequence[Any], attrs: Mapping[str, Any]) -> Computed:
        """Raise: the engine computes no values.

        Raises
        ------
        UnknownValueError
            Always.
        """
        raise UnknownValueError("the null engine computes no values", where=definition.name)
