"""Places TensorDump nodes in a split network: before a redistribution, after it, or both.

Redistributions and the communication after an operator are recognised by the instance names of their nodes.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from dumpsim.core.abstract import NoneType
from dumpsim.graph.builder import constant
from dumpsim.graph.custom_gradient import CUSTOM_GRADIENT
from dumpsim.graph.effects import skip_depends
from dumpsim.graph.gradient_control import everything
from dumpsim.graph.graph import Constant, Graph, Node, Parameter, Value, copied, text_of
from dumpsim.graph.nodetext import NodeText
from dumpsim.graph.parallel.inserted import is_communication

__all__ = ["GRADIENT_MODE", "Placed", "name_by_number", "place_tensordumps"]

DUMP = "TensorDump"
GRADIENT_MODE = "input_output"  # attribute of the custom-gradient nodes of DumpGradient
_REDISTRIBUTION = "redistribution_op_"
_BUNDLING = frozenset({"TupleGetItem", "MakeTuple"})  # inside a redistribution these have no name
_NO_OPERATOR = frozenset({DUMP, "Depend", "MakeTuple", "TupleGetItem", "UpdateState", "Return", "Gradient"})
_NUMBERED = "\0"  # stands for the number of a node until it is known


@dataclass(frozen=True, slots=True)
class _Edge:
    """An operand of an operator: `chain` has the nodes of a redistribution from `source` to it, in order."""

    source: Value
    chain: tuple[Node, ...]
    user: Node
    at: int
    graph: Graph  # the user's: a block, perhaps

    @property
    def last(self) -> Value:
        return self.chain[-1] if self.chain else self.source


@dataclass(frozen=True, slots=True)
class Placed:
    """A TensorDump that was created: the node, and the script's node that it replaces."""

    node: Node
    original: Node


def place_tensordumps(graph: Graph, *, generation: str, rank: int) -> list[Placed]:
    """Move the TensorDump nodes of a graph right after sharding, and create further ones, according to their modes.

    Parameters
    ----------
    graph : Graph
        With the markers of its outputs, and without monads; it is modified.
    generation : str
        ``A``, ``B`` or ``C``. [spec parallel 1.1]
    rank : int
        A part of names in generation A.

    Returns
    -------
    list of Placed
        The created nodes, in the order of creation. In generation A their file names lack the number of the node until
        `name_by_number` is called.
    """
    _place_gradient_dumps(graph, is_named=generation != "A")
    dumps = [node for one in _graphs(graph) for node in one.trail if node.op_type == DUMP]
    if not dumps:
        return []
    for one in _graphs(graph):
        _follow_outputs(one, [node for node in one.trail if node.op_type == DUMP])
    if generation == "C":
        return _by_consumer(graph, dumps)
    return _by_redistribution(graph, dumps, rank, is_numbered=generation == "A")


def name_by_number(placed: Sequence[Placed], number: Callable[[Node], str]) -> None:
    """Insert the printed names of nodes, ``CNode_64``, into their file names. [seed 000] [spec parallel 1.3]"""
    for one in placed:
        file = one.node.operands[0]
        assert isinstance(file, Constant)
        if _NUMBERED in file.value:
            one.node.operands[0] = constant(file.value.replace(_NUMBERED, number(one.node)))


# -- generations A and B: the first dump of an edge with a redistribution [spec parallel 1.3]


def _by_redistribution(graph: Graph, dumps: list[Node], rank: int, *, is_numbered: bool) -> list[Placed]:
    placed: list[Placed] = []
    removed: set[int] = set()
    for edge in _edges(graph):
        if not edge.chain:
            continue
        first = next((n for n in dumps if _is_of(n, edge.source) and id(n) not in removed), None)
        if first is None or (mode := _mode(first)) == "out":
            continue
        stem = _file(first).removesuffix(".npy")
        file = f"{stem}_{_NUMBERED}_{mode}_rank_{rank}" if is_numbered else f"{stem}_in.npy"
        placed.append(Placed(_insert(first, file, edge), first))
        if mode == "in":
            removed.add(id(first))
    _remove(graph, removed)
    if not is_numbered:
        _decorate([node for node in dumps if id(node) not in removed])
    return placed


# -- generation C: every consumer has its own dumps [spec parallel 1.4] [observed 2.10]


