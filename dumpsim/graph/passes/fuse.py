"""Operator fusion of whole graphs (O2): what GE splits, joins and renames.

Patterns are data: a head, and kinds of operators that may follow it, each at most once and in that order. A fused
operator is one kernel that does its members' work without storing what lies between. Its name is the members' names
joined, as GE's, and marks of `set_dump` on members are lost. [issue 3; spec mindspore 3.7, 12.1: fused names]
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from dumpsim.core.abstract import MonadType, TensorType, TupleType
from dumpsim.graph.builder import constant
from dumpsim.graph.graph import Constant, Graph, Node, Value, definition_of, reachable, topological
from dumpsim.graph.machine import (
    BN_REDUCE,
    BN_REDUCE_GRAD,
    BN_UPDATE,
    BN_UPDATE_GRAD,
    GE_TYPES,
    Composition,
    Source,
)
from dumpsim.graph.passes.sequence import kernel_order
from dumpsim.ops.opdef import OpDef

__all__ = ["PATTERNS", "Pattern", "fuse"]

_ACTIVATIONS = frozenset({"GeLU", "ReLU", "ReLU6", "Sigmoid", "Tanh"})
_ELEMENTWISE = frozenset(
    {
        "Abs", "Add", "Div", "Exp", "GeLU", "GeLUGrad", "Log", "Maximum", "Minimum", "Mul", "Neg", "RealDiv", "ReLU",
        "ReLU6", "ReLU6Grad", "ReluGrad", "Rsqrt", "Sigmoid", "SigmoidGrad", "Sqrt", "Square", "Sub", "Tanh",
        "TanhGrad",
    }
)  # fmt: skip
_LONGEST = 8  # members of a chain of elementwise operators


@dataclass(frozen=True, slots=True, kw_only=True)
class Pattern:
    """Which operators become one.

    Attributes
    ----------
    name : str
    heads : frozenset of str
        Types of the first operator.
    tails : tuple of frozenset of str
        Types that may follow, each stage at most once and in this order; every stage takes the result before it.
    repeats : bool
        The last stage may follow again and again.
    """

    name: str
    heads: frozenset[str]
    tails: tuple[frozenset[str], ...]
    repeats: bool = False


PATTERNS = (
    Pattern(
        name="convolution",
        heads=frozenset({"Conv2D"}),
        tails=(frozenset({"BiasAdd"}), frozenset({"BatchNorm"}), _ACTIVATIONS),
    ),
    Pattern(
        name="product",
        heads=frozenset({"MatMul", "BatchMatMul"}),
        tails=(frozenset({"BiasAdd"}), _ACTIVATIONS),
    ),
    Pattern(name="elementwise", heads=_ELEMENTWISE, tails=(_ELEMENTWISE,), repeats=True),
)
# GE's names of the parts of an operator that it splits [CANN: fused batch norm passes]
_PARTS: Mapping[str, str] = MappingProxyType(
    {"BNTrainingReduce": "_Reduce", "BNTrainingUpdate": "_Update", "BNTrainingReduceGrad": "_Reduce",
     "BNTrainingUpdateGrad": "_Update"}
)  # fmt: skip


def fuse(graph: Graph, find: Callable[[str], OpDef]) -> tuple[Node, ...]:
    """Split, join and rename the kernels of a graph as GE does.

    Parameters
    ----------
    graph : Graph
        Its nodes are changed.
    find : callable
        The definition of an operator type.

    Returns
    -------
    tuple of Node
        The kernels that are left, in execution order.
    """
    assert isinstance(graph.output, Node)
    _split(graph, kernel_order(graph.output))
    _Fusion(graph, kernel_order(graph.output), find).join()
    kernels = kernel_order(graph.output)
    for node in kernels:
        node.definition = definition_of(node, find)
        node.op_type = GE_TYPES.get(node.op_type, node.op_type)
    return kernels


# ------------------------------------------------------------------------------------------------ splitting
def _split(graph: Graph, order: Sequence[Node]) -> None:
    """Batch normalisation in training is two kernels forward and two backward."""
    users = _users(graph)
    for node in order:
        if node.op_type == "BatchNorm" and _trains(node, 5, 8):
            _split_forward(node)
        elif node.op_type == "BatchNormGrad" and _trains(node, 6, 8) and _is_taken_apart(node, users):
            _split_backward(node, users)


def _trains(node: Node, training: int, data_format: int) -> bool:
    x = node.operands[0].abstract
    flags = [node.operands[at] for at in (training, data_format)]
    return (
        isinstance(x, TensorType)
        and len(x.shape) == 4
        and all(isinstance(flag, Constant) for flag in flags)
        and [flag.value for flag in flags if isinstance(flag, Constant)] == [True, 0]
    )


def _value(value: Value) -> float:
    assert isinstance(value, Constant)
    return float(value.value)


def _part(node: Node, definition: OpDef, operands: list[Value], **attrs: object) -> Node:
    """A new kernel that does a part of a node's work."""
    return Node(
        op_type=definition.name,
        operands=operands,
        abstract=definition.infer([operand.abstract for operand in operands], attrs),
        attrs=attrs,
        scope=node.scope,
        full_name=node.full_name + _PARTS[definition.name],
        sources=node.sources,
        definition=definition,
        flags={"original": node.full_name},
    )


