"""The scopes of the gradients of nodes.

The vendor creates one backward graph for all primitives that are equal, including their attributes, in the scope of the
one that comes first in the differentiated graph's table of primitives. [spec vendor 3.4, 3.5] When a function is
inlined, its table is appended to that of its caller. The optimizer inlines breadth-first from the result, and queues
nodes again when a change affects them; `shared_scopes` repeats that walk on the calls of the capture.
[source optimizer/opt.cc] The same walk drops products with ones, so their primitives are not in the table.
[observed 2.10] The sides of a branch and the parts of a loop are functions with their own tables, which come after
those of the enclosing functions. [observed 2.10: r627_017]
"""

from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Union

from dumpsim.graph.custom_gradient import CUSTOM_GRADIENT
from dumpsim.graph.effects import STRUCTURAL
from dumpsim.graph.graph import Constant, Node, Parameter, Value, text_of
from dumpsim.graph.mindspore.calls import Call
from dumpsim.graph.mindspore.simplify import product_with_ones
from dumpsim.ops.opdef import OpDef

__all__ = ["compiled_scopes", "load_scopes", "shared_scopes"]

_STRUCTURAL = frozenset({"MakeTuple", "TupleGetItem", "Depend", "StopGradient", CUSTOM_GRADIENT})


def shared_scopes(
    call: Call, outputs: Sequence[Value], nodes: Iterable[Node], find: Callable[[str], OpDef]
) -> dict[int, str]:
    """Return for every node (by id) the scope of the first primitive that equals its own.

    Parameters
    ----------
    call : Call
        The function that is differentiated.
    outputs : sequence of Value
        Its results.
    nodes : iterable of Node
        The nodes of the forward pass.
    find : callable
        The definition of an operator type.
    """
    first: dict[Any, str] = {}
    nodes = list(nodes)
    keys = {id(node): _primitive(node, find) for node in nodes}
    joined = _Inliner(find).run(call, outputs)
    depth: dict[int, int] = {}
    for node in nodes:
        _note_depth(node, 1, depth)
    live = [node for node in joined if id(node) in keys or id(node) in depth]  # dead code is dropped before gradients
    joined = sorted(live, key=lambda node: depth.get(id(node), 0))
    loop = next((at for at, node in enumerate(nodes) if node.op_type == "While"), len(nodes))
    later = {id(node) for node in nodes[loop:]}  # the code after a loop is a function, too
    for node in sorted([*joined, *nodes], key=lambda node: id(node) in later):
        if node.op_type != "Mul" or product_with_ones(*node.operands) is None:  # dropped before the gradient is taken
            first.setdefault(keys.get(id(node)) or _primitive(node, find), _constant_scope(node))
    return {id(node): first.get(keys[id(node)], _constant_scope(node)) for node in nodes}


def _note_depth(node: Node, level: int, depth: dict[int, int]) -> None:
    """Record how many branches and loops enclose the nodes inside of a control node."""
    for block in node.blocks:
        for inner in block.trail:
            depth[id(inner)] = max(level, depth.get(id(inner), 0))
            _note_depth(inner, level + 1, depth)


def _constant_scope(node: Node) -> str:
    """Return the scope of the constant with the primitive of a node."""
    return (node.text.constant_scope if node.text is not None else None) or node.scope


def compiled_scopes(nodes: Sequence[Node], scope: str, find: Callable[[str], OpDef]) -> dict[int, str]:
    """Return for every node (by id) of a precompiled forward pass its own scope, or `scope` if it is not unique.

    [fitted: the backward graphs of all 12 recorded networks whose ``jit`` functions PYNATIVE differentiates]
    """
    keys = {id(node): _primitive(node, find) for node in nodes}
    count = Counter(keys.values())
    return {id(node): node.scope if count[keys[id(node)]] == 1 else scope for node in nodes}


def load_scopes(nodes: Iterable[Node]) -> dict[int, str]:
    """Return for every weight (by id) that the nodes read the scope of its load: that of the first reader's call."""
    found: dict[int, str] = {}
    for node in nodes:
        for operand in node.operands:
            if isinstance(operand, Parameter) and operand.is_weight:
                found.setdefault(id(operand), text_of(node).block_scope or node.scope)
    return found


