"""A training step as two function graphs: the forward pass, and the graph that calls and differentiates it.

The text of a stage shows the forward pass as a function with formal parameters. The network's own graph calls it and
takes its gradient with ``J``; gradients of weights are read from an environment. [observed 2.10]
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from dumpsim.core.abstract import Abstract, FunctionType, MonadType, NoneType, ObjectType, TensorType, TupleType
from dumpsim.graph.builder import constant
from dumpsim.graph.graph import Constant, Graph, Node, Parameter, Value, text_of, topological
from dumpsim.graph.mindspore.gradient_node import GRADIENT, gradient_of
from dumpsim.graph.mindspore.monads import joined
from dumpsim.graph.nodetext import NodeText
from dumpsim.graph.parallel.virtual import GATHER

__all__ = ["CALL", "Differentiated", "split_training_step"]

CALL = "()"  # the type of a node that calls its first operand
_BETWEEN = ("_MirrorOperator", GATHER)  # between a weight and its users
_U = MonadType(kind="U")
_FUNCTION, _ENVIRONMENT, _KEY = FunctionType(), ObjectType("EnvType"), ObjectType("SymbolicKey")


@dataclass(frozen=True, slots=True)
class Differentiated:
    """The two function graphs.

    Attributes
    ----------
    root, inner : Graph
        The network's own graph, and the forward pass. The parameters of `inner` are its formal ones; the weights that
        it reads are parameters of `root`.
    token : Constant
        The last formal parameter of `inner`: the monad.
    scope : str
        Scope of the differentiated cell.
    """

    root: Graph
    inner: Graph
    token: Constant
    scope: str


def split_training_step(graph: Graph, name: str) -> Differentiated | None:
    """Split a graph with monads into the function graphs; None if it takes no gradient, or several.

    Parameters
    ----------
    graph : Graph
        Its nodes are modified.
    name : str
        Name of the forward pass.
    """
    nodes = topological([graph.output])
    gradients = [node for node in nodes if node.op_type == GRADIENT]
    if len(gradients) != 1 or gradient_of(gradients[0]).count != 1:
        return None
    return _Splitter(graph, nodes, gradients[0], name).split()


class _Splitter:
    def __init__(self, graph: Graph, nodes: Sequence[Node], gradient: Node, name: str) -> None:
        self._graph, self._nodes, self._gradient, self._name = graph, nodes, gradient, name
        self._loss, self._seed, *self._wanted = gradient.operands
        self._inner = topological([self._loss])
        self._ids = {id(node) for node in self._inner}
        used = {id(value) for node in self._inner for value in node.operands}
        self._arguments = [p for p in graph.parameters if not p.is_weight and id(p) in used]
        self._replaced: dict[int, Value] = {}
        made = [node for node in self._inner if text_of(node).sources]
        self._scope = made[-1].scope if made else "Default"
        kind = self._loss.abstract  # inserted nodes have no type yet
        self._kind = _plain(self._seed.abstract) if isinstance(kind, NoneType) else kind
        self._token = Constant(value="U", abstract=_U)

    def split(self) -> Differentiated | None:
        if not isinstance(self._loss, Node):
            return None
        loads = [node for node in self._inner if node.op_type == "Load"]
        inner = self._function(loads)
        loads += [v for v in self._wanted if isinstance(v, Node) and v.op_type == "Load" and id(v) not in self._ids]
        results, token = self._calls(inner)
        items: dict[int, Value] = {}
        for node in self._nodes:
            if id(node) in self._ids or node is self._gradient:
                continue
            first = node.operands[0] if node.operands else None
            if node.op_type == "TupleGetItem" and first is self._gradient:
                place = node.operands[1]
                assert isinstance(place, Constant)
                items[id(node)] = results[place.value]
            elif node.op_type == "MakeTuple" and all(value in loads for value in node.operands):
                continue
            elif node.op_type == "UpdateState" and self._orders_loads(node, loads):
                items[id(node)] = token
        self._replaced.update(items)
        for node in self._nodes:
            if id(node) not in self._ids:
                node.operands = [self._now(value) for value in node.operands]
        output = self._graph.output
        root = replace(self._graph, output=self._now(output) if output is not None else None)
        return Differentiated(root=root, inner=inner, token=self._token, scope=self._scope)

    def _orders_loads(self, node: Node, loads: Sequence[Node]) -> bool:
        after = node.operands[1]
        if isinstance(after, Node) and after.op_type == "MakeTuple":
            return all(value in loads for value in after.operands)
        return after in loads

    def _now(self, value: Value) -> Value:
        return self._replaced.get(id(value), value)

    def _function(self, loads: Sequence[Node]) -> Graph:
        """Return the forward pass as a function with formal parameters, whose result depends on its reads."""
        names = dict(gradient_of(self._gradient).formals)
        formals = [replace(p, debug_name=names.get(p.name, p.debug_name)) for p in self._arguments]
        known: dict[int, Value] = {id(p): formal for p, formal in zip(self._arguments, formals, strict=True)}
        token = self._token
        for node in self._inner:
            node.operands = [
                token if isinstance(v, Constant) and isinstance(v.abstract, MonadType) else known.get(id(v), v)
                for v in node.operands
            ]
        output: Value = self._loss
        if loads:
            assert isinstance(output, Node)
            order = joined(self._reads())
            reads: Value = order[0] if len(order) == 1 else _bundle(order)
            after = _node("UpdateState", [token, reads], _U)
            variable = text_of(output).variable
            output = _node("Depend", [output, after], self._kind, variable=variable, side_effect_propagate=1)
        return Graph(name=self._name, parameters=formals, output=output, trail=list(self._inner))

    def _reads(self) -> list[list[Node]]:
        """Return the loads that each node of the forward pass reads first, in program order."""
        found: list[list[Node]] = []
        seen: set[int] = set()
        for node in self._graph.trail:
            if id(node) not in self._ids or node.op_type in ("UpdateState", "Depend", *_BETWEEN):
                continue
            read = [load for load in map(_load_of, node.operands) if load is not None and id(load) not in seen]
            if read:
                found.append(list(dict.fromkeys(read)))
                seen |= {id(load) for load in read}
        return found

    def _calls(self, inner: Graph) -> tuple[list[Value], Value]:
        """Create the calls of the function and of its gradient; return the gradients, and the token after them."""
        first = Constant(value="U", abstract=_U)
        call = _node(f"call @{self._name}", [*self._arguments, first], self._kind)
        self._replaced[id(self._loss)] = call
        function = _node("J", [Constant(value=inner, abstract=_FUNCTION)], _FUNCTION, side_effect_propagate=1)
        token: Value = _node("UpdateState", [first, call], _U)
        pair = TupleType(items=(self._kind, _FUNCTION))
        forward = _node(CALL, [function, *self._arguments, token], pair)
        backward = _node("TupleGetItem", [forward, constant(1)], _FUNCTION)
        gradients = TupleType(items=(_ENVIRONMENT, *(argument.abstract for argument in self._arguments)))
        found = _node(CALL, [backward, self._seed], gradients)
        environment = _node("TupleGetItem", [found, constant(0)], _ENVIRONMENT)
        token = _node("UpdateState", [token, forward], _U)
        results: list[Value] = []
        reads: list[Node] = []
        for value in self._wanted:
            weight = value.operands[0] if isinstance(value, Node) and value.op_type == "Load" else value
            kind = value.abstract
            if isinstance(weight, Parameter) and weight.is_weight:
                read = _node("Load", [weight, token], kind)
                reads.append(read)
                zeros = _node("ZerosLike", [read], kind)
                results.append(_node("EnvironGet", [environment, _node("RefToEmbed", [weight], _KEY), zeros], kind))
            else:
                place = next((at for at, one in enumerate(self._arguments) if one is weight), 0)
                results.append(_node("TupleGetItem", [found, constant(1 + place)], kind))
        if reads:
            order = joined([[read] for read in reads])
            token = _node("UpdateState", [token, order[0] if len(order) == 1 else _bundle(order)], _U)
        return results, token


def _load_of(value: Value) -> Node | None:
    """Return the Load of a value, also if sharding has inserted operators after it."""
    while isinstance(value, Node) and value.op_type in _BETWEEN:
        value = value.operands[0]
    return value if isinstance(value, Node) and value.op_type == "Load" else None


def _bundle(values: Sequence[Value]) -> Node:
    return _node("MakeTuple", values, TupleType(items=tuple(value.abstract for value in values)))


def _plain(kind: Abstract) -> Abstract:
    return TensorType(dtype=kind.dtype, shape=kind.shape) if isinstance(kind, TensorType) else kind


def _node(
    op_type: str, operands: Sequence[Value], abstract: Abstract | None = None, variable: str = "", **attrs: int
) -> Node:
    text = NodeText(call_scope="Default", block_scope="Default", variable=variable, attrs=dict(attrs))
    return Node(op_type=op_type, operands=list(operands), abstract=abstract or NoneType(), scope="Default", text=text)
