"""Gradients of control flow: a branch on the same condition, and the rounds of a loop in reverse order.

Values inside of a branch that its gradient needs become further outputs of the branch. Values of a loop's round that
its gradient needs are saved by the loop, round by round. The node ``Unwind`` runs the rounds backwards; it passes the
gradients of the loop's variables from round to round, and sums those of outer values that the loop uses.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from dumpsim.core.abstract import Abstract, TensorType, TupleType
from dumpsim.core.errors import UnsupportedError
from dumpsim.graph.builder import constant
from dumpsim.graph.gradient_builder import ControlBuilder, Parts
from dumpsim.graph.graph import Constant, Graph, Node, Parameter, Value, control_of, topological, uses

__all__ = [
    "Gradients",
    "Reverse",
    "active_variables",
    "argument_of",
    "below",
    "bundle_of",
    "control_gradients",
    "ends_of",
    "everything",
    "has_gradient",
    "in_parts",
    "is_child",
    "is_unwound",
    "keep_for",
    "nodes_of_block",
    "or_zeros",
    "outer_of",
    "plain",
    "reached_variables",
    "replace_inner",
    "seeded",
]

# gradients of the outputs of a block by the wanted values
Reverse = Callable[[Value, Any, Sequence[Value], Sequence[Node]], list[Any]]
Gradients = list[tuple[Value, Any]]
_PARTS = frozenset({"TupleGetItem", "MakeTuple", "Depend"})


def below(roots: Iterable[Value | None]) -> list[Node]:
    """Return the nodes that `roots` need, operands first; a control node comes after the outer values of its blocks."""
    return topological(roots, lambda node: uses(node) if node.blocks else node.operands)


def is_unwound(node: Node) -> bool:
    """Whether the functions of a loop return their gradients: at most one gradient is taken, and it is not nested."""
    return node.op_type == "While" and not control_of(node).is_inner and control_of(node).gradients <= 1


def in_parts(nodes: Sequence[Node], trail: Sequence[Node]) -> list[Node]:
    """Sort nodes at the loops of `is_unwound`: nodes before a loop in the program, the loop, nodes after it."""
    places = {id(node): at for at, node in enumerate(trail)}
    loops = [node for node in trail if is_unwound(node) and any(node is one for one in nodes)]
    found = list(nodes)
    for loop in reversed(loops):
        limit = places[id(loop)]
        found.sort(
            key=lambda node: (places.get(id(node), len(trail)) > limit) - (places.get(id(node), len(trail)) < limit)
        )
    return found


def everything(nodes: Iterable[Node]) -> Iterator[Node]:
    """Yield nodes, and the nodes of their blocks."""
    for node in nodes:
        for block in node.blocks:
            yield from everything(block.trail)
        yield node


def ends_of(turn: Graph) -> Iterator[tuple[str, Node]]:
    """Yield how the paths through a loop's body end, and a bundle of the loop's variables at that end."""
    branch = next((node for node in turn.trail if node.op_type == "If" and control_of(node).jumps), None)
    if branch is None:
        assert isinstance(turn.output, Node)
        yield "", turn.output
        return
    for block, how in zip(branch.blocks, control_of(branch).jumps, strict=True):
        if how:
            assert isinstance(block.output, Node)
            yield how, block.output
        else:
            yield from ends_of(block)


def is_child(rest: Sequence[Node], output: Value, before: Iterable[Node]) -> bool:
    """Whether the code after a branch in a round uses values of the enclosing function, which is then its parent.

    A recursive function is only inlined into calls by its parent. [source inline.h IsDirectParentCall]
    """
    own = {id(node) for node in before}
    bundle = output.operands if isinstance(output, Node) else []
    return any(id(value) in own for value in [*(value for node in rest for value in uses(node)), *bundle])


def control_gradients(
    node: Node, dout: Sequence[Any], needed: set[int], builder: ControlBuilder, reverse: Reverse
) -> Gradients:
    """Return the gradients of the values that a control node uses.

    Parameters
    ----------
    node : Node
        ``If`` or ``While``.
    dout : sequence
        Gradients of its outputs, None for unused ones.
    needed : set of int
        Ids of the values whose gradients are wanted.
    builder : ControlBuilder
        Receives the nodes.
    reverse : callable
        `gradient.reverse` for the nodes of a block.

    Raises
    ------
    UnsupportedError
        For the gradient of the gradient of a loop.
    """
    if node.op_type == "If":
        return _branch(node, dout, needed, builder, reverse)
    if node.op_type == "While":
        return _loop(node, dout, needed, builder, reverse)
    raise UnsupportedError("the gradient of the gradient of a loop on tensors is not emulated", code="DS-GRD-002")


def _branch(node: Node, dout: Sequence[Any], needed: set[int], builder: ControlBuilder, reverse: Reverse) -> Gradients:
    """Create the gradient of a branch: a branch on the same condition.

    Its operands are the condition, the branch, the gradients of the branch's outputs, and the values whose gradients it
    returns. Its sides take the gradients as parameters, since the vendor's compiler does not know them there; constant
    gradients are used directly. [observed 2.10: r611_037, r88_037]
    """
    drops = builder.drops_unused()
    asked = needed if drops else {id(value) for value in uses(node)}
    outer = outer_of(node, asked)
    # what a gradient of a branch takes, its sides know as parameters
    taken = node.operands[2 : 2 + len(node.blocks[0].parameters)]
    received = [at for at, value in enumerate(taken) if id(value) in asked and has_gradient(value)]
    wanted = [*outer, *(taken[at] for at in received)]
    assert isinstance(node.abstract, TupleType)
    blank = _blank(node, dout, builder)
    live = [at for at, gradient in enumerate(dout) if gradient is not None]
    sides = []
    for name, block in zip(("then", "else"), node.blocks, strict=True):
        own = [*outer, *(block.parameters[at] for at in received)]
        with builder.block(name) as graph, builder.formal(own):
            seeds: dict[int, Any] = {at: argument_of(graph, node.abstract.items[at]) for at in live}
            seeds |= {at: _passed(dout[at], builder) for at in live if isinstance(dout[at], Constant)} | blank
            found = reverse(*seeded(block, [seeds.get(at) for at in range(len(dout))]), own, nodes_of_block(block))
        sides.append((graph, found))
    places = [i for i in range(len(wanted)) if any(found[i] is not None for _, found in sides)]
    if not places:
        return _of_condition(node, needed, builder)
    for graph, found in sides:
        graph.output = bundle_of([or_zeros(builder, found[place], wanted[place]) for place in places])
    targets = [wanted[place] for place in places]
    backward = Node(
        op_type="If",
        # the branch itself runs even if its outputs are unused
        operands=[node.operands[0], node, *(builder.value(dout[at]) for at in live), *targets],
        abstract=TupleType(items=tuple(plain(wanted[place].abstract) for place in places)),
        blocks=tuple(graph for graph, _ in sides),
    )
    for at, (graph, _) in enumerate(sides):
        _give_out(node, at, graph, builder)
    builder.add(backward)
    if not drops:
        control_of(backward).kept = set(range(len(places)))
    control_of(node).backward, control_of(node).is_differentiated = backward, True
    found_by = [
        (wanted[place], builder.item(backward, i)) for i, place in enumerate(places) if id(wanted[place]) in needed
    ]
    return [*found_by, *_of_condition(node, needed, builder)]


def _passed(known: Constant, builder: ControlBuilder) -> Any:
    """Return a constant gradient as a side knows it: zeros that are passed stay in sums. [observed 2.10: r88_057]"""
    if isinstance(known.abstract, TensorType) and known.abstract.dtype.kind != "bool" and not np.any(known.value):
        return builder.late_zeros(plain(known.abstract), summed=True)
    return known


def _blank(node: Node, dout: Sequence[Any], builder: ControlBuilder) -> dict[int, Any]:
    """Return zeros as gradients of a branch's outputs that are unused but not dropped.

    A loop takes them, or a token takes the result of a call with effects. [observed 2.10: r88_037, r20261224_017]
    """
    kinds = {at: kind for at, kind in enumerate(_items(node)) if dout[at] is None}
    return {
        at: builder.late_zeros(kind, summed=True)
        for at, kind in kinds.items()
        if isinstance(kind, TensorType) and kind.dtype.kind == "float"
    }


def _of_condition(node: Node, needed: set[int], builder: ControlBuilder) -> Gradients:
    """Return the zero gradient of the condition, which is passed on to the comparison's operands. [observed 2.10]"""
    condition = node.operands[0]
    if not isinstance(condition, Node) or id(condition) not in needed:
        return []
    return [(condition, builder.late_zeros(condition.abstract))]


