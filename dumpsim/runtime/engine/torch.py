"""The engine that computes with ATen: definitions carry functions of torch."""

from collections.abc import Mapping, Sequence
from typing import Any

import ml_dtypes
import numpy as np
import torch

from dumpsim.core.errors import UnsupportedError
from dumpsim.ops.opdef import OpDef
from dumpsim.runtime.engine.engine import Computed
from dumpsim.runtime.result import flat

__all__ = ["TorchEngine"]

_BFLOAT16 = np.dtype(ml_dtypes.bfloat16)


class TorchEngine:
    """Calls kernels such as ``torch.ops.aten.linear.default``.

    The tensors share the memory of the operands; number types stay as they are.

    Examples
    --------
    >>> add = OpDef(name="Add", operands=("x", "y"), infer=lambda a, _: a[0], kernel=torch.ops.aten.add.Tensor)
    >>> TorchEngine().compute(add, [np.ones(2, np.float16), 2.0], {}).results
    [array([3., 3.], dtype=float16)]
    """

    name = "torch"
    values = True

    def compute(self, definition: OpDef, operands: Sequence[Any], attrs: Mapping[str, Any]) -> Computed:
        """Compute one kernel, see `Engine.compute`.

        Raises
        ------
        UnsupportedError
            For a kernel that is not one of torch.
        """
        with torch.no_grad():
            results = flat(definition.kernel(*map(_tensor, operands), **attrs))
            arrays = [_array(result, definition) for result in results]
        return Computed(results=arrays, updated={at: operands[at] for at in definition.updates})


def _tensor(operand: Any) -> Any:
    """An operand as torch takes it; an array of its own where numpy must not write the memory."""
    if isinstance(operand, tuple):
        return tuple(_tensor(item) for item in operand)
    if not isinstance(operand, np.ndarray):
        return operand
    array = operand if operand.flags.writeable else operand.copy()
    if array.dtype == _BFLOAT16:
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


def _array(result: Any, definition: OpDef) -> Any:
    """A result as the runtime stores it."""
    if not isinstance(result, torch.Tensor):
        raise UnsupportedError(
            f"the torch engine runs functions of torch; the kernel gave {type(result).__name__}", where=definition.name
        )
    if result.dtype == torch.bfloat16:
        return result.contiguous().view(torch.int16).numpy().view(_BFLOAT16)
    return result.contiguous().numpy()
