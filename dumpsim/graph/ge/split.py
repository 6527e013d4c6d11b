"""Operators that GE's library splits into parts: batch normalisation in training, dropout.

The parts together compute the same; the name of a part is that of the whole and a suffix. [CANN: passes of its library]
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from dumpsim.core.abstract import TensorType, TupleType
from dumpsim.graph.builder import constant
from dumpsim.graph.ge.machine import (
    BN_REDUCE,
    BN_REDUCE_GRAD,
    BN_UPDATE,
    BN_UPDATE_GRAD,
    DROP_DO_MASK,
    drop_gen_mask,
)
from dumpsim.graph.graph import Constant, Graph, Node, Value, topological
from dumpsim.graph.sequence import plain_order
from dumpsim.ops.opdef import OpDef

__all__ = ["split", "users_of"]

Users = Mapping[int, list[Node]]

# suffixes of the names of parts
_PARTS: Mapping[str, str] = MappingProxyType(
    {
        "BNTrainingReduce": "_Reduce",
        "BNTrainingReduceGrad": "_Reduce",
        "BNTrainingUpdate": "_Update",
        "BNTrainingUpdateGrad": "_Update",
        "DropOutDoMask": "_DoMask",
        "DropOutGenMask": "_GenMask",
    }
)


def split(graph: Graph, find: Callable[[str], OpDef]) -> None:
    """Replace operators by their parts.

    Parameters
    ----------
    graph : Graph
        Its nodes are modified.
    find : callable
        The definition of an operator type.
    """
    assert isinstance(graph.output, Node)
    users = users_of(graph)
    for node in plain_order(graph.output):
        if node.op_type == "BatchNorm" and _trains(node, 5, 8):
            _normalize(node)
        elif node.op_type == "BatchNormGrad" and _trains(node, 6, 8) and _is_taken_apart(node, users):
            _normalize_back(node, users)
        elif node.op_type == "Dropout" and _is_masked(node, users):
            _drop(node, users, find)


def users_of(graph: Graph) -> dict[int, list[Node]]:
    """Return the users of each node, once for each operand."""
    users: dict[int, list[Node]] = {}
    for node in topological([graph.output]):
        for operand in node.operands:
            if isinstance(operand, Node):
                users.setdefault(id(operand), []).append(node)
    return users


def _trains(node: Node, training: int, data_format: int) -> bool:
    """Whether a normalisation uses the statistics of its batch, of images in NCHW."""
    x = node.operands[0].abstract
    flags = [node.operands[at] for at in (training, data_format)]
    return (
        isinstance(x, TensorType)
        and len(x.shape) == 4
        and all(isinstance(flag, Constant) for flag in flags)
        and [flag.value for flag in flags if isinstance(flag, Constant)] == [True, 0]
    )


def _is_taken_apart(node: Node, users: Users) -> bool:
    """Whether no user takes the outputs of a node as one tuple."""
    return all(user.op_type in ("TupleGetItem", "UpdateState") for user in users.get(id(node), ()))


def _index(item: Node) -> int:
    index = item.operands[1]
    assert isinstance(index, Constant)
    return int(index.value)


def _value(value: Value) -> float:
    assert isinstance(value, Constant)
    return float(value.value)


def _item(node: Node, at: int) -> Node:
    assert isinstance(node.abstract, TupleType)
    return Node(op_type="TupleGetItem", operands=[node, constant(at)], abstract=node.abstract.items[at])


def _part(node: Node, definition: OpDef, operands: list[Value], **attrs: object) -> Node:
    """Create a kernel that does a part of a node's work."""
    return Node(
        op_type=definition.name,
        operands=operands,
        abstract=definition.output_type([operand.abstract for operand in operands], attrs),
        attrs=attrs,
        scope=node.scope,
        full_name=node.full_name + _PARTS[definition.name],
        original_name=node.full_name,
        definition=definition,
    )


def _become(node: Node, definition: OpDef, operands: list[Value], **attrs: object) -> None:
    """Turn the node itself into the other part."""
    node.original_name, node.dump_mark = node.full_name, None
    node.full_name += _PARTS[definition.name]
    node.op_type, node.definition = definition.name, definition
    node.operands, node.attrs = operands, attrs


def _give_way(item: Node, value: Node) -> None:
    """Replace an item of a tuple by another value."""
    item.op_type, item.operands = "Depend", [value]


# ------------------------------------------------------------------------------------------ batch normalisation
def _normalize(node: Node) -> None:
    x, scale, offset, mean, variance, _, epsilon, momentum, _, *tokens = node.operands
    assert isinstance(scale.abstract, TensorType)
    sums = _part(node, BN_REDUCE, [x], kind=scale.abstract.dtype)
    operands = [x, _item(sums, 0), _item(sums, 1), scale, offset, mean, variance, *tokens]
    _become(node, BN_UPDATE, operands, factor=_value(momentum), epsilon=_value(epsilon))


def _normalize_back(node: Node, users: Users) -> None:
    dy, x, scale, mean, variance, _, _, epsilon, _ = node.operands
    name = node.full_name
    _become(node, BN_UPDATE_GRAD, [dy, x, mean, variance], epsilon=_value(epsilon))
    node.abstract = BN_UPDATE_GRAD.output_type([o.abstract for o in node.operands], node.attrs)
    operands = [dy, x, _item(node, 0), _item(node, 1), scale, mean, variance]
    last = _part(node, BN_REDUCE_GRAD, operands, epsilon=_value(epsilon))
    last.full_name, last.original_name = name + _PARTS[BN_REDUCE_GRAD.name], name
    for item in users.get(id(node), []):
        if item.op_type == "UpdateState":  # writes of the weights wait for both
            item.operands.append(last)
        elif _index(item) == 0:  # the gradient of the input is computed by the other kernel
            _give_way(item, last)
        else:
            item.operands = [node, constant(_index(item) - 1)]


# ------------------------------------------------------------------------------------------------------ dropout
def _is_masked(node: Node, users: Users) -> bool:
    """Whether only gradients of a Dropout use its mask, and its shape is known."""
    x = node.operands[0].abstract
    if not isinstance(x, TensorType) or -1 in x.shape or not _is_taken_apart(node, users):
        return False
    if not all(isinstance(operand, Constant) for operand in node.operands[1:]):
        return False
    masks = [item for item in users.get(id(node), ()) if item.op_type == "TupleGetItem" and _index(item) == 1]
    takers = [(mask, taker) for mask in masks for taker in users.get(id(mask), ())]
    return all(taker.op_type == "DropoutGrad" and taker.operands[1] is mask for mask, taker in takers)


def _drop(node: Node, users: Users, find: Callable[[str], OpDef]) -> None:
    x, *settings = node.operands
    assert isinstance(x.abstract, TensorType)
    mask = _part(node, drop_gen_mask(find("Dropout")), settings, shape=x.abstract.shape)
    _become(node, DROP_DO_MASK, [x, mask, settings[0]])
    node.abstract = x.abstract
    for item in users.get(id(node), []):
        if item.op_type == "UpdateState":
            continue
        if _index(item) == 0:
            _give_way(item, node)
            continue
        for taker in users.get(id(item), []):
            keep_prob = taker.attrs.get("keep_prob", find("DropoutGrad").attrs["keep_prob"])
            _become(taker, DROP_DO_MASK, [taker.operands[0], mask, constant(float(keep_prob))])
