"""Side effects in order: Load, UpdateState and Depend as the vendor's compiler leaves them.

Auto monad gives each reader of a weight a Load and each Load and effect an UpdateState, one chain a function; the
optimizer then joins the Loads that follow each other on one UpdateState. [source auto_monad.cc,
updatestate_eliminate.cc]
What a later pass does to the whole chain stands in `loads` and `enforce`.
"""

from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass, field

from dumpsim.core.abstract import MonadType, TensorType, TupleType
from dumpsim.graph.effects import has_effect, written_weights
from dumpsim.graph.graph import Constant, Node, Parameter, Value, text_of
from dumpsim.graph.mindspore.funcgraph import FuncGraph
from dumpsim.graph.mindspore.functions import FuncForm
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
    def __init__(self, function: FuncGraph, find: Callable[[str], OpDef], calls: Container[int]) -> None:
        self.function = function
        self.find = find
        self.calls = calls  # ids of the calls with effects
        self.token: Value = Constant(value="U", abstract=_U)  # stands for the formal parameter, too
        self.loads: dict[int, Node] = {}  # live load of each weight
        self.taken: set[int] = set()  # weights that effects take as they are
        self.reads = _Reads()
        self.new: list[Node] = []
        self.is_inner = False
        self.zeros = False  # the gradients' zeros read their weights once more; all such Loads are dead in the end

    def weave(self, *, takes_token: bool) -> None:
        function = self.function
        nodes = function.trail
        effects = [node for node in nodes if id(node) in self.calls or has_effect(node, self.find)]
        if self._is_plain_call(effects):
            effects[0].operands.append(self.token)
            return
        last = effects[-1] if effects else None
        first = next((at for at, node in enumerate(nodes) if is_gradient(node)), -1)
        for at, node in enumerate(nodes):
            self.is_inner = at < first
            if at == first:
                self.zeros = function.differentiates_weights
            if id(node) in self.calls:
                self._read(node)
                self._collect()
                self.loads.clear()
                self._effect(node)
            elif has_effect(node, self.find):
                self._collect()
                for weight in written_weights(node, self.find):
                    self.loads.pop(id(weight), None)
                self._effect(node)
            else:
                self._read(node)
                self.new.append(node)
        output = function.output
        if isinstance(output, Node) and all(output is not node for node in self.new):
            self._read(output)
        self._finish(last)
        if takes_token and isinstance(self.token, Constant) and self._computes(function.output):
            self._tie(NodeText())  # [observed 2.10]
        function.trail = self.new

    def _computes(self, output: Value) -> bool:
        """Whether a result is computed in the function; what is only handed on needs no tie."""
        own = output.operands if isinstance(output, Node) and output.op_type == "MakeTuple" else [output]
        return any(value is node for value in own for node in self.new)

    def _is_plain_call(self, effects: Sequence[Node]) -> bool:
        """Whether the only effect of the function is a call that gives its result. [source auto_monad.cc]"""
        reads = [n for n in self.function.trail if n not in effects and _weights(n)]
        return len(effects) == 1 and not reads and self.function.output is effects[0] and id(effects[0]) in self.calls

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
        output = self.function.output
        if isinstance(output, Parameter) and output.is_weight:  # a network that returns a weight as it is
            end = Node(op_type="Return", operands=[output], abstract=output.abstract)
            self._read(end)
            (output,) = end.operands
        if not self.function.is_tied and last is None:
            return
        owner = self.reads.last() if self.reads else last
        self._collect()
        if output is None or isinstance(self.token, Constant):
            return
        if isinstance(output, Node) and all(output is not node for node in self.new):
            self.new.append(output)
        self._tie(text_of(owner) if owner is not None else NodeText())

    def _tie(self, text: NodeText) -> None:
        """Let the result wait for the last token."""
        output = self.function.output
        called = isinstance(output, Node) and output.op_type == "Call"  # which has no variable
        tie = Node(
            op_type="Depend",
            operands=[output, self.token],
            abstract=output.abstract,
            scope=text.call_scope or "Default",
            text=NodeText(variable="" if called else text.call_variable, attrs={"side_effect_propagate": 1}),
        )
        self.function.output = tie
        self.new.append(tie)


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


def add_monads(form: FuncForm, find: Callable[[str], OpDef]) -> None:
    """Make reads of weights and side effects explicit, function by function."""
    calls, sides = _calls_with_effects(form, find)
    for function in form.functions:
        _Weaver(function, find, calls).weave(takes_token=id(function) in sides)


def _calls_with_effects(form: FuncForm, find: Callable[[str], OpDef]) -> tuple[set[int], set[int]]:
    """Ids of the calls of functions that read or write weights, and of the sides of branches that take a token.

    [source auto_monad.cc: SideEffectFinder] A branch in a side that takes a token takes one, too: fitted, of h_if.
    """
    own = {
        id(n) for f in form.functions for n in f.trail if has_effect(n, find) or (n.op_type != "Call" and _weights(n))
    }
    calls: set[int] = set()
    sides: set[int] = set()
    while True:
        before = len(calls), len(sides)
        busy = {id(f) for f in form.functions if any(id(n) in own or id(n) in calls for n in f.trail)}
        for function in form.functions:
            for node in function.trail:
                if node.op_type == "Call":
                    effect = any(id(called) in busy for called in form.called_by(node))
                    if id(node) in form.branches:
                        effect = effect or id(function) in sides
                        sides.update(id(side) for side in form.called_by(node) if effect)
                    if effect:
                        calls.add(id(node))
        if (len(calls), len(sides)) == before:
            return calls, sides


def _weights(node: Node) -> list[Parameter]:
    return [value for value in node.operands if isinstance(value, Parameter) and value.is_weight]