def _primitive(node: Node, find: Callable[[str], OpDef]) -> tuple[Any, ...]:
    """Return the identity of a primitive: its name and all attributes; primitives defined by YAML have none.

    [spec vendor 3.4]
    """
    name = (node.text.primitive if node.text is not None else "") or node.op_type
    if node.op_type in STRUCTURAL or find(node.op_type).prim_func:
        return (name,)
    given = node.text.attrs if node.text is not None else {}
    return (name, _frozen(node.attrs), _frozen(given))


def _frozen(value: Any) -> Any:
    if isinstance(value, Mapping):
        return tuple(sorted((str(k), _frozen(v)) for k, v in value.items()))
    if isinstance(value, (tuple, list)):
        return tuple(_frozen(item) for item in value)
    return repr(value)


@dataclass(eq=False, slots=True, kw_only=True)
class _Item:
    """A node of a function graph: an operator, a call, or an ordering node (Load, UpdateState, Depend)."""

    node: Node | None = None
    call: Call | None = None
    wanted: tuple[Value, ...] = ()  # the used results of a call
    inputs: "list[_Input]" = field(default_factory=list)
    shared: "list[_Input]" = field(default_factory=list)  # used inside of a call without being an argument
    users: "list[_Item]" = field(default_factory=list)
    around: "_Scope | None" = None  # the scope of a call's arguments
    state: "_Item | None" = None
    seen: bool = False
    gone: "_Input" = None  # its replacement


_Input = Union["_Item", None]
_Scope = dict[int, _Input]


@dataclass(eq=False, slots=True, kw_only=True)
class _Body:
    """A function graph that is being built."""

    known: _Scope
    token: _Input  # of the side effects so far
    new: list[_Item] = field(default_factory=list)
    last: _Input = None  # the last effect
    steps: int = 0

    def made(self, inputs: Sequence[_Input]) -> _Item:
        """Create a node that only orders others."""
        item = _Item(inputs=list(inputs))
        self.new.append(item)
        return item

    def advance(self, effect: _Item) -> None:
        """Add an effect, which takes the token and is followed by a new one."""
        effect.inputs.append(self.token)
        self.token = self.made([self.token, effect])
        self.last = effect
        self.steps += 1

    def result(self, values: Sequence[_Input]) -> _Input:
        """Return one node for the results of a call."""
        return values[0] if len(values) == 1 else self.made(values)


