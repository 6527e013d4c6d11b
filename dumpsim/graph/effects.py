"""Side effects: which nodes write memory or do input and output, and which nodes a graph needs because of them."""

from collections.abc import Callable, Sequence

from dumpsim.graph.custom_gradient import CUSTOM_GRADIENT
from dumpsim.graph.graph import Constant, Graph, Node, Parameter, Value, definition_of, reachable
from dumpsim.ops.opdef import OpDef

__all__ = ["DEAD", "STRUCTURAL", "has_effect", "live_nodes", "own_operands", "skip_depends", "written_weights"]

_IS_TRAINING = 5  # operand of BatchNorm, which writes its means only in training [source auto_monad.cc]

DEAD = "Dead"  # stands for code with unused results; an attribute tells whether it has effects or reads weights

# nodes that order, bundle or control, without an effect of their own
STRUCTURAL = frozenset(
    {
        "MakeTuple",
        "TupleGetItem",
        "Load",
        "UpdateState",
        "Depend",
        "If",
        "While",
        "Unwind",
        "Invoke",
        "Call",
        "Partial",
        "Switch",
        "Return",
        "StopGradient",
        CUSTOM_GRADIENT,
        DEAD,
        "Gradient",
    }
)


def has_effect(node: Node, find: Callable[[str], OpDef]) -> bool:
    """Whether a node, or one in its blocks, writes memory or does input and output."""
    if node.blocks:
        return any(has_effect(inner, find) for block in node.blocks for inner in block.trail)
    if node.op_type in STRUCTURAL or definition_of(node, find).side_effect is None:
        return False
    return not (node.op_type == "BatchNorm" and _is_false(node.operands[_IS_TRAINING]))


def _is_false(value: Value) -> bool:
    return isinstance(value, Constant) and value.value is False


def written_weights(node: Node, find: Callable[[str], OpDef]) -> list[Parameter]:
    """Return the weights that a node, or one in its blocks, writes."""
    if node.blocks:
        return [w for block in node.blocks for inner in block.trail for w in written_weights(inner, find)]
    if not has_effect(node, find):
        return []
    updates = find(node.op_type).updates
    written = [skip_depends(v) for at, v in enumerate(node.operands) if at in updates]
    return [v for v in written if isinstance(v, Parameter)]


def own_operands(node: Node, loops: frozenset[object]) -> Sequence[Value]:
    """Return the operands of a node that the vendor's parser does not turn into formal parameters of `loops`."""
    if node.text is None or not node.text.formals or not loops:
        return node.operands
    formals = {id(value) for value, loop in node.text.formals.items() if loop in loops}
    return [value for value in node.operands if id(value) not in formals]


def skip_depends(value: Value) -> Value:
    """Return the value that Depend nodes pass on."""
    while isinstance(value, Node) and value.op_type == "Depend":
        value = value.operands[0]
    return value


def live_nodes(graph: Graph, find: Callable[[str], OpDef]) -> list[Node]:
    """Return the nodes that the output, a side effect or a loop needs, in program order; see `mindspore.unused`."""
    effects = [node for node in graph.trail if node.op_type == "While" or has_effect(node, find)]
    needed = reachable([*effects, graph.output])
    return [node for node in graph.trail if id(node) in needed]
