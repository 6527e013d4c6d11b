"""The order of side effects: Load, UpdateState and Depend nodes, as created by the vendor's compiler.

The vendor's auto-monad pass adds a Load for each reader of a weight, and an UpdateState for each Load and effect, in
one chain per function; the optimizer then joins consecutive Loads into one UpdateState. [source auto_monad.cc,
updatestate_eliminate.cc]
Later passes on the whole chain are in `loads` and `enforce`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from dumpsim.core.abstract import MonadType, TensorType, TupleType
from dumpsim.graph.effects import DEAD, has_effect, skip_depends, written_weights
from dumpsim.graph.graph import Constant, Node, Parameter, Value, text_of, topological
from dumpsim.graph.mindspore.funcform import FuncForm
from dumpsim.graph.mindspore.funcgraph import FuncGraph
from dumpsim.graph.nodetext import NodeText
from dumpsim.ops.opdef import OpDef

__all__ = ["add_monads", "is_gradient", "joined"]

_U = MonadType(kind="U")
_ONE_READER = frozenset({"LayerNorm"})  # its cell casts each weight first: the Cast is the reader, and is dropped later


def is_gradient(node: Node) -> bool:
    """Whether the node comes from a gradient."""
    return node.scope.startswith("Gradients/")


@dataclass(slots=True)
class _Reads:
    """The Loads since the last effect, grouped by the node that reads them, in program order."""

    inner: list[list[Node]] = field(default_factory=list)  # in the function that is differentiated
    outer: list[list[Node]] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.inner or self.outer)

    def last(self) -> Node:
        return (self.outer or self.inner)[-1][-1]


class _Weaver:
    def __init__(self, function: FuncGraph, find: Callable[[str], OpDef], effects: "_Effects") -> None:
        self.function = function
        self.find = find
        self.calls = effects.calls
        self.effects = effects
        self.token: Value = Constant(value="U", abstract=_U)  # also the formal parameter of a function
        self.loads: dict[int, Node] = {}  # live load of each weight
        self.before: dict[int, Node] = {}  # its last load, also before calls
        self.read_by: dict[tuple[int, int], Node] = {}  # the load of a weight by id of a reader and of the weight
        self.dead: dict[int, Node] = {}  # loads of unused code since the last effect, by id of the weight
        self.taken: set[int] = set()  # weights that effects take directly
        self.reads = _Reads()
        self.new: list[Node] = []
        self.is_inner = False
        self.orders_bundles = effects.orders_bundles
        self.bundle: Node | None = None  # the last Load of the last such tuple
        self.zeros = False  # zeros of gradients read their weights again; all these Loads are dead in the end

    def weave(self) -> None:
        function = self.function
        nodes = function.trail
        effects = [node for node in nodes if id(node) in self.calls or self._is_ordered(node)]
        if self._is_plain_call(effects):
            effects[0].operands.append(self.token)
            return
        last = effects[-1] if effects else None
        first = next((at for at, node in enumerate(nodes) if is_gradient(node)), -1)
        for at, node in enumerate(nodes):
            self.is_inner = at < first
            if at == first:
                self.zeros = function.differentiates_weights
            if node.op_type == DEAD:
                self._read_for_nobody(node)
            elif id(node) in self.calls:
                self._read(node)
                self._collect()
                self.loads.clear()
                self._effect(node)
            elif self._is_ordered(node):
                self._collect()
                for weight in written_weights(node, self.find):
                    self._forget(weight)
                self._effect(node)
            elif has_effect(node, self.find):  # ordered by the nodes that depend on it
                self.taken |= {id(operand) for operand in node.operands}
                self.new.append(node)
            elif self.orders_bundles and node.op_type == "MakeTuple" and self._reads(node):
                self._collect()
                self.loads.clear()
                self._read(node)
                self.bundle = self.reads.last()
                self.reads = _Reads()
                self.new.append(node)
                self._advance(node, text_of(node).block_scope or node.scope)
            else:
                self._read(node)
                self.new.append(node)
        self._finish(last)
        if function.kind != "root" and isinstance(self.token, Constant) and self.effects.is_tied(function):
            self._tie(NodeText())  # for effects that were dropped
        function.trail = self.new

    def _is_ordered(self, node: Node) -> bool:
        """Whether a node has a side effect that the chain of tokens orders."""
        tied = bool(node.operands) and isinstance(node.operands[-1].abstract, MonadType)
        return has_effect(node, self.find) and not tied

    def _is_plain_call(self, effects: Sequence[Node]) -> bool:
        """Whether the only effect of the function is the call that returns its result. [source auto_monad.cc]"""
        if len(effects) != 1 or self.function.output is not effects[0] or not self.effects.is_tail(effects[0]):
            return False
        others = [node for node in self.function.trail if node is not effects[0]]
        # the result waits for unused variables
        if any(node.op_type == DEAD and node.attrs["waits"] for node in others):
            return False
        return not any(map(self.effects.depends, [*others, *effects[0].operands]))

    def _read(self, user: Node) -> None:
        """Replace the weights that a node reads by Loads. [source auto_monad.cc: InsertLoads]"""
        read: list[Node] = []
        for at, operand in enumerate(user.operands):
            weight = skip_depends(operand)
            if user.op_type == "Depend" and at == 0:
                continue  # it passes on the weight itself
            if isinstance(weight, Parameter) and weight.is_weight:
                known = id(operand) in (self.before if is_gradient(user) else self.loads)
                if is_gradient(user) and not known and id(operand) in self.taken:
                    continue  # the gradient of an operator that took the weight itself does so, too
                load = user.operands[at] = self._load(operand, weight, user)
                self.read_by[id(user), id(operand)] = load
                if user.op_type != "Return":  # the result of a network waits for its Load
                    load = self.dead.get(id(operand), load)
                if all(load is not other for other in read) and not (is_gradient(user) and known):
                    read.append(load)
        if read:
            self._note(read, user)

    def _read_for_nobody(self, user: Node) -> None:
        """Record the Loads of an unused node; later Loads of the same weights then do not join the bundle.

        A bundle keeps the first Load of each weight; those without other users are dropped later.
        [source updatestate_eliminate.cc: EliminateUpdateStateForLoads; observed 2.10]
        """
        read = []
        for weight in user.attrs["weights"]:
            load = self.loads.get(id(weight)) or self.dead.get(id(weight))
            if load is None:
                load = self.dead[id(weight)] = Node(op_type="Load", operands=[weight], abstract=weight.abstract)
            read.append(load)
        if read:
            self._note(read, user)

    def _note(self, read: list[Node], user: Node) -> None:
        into = self.reads.inner if self.is_inner else self.reads.outer
        is_cell = user.op_type in _ONE_READER and "-LayerNorm" in user.scope.rpartition("/")[2]
        into += [[load] for load in read] if is_cell else [read]

    @staticmethod
    def _reads(node: Node) -> bool:
        return any(isinstance(v, Parameter) and v.is_weight for v in map(skip_depends, node.operands))

    def _forget(self, weight: Parameter) -> None:
        """Drop the cached Loads of a weight, because it is written."""
        for loads in (self.loads, self.before):
            for key in [key for key, load in loads.items() if skip_depends(load.operands[0]) is weight]:
                del loads[key]

    def _load(self, source: Value, weight: Parameter, user: Node) -> Node:
        load = self.loads.get(id(source))
        if is_gradient(user):  # the gradient of a reader takes the reader's Load
            load = self.read_by.get((_forward(user), id(source))) or load or self.before.get(id(source))
        if load is None:
            text = text_of(user)
            load = Node(
                op_type="Load",
                operands=[source, self.token],
                abstract=TensorType(dtype=weight.abstract.dtype, shape=weight.abstract.shape),
                scope=text.block_scope or user.scope,
                text=NodeText(call_scope=text.call_scope, call_variable=text.call_variable),
            )
            self.loads[id(source)] = self.before[id(source)] = load
            self.new.append(load)
        return load

    def _effect(self, node: Node) -> None:
        self.taken |= {id(operand) for operand in node.operands}
        node.operands.append(self.token)
        self.new.append(node)
        self._advance(node, text_of(node).block_scope or node.scope)

    def _collect(self) -> None:
        """Create a token that depends on the Loads since the last one."""
        reads, self.reads = self.reads, _Reads()
        zeros, self.zeros = self.zeros and not self.is_inner, self.zeros and self.is_inner
        if not reads:
            return
        items = joined(reads.inner or reads.outer)
        if reads.inner and (zeros or reads.outer):  # the outer Loads join the inner ones in a later round
            items = _once([*reversed(items), *reversed(joined(reads.outer))])
        items = [item for item in items if all(item is not load for load in self.dead.values())]
        self.dead.clear()
        if not items:
            return
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
        if isinstance(output, Parameter) and output.is_weight:  # a network that returns a weight unchanged
            end = Node(op_type="Return", operands=[output], abstract=output.abstract)
            self._read(end)
            (output,) = end.operands
        if not self.function.is_tied and last is None and self.bundle is None:
            return
        owner = self.reads.last() if self.reads else last or self.bundle
        self._collect()
        if output is None or isinstance(self.token, Constant):
            return
        self._tie(text_of(owner) if owner is not None else NodeText())

    def _tie(self, text: NodeText) -> None:
        """Make the result wait for the last token."""
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
    """Remove repetitions; the first occurrence stays."""
    found: list[Node] = []
    for load in loads:
        if all(load is not other for other in found):
            found.append(load)
    return found


def joined(reads: Sequence[Sequence[Node]]) -> list[Node]:
    """Return Loads in the optimizer's final order: each further UpdateState reverses those before it.

    Parameters
    ----------
    reads : sequence of sequence of Node
        The Loads that each node reads. [source updatestate_eliminate.cc: EliminateUpdateStateForLoads]

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


