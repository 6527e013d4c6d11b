"""The losses of a split network: each rank that has a copy starts its gradient with a share. [spec parallel 2.7]"""

from collections.abc import Iterable

from dumpsim.core.abstract import NoneType, TensorType
from dumpsim.core.tensorlayout import TensorLayout
from dumpsim.graph.graph import Constant, Node, Value
from dumpsim.graph.parallel.inserted import Inserter, beside_control
from dumpsim.graph.parallel.plan import source_of
from dumpsim.graph.parallel.settings import Settings
from dumpsim.graph.parallel.sources import Source

__all__ = ["divide", "divided", "makers_of"]


def makers_of(losses: Iterable[Value]) -> set[int]:
    """Return the ids of the operators that compute the losses."""
    return {id(source_of(loss)[0]) for loss in losses}


def divide(node: Node, output: TensorLayout, name: str, insert: Inserter, settings: Settings) -> None:
    """Divide the gradient of a loss by the number of its copies, at the operands of the operator that computes it."""
    divisor = _copies(output, settings)
    for at, value in enumerate(node.operands if divisor > 1 else ()):
        if isinstance(value.abstract, (TensorType, NoneType)) and not isinstance(value, Constant):
            node.operands[at] = insert.virtual_div(value, divisor, node, name)


def divided(loss: Source, insert: Inserter, settings: Settings, node: Node) -> Value:
    """Divide the gradient of a loss that control flow returns, before the node that takes its gradient."""
    divisor = _copies(loss.layout, settings)
    if divisor == 1:
        return loss.value
    found = insert.virtual_div(loss.value, divisor, beside_control(node), loss.name)
    found.abstract = loss.value.abstract
    return found


def _copies(layout: TensorLayout, settings: Settings) -> int:
    if not settings.loss_repeated_mean:
        return 1
    return len(layout.replicas(settings.rank)) if layout.shape else settings.device_num