def _give_out(node: Node, side: int, backward: Graph, builder: ControlBuilder) -> None:
    """Make the values that the gradient of a branch uses further outputs of the branch."""
    block = node.blocks[side]

    def given(value: Value) -> Value:
        for at, other in enumerate(node.blocks):
            assert isinstance(other.output, Node)
            if other.results is None:
                other.results = len(other.output.operands)
            blank = constant(_zeros(value.abstract))
            other.output.operands.append(value if at == side else blank)
            items = (*_items(other.output), plain(value.abstract))
            other.output.abstract = TupleType(items=items)
        node.abstract = TupleType(items=items)
        place = constant(len(items) - 1)
        getter = Node(op_type="TupleGetItem", operands=[node, place], abstract=items[-1], scope=node.scope)
        builder.insert(getter, after=node)
        return getter

    replace_inner(backward, block, given, weights=True)


def _loop(node: Node, dout: Sequence[Any], needed: set[int], builder: ControlBuilder, reverse: Reverse) -> Gradients:
    body = node.blocks[1]
    for inner in everything(body.trail):
        if inner.op_type == "While":
            control_of(inner).is_inner = True
    count = len(node.operands)
    outer = outer_of(node, needed)
    nodes = nodes_of_block(body)
    assert isinstance(body.output, Node)
    outputs = body.output.operands[:count]
    active = active_variables(node, dout, needed, nodes, [outputs], [id(v) for v in outer])
    variables = [body.parameters[i] for i in active]
    with builder.block("unwind") as graph, builder.formal([*variables, *outer]):
        arrived = [_argument(graph, variable) for variable in variables]
        sums = [_argument(graph, value) for value in outer]
        seeds = [arrived[active.index(i)] if i in active else None for i in range(count)]
        found = reverse(*seeded(body, seeds), [*variables, *outer], nodes)
        passed = [or_zeros(builder, g, v) for g, v in zip(found, variables, strict=False)]
        used = [(v, s, g) for v, s, g in zip(outer, sums, found[len(active) :], strict=True) if g is not None]
        totals = [builder.total((s, g), v) for v, s, g in used]
    graph.parameters = [*arrived, *(s for _, s, _ in used)]
    graph.output = bundle_of([*passed, *totals])
    starts = [or_zeros(builder, dout[i], body.parameters[i]) for i in active]
    starts += [constant(_zeros(v.abstract)) for v, _, _ in used]
    backward = Node(
        op_type="Unwind",
        operands=[node, *map(builder.value, starts)],
        abstract=TupleType(items=tuple(plain(p.abstract) for p in graph.parameters)),
        blocks=(graph,),
    )
    keep_for(node, backward)
    builder.add(backward)
    targets = [*(node.operands[i] for i in active), *(v for v, _, _ in used)]
    return [(target, builder.item(backward, i)) for i, target in enumerate(targets)]


