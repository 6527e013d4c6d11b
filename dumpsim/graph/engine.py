"""The hardware engine that runs a kernel: AI Core, AI CPU or the communication library."""

from collections.abc import Callable

from dumpsim.core.abstract import tensors_of
from dumpsim.graph.graph import Node, definition_of
from dumpsim.ops.opdef import OpDef

__all__ = ["engine_of"]

# operators that run on the AI CPU with any number type [spec parallel 4.1: Unique, NonZero, random numbers]
_AICPU_OPS = frozenset(
    {"NonZero", "Range", "StandardNormal", "UniformInt", "UniformReal", "Unique", "LinSpace", "Meshgrid"}
)
# number types that AI Core does not support [spec parallel 4.1]
_AICPU_DTYPES = frozenset({"float64", "complex64", "complex128"})


def engine_of(node: Node, find: Callable[[str], OpDef]) -> str:
    """Return the engine that runs a kernel: its definition's, unless its operator or number types need the AI CPU."""
    definition = definition_of(node, find)
    if definition.engine != "aicore":
        return definition.engine
    types = [*tensors_of(node.abstract), *(t for o in node.operands for t in tensors_of(o.abstract))]
    if definition.name in _AICPU_OPS or any(t.dtype.name in _AICPU_DTYPES for t in types):
        return "aicpu"
    return "aicore"
