"""Side effects in order: Load, UpdateState and Depend as the vendor's compiler leaves them.

Each weight that an ordinary operator reads comes through one Load; operators that write memory take the weights
themselves and a token. The token in front of an effect collects the loads since the last one (MakeTuple where there are
several), and what else has to read a weight before the effect overwrites it. [observed 2.10]
"""

from collections.abc import Callable, Sequence

from dumpsim.core.abstract import Abstract, MonadType, TensorType, TupleType
from dumpsim.graph.effects import has_effect, live_nodes, written_weights
from dumpsim.graph.graph import Constant, Graph, Node, Parameter, Value, control_of, text_of
from dumpsim.graph.nodetext import NodeText
from dumpsim.ops.opdef import OpDef

__all__ = ["add_monads", "merged"]

_U = MonadType(kind="U")


class _Weaver:
    def __init__(self, graph: Graph, find: Callable[[str], OpDef]) -> None:
        self.graph = graph
        self.find = find
        self.token: Value = Constant(value="U", abstract=_U)
        self.loads: dict[int, Node] = {}  # live load of each weight
        self.pending: list[Node] = []  # loads since the last token
        self.readers: dict[int, list[Node]] = {}  # users of the load of each weight
        self.new: list[Node] = []

    def weave(self) -> Graph:
        nodes = live_nodes(self.graph, self.find)
        effects = [node for node in nodes if has_effect(node, self.find)]
        last = effects[-1] if effects else None
        for node in nodes:
            if node.blocks:
                self._control(node)
            if has_effect(node, self.find) and not node.blocks:
                self._effect(node)
            else:
                node.operands = [self._read(operand, node) for operand in node.operands]
                self.new.append(node)
        output = self.graph.output
        if isinstance(output, Node) and all(output is not node for node in self.new):
            output.operands = [self._read(operand, output) for operand in output.operands]
        self._finish(last)
        self.graph.trail = self.new
        return self.graph

    def _control(self, node: Node) -> None:
        """Weave the blocks of a control node; what they write is loaded anew behind it."""
        written = written_weights(node, self.find)
        for weight in written:
            self.loads.pop(id(weight), None)
            self.readers.pop(id(weight), None)
        if written:
            control_of(node).writes = True  # nothing that reads or writes memory may move in front of it
        for block in node.blocks:
            add_monads(block, self.find)

    def _read(self, operand: Value, user: Node) -> Value:
        if not isinstance(operand, Parameter) or not operand.is_weight:
            return operand
        load = self.loads.get(id(operand))
        if load is None:
            kind = TensorType(dtype=operand.abstract.dtype, shape=operand.abstract.shape)
            text = text_of(user)
            load = Node(
                op_type="Load",
                operands=[operand, self.token],
                abstract=kind,
                scope=text.block_scope or user.scope,
                text=NodeText(call_scope=text.call_scope, call_variable=text.call_variable),
            )
            self.loads[id(operand)] = load
            self.pending.append(load)
            self.new.append(load)
        if user.op_type != "MakeTuple":
            self.readers.setdefault(id(operand), []).append(user)
        return load

    def _effect(self, node: Node) -> None:
        self._collect(trains=True)
        written = written_weights(node, self.find)
        readers = [reader for weight in written for reader in self.readers.pop(id(weight), [])]
        if readers and isinstance(self.token, Node):
            self.token.operands.extend(r for r in readers if all(r is not o for o in self.token.operands))
        for weight in written:
            self.loads.pop(id(weight), None)
        node.operands.append(self.token)
        self.new.append(node)
        self._advance([node], text_of(node).block_scope or node.scope)

    def _collect(self, *, trains: bool) -> None:
        """Let the token stand behind the loads since the last one."""
        if not self.pending:
            return
        loads, self.pending = self.pending, []
        scope = "Default" if trains else loads[-1].scope
        if len(loads) == 1:
            self._advance(loads, scope)
            return
        items = merged(loads)
        if trains:
            items.reverse()
        abstract = TupleType(items=tuple(item.abstract for item in items))
        bundle = Node(op_type="MakeTuple", operands=list(items), abstract=abstract, scope=scope)
        self.new.append(bundle)
        self._advance([bundle], scope)

    def _advance(self, after: Sequence[Node], scope: str) -> None:
        state = Node(op_type="UpdateState", operands=[self.token, *after], abstract=_U, scope=scope)
        self.token = state
        self.new.append(state)

    def _finish(self, last: Node | None) -> None:
        """Tie the output to the last token."""
        output = self.graph.output
        if isinstance(output, Parameter) and output.is_weight:  # a network that returns a weight as it is
            output = self._read(output, Node(op_type="Return", operands=[], abstract=output.abstract))
        if not self.graph.is_tied and last is None:
            return
        loads = list(self.pending)
        self._collect(trains=False)
        if output is None or isinstance(self.token, Constant):
            return
        if isinstance(output, Node) and all(output is not node for node in self.new):
            self.new.append(output)
        owner = loads[-1] if loads else last
        text = text_of(owner) if owner is not None else NodeText()
        abstract: Abstract = output.abstract
        self.graph.output = Node(
            op_type="Depend",
            operands=[output, self.token],
            abstract=abstract,
            scope=text.call_scope or "Default",
            text=NodeText(variable=text.call_variable, attrs={"side_effect_propagate": 1}),
        )
        self.new.append(self.graph.output)


def merged(loads: Sequence[Node]) -> list[Node]:
    """Loads in the order in which the compiler's pairwise merging leaves them: from the middle to both ends.

    Examples
    --------
    >>> merged([1, 2, 3, 4, 5])
    [4, 2, 1, 3, 5]
    """
    count = len(loads)
    left = loads[count - 2 :: -2] if count > 1 else ()
    return [*left, *loads[(count - 1) % 2 :: 2]]


def add_monads(graph: Graph, find: Callable[[str], OpDef]) -> Graph:
    """Make reads of weights and side effects explicit."""
    return _Weaver(graph, find).weave()