def active_variables(
    node: Node,
    dout: Sequence[Any],
    needed: set[int],
    nodes: Sequence[Node],
    ends: Sequence[Sequence[Value]],
    outer: list[int],
) -> list[int]:
    """Return the variables of a loop that carry a gradient: they depend on a wanted value, and the result on them.

    `ends` are the variables at the ends of a round.
    """
    parameters = node.blocks[1].parameters
    reached = reached_variables(node, needed, nodes, ends, outer)
    live = {i for i, gradient in enumerate(dout) if gradient is not None}
    while True:
        more = {
            i
            for i, p in enumerate(parameters)
            if i not in live and {id(outputs[j]) for outputs in ends for j in live} & _reached(nodes, [id(p)])
        }
        if not more:
            break
        live |= more
    return sorted(reached & live)


def reached_variables(
    node: Node, needed: set[int], nodes: Sequence[Node], ends: Sequence[Sequence[Value]], outer: list[int]
) -> set[int]:
    """Return the variables of a loop that depend on a wanted value; see `active_variables`."""
    parameters = node.blocks[1].parameters
    reached = {i for i, operand in enumerate(node.operands) if id(operand) in needed and has_gradient(operand)}
    while True:
        ids = _reached(nodes, [*outer, *(id(parameters[i]) for i in reached)])
        more = {i for outputs in ends for i, v in enumerate(outputs) if id(v) in ids and has_gradient(v)} - reached
        if not more:
            return reached
        reached |= more


def _reached(nodes: Sequence[Node], start: Iterable[int]) -> set[int]:
    """Return the ids of the nodes that depend on the values with the ids in `start`."""
    found = set(start)
    for node in nodes:
        if any(id(v) in found for v in (uses(node) if node.blocks else node.operands)):
            found.add(id(node))
    return found


def keep_for(node: Node, backward: Node) -> None:
    """Make a loop save, round by round, the values that its gradient uses."""
    block = node.blocks[1]
    graph = backward.blocks[0]
    output = block.output
    assert isinstance(output, Node)
    saved: list[int] = []

    def given(value: Value) -> Value:
        output.operands.append(value)
        output.abstract = TupleType(items=(*_items(output), plain(value.abstract)))
        saved.append(len(output.operands) - 1)
        abstract = plain(value.abstract)
        assert isinstance(abstract, TensorType)
        parameter = Parameter(name="", abstract=abstract)
        graph.parameters.append(parameter)
        return parameter

    replace_inner(graph, block, given)
    control_of(backward).saved = saved
    control_of(node).unwinds.append(backward)