def _by_consumer(graph: Graph, dumps: list[Node]) -> list[Placed]:
    placed: list[Placed] = []
    moved: set[int] = set()
    for edge in _edges(graph):
        wanted = [node for node in dumps if _is_of(node, edge.source) and _mode(node) == "in"]
        # quirk: a dump is not moved if the redistribution splits a tensor [observed 2.10]
        if not wanted or any(node.op_type in ("Split", "Concat") for node in edge.chain):
            continue
        # quirk: the first one, then the others in reverse order [observed 2.10]
        for node in (wanted[0], *reversed(wanted[1:])):
            made = _insert(node, _file(node).removesuffix(".npy") + "_in.npy", edge)
            placed.append(Placed(made, node))
            moved.add(id(node))
    _remove(graph, moved)
    _decorate([node for node in dumps if id(node) not in moved])
    for node in dumps:
        if _mode(node) == "out":
            node.operands[1] = _raw(node.operands[1])
    return placed


def _raw(value: Value) -> Value:
    """Return the operator's own result, before the communication after it; it may be a term of a sum."""
    while isinstance(value, Node) and is_communication(value):
        value = value.operands[0]
    return value


def _decorate(dumps: Sequence[Node]) -> None:
    """Add the mode to the names of dumps that are not moved, too."""
    for node in dumps:
        if _mode(node) == "in":
            node.operands[0] = constant(_file(node).removesuffix(".npy") + "_in.npy")


# -- dumps of gradients [observed 2.10]


def _place_gradient_dumps(graph: Graph, *, is_named: bool) -> None:
    """Move the nodes of DumpGradient: mode ``in`` to the operator's own result, ``out`` after the redistribution."""
    for node in [one for one in graph.trail if one.op_type == CUSTOM_GRADIENT and GRADIENT_MODE in one.attrs]:
        item = next(user for user in graph.trail if user.op_type == "TupleGetItem" and user.operands[0] is node)
        if node.attrs[GRADIENT_MODE] == "in":
            _hook_result(graph, node, item, is_named=is_named)
        else:
            _hook_operands(graph, node, item)


def _hook_result(graph: Graph, hook: Node, item: Node, *, is_named: bool) -> None:
    value = hook.operands[0]
    raw = _raw(value)
    rule = hook.attrs["rule"]
    for dump in [one for one in rule.trail if one.op_type == DUMP] if is_named and rule is not None else ():
        dump.operands[0] = constant(_file(dump).removesuffix(".npy") + "_in.npy")
    if raw is value:
        return
    _replace(graph, item, value)
    graph.trail = [node for node in graph.trail if node is not hook and node is not item]
    for user in graph.trail:  # the communication after the operator reads what the hook passes on
        if is_communication(user):
            user.operands = [item if operand is raw else operand for operand in user.operands]
    hook.operands = [raw, raw]
    assert isinstance(raw, Node)
    at = _index(graph.trail, raw) + 1
    graph.trail[at:at] = [hook, item]


def _hook_operands(graph: Graph, hook: Node, item: Node) -> None:
    edges = [edge for edge in _edges(graph) if edge.source is item]
    if not any(edge.chain for edge in edges):
        return
    value = hook.operands[0]
    _replace(graph, item, value)
    graph.trail = [node for node in graph.trail if node is not hook and node is not item]
    for number, edge in enumerate(edges):
        last = edge.last if edge.chain else value
        mine, part = hook, item
        if number:  # each redistributed operand has its own gradient
            rule = hook.attrs["rule"]
            mine = replace(hook, attrs={**hook.attrs, "rule": None if rule is None else copied(rule, {})})
            part = replace(item, operands=[mine, item.operands[1]])
        mine.operands = [last, last]
        edge.user.operands[edge.at] = part
        at = _index(graph.trail, last) + 1 if isinstance(last, Node) else _index(graph.trail, edge.user)
        graph.trail[at:at] = [mine, part]


def _replace(graph: Graph, old: Value, new: Value) -> None:
    for node in graph.trail:
        node.operands = [new if operand is old else operand for operand in node.operands]
    if graph.output is old:
        graph.output = new


# -- graphs


def _insert(original: Node, file: str, edge: _Edge) -> Node:
    """Insert a dump of an operand, for which the operator waits."""
    last, before = edge.last, edge.user.operands[edge.at]  # the operand waits for the dumps inserted before
    place = last if isinstance(last, Node) else edge.user
    text = text_of(original)
    made = Node(
        op_type=DUMP,
        operands=[constant(file), last],
        abstract=NoneType(),
        attrs=dict(original.attrs),
        scope=place.scope,
        definition=original.definition,
        text=NodeText(
            instance_name=f"{text.instance_name or ''}_new_generate",
            attrs={**text.attrs, "side_effect_hidden": True},
            given=text.given,
            call_scope=text_of(place).call_scope,
            block_scope=text_of(place).block_scope,
        ),
    )
    waits = Node(
        op_type="Depend",
        operands=[before, made],
        abstract=NoneType(),
        scope=place.scope,
        text=NodeText(
            attrs={"side_effect_propagate": 1},
            call_scope=text_of(place).call_scope,
            block_scope=text_of(place).block_scope,
        ),
    )
    trail = edge.graph.trail
    at = _index(trail, before) + 1 if any(node is before for node in trail) else _index(trail, edge.user)
    trail[at:at] = [made, waits]
    edge.user.operands[edge.at] = waits
    return made


