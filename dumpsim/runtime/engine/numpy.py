"""The engine that computes with the operator table."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from dumpsim.device.halves import to_single
from dumpsim.device.packed import unpack
from dumpsim.ops.opdef import OpDef
from dumpsim.runtime.engine.engine import Computed
from dumpsim.runtime.result import flat

__all__ = ["NumpyEngine"]

_SINGLE = np.dtype(np.float32)
_NOTHING: Mapping[int, Any] = MappingProxyType({})


class NumpyEngine:
    """Calls the numpy kernels of the operator table.

    Halves arrive at a kernel as float32 and int4 as int8; kernels that work on the device itself (`OpDef.device`) take
    the stored numbers.

    Examples
    --------
    >>> from dumpsim.ops.table import find
    >>> x = np.array([1.5, 3], np.float16)
    >>> NumpyEngine().compute(find("Mul"), [x, x], {}).results
    [array([2.25, 9.  ], dtype=float32)]
    """

    name = "numpy"
    values = True

    def compute(self, definition: OpDef, operands: Sequence[Any], attrs: Mapping[str, Any]) -> Computed:
        """Compute one kernel, see `Engine.compute`."""
        updates, stored = definition.updates, definition.device
        values = [_operand(operand, at in updates, stored) for at, operand in enumerate(operands)]
        with np.errstate(all="ignore"):
            result = definition.kernel(*values, **attrs)
        results = [result] if isinstance(result, np.ndarray) else list(flat(result))
        return Computed(results, {at: values[at] for at in updates} if updates else _NOTHING)


def _operand(operand: Any, writable: bool, stored: bool) -> Any:
    """Return an operand for a kernel; arrays that the kernel must not write are read-only."""
    if isinstance(operand, np.ndarray):
        kind = operand.dtype
        if kind is not _SINGLE and not stored and kind.kind in "fV":
            if kind.itemsize == 2:
                return to_single(operand)
            if kind.names:
                return unpack(operand, "int4", operand.shape)
        if not writable:
            operand = operand.view()
            operand.setflags(write=False)
        return operand
    if isinstance(operand, tuple):
        return tuple(_operand(item, writable, stored) for item in operand)
    return operand
