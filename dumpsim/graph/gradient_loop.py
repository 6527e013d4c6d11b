"""Gradients of loops whose functions return their gradients.

The code after a loop is a function that the last round calls. So its gradient comes first, as a block of its own, and
its results pass through the gradients of the rounds. The code after a branch or a loop in a round is a function, too,
which calls the header: its gradient calls that of the header, and the gradient of the round calls its gradient.
[source dfunctor.cc; observed 2.10]
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from dumpsim.core.abstract import TensorType, TupleType
from dumpsim.core.errors import UnsupportedError
from dumpsim.graph.gradient_builder import ControlBuilder, Parts
from dumpsim.graph.gradient_control import (
    Gradients,
    Reverse,
    argument_of,
    below,
    bundle_of,
    has_gradient,
    is_child,
    is_unwound,
    or_zeros,
    outer_of,
    plain,
)
from dumpsim.graph.graph import Graph, Node, Parameter, Step, Value, control_of, reachable, uses

__all__ = ["first_loop", "loop_gradients"]

_CALLS = 2  # the gradient of the header calls that of the body, or of the code after the loop


def first_loop(order: Sequence[Node]) -> int | None:
    """Return the index of the first loop of `is_unwound`; None if there is none."""
    return next((at for at, node in enumerate(order) if is_unwound(node)), None)


def loop_gradients(
    node: Node,
    rest: Sequence[Node],
    output: Value,
    sens: Any,
    needed: set[int],
    builder: ControlBuilder,
    reverse: Reverse,
) -> Gradients:
    """Return the gradients of the values that a loop and the code after it use.

    Parameters
    ----------
    node : Node
        The loop.
    rest : sequence of Node
        The nodes after it.
    output : Value
        The value that is differentiated.
    sens : symbol or Parts
        Its incoming gradient.
    needed : set of int
        Ids of the values whose gradients are wanted.
    builder : ControlBuilder
    reverse : callable

    Raises
    ------
    UnsupportedError
        For a further gradient of a loop.
    """
    needed = needed | _all_used([*rest, node], node)
    parts = [one for one in rest if one.op_type == "TupleGetItem" and one.operands[0] is node]
    later = _used(rest, output, node, needed)
    seeds: list[Value] = []
    with builder.block("after", calls=_CALLS) as graph, builder.formal([*later, node, *parts]):
        found = reverse(output, _formals(graph, output, sens, builder, seeds), [node, *later], rest)
    if control_of(node).unwinds:
        raise UnsupportedError("several gradients of one loop on tensors are not emulated", code="DS-GRD-002")
    rounds = _Rounds(builder, reverse)
    after = _Made(graph=graph, wanted=[node, *later], found=found)
    loop = rounds.loop(node, after, needed, is_inlined=not any(one.blocks for one in rest))
    steps = rounds.finish((loop.body, after, loop.head), loop.outer)
    targets = [*(node.operands[at] for at in loop.active), *(v for v in loop.outer if id(v) not in rounds.dead)]
    backward = Node(
        op_type="Unwind",
        operands=[node, *seeds, *_leaves(output), *targets],
        abstract=TupleType(items=tuple(plain(value.abstract) for value in targets)),
        blocks=tuple(_graphs(steps)),
    )
    control_of(backward).kept = set(loop.active)
    control_of(backward).steps = steps
    control_of(node).unwinds.append(backward)
    control_of(node).is_differentiated = True
    builder.add(backward)
    return [(target, builder.item(backward, at)) for at, target in enumerate(targets)]


@dataclass(eq=False, slots=True, kw_only=True)
class _Made:
    """A step under construction, see `dumpsim.graph.graph.Step`.

    Attributes
    ----------
    graph : Graph
    given : list of Value
    arguments : list of Parameter
        The gradients of `given`.
    wanted : list of Value
        Values whose gradients the step returns; a loop stands for its variables.
    found : list
        The gradients of `wanted`, None for missing ones.
    split : Node or None
    inner : tuple of _Made
    """

    graph: Graph
    wanted: list[Value]
    found: list[Any]
    given: list[Value] = field(default_factory=list)
    arguments: list[Parameter] = field(default_factory=list)
    split: Node | None = None
    inner: "tuple[_Made, ...]" = ()


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class _Tail:
    """A loop whose header is called at the end of a round, and the values whose gradients the header's step returns.

    Attributes
    ----------
    node : Node
    active : list of int
        Its variables that carry a gradient.
    outer : list of Value
        Values of the surrounding code that the loop, and the code after it, use.
    unread : frozenset of int
        If ``break`` leaves the loop: indexes of the values that the code after the loop does not read.
    """

    node: Node
    active: list[int]
    outer: list[Value]
    unread: frozenset[int] = frozenset()

    @property
    def formals(self) -> list[Value]:
        """The values whose gradients the header's step returns."""
        return [*(self.node.blocks[1].parameters[at] for at in self.active), *self.outer]

    def arguments(self, values: Sequence[Value]) -> list[Value]:
        """Return the arguments of a call of the header, with `values` for the variables."""
        return [*(values[at] for at in self.active), *self.outer]

    def read(self, values: Sequence[Value]) -> list[Value]:
        """The arguments that have a gradient."""
        return [value for at, value in enumerate(self.arguments(values)) if at not in self.unread]


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class _Loop(_Tail):
    body: _Made
    head: _Made