def _graphs(graph: Graph) -> Iterator[Graph]:
    """Yield a graph, and the blocks of its nodes."""
    yield graph
    for node in graph.trail:
        for block in node.blocks:
            yield from _graphs(block)


def _is_of(dump: Node, source: Value) -> bool:
    """Whether a dump saves a value, which may wait for the dump itself. [observed 2.10]"""
    return dump.operands[1] in (source, skip_depends(source))


def _remove(graph: Graph, removed: set[int]) -> None:
    """Remove dumps; nodes that wait for one wait for its operand instead."""
    for one in list(_graphs(graph)):
        gone = {id(node): node.operands[1] for node in one.trail if id(node) in removed}
        one.trail = [node for node in one.trail if id(node) not in removed]
        for node in one.trail:
            node.operands = [gone.get(id(value), value) for value in node.operands]


def _index(trail: Sequence[Node], value: Value) -> int:
    return next(at for at, node in enumerate(trail) if node is value)


def _edges(graph: Graph) -> list[_Edge]:
    """Return the operands of all operators, sorted by the position of their source, then of the operator."""
    place = {id(node): at for at, node in enumerate(everything(graph.trail))}
    found = [edge for one in _graphs(graph) for edge in _edges_of(one)]
    return sorted(found, key=lambda edge: place.get(id(edge.source), -1))


def _edges_of(graph: Graph) -> list[_Edge]:
    operators = [node for node in graph.trail if node.op_type not in _NO_OPERATOR]
    bundles = {id(value) for node in operators for value in node.operands}  # tuples that operators take
    found = []
    for user in graph.trail:
        if user.blocks:
            continue
        is_bundle = user.op_type == "MakeTuple" and id(user) in bundles
        if (user.op_type in _NO_OPERATOR and not is_bundle) or user.op_type in ("_VirtualOutput", CUSTOM_GRADIENT):
            continue
        if _instance(user).startswith(_REDISTRIBUTION) or is_communication(user):
            continue
        for at, value in enumerate(user.operands):
            source, chain = _traced(value)
            # constants are cut at compile time; operator and dump have separate reads of a weight [observed 2.10]
            if not isinstance(source, Constant) and not (isinstance(source, Parameter) and source.is_weight):
                found.append(_Edge(source, chain, user, at, graph))
    return found


def _traced(value: Value) -> tuple[Value, tuple[Node, ...]]:
    """Return the source of a redistribution, and its nodes along one path."""
    chain: list[Node] = []
    pending: list[Node] = []  # bundling nodes, which belong to the redistribution if one of its nodes precedes them
    while isinstance(value, Node):
        if _instance(value).startswith(_REDISTRIBUTION):
            chain += [*pending, value]
            pending.clear()
        elif value.op_type in _BUNDLING and chain:
            pending.append(value)
        else:
            break
        value = value.operands[0]
    if pending:
        value = pending[0]
    return value, tuple(reversed(chain))


def _follow_outputs(graph: Graph, dumps: Sequence[Node]) -> None:
    """Move dumps of a result after its mark, where it is whole if every rank returns all of it. [1.4 (c)]"""
    for marker in [node for node in graph.trail if node.op_type == "_VirtualOutput"]:
        source, _ = _traced(marker.operands[0])
        mine = [node for node in dumps if node.operands[1] is source]
        if not mine:
            continue
        for node in mine:
            node.operands[1] = marker
        graph.trail = [node for node in graph.trail if node not in mine]
        at = _index(graph.trail, marker) + 1
        graph.trail[at:at] = mine


def _instance(node: Node) -> str:
    return (node.text.instance_name or "") if node.text is not None else ""


def _mode(dump: Node) -> str:
    mode: str = dump.attrs.get("input_output", "out")
    return mode


def _file(dump: Node) -> str:
    file = dump.operands[0]
    assert isinstance(file, Constant)
    name: str = file.value
    return name