class _Inliner:
    """The breadth-first walk that inlines calls; records operators in the order in which they join the graph."""

    def __init__(self, find: Callable[[str], OpDef]) -> None:
        self._find = find
        self._joined: list[Node] = []
        self._all: dict[int, list[Node]] = {}
        self._made: dict[int, frozenset[int]] = {}
        self._effects: dict[int, bool] = {}

    def run(self, call: Call, outputs: Sequence[Value]) -> list[Node]:
        """Return the operators of a function in the order in which they join its graph."""
        start = _Item()  # the token of the side effects
        body = self._body(call, outputs, {}, start)
        root = _Item(inputs=[body])
        if body is not None:
            body.users.append(root)
        queue: deque[_Input] = deque([root])
        while queue:
            item = queue.popleft()
            if item is None or item.seen or item.gone is not None:
                continue
            item.seen = True
            if item.call is None:
                queue.extend(_present(each) for each in item.inputs)
                continue
            assert item.around is not None
            result = _present(self._body(item.call, item.wanted, item.around, item.state))
            users, item.users, item.gone = item.users, [], result or _Item()
            queue.append(result)
            for user in users:
                user.inputs = [result if each is item else each for each in user.inputs]
                if result is not None:
                    result.users.append(user)
                user.seen = False
                queue.append(user)
        return self._joined

    def _body(self, call: Call, wanted: Sequence[Value], around: _Scope, state: _Input) -> _Input:
        """Build the graph of a call, and return its result."""
        body = _Body(known=dict(around), token=state)
        tail = call.tail
        before: _Item | None = None
        for index, entry in enumerate(call.entries):
            if isinstance(entry, Call):
                taken = tuple(wanted) if entry is tail else tuple(entry.values)
                taken = taken or self._taken(entry, call.entries[index + 1 :], wanted)
                item = _Item(call=entry, wanted=taken, around=body.known)
                passed = [id(value) for value in wanted] if entry is tail else []
                used = _distinct(body.known.get(identity) for identity in [*self._used(entry), *passed])
                if not (entry.is_branch or entry.is_rest):
                    item.inputs = used
                else:  # a part of its function: it shares the variables, also those set by a branch
                    item.shared = used
                    if entry.is_rest and not call.is_branch and before is not None:
                        item.inputs = [before]
                if self._has_effects(entry):
                    item.state = _present(body.token)
                    body.advance(item)
                if entry.values:  # from here on the variables have the branch's values
                    body.known = {**body.known, **{id(value): item for value in entry.values}}
                body.known.update(dict.fromkeys(self._makes(entry), item))
            else:
                item = self._operator(entry, body)
                body.known[id(entry)] = item
            body.new.append(item)
            before = item
        result = before if tail is not None else body.result([body.known.get(id(value)) for value in wanted])
        if call.is_held:
            result = body.made([result])
        # the last call needs no token after it
        if body.steps and not (body.steps == 1 and body.last is result):
            result = body.made([result, body.token])
        self._join(result, body.new)
        return result

    def _operator(self, node: Node, body: "_Body") -> _Item:
        """Create an operator, which reads weights through loads."""
        item = _Item(node=node)
        writes = self._writes(node)
        for operand in node.operands:
            if isinstance(operand, Parameter) and operand.is_weight and not writes:
                load = body.made([])
                body.advance(load)
                item.inputs.append(load)
            elif not isinstance(operand, Constant):
                item.inputs.append(body.known.get(id(operand)))
        if writes:
            body.advance(item)
        return item

    def _join(self, result: _Input, new: Sequence[_Item]) -> None:
        """Register the users of every node that a new body uses, breadth-first from the result."""
        fresh = {id(item) for item in new}
        queue: deque[_Input] = deque([result])
        while queue:
            item = queue.popleft()
            if item is None or id(item) not in fresh:
                continue
            fresh.remove(id(item))
            if item.node is not None:
                self._joined.append(item.node)
            item.inputs = [_present(each) for each in item.inputs]
            for each in item.inputs:
                if each is not None:
                    each.users.append(item)
                    queue.append(each)
            queue.extend(_present(each) for each in item.shared)

    # -- contents of a call

    def _writes(self, node: Node) -> bool:
        return not node.blocks and node.op_type not in _STRUCTURAL and self._find(node.op_type).side_effect is not None

    def _has_effects(self, call: Call) -> bool:
        found = self._effects.get(id(call))
        if found is None:
            found = self._effects[id(call)] = any(
                self._has_effects(entry)
                if isinstance(entry, Call)
                else self._writes(entry) or any(isinstance(o, Parameter) and o.is_weight for o in entry.operands)
                for entry in call.entries
            )
        return found

    def _nodes(self, call: Call) -> list[Node]:
        """Return the nodes of a call and of the calls in it."""
        found = self._all.get(id(call))
        if found is None:
            found = self._all[id(call)] = []
            for entry in call.entries:
                if isinstance(entry, Call):
                    found.extend(self._nodes(entry))
                else:
                    found.append(entry)
        return found

    def _makes(self, call: Call) -> frozenset[int]:
        """Return the ids of the nodes that a call creates."""
        found = self._made.get(id(call))
        if found is None:
            found = self._made[id(call)] = frozenset(id(node) for node in self._nodes(call))
        return found

    def _used(self, call: Call) -> list[int]:
        """Return the ids of the outer values that a call uses, in the order of use."""
        own = self._makes(call)
        found = {id(o): None for node in self._nodes(call) for o in node.operands if id(o) not in own}
        return list(found)

    def _taken(self, call: Call, later: Sequence[Node | Call], wanted: Sequence[Value]) -> tuple[Value, ...]:
        """Return the values that a call creates and later entries use."""
        own = self._makes(call)
        found: dict[int, Value] = {}
        for entry in later:
            for node in self._nodes(entry) if isinstance(entry, Call) else [entry]:
                for operand in node.operands:
                    if id(operand) in own:
                        found[id(operand)] = operand
        for value in wanted:
            if id(value) in own:
                found[id(value)] = value
        return tuple(found.values())


def _distinct(items: Iterable[_Input]) -> list[_Input]:
    return list({id(item): item for item in items if item is not None}.values())


def _present(item: _Input) -> _Input:
    """Return the current replacement of an item."""
    while item is not None and item.gone is not None:
        item = item.gone
    return item