class _Rounds:
    """Creates the steps of a loop and of the loops in its rounds.

    Attributes
    ----------
    dead : set of int
        Ids of outer values for which no step has a gradient; known after `finish`.
    """

    def __init__(self, builder: ControlBuilder, reverse: Reverse) -> None:
        self._builder = builder
        self._reverse = reverse
        self.dead: set[int] = set()

    def loop(self, node: Node, after: _Made, needed: set[int], *, is_inlined: bool) -> _Loop:
        """Create the steps of a loop, given that of the code after it, which ``break`` may inline."""
        whole, *later = after.wanted
        assert whole is node
        of_variables = after.found[0].items if isinstance(after.found[0], Parts) else [None] * len(node.operands)
        outer = _once([*outer_of(node, needed), *later])
        head, body = node.blocks
        # includes variables that are not read after the loop: their gradients are returned with the others
        active = [at for at, variable in enumerate(body.parameters) if has_gradient(variable)]
        tail = _Tail(node=node, active=active, outer=outer)
        by_later = {id(value): gradient for value, gradient in zip(later, after.found[1:], strict=True)}
        after.wanted = tail.formals
        after.found = [*(of_variables[at] for at in active), *(by_later.get(id(value)) for value in outer)]
        blank = [at for at, gradient in enumerate(after.found) if gradient is None]
        leaving = replace(tail, unread=frozenset(at for at in blank if is_inlined or at < len(active)))
        assert body.output is not None
        return _Loop(
            node=node,
            active=active,
            outer=outer,
            body=self._step(body.trail, body.output, tail, tail.formals, leaving),
            head=self._head(head, tail),
        )

    def _head(self, head: Graph, tail: _Tail) -> _Made:
        """Create the step of a header, to which the zero gradient of its condition belongs."""
        values = [*(head.parameters[at] for at in tail.active), *tail.outer]
        assert isinstance(head.output, Node)
        condition = head.output.operands[0] if head.output.op_type == "MakeTuple" else head.output
        made = self._made(head.trail, values, tail.formals, values, condition=condition)
        made.wanted = tail.formals
        return made

    def _step(self, trail: Sequence[Node], output: Value, tail: _Tail, wanted: list[Value], leaving: _Tail) -> _Made:
        """Create the step of nodes that call the header with the values in `output`; the last node may jump."""
        assert isinstance(output, Node)
        alive = reachable([output])
        nodes = [node for node in trail if id(node) in alive]
        at = next((at for at, node in enumerate(nodes) if _splits(nodes, at, output)), len(nodes))
        if at == len(nodes):
            return self._made(nodes, tail.arguments(output.operands), tail.formals, wanted, unread=tail.unread)
        split, rest = nodes[at], nodes[at + 1 :]
        if split.op_type == "While":
            later = _free(rest, output, tail)
            after = self._step(rest, output, tail, [split, *later], leaving)
            needed = {id(value) for value in uses(split) if has_gradient(value)}
            loop = self.loop(split, after, needed, is_inlined=False)
            made = self._made(nodes[:at], loop.arguments(split.operands), loop.formals, wanted)
            made.inner = loop.body, after, loop.head
        elif control_of(split).jumps:
            sides = list(zip(split.blocks, control_of(split).jumps, control_of(split).starts, strict=True))
            ends = [leaving if how == "break" else tail for _, how, _ in sides]
            free = _once(
                [v for (block, *_), end in zip(sides, ends, strict=True) for v in _free(block.trail, block.output, end)]
            )
            made = self._made(nodes[:at], free, free, wanted, condition=split.operands[0])
            made.inner = tuple(self._side(block, how, start, tail, free, leaving) for block, how, start in sides)
        else:
            parts = [node for node in rest if node.op_type == "TupleGetItem" and node.operands[0] is split]
            rest = [node for node in rest if all(node is not part for part in parts)]
            free = _free(rest, output, tail)
            made = self._made([*nodes[: at + 1], *parts], free, free, wanted)
            made.inner = (self._step(rest, output, tail, free, leaving),)
        made.split = split
        return made

    def _side(self, block: Graph, how: str, start: int, tail: _Tail, wanted: list[Value], leaving: _Tail) -> _Made:
        """Create the step of a side of a branch at the end of a round; the code after it is another function."""
        assert block.output is not None
        if how:
            return self._step(block.trail, block.output, leaving if how == "break" else tail, wanted, leaving)
        own, later = block.trail[:start], block.trail[start:]
        free = _free(later, block.output, tail)
        made = self._made(own, free, free, wanted)
        made.inner = (self._step(later, block.output, tail, free, leaving),)
        return made

    def _made(
        self,
        nodes: Sequence[Node],
        values: Sequence[Value],
        given: list[Value],
        wanted: list[Value],
        *,
        condition: Value | None = None,
        unread: frozenset[int] = frozenset(),
    ) -> _Made:
        bundle = bundle_of([*values] if condition is None else [*values, condition])
        inside = {id(node) for node in nodes} | {id(bundle)}
        parts = [one for one in nodes if one.op_type == "TupleGetItem" and any(one.operands[0] is v for v in wanted)]
        with self._builder.block("unwind", calls=_CALLS) as graph, self._builder.formal([*wanted, *parts]):
            arguments = [argument_of(graph, value.abstract) for value in given]
            seeds: list[Any] = [None if at in unread else argument for at, argument in enumerate(arguments)]
            if condition is not None:  # its gradient is zero, see `control_gradients`
                own = id(condition) in inside
                seeds.append(self._builder.late_zeros(condition.abstract) if own else None)
            assert isinstance(bundle.abstract, TupleType)
            sens = Parts(abstract=bundle.abstract, items=tuple(seeds))
            forward = [node for node in below([bundle]) if id(node) in inside]
            found = self._reverse(bundle, sens, wanted, forward)
        return _Made(graph=graph, given=given, arguments=arguments, wanted=wanted, found=found)

    def finish(self, steps: tuple[_Made, ...], outer: Sequence[Value]) -> tuple[Step, ...]:
        """Return the steps, without the outer values for which no step has a gradient."""
        made = list(_every(steps))
        passed = {id(argument) for step in made for argument in step.arguments}
        alive = {
            id(value)
            for step in made
            for value, gradient in zip(step.wanted, step.found, strict=True)
            if gradient is not None and id(gradient) not in passed
        }
        self.dead = set(map(id, outer)) - alive
        return tuple(map(self._finished, steps))

    def _finished(self, made: _Made) -> Step:
        graph = made.graph
        if made.given:
            graph.parameters = [
                argument
                for value, argument in zip(made.given, made.arguments, strict=True)
                if id(value) not in self.dead
            ]
        kept = [(v, g) for v, g in zip(made.wanted, made.found, strict=True) if id(v) not in self.dead]
        graph.output = bundle_of([or_zeros(self._builder, gradient, value) for value, gradient in kept])
        return Step(
            graph=graph,
            given=[value for value in made.given if id(value) not in self.dead],
            targets=[value for value, _ in kept],
            split=made.split,
            inner=tuple(map(self._finished, made.inner)),
        )