def _become(node: Node, definition: OpDef, operands: list[Value], **attrs: object) -> None:
    """Let the node itself do the other part."""
    node.flags = {"original": node.full_name}
    node.full_name += _PARTS[definition.name]
    node.op_type, node.definition = definition.name, definition
    node.operands, node.attrs = operands, attrs


def _item(node: Node, at: int) -> Node:
    assert isinstance(node.abstract, TupleType)
    return Node(op_type="TupleGetItem", operands=[node, constant(at)], abstract=node.abstract.items[at])


def _split_forward(node: Node) -> None:
    x, scale, offset, mean, variance, _, epsilon, momentum, _, *tokens = node.operands
    assert isinstance(scale.abstract, TensorType)
    sums = _part(node, BN_REDUCE, [x], kind=scale.abstract.dtype)
    operands = [x, _item(sums, 0), _item(sums, 1), scale, offset, mean, variance, *tokens]
    _become(node, BN_UPDATE, operands, factor=_value(momentum), epsilon=_value(epsilon))


def _is_taken_apart(node: Node, users: Mapping[int, list[Node]]) -> bool:
    return all(user.op_type in ("TupleGetItem", "UpdateState") for user in users.get(id(node), ()))


def _split_backward(node: Node, users: Mapping[int, list[Node]]) -> None:
    dy, x, scale, mean, variance, _, _, epsilon, _ = node.operands
    items = users.get(id(node), [])
    _become(node, BN_UPDATE_GRAD, [dy, x, mean, variance], epsilon=_value(epsilon))
    node.abstract = BN_UPDATE_GRAD.infer([o.abstract for o in node.operands], node.attrs)
    last = _part(
        node,
        BN_REDUCE_GRAD,
        [dy, x, _item(node, 0), _item(node, 1), scale, mean, variance],
        epsilon=_value(epsilon),
    )
    last.full_name = node.flags["original"] + _PARTS[BN_REDUCE_GRAD.name]
    last.flags = dict(node.flags)
    for item in items:
        if item.op_type == "UpdateState":  # what writes the weights waits for both
            item.operands.append(last)
            continue
        index = item.operands[1]
        assert isinstance(index, Constant)
        if index.value == 0:  # the gradient of the input: it has one kernel of its own
            item.op_type, item.operands = "Depend", [last]
        else:
            item.operands = [node, constant(index.value - 1)]


