"""Side effects in order: Load, UpdateState and Depend as the vendor's compiler leaves them.

Auto monad gives each reader of a weight a Load and each Load and effect an UpdateState, one chain a function; the
optimizer then joins the Loads that follow each other on one UpdateState. [source auto_monad.cc,
updatestate_eliminate.cc]
What a later pass does to the whole chain stands in `loads` and `enforce`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from dumpsim.core.abstract import Abstract, MonadType, TensorType, TupleType
from dumpsim.graph.effects import has_effect, live_nodes, written_weights
from dumpsim.graph.graph import Constant, Graph, Node, Parameter, Value, control_of, text_of
from dumpsim.graph.nodetext import NodeText
from dumpsim.ops.opdef import OpDef

__all__ = ["add_monads", "is_gradient", "joined"]

_U = MonadType(kind="U")
_ONE_READER = frozenset({"LayerNorm"})  # its cell casts each weight first: the Cast reads, which then goes


def is_gradient(node: Node) -> bool:
    """Whether the node comes from a gradient."""
    return node.scope.startswith("Gradients/")


@dataclass(slots=True)
class _Reads:
    """The Loads since the last effect: what each node reads at once, in the order of the program."""

    inner: list[list[Node]] = field(default_factory=list)  # in the function that is differentiated
    outer: list[list[Node]] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.inner or self.outer)

    def last(self) -> Node:
        return (self.outer or self.inner)[-1][-1]


class _Weaver:
    def __init__(self, graph: Graph, find: Callable[[str], OpDef]) -> None:
        self.graph = graph
        self.find = find
        self.token: Value = Constant(value="U", abstract=_U)
        self.loads: dict[int, Node] = {}  # live load of each weight
        self.taken: set[int] = set()  # weights that effects take as they are
        self.reads = _Reads()
        self.new: list[Node] = []
        self.is_inner = False
        self.zeros = False  # the gradients' zeros read their weights once more; all such Loads are dead in the end

    def weave(self) -> Graph:
        nodes = live_nodes(self.graph, self.find)
        effects = [node for node in nodes if has_effect(node, self.find)]
        last = effects[-1] if effects else None
        first = next((at for at, node in enumerate(nodes) if is_gradient(node)), -1)
        for at, node in enumerate(nodes):
            self.is_inner = at < first
            if at == first:
                self.zeros = self.graph.differentiates_weights
            if node.blocks:
                self._control(node)
            if has_effect(node, self.find) and not node.blocks:
                self._effect(node)
            else:
                self._read(node)
                self.new.append(node)
        output = self.graph.output
        if isinstance(output, Node) and all(output is not node for node in self.new):
            self._read(output)
        self._finish(last)
        self.graph.trail = self.new
        return self.graph

    def _control(self, node: Node) -> None:
        """Weave the blocks of a control node; what they write is loaded anew after it."""
        written = written_weights(node, self.find)
        for weight in written:
            self.loads.pop(id(weight), None)
        if written:
            control_of(node).writes = True  # nothing that reads or writes memory may move in front of it
        for block in node.blocks:
            add_monads(block, self.find)

    def _read(self, user: Node) -> None:
        """Give a node the Loads of the weights that it reads. [source auto_monad.cc: InsertLoads]"""
        read: list[Node] = []
        for at, operand in enumerate(user.operands):
            if isinstance(operand, Parameter) and operand.is_weight:
                known = id(operand) in self.loads
                if is_gradient(user) and not known and id(operand) in self.taken:
                    continue  # the gradient of what took the weight itself does so, too
                load = user.operands[at] = self._load(operand, user)
                if all(load is not other for other in read) and not (is_gradient(user) and known):
                    read.append(load)
        if not read:
            return
        into = self.reads.inner if self.is_inner else self.reads.outer
        into += [[load] for load in read] if user.op_type in _ONE_READER else [read]

    def _load(self, weight: Parameter, user: Node) -> Node:
        load = self.loads.get(id(weight))
        if load is None:
            text = text_of(user)
            load = Node(
                op_type="Load",
                operands=[weight, self.token],
                abstract=TensorType(dtype=weight.abstract.dtype, shape=weight.abstract.shape),
                scope=text.block_scope or user.scope,
                text=NodeText(call_scope=text.call_scope, call_variable=text.call_variable),
            )
            self.loads[id(weight)] = load
            self.new.append(load)
        return load

    def _effect(self, node: Node) -> None:
        self._collect()
        for weight in written_weights(node, self.find):
            self.loads.pop(id(weight), None)
        self.taken |= {id(operand) for operand in node.operands}
        node.operands.append(self.token)
        self.new.append(node)
        self._advance(node, text_of(node).block_scope or node.scope)

    def _collect(self) -> None:
        """Let the token depend on the Loads since the last one."""
        reads, self.reads = self.reads, _Reads()
        zeros, self.zeros = self.zeros and not self.is_inner, self.zeros and self.is_inner
        if not reads:
            return
        items = joined(reads.inner or reads.outer)
        if reads.inner and (zeros or reads.outer):  # the outer function's own Loads join the inner ones a round later
            items = _once([*reversed(items), *reversed(joined(reads.outer))])
        scope = "Default" if zeros and not reads.outer else reads.last().scope
        if len(items) == 1:
            self._advance(items[0], scope)
            return
        abstract = TupleType(items=tuple(item.abstract for item in items))
        bundle = Node(op_type="MakeTuple", operands=list(items), abstract=abstract, scope=scope)
        self.new.append(bundle)
        self._advance(bundle, scope)

    def _advance(self, after: Node, scope: str) -> None:
        state = Node(op_type="UpdateState", operands=[self.token, after], abstract=_U, scope=scope)
        self.token = state
        self.new.append(state)

    def _finish(self, last: Node | None) -> None:
        """Tie the output to the last token. [source auto_monad.cc: AttachMonadToOutput]"""
        output = self.graph.output
        if isinstance(output, Parameter) and output.is_weight:  # a network that returns a weight as it is
            end = Node(op_type="Return", operands=[output], abstract=output.abstract)
            self._read(end)
            (output,) = end.operands
        if not self.graph.is_tied and last is None:
            return
        owner = self.reads.last() if self.reads else last
        self._collect()
        if output is None or isinstance(self.token, Constant):
            return
        if isinstance(output, Node) and all(output is not node for node in self.new):
            self.new.append(output)
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


def _once(loads: Sequence[Node]) -> list[Node]:
    """Without repetitions; the first stays."""
    found: list[Node] = []
    for load in loads:
        if all(load is not other for other in found):
            found.append(load)
    return found


def joined(reads: Sequence[Sequence[Node]]) -> list[Node]:
    """Loads in the order in which the optimizer leaves them: each further UpdateState turns those before it round.

    Parameters
    ----------
    reads : sequence of sequence of Node
        What each node reads at once. [source updatestate_eliminate.cc: EliminateUpdateStateForLoads]

    Examples
    --------
    >>> joined([["a"], ["b"], ["c"], ["d"]])
    ['c', 'a', 'b', 'd']
    >>> joined([["a"], ["b", "c"]])
    ['a', 'c', 'b']
    """
    order: list[Node] = []
    for read in reads:
        order = _once([*read, *order][::-1] if order else read)
    return order


def add_monads(graph: Graph, find: Callable[[str], OpDef]) -> Graph:
    """Make reads of weights and side effects explicit."""
    return _Weaver(graph, find).weave()