def _splits(nodes: Sequence[Node], at: int, output: Value) -> bool:
    """Whether the code after a node is a function of its own."""
    node = nodes[at]
    if node.op_type != "If" or control_of(node).jumps:
        return bool(node.blocks)
    return not is_child(nodes[at + 1 :], output, nodes[:at])


def _every(steps: Iterable[_Made]) -> Iterator[_Made]:
    for step in steps:
        yield step
        yield from _every(step.inner)


def _graphs(steps: Iterable[Step]) -> Iterator[Graph]:
    for step in steps:
        yield step.graph
        yield from _graphs(step.inner)


def _free(trail: Sequence[Node], output: Value | None, tail: _Tail) -> list[Value]:
    """Return the values of earlier code that nodes use, and the call of a header with the values in `output`."""
    assert isinstance(output, Node)
    alive = reachable([output])
    nodes = [node for node in trail if id(node) in alive]
    inside = {id(node) for node in nodes}
    used = [value for node in nodes for value in (uses(node) if node.blocks else node.operands)]
    used += tail.read(output.operands)
    return _once(
        value
        for value in used
        if id(value) not in inside and isinstance(value.abstract, TensorType) and has_gradient(value)
    )


def _once(values: Iterable[Value]) -> list[Value]:
    return list({id(value): value for value in values}.values())


def _all_used(nodes: Sequence[Node], loop: Node) -> set[int]:
    """Return the ids of the values of earlier code that a loop and the code after it use.

    The gradients of all of them pass from round to round: the compiler only knows that a gradient is unused if no round
    passes it on. [observed 2.10]
    """
    inside = {id(node) for node in nodes} | {id(loop)}
    used = [value for node in nodes for value in (uses(node) if node.blocks else node.operands)]
    return {id(value) for value in used if id(value) not in inside and has_gradient(value)}


def _used(rest: Sequence[Node], output: Value, loop: Node, needed: set[int]) -> list[Value]:
    """Return the values before a loop that the nodes after it use, and those that are results themselves."""
    inside = {id(node) for node in rest} | {id(loop)}
    used = [value for node in rest for value in (uses(node) if node.blocks else node.operands)]
    used += _leaves(output)
    found = {id(v): v for v in used if id(v) in needed and id(v) not in inside and has_gradient(v)}
    return list(found.values())


def _formals(graph: Graph, output: Value, sens: Any, builder: ControlBuilder, seeds: list[Value]) -> Any:
    """Create parameters for the gradients of the outputs."""
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
