"""Operator fusion of whole graphs (O2): splits, joins and renames kernels as GE does.

Patterns are data: a head, and kinds of operators that may follow it, each at most once and in that order. A fused
operator is one kernel that does its members' work without storing intermediate results. Its name joins the members'
names, as in GE, and marks of `set_dump` on members are lost. [spec mindspore 3.7, 12.1: fused names]
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from dumpsim.core.abstract import MonadType, TensorType, TupleType
from dumpsim.graph.ge.machine import GE_TYPES, Composition, Source
from dumpsim.graph.ge.split import split, users_of
from dumpsim.graph.graph import Constant, Graph, Node, Value, definition_of, reachable
from dumpsim.graph.sequence import plain_order
from dumpsim.ops.opdef import OpDef

__all__ = ["PATTERNS", "Pattern", "fuse", "fuse_in_order"]

# with the names of MindSpore and, where GE's own differ, of GE
_ACTIVATIONS = frozenset({"GeLU", "Gelu", "ReLU", "ReLU6", "Relu", "Relu6", "Sigmoid", "Swish", "Tanh"})
_ELEMENTWISE = frozenset(
    {
        "Abs", "Add", "Div", "Exp", "GeLU", "GeLUGrad", "Gelu", "GeluGrad", "Log", "Maximum", "Minimum", "Mul", "Neg",
        "RealDiv", "ReLU", "ReLU6", "ReLU6Grad", "Relu", "Relu6", "ReluGrad", "Rsqrt", "Sigmoid", "SigmoidGrad",
        "Sqrt", "Square", "Sub", "Swish", "SwishGrad", "Tanh", "TanhGrad",
    }
)  # fmt: skip
_LONGEST = 8  # members of a chain of elementwise operators


@dataclass(frozen=True, slots=True, kw_only=True)
class Pattern:
    """A sequence of operators that is fused into one.

    Attributes
    ----------
    name : str
    heads : frozenset of str
        Types of the first operator.
    tails : tuple of frozenset of str
        Types that may follow, each stage at most once and in this order; every stage takes the previous result.
    repeats : bool
        Whether the last stage may be repeated.
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
        heads=frozenset({"MatMul", "MatMulV2", "BatchMatMul", "BatchMatMulV2"}),
        tails=(frozenset({"BiasAdd"}), _ACTIVATIONS),
    ),
    Pattern(name="elementwise", heads=_ELEMENTWISE, tails=(_ELEMENTWISE,), repeats=True),
)


def fuse(graph: Graph, find: Callable[[str], OpDef]) -> tuple[Node, ...]:
    """Split, join and rename the kernels of a graph as GE does.

    Parameters
    ----------
    graph : Graph
        Its nodes are modified.
    find : callable
        The definition of an operator type.

    Returns
    -------
    tuple of Node
        The remaining kernels, in execution order.
    """
    assert isinstance(graph.output, Node)
    split(graph, find)
    _Fusion(graph, plain_order(graph.output), find).join()
    kernels = plain_order(graph.output)
    for node in kernels:
        node.definition = definition_of(node, find)
        node.op_type = GE_TYPES.get(node.op_type, node.op_type)
    return kernels


def fuse_in_order(graph: Graph, order: Sequence[Node], find: Callable[[str], OpDef]) -> tuple[Node, ...]:
    """Join the kernels of a GE graph with a given order; each chain takes the position of its last member.

    Parameters
    ----------
    graph : Graph
        Its nodes are modified.
    order : sequence of Node
    find : callable

    Returns
    -------
    tuple of Node
        The remaining kernels, in execution order.
    """
    fusion = _Fusion(graph, order, find)
    fusion.join()
    return tuple(fusion.ends.get(id(node), node) for node in order if id(node) not in fusion.inner)


class _Fusion:
    def __init__(self, graph: Graph, order: Sequence[Node], find: Callable[[str], OpDef]) -> None:
        self.graph = graph
        self.order = order
        self.find = find
        self.users = users_of(graph)
        self.kernels = {id(node) for node in order}
        self.taken: set[int] = set()
        self.inner: set[int] = set()  # members of chains except the last ones
        self.ends: dict[int, Node] = {}  # the fused node, by the last member of its chain

    def join(self) -> None:
        """Replace each chain by one node."""
        for pattern in PATTERNS:
            for node in self.order:
                if node.op_type in pattern.heads and id(node) not in self.taken and self._can(node):
                    chain = self._chain(node, pattern)
                    if len(chain) > 1:
                        self.taken.update(id(member) for member in chain)
                        self._fused(chain)

    def _can(self, node: Node) -> bool:
        """Whether a node writes nothing; of the patterns' operators BatchNorm alone does so, in training."""
        if node.op_type != "BatchNorm":
            return True
        return isinstance(node.operands[5], Constant) and node.operands[5].value is False

    def _chain(self, head: Node, pattern: Pattern) -> list[Node]:
        chain = [head]
        stages = list(pattern.tails)
        while stages and len(chain) < _LONGEST:
            follower = self._follower(chain[-1])
            if follower is None or id(follower) in self.taken or not self._can(follower):
                break
            if self._result(follower) is None:  # users take more than the first output
                break
            place = next((i for i, stage in enumerate(stages) if follower.op_type in stage), None)
            if place is None:
                break
            chain.append(follower)
            stages = stages[place + 1 :] or (stages[-1:] if pattern.repeats else [])
        return chain

    def _follower(self, node: Node) -> Node | None:
        """Return the only kernel that takes the result of a node, as its first operand and with the same shape."""
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
        # a write of memory after the node must not have to run before the follower
        return None if id(node) in reachable(user.operands[1:]) else user

    def _result(self, node: Node) -> Node | None:
        """Return the value that users take: the node itself, or its first item if no other one is used."""
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
            definition=Composition(definitions=definitions, attrs=attrs, wiring=tuple(wiring)).definition(op_type),
            members=tuple(replace(node, operands=list(node.operands)) for node in chain),
        )
        for operand in (*operands, *tokens):  # a later pattern may replace it
            users = self.users.get(id(operand), [])
            self.users[id(operand)] = [fused if id(user) in members else user for user in users]
        self.inner.update(id(node) for node in chain[:-1])
        self.ends[id(chain[-1])] = fused
        self._replace(result, fused)
        for node in chain:  # tokens that wait for a member now wait for the fused node
            self._replace(node, fused)

    def _replace(self, old: Node, new: Node) -> None:
        for user in self.users.pop(id(old), []):
            if user.op_type == "TupleGetItem":
                continue  # the item itself was replaced
            user.operands = [new if operand is old else operand for operand in user.operands]
            self.users.setdefault(id(new), []).append(user)
        if self.graph.output is old:
            self.graph.output = new
