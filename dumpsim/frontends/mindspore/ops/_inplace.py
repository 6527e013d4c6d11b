"""``x += y`` in a graph: the operators that write their first operand. [observed 2.10]"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from dumpsim.frontends.mindspore._current import capturing
from dumpsim.frontends.mindspore.common.tensor import Tensor
from dumpsim.frontends.mindspore.ops.function._single import single
from dumpsim.frontends.mindspore.ops.function.arithmetic import is_number
from dumpsim.graph.graph import Node, text_of

__all__ = ["written"]

# operator of Python -> composite operator for tensors and for numbers, and whether it takes alpha
_OPERATORS: Mapping[str, tuple[str, str, bool]] = MappingProxyType(
    {
        "Add": ("InplaceAddExt", "InplaceAddsExt", True),
        "Sub": ("InplaceSubExt", "InplaceSubScalar", True),
        "Mul": ("InplaceMul", "InplaceMuls", False),
        "Div": ("InplaceDiv", "InplaceDivs", False),
        "FloorDivide": ("InplaceFloorDivide", "InplaceFloorDivides", False),
        "Remainder": ("InplaceRemainderTensorTensor", "InplaceRemainderTensorScalar", False),
    }
)


def written(name: str, x: Tensor, other: Any) -> Tensor:
    """Compute the value and assign it to `x`."""
    of_tensor, of_number, alpha = _OPERATORS[name]
    op_type = of_number if is_number(other) else of_tensor
    tracer = capturing()
    if tracer is not None:
        tracer.specialised.augmented()
    value = single(op_type, [x, other, 1] if alpha else [x, other])
    assigned = single("Assign", [x, value])
    if isinstance(assigned._symbol, Node):
        text_of(assigned._symbol).is_backend = True  # a pass makes it, after the front end's nodes have numbers
    return value
