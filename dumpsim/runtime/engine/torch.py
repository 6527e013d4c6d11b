"""The engine that computes with ATen: the kernels of its definitions are functions of torch."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
import torch

from dumpsim.core.errors import UnsupportedError
from dumpsim.ops.opdef import OpDef
from dumpsim.runtime.engine.engine import Bound, Computed, Work
from dumpsim.runtime.engine.torchbound import Binder, array_of, tensor_of
from dumpsim.runtime.result import flat

__all__ = ["TorchEngine"]


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
            results = flat(definition.kernel(*map(_operand, operands), **attrs))
            arrays = [_array(result, definition) for result in results]
        return Computed(results=arrays, updated={at: operands[at] for at in definition.updates})

    def bind(
        self,
        works: Sequence[Work],
        arrays: Mapping[int, Any],
        spans: Mapping[int, tuple[int, int]],
        roots: Mapping[int, int],
        results: Sequence[int],
        *,
        moves: bool = True,
        strided: Mapping[int, Any] = MappingProxyType({}),
    ) -> Bound:
        """Bind the kernels of a graph to memory, see `Engine.bind`."""
        tensors = {number: tensor_of(array) for number, array in arrays.items()}
        inputs = {number: tensor_of(array) for number, array in strided.items()}
        return Binder(works, arrays, tensors, spans, roots, results, inputs).bind(moves=moves)


def _operand(operand: Any) -> Any:
    """Return an operand for torch; a read-only array is copied."""
    if isinstance(operand, tuple):
        return tuple(_operand(item) for item in operand)
    if not isinstance(operand, np.ndarray):
        return operand
    return tensor_of(operand if operand.flags.writeable else operand.copy())


def _array(result: Any, definition: OpDef) -> Any:
    """Return a result as an array for the runtime."""
    if not isinstance(result, torch.Tensor):
        raise UnsupportedError(
            f"the kernel returned {type(result).__name__}; the torch engine runs functions of torch",
            where=definition.name,
        )
    return array_of(result.contiguous())