def add_monads(form: FuncForm, find: Callable[[str], OpDef], *, orders_bundles: bool = False) -> None:
    """Make reads of weights and side effects explicit, function by function.

    Parameters
    ----------
    form : FuncForm
    find : callable
        The definition of an operator type.
    orders_bundles : bool
        Whether a token follows each tuple with weights that an operator takes, as before Loads are merged.
        [observed 2.10]
    """
    effects = _Effects(form, find, orders_bundles=orders_bundles)
    woven: dict[int, _Weaver] = {}
    for function in form.functions:
        if function.forward is not None:
            _load_as(function, woven[id(function.forward)])
            continue
        weaver = woven[id(function)] = _Weaver(function, find, effects)
        weaver.weave()


def _load_as(gradient: FuncGraph, forward: _Weaver) -> None:
    """Replace weights in the gradient of a function by the function's Loads."""
    for node in gradient.trail:
        loads = (forward.read_by.get((_forward(node), id(value))) for value in node.operands)
        last = (forward.before.get(id(value), value) for value in node.operands)
        node.operands = [load or other for load, other in zip(loads, last, strict=True)]


def _forward(node: Node) -> int:
    """Return the id of the node whose gradient a node belongs to."""
    return id(node.text.forward) if node.text is not None else 0


class _Effects:
    """The functions that read or write weights, and their calls. [source auto_monad.cc: SideEffectFinder]

    For a function, unused code counts as well, and nodes of enclosing functions that its own nodes depend on, up to
    formal parameters; of these only a token remains in it, for which its result waits.

    Attributes
    ----------
    calls : set of int
        Ids of the calls of such functions.
    orders_bundles : bool
        See `add_monads`.
    """

    def __init__(self, form: FuncForm, find: Callable[[str], OpDef], *, orders_bundles: bool = False) -> None:
        self.orders_bundles = orders_bundles
        self.calls: set[int] = set()
        self._find = find
        self._joined = form.joined
        self._formals = form.formals
        self._gradients = {id(f) for _, functions in form.gradients.values() for f in functions}  # created later
        self._busy: set[int] = set()  # ids of functions
        self._known: dict[frozenset[object], dict[int, bool]] = {}
        while True:
            before = len(self.calls)
            self._known.clear()
            self._busy = {id(function) for function in form.functions if self._is_busy(function)}
            for node in (node for function in form.functions for node in function.trail if node.op_type == "Call"):
                if any(id(called) in self._busy for called in form.called_by(node)):
                    self.calls.add(id(node))
            if len(self.calls) == before:
                break
        self._tied = {id(f) for f in form.functions if id(f) in self._busy and not self._gives_call(f)}

    def is_tied(self, function: FuncGraph) -> bool:
        """Whether the result of a function waits for effects; not if it is the result of the only call with effects."""
        return id(function) in self._tied

    def _gives_call(self, function: FuncGraph) -> bool:
        """Whether a function only returns a value of an enclosing cell, and nothing else that it needs has effects."""
        given = function.output
        if function.trail or not isinstance(given, Node) or given.scope in (function.scope, "Default"):
            return False
        inside = given.scope
        pending: list[Value] = [given]
        while pending:
            value = pending.pop()
            if isinstance(value, Node) and (value.scope + "/").startswith(inside + "/"):
                pending += value.operands
            elif self.depends(value):
                return False
        return True

    def is_tail(self, node: Node) -> bool:
        """Whether a node is a call with effects that may end a function."""
        return id(node) in self.calls and id(node) not in self._joined

    def depends(self, value: Value, loops: frozenset[object] = frozenset()) -> bool:
        """Whether a value, or one that it is computed from, is an effect or reads a weight.

        Formal parameters of functions of `loops` do not count.
        """
        known = self._known.setdefault(loops, {})
        roots = [value] if id(value) not in known else []
        for node in topological(roots, lambda node: [v for v in self._own(node, loops) if id(v) not in known]):
            effect = self._is_effect(node) or any(known.get(id(v), False) for v in self._own(node, loops))
            known[id(node)] = effect and id(node) not in self._joined
        return known.get(id(value), False)

    def _own(self, node: Node, loops: frozenset[object]) -> list[Value]:
        """Return the operands of a node that the vendor's parser does not turn into formal parameters of `loops`.

        The result of a function depends on all of its arguments, too, since functions are not inlined so far.
        """
        formals = self._formals.get(id(node), {}) if loops else {}
        own = [value for at, value in enumerate(node.operands) if formals.get(at) not in loops]
        return own if node.text is None else [*own, *node.text.passed]

    def _is_busy(self, function: FuncGraph) -> bool:
        if function.forward is not None or (function.kind != "root" and not function.is_tied):
            return False
        if any(map(self._is_effect, function.trail)):
            return True
        given = () if function.gives_formal else (function.output,)
        return id(function) not in self._gradients and any(
            self.depends(value, function.loops) for value in [*function.trail, *given]
        )

    def _is_effect(self, node: Node) -> bool:
        if node.op_type == "Call":
            return id(node) in self.calls
        if node.op_type == DEAD:
            return bool(node.attrs["reads"])
        return has_effect(node, self._find) or bool(_weights(node))


def _weights(node: Node) -> list[Parameter]:
    return [value for value in node.operands if isinstance(value, Parameter) and value.is_weight]