# -------------------------------------------------------------------------------------------------- joining
class _Fusion:
    def __init__(self, graph: Graph, order: Sequence[Node], find: Callable[[str], OpDef]) -> None:
        self.graph = graph
        self.order = order
        self.find = find
        self.users = _users(graph)
        self.kernels = {id(node) for node in order}
        self.taken: set[int] = set()

    def join(self) -> None:
        """Put one node in the place of each chain."""
        for pattern in PATTERNS:
            for node in self.order:
                if node.op_type in pattern.heads and id(node) not in self.taken and self._can(node):
                    chain = self._chain(node, pattern)
                    if len(chain) > 1:
                        self.taken.update(id(member) for member in chain)
                        self._fused(chain)

    def _can(self, node: Node) -> bool:
        definition = definition_of(node, self.find)
        if node.op_type == "BatchNorm":  # in inference it writes nothing
            return isinstance(node.operands[5], Constant) and node.operands[5].value is False
        return not (definition.updates or definition.side_effect or definition.random or definition.view) and (
            isinstance(node.abstract, TensorType)
        )

    def _chain(self, head: Node, pattern: Pattern) -> list[Node]:
        chain = [head]
        stages = list(pattern.tails)
        while stages and len(chain) < _LONGEST:
            follower = self._follower(chain[-1])
            if follower is None or id(follower) in self.taken or not self._can(follower):
                break
            place = next((i for i, stage in enumerate(stages) if follower.op_type in stage), None)
            if place is None:
                break
            chain.append(follower)
            stages = stages[place + 1 :] or (stages[-1:] if pattern.repeats else [])
        return chain

    def _follower(self, node: Node) -> Node | None:
        """The one kernel that takes the result of a node, as its first operand and in its shape."""
        result = self._result(node)
        if result is None:
            return None
        users = [user for user in self.users.get(id(result), []) if user.op_type != "UpdateState"]
        if len(users) != 1 or id(users[0]) not in self.kernels:
            return None
        (user,) = users
        if not user.operands or user.operands[0] is not result:
            return None
        mine, its = result.abstract, user.abstract.items[0] if isinstance(user.abstract, TupleType) else user.abstract
        if not isinstance(mine, TensorType) or not isinstance(its, TensorType):
            return None
        if (mine.shape, mine.dtype) != (its.shape, its.dtype):
            return None
        # what writes memory behind the node must not have to run before the follower
        return None if id(node) in reachable(user.operands[1:]) else user

    def _result(self, node: Node) -> Node | None:
        """What users take of a kernel: the node, or the item where it is the only one that is used."""
        if isinstance(node.abstract, TensorType):
            return node
        users = [user for user in self.users.get(id(node), []) if user.op_type != "UpdateState"]
        if len(users) != 1 or users[0].op_type != "TupleGetItem":
            return None
        index = users[0].operands[1]
        return users[0] if isinstance(index, Constant) and index.value == 0 else None

    def _fused(self, chain: Sequence[Node]) -> None:
        members = {id(node): at for at, node in enumerate(chain)}
        items = {id(self._result(node)): at for at, node in enumerate(chain)}
        operands: list[Value] = []
        tokens: list[Value] = []
        wiring: list[tuple[Source, ...]] = []
        for node in chain:
            sources: list[Source] = []
            for operand in node.operands:
                if isinstance(operand.abstract, MonadType):
                    tokens.append(operand)
                elif id(operand) in items:
                    at = items[id(operand)]
                    sources.append(Source(True, at, None if id(operand) in members else 0))
                else:
                    sources.append(Source(False, len(operands)))
                    operands.append(operand)
            wiring.append(tuple(sources))
        definitions = tuple(definition_of(node, self.find) for node in chain)
        attrs = tuple({**d.attrs, **node.attrs} for d, node in zip(definitions, chain, strict=True))
        op_type = chain[0].op_type
        result = self._result(chain[-1])
        assert result is not None
        fused = Node(
            op_type=op_type,
            operands=[*operands, *tokens],
            abstract=result.abstract,
            scope=chain[0].scope,
            full_name="".join(node.full_name for node in chain),
            sources=chain[0].sources,
            definition=Composition(definitions=definitions, attrs=attrs, wiring=tuple(wiring)).definition(op_type),
            members=tuple(replace(node, operands=list(node.operands)) for node in chain),
        )
        self._replace(result, fused)
        for node in chain:  # tokens that waited for a member wait for the whole
            self._replace(node, fused)

    def _replace(self, old: Node, new: Node) -> None:
        for user in self.users.pop(id(old), []):
            if user.op_type == "TupleGetItem" and old.abstract != new.abstract:
                continue  # the item itself was replaced
            user.operands = [new if operand is old else operand for operand in user.operands]
            self.users.setdefault(id(new), []).append(user)
        if self.graph.output is old:
            self.graph.output = new


def _users(graph: Graph) -> dict[int, list[Node]]:
    """Users of each node, once for each operand."""
    users: dict[int, list[Node]] = {}
    for node in topological([graph.output]):
        for operand in node.operands:
            if isinstance(operand, Node):
                users.setdefault(id(operand), []).append(node)
    return users