# -- blocks


def nodes_of_block(block: Graph) -> list[Node]:
    """Return the nodes of a block that its output needs, and the output."""
    inside = {id(node) for node in block.trail} | {id(block.output)}
    return in_parts([node for node in below([block.output]) if id(node) in inside], block.trail)


def seeded(block: Graph, gradients: Sequence[Any]) -> tuple[Node, Any]:
    """Return the outputs of a block, as captured, and their gradients."""
    output = block.output
    assert isinstance(output, Node)
    assert isinstance(output.abstract, TupleType)
    count = len(output.operands)
    items = tuple(gradients[i] if i < len(gradients) else None for i in range(count))
    return output, Parts(abstract=output.abstract, items=items)


def outer_of(node: Node, needed: set[int]) -> list[Value]:
    """Return the outer values that the blocks of a node use and whose gradients are wanted."""
    used = uses(node)[len(node.operands) :]
    return list({id(v): v for v in used if id(v) in needed and has_gradient(v)}.values())


def replace_inner(
    backward: Graph,
    block: Graph,
    given: Callable[[Value], Value],
    *,
    weights: bool = False,
    whole_tuples: bool = False,
) -> None:
    """Replace values of the forward block, and with `weights` those that it reads, in its gradient by ``given(value)``.

    A tuple is replaced as a whole if `whole_tuples`, otherwise each of its parts that is used.
    """
    inside = {id(node) for node in block.trail} | {id(parameter) for parameter in block.parameters}
    if weights:
        inside |= {id(v) for n in block.trail for v in n.operands if isinstance(v, Parameter) and v.is_weight}
    if not whole_tuples:
        _hoist(backward, block, inside)
    known: dict[int, Value] = {}

    def new(value: Value) -> Value:
        if id(value) not in inside or (isinstance(value, Node) and value.blocks):  # a loop, as operand of Unwind
            return value
        if id(value) not in known:
            known[id(value)] = given(value)
        return known[id(value)]

    def walk(graph: Graph) -> None:
        for node in graph.trail:
            node.operands = [new(operand) for operand in node.operands]
            for inner in node.blocks:
                walk(inner)
        if isinstance(graph.output, Node):
            graph.output.operands = [new(operand) for operand in graph.output.operands]

    walk(backward)


def _hoist(backward: Graph, block: Graph, inside: set[int]) -> None:
    """Move the items of tuples to the block of the tuple, since a block can return tensors, but not tuples."""
    kept = []
    for node in backward.trail:
        for inner in node.blocks:
            _hoist(inner, block, inside)
        if node.op_type == "TupleGetItem" and id(node.operands[0]) in inside:
            block.trail.append(node)
            inside.add(id(node))
        else:
            kept.append(node)
    backward.trail = kept


def _argument(graph: Graph, value: Value) -> Parameter:
    return argument_of(graph, value.abstract)


def argument_of(graph: Graph, kind: Abstract) -> Parameter:
    abstract = plain(kind)
    assert isinstance(abstract, TensorType)
    parameter = Parameter(name="", abstract=abstract)
    graph.parameters.append(parameter)
    return parameter


def or_zeros(builder: ControlBuilder, gradient: Any, value: Value) -> Value:
    found: Value = builder.value(gradient) if gradient is not None else constant(_zeros(value.abstract))
    return found


def bundle_of(items: list[Value]) -> Node:
    return Node(op_type="MakeTuple", operands=items, abstract=TupleType(items=tuple(v.abstract for v in items)))


def _items(node: Node) -> tuple[Abstract, ...]:
    assert isinstance(node.abstract, TupleType)
    return node.abstract.items


def plain(abstract: Abstract) -> Abstract:
    """Return a type without the marks of a weight or a constant."""
    return replace(abstract, ref_key=None, constant=False) if isinstance(abstract, TensorType) else abstract


def _zeros(abstract: Abstract) -> "np.ndarray[Any, Any]":
    assert isinstance(abstract, TensorType)
    return np.zeros(abstract.shape, abstract.dtype.numpy)


def has_gradient(value: Value) -> bool:
    """Whether the gradient of a value passes through control flow: also that of whole numbers, but not of truths."""
    abstract = value.abstract
    return not isinstance(value, Constant) and not (isinstance(abstract, TensorType) and abstract.dtype.kind == "bool")
