"""Gradients of loops whose bodies are straight lines.

What follows the loop is a function that the last round calls, so its gradient comes first and is a block of its own;
the loop's rounds take over what it gives, one after the other. [source dfunctor.cc; observed 2.10]
"""

from collections.abc import Iterator, Sequence
from typing import Any

from dumpsim.core.abstract import TupleType
from dumpsim.core.errors import UnsupportedError
from dumpsim.graph.gradient_builder import ControlBuilder, Parts
from dumpsim.graph.gradient_control import (
    Gradients,
    Reverse,
    active_variables,
    argument_of,
    bundle_of,
    is_float,
    is_straight,
    keep_for,
    nodes_of_block,
    or_zeros,
    outer_of,
    plain,
    seeded,
)
from dumpsim.graph.graph import Graph, Node, Value, control_of, uses

__all__ = ["first_loop", "loop_gradients"]


def first_loop(order: Sequence[Node]) -> int | None:
    """The place of the first such loop."""
    return next((at for at, node in enumerate(order) if is_straight(node)), None)


def loop_gradients(
    node: Node,
    rest: Sequence[Node],
    output: Value,
    sens: Any,
    needed: set[int],
    builder: ControlBuilder,
    reverse: Reverse,
) -> Gradients:
    """Gradients of the values that a loop and what follows it use.

    Parameters
    ----------
    node : Node
        The loop.
    rest : sequence of Node
        What follows it.
    output : Value
        What is differentiated.
    sens : symbol or Parts
        The gradient by it.
    needed : set of int
        Ids of the values whose gradients are asked for.
    builder : ControlBuilder
    reverse : callable

    Raises
    ------
    UnsupportedError
        For a further gradient of a loop.
    """
    body = node.blocks[1]
    needed = needed | _all_used([*rest, node], node)
    parts = [one for one in rest if one.op_type == "TupleGetItem" and one.operands[0] is node]
    later = _used(rest, node, needed)
    seeds: list[Value] = []
    with builder.block("after") as after, builder.formal([*later, node, *parts]):
        found = reverse(output, _formals(after, output, sens, builder, seeds), [node, *later], rest)
    if control_of(node).unwinds:
        raise UnsupportedError("several gradients of one loop on tensors are not emulated", code="DS-GRD-002")
    of_variables = found[0].items if isinstance(found[0], Parts) else [None] * len(node.operands)
    outer = list({id(value): value for value in (*outer_of(node, needed), *later)}.values())
    of_later = {id(value): gradient for value, gradient in zip(later, found[1:], strict=True)}
    nodes = nodes_of_block(body)
    assert isinstance(body.output, Node)
    outputs = body.output.operands[: len(node.operands)]
    active = active_variables(node, of_variables, needed, nodes, outputs, [id(value) for value in outer])
    variables = [body.parameters[at] for at in active]
    with builder.block("unwind") as turn, builder.formal([*variables, *outer]):
        arrived = [argument_of(turn, variable.abstract) for variable in variables]
        sums = [argument_of(turn, value.abstract) for value in outer]
        given = [arrived[active.index(at)] if at in active else None for at in range(len(node.operands))]
        inner = reverse(*seeded(body, given), [*variables, *outer], nodes)
        passed = [or_zeros(builder, gradient, value) for gradient, value in zip(inner, variables, strict=False)]
        totals: list[Value] = []
        for value, total, own in zip(outer, sums, inner[len(active) :], strict=True):
            totals.append(total if own is None else builder.value(builder.total((own, total), value)))
    kept = [
        at
        for at, value in enumerate(outer)
        if of_later.get(id(value)) is not None or inner[len(active) + at] is not None
    ]
    outer = [outer[at] for at in kept]
    turn.parameters = [*arrived, *(sums[at] for at in kept)]
    turn.output = bundle_of([*passed, *(totals[at] for at in kept)])
    first = [or_zeros(builder, of_variables[at], body.parameters[at]) for at in active]
    after.output = bundle_of([*first, *(or_zeros(builder, of_later.get(id(value)), value) for value in outer)])
    targets = [*(node.operands[at] for at in active), *outer]
    backward = Node(
        op_type="Unwind",
        operands=[node, *seeds, *_leaves(output), *targets],
        abstract=TupleType(items=tuple(plain(parameter.abstract) for parameter in turn.parameters)),
        blocks=(turn, after),
    )
    keep_for(node, backward)
    control_of(backward).kept = set(active)
    control_of(node).is_differentiated = True
    builder.add(backward)
    return [(target, builder.item(backward, at)) for at, target in enumerate(targets)]


def _all_used(nodes: Sequence[Node], loop: Node) -> set[int]:
    """Ids of what a loop and what follows it use of the code before.

    The gradients by all of it go from round to round: only of what no round hands on is the compiler sure that nobody
    takes it. [observed 2.10]
    """
    inside = {id(node) for node in nodes} | {id(loop)}
    used = [value for node in nodes for value in (uses(node) if node.blocks else node.operands)]
    return {id(value) for value in used if id(value) not in inside and is_float(value)}


def _used(rest: Sequence[Node], loop: Node, needed: set[int]) -> list[Value]:
    """What the nodes behind a loop use of those before it."""
    inside = {id(node) for node in rest} | {id(loop)}
    used = [value for node in rest for value in (uses(node) if node.blocks else node.operands)]
    found = {id(v): v for v in used if id(v) in needed and id(v) not in inside and is_float(v)}
    return list(found.values())


def _formals(graph: Graph, output: Value, sens: Any, builder: ControlBuilder, seeds: list[Value]) -> Any:
    """Parameters for the gradients of the outputs."""
    if sens is None:
        return None
    if isinstance(sens, Parts):
        assert isinstance(output, Node)
        items = [_formals(graph, v, s, builder, seeds) for v, s in zip(output.operands, sens.items, strict=True)]
        return Parts(abstract=sens.abstract, items=tuple(items))
    seeds.append(builder.value(sens))
    return argument_of(graph, output.abstract)


def _leaves(output: Value) -> Iterator[Value]:
    if isinstance(output, Node) and output.op_type == "MakeTuple":
        for operand in output.operands:
            yield from _leaves(operand)
    else:
        yield output
